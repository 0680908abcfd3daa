//! Groups: which tensors lie on which card, and when that changes.

use std::collections::VecDeque;
use std::sync::Arc;

use rocmforge_memory::{Bytes, Pressure};
use rocmforge_runtime::{Elems, HipBuffer, HipStream, Pending, PinnedBuffer};

use super::{HybridBackend, Loaded, TensorLocation};
use crate::hip::{LoadedWeight, is_out_of_memory, is_stopped};
use crate::{
    GgmlBackend, GgmlError, GgmlResult, HipGgmlBackend, HostAccess, SharedBytes, TensorDesc, TensorGroup, TensorId,
};

/// Runs without an exceeded budget before a group may return to a card: a desktop that takes memory often takes more.
const CALM_RUNS: u32 = 4;

/// Tensors in one place.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) tensors: Vec<TensorDesc>,
    pub(super) bytes: usize,
    pub(super) location: TensorLocation,
    /// Never returns to a card: a node of it cannot run there.
    pub(super) stays: bool,
}

/// Weights that are copied to a card during one run, at most; a larger one goes alone. It bounds the pinned memory.
const COPIED_IN_A_RUN: usize = 64 << 20;

/// A group on its way back: its weights go to a card on a stream of their own, some in each run, while graphs run.
#[derive(Debug)]
pub(super) struct Return {
    group: usize,
    stream: HipStream,
    waiting: VecDeque<TensorDesc>,
    copying: Vec<Copying>,
    done: Vec<(TensorDesc, LoadedWeight)>,
}

/// One weight on its way to a card.
#[derive(Debug)]
struct Copying {
    desc: TensorDesc,
    buffer: HipBuffer<u8>,
    pending: Pending<u8>,
}

fn failed<E>(at: impl Into<String>) -> impl FnOnce(E) -> GgmlError
where
    E: std::error::Error + Send + Sync + 'static,
{
    crate::error::failed("hybrid", at)
}

impl HybridBackend {
    /// Decides where groups begin: in their order, each on the first card where it still fits beside `scratch`. Neighbours thus lie on one
    /// card as long as possible, and little is copied between cards.
    pub(super) fn place_groups(&mut self, groups: &[TensorGroup], scratch: usize) -> GgmlResult<()> {
        self.scratch = scratch;
        let room = |card: &HipGgmlBackend| card.fast_bytes(scratch).unwrap_or(0);
        let mut left: Vec<usize> = self.cards.iter().map(room).collect();
        for group in groups {
            let bytes = group
                .tensors
                .iter()
                .map(TensorDesc::byte_size)
                .fold(0, usize::saturating_add);
            let location = match left.iter_mut().enumerate().find(|(_, left)| bytes <= **left) {
                Some((card, left)) => {
                    *left -= bytes;
                    TensorLocation::Gpu(card)
                }
                None => TensorLocation::Cpu,
            };
            let index = self.groups.len();
            self.group_of.extend(group.tensors.iter().map(|desc| (desc.id, index)));
            self.groups.push(Group {
                name: group.name.clone(),
                tensors: group.tensors.clone(),
                bytes,
                location,
                stays: false,
            });
        }
        Ok(())
    }

    pub(super) fn alloc_in_group(&mut self, group: usize, desc: &TensorDesc) -> GgmlResult<()> {
        if let TensorLocation::Gpu(card) = self.groups[group].location {
            match self.cards[card].alloc(desc) {
                Err(error) if is_out_of_memory(&error) => self.spill(group)?,
                other => return other,
            }
        }
        self.cpu.alloc(desc)
    }

    pub(super) fn load_in_group(
        &mut self,
        group: usize,
        desc: &TensorDesc,
        bytes: Arc<dyn SharedBytes>,
        loaded: Loaded,
    ) -> GgmlResult<()> {
        let is_weight = matches!(loaded, Loaded::Weight(_));
        self.weights.insert(desc.id, loaded);
        if let TensorLocation::Gpu(card) = self.groups[group].location {
            let result = if is_weight {
                self.cards[card].load_weight(desc, bytes)
            } else {
                self.cards[card].load(desc, bytes)
            };
            match result {
                // It may be packed by a kernel.
                Err(error) if is_out_of_memory(&error) || is_stopped(&error) => self.spill(group)?,
                other => return other,
            }
        }
        Ok(())
    }

    pub(super) fn write_in_group(&mut self, group: usize, id: TensorId, bytes: &[u8]) -> GgmlResult<()> {
        let root = self.descs.root(id)?;
        // From now on the bytes are not those that were loaded, so they move like a cache's.
        let loaded = self.weights.remove(&root).is_some();
        match self.groups[group].location {
            TensorLocation::Gpu(card) => {
                self.cards[card].write(id, bytes)?;
                if loaded {
                    self.cpu.free(root)?;
                }
                Ok(())
            }
            TensorLocation::Cpu => self.cpu.write(id, bytes),
        }
    }

    /// Moves a group to the host. Its weights are there; caches are copied.
    pub(super) fn spill(&mut self, index: usize) -> GgmlResult<()> {
        let TensorLocation::Gpu(card) = self.groups[index].location else {
            return Ok(());
        };
        let tensors = self.groups[index].tensors.clone();
        for desc in &tensors {
            // A group whose tensors are still being made has none for some.
            if self.cards[card].tensor_desc(desc.id).is_none() {
                continue;
            }
            if !self.weights.contains_key(&desc.id) {
                let bytes = self.cards[card].read(desc.id)?;
                self.cpu.alloc(desc)?;
                self.cpu.write(desc.id, &bytes)?;
            }
            self.cards[card].free(desc.id)?;
        }
        self.groups[index].location = TensorLocation::Cpu;
        self.generation += 1;
        self.statistics.spills += 1;
        if self.last_on(card).is_none() {
            self.leave_card(card)?;
        }
        // What the pool keeps would count as ours.
        let hip = self.cards[card].hip();
        hip.trim_memory(Bytes(0)).map_err(failed("giving memory back"))?;
        Ok(())
    }

    /// The group on a card that gains least from being there.
    fn last_on(&self, card: usize) -> Option<usize> {
        let is_there = |group: &Group| group.location == TensorLocation::Gpu(card);
        self.groups.iter().rposition(is_there)
    }

    /// Moves the group to the host that gains least from a card. False if none is left there.
    pub(super) fn spill_one(&mut self, card: usize) -> GgmlResult<bool> {
        self.returning.remove(&card);
        self.calm[card] = 0;
        match self.last_on(card) {
            Some(index) => self.spill(index).map(|()| true),
            None => Ok(false),
        }
    }

    /// Moves every group of a card to the host. False if none was there.
    pub(super) fn spill_all(&mut self, card: usize) -> GgmlResult<bool> {
        let had_some = self.spill_one(card)?;
        while self.spill_one(card)? {}
        Ok(had_some)
    }

    /// Makes room after a card has refused memory or launches: moves its last group or all of them to the host, or leaves the card out if it has none.
    ///
    /// # Errors
    /// The error that is no such refusal, and an index out of range in what was launched before it: the operands are still there.
    pub(super) fn give_way(&mut self, card: usize, error: GgmlError) -> GgmlResult<()> {
        let stopped = is_stopped(&error);
        if !stopped && !is_out_of_memory(&error) {
            return Err(error);
        }
        self.cards[card].synchronize()?;
        let had_some = match stopped {
            true => self.spill_all(card)?,
            false => self.spill_one(card)?,
        };
        if had_some { Ok(()) } else { self.leave_out(card) }
    }

    /// Nodes of no group run elsewhere from now on, until a group returns to the card.
    fn leave_out(&mut self, card: usize) -> GgmlResult<()> {
        self.left_out.insert(card);
        self.generation += 1;
        self.leave_card(card)
    }

    /// Looks at the budgets before a run: moves groups to the host while more is held than a card's allows, and back when there is room.
    pub(super) fn rebalance(&mut self) -> GgmlResult<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        self.relieve_cards()?;
        for card in 0..self.cards.len() {
            if self.cards[card].hip().card().pressure() <= Pressure::Yellow {
                self.calm[card] = self.calm[card].saturating_add(1);
            }
        }
        for card in 0..self.cards.len() {
            match self.advance_return(card) {
                // The others go on.
                Err(error) if is_out_of_memory(&error) || is_stopped(&error) => self.calm[card] = 0,
                other => other?,
            }
        }
        Ok(())
    }

    /// Moves groups to the host while more is held than a card's budget allows.
    pub(super) fn relieve_cards(&mut self) -> GgmlResult<()> {
        for card in 0..self.cards.len() {
            let hip = Arc::clone(self.cards[card].hip());
            while hip.card().look() >= Pressure::Red {
                let budget = hip.card().budget();
                if budget.own <= budget.budget && hip.card().pressure() < Pressure::Red {
                    break;
                }
                if !self.spill_one(card)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a group may return to a card: its budget was not exceeded for some runs, and is not close to it.
    fn is_calm(&self, card: usize) -> bool {
        self.calm[card] >= CALM_RUNS && self.cards[card].hip().card().pressure() <= Pressure::Yellow
    }

    /// Begins, continues or ends the return of a group to a card. A return that fails, or whose card is not calm any more, is given up: the group may
    /// go to another card.
    fn advance_return(&mut self, card: usize) -> GgmlResult<()> {
        let returning = self.returning.remove(&card);
        if !self.is_calm(card) {
            return Ok(());
        }
        let Some(mut returning) = returning.filter(|returning| !self.groups[returning.group].stays) else {
            return self.begin_return(card);
        };
        // They had a whole run's time: what is not done by now is waited for.
        for copying in returning.copying.drain(..) {
            copying.pending.wait().map_err(failed("copying weights"))?;
            let weight = match self.weights.get(&copying.desc.id) {
                Some(Loaded::Weight(host)) => {
                    let card = &self.cards[card];
                    card.pack_loaded(&copying.desc, copying.buffer, &returning.stream, host)?
                }
                _ => LoadedWeight::plain(copying.buffer),
            };
            returning.done.push((copying.desc, weight));
        }
        let mut bytes = 0usize;
        while let Some(desc) = returning.waiting.pop_front() {
            bytes = bytes.saturating_add(desc.byte_size());
            if bytes > COPIED_IN_A_RUN && !returning.copying.is_empty() {
                returning.waiting.push_front(desc);
                break;
            }
            let copying = self.begin_copy(card, &returning.stream, desc)?;
            returning.copying.push(copying);
        }
        if !returning.copying.is_empty() {
            self.returning.insert(card, returning);
            return Ok(());
        }
        self.end_return(card, returning)
    }

    /// Begins the return of the first group on the host that is on its way to no card, if this card has room for it.
    fn begin_return(&mut self, card: usize) -> GgmlResult<()> {
        let is_returning = |index: usize| self.returning.values().any(|returning| returning.group == index);
        let waits = |(index, group): (usize, &Group)| {
            group.location == TensorLocation::Cpu && !group.stays && !is_returning(index)
        };
        let next = self.groups.iter().enumerate().position(waits);
        let Some(index) = next else { return Ok(()) };
        let group = &self.groups[index];
        // Room for half of it again stays, so that it need not leave at once; a weight is there twice while it is packed.
        let largest = group.tensors.iter().map(TensorDesc::byte_size).max().unwrap_or(0);
        let needed = group.bytes.saturating_add(largest.max(group.bytes / 2));
        // A card without groups has no scratch yet.
        let scratch = self.last_on(card).map_or(self.scratch, |_| 0);
        if self.cards[card].fast_bytes(scratch).unwrap_or(0) < needed {
            return Ok(());
        }
        let stream = self.cards[card].hip();
        let stream = stream.create_stream(&format!("weights of {}", group.name));
        let is_weight = |desc: &&TensorDesc| self.weights.contains_key(&desc.id);
        let returning = Return {
            group: index,
            stream: stream.map_err(failed("making a stream"))?,
            waiting: group.tensors.iter().filter(is_weight).cloned().collect(),
            copying: Vec::new(),
            done: Vec::new(),
        };
        self.returning.insert(card, returning);
        Ok(())
    }

    fn begin_copy(&self, card: usize, stream: &HipStream, desc: TensorDesc) -> GgmlResult<Copying> {
        let bytes = self.cpu.root_bytes(desc.id, 0..desc.byte_size())?;
        let label = format!("ggml {} {}", desc.id, desc.summary());
        let buffer = HipBuffer::zeroed(stream, Elems(bytes.len()), &label).map_err(failed("returning weights"))?;
        let pinned = PinnedBuffer::zeroed(self.cards[card].hip(), Elems(bytes.len()), &label);
        let mut pinned = pinned.map_err(failed("returning weights"))?;
        pinned.copy_from_slice(bytes);
        let pending = buffer
            .upload_async(stream, pinned)
            .map_err(failed("returning weights"))?;
        Ok(Copying { desc, buffer, pending })
    }

    /// Copies a group's caches, which may have changed until now, and lets it be on the card.
    fn end_return(&mut self, card: usize, returning: Return) -> GgmlResult<()> {
        let index = returning.group;
        let tensors = self.groups[index].tensors.clone();
        returning
            .done
            .into_iter()
            .for_each(|(desc, weight)| self.cards[card].bind_loaded(&desc, weight));
        let mut caches = tensors.iter().filter(|desc| !self.weights.contains_key(&desc.id));
        let result = caches.try_for_each(|desc| {
            let bytes = self.cpu.read(desc.id)?;
            self.cards[card].alloc(desc)?;
            self.cards[card].write(desc.id, &bytes)
        });
        if let Err(error) = result {
            // Nothing has left the host yet.
            for desc in &tensors {
                let _ = self.cards[card].free(desc.id);
            }
            return Err(error);
        }
        for desc in tensors.iter().filter(|desc| !self.weights.contains_key(&desc.id)) {
            self.cpu.free(desc.id)?;
        }
        self.groups[index].location = TensorLocation::Gpu(card);
        self.left_out.remove(&card);
        self.generation += 1;
        self.statistics.returns += 1;
        Ok(())
    }
}
