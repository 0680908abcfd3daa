//! Polling of several descriptors at once.

use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Waits until one of `descriptors` is readable or closed by its writer, or `patience` has passed. Says which are; none of
/// them where the time was over or a signal came between.
pub(crate) fn poll<const N: usize>(
    descriptors: [Option<BorrowedFd<'_>>; N],
    patience: Duration,
) -> io::Result<[bool; N]> {
    let wanted = descriptors.iter().flatten();
    let mut wanted: Vec<PollFd<'_>> = wanted
        .map(|&descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
        .collect();
    let most = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    match rustix::event::poll(&mut wanted, Some(&most)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok([false; N]),
        Err(error) => return Err(error.into()),
    }
    let mut answers = wanted.iter().map(|one| !one.revents().is_empty());
    Ok(descriptors.map(|descriptor| descriptor.is_some() && answers.next() == Some(true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn says_which_one_is_ready() {
        let (silent, _keep) = io::pipe().unwrap();
        let (spoken, mut to) = io::pipe().unwrap();
        let (closed, gone) = io::pipe().unwrap();
        drop(gone);
        to.write_all(b"x").unwrap();
        let all = [Some(silent.as_fd()), Some(spoken.as_fd()), None, Some(closed.as_fd())];
        assert_eq!(poll(all, LONG).unwrap(), [false, true, false, true]);
    }

    #[test]
    fn a_signal_between_is_no_error() {
        let heard = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(libc::SIGUSR1, heard.clone()).unwrap();
        let (silent, keep) = io::pipe().unwrap();
        let (number, numbers) = std::sync::mpsc::channel();
        let waits = std::thread::spawn(move || {
            // SAFETY: the call takes nothing.
            number.send(unsafe { libc::pthread_self() }).unwrap();
            poll([Some(silent.as_fd())], LONG).unwrap()
        });
        let thread = numbers.recv().unwrap();
        while !waits.is_finished() {
            // SAFETY: the thread is not joined yet, so its number is still its own.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(waits.join().unwrap(), [false]);
        assert!(heard.load(Ordering::Relaxed));
        drop(keep);
    }

    #[test]
    fn waits_as_long_as_its_argument_says_and_no_shorter() {
        let start = Instant::now();
        let (silent, _keep) = io::pipe().unwrap();
        let patience = Duration::from_micros(20_100);
        assert_eq!(poll([Some(silent.as_fd())], patience).unwrap(), [false]);
        assert!(start.elapsed() >= patience);
    }
}
