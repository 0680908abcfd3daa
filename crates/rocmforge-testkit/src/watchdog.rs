//! Watchdog: a deadline for a whole test; when it passes, the device's last operations are printed while the device still answers.

use rocmforge_runtime::HipBackend;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Watches a test until it is stopped.
pub(crate) struct Watchdog {
    stop: Sender<()>,
    thread: JoinHandle<()>,
    until: Instant,
}

impl Watchdog {
    /// Prints the launches and the ledger of `backend` once `deadline` has passed.
    pub(crate) fn start(deadline: Duration, backend: &Arc<HipBackend>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Weak: a watchdog must not keep the backend from ending.
        let backend = Arc::downgrade(backend);
        let until = Instant::now() + deadline;
        let thread = std::thread::spawn(move || {
            if stopped.recv_timeout(deadline) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let state = backend.upgrade().map(|backend| describe(&backend)).unwrap_or_default();
            #[allow(clippy::print_stderr)] // the test may never come back to say it
            {
                eprintln!("{test} has not ended after {deadline:?}\n{state}");
            }
        });
        Self { stop, thread, until }
    }

    /// The test has ended. Whether it was too late: by the clock, as the thread may not have run yet on a loaded machine.
    pub(crate) fn stop(self) -> bool {
        let late = Instant::now() >= self.until;
        // The thread has gone if it has found that out.
        let _ = self.stop.send(());
        let _ = self.thread.join();
        late
    }
}

/// What a backend did last and what it holds.
fn describe(backend: &HipBackend) -> String {
    let mut text = "last launches, the oldest first:\n".to_owned();
    for launch in backend.last_launches() {
        text += &format!("  {launch}\n");
    }
    text += "alive:\n";
    for entry in backend.card().ledger().live() {
        text += &format!("  {entry}\n");
    }
    if let Some(cause) = backend.is_poisoned() {
        text += &format!("the backend is poisoned: {cause}\n");
    }
    text
}
