//! Heartbeat reader: the samples that a running test's leases send.

use crate::heartbeat::Sample;
use rustix::io::ioctl_fionbio;
use std::io::{self, ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// The longest line that is listened to.
const LONGEST: usize = 1024;
/// Samples kept of a test; beyond, every second one is forgotten.
const MOST_SAMPLES: usize = 2000;

/// The pipe that a test's lease beats on.
pub(crate) struct HeartbeatReader {
    from: PipeReader,
    open: bool,
    line: Vec<u8>,
    samples: Vec<Sample>,
    last: Option<Instant>,
}

impl HeartbeatReader {
    pub(crate) fn new(from: PipeReader) -> io::Result<Self> {
        ioctl_fionbio(&from, true)?;
        Ok(Self {
            from,
            open: true,
            line: Vec::new(),
            samples: Vec::new(),
            last: None,
        })
    }

    /// The descriptor to poll, until the last writer has gone.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.from.as_fd())
    }

    /// Takes what is there, up to a bound. What is no sample is passed over: the pipe is open to whatever the test starts.
    pub(crate) fn listen(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        match self.from.read(&mut chunk) {
            Ok(0) => self.open = false,
            Ok(length) => chunk[..length].iter().for_each(|&byte| self.hear(byte)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn hear(&mut self, byte: u8) {
        if byte != b'\n' {
            // One byte beyond the longest marks a line as too long.
            if self.line.len() <= LONGEST {
                self.line.push(byte);
            }
            return;
        }
        if self.line.len() <= LONGEST
            && let Ok(sample) = serde_json::from_slice::<Sample>(&self.line)
        {
            self.last = (!sample.ended).then(Instant::now);
            if self.samples.len() == MOST_SAMPLES {
                let mut odd = false;
                self.samples.retain(|_| {
                    odd = !odd;
                    odd
                });
            }
            self.samples.push(sample);
        }
        self.line.clear();
    }

    /// When the test was last heard; `None` if it owes no beat, as before its first lease and after the last.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.last
    }

    /// Every sample that was kept.
    pub(crate) fn finish(mut self) -> io::Result<Vec<Sample>> {
        self.listen()?;
        Ok(self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    fn sample(held: u64) -> Sample {
        Sample {
            at: 7,
            held,
            budget: 100,
            ended: false,
        }
    }

    fn heard(text: &[u8]) -> HeartbeatReader {
        let (from, mut to) = io::pipe().unwrap();
        let mut reader = HeartbeatReader::new(from).unwrap();
        assert_eq!(reader.last(), None);
        for part in text.chunks(4096) {
            to.write_all(part).unwrap();
            reader.listen().unwrap();
        }
        assert!(reader.readable().is_some());
        reader.listen().unwrap(); // nothing is there
        drop(to);
        // A child that another test has just started holds a copy of the writing end until it runs its program.
        let until = Instant::now() + Duration::from_secs(10);
        while reader.readable().is_some() && Instant::now() < until {
            reader.listen().unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(reader.readable().is_none());
        reader
    }

    fn line(held: u64) -> String {
        serde_json::to_string(&sample(held)).unwrap() + "\n"
    }

    #[test]
    fn samples_are_heard_between_anything_else() {
        let long = "x".repeat(3 * LONGEST);
        let text = format!("{}\n\nnonsense\n{}{long}\n{}", line(1).trim(), line(2), line(3));
        let reader = heard(text.as_bytes());
        assert!(reader.last().is_some());
        assert_eq!(reader.finish().unwrap(), [sample(1), sample(2), sample(3)]);
    }

    #[test]
    fn a_pipe_that_cannot_be_read_is_an_error() {
        let folder = std::fs::File::open("/").unwrap();
        let mut reader = HeartbeatReader::new(PipeReader::from(OwnedFd::from(folder))).unwrap();
        assert_eq!(reader.listen().unwrap_err().kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn noise_is_no_heartbeat_and_a_line_cut_short_none_either() {
        let reader = heard(format!("noise\n{}", line(1).trim()).as_bytes());
        assert_eq!(reader.last(), None);
        assert_eq!(reader.finish().unwrap(), []);
    }

    #[test]
    fn a_long_test_keeps_samples_of_all_its_time() {
        let text: String = (0..3 * MOST_SAMPLES as u64).map(line).collect();
        let kept = heard(text.as_bytes()).finish().unwrap();
        assert!(
            kept.len() <= MOST_SAMPLES && kept.len() > MOST_SAMPLES / 4,
            "{}",
            kept.len()
        );
        assert_eq!(kept[0], sample(0));
        assert_eq!(kept.last(), Some(&sample(3 * MOST_SAMPLES as u64 - 1)));
    }
}
