//! Memory of all places: bytes of one root on the host and on cards, and copies between them.

use std::ops::Range;

use super::{HybridBackend, TensorLocation};
use crate::{GgmlBackend, GgmlResult, TensorId};

/// A copy between the host and a card.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) root: TensorId,
    span: Range<usize>,
    pub(super) card: usize,
    to_card: bool,
}

impl Copy {
    const fn to(&self) -> TensorLocation {
        match self.to_card {
            true => TensorLocation::Gpu(self.card),
            false => TensorLocation::Cpu,
        }
    }
}

impl HybridBackend {
    /// A tensor's bytes in its root's memory, from its first element to its last.
    pub(super) fn span(&self, id: TensorId) -> GgmlResult<Range<usize>> {
        Ok(self.descs.desc(id)?.span())
    }

    /// Copies that make `span` of a root current in a place. Bytes of another card go over the host.
    pub(super) fn copies(&self, root: TensorId, span: &Range<usize>, to: TensorLocation) -> Vec<Copy> {
        let missing = self.spans.get(&root).map(|spans| spans.to_copy(span, to));
        let copy = |span: &Range<usize>, card, to_card| Copy {
            root,
            span: span.clone(),
            card,
            to_card,
        };
        let mut copies = Vec::new();
        for (part, from) in missing.unwrap_or_default() {
            if let TensorLocation::Gpu(card) = from {
                copies.push(copy(&part, card, false));
            }
            if let TensorLocation::Gpu(card) = to {
                copies.push(copy(&part, card, true));
            }
        }
        copies
    }

    /// Makes `span` of a root current in a place; says what was copied.
    pub(super) fn fetch(&mut self, root: TensorId, span: &Range<usize>, to: TensorLocation) -> GgmlResult<Vec<Copy>> {
        let copies = self.copies(root, span, to);
        for copy in &copies {
            self.copy_bytes(copy)?;
            self.note_copied(copy);
        }
        Ok(copies)
    }

    /// Notes that a copy has been made.
    pub(super) fn note_copied(&mut self, copy: &Copy) {
        self.spans.entry(copy.root).or_default().copied(&copy.span, copy.to());
    }

    /// Makes a copy, without a note of it.
    pub(super) fn copy_bytes(&mut self, copy: &Copy) -> GgmlResult<()> {
        let (root, span) = (copy.root, copy.span.clone());
        let bytes = span.len() as u64;
        if copy.to_card {
            self.ensure_on_card(copy.card, root)?;
            let source = self.cpu.root_bytes(root, span.clone())?;
            self.cards[copy.card].write_bytes(root, span, source)?;
            self.statistics.to_gpu_bytes += bytes;
        } else {
            let target = self.cpu.root_bytes_mut(root, span.clone())?;
            self.cards[copy.card].read_bytes(root, span, target)?;
            self.statistics.to_cpu_bytes += bytes;
        }
        Ok(())
    }

    /// Where the first bytes of a tensor are read: that of its group, or the host, which has them then.
    pub(super) fn reads_from(&mut self, id: TensorId, bytes: usize) -> GgmlResult<TensorLocation> {
        let root = self.descs.root(id)?;
        if let Some(&group) = self.group_of.get(&root) {
            return Ok(self.groups[group].location);
        }
        let mut span = self.span(id)?;
        span.end = span.end.min(span.start.saturating_add(bytes));
        self.fetch(root, &span, TensorLocation::Cpu)?;
        Ok(TensorLocation::Cpu)
    }

    /// Gives a root memory on a card, if it has none there.
    pub(super) fn ensure_on_card(&mut self, card: usize, root: TensorId) -> GgmlResult<()> {
        if self.cards[card].tensor_desc(root).is_some() {
            return Ok(());
        }
        let desc = self.descs.desc(root)?.clone();
        self.cards[card].alloc(&desc)
    }

    /// Drops what all places have of a tensor.
    pub(super) fn forget(&mut self, id: TensorId) {
        // A place may know nothing of it.
        for card in &mut self.cards {
            let _ = card.free(id);
        }
        let _ = self.cpu.free(id);
        let _ = self.descs.remove(id);
        self.spans.remove(&id);
        self.weights.remove(&id);
    }

    /// Drops a card's part of everything that is in no group.
    pub(super) fn leave_card(&mut self, card: usize) -> GgmlResult<()> {
        let roots: Vec<TensorId> = self.spans.keys().copied().collect();
        for root in roots {
            if self.cards[card].tensor_desc(root).is_none() {
                continue;
            }
            let all = self.span(root)?;
            self.fetch(root, &all, TensorLocation::Cpu)?;
            self.spans.entry(root).or_default().leave(TensorLocation::Gpu(card));
            self.cards[card].free(root)?;
        }
        Ok(())
    }
}
