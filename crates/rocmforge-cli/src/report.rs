//! Figures of a run as a table on stderr.

use rocmforge::memory::Bytes;
use rocmforge::models::generate::Stats;

use crate::machine::{Machine, Memory};

/// Figures of one request, or sums of several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) stats: Stats,
    /// Launches of the steps after the prompt, on a device.
    pub(crate) launches: Option<u64>,
}

impl Figures {
    /// Launches of a step after the prompt.
    pub(crate) fn launches_per_token(&self) -> Option<f64> {
        let launches = self.launches.filter(|_| self.stats.decoded_tokens > 0)?;
        Some(launches as f64 / self.stats.decoded_tokens as f64)
    }
}

/// Prints the figures.
pub(crate) fn print(figures: &Figures, device: &str, context: usize, machine: &impl Machine) {
    let stats = &figures.stats;
    eprintln!();
    row("device", device.to_owned());
    row("context", format!("{context} tokens"));
    let cached = match stats.cached_tokens {
        0 => String::new(),
        cached => format!(" ({cached} of them cached)"),
    };
    row(
        "prompt",
        format!(
            "{} tokens{cached}, {:.2} tokens/s",
            stats.prompt_tokens,
            stats.prompt_tokens_per_second()
        ),
    );
    row(
        "decode",
        format!(
            "{} tokens, {:.2} tokens/s",
            stats.decoded_tokens,
            stats.decode_tokens_per_second()
        ),
    );
    places(machine);
    if let Some(launches) = figures.launches_per_token() {
        row("launches", format!("{launches:.1} a token"));
    }
}

/// Prints what lies on a device.
pub(crate) fn places(machine: &impl Machine) {
    if let Some(Memory { peak, budget }) = machine.memory() {
        row("peak VRAM", format!("{} of a budget of {}", Bytes(peak), Bytes(budget)));
    }
    if let Some(parts) = machine.parts() {
        let moved = match (parts.spills, parts.returns) {
            (0, 0) => String::new(),
            (spills, returns) => format!("; {spills} went to the host, {returns} came back"),
        };
        row(
            "on device",
            format!("{} of {} parts of the model{moved}", parts.on_device, parts.all),
        );
        row("replays", parts.replays.to_string());
    }
}

fn row(name: &str, value: String) {
    eprintln!("{name:<10} {value}");
}
