//! Programs of a hybrid backend: the first run decides where each node runs, the later ones repeat it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::memory::Copy;
use super::spans::Spans;
use super::{HybridBackend, TensorLocation};
use crate::cpu::CpuProgram;
use crate::hip::{HipProgram, Unfinished};
use crate::{DType, GgmlBackend, GgmlResult, Graph, HipGgmlBackend, Kernel, Launch, Op, TensorDesc, TensorId, shape};

/// A graph's nodes for cards and the CPU.
#[derive(Debug)]
pub struct HybridProgram {
    nodes: Vec<Launch>,
    /// Roots that the nodes write before they read them: what they hold before does not matter.
    produced: Vec<TensorId>,
    /// Other roots in no group that the nodes use.
    given: Vec<TensorId>,
    plan: Option<Plan>,
}

/// Where each node runs, and what is copied between.
#[derive(Debug)]
struct Plan {
    /// [`HybridBackend::generation`] that it was made for.
    generation: u64,
    /// Current bytes of the given roots that it was made for, and after it.
    before: Vec<Option<Spans>>,
    after: Vec<(TensorId, Spans)>,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Gpu(usize, Range<usize>, HipProgram),
    Cpu(Range<usize>, CpuProgram),
    Copy(Copy),
}

/// What a run that decides has done.
#[derive(Debug)]
pub(super) enum Traced {
    Node(TensorLocation),
    Copy(Copy),
}

impl HybridProgram {
    pub(super) fn of(backend: &HybridBackend, graph: &Graph) -> Self {
        let mut nodes = Vec::new();
        for launch in graph.launches().into_owned() {
            match backend.parts(&launch) {
                None => nodes.push(launch),
                Some(parts) => nodes.extend(parts),
            }
        }
        let changed = graph.mutable_roots();
        let roots = |ids: &[TensorId]| -> BTreeSet<TensorId> {
            let roots = ids.iter().filter_map(|&id| graph.root(id));
            roots.filter(|root| !backend.group_of.contains_key(root)).collect()
        };
        let mut produced = BTreeSet::new();
        let mut given = BTreeSet::new();
        for node in &nodes {
            produced.extend(roots(&node.outputs).difference(&changed));
            given.extend(roots(&node.inputs));
            given.extend(roots(&node.outputs));
        }
        Self {
            nodes,
            given: given.difference(&produced).copied().collect(),
            produced: produced.into_iter().collect(),
            plan: None,
        }
    }
}

impl HybridBackend {
    pub(super) fn run_hybrid(&mut self, program: &mut HybridProgram) -> GgmlResult<()> {
        for root in &program.produced {
            if let Some(spans) = self.spans.get_mut(root) {
                spans.clear();
            }
        }
        match program.plan.take() {
            Some(mut plan)
                if plan.generation == self.generation
                    && self.given(program).eq(plan.before.iter().map(Option::as_ref)) =>
            {
                let result = self.run_plan(&program.nodes, &mut plan);
                program.plan = Some(plan);
                result
            }
            _ => {
                let generation = self.generation;
                let before = self.given(program).map(Option::<&Spans>::cloned).collect();
                let mut traced = Vec::new();
                self.run_nodes(&program.nodes, &mut traced)?;
                if generation == self.generation {
                    program.plan = Some(self.plan(program, before, &traced)?);
                }
                Ok(())
            }
        }
    }

    /// Current bytes of the given roots.
    fn given<'a>(&'a self, program: &'a HybridProgram) -> impl Iterator<Item = Option<&'a Spans>> {
        program.given.iter().map(|root| self.spans.get(root))
    }

    /// Runs nodes one by one, and notes where, with the copies between.
    fn run_nodes(&mut self, nodes: &[Launch], traced: &mut Vec<Traced>) -> GgmlResult<()> {
        for node in nodes {
            traced.extend(self.execute_node(node)?);
        }
        Ok(())
    }

    /// Runs a node where its operands lie, or where there is memory for it.
    pub(super) fn execute_node(&mut self, node: &Launch) -> GgmlResult<Vec<Traced>> {
        let inputs = &node.inputs;
        loop {
            self.gather_caches(inputs)?;
            let side = self.side(inputs)?;
            let mut traced = Vec::new();
            // Asked before anything is copied to the card for it.
            if side != TensorLocation::Cpu
                && let Some(reason) = self.refused(node)?
            {
                *self.statistics.unsupported.entry(reason).or_default() += 1;
                // A cache comes along with its group, and stays where the node can run.
                if let Some(group) = self.group_of_cache(inputs)? {
                    self.groups[group].stays = true;
                    self.spill(group)?;
                }
                self.try_node(TensorLocation::Cpu, node, &mut traced)?;
                return Ok(traced);
            }
            match (side, self.try_node(side, node, &mut traced)) {
                (_, Ok(())) => return Ok(traced),
                (TensorLocation::Cpu, Err(error)) => return Err(error),
                (TensorLocation::Gpu(card), Err(error)) => self.give_way(card, error)?,
            }
        }
    }

    /// A sum and its norm as two nodes where a card makes two launches of them; `None` for all others. A run may end between these, and then goes on with the second: the sum
    /// may lie over what it adds to, and would add twice.
    pub(super) fn parts(&self, launch: &Launch) -> Option<[Launch; 2]> {
        let operands = || launch.inputs.iter().chain(&launch.outputs);
        let is_plain = |desc: &TensorDesc| desc.dtype == DType::F32 && desc.is_contiguous();
        let is_one = || operands().all(|&id| self.descs.desc(id).is_ok_and(is_plain));
        match (launch.kernel, launch.inputs.as_slice(), launch.outputs.as_slice()) {
            (Kernel::AddRmsNorm { eps }, &[a, b, ref weight @ ..], &[sum, y]) if !is_one() => {
                let of_sum: Vec<TensorId> = [sum].into_iter().chain(weight.first().copied()).collect();
                Some([
                    Launch::new(Kernel::Op(Op::Add), [a, b], [sum]),
                    Launch::new(Kernel::Op(Op::RmsNorm { eps }), of_sum, [y]),
                ])
            }
            _ => None,
        }
    }

    /// Why a card cannot run a node, if it cannot. What has no element to compute runs anywhere.
    fn refused(&self, node: &Launch) -> GgmlResult<Option<String>> {
        let (inputs, outputs) = (self.descs.descs(&node.inputs)?, self.descs.descs(&node.outputs)?);
        if let Kernel::Op(op) = &node.kernel {
            shape::check_outputs(0, op, &inputs, &outputs, false)?;
        }
        if outputs.iter().all(|output| output.element_count() == 0) {
            return Ok(None);
        }
        let takes = HipGgmlBackend::takes(&node.kernel, &inputs, &outputs);
        Ok(takes.err().map(|error| error.to_string()))
    }

    /// Where a node runs: where its weights and caches lie; without any, where its first operand is current.
    fn side(&self, inputs: &[TensorId]) -> GgmlResult<TensorLocation> {
        let mut weights = None;
        for &id in inputs {
            let root = self.descs.root(id)?;
            if let Some(&group) = self.group_of.get(&root) {
                let location = self.groups[group].location;
                if !self.weights.contains_key(&root) {
                    return Ok(location);
                }
                // Weights are on the host in any case: a node with weights of two places runs there.
                weights = match weights {
                    Some(other) if other != location => Some(TensorLocation::Cpu),
                    _ => Some(location),
                };
            }
        }
        if let Some(location) = weights {
            return Ok(location);
        }
        let (on_gpu, groups) = self.groups_on_gpu();
        let cards = (0..self.cards.len()).filter(|card| !self.left_out.contains(card));
        let Some(first) = cards.clone().next().filter(|_| groups == 0 || on_gpu > 0) else {
            return Ok(TensorLocation::Cpu);
        };
        let mut with_operand = None;
        for &id in inputs {
            let (root, span) = (self.descs.root(id)?, self.span(id)?);
            let Some(spans) = self.spans.get(&root) else { continue };
            if let Some((_, card)) = spans.missing(&span, TensorLocation::Cpu).first() {
                return Ok(*card);
            }
            let has = |card: &usize| spans.missing(&span, TensorLocation::Gpu(*card)).is_empty();
            with_operand = with_operand.or(cards.clone().find(has));
            if groups > 0 && !cards.clone().any(|card| has(&card)) {
                return Ok(TensorLocation::Cpu);
            }
        }
        Ok(TensorLocation::Gpu(with_operand.unwrap_or(first)))
    }

    /// Moves groups to the host whose caches a node reads together with what lies in another place: weights are on the host in any case, and
    /// caches in one place only.
    fn gather_caches(&mut self, inputs: &[TensorId]) -> GgmlResult<()> {
        let (mut places, mut caches) = (BTreeSet::new(), Vec::new());
        for &id in inputs {
            let root = self.descs.root(id)?;
            if let Some(&group) = self.group_of.get(&root) {
                places.insert(self.groups[group].location);
                if !self.weights.contains_key(&root) {
                    caches.push(group);
                }
            }
        }
        for group in caches.into_iter().filter(|_| places.len() > 1) {
            // Else it would come back, and go again at the next run.
            self.groups[group].stays = true;
            self.spill(group)?;
        }
        Ok(())
    }

    /// The group of an operand that is no weight.
    fn group_of_cache(&self, inputs: &[TensorId]) -> GgmlResult<Option<usize>> {
        for &id in inputs {
            let root = self.descs.root(id)?;
            if let Some(&group) = self.group_of.get(&root)
                && !self.weights.contains_key(&root)
            {
                return Ok(Some(group));
            }
        }
        Ok(None)
    }

    fn try_node(&mut self, side: TensorLocation, node: &Launch, traced: &mut Vec<Traced>) -> GgmlResult<()> {
        let Launch { inputs, outputs, .. } = node;
        for &id in inputs {
            let (root, span) = (self.descs.root(id)?, self.span(id)?);
            if self.group_of.contains_key(&root) {
                continue;
            }
            if let TensorLocation::Gpu(card) = side {
                self.ensure_on_card(card, root)?;
            }
            let copies = self.fetch(root, &span, side)?;
            traced.extend(copies.into_iter().map(Traced::Copy));
        }
        for &id in outputs {
            let root = self.descs.root(id)?;
            if let TensorLocation::Gpu(card) = side
                && !self.group_of.contains_key(&root)
            {
                self.ensure_on_card(card, root)?;
            }
        }
        match side {
            TensorLocation::Gpu(card) => {
                self.cards[card].execute_launch(node)?;
                self.statistics.gpu_nodes += 1;
            }
            TensorLocation::Cpu => {
                self.cpu.execute_launch(node)?;
                self.statistics.cpu_nodes += 1;
            }
        }
        self.note_written(std::slice::from_ref(node), side)?;
        traced.push(Traced::Node(side));
        Ok(())
    }

    /// Makes steps of what a run has done: nodes of one place with no copy between are one step.
    fn plan(&mut self, program: &HybridProgram, before: Vec<Option<Spans>>, traced: &[Traced]) -> GgmlResult<Plan> {
        let mut steps = Vec::new();
        let mut next = 0;
        let mut open: Option<(TensorLocation, usize)> = None;
        let mut close =
            |open: &mut Option<(TensorLocation, usize)>, end: usize, steps: &mut Vec<Step>| -> GgmlResult<()> {
                let Some((side, start)) = open.take() else {
                    return Ok(());
                };
                let nodes = &program.nodes[start..end];
                steps.push(match side {
                    TensorLocation::Gpu(card) => {
                        let program = self.cards[card].program_of(nodes.iter())?;
                        Step::Gpu(card, start..end, program)
                    }
                    TensorLocation::Cpu => Step::Cpu(start..end, self.cpu.program_of(nodes.iter())?),
                });
                Ok(())
            };
        for event in traced {
            match event {
                Traced::Copy(copy) => {
                    close(&mut open, next, &mut steps)?;
                    steps.push(Step::Copy(copy.clone()));
                }
                Traced::Node(side) => {
                    if open.is_some_and(|(other, _)| other != *side) {
                        close(&mut open, next, &mut steps)?;
                    }
                    open.get_or_insert((*side, next));
                    next += 1;
                }
            }
        }
        close(&mut open, next, &mut steps)?;
        let roots = program.given.iter().chain(&program.produced);
        let after = roots.filter_map(|&root| Some((root, self.spans.get(&root)?.clone())));
        Ok(Plan {
            generation: self.generation,
            before,
            after: after.collect(),
            steps,
        })
    }

    fn run_plan(&mut self, nodes: &[Launch], plan: &mut Plan) -> GgmlResult<()> {
        // The first node that no step has run so far.
        let mut next = 0;
        for index in 0..plan.steps.len() {
            let (card, unfinished) = match &mut plan.steps[index] {
                Step::Cpu(range, program) => {
                    self.cpu.enqueue(program)?;
                    self.statistics.cpu_nodes += range.len() as u64;
                    next = range.end;
                    continue;
                }
                Step::Copy(copy) => match self.copy_bytes(copy) {
                    Ok(()) => continue,
                    Err(error) => (copy.card, Unfinished::not_begun(error)),
                },
                Step::Gpu(card, range, program) => match self.cards[*card].enqueue_program(program) {
                    Ok(()) => {
                        self.statistics.gpu_nodes += range.len() as u64;
                        next = range.end;
                        continue;
                    }
                    Err(unfinished) => (*card, unfinished),
                },
            };
            self.note_steps(nodes, &plan.steps[..index])?;
            return self.go_on(&nodes[next..], card, unfinished);
        }
        for (root, spans) in &plan.after {
            // Roots have their lists from the run that made the plan.
            self.spans.entry(*root).or_default().set(spans);
        }
        Ok(())
    }

    /// Goes on with nodes of which a card has run the first, and refuses the others.
    fn go_on(&mut self, nodes: &[Launch], card: usize, unfinished: Box<Unfinished>) -> GgmlResult<()> {
        let Unfinished { error, first, rest } = *unfinished;
        let (done, left) = nodes.split_at(first.min(nodes.len()));
        self.note_written(done, TensorLocation::Gpu(card))?;
        self.statistics.gpu_nodes += done.len() as u64;
        self.give_way(card, error)?;
        if let Some(rest) = rest {
            self.execute_node(&rest)?;
        }
        self.run_nodes(left, &mut Vec::new())
    }

    /// Notes what steps have written and copied; a plan that ends as it should has its result noted already.
    fn note_steps(&mut self, nodes: &[Launch], steps: &[Step]) -> GgmlResult<()> {
        for step in steps {
            match step {
                Step::Copy(copy) => self.note_copied(copy),
                Step::Gpu(card, range, _) => self.note_written(&nodes[range.clone()], TensorLocation::Gpu(*card))?,
                Step::Cpu(range, _) => self.note_written(&nodes[range.clone()], TensorLocation::Cpu)?,
            }
        }
        Ok(())
    }

    /// Notes that nodes have run in a place.
    fn note_written(&mut self, nodes: &[Launch], side: TensorLocation) -> GgmlResult<()> {
        for &id in nodes.iter().flat_map(|node| &node.outputs) {
            let (root, span) = (self.descs.root(id)?, self.span(id)?);
            if !self.group_of.contains_key(&root) {
                self.spans.entry(root).or_default().write(&span, side);
            }
        }
        Ok(())
    }
}
