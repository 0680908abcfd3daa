//! History of a user's lines: a file in the XDG folder of states, which nobody else may read.

use std::io::{self, Read, Write};
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
        let absolute = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
        Some(Self(state.join("rocmforge/history")))
    }

    /// The lines that were kept, the oldest first. Older ones than these leave the file.
    pub(super) fn lines(&self) -> io::Result<Vec<String>> {
        let mut bytes = Vec::new();
        match std::fs::File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            file => drop(file?.take(BYTES).read_to_end(&mut bytes)?),
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let old = lines.len().saturating_sub(LINES);
        if old > 0 {
            let mut file = std::fs::File::create(&self.0)?;
            lines[old..].iter().try_for_each(|line| writeln!(file, "{line}"))?;
        }
        Ok(lines[old..].to_vec())
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
        let mode = std::fs::metadata(&history.0).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
