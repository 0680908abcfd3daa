//! The ledger's file on disk: read at once, or changed under its lock.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::PeersError;
use super::page::{PAGE, Page, SLOTS, Slot, offset};
use super::process;
use rocmforge_machine::private::{self, PrivateError};

/// The longest pause between two attempts to lock: a holder needs microseconds.
const PAUSE: Duration = Duration::from_millis(1);

/// How often the kernel's list of locks is read before nobody is named.
const LOCK_LISTS: usize = 32;

pub(super) struct LedgerFile {
    path: PathBuf,
    /// The machine's present start.
    boot: u64,
}

/// The page, while nobody else can change it.
pub(super) struct Locked {
    file: LockedFile,
    path: PathBuf,
    pub(super) page: Page,
}

/// A file whose lock is given up when it is dropped.
///
/// Closing it alone does not do that at once: a child that another thread is starting has a copy of the descriptor from its fork to
/// its exec, and the lock would last as long as the copy.
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // What cannot be unlocked is unlocked by the closing.
        let _ = self.0.unlock();
    }
}

impl LedgerFile {
    /// The ledger called `name` in `directory`, which is made or checked.
    pub(super) fn new(directory: &Path, name: &str) -> Result<Self, PeersError> {
        private::directory(directory)?;
        let path = directory.join(format!("{}.ledger", file_name(name)));
        let boot = process::boot()?;
        Ok(Self { path, boot })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The page as it is now, without waiting for anybody; `None` where there is none.
    pub(super) fn peek(&self) -> Result<Option<Page>, PeersError> {
        let mut seen = self.peek_once();
        for _ in 0..2 {
            // A reader may see half of a record that is being written; the next time it is whole.
            match &seen {
                Ok(page) if page.iter().flat_map(Page::slots).all(|slot| slot.is_ok()) => break,
                _ => seen = self.peek_once(),
            }
        }
        seen
    }

    fn peek_once(&self) -> Result<Option<Page>, PeersError> {
        let file = match private::open_existing(&self.path) {
            Err(PrivateError::Io {
                kind: ErrorKind::NotFound,
                ..
            }) => return Ok(None),
            other => other?,
        };
        let (page, boot) = self.read(&file)?;
        Ok((boot == self.boot).then_some(page))
    }

    /// Locks the page, waiting up to `patience` for whoever has it. It is made if it is not there.
    pub(super) fn lock(&self, patience: Duration) -> Result<Locked, PeersError> {
        let start = Instant::now();
        loop {
            let file = match private::open_existing(&self.path) {
                Err(PrivateError::Io {
                    kind: ErrorKind::NotFound,
                    ..
                }) => {
                    private::create_whole(&self.path, Page::empty(self.boot).bytes())?;
                    continue;
                }
                other => other?,
            };
            self.wait(&file, start, patience)?;
            let file = LockedFile(file);
            // Somebody may have removed the file between the opening and the locking.
            if self.leads_to(&file.0)? {
                return self.locked(file);
            }
        }
    }

    fn wait(&self, file: &File, start: Instant, patience: Duration) -> Result<(), PeersError> {
        let mut pause = Duration::from_micros(10);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(self.io(&error)),
            }
            let waited = start.elapsed();
            if waited >= patience {
                return Err(PeersError::Busy {
                    path: self.path.clone(),
                    holder: holder(file),
                    waited,
                });
            }
            std::thread::sleep(pause);
            pause = PAUSE.min(pause * 2);
        }
    }

    /// Whether our path still names `file`.
    fn leads_to(&self, file: &File) -> Result<bool, PeersError> {
        let open = file.metadata().map_err(|error| self.io(&error))?;
        match fs::metadata(&self.path) {
            Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(self.io(&error)),
        }
    }

    fn locked(&self, file: LockedFile) -> Result<Locked, PeersError> {
        let (mut page, written) = self.read(&file.0)?;
        if written != self.boot {
            // Nobody in it has outlived the machine's last start.
            page = Page::empty(self.boot);
            file.0.write_all_at(page.bytes(), 0).map_err(|error| self.io(&error))?;
        }
        Ok(Locked {
            file,
            path: self.path.clone(),
            page,
        })
    }

    fn read(&self, file: &File) -> Result<(Page, u64), PeersError> {
        // One byte more than there should be, to notice that there is more.
        let mut bytes = [0; PAGE + 1];
        let length = file.read_at(&mut bytes, 0).map_err(|error| self.io(&error))?;
        Page::decode(&bytes[..length]).map_err(|_| PeersError::Damaged(self.path.clone()))
    }

    fn io(&self, error: &std::io::Error) -> PeersError {
        io(&self.path, error)
    }
}

impl Locked {
    /// Puts a process into slot `index`, or empties it, in one step that happens or does not.
    pub(super) fn write(&mut self, index: usize, slot: Option<Slot>) -> Result<(), PeersError> {
        self.page.set(index, slot);
        let record = self.page.record(index);
        let written = self.file.0.write_all_at(record, offset(index) as u64);
        written.map_err(|error| io(&self.path, &error))
    }

    /// Every process in the page.
    ///
    /// # Errors
    ///
    /// [`PeersError::Damaged`] if the holdings of one of them cannot be determined. The one in slot `ours` is not checked: it knows its own.
    pub(super) fn slots(&self, ours: Option<usize>) -> Result<Vec<(usize, Slot)>, PeersError> {
        let mut slots = Vec::new();
        for index in 0..SLOTS {
            match self.page.slot(index) {
                Ok(slot) => slots.extend(slot.map(|slot| (index, slot))),
                Err(_) if ours == Some(index) => {}
                Err(_) => return Err(PeersError::Damaged(self.path.clone())),
            }
        }
        Ok(slots)
    }
}

fn io(path: &Path, error: &std::io::Error) -> PeersError {
    PeersError::File(PrivateError::Io {
        path: path.to_owned(),
        kind: error.kind(),
    })
}

/// The card's name, with everything that a file name should not have made a line.
fn file_name(card: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '-');
    card.chars().map(|c| if plain(c) { c } else { '_' }).collect()
}

/// The process that has `file` locked, if the kernel says.
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    holder_in(|| fs::read_to_string("/proc/locks").ok(), inode)
}

/// The process that has locked the file numbered `inode`, from the kernel's list of locks.
///
/// The list is read in pieces, and each piece starts at a line's number: while other processes lock and unlock, a line in
/// the middle can be missed. So a list without the file is read again, [`LOCK_LISTS`] times in all.
fn holder_in(list: impl FnMut() -> Option<String>, inode: u64) -> Option<u32> {
    let mut lists = std::iter::repeat_with(list).take(LOCK_LISTS).map_while(|locks| locks);
    lists.find_map(|locks| locked_by(&locks, inode))
}

fn locked_by(locks: &str, inode: u64) -> Option<u32> {
    // `7: FLOCK  ADVISORY  WRITE 4711 08:02:9437 0 EOF`; those who wait for a lock have `->` in the second place.
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = fields[..] else {
            return None;
        };
        let (_, found) = file.rsplit_once(':')?;
        (found == inode.to_string()).then(|| pid.parse().ok())?
    })
}

#[cfg(all(test, not(miri)))] // files, locks and processes are not Miri's
mod tests {
    use super::super::tests::scratch;
    use super::*;

    #[test]
    fn a_card_of_any_name_has_a_file_in_the_directory() {
        assert_eq!(file_name("0000:03:00.0"), "0000:03:00.0");
        assert_eq!(file_name("../sim/ä b\0"), ".._sim___b_");
    }

    #[test]
    fn the_holder_of_a_lock_is_found_by_the_files_number() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 08:02:77 0 EOF\n2: FLOCK  ADVISORY  WRITE 12 00:1a:7 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 00:1a:77 0 EOF\n3: -> FLOCK  ADVISORY  WRITE 14 00:1a:77 0 EOF\n4: \n";
        assert_eq!(locked_by(locks, 77), Some(13));
        assert_eq!(locked_by(locks, 7), Some(12));
        assert_eq!(locked_by(locks, 8), None);
        assert_eq!(locked_by("3: FLOCK ADVISORY WRITE x 00:1a:77 0 EOF", 77), None);
    }

    #[test]
    fn a_list_of_locks_in_which_a_line_was_missed_is_read_again() {
        let mut lists = [
            "1: POSIX  ADVISORY  WRITE 11 08:02:77 0 EOF\n",
            "1: FLOCK  ADVISORY  WRITE 13 00:1a:77 0 EOF\n",
        ]
        .into_iter();
        assert_eq!(holder_in(|| lists.next().map(str::to_owned), 77), Some(13));
        let mut reads = 0;
        let empty = || {
            reads += 1;
            Some(String::new())
        };
        assert_eq!(holder_in(empty, 77), None, "and not for ever");
        assert_eq!(reads, LOCK_LISTS);
        assert_eq!(holder_in(|| None, 77), None, "no list at all");
    }

    #[test]
    fn a_lock_that_is_held_is_waited_for_and_its_holder_named() {
        let root = scratch();
        let ledger = LedgerFile::new(root.path(), "card").unwrap();
        assert!(ledger.peek().unwrap().is_none());
        let locked = ledger.lock(Duration::ZERO).unwrap();
        assert!(ledger.peek().unwrap().is_some(), "reading waits for nobody");
        let patience = Duration::from_millis(20);
        let Err(PeersError::Busy { holder, waited, .. }) = ledger.lock(patience) else {
            panic!("locked twice")
        };
        assert_eq!(holder, Some(std::process::id()));
        assert!(waited >= patience);
        drop(locked);
        ledger.lock(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_lock_that_is_given_up_is_free_although_a_copy_of_its_descriptor_is_open() {
        let root = scratch();
        let ledger = LedgerFile::new(root.path(), "card").unwrap();
        let locked = ledger.lock(Duration::ZERO).unwrap();
        // As a child has one from its fork to its exec.
        let copy = locked.file.0.try_clone().unwrap();
        drop(locked);
        ledger.lock(Duration::ZERO).unwrap();
        drop(copy);
    }

    #[test]
    fn a_file_that_is_removed_is_made_again() {
        let root = scratch();
        let ledger = LedgerFile::new(root.path(), "card").unwrap();
        let locked = ledger.lock(Duration::ZERO).unwrap();
        assert!(ledger.leads_to(&locked.file.0).unwrap());
        fs::remove_file(ledger.path()).unwrap();
        assert!(!ledger.leads_to(&locked.file.0).unwrap());
        let again = ledger.lock(Duration::ZERO).unwrap();
        assert!(!ledger.leads_to(&locked.file.0).unwrap());
        assert!(ledger.leads_to(&again.file.0).unwrap());
        // A path that cannot be followed is not one that is gone.
        fs::remove_file(ledger.path()).unwrap();
        std::os::unix::fs::symlink(ledger.path(), ledger.path()).unwrap();
        assert!(ledger.leads_to(&again.file.0).is_err());
    }

    #[test]
    fn a_page_of_an_earlier_start_of_the_machine_is_emptied() {
        let root = scratch();
        let ledger = LedgerFile::new(root.path(), "card").unwrap();
        let mut page = Page::empty(process::boot().unwrap() ^ 1);
        let slot = Slot {
            owner: process::me().unwrap(),
            claim: 1,
            committed: 0,
            returned: 0,
            heartbeat: 0,
        };
        page.set(3, Some(slot));
        private::create_whole(ledger.path(), page.bytes()).unwrap();
        assert!(ledger.peek().unwrap().is_none());
        let locked = ledger.lock(Duration::ZERO).unwrap();
        assert_eq!(locked.slots(None).unwrap(), []);
        drop(locked);
        assert!(ledger.peek().unwrap().is_some());
        assert_eq!(fs::metadata(ledger.path()).unwrap().len(), PAGE as u64);
    }

    #[test]
    fn a_file_of_another_length_or_content_is_refused() {
        let root = scratch();
        let ledger = LedgerFile::new(root.path(), "card").unwrap();
        drop(ledger.lock(Duration::ZERO).unwrap());
        let whole = fs::read(ledger.path()).unwrap();
        let damaged = PeersError::Damaged(ledger.path().to_owned());
        let mut longer = whole.clone();
        longer.push(0);
        let mut scratched = whole.clone();
        scratched[9] ^= 1;
        for content in [&[][..], &whole[..PAGE / 2], &longer, &scratched, &[0; PAGE]] {
            fs::write(ledger.path(), content).unwrap();
            assert_eq!(ledger.lock(Duration::ZERO).err(), Some(damaged.clone()));
            assert_eq!(ledger.peek().err(), Some(damaged.clone()));
        }
        fs::write(ledger.path(), whole).unwrap();
        ledger.lock(Duration::ZERO).unwrap();
    }
}
