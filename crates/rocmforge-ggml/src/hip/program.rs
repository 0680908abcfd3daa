//! Programs: a graph's launches, captured at the second run and replayed with one call from then on.

use std::sync::{Arc, Weak};

use rocmforge_runtime::HipGraphExec;

use super::faults::Site;
use super::lower::{Resume, Step};
use super::{HipGgmlBackend, failed, is_stopped};
use crate::{GgmlError, GgmlResult, Kernel, Launch, TensorId, shape};

/// A graph's launches for a device.
///
/// The first run enqueues each launch by itself, and makes what is kept from run to run (rotary tables, constants, the fault word).
/// The second is captured as a HIP graph and replayed; the later ones replay it. Memory that changes begins anew.
#[derive(Debug)]
pub struct HipProgram {
    launches: Vec<Launch>,
    /// Of each launch, which one of those given it is, and at the end how many were given: some have no element to compute.
    places: Vec<usize>,
    /// Each with what is left when a run ends before it.
    steps: Vec<(Resume, Step)>,
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

/// A run of a program that has ended before its end.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) error: GgmlError,
    /// The first of the program's launches that is left. What it may have done is done again when it is run.
    pub(crate) first: usize,
    /// What is left of the launch before, beside the later ones: that one must not be run again.
    pub(crate) rest: Option<Launch>,
}

impl Unfinished {
    /// Nothing has been launched.
    pub(crate) fn not_begun(error: GgmlError) -> Box<Self> {
        Box::new(Self {
            error,
            first: 0,
            rest: None,
        })
    }
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
        let (mut launches, mut places, mut given_so_far) = (Vec::new(), Vec::new(), 0);
        for launch in given {
            if self.check_launch(launches.len(), &launch.kernel, &launch.inputs, &launch.outputs)? {
                launches.push(launch.clone());
                places.push(given_so_far);
            }
            given_so_far += 1;
        }
        places.push(given_so_far);
        Ok(HipProgram {
            steps: self.lower(&launches)?,
            launches,
            places,
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
        let (inputs, outputs) = (self.slots.descs(inputs)?, self.slots.descs(outputs)?);
        if let Kernel::Op(op) = kernel {
            shape::check_outputs(index, op, &inputs, &outputs, false)?;
        }
        Ok(outputs.iter().any(|output| output.element_count() > 0))
    }

    /// Runs a program. Where the card refuses a launch, the error says which ones are left.
    pub(crate) fn enqueue_program(&mut self, program: &mut HipProgram) -> Result<(), Box<Unfinished>> {
        let replayed = self.replay_program(program).map_err(Unfinished::not_begun)?;
        if replayed {
            return Ok(());
        }
        self.counted(|backend| backend.launch_all(program))?;
        if matches!(program.state, State::New) {
            program.state = State::Warm;
        }
        Ok(())
    }

    /// Replays a program that is captured, or can be. Whether it did; an error comes before anything is enqueued.
    fn replay_program(&mut self, program: &mut HipProgram) -> GgmlResult<bool> {
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
                    // A card that refuses launches for a while can capture them later.
                    if is_stopped(&error) {
                        return Err(error);
                    }
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
            return Ok(true);
        }
        Ok(false)
    }

    /// Captures the launches of all nodes. None of them runs.
    fn capture(&mut self, program: &HipProgram) -> GgmlResult<CapturedGraph> {
        let backend = Arc::clone(&self.backend);
        let capture = backend
            .stream()
            .capture("ggml graph")
            .map_err(failed("capturing a graph"))?;
        let before = backend.launches();
        self.launch_all(program).map_err(|unfinished| unfinished.error)?;
        let launches = backend.launches().saturating_sub(before);
        let graph = capture.finish().map_err(failed("capturing a graph"))?;
        let exec = graph.instantiate().map_err(failed("capturing a graph"))?;
        let sites = self.faults.take_captured();
        Ok(CapturedGraph { exec, sites, launches })
    }

    fn launch_all(&mut self, program: &HipProgram) -> Result<(), Box<Unfinished>> {
        let mut steps = program.steps.iter();
        steps.try_for_each(|(left, step)| {
            let enqueued = self.enqueue_step(step, &program.launches);
            enqueued.map_err(|error| {
                Box::new(Unfinished {
                    error,
                    first: program.places[left.first],
                    rest: left.norm.map(|norm| norm.launch()),
                })
            })
        })
    }
}
