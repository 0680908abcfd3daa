//! Hybrid backend: one graph on any number of cards and the CPU, under the memory budget of each card.
//!
//! [`HostAccess::place`] names the groups of tensors that belong together, such as a layer's weights and its part of the KV cache. As
//! many as the budgets allow lie on cards, the first card first; the others are computed on the CPU. While the program runs, groups move: to
//! the host when a budget shrinks (a desktop that takes memory), back when there is room again. Nodes run where their weights lie; what one
//! place computed and another needs is copied, between two cards over the host. Results differ only as the backends do.

mod groups;
mod memory;
mod program;
mod spans;
mod statistics;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use groups::Group;
pub use program::HybridProgram;
use rocmforge_memory::{Pressure, Subscription};
use spans::{MOST_CARDS, Spans};
pub use statistics::HybridStatistics;

use crate::optimizer::GraphOptimizer;
use crate::slots::Slots;
use crate::{
    CpuBackend, GgmlBackend, GgmlError, GgmlResult, Graph, HipGgmlBackend, HostAccess, Kernel, Launch, Op, Placement,
    SharedBytes, TensorDesc, TensorGroup, TensorId,
};

/// Where a tensor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TensorLocation {
    /// In the memory of a card: its index in [`HybridBackend::cards`].
    Gpu(usize),
    /// In the host's memory.
    Cpu,
}

/// How a tensor was loaded.
#[derive(Clone)]
enum Loaded {
    /// By [`HostAccess::load`].
    AsItIs,
    /// By [`HostAccess::load_weight`], from these bytes.
    Weight(Arc<dyn SharedBytes>),
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AsItIs => "AsItIs",
            Self::Weight(_) => "Weight",
        })
    }
}

/// Runs graphs on cards as far as their memory reaches, and on the CPU.
#[derive(Debug)]
pub struct HybridBackend {
    /// At least one.
    cards: Vec<HipGgmlBackend>,
    cpu: CpuBackend,
    /// Every tensor that has memory or is a view; the memory is the backends'.
    descs: Slots<()>,
    groups: Vec<Group>,
    /// The group that a tensor is in.
    group_of: HashMap<TensorId, usize>,
    /// Tensors that were loaded and not written since: their bytes are on the host too, wherever their group is.
    weights: HashMap<TensorId, Loaded>,
    /// Current bytes of every root that is in no group.
    spans: HashMap<TensorId, Spans>,
    /// Counts changes of places: programs made before the last are made anew.
    generation: u64,
    /// Cards without groups that had no memory for a node, or may launch nothing: nodes run elsewhere.
    left_out: BTreeSet<usize>,
    /// What graphs need on each card that has groups, in bytes beside them.
    scratch: usize,
    /// Of each card, runs since its budget was last exceeded.
    calm: Vec<u32>,
    /// The group on its way to each card, if there is one.
    returning: BTreeMap<usize, groups::Return>,
    statistics: HybridStatistics,
}

impl HybridBackend {
    /// A backend over one card and the CPU.
    #[must_use]
    pub fn new(card: HipGgmlBackend, cpu: CpuBackend) -> Self {
        Self {
            cards: vec![card],
            cpu,
            descs: Slots::new(),
            groups: Vec::new(),
            group_of: HashMap::new(),
            weights: HashMap::new(),
            spans: HashMap::new(),
            generation: 0,
            left_out: BTreeSet::new(),
            scratch: 0,
            calm: vec![0],
            returning: BTreeMap::new(),
            statistics: HybridStatistics::default(),
        }
    }

    /// The same with one more card, which takes what those before it have no room for. Call it before any tensor has memory.
    ///
    /// # Errors
    /// [`GgmlError::TooManyCards`].
    pub fn with_card(mut self, card: HipGgmlBackend) -> GgmlResult<Self> {
        if self.cards.len() == MOST_CARDS {
            return Err(GgmlError::TooManyCards { most: MOST_CARDS });
        }
        self.cards.push(card);
        self.calm.push(0);
        Ok(self)
    }

    /// The first card's backend.
    #[must_use]
    pub fn gpu(&self) -> &HipGgmlBackend {
        &self.cards[0]
    }

    /// The backends of all cards.
    #[must_use]
    pub fn cards(&self) -> &[HipGgmlBackend] {
        &self.cards
    }

    /// What has been done so far.
    #[must_use]
    pub const fn statistics(&self) -> &HybridStatistics {
        &self.statistics
    }

    /// Where a tensor lies that is in a group; `None` for others, which lie where they are needed.
    #[must_use]
    pub fn location(&self, id: TensorId) -> Option<TensorLocation> {
        let root = self.descs.root(id).ok()?;
        self.group_of.get(&root).map(|&group| self.groups[group].location)
    }

    /// Groups on cards, and all groups.
    #[must_use]
    pub fn groups_on_gpu(&self) -> (usize, usize) {
        let on_host = self.groups.iter().filter(|group| group.location == TensorLocation::Cpu);
        let all = self.groups.len();
        (all - on_host.count(), all)
    }
}

impl GgmlBackend for HybridBackend {
    /// Memory on a card. What lies on the host has none of this type.
    type Buffer = <HipGgmlBackend as GgmlBackend>::Buffer;
    type Program = HybridProgram;

    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.forget(desc.id);
        self.descs.insert(desc, ());
        match self.group_of.get(&desc.id) {
            Some(&group) => self.alloc_in_group(group, desc),
            // A card's part is made when a node there needs it.
            None => self.cpu.alloc(desc),
        }
    }

    /// `buffer` is the first card's.
    fn bind(&mut self, desc: &TensorDesc, buffer: Self::Buffer) -> GgmlResult<()> {
        self.forget(desc.id);
        self.cards[0].bind(desc, buffer)?;
        self.cpu.alloc(desc)?;
        self.descs.insert(desc, ());
        let spans = self.spans.entry(desc.id).or_default();
        spans.write(&(0..desc.byte_size()), TensorLocation::Gpu(0));
        Ok(())
    }

    fn free(&mut self, id: TensorId) -> GgmlResult<()> {
        self.descs.desc(id)?;
        self.forget(id);
        Ok(())
    }

    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc> {
        self.descs.desc(id).ok()
    }

    fn buffer(&self, id: TensorId) -> Option<&Self::Buffer> {
        self.cards.iter().find_map(|card| card.buffer(id))
    }

    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut Self::Buffer> {
        self.cards.iter_mut().find_map(|card| card.buffer_mut(id))
    }

    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.cpu.bind_view(desc)?;
        for card in &mut self.cards {
            card.bind_view(desc)?;
        }
        self.descs.bind_view(desc)
    }

    /// The first card's: what has no kernel there would run as parts.
    fn optimizer(&self) -> GraphOptimizer {
        self.cards[0].optimizer()
    }

    fn execute_op(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        self.execute_launch(&Launch::new(Kernel::Op(*op), inputs, outputs))
    }

    fn execute_launch(&mut self, launch: &Launch) -> GgmlResult<()> {
        match self.parts(launch) {
            None => self.execute_node(launch).map(drop),
            Some(parts) => parts.iter().try_for_each(|part| self.execute_node(part).map(drop)),
        }
    }

    fn compile(&mut self, graph: &Graph) -> GgmlResult<HybridProgram> {
        Ok(HybridProgram::of(self, graph))
    }

    fn enqueue(&mut self, program: &mut HybridProgram) -> GgmlResult<()> {
        self.rebalance()?;
        self.run_hybrid(program)
    }

    fn captured_graphs(&self) -> u64 {
        self.cards.iter().map(HipGgmlBackend::captured_graphs).sum()
    }

    fn synchronize(&mut self) -> GgmlResult<()> {
        self.cards.iter_mut().try_for_each(HipGgmlBackend::synchronize)
    }
}

impl HostAccess for HybridBackend {
    fn place(&mut self, groups: &[TensorGroup], scratch: usize) -> GgmlResult<()> {
        self.place_groups(groups, scratch)
    }

    fn relieve(&mut self) -> GgmlResult<()> {
        self.relieve_cards()
    }

    fn when_tight(&self, tight: impl Fn() + Send + Sync + Clone + 'static) -> Vec<Subscription> {
        let subscribe = |card: &HipGgmlBackend| {
            let tight = tight.clone();
            card.hip().card().subscribe(move |change| {
                if change.to >= Pressure::Red {
                    tight();
                }
            })
        };
        self.cards.iter().map(subscribe).collect()
    }

    fn placement(&self) -> Option<Placement> {
        let mut placement = Placement {
            spills: self.statistics.spills,
            returns: self.statistics.returns,
            ..Placement::default()
        };
        for group in &self.groups {
            match group.location {
                TensorLocation::Gpu(_) => placement.device_bytes += group.bytes as u64,
                TensorLocation::Cpu => placement.host_bytes += group.bytes as u64,
            }
        }
        Some(placement)
    }

    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()> {
        let root = self.descs.root(id)?;
        if let Some(&group) = self.group_of.get(&root) {
            return self.write_in_group(group, id, bytes);
        }
        self.cpu.write(id, bytes)?;
        let span = self.span(id)?;
        self.spans.entry(root).or_default().write(&span, TensorLocation::Cpu);
        Ok(())
    }

    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>> {
        self.read_first(id, usize::MAX)
    }

    fn read_first(&mut self, id: TensorId, bytes: usize) -> GgmlResult<Vec<u8>> {
        match self.reads_from(id, bytes)? {
            TensorLocation::Gpu(card) => self.cards[card].read_first(id, bytes),
            TensorLocation::Cpu => self.cpu.read_first(id, bytes),
        }
    }

    fn read_first_f32_into(&mut self, id: TensorId, elements: usize, values: &mut Vec<f32>) -> GgmlResult<()> {
        match self.reads_from(id, elements.saturating_mul(size_of::<f32>()))? {
            TensorLocation::Gpu(card) => self.cards[card].read_first_f32_into(id, elements, values),
            TensorLocation::Cpu => self.cpu.read_first_f32_into(id, elements, values),
        }
    }

    fn is_device(&self) -> bool {
        !self.cards.is_empty()
    }

    /// What the host and the cards have left together.
    fn available_bytes(&self) -> Option<usize> {
        let cards = self.fast_bytes(0).unwrap_or(0);
        self.cpu.available_bytes().map(|cpu| cpu.saturating_add(cards))
    }

    /// What the cards have left together, when each keeps `scratch` bytes.
    fn fast_bytes(&self, scratch: usize) -> Option<usize> {
        let left = self.cards.iter().map(|card| card.fast_bytes(scratch).unwrap_or(0));
        Some(left.fold(0, usize::saturating_add))
    }

    fn scratch_bytes(&self, graph: &Graph) -> usize {
        let needed = self.cards.iter().map(|card| card.scratch_bytes(graph));
        needed.max().unwrap_or(0)
    }

    fn load(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        self.load_as(desc, bytes, Loaded::AsItIs)
    }

    fn load_weight(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        let weight = Loaded::Weight(Arc::clone(&bytes));
        self.load_as(desc, bytes, weight)
    }
}

impl HybridBackend {
    fn load_as(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>, loaded: Loaded) -> GgmlResult<()> {
        self.forget(desc.id);
        self.cpu.load(desc, Arc::clone(&bytes))?;
        self.descs.insert(desc, ());
        match self.group_of.get(&desc.id) {
            Some(&group) => self.load_in_group(group, desc, bytes, loaded),
            None => {
                let spans = self.spans.entry(desc.id).or_default();
                spans.write(&(0..desc.byte_size()), TensorLocation::Cpu);
                Ok(())
            }
        }
    }
}
