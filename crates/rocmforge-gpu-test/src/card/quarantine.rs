//! Quarantine of a card that must not be used until the machine restarts, remembered over runs.

use crate::lock::unix_seconds;
use rocmforge_machine::sysfs::Sysfs;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What happened to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// A process that uses it cannot be ended, or the driver does not let go of one that has ended.
    Stuck,
    /// It was reset, or the driver gave it up.
    Reset,
}

/// Why a card is in quarantine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Quarantine {
    /// The boot in which it happened; another boot lifts the quarantine.
    pub(crate) boot: String,
    pub(crate) cause: Cause,
    /// The test that ran.
    pub(crate) test: String,
    /// What was seen.
    pub(crate) reason: String,
    /// When, in seconds since the Unix epoch.
    pub(crate) since: u64,
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (during {})", self.reason, self.test)
    }
}

/// The file that remembers the quarantine of one card.
#[derive(Clone, Debug)]
pub(crate) struct QuarantineFile {
    path: PathBuf,
    /// The present boot, where it is known.
    boot: Option<String>,
}

impl QuarantineFile {
    /// The file of `card` in `directory`; `root` is where `proc` lies.
    pub(crate) fn new(directory: &Path, card: &str, root: &Path) -> Self {
        Self {
            path: directory.join(format!("gpu-{card}.quarantine")),
            boot: Sysfs::at(root).boot_id().ok(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The quarantine that holds now, if any. One of another boot is lifted. A file that cannot be read or understood
    /// counts as a quarantine: it was written for a reason.
    pub(crate) fn read(&self) -> Option<Quarantine> {
        let unclear = |why: String| Quarantine {
            boot: String::new(),
            cause: Cause::Stuck,
            test: "a run before this one".to_owned(),
            reason: format!("{} {why}", self.path.display()),
            since: 0,
        };
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => return Some(unclear(format!("cannot be read: {error}"))),
        };
        let quarantine: Quarantine = match serde_json::from_str(&text) {
            Ok(quarantine) => quarantine,
            Err(error) => return Some(unclear(format!("cannot be understood: {error}"))),
        };
        if self.boot.as_ref().is_some_and(|boot| *boot != quarantine.boot) {
            // Left over from another boot. If it cannot be removed it is lifted all the same, each time.
            let _ = fs::remove_file(&self.path);
            return None;
        }
        Some(quarantine)
    }

    /// Puts the card in quarantine until the next boot. A graver cause that is there already stays.
    pub(crate) fn write(&self, cause: Cause, test: &str, reason: &str) -> io::Result<()> {
        if cause == Cause::Reset && self.read().is_some_and(|there| there.cause == Cause::Stuck) {
            return Ok(());
        }
        let quarantine = Quarantine {
            boot: self.boot.clone().unwrap_or_default(),
            cause,
            test: test.to_owned(),
            reason: reason.to_owned(),
            since: unix_seconds(),
        };
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // Whole or not at all: a supervisor may die at any moment, just now above all.
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut file, &quarantine)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// Where quarantines lie: `$XDG_STATE_HOME/rocmforge`, else `~/.local/state/rocmforge`. Not where the locks lie: `/tmp`
/// may be cleaned while the machine runs, which does the card no good.
pub(crate) fn default_directory() -> PathBuf {
    let folder = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    state.unwrap_or_else(std::env::temp_dir).join("rocmforge")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "0000:03:00.0";

    fn boot(root: &Path, id: &str) {
        let folder = root.join("proc/sys/kernel/random");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("boot_id"), format!("{id}\n")).unwrap();
    }

    #[test]
    fn a_quarantine_holds_for_its_card_until_the_next_boot() {
        let tree = tempfile::tempdir().unwrap();
        let directory = tree.path().join("state/rocmforge");
        boot(tree.path(), "one");
        let file = QuarantineFile::new(&directory, CARD, tree.path());
        assert_eq!(file.read(), None);
        file.write(Cause::Stuck, "kernels::softmax", "process 7 cannot be killed")
            .unwrap();
        let held = QuarantineFile::new(&directory, CARD, tree.path()).read().unwrap();
        assert_eq!((held.cause, held.boot.as_str()), (Cause::Stuck, "one"));
        assert_eq!(held.to_string(), "process 7 cannot be killed (during kernels::softmax)");
        assert!(held.since > 1_600_000_000);
        assert_eq!(
            QuarantineFile::new(&directory, "0000:04:00.0", tree.path()).read(),
            None
        );

        boot(tree.path(), "two");
        assert_eq!(QuarantineFile::new(&directory, CARD, tree.path()).read(), None);
        assert!(!file.path().exists(), "lifted for good");
    }

    #[test]
    fn what_cannot_be_understood_is_a_quarantine() {
        let tree = tempfile::tempdir().unwrap();
        boot(tree.path(), "one");
        let file = QuarantineFile::new(tree.path(), CARD, tree.path());
        for content in ["", "{", "[]", r#"{"boot":"two"}"#] {
            fs::write(file.path(), content).unwrap();
            let held = file.read().expect(content);
            assert!(held.reason.contains("cannot be understood"), "{held}");
        }
        fs::remove_file(file.path()).unwrap();
        fs::create_dir(file.path()).unwrap();
        assert!(file.read().unwrap().reason.contains("cannot be read"));
    }

    #[test]
    fn without_a_boot_id_a_quarantine_is_not_lifted() {
        let tree = tempfile::tempdir().unwrap();
        boot(tree.path(), "one");
        QuarantineFile::new(tree.path(), CARD, tree.path())
            .write(Cause::Reset, "a::b", "reset")
            .unwrap();
        let blind = QuarantineFile::new(tree.path(), CARD, Path::new("/no/such/root"));
        assert_eq!(blind.read().map(|held| held.cause), Some(Cause::Reset));
    }

    #[test]
    fn a_reset_does_not_hide_a_stuck_process_but_the_reverse_is_said() {
        let tree = tempfile::tempdir().unwrap();
        boot(tree.path(), "one");
        let file = QuarantineFile::new(tree.path(), CARD, tree.path());
        file.write(Cause::Reset, "a::b", "first").unwrap();
        file.write(Cause::Stuck, "a::b", "second").unwrap();
        file.write(Cause::Reset, "a::b", "third").unwrap();
        assert_eq!(file.read().map(|held| held.reason), Some("second".to_owned()));
    }
}
