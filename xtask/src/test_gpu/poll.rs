//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// Waits until one of `descriptors` is readable or closed by its writer, or `patience` has passed. Says which are; none of
/// them where the time was over or a signal came between.
pub(crate) fn poll<const N: usize>(
    descriptors: [Option<BorrowedFd<'_>>; N],
    patience: Duration,
) -> io::Result<[bool; N]> {
    let mut wanted = descriptors.map(|descriptor| libc::pollfd {
        // The kernel leaves negative ones out.
        fd: descriptor.map_or(RawFd::MIN, |descriptor| descriptor.as_raw_fd()),
        events: libc::POLLIN,
        revents: 0,
    });
    // Rounded up, so that a caller that waits until a moment does not spin before it.
    let milliseconds = patience.as_nanos().div_ceil(1_000_000);
    let milliseconds = libc::c_int::try_from(milliseconds).unwrap_or(libc::c_int::MAX);
    // SAFETY: `wanted` is a live array of as many entries as the call is told.
    let ready = unsafe { libc::poll(wanted.as_mut_ptr(), N as libc::nfds_t, milliseconds) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok([false; N]),
            _ => Err(error),
        };
    }
    Ok(wanted.map(|one| one.revents != 0))
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
    fn waits_as_long_as_it_is_told_and_no_shorter() {
        let start = Instant::now();
        let (silent, _keep) = io::pipe().unwrap();
        let patience = Duration::from_micros(20_100);
        assert_eq!(poll([Some(silent.as_fd())], patience).unwrap(), [false]);
        assert!(start.elapsed() >= patience);
    }
}
