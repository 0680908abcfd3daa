//! Progress of compiling: a bar on a terminal, and a line for each object elsewhere.

use indicatif::{ProgressBar, ProgressStyle};
use rocmforge_gpu_test::say;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The progress of so many jobs.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    done: AtomicUsize,
    all: usize,
}

impl Progress {
    pub(crate) fn new(all: usize) -> Self {
        let shown = std::io::stderr().is_terminal() && all > 0;
        let bar = shown.then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {elapsed} {msg}");
            let bar = ProgressBar::new(all as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Self {
            bar,
            done: AtomicUsize::new(0),
            all,
        }
    }

    /// Does a job of this name.
    pub(crate) fn job<T>(&self, name: &str, job: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = job();
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) => {
                bar.set_message(name.to_owned());
                bar.inc(1);
            }
            None => say!("[{done}/{}] {name} {:.1} s", self.all, start.elapsed().as_secs_f64()),
        }
        result
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
