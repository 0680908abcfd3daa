//! History of a user's lines: a file in the XDG folder of states, which nobody else may read.

use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// Lines that are kept.
const LINES: usize = 1000;
/// The most that is read of the file.
const BYTES: u64 = 4 << 20;

/// The file.
pub(super) struct History(PathBuf);

impl History {
    /// `rocmforge/history` in `$XDG_STATE_HOME`, else in `~/.local/state`; `None` where neither is known.
    pub(super) fn of_user() -> Option<Self> {
        Some(Self(crate::folders::state()?.join("history")))
    }

    /// The last lines of the file, the oldest first. Older ones leave the file.
    pub(super) fn lines(&self) -> io::Result<Vec<String>> {
        let mut file = match std::fs::File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let skipped = file.metadata()?.len().saturating_sub(BYTES);
        file.seek(io::SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // The first line may be the rest of one.
        let mut lines: Vec<String> = text.lines().skip(usize::from(skipped > 0)).map(str::to_owned).collect();
        let old = lines.len().saturating_sub(LINES);
        lines.drain(..old);
        if (old > 0 || skipped > 0)
            && let Some(folder) = self.0.parent()
        {
            // The file is replaced as a whole; only its owner may read the new one.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            lines.iter().try_for_each(|line| writeln!(file, "{line}"))?;
            file.persist(&self.0)?;
        }
        Ok(lines)
    }

    /// Adds a line.
    pub(super) fn add(&self, line: &str) -> io::Result<()> {
        if let Some(folder) = self.0.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.append(true).create(true).mode(0o600).open(&self.0)?;
        writeln!(file, "{line}")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_last_lines_are_kept_for_the_user_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let history = History(folder.path().join("state/rocmforge/history"));
        assert!(history.lines().expect("none yet").is_empty());
        for line in 0..LINES + 10 {
            history.add(&line.to_string()).expect("added");
        }
        for _ in 0..2 {
            let lines = history.lines().expect("read");
            assert_eq!((lines.len(), lines[0].as_str()), (LINES, "10"));
        }
        // A line that is longer than all that is read takes only itself away.
        history.add(&"x".repeat(BYTES as usize + 1)).expect("added");
        history.add("the newest").expect("added");
        for _ in 0..2 {
            assert_eq!(history.lines().expect("read"), ["the newest"]);
        }
        let mode = std::fs::metadata(&history.0).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
