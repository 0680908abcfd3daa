//! Spans: where byte ranges of one tensor's memory are current, on the host and on each card.

use std::ops::Range;

use super::TensorLocation;

/// Ranges up to this many bytes are copied whole: a copy costs more than its bytes.
const SMALL: usize = 64 << 10;

/// The most cards that spans can tell apart.
pub(super) const MOST_CARDS: usize = 31;

/// Where bytes are current: bit 0 is the host, bit `n + 1` card `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places(u32);

impl Places {
    const fn only(at: TensorLocation) -> Self {
        match at {
            TensorLocation::Cpu => Self(1),
            TensorLocation::Gpu(card) => Self(2 << card),
        }
    }

    const fn has(self, at: TensorLocation) -> bool {
        self.0 & Self::only(at).0 != 0
    }

    /// The host if it has the bytes, else the first card that does.
    const fn first(self) -> TensorLocation {
        match self.0.trailing_zeros() {
            0 => TensorLocation::Cpu,
            bit => TensorLocation::Gpu(bit as usize - 1),
        }
    }
}

/// Disjoint ranges in ascending order. Bytes in none of them were never written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<(Range<usize>, Places)>);

impl Spans {
    /// Nothing was written. Keeps the list's memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Makes this equal to `other`, in the memory that is there if it is enough.
    pub(super) fn set(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// `span` has been written in one place: the bytes of the others are old.
    pub(super) fn write(&mut self, span: &Range<usize>, at: TensorLocation) {
        self.replace(span, Places::only(at));
    }

    /// `span` has been copied to `to`.
    pub(super) fn copied(&mut self, span: &Range<usize>, to: TensorLocation) {
        for (part, places) in self.within(span) {
            self.replace(&part, Places(places.0 | Places::only(to).0));
        }
    }

    /// A place gives up what it has; what no other place has is lost.
    pub(super) fn leave(&mut self, at: TensorLocation) {
        for (part, places) in std::mem::take(&mut self.0) {
            let others = Places(places.0 & !Places::only(at).0);
            if others.0 != 0 {
                self.replace(&part, others);
            }
        }
    }

    /// The parts of `span` that were written.
    fn within(&self, span: &Range<usize>) -> Vec<(Range<usize>, Places)> {
        let parts = self.0.iter();
        parts
            .map(|(range, places)| (range.start.max(span.start)..range.end.min(span.end), *places))
            .filter(|(part, _)| !part.is_empty())
            .collect()
    }

    /// Parts of `span` that are not current in a place, each with another place where it is.
    pub(super) fn missing(&self, span: &Range<usize>, at: TensorLocation) -> Vec<(Range<usize>, TensorLocation)> {
        let parts = self.within(span).into_iter();
        parts
            .filter(|(_, places)| !places.has(at))
            .map(|(part, places)| (part, places.first()))
            .collect()
    }

    /// What to copy before `span` is read in a place: what is missing there, and of small ranges all, so that their parts need no copy each.
    pub(super) fn to_copy(&self, span: &Range<usize>, at: TensorLocation) -> Vec<(Range<usize>, TensorLocation)> {
        let whole = |(part, from): (Range<usize>, TensorLocation)| {
            let around = self.0.iter().find(|(range, _)| range.contains(&part.start));
            match around {
                Some((range, _)) if range.len() <= SMALL => (range.clone(), from),
                _ => (part, from),
            }
        };
        self.missing(span, at).into_iter().map(whole).collect()
    }

    fn replace(&mut self, span: &Range<usize>, places: Places) {
        if span.is_empty() {
            return;
        }
        let mut kept = Vec::with_capacity(self.0.len() + 2);
        for (range, old) in self.0.drain(..) {
            for part in [
                range.start..range.end.min(span.start),
                range.start.max(span.end)..range.end,
            ] {
                if !part.is_empty() {
                    kept.push((part, old));
                }
            }
        }
        kept.push((span.clone(), places));
        kept.sort_by_key(|(range, _)| range.start);
        // Neighbours in the same places become one range, so that equal states compare equal.
        for (range, places) in kept {
            match self.0.last_mut() {
                Some((last, same)) if last.end == range.start && *same == places => last.end = range.end,
                _ => self.0.push((range, places)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TensorLocation::{Cpu, Gpu};
    use super::*;

    fn parts(missing: Vec<(Range<usize>, TensorLocation)>) -> Vec<Range<usize>> {
        missing.into_iter().map(|(part, _)| part).collect()
    }

    fn one(range: Range<usize>) -> Vec<Range<usize>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn what_one_place_wrote_the_others_miss_until_it_is_copied() {
        let mut spans = Spans::default();
        assert!(spans.missing(&(0..100), Gpu(0)).is_empty(), "nothing was written");
        spans.write(&(0..40), Cpu);
        spans.write(&(60..100), Gpu(0));
        assert_eq!(spans.missing(&(0..100), Gpu(0)), [(0..40, Cpu)]);
        assert_eq!(spans.missing(&(30..70), Cpu), [(60..70, Gpu(0))]);
        assert_eq!(spans.missing(&(30..70), Gpu(1)), [(30..40, Cpu), (60..70, Gpu(0))]);
        spans.copied(&(10..20), Gpu(0));
        assert_eq!(parts(spans.missing(&(0..100), Gpu(0))), [0..10, 20..40]);
        assert!(spans.missing(&(10..20), Cpu).is_empty());
        spans.write(&(15..65), Gpu(0));
        assert_eq!(parts(spans.missing(&(0..100), Cpu)), one(15..100));
        assert_eq!(parts(spans.missing(&(0..100), Gpu(0))), one(0..10));
        spans.copied(&(0..100), Gpu(1));
        spans.leave(Gpu(0));
        assert!(spans.missing(&(0..100), Gpu(1)).is_empty());
        assert_eq!(spans.missing(&(0..100), Gpu(0)), [(0..15, Cpu), (15..100, Gpu(1))]);
    }

    #[test]
    fn a_small_range_is_copied_whole_and_a_large_one_is_not() {
        let mut spans = Spans::default();
        spans.write(&(0..1000), Cpu);
        spans.write(&(1000..SMALL * 2), Gpu(0));
        assert_eq!(parts(spans.to_copy(&(10..20), Gpu(0))), one(0..1000));
        assert_eq!(parts(spans.to_copy(&(2000..2010), Cpu)), one(2000..2010));
        assert!(spans.to_copy(&(10..20), Cpu).is_empty());
    }

    #[test]
    fn the_order_of_equal_writes_does_not_show() {
        let (mut one, mut other) = (Spans::default(), Spans::default());
        one.write(&(0..10), Cpu);
        one.write(&(10..20), Cpu);
        other.write(&(5..20), Cpu);
        other.write(&(0..12), Cpu);
        assert_eq!(one, other);
    }

    #[test]
    fn spans_are_what_a_flag_for_each_byte_and_place_says() {
        let places = [Cpu, Gpu(0), Gpu(1), Gpu(MOST_CARDS - 1)];
        let mut seed = 7u64;
        let mut next = |limit: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % limit
        };
        let mut spans = Spans::default();
        let mut bytes = [[false; 4]; 64];
        for _ in 0..4000 {
            let start = next(64) as usize;
            let end = start + next(65 - start as u64) as usize;
            let place = next(4) as usize;
            let written = bytes[start..end].iter_mut();
            match next(8) {
                0 => {
                    spans.leave(places[place]);
                    bytes.iter_mut().for_each(|byte| byte[place] = false);
                }
                1..4 => {
                    spans.write(&(start..end), places[place]);
                    written.for_each(|byte| *byte = std::array::from_fn(|at| at == place));
                }
                _ => {
                    spans.copied(&(start..end), places[place]);
                    let there = written.filter(|byte| byte.contains(&true));
                    there.for_each(|byte| byte[place] = true);
                }
            }
            for (index, at) in places.into_iter().enumerate() {
                let missing = spans.missing(&(0..64), at).into_iter();
                let missing: Vec<(usize, TensorLocation)> = missing
                    .flat_map(|(part, from)| part.map(move |byte| (byte, from)))
                    .collect();
                let first = |byte: usize| bytes[byte].iter().position(|&has| has);
                let expected: Vec<(usize, TensorLocation)> = (0..64)
                    .filter(|&byte| !bytes[byte][index])
                    .filter_map(|byte| Some((byte, places[first(byte)?])))
                    .collect();
                assert_eq!(missing, expected);
            }
        }
    }
}
