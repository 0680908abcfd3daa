//! The ledger's file: one page of 64 records. The first says whose page it is, each other one is a process's or empty.
//!
//! A record is eight little-endian words, the last a checksum of the others. It is written in one piece, and a process that
//! is killed in between leaves the old one; what does not check out was changed by something else and is refused.

/// Bytes of a record.
pub(super) const RECORD: usize = 64;
/// Bytes of the file: one page, so that the kernel copies it in one piece.
pub(super) const PAGE: usize = 4096;
/// Processes that can share a card.
pub(super) const SLOTS: usize = PAGE / RECORD - 1;

/// `rocmledg`, and the layout's version in the second word.
const MAGIC: u64 = u64::from_le_bytes(*b"rocmledg");
const VERSION: u64 = 1;

/// Which process a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    /// Its number in its process name space.
    pub(super) pid: u32,
    /// Tells several cards of one process apart.
    pub(super) incarnation: u32,
    /// When it was started, in the kernel's ticks: a number that is used again comes with another time.
    pub(super) start: u64,
    /// Where its number and time mean something: a hash of its process and time name spaces.
    pub(super) namespace: u64,
}

/// What one process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) owner: Identity,
    /// The most that it may hold without asking again.
    pub(super) claim: u64,
    /// Of these, what the driver is sure to hold.
    pub(super) committed: u64,
    /// All that ever left `committed`; it only rises.
    pub(super) returned: u64,
    /// When it was written, in seconds since the Unix epoch.
    pub(super) heartbeat: u64,
}

/// The record is none that we wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// The whole file.
#[derive(Clone)]
pub(super) struct Page(Box<[u8; PAGE]>);

impl Page {
    /// A page without processes, good until the machine is started again.
    pub(super) fn empty(boot: u64) -> Self {
        let mut page = Self(Box::new([0; PAGE]));
        page.0[..RECORD].copy_from_slice(&encode([MAGIC, VERSION, boot, 0, 0, 0, 0]));
        page
    }

    /// The page that a file holds, if it is one of ours: with the boot in which it was made.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, u64), Damaged> {
        let bytes: Box<[u8; PAGE]> = Box::new(bytes.try_into().map_err(|_| Damaged)?);
        match words(&bytes[..RECORD])? {
            Some([MAGIC, VERSION, boot, ..]) => Ok((Self(bytes), boot)),
            _ => Err(Damaged),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..]
    }

    /// The record of slot `index`.
    pub(super) fn record(&self, index: usize) -> &[u8] {
        &self.0[offset(index)..offset(index) + RECORD]
    }

    /// The process in slot `index`, if any.
    pub(super) fn slot(&self, index: usize) -> Result<Option<Slot>, Damaged> {
        let Some([process, start, namespace, claim, committed, returned, heartbeat]) = words(self.record(index))?
        else {
            return Ok(None);
        };
        let slot = Slot {
            owner: Identity {
                pid: process as u32,
                incarnation: (process >> 32) as u32,
                start,
                namespace,
            },
            claim,
            committed,
            returned,
            heartbeat,
        };
        // No process commits what it has not claimed, and none has the number 0.
        if slot.owner.pid == 0 || committed > claim {
            return Err(Damaged);
        }
        Ok(Some(slot))
    }

    /// Puts a process into slot `index`, or empties it.
    pub(super) fn set(&mut self, index: usize, slot: Option<Slot>) {
        let record = slot.map_or([0; RECORD], |slot| {
            let owner = slot.owner;
            encode([
                u64::from(owner.pid) | u64::from(owner.incarnation) << 32,
                owner.start,
                owner.namespace,
                slot.claim,
                slot.committed,
                slot.returned,
                slot.heartbeat,
            ])
        });
        self.0[offset(index)..offset(index) + RECORD].copy_from_slice(&record);
    }

    /// Every process, with its slot.
    pub(super) fn slots(&self) -> impl Iterator<Item = Result<(usize, Slot), Damaged>> {
        (0..SLOTS).filter_map(|index| match self.slot(index) {
            Ok(slot) => slot.map(|slot| Ok((index, slot))),
            Err(damaged) => Some(Err(damaged)),
        })
    }

    /// A slot that nobody is in.
    pub(super) fn vacant(&self) -> Option<usize> {
        (0..SLOTS).find(|&index| self.slot(index) == Ok(None))
    }
}

/// Where slot `index` begins in the file.
pub(super) fn offset(index: usize) -> usize {
    (index + 1) * RECORD
}

fn encode(words: [u64; 7]) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    for (bytes, word) in record.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let sum = checksum(&record[..RECORD - 8]);
    record[RECORD - 8..].copy_from_slice(&sum.to_le_bytes());
    record
}

/// The words of a record; none if it is empty.
fn words(record: &[u8]) -> Result<Option<[u64; 7]>, Damaged> {
    let mut words = [0; 8];
    for (word, bytes) in words.iter_mut().zip(record.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().map_err(|_| Damaged)?);
    }
    if words == [0; 8] {
        return Ok(None);
    }
    let [rest @ .., sum] = words;
    if sum == checksum(&record[..RECORD - 8]) {
        Ok(Some(rest))
    } else {
        Err(Damaged)
    }
}

/// FNV-1a: every single changed byte changes it, and it is no secret.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(all(test, not(miri)))] // proptest keeps files
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slot() -> Slot {
        Slot {
            owner: Identity {
                pid: 4711,
                incarnation: 3,
                start: 123_456,
                namespace: 0xdead_beef,
            },
            claim: 4 << 30,
            committed: 3 << 30,
            returned: 17,
            heartbeat: 1_700_000_000,
        }
    }

    #[test]
    fn a_page_keeps_what_is_put_into_it() {
        let mut page = Page::empty(7);
        assert_eq!(
            (page.bytes().len(), page.vacant(), page.slots().count()),
            (PAGE, Some(0), 0)
        );
        page.set(0, Some(slot()));
        page.set(SLOTS - 1, Some(slot()));
        let (read, boot) = Page::decode(page.bytes()).unwrap();
        assert_eq!((boot, read.vacant()), (7, Some(1)));
        let found: Vec<_> = read.slots().collect();
        assert_eq!(found, [Ok((0, slot())), Ok((SLOTS - 1, slot()))]);
        page.set(0, None);
        assert_eq!(page.slot(0), Ok(None));
        (0..SLOTS).for_each(|index| page.set(index, Some(slot())));
        assert_eq!(page.vacant(), None);
    }

    #[test]
    fn a_page_of_another_length_kind_or_version_is_refused() {
        let page = Page::empty(7);
        for wrong in [&[][..], &page.bytes()[..PAGE - 1], &[0; PAGE], &[0xff; PAGE]] {
            assert!(Page::decode(wrong).is_err());
        }
        for words in [[MAGIC, VERSION + 1, 7, 0, 0, 0, 0], [MAGIC + 1, VERSION, 7, 0, 0, 0, 0]] {
            let mut other = page.clone();
            other.0[..RECORD].copy_from_slice(&encode(words));
            assert!(Page::decode(other.bytes()).is_err());
        }
    }

    #[test]
    fn a_record_that_no_process_writes_is_refused() {
        let mut page = Page::empty(7);
        let mut impossible = slot();
        impossible.committed = impossible.claim + 1;
        page.set(0, Some(impossible));
        assert_eq!(page.slot(0), Err(Damaged));
        let mut nobody = slot();
        nobody.owner.pid = 0;
        page.set(0, Some(nobody));
        assert_eq!(page.slot(0), Err(Damaged));
        let mut full = slot();
        full.committed = full.claim;
        page.set(0, Some(full));
        assert_eq!(page.slot(0), Ok(Some(full)));
    }

    proptest! {
        /// A changed record is never read as another process's, nor as nobody's.
        #[test]
        fn no_change_of_one_byte_goes_unnoticed(at in 0..RECORD, change in 1..=255u8) {
            let mut page = Page::empty(7);
            page.set(5, Some(slot()));
            page.0[offset(5) + at] ^= change;
            prop_assert_eq!(page.slot(5), Err(Damaged));
        }

        #[test]
        fn bytes_of_any_kind_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), PAGE)) {
            if let Ok((page, _)) = Page::decode(&bytes) {
                prop_assert!(page.slots().count() <= SLOTS);
            }
        }
    }
}
