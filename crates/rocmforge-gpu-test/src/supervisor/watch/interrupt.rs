//! Interrupts by the user, Ctrl-C above all: the first ends the run in order, the second at once.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, PipeReader, PipeWriter, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time that the run has, after the second signal, to kill its children and write its reports.
const FORCED_EXIT_DELAY: Duration = Duration::from_secs(5);

/// Urgency of the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// None.
    No,
    /// End what runs, in order, and start nothing.
    Soon,
    /// Kill what runs.
    Now,
}

/// Whether the user wants the run to end.
pub(crate) struct Interrupt {
    /// One pipe for each step. A step is reached when its pipe holds a byte; nobody reads the byte, so every poll sees it. Closing the other end
    /// instead would be seen late: a process that another thread is starting has a copy of that end until it runs its program.
    steps: [PipeReader; 2],
    /// The other ends of those not reached.
    ahead: Mutex<Vec<PipeWriter>>,
    signal: AtomicI32,
}

impl Interrupt {
    /// An interrupt that comes only by [`Self::raise`].
    pub(crate) fn new() -> io::Result<Self> {
        let ((first, soon), (second, now)) = (io::pipe()?, io::pipe()?);
        Ok(Self {
            steps: [first, second],
            ahead: Mutex::new(vec![now, soon]),
            signal: AtomicI32::new(0),
        })
    }

    /// Ignores SIGXFSZ, so that a write beyond a limit on the size of files is an error and not the end of this process, and listens
    /// to SIGINT, SIGTERM and SIGHUP for the rest of this process. What this process was started to ignore stays
    /// ignored (`nohup` does that), except for SIGTERM.
    pub(crate) fn listen() -> io::Result<Arc<Self>> {
        // SAFETY: ignoring a signal runs no code of ours.
        if unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
        let interrupt = Arc::new(Self::new()?);
        let mut signals = Signals::new(heeded(&std::fs::read_to_string("/proc/self/status")?))?;
        let heard = interrupt.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                heard.raise(signal);
                if heard.urgency() == Urgency::Now {
                    std::thread::sleep(FORCED_EXIT_DELAY);
                    std::process::exit(128 + signal);
                }
            }
        })?;
        Ok(interrupt)
    }

    /// Goes one step further, on account of `signal`.
    pub(crate) fn raise(&self, signal: i32) {
        self.signal.store(signal, Ordering::Relaxed);
        let step = self.ahead.lock().expect("nobody panics holding it").pop();
        // An empty pipe has room for a byte.
        let _ = step.map(|mut step| step.write_all(&[1]));
    }

    pub(crate) fn urgency(&self) -> Urgency {
        match self.ahead.lock().expect("nobody panics holding it").len() {
            2.. => Urgency::No,
            1 => Urgency::Soon,
            0 => Urgency::Now,
        }
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }

    /// Becomes readable when the urgency rises above `now`.
    pub(crate) fn more_than(&self, now: Urgency) -> Option<BorrowedFd<'_>> {
        match now {
            Urgency::No => Some(self.steps[0].as_fd()),
            Urgency::Soon => Some(self.steps[1].as_fd()),
            Urgency::Now => None,
        }
    }
}

/// The signals to listen to in a process whose `/proc/<pid>/status` this is.
fn heeded(status: &str) -> Vec<i32> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let ignored = ignored.unwrap_or(0);
    // The lowest bit is signal 1.
    let is_ignored = |signal: i32| (ignored << 1) >> signal & 1 == 1;
    let mut signals = vec![SIGINT, SIGTERM, SIGHUP];
    signals.retain(|&signal| signal == SIGTERM || !is_ignored(signal));
    signals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::poll::poll;

    #[test]
    fn each_signal_is_one_step_that_everybody_sees() {
        let interrupt = Interrupt::new().unwrap();
        let seen = || {
            let steps = [Urgency::No, Urgency::Soon, Urgency::Now].map(|urgency| interrupt.more_than(urgency));
            poll(steps, Duration::ZERO).unwrap()
        };
        assert_eq!(
            (interrupt.urgency(), interrupt.signal(), seen()),
            (Urgency::No, None, [false; 3])
        );
        interrupt.raise(SIGINT);
        assert_eq!((interrupt.urgency(), interrupt.signal()), (Urgency::Soon, Some(SIGINT)));
        assert_eq!(seen(), [true, false, false]);
        interrupt.raise(SIGTERM);
        assert_eq!((interrupt.urgency(), interrupt.signal()), (Urgency::Now, Some(SIGTERM)));
        assert_eq!(seen(), [true, true, false]);
        interrupt.raise(SIGTERM);
        assert_eq!(interrupt.urgency(), Urgency::Now);
    }

    #[test]
    fn what_the_process_was_started_to_ignore_stays_so_but_for_sigterm() {
        let heeded = |mask: &str| heeded(&format!("Name:\tx\nSigBlk:\tff\nSigIgn:\t{mask}\n"));
        // Bit n - 1 is signal n: SIGHUP 1, SIGINT 2, SIGTERM 15.
        assert_eq!(heeded("0000000000000000"), [SIGINT, SIGTERM, SIGHUP]);
        assert_eq!(heeded("0000000000000001"), [SIGINT, SIGTERM]);
        assert_eq!(heeded("0000000000000002"), [SIGTERM, SIGHUP]);
        assert_eq!(heeded("0000000000004003"), [SIGTERM]);
        assert_eq!(heeded("ffffffffffffbffc"), [SIGINT, SIGTERM, SIGHUP]);
        assert_eq!(super::heeded("Name:\tx\n"), [SIGINT, SIGTERM, SIGHUP]);
    }
}
