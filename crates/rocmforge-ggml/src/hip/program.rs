//! Programs: a graph's launches, captured at the second run and replayed with one call from then on.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use rocmforge_runtime::HipGraphExec;

use super::faults::Site;
use super::{HipGgmlBackend, failed};
use crate::{GgmlError, GgmlResult, Node, TensorDesc, TensorId, shape};

/// A graph's nodes for a device.
///
/// The first run enqueues each node by itself, and makes what is kept from run to run (rotary tables, constants, the fault word).
/// The second is captured as a HIP graph and replayed; the later ones replay it. Memory that changes begins anew.
#[derive(Debug)]
pub struct HipProgram {
    nodes: Vec<Node>,
    state: State,
    /// [`HipGgmlBackend::changes`] when `state` came to be.
    changes: u64,
    /// The program's name among [`CapturedGraphs`]; gone with it.
    key: Arc<()>,
}

#[derive(Debug)]
enum State {
    /// Not run yet.
    New,
    /// Run once, node by node.
    Warm,
    /// Captured: its graph is the backend's.
    Captured,
    /// Cannot be captured, because of this error: node by node at every run.
    Direct(GgmlError),
}

/// A program's captured graph, which keeps every buffer that it names.
#[derive(Debug)]
struct CapturedGraph {
    exec: HipGraphExec,
    sites: Arc<[Site]>,
    program: Weak<()>,
}

/// The captured graphs of all programs. The backend has them, and not the programs: a tensor that is freed gives its memory back at
/// once, whoever keeps a program that used it.
#[derive(Debug, Default)]
pub(super) struct CapturedGraphs(HashMap<usize, CapturedGraph>);

impl CapturedGraphs {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn insert(&mut self, program: &Arc<()>, exec: HipGraphExec, sites: Arc<[Site]>) {
        self.0.retain(|_, graph| graph.program.strong_count() > 0);
        let program_of = Arc::downgrade(program);
        let graph = CapturedGraph {
            exec,
            sites,
            program: program_of,
        };
        self.0.insert(key_of(program), graph);
    }

    fn get(&self, program: &Arc<()>) -> Option<&CapturedGraph> {
        self.0
            .get(&key_of(program))
            .filter(|graph| graph.program.strong_count() > 0)
    }
}

/// The address is the program's alone while its key lives.
fn key_of(program: &Arc<()>) -> usize {
    Arc::as_ptr(program) as usize
}

impl HipProgram {
    /// Whether the next run is one replay.
    #[must_use]
    pub const fn is_captured(&self) -> bool {
        matches!(self.state, State::Captured)
    }

    /// Why the nodes cannot be captured, if they cannot.
    #[must_use]
    pub const fn not_captured_because(&self) -> Option<&GgmlError> {
        match &self.state {
            State::Direct(error) => Some(error),
            _ => None,
        }
    }
}

impl HipGgmlBackend {
    /// A program of some nodes whose tensors are all here.
    pub(crate) fn program_of<'a>(&self, given: impl Iterator<Item = &'a Node>) -> GgmlResult<HipProgram> {
        let mut nodes = Vec::new();
        for node in given {
            self.check_node(nodes.len(), node)?;
            if !self.is_empty(node)? {
                nodes.push(node.clone());
            }
        }
        Ok(HipProgram {
            nodes,
            state: State::New,
            changes: self.changes,
            key: Arc::new(()),
        })
    }

    /// Checks a node's operands against its op.
    pub(super) fn check_node(&self, index: usize, node: &Node) -> GgmlResult<()> {
        let descs = self.descs(&node.inputs)?;
        shape::infer(index, &node.op, &descs)?;
        if let &[output] = node.outputs.as_slice() {
            return self.slots.desc(output).map(drop);
        }
        Err(GgmlError::InvalidArity {
            node: index,
            op: node.op.name(),
            expected: "1 output",
            inputs: node.inputs.len(),
            outputs: node.outputs.len(),
            operands: descs.into_iter().collect(),
        })
    }

    fn descs(&self, ids: &[TensorId]) -> GgmlResult<Vec<&TensorDesc>> {
        ids.iter().map(|&id| self.slots.desc(id)).collect()
    }

    /// Whether a node computes no element.
    pub(super) fn is_empty(&self, node: &Node) -> GgmlResult<bool> {
        let empty = |id: &TensorId| Ok(self.slots.desc(*id)?.element_count() == 0);
        node.outputs.first().map_or(Ok(true), empty)
    }

    pub(super) fn enqueue_program(&mut self, program: &mut HipProgram) -> GgmlResult<()> {
        if program.changes != self.changes {
            program.state = State::New;
            program.changes = self.changes;
        }
        // The tags of a captured graph's launches count from 0.
        if !self.faults.is_empty() {
            self.check_faults()?;
        }
        if matches!(program.state, State::Warm) {
            program.state = match self.capture(&program.nodes) {
                Ok((exec, sites)) => {
                    self.captured.insert(&program.key, exec, sites);
                    State::Captured
                }
                Err(error) => {
                    self.faults.take_captured();
                    State::Direct(error)
                }
            };
        }
        if let Some(graph) = self.captured.get(&program.key) {
            let launched = graph.exec.launch(self.backend.stream());
            launched.map_err(failed("replaying a graph"))?;
            self.faults.replay(&graph.sites);
            self.launches += program.nodes.len() as u64;
            self.replays += 1;
            return Ok(());
        }
        self.launch_all(&program.nodes)?;
        self.launches += program.nodes.len() as u64;
        if matches!(program.state, State::New) {
            program.state = State::Warm;
        }
        Ok(())
    }

    /// Captures the launches of all nodes. None of them runs.
    fn capture(&mut self, nodes: &[Node]) -> GgmlResult<(HipGraphExec, Arc<[Site]>)> {
        let backend = Arc::clone(&self.backend);
        let capture = backend
            .stream()
            .capture("ggml graph")
            .map_err(failed("capturing a graph"))?;
        self.launch_all(nodes)?;
        let graph = capture.finish().map_err(failed("capturing a graph"))?;
        let exec = graph.instantiate().map_err(failed("capturing a graph"))?;
        Ok((exec, self.faults.take_captured()))
    }

    fn launch_all(&mut self, nodes: &[Node]) -> GgmlResult<()> {
        for node in nodes {
            self.launch(&node.op, &node.inputs, node.outputs[0])?;
        }
        Ok(())
    }
}
