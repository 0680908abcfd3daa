//! Padding: bytes between the fields of records, which nobody writes and copies to the host read all the same.
//!
//! The card does not know types. What it can tell is where the bytes that nobody has written lie: less than an alignment of them at a time, up
//! to where a field of that alignment begins or a record ends, beside such a field that is written, and in each record alike. Elements of an
//! array that were left out are no such gaps, and nor is a buffer that nobody has written.

use rocmforge_amdgcn::{ByteState, GlobalMemory};
use std::fmt;
use std::ops::Range;

/// The largest alignment of a field.
const MOST: usize = 16;
/// Gaps of one record at most.
const GAPS: usize = 8;
/// A range of so many bytes may be a single record.
const RECORD: usize = 128;

/// The gaps of the records that a range holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Padding {
    /// Bytes of a record.
    pub(super) record: usize,
    /// Bytes of it that nobody has written.
    pub(super) gaps: Vec<Range<usize>>,
}

impl fmt::Display for Padding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, gaps } = self;
        let bytes: usize = gaps.iter().map(ExactSizeIterator::len).sum();
        let first = gaps.first().map_or(0, |gap| gap.start);
        write!(
            f,
            "{bytes} B of each {record} B, from byte {first} on, are not written, as the padding of a struct is"
        )
    }
}

/// The gaps of a range of memory, if all that nobody has written there is padding.
pub(super) fn of(memory: &GlobalMemory, address: u64, size: usize) -> Option<Padding> {
    let written = |at: usize| memory.state_at(address + at as u64) == ByteState::Init;
    let first = gaps(&written, size, GAPS + 1);
    let of_record = |record: usize| {
        let gaps: Vec<_> = first.iter().filter(|gap| gap.end <= record).cloned().collect();
        let padding = gaps
            .iter()
            .all(|gap| is_padding(&written, address as usize, record, gap));
        (!gaps.is_empty() && padding).then_some(Padding { record, gaps })
    };
    // The same gap of the next record.
    let start = first.first()?.start;
    for record in first.iter().skip(1).map(|gap| gap.start - start) {
        if size.is_multiple_of(record) && (record..size).all(|at| written(at) == written(at - record)) {
            return of_record(record);
        }
    }
    let whole_words =
        |gap: &Range<usize>| (address as usize + gap.start).is_multiple_of(4) && gap.len().is_multiple_of(4);
    if size <= RECORD && first.len() <= GAPS && !first.iter().any(whole_words) {
        return of_record(size);
    }
    None
}

/// The first runs of bytes that nobody has written.
fn gaps(written: &impl Fn(usize) -> bool, size: usize, most: usize) -> Vec<Range<usize>> {
    let mut gaps = Vec::new();
    let mut at = 0;
    while at < size && gaps.len() < most {
        if written(at) {
            at += 1;
            continue;
        }
        let start = at;
        while at < size && !written(at) {
            at += 1;
        }
        gaps.push(start..at);
    }
    gaps
}

/// Whether a gap of a record is between fields, or behind the last one.
fn is_padding(written: &impl Fn(usize) -> bool, address: usize, record: usize, gap: &Range<usize>) -> bool {
    if gap.start == 0 || gap.len() >= MOST {
        return false;
    }
    // Records follow one another.
    let whole = |start: usize, bytes: usize| (start..start + bytes).all(|at| written(at % record));
    let end = address + gap.end;
    [2, 4, 8, 16].into_iter().any(|alignment| {
        let fits = alignment > gap.len() && end.is_multiple_of(alignment) && alignment <= record;
        let before = gap.end.checked_sub(2 * alignment);
        fits && (whole(gap.end, alignment) || before.is_some_and(|before| whole(before, alignment)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The padding of records that were written where a text has letters.
    fn padding(record: &str, times: usize) -> Option<Padding> {
        let mut memory = GlobalMemory::new(1 << 16).expect("address space");
        let base = memory.base();
        let text = record.repeat(times);
        memory.set_state(base, text.len() as u64, ByteState::Uninit);
        for (at, _) in text.bytes().enumerate().filter(|(_, letter)| *letter != b'.') {
            memory.write(base + at as u64, &[1]).expect("allocated");
        }
        of(&memory, base, text.len())
    }

    #[test]
    fn what_is_left_between_fields_is_padding() {
        for (record, gap) in [
            ("aaaaaaaab.......", 9..16),
            ("a.......bbbbbbbb", 1..8),
            ("a...bbbb", 1..4),
            ("aab.cccc", 3..4),
        ] {
            for times in [1, 2, 100] {
                let found = padding(record, times).unwrap_or_else(|| panic!("{record}, {times} times"));
                assert_eq!(
                    (found.record, &found.gaps[..]),
                    (record.len(), &[gap.clone()][..]),
                    "{record}"
                );
            }
        }
        // An `int` behind a `double`: a single one may be an array whose last element was left out.
        assert!(padding("aaaaaaaabbbb....", 2).is_some());
        assert!(padding("aaaaaaaabbbb....", 1).is_none());
    }

    #[test]
    fn what_was_left_out_is_none() {
        for (record, times) in [
            ("................", 4),
            ("aaaa....", 64),
            ("a.", 64),
            ("....aaaa", 64),
            ("aaaaaaaa........", 64),
            ("aaaaaaaa........aaaa", 3),
        ] {
            assert_eq!(padding(record, times), None, "{record}, {times} times");
        }
        // One element of an array.
        let array = |missing: usize| {
            (0..256)
                .map(|at| if at == missing { '.' } else { 'a' })
                .collect::<String>()
        };
        assert_eq!(padding(&array(7), 1), None);
        // The last of the records is not whole.
        assert_eq!(padding(&("aaaaaaaab.......".repeat(20) + "aaaa............"), 1), None);
    }
}
