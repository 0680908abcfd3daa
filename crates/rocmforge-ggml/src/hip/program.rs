//! Programs: a graph's launches, captured at the second run and replayed with one call from then on.

use std::sync::{Arc, Weak};

use rocmforge_runtime::HipGraphExec;

use super::faults::Site;
use super::lower::Step;
use super::{HipGgmlBackend, failed};
use crate::{GgmlError, GgmlResult, Kernel, Launch, TensorDesc, TensorId, shape};

/// A graph's launches for a device.
///
/// The first run enqueues each launch by itself, and makes what is kept from run to run (rotary tables, constants, the fault word).
/// The second is captured as a HIP graph and replayed; the later ones replay it. Memory that changes begins anew.
#[derive(Debug)]
pub struct HipProgram {
    launches: Vec<Launch>,
    steps: Vec<Step>,
    state: State,
    /// [`HipGgmlBackend::changes`] when `steps` and `state` came to be.
    changes: u64,
}

#[derive(Debug)]
enum State {
    /// Not run yet.
    New,
    /// Run once, node by node.
    Warm,
    /// Captured. The graph keeps every buffer that it names, so the backend has it, and not the program: a tensor that is freed gives its
    /// memory back at once, whoever keeps a program that used it.
    Captured(Weak<CapturedGraph>),
    /// Cannot be captured, because of this error: node by node at every run.
    Direct(GgmlError),
}

/// A program's captured graph.
#[derive(Debug)]
pub(super) struct CapturedGraph {
    exec: HipGraphExec,
    sites: Arc<[Site]>,
    /// Kernels.
    launches: u64,
}

impl HipProgram {
    /// Whether the next run is one replay.
    #[must_use]
    pub fn is_captured(&self) -> bool {
        matches!(&self.state, State::Captured(graph) if graph.strong_count() > 0)
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
    /// A program of some launches whose tensors are all here.
    pub(crate) fn program_of<'a>(&mut self, given: impl Iterator<Item = &'a Launch>) -> GgmlResult<HipProgram> {
        let mut launches = Vec::new();
        for launch in given {
            if self.check_launch(launches.len(), &launch.kernel, &launch.inputs, &launch.outputs)? {
                launches.push(launch.clone());
            }
        }
        Ok(HipProgram {
            steps: self.lower(&launches)?,
            launches,
            state: State::New,
            changes: self.changes,
        })
    }

    /// Checks a launch's operands against its op; one of several nodes is made of checked ones.
    ///
    /// Returns whether it has an element to compute.
    pub(super) fn check_launch(
        &self,
        index: usize,
        kernel: &Kernel,
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) -> GgmlResult<bool> {
        let descs =
            |ids: &[TensorId]| -> GgmlResult<Vec<&TensorDesc>> { ids.iter().map(|&id| self.slots.desc(id)).collect() };
        let (inputs, outputs) = (descs(inputs)?, descs(outputs)?);
        if let Kernel::Op(op) = kernel {
            shape::check_outputs(index, op, &inputs, &outputs, false)?;
        }
        Ok(outputs.iter().any(|output| output.element_count() > 0))
    }

    pub(super) fn enqueue_program(&mut self, program: &mut HipProgram) -> GgmlResult<()> {
        if program.changes != self.changes {
            program.steps = self.lower(&program.launches)?;
            program.state = State::New;
            program.changes = self.changes;
        }
        // The tags of a captured graph's launches count from 0.
        if !self.faults.is_empty() {
            self.check_faults()?;
        }
        if matches!(program.state, State::Warm) {
            program.state = match self.capture(program) {
                Ok(graph) => {
                    let graph = Arc::new(graph);
                    let captured = State::Captured(Arc::downgrade(&graph));
                    // Graphs of programs that are gone go too.
                    self.captured.retain(|graph| Arc::weak_count(graph) > 0);
                    self.captured.push(graph);
                    self.captures += 1;
                    captured
                }
                Err(error) => {
                    self.faults.take_captured();
                    State::Direct(error)
                }
            };
        }
        if let State::Captured(graph) = &program.state
            && let Some(graph) = graph.upgrade()
        {
            let launched = graph.exec.launch(self.backend.stream());
            launched.map_err(failed("replaying a graph"))?;
            self.faults.replay(&graph.sites);
            self.launches += graph.launches;
            self.replays += 1;
            return Ok(());
        }
        self.counted(|backend| backend.launch_all(program))?;
        if matches!(program.state, State::New) {
            program.state = State::Warm;
        }
        Ok(())
    }

    /// Captures the launches of all nodes. None of them runs.
    fn capture(&mut self, program: &HipProgram) -> GgmlResult<CapturedGraph> {
        let backend = Arc::clone(&self.backend);
        let capture = backend
            .stream()
            .capture("ggml graph")
            .map_err(failed("capturing a graph"))?;
        let before = backend.launches();
        self.launch_all(program)?;
        let launches = backend.launches().saturating_sub(before);
        let graph = capture.finish().map_err(failed("capturing a graph"))?;
        let exec = graph.instantiate().map_err(failed("capturing a graph"))?;
        let sites = self.faults.take_captured();
        Ok(CapturedGraph { exec, sites, launches })
    }

    fn launch_all(&mut self, program: &HipProgram) -> GgmlResult<()> {
        let mut steps = program.steps.iter();
        steps.try_for_each(|step| self.enqueue_step(step, &program.launches))
    }
}
