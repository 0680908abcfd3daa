//! Probe of NVIDIA's driver, in a process of its own: a crash or a hang there ends that process only.
//!
//! It asks for names, addresses and memory. No context is made, so nothing of the card is used by asking.

use crate::helper::Helper;
use crate::limited::{Ended, run_limited};
use crate::text::none_or;
use rocmforge_hip_sys::{HipApi, hipError_t, hipSuccess};
use rocmforge_memory::Readings;
use rocmforge_nvidia::{CudaDriver, NvmlReadings};
use serde::{Deserialize, Serialize};
use std::ffi::{c_char, c_int};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

/// Marks our line: a library may print what it likes.
const MARK: &str = "rocmforge-probe: ";
/// A driver that starts up a card answers within a few seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The driver's figures of a card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Probed {
    /// PCI address, `0000:03:00.0`.
    pub(crate) pci: String,
    pub(crate) name: String,
    /// Its memory, and what all processes use of it, in bytes; `None` where its management library does not say.
    pub(crate) memory: Option<(u64, u64)>,
    /// Whether it drives a display, or does not say.
    pub(crate) may_display: bool,
}

/// Why nothing is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error("the driver did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("the driver's library crashed with signal {0}")]
    Crashed(i32),
    #[error("the driver's library ended its process with status {0}")]
    Exited(i32),
    #[error("the process that asks the driver could not be started: {0}")]
    NotStarted(String),
    #[error("{0}")]
    Driver(String),
}

/// Asks the driver for its cards.
pub(crate) fn ask() -> Result<Vec<Probed>, ProbeError> {
    ask_with(&mut Helper::Nvidia.command(), PATIENCE)
}

/// Asks the driver for the card at `pci`.
pub(crate) fn ask_for(pci: &str) -> Result<Probed, ProbeError> {
    let cards = ask()?;
    let found = cards.iter().find(|card| card.pci == pci).cloned();
    found.ok_or_else(|| {
        let cards: Vec<&str> = cards.iter().map(|card| card.pci.as_str()).collect();
        let shown = none_or(&cards);
        ProbeError::Driver(format!(
            "the driver does not show {pci} to this process; it shows {shown}"
        ))
    })
}

fn ask_with(command: &mut Command, patience: Duration) -> Result<Vec<Probed>, ProbeError> {
    let (ended, text) = run_limited(command, patience).map_err(|error| ProbeError::NotStarted(error.to_string()))?;
    match ended {
        Ended::TimedOut => return Err(ProbeError::TimedOut(patience)),
        Ended::With(status) => match (status.signal(), status.code()) {
            (Some(signal), _) => return Err(ProbeError::Crashed(signal)),
            (None, Some(code)) if code != 0 => return Err(ProbeError::Exited(code)),
            _ => {}
        },
    }
    let answer = text.lines().find_map(|line| line.strip_prefix(MARK));
    let answer = answer.and_then(|line| serde_json::from_str::<Result<Vec<Probed>, String>>(line).ok());
    answer
        .unwrap_or_else(|| Err("the driver's library said nothing".to_owned()))
        .map_err(ProbeError::Driver)
}

/// The process that asks.
pub(crate) fn child() {
    let answer = cards().map_err(|error| error.to_string());
    if let Ok(text) = serde_json::to_string(&answer) {
        say!("\n{MARK}{text}");
    }
}

fn cards() -> Result<Vec<Probed>, Box<dyn std::error::Error>> {
    let driver = CudaDriver::load()?;
    // SAFETY: hipInit takes no pointer, and 0 is the only flag it knows.
    good("hipInit", unsafe { driver.hipInit(0) })?;
    let mut devices: c_int = 0;
    // SAFETY: `devices` is a live int that the call writes.
    good("hipGetDeviceCount", unsafe { driver.hipGetDeviceCount(&mut devices) })?;
    (0..devices).map(|index| card(&driver, index)).collect()
}

fn card(driver: &CudaDriver, index: c_int) -> Result<Probed, Box<dyn std::error::Error>> {
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: the buffer is live and as long as the length passed to the call.
    let named = unsafe { driver.hipDeviceGetName(name.as_mut_ptr(), name.len() as c_int, index) };
    good("hipDeviceGetName", named)?;
    let mut pci: [c_char; 32] = [0; 32];
    // SAFETY: the buffer is live and as long as the length passed to the call.
    let located = unsafe { driver.hipDeviceGetPCIBusId(pci.as_mut_ptr(), pci.len() as c_int, index) };
    good("hipDeviceGetPCIBusId", located)?;
    let pci = text(&pci).to_ascii_lowercase();
    let reading = NvmlReadings::open(&pci)?.map(|readings| readings.read());
    Ok(Probed {
        name: text(&name),
        memory: reading.and_then(|reading| Some((reading.total?.0, reading.used?.0))),
        may_display: reading.is_none_or(|reading| reading.displays > 0),
        pci,
    })
}

fn good(call: &str, status: hipError_t) -> Result<(), String> {
    if status == hipSuccess {
        return Ok(());
    }
    let name = status.name().map_or_else(|| status.0.to_string(), str::to_owned);
    Err(format!("{call}: {name}"))
}

/// The text before the first zero, however the call filled the buffer.
pub(crate) fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Vec<Probed>, ProbeError> {
        ask_with(Command::new("sh").args(["-c", script]), Duration::from_secs(60))
    }

    #[test]
    fn an_answer_is_found_among_what_libraries_print() {
        let answer = r#"{"Ok":[{"pci":"0000:06:00.0","name":"NVIDIA H200","memory":[10,3],"may_display":false}]}"#;
        let cards = shell(&format!(
            "echo noise; printf 'half a line'; echo; echo '{MARK}{answer}'"
        ))
        .unwrap();
        let expected = Probed {
            pci: "0000:06:00.0".to_owned(),
            name: "NVIDIA H200".to_owned(),
            memory: Some((10, 3)),
            may_display: false,
        };
        assert_eq!(cards, [expected]);
    }

    #[test]
    fn a_buffer_is_read_up_to_its_zero_and_a_call_that_fails_is_named() {
        let buffer = |text: &[u8]| text.iter().map(|&byte| byte as c_char).collect::<Vec<_>>();
        assert_eq!(text(&buffer(b"NVIDIA H200\0rest")), "NVIDIA H200");
        assert_eq!(text(&buffer(b"full")), "full");
        assert_eq!(good("hipInit", hipSuccess), Ok(()));
        let no_device = good("hipInit", rocmforge_hip_sys::hipErrorNoDevice);
        assert_eq!(no_device, Err("hipInit: hipErrorNoDevice".to_owned()));
    }

    #[test]
    fn who_is_asked_is_this_program_wherever_it_lies() {
        // Ours is a test binary here, which does not know the option.
        assert!(matches!(ask(), Err(ProbeError::Exited(_))), "{:?}", ask());
    }

    #[test]
    fn a_library_that_crashes_ends_or_hangs_is_reported() {
        assert_eq!(shell("kill -SEGV $$"), Err(ProbeError::Crashed(libc::SIGSEGV)));
        assert_eq!(shell("exit 7"), Err(ProbeError::Exited(7)));
        assert_eq!(
            shell("true"),
            Err(ProbeError::Driver("the driver's library said nothing".to_owned()))
        );
        assert_eq!(
            shell(&format!("echo '{MARK}{{\"Err\":\"no driver\"}}'")),
            Err(ProbeError::Driver("no driver".to_owned()))
        );
        let short = Duration::from_millis(50);
        assert_eq!(
            ask_with(Command::new("sleep").arg("60"), short),
            Err(ProbeError::TimedOut(short))
        );
    }
}
