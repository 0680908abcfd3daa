//! A test's output: kept up to a bound, however much there is of it.

use crate::beneath;
use crate::supervisor::untrusted::named;
use rustix::io::ioctl_fionbio;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Bytes kept from the beginning of the output, where the first error is.
const HEAD: usize = 4 << 20;
/// Bytes kept from its end.
const TAIL: usize = 64 << 10;
/// Bytes taken at once, so that a test that never stops writing does not keep the supervisor from its clock.
const GULP: usize = 1 << 20;

/// The pipe that a test writes to, and the log that it ends up in. The log is for people: other tests can write to it, so what a test
/// said is known from the pipe alone.
pub(crate) struct Output {
    from: PipeReader,
    log: File,
    /// What the log is called in errors.
    path: PathBuf,
    /// Why the log is not whole, if it is not: the output is taken all the same, or the test would wait for ever.
    lost: Option<io::Error>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
    open: bool,
}

impl Output {
    /// Reads from `from`, without ever waiting for it, into a new file `name` of the open folder `logs`, whose path is `folder`.
    pub(crate) fn new(from: PipeReader, logs: BorrowedFd<'_>, folder: &Path, name: &str) -> io::Result<Self> {
        ioctl_fionbio(&from, true)?;
        let path = folder.join(name);
        let log = beneath::make_file(logs, Path::new(name)).map_err(|error| named(&path, error))?;
        Ok(Self {
            from,
            log,
            path,
            lost: None,
            head: Vec::new(),
            tail: VecDeque::new(),
            left_out: 0,
            open: true,
        })
    }

    /// The descriptor to poll, until the last writer has gone.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.from.as_fd())
    }

    /// Takes what is there, up to a bound.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        let mut chunk = [0; 32 << 10];
        let mut taken = 0;
        while self.open && taken < GULP {
            match self.from.read(&mut chunk) {
                Ok(0) => self.open = false,
                Ok(length) => {
                    taken += length;
                    self.keep(&chunk[..length]);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.write(head);
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.lost.is_none() {
            self.lost = self.log.write_all(bytes).err();
        }
    }

    /// Takes what is left and completes the log. All of it, and why the log is not whole, if it is not.
    pub(crate) fn finish(mut self) -> io::Result<(Vec<u8>, Option<io::Error>)> {
        self.take()?;
        let mut end = Vec::new();
        if self.left_out > 0 {
            end.extend(format!("\n[... {} bytes left out ...]\n", self.left_out).into_bytes());
        }
        end.extend(std::mem::take(&mut self.tail));
        self.write(&end);
        self.head.extend(end);
        Ok((self.head, self.lost.map(|error| named(&self.path, error))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::poll::poll;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    /// What the documentation promises.
    const FOUR_MIB: usize = 4 << 20;
    const SIXTY_FOUR_KIB: usize = 64 << 10;

    fn output(from: PipeReader, folder: &Path) -> Output {
        let logs = beneath::open_root(folder).unwrap();
        Output::new(from, logs.as_fd(), folder, "log").unwrap()
    }

    fn log_of(write: impl FnOnce(&mut io::PipeWriter) + Send + 'static) -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let (from, mut to) = io::pipe().unwrap();
        let mut output = output(from, directory.path());
        let writer = std::thread::spawn(move || write(&mut to));
        // Each look finds a byte at least, most a pipe full.
        for look in 0.. {
            let Some(readable) = output.readable() else { break };
            assert!(look < 100_000, "nothing is taken");
            poll([Some(readable)], Duration::from_secs(60)).unwrap();
            output.take().unwrap();
        }
        assert!(output.tail.len() <= SIXTY_FOUR_KIB);
        writer.join().unwrap();
        let (text, lost) = output.finish().unwrap();
        assert!(lost.is_none());
        assert_eq!(std::fs::read(directory.path().join("log")).unwrap(), text);
        text
    }

    #[test]
    fn little_output_is_kept_as_it_is() {
        assert_eq!(
            log_of(|to| to.write_all(b"the reason\n\xff").unwrap()),
            b"the reason\n\xff"
        );
        assert_eq!(log_of(|_| {}), b"");
    }

    #[test]
    fn exactly_what_fits_is_kept_whole() {
        let log = log_of(|to| to.write_all(&vec![b'x'; FOUR_MIB + SIXTY_FOUR_KIB]).unwrap());
        assert_eq!(log.len(), FOUR_MIB + SIXTY_FOUR_KIB);
        assert!(log.iter().all(|&byte| byte == b'x'));
    }

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end() {
        let log = log_of(|to| {
            to.write_all(b"first").unwrap();
            for _ in 0..16 {
                to.write_all(&[b'x'; 1 << 20]).unwrap();
            }
            to.write_all(b"last").unwrap();
        });
        assert!(log.starts_with(b"first") && log.ends_with(b"last"));
        let note = format!(
            "\n[... {} bytes left out ...]\n",
            9 + (16 << 20) - FOUR_MIB - SIXTY_FOUR_KIB
        );
        assert_eq!(log.len(), FOUR_MIB + SIXTY_FOUR_KIB + note.len());
        assert_eq!(&log[FOUR_MIB..FOUR_MIB + note.len()], note.as_bytes());
    }

    #[test]
    fn a_writer_that_never_stops_does_not_keep_the_reader() {
        let directory = tempfile::tempdir().unwrap();
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        let mut output = output(PipeReader::from(OwnedFd::from(zeros)), directory.path());
        output.take().unwrap();
        assert!(output.readable().is_some());
        let taken = output.head.len() + output.tail.len();
        assert_eq!(taken, 1 << 20, "at once");
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let folder = OwnedFd::from(std::fs::File::open(directory.path()).unwrap());
        let mut output = output(PipeReader::from(folder), directory.path());
        assert_eq!(output.take().unwrap_err().kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn a_writer_that_is_silent_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = io::pipe().unwrap();
        let mut output = output(from, directory.path());
        output.take().unwrap();
        assert!(output.readable().is_some());
        output.finish().unwrap();
        drop(to);
    }
}
