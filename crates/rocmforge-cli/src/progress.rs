//! Progress on stderr: a bar on a terminal, else one line at the start.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Progress of one piece of work. Dropping it takes the bar away.
pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    /// Shows `what` at once, and on a terminal the time that it takes.
    pub(crate) fn new(what: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            eprintln!("{what} …");
            return Self(None);
        }
        let bar = ProgressBar::new(0).with_message(what.to_owned());
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {elapsed}") {
            bar.set_style(style);
        }
        // Also while a single step takes long.
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(Some(bar))
    }

    /// Shows the bytes of a file that is fetched.
    pub(crate) fn of_bytes(what: &str) -> Self {
        let progress = Self::new(&format!("fetching {what}"));
        let style = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        if let (Some(bar), Ok(style)) = (&progress.0, ProgressStyle::with_template(style)) {
            bar.set_style(style);
        }
        progress
    }

    /// `done` bytes are there, of `total` if that is known.
    pub(crate) fn set_bytes(&self, done: u64, total: Option<u64>) {
        if let Some(bar) = &self.0 {
            if let Some(total) = total {
                bar.set_length(total);
            }
            bar.set_position(done);
        }
    }

    /// `done` of `total` are done.
    pub(crate) fn set(&self, done: usize, total: usize) {
        if let Some(bar) = &self.0 {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
    }
}

/// Progress of a request's prompt, and the launches of the steps after it.
pub(crate) struct PromptProgress {
    bar: Option<Progress>,
    launches_before: Option<u64>,
}

impl PromptProgress {
    pub(crate) fn new() -> Self {
        Self {
            bar: Some(Progress::new("computing the prompt")),
            launches_before: None,
        }
    }

    /// `done` of `tokens` of the prompt are computed; `launches` so far.
    pub(crate) fn set(&mut self, done: usize, tokens: usize, launches: Option<u64>) {
        if done == tokens {
            self.finish();
            self.launches_before = launches;
        } else if let Some(bar) = &self.bar {
            bar.set(done, tokens);
        }
    }

    /// Takes the bar away, whatever is computed.
    pub(crate) fn finish(&mut self) {
        self.bar = None;
    }

    /// Launches since the prompt was computed, with `launches` so far.
    pub(crate) fn launches_since(&self, launches: Option<u64>) -> Option<u64> {
        launches.zip(self.launches_before).map(|(now, before)| now - before)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
