//! Shared ledger: limits the device memory that all processes of one user hold on one card.
//!
//! The driver's `used` shows what other processes hold, but not what they are about to take. So each process *claims* in a
//! small shared file the most that it may hold, before it takes it, and says how much of that the driver already holds.
//! What others have claimed beyond what the driver's figures contain is taken off our budget:
//!
//! ```text
//! beyond = sum over other processes of claim - committed, as far as the figures we use contain it
//! ```
//!
//! A claim is checked and made in one step under the file's lock. It is taken a [`CLAIM_STEP`] at a time: what fits the claim
//! needs no file at all.
//!
//! The order makes it safe without a lock around the driver's calls. Bytes are claimed before the driver is asked for them;
//! they are published as committed after it has given them; and once less is held than was published, the claim falls
//! with it, because the figures of others fall too. Figures are frozen for a while, so each reader remembers the records as
//! they were *before* it read the figures; all that left `committed` since then (`returned`) may be missing in them.

mod error;
mod file;
mod page;
mod process;

use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{Bytes, DeviceKey};
pub use error::PeersError;
use file::{LedgerFile, Locked};
use page::{Identity, Slot};

/// What a process claims beyond its need, so that small requests do not touch the file.
const CLAIM_STEP: u64 = 32 << 20;
/// Longest wait for the file's lock. A running holder releases it within microseconds; a longer wait means a stopped process.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the card's `used` figure contains what cooperating processes hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerFigures {
    /// It does, as on a real card: only what they have claimed beyond it is taken off.
    InUsed,
    /// It does not, as where each process simulates a card of its own: all they have claimed is taken off.
    Missing,
}

/// Another process on the card, as the ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its process number.
    pub pid: u32,
    /// The most that it may hold without asking again.
    pub claimed: Bytes,
    /// Of these, what the driver holds for it.
    pub committed: Bytes,
    /// How long ago it wrote its record.
    pub age: Duration,
    /// Whether its number means something here: in another container it is counted, but cannot be looked up.
    pub local: bool,
}

/// This process's part in a card's shared ledger. Dropping it gives its claim up; dying does too.
pub struct PeerLedger {
    file: LedgerFile,
    me: Identity,
    figures: PeerFigures,
    /// Whether the figures last read can contain what others hold.
    counted: bool,
    /// Our slot, once we have claimed something.
    slot: Option<usize>,
    /// What we may hold. Falls with `committed` between two writings of the record.
    claim: u64,
    /// What is sure to be in the figures of whoever has read them since: never more than we hold.
    committed: u64,
    /// All that ever left `committed`.
    returned: u64,
    /// The claim that the file has.
    published: u64,
    /// Records of the others as they were before the figures were last read.
    seen: Vec<(usize, Slot)>,
    /// What others have committed between the last two looks.
    since: u64,
    /// What others may hold beyond the figures last read.
    beyond: u64,
}

/// What came of asking for more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is ours.
    Granted,
    /// Others have claimed what is missing.
    Short,
}

impl PeerLedger {
    /// Joins the ledger of `card` in `directory`, which is made if it is not there.
    ///
    /// ```
    /// use rocmforge_memory::{Bytes, Card, Class, DeviceKey, FixedReadings, PeerFigures, PeerLedger, Policy, Reading};
    ///
    /// # let scratch = tempfile::tempdir().unwrap();
    /// # let directory = &scratch.path().join("rocmforge");
    /// // Two cards with one ledger stand for two processes.
    /// let open = || {
    ///     let reading = Reading { total: Some(Bytes::gib(20)), used: Some(Bytes::gib(2)), ..Reading::default() };
    ///     let key = DeviceKey::new("0000:03:00.0");
    ///     let peers = PeerLedger::join(directory, &key, PeerFigures::Missing).unwrap();
    ///     Card::open_shared(key, Policy::desktop(), Box::new(FixedReadings(reading)), peers).unwrap()
    /// };
    /// let (one, two) = (open(), open());
    /// let weights = one.try_reserve(Bytes::gib(12), Class::Required, "weights")?;
    /// let refusal = two.try_reserve(Bytes::gib(12), Class::Required, "weights").unwrap_err();
    /// assert!(refusal.peers >= Bytes::gib(12));
    /// drop(weights);
    /// two.try_reserve(Bytes::gib(12), Class::Required, "weights")?;
    /// # Ok::<(), rocmforge_memory::OutOfBudget>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`PeersError`] if the directory is not this user's alone, or `/proc` is not there.
    pub fn join(directory: &Path, card: &DeviceKey, figures: PeerFigures) -> Result<Self, PeersError> {
        let file = LedgerFile::new(directory, card.as_str())?;
        // Refused now rather than at the first request.
        file.peek()?;
        Ok(Self {
            file,
            me: process::me()?,
            figures,
            counted: false,
            slot: None,
            claim: 0,
            committed: 0,
            returned: 0,
            published: 0,
            seen: Vec::new(),
            since: 0,
            beyond: 0,
        })
    }

    /// The ledger's file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Remembers the records of the others. To be called right before figures are read; `sure` leaves out the dead.
    ///
    /// A file that cannot be read shows nothing to rely on: what others hold then counts in full.
    pub(crate) fn look(&mut self, sure: bool) {
        let Ok(page) = self.file.peek() else {
            self.seen.clear();
            self.since = u64::MAX;
            return;
        };
        let found: Vec<(usize, Slot)> = page.iter().flat_map(page::Page::slots).flatten().collect();
        if self.claim > 0 && !found.iter().any(|(_, slot)| slot.owner == self.me) {
            self.enter_again();
        }
        let other = |slot: &Slot| slot.owner != self.me && !(sure && process::is_dead(&slot.owner, &self.me));
        let seen: Vec<(usize, Slot)> = found.into_iter().filter(|(_, slot)| other(slot)).collect();
        // All that a process ever committed is what it has and what it gave back.
        let ever = |slot: &Slot| slot.committed.saturating_add(slot.returned);
        let before = |index: usize, slot: &Slot| self.seen_before(index, slot).map_or(0, ever);
        let since = seen
            .iter()
            .map(|(index, slot)| ever(slot).saturating_sub(before(*index, slot)));
        self.since = since.fold(0, u64::saturating_add);
        self.seen = seen;
    }

    /// The file was removed or reset: what we have must be seen again.
    fn enter_again(&mut self) {
        // If somebody has it locked, the next look will do.
        if self.check_fork().is_ok()
            && let Ok(mut locked) = self.file.lock(Duration::ZERO)
        {
            let _ = self.write_record(&mut locked, self.committed, self.claim);
        }
    }

    /// Takes note of whether the figures that were read after [`look`](Self::look) contain what others hold.
    pub(crate) fn figures_read(&mut self, used_known: bool) {
        self.counted = used_known && self.figures == PeerFigures::InUsed;
        self.beyond = self.beyond_figures(&self.seen);
    }

    /// What others may hold beyond the figures last read.
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// What others had committed right before the figures were read: their part of `used`.
    pub(crate) fn contained(&self) -> u64 {
        let committed = self.seen.iter().map(|(_, slot)| slot.committed);
        match self.figures {
            PeerFigures::InUsed => committed.fold(0, u64::saturating_add),
            PeerFigures::Missing => 0,
        }
    }

    /// What others have committed since the look before: that much `used` may have risen by them.
    pub(crate) fn committed_since(&self) -> u64 {
        match self.figures {
            PeerFigures::InUsed => self.since,
            PeerFigures::Missing => 0,
        }
    }

    /// Whether nobody else was on the card when the figures were read.
    pub(crate) fn is_alone(&self) -> bool {
        self.seen.is_empty()
    }

    /// Whether we may hold `bytes` in all without asking.
    pub(crate) fn covers(&self, bytes: u64) -> bool {
        bytes <= self.claim
    }

    /// Asks to hold `bytes` more than the `held` we have, of which the driver holds `live`. `most` is the most we may hold
    /// if others hold its argument beyond the figures.
    pub(crate) fn claim(
        &mut self,
        live: u64,
        held: u64,
        bytes: u64,
        mut most: impl FnMut(u64) -> u64,
    ) -> Result<Claim, PeersError> {
        self.check_fork()?;
        let mut locked = self.file.lock(PATIENCE)?;
        let mut slots = locked.slots(self.slot)?;
        let wanted = held.saturating_add(bytes);
        self.beyond = self.beyond_figures(&slots);
        if wanted > most(self.beyond) || slots.len() == page::SLOTS {
            self.reap(&mut locked, &mut slots)?;
            self.beyond = self.beyond_figures(&slots);
        }
        let room = most(self.beyond);
        if wanted > room {
            return Ok(Claim::Short);
        }
        let claim = wanted.saturating_add(CLAIM_STEP).min(room);
        self.write_record(&mut locked, live, claim)?;
        Ok(Claim::Granted)
    }

    /// Takes note that we now hold `held` bytes, of which the driver holds `live`, and tells the others if it matters.
    pub(crate) fn publish(&mut self, live: u64, held: u64) {
        let fallen = self.committed.saturating_sub(live);
        if fallen > 0 {
            // Others' figures fall by as much, so we may not take it again without asking.
            self.committed = live;
            self.claim = self.claim.saturating_sub(fallen);
            self.returned = self.returned.saturating_add(fallen);
        }
        let spare = self.published.saturating_sub(held);
        let late = live.saturating_sub(self.committed);
        if spare <= 2 * CLAIM_STEP && late < CLAIM_STEP {
            return;
        }
        // Others see too much of us until then, never too little: no reason to wait, or to fail.
        if self.check_fork().is_ok()
            && let Ok(mut locked) = self.file.lock(Duration::ZERO)
        {
            let claim = self.claim.min(held.saturating_add(CLAIM_STEP)).max(held);
            let _ = self.write_record(&mut locked, live, claim);
        }
    }

    /// Everybody else on the card, the dead left out.
    ///
    /// # Errors
    ///
    /// [`PeersError`] if the file cannot be read.
    pub fn peers(&self) -> Result<Vec<Peer>, PeersError> {
        let now = now();
        let Some(page) = self.file.peek()? else {
            return Ok(Vec::new());
        };
        page.slots()
            .map(|slot| slot.map_err(|_| PeersError::Damaged(self.path().to_owned())))
            .filter(|slot| {
                slot.as_ref().map_or(true, |(_, slot)| {
                    slot.owner != self.me && !process::is_dead(&slot.owner, &self.me)
                })
            })
            .map(|slot| {
                let (_, slot) = slot?;
                Ok(Peer {
                    pid: slot.owner.pid,
                    claimed: Bytes(slot.claim),
                    committed: Bytes(slot.committed),
                    age: Duration::from_secs(now.saturating_sub(slot.heartbeat)),
                    local: slot.owner.namespace == self.me.namespace,
                })
            })
            .collect()
    }

    /// The record of the same process at the last look.
    fn seen_before(&self, index: usize, slot: &Slot) -> Option<&Slot> {
        let same = |(at, then): &&(usize, Slot)| *at == index && then.owner == slot.owner;
        self.seen.iter().find(same).map(|(_, then)| then)
    }

    /// What others may hold beyond the figures last read, if they are now as in `slots`.
    fn beyond_figures(&self, slots: &[(usize, Slot)]) -> u64 {
        let contained = |index: usize, slot: &Slot| {
            let since = |then: &Slot| slot.returned.checked_sub(then.returned);
            match self.seen_before(index, slot) {
                Some(then) if self.counted => then.committed.saturating_sub(since(then).unwrap_or(u64::MAX)),
                _ => 0,
            }
        };
        let others = slots.iter().filter(|(_, slot)| slot.owner != self.me);
        let beyond = others.map(|(index, slot)| slot.claim.saturating_sub(contained(*index, slot)));
        beyond.fold(0, u64::saturating_add)
    }

    /// Takes out whoever has ended.
    fn reap(&self, locked: &mut Locked, slots: &mut Vec<(usize, Slot)>) -> Result<(), PeersError> {
        let dead = |slot: &Slot| slot.owner != self.me && process::is_dead(&slot.owner, &self.me);
        for (index, _) in slots.extract_if(.., |(_, slot)| dead(slot)) {
            locked.write(index, None)?;
        }
        Ok(())
    }

    /// Writes our record, in the slot we have or in a free one.
    fn write_record(&mut self, locked: &mut Locked, live: u64, claim: u64) -> Result<(), PeersError> {
        let mine = |index: &usize| match locked.page.slot(*index) {
            Ok(slot) => slot.is_some_and(|slot| slot.owner == self.me),
            // What is left of ours: whose else would be in our place.
            Err(_) => true,
        };
        let index = self.slot.filter(mine).or_else(|| locked.page.vacant());
        let index = index.ok_or_else(|| PeersError::Full(self.path().to_owned()))?;
        let slot = Slot {
            owner: self.me,
            claim,
            committed: live,
            returned: self.returned,
            heartbeat: now(),
        };
        locked.write(index, Some(slot))?;
        (self.slot, self.published) = (Some(index), claim);
        (self.claim, self.committed) = (claim, live);
        Ok(())
    }

    /// A fork has our memory and not our identity, and the driver does not serve it either.
    fn check_fork(&self) -> Result<(), PeersError> {
        if std::process::id() == self.me.pid {
            Ok(())
        } else {
            Err(PeersError::Forked(self.me.pid))
        }
    }
}

impl Drop for PeerLedger {
    fn drop(&mut self) {
        // A process that exits without this is detected as ended; a fork's claim is its parent's.
        if let (Some(index), Ok(())) = (self.slot, self.check_fork())
            && let Ok(mut locked) = self.file.lock(PATIENCE)
            && locked
                .page
                .slot(index)
                .is_ok_and(|slot| slot.is_some_and(|slot| slot.owner == self.me))
        {
            let _ = locked.write(index, None);
        }
    }
}

impl fmt::Debug for PeerLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerLedger")
            .field("path", &self.path())
            .field("claim", &self.claim)
            .field("committed", &self.committed)
            .finish_non_exhaustive()
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(all(test, not(miri)))] // files, locks and processes are not Miri's
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    /// A directory for this test alone.
    pub(super) fn scratch() -> tempfile::TempDir {
        let only_us = Permissions::from_mode(0o700);
        tempfile::Builder::new().permissions(only_us).tempdir().unwrap()
    }

    fn join(directory: &Path) -> PeerLedger {
        PeerLedger::join(directory, &DeviceKey::new("card"), PeerFigures::Missing).unwrap()
    }

    /// Asks for `bytes` more with `held` in hand, all of it committed; there is room for all.
    fn ask(ledger: &mut PeerLedger, held: u64, bytes: u64) -> Result<Claim, PeersError> {
        ledger.claim(held, held, bytes, |beyond| (100 * CLAIM_STEP).saturating_sub(beyond))
    }

    #[test]
    fn a_fork_takes_nothing_and_gives_nothing_back() {
        let root = scratch();
        let mut ledger = join(root.path());
        assert_eq!(ask(&mut ledger, 0, CLAIM_STEP), Ok(Claim::Granted));
        let before = std::fs::read(ledger.path()).unwrap();
        let parent = ledger.me.pid;
        // As if this were another process with a copy of our memory.
        ledger.me.pid += 1;
        assert_eq!(
            ask(&mut ledger, CLAIM_STEP, 10 * CLAIM_STEP),
            Err(PeersError::Forked(parent + 1))
        );
        ledger.publish(10 * CLAIM_STEP, 10 * CLAIM_STEP);
        let path = ledger.path().to_owned();
        drop(ledger);
        assert_eq!(std::fs::read(path).unwrap(), before);
    }

    #[test]
    fn the_record_is_written_when_it_matters_and_not_before() {
        let root = scratch();
        let mut ledger = join(root.path());
        ask(&mut ledger, 0, 10 * CLAIM_STEP).unwrap();
        let observer = join(root.path());
        let seen = || {
            let [peer] = observer.peers().unwrap()[..] else {
                panic!("one process")
            };
            (peer.claimed.0 / CLAIM_STEP, peer.committed.0 / CLAIM_STEP)
        };
        assert_eq!(seen(), (11, 0), "a step beyond the need");
        ledger.publish(CLAIM_STEP - 1, 10 * CLAIM_STEP);
        assert_eq!(seen(), (11, 0));
        ledger.publish(CLAIM_STEP, 10 * CLAIM_STEP);
        assert_eq!(seen(), (11, 1), "a step has been committed");
        ledger.publish(10 * CLAIM_STEP, 10 * CLAIM_STEP);
        assert_eq!(seen(), (11, 10));
        // What is given back is not ours any more, whatever the file says.
        ledger.publish(9 * CLAIM_STEP, 9 * CLAIM_STEP);
        assert_eq!(seen(), (11, 10));
        assert!(ledger.covers(10 * CLAIM_STEP) && !ledger.covers(10 * CLAIM_STEP + 1));
        ledger.publish(9 * CLAIM_STEP - 1, 9 * CLAIM_STEP - 1);
        assert_eq!(seen(), (9, 8), "two steps and more are not needed");
        assert!(ledger.covers(10 * CLAIM_STEP - 1) && !ledger.covers(10 * CLAIM_STEP));
        ledger.publish(0, 0);
        assert_eq!(seen(), (1, 0), "a step for the next small ones");
    }

    #[test]
    fn claims_of_ended_processes_make_room_in_a_full_file() {
        let root = scratch();
        let mut ledger = join(root.path());
        let mut locked = ledger.file.lock(Duration::ZERO).unwrap();
        let dead = Slot {
            owner: Identity {
                start: ledger.me.start + 1,
                ..ledger.me
            },
            claim: 0,
            committed: 0,
            returned: 0,
            heartbeat: 0,
        };
        for index in 0..page::SLOTS {
            locked.write(index, Some(dead)).unwrap();
        }
        drop(locked);
        assert_eq!(ask(&mut ledger, 0, CLAIM_STEP), Ok(Claim::Granted));
        let page = ledger.file.peek().unwrap().unwrap();
        assert_eq!(page.slots().count(), 1);
    }

    #[test]
    fn a_lock_that_others_hold_delays_no_destructor() {
        let root = scratch();
        let mut ledger = join(root.path());
        ask(&mut ledger, 0, 10 * CLAIM_STEP).unwrap();
        let locked = ledger.file.lock(Duration::ZERO).unwrap();
        let start = std::time::Instant::now();
        ledger.publish(0, 0);
        assert!(start.elapsed() < PATIENCE);
        drop(locked);
        assert_eq!(join(root.path()).peers().unwrap()[0].claimed, Bytes(11 * CLAIM_STEP));
        ledger.publish(0, 0);
        assert_eq!(
            join(root.path()).peers().unwrap()[0].claimed,
            Bytes(CLAIM_STEP),
            "the next time"
        );
    }

    #[test]
    fn what_left_the_figures_of_another_process_is_not_believed_to_be_in_ours() {
        let root = scratch();
        let (mut one, mut two) = (join(root.path()), join(root.path()));
        two.figures = PeerFigures::InUsed;
        ask(&mut one, 0, 10 * CLAIM_STEP).unwrap();
        one.publish(10 * CLAIM_STEP, 10 * CLAIM_STEP);
        two.look(true);
        two.figures_read(true);
        assert_eq!(
            (two.beyond(), two.contained(), two.committed_since()),
            (CLAIM_STEP, 10 * CLAIM_STEP, 10 * CLAIM_STEP)
        );
        assert!(!two.is_alone());
        // After our figures were read it gave back 4 and took them again: our figures may have been read in between.
        one.publish(6 * CLAIM_STEP, 6 * CLAIM_STEP);
        ask(&mut one, 6 * CLAIM_STEP, 4 * CLAIM_STEP).unwrap();
        let mut seen = 0;
        let asked = two.claim(0, 0, 1, |beyond| {
            seen = beyond;
            100 * CLAIM_STEP
        });
        assert_eq!(asked, Ok(Claim::Granted));
        assert_eq!(seen, 5 * CLAIM_STEP);
        // The next figures are read after all of that.
        two.look(false);
        assert_eq!(two.committed_since(), 0);
        one.publish(10 * CLAIM_STEP, 10 * CLAIM_STEP);
        two.look(false);
        two.figures_read(true);
        assert_eq!((two.beyond(), two.committed_since()), (CLAIM_STEP, 4 * CLAIM_STEP));
        two.figures_read(false);
        assert_eq!(two.beyond(), 11 * CLAIM_STEP, "no figure contains anything");
        two.figures = PeerFigures::Missing;
        two.figures_read(true);
        assert_eq!(
            (two.beyond(), two.contained(), two.committed_since()),
            (11 * CLAIM_STEP, 0, 0)
        );
    }

    #[test]
    fn a_slot_that_another_process_has_taken_over_is_not_the_one_seen_before() {
        let root = scratch();
        let (mut one, mut two, mut three) = (join(root.path()), join(root.path()), join(root.path()));
        two.figures = PeerFigures::InUsed;
        ask(&mut one, 0, 10 * CLAIM_STEP).unwrap();
        one.publish(10 * CLAIM_STEP, 10 * CLAIM_STEP);
        two.look(true);
        two.figures_read(true);
        assert_eq!((two.beyond(), two.committed_since()), (CLAIM_STEP, 10 * CLAIM_STEP));
        // The first one ends, and its slot is the next one's, of whom those figures have nothing.
        drop(one);
        ask(&mut three, 0, 10 * CLAIM_STEP).unwrap();
        assert_eq!(three.slot, Some(0));
        let mut seen = 0;
        let asked = two.claim(0, 0, 1, |beyond| {
            seen = beyond;
            100 * CLAIM_STEP
        });
        assert_eq!((asked, seen), (Ok(Claim::Granted), 11 * CLAIM_STEP));
        three.publish(10 * CLAIM_STEP, 10 * CLAIM_STEP);
        two.look(true);
        assert_eq!(two.committed_since(), 10 * CLAIM_STEP, "all of it is new");
    }

    #[test]
    fn a_process_does_not_list_itself_nor_the_dead() {
        let root = scratch();
        let (mut one, mut two) = (join(root.path()), join(root.path()));
        ask(&mut one, 0, CLAIM_STEP).unwrap();
        assert_eq!(one.peers().unwrap(), []);
        ask(&mut two, 0, 2 * CLAIM_STEP).unwrap();
        let dead = Slot {
            owner: Identity {
                start: one.me.start + 1,
                ..one.me
            },
            claim: 7,
            committed: 7,
            returned: 0,
            heartbeat: 0,
        };
        one.file.lock(Duration::ZERO).unwrap().write(2, Some(dead)).unwrap();
        let claimed = |ledger: &PeerLedger| ledger.peers().unwrap().iter().map(|peer| peer.claimed.0).sum::<u64>();
        assert_eq!((claimed(&one), claimed(&two)), (3 * CLAIM_STEP, 2 * CLAIM_STEP));
        let text = format!("{one:?}");
        assert!(text.contains("card.ledger"), "{text}");
    }

    #[test]
    fn after_the_file_was_removed_each_process_enters_itself_again() {
        let root = scratch();
        let (mut one, mut two) = (join(root.path()), join(root.path()));
        ask(&mut one, 0, CLAIM_STEP).unwrap();
        ask(&mut two, 0, 2 * CLAIM_STEP).unwrap();
        std::fs::remove_file(one.path()).unwrap();
        two.look(true);
        assert_eq!(one.peers().unwrap().len(), 1);
        // Others are there already.
        one.look(true);
        assert_eq!(two.peers().unwrap()[0].claimed, Bytes(2 * CLAIM_STEP));
        assert_eq!(one.peers().unwrap()[0].claimed, Bytes(3 * CLAIM_STEP));
    }

    #[test]
    fn a_file_that_cannot_be_read_shows_nothing_to_rely_on() {
        let root = scratch();
        let (mut one, mut two) = (join(root.path()), join(root.path()));
        two.figures = PeerFigures::InUsed;
        ask(&mut one, 0, CLAIM_STEP).unwrap();
        two.look(true);
        assert!(!two.is_alone());
        std::fs::write(one.path(), "damaged").unwrap();
        two.look(true);
        assert_eq!((two.contained(), two.committed_since()), (0, u64::MAX));
    }

    #[test]
    fn a_record_tells_when_it_was_written() {
        let root = scratch();
        let mut ledger = join(root.path());
        ask(&mut ledger, 0, 1).unwrap();
        let page = ledger.file.peek().unwrap().unwrap();
        let written = page.slot(0).unwrap().unwrap().heartbeat;
        // Between this line's writing and the end of the clock's use.
        assert!((1_700_000_000..1 << 40).contains(&written), "{written}");
        let mut earlier = page.clone();
        let slot = page.slot(0).unwrap().unwrap();
        earlier.set(
            0,
            Some(Slot {
                heartbeat: written - 100,
                ..slot
            }),
        );
        std::fs::write(ledger.path(), earlier.bytes()).unwrap();
        let age = join(root.path()).peers().unwrap()[0].age.as_secs();
        assert!((100..200).contains(&age), "{age}");
    }
}
