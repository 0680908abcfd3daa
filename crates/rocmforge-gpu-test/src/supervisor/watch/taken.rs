//! Bytes taken from a pipe: kept up to a bound, read to the end all the same, and never waited for.

use rustix::io::ioctl_fionbio;
use std::io::{self, ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes read at once before something else is looked at: more than a pipe holds.
const TURN: usize = 2 << 20;

/// A pipe and what came from it.
pub(crate) struct Taken {
    from: PipeReader,
    most: usize,
    open: bool,
    /// What came, up to the bound.
    pub(crate) bytes: Vec<u8>,
    /// Whether more came than is kept.
    pub(crate) flooded: bool,
}

impl Taken {
    /// Takes up to `most` bytes of `from`; the rest is read and forgotten.
    pub(crate) fn up_to(most: usize, from: PipeReader) -> io::Result<Self> {
        ioctl_fionbio(&from, true)?;
        Ok(Self {
            from,
            most,
            open: true,
            bytes: Vec::new(),
            flooded: false,
        })
    }

    /// The descriptor to poll, until the last writer has gone.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.from.as_fd())
    }

    /// Reads what is there, and not for ever.
    pub(crate) fn take(&mut self) -> io::Result<()> {
        let (mut buffer, mut turn) = ([0; 1 << 16], 0);
        while self.open && turn < TURN {
            match self.from.read(&mut buffer) {
                Ok(0) => self.open = false,
                Ok(count) => {
                    let kept = count.min(self.most - self.bytes.len());
                    self.bytes.extend_from_slice(&buffer[..kept]);
                    self.flooded |= kept < count;
                    turn += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_beyond_the_bound_is_read_and_forgotten() {
        let (from, mut to) = io::pipe().unwrap();
        let mut taken = Taken::up_to(5, from).unwrap();
        taken.take().unwrap();
        assert!(
            taken.readable().is_some() && taken.bytes.is_empty(),
            "nobody is waited for"
        );
        to.write_all(b"abcde").unwrap();
        taken.take().unwrap();
        assert_eq!((&taken.bytes[..], taken.flooded), (&b"abcde"[..], false));
        to.write_all(b"f").unwrap();
        drop(to);
        taken.take().unwrap();
        assert_eq!((&taken.bytes[..], taken.flooded), (&b"abcde"[..], true));
        assert!(taken.readable().is_none());
    }
}
