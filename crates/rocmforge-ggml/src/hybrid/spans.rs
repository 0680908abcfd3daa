//! Spans: which byte ranges of one tensor's memory are current on the host, on the device, or on both.

use std::ops::Range;

use super::TensorLocation;

/// Ranges up to this many bytes are copied whole: a copy costs more than its bytes.
const SMALL: usize = 64 << 10;

/// Where bytes are current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sides {
    cpu: bool,
    gpu: bool,
}

impl Sides {
    const fn only(side: TensorLocation) -> Self {
        Self {
            cpu: matches!(side, TensorLocation::Cpu),
            gpu: matches!(side, TensorLocation::Gpu),
        }
    }

    const fn has(self, side: TensorLocation) -> bool {
        match side {
            TensorLocation::Cpu => self.cpu,
            TensorLocation::Gpu => self.gpu,
        }
    }
}

/// Disjoint ranges in ascending order. Bytes in none of them were never written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<(Range<usize>, Sides)>);

impl Spans {
    /// Nothing was written. Keeps the list's memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Makes this equal to `other`, in the memory that is there if it is enough.
    pub(super) fn set(&mut self, other: &Self) {
        self.0.clone_from(&other.0);
    }

    /// `span` has been written on `side`: the other side's bytes are old.
    pub(super) fn write(&mut self, span: &Range<usize>, side: TensorLocation) {
        self.replace(span, Sides::only(side));
    }

    /// `span` has been copied from one side to the other.
    pub(super) fn copied(&mut self, span: &Range<usize>) {
        self.replace(span, Sides { cpu: true, gpu: true });
    }

    /// Parts of `span` that are current on the other side only.
    pub(super) fn missing(&self, span: &Range<usize>, side: TensorLocation) -> Vec<Range<usize>> {
        let parts = self.0.iter().filter(|(_, sides)| !sides.has(side));
        parts
            .map(|(range, _)| range.start.max(span.start)..range.end.min(span.end))
            .filter(|part| !part.is_empty())
            .collect()
    }

    /// What to copy before `side` reads `span`: what it misses, and of small ranges all, so that their parts need no copy each.
    pub(super) fn to_copy(&self, span: &Range<usize>, side: TensorLocation) -> Vec<Range<usize>> {
        let whole = |part: Range<usize>| {
            let around = self.0.iter().find(|(range, _)| range.contains(&part.start));
            match around {
                Some((range, _)) if range.len() <= SMALL => range.clone(),
                _ => part,
            }
        };
        self.missing(span, side).into_iter().map(whole).collect()
    }

    fn replace(&mut self, span: &Range<usize>, sides: Sides) {
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
        kept.push((span.clone(), sides));
        kept.sort_by_key(|(range, _)| range.start);
        // Neighbours of the same sides become one range, so that equal states compare equal.
        for (range, sides) in kept {
            match self.0.last_mut() {
                Some((last, same)) if last.end == range.start && *same == sides => last.end = range.end,
                _ => self.0.push((range, sides)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TensorLocation::{Cpu, Gpu};
    use super::*;

    fn one(range: Range<usize>) -> Vec<Range<usize>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn what_one_side_wrote_the_other_misses_until_it_is_copied() {
        let mut spans = Spans::default();
        assert!(spans.missing(&(0..100), Gpu).is_empty(), "nothing was written");
        spans.write(&(0..40), Cpu);
        spans.write(&(60..100), Gpu);
        assert_eq!(spans.missing(&(0..100), Gpu), one(0..40));
        assert_eq!(spans.missing(&(30..70), Cpu), one(60..70));
        spans.copied(&(10..20));
        assert_eq!(spans.missing(&(0..100), Gpu), [0..10, 20..40]);
        assert!(spans.missing(&(10..20), Cpu).is_empty());
        spans.write(&(15..65), Gpu);
        assert_eq!(spans.missing(&(0..100), Cpu), one(15..100));
        assert_eq!(spans.missing(&(0..100), Gpu), one(0..10));
    }

    #[test]
    fn a_small_range_is_copied_whole_and_a_large_one_is_not() {
        let mut spans = Spans::default();
        spans.write(&(0..1000), Cpu);
        spans.write(&(1000..SMALL * 2), Gpu);
        assert_eq!(spans.to_copy(&(10..20), Gpu), one(0..1000));
        assert_eq!(spans.to_copy(&(2000..2010), Cpu), one(2000..2010));
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
    fn spans_are_what_a_flag_for_each_byte_says() {
        let mut seed = 7u64;
        let mut next = |limit: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % limit
        };
        let mut spans = Spans::default();
        let mut bytes = [None; 64];
        for _ in 0..2000 {
            let start = next(64) as usize;
            let end = start + next(65 - start as u64) as usize;
            match next(3) {
                0 => {
                    spans.write(&(start..end), Cpu);
                    bytes[start..end].fill(Some([true, false]));
                }
                1 => {
                    spans.write(&(start..end), Gpu);
                    bytes[start..end].fill(Some([false, true]));
                }
                _ => {
                    spans.copied(&(start..end));
                    bytes[start..end].fill(Some([true, true]));
                }
            }
            for (index, side) in [Cpu, Gpu].into_iter().enumerate() {
                let missing: Vec<usize> = spans.missing(&(0..64), side).into_iter().flatten().collect();
                let expected: Vec<usize> = (0..64)
                    .filter(|&at| bytes[at].is_some_and(|sides| !sides[index]))
                    .collect();
                assert_eq!(missing, expected);
            }
        }
    }
}
