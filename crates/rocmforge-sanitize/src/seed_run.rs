//! One run of a plan: its steps, one after another, on a machine of its own.

use crate::error::{Error, Place};
use crate::launch_file::{Action, Copy};
use crate::machine::{Launch, Machine, Refusal, refuse};
use crate::plan::Plan;
use rocmforge_hip_sys::*;
use rocmforge_sim::{Report, ReportKind};
use std::collections::{BTreeSet, HashMap, HashSet};

/// What one seed gave.
#[derive(Debug)]
pub struct SeedRun {
    /// The seed.
    pub seed: u64,
    /// What is wrong; empty for a kernel without a fault that this seed shows.
    pub reports: Vec<Report>,
    /// Loads of LDS that no wave has written, if nothing has used their values. They are no faults.
    pub warnings: Vec<Report>,
    /// The call that queued each launch, in the order of the launch file: what reports name it by. 0 for one that was not queued.
    pub launches: Vec<u64>,
    /// The call that made each step, in their order; 0 for one that was not made.
    pub steps: Vec<u64>,
    /// Whether every step has run to its end. If not, what memory holds is no result.
    pub complete: bool,
    /// Findings in launches that are not checked, which are left out of `reports`.
    pub unchecked: usize,
    /// Wave instructions of all launches.
    pub instructions: u64,
    /// The bytes of each buffer that is saved, in the order of [`LaunchFile::buffers`](crate::LaunchFile::buffers); none
    /// if the run is not complete, or the buffer has been freed.
    pub outputs: Vec<Option<Vec<u8>>>,
    /// The launches that were left out because an earlier seed has shown that they do not end.
    pub(crate) left_out: BTreeSet<usize>,
    /// The object of each launch.
    pub(crate) objects: Vec<usize>,
}

/// Runs one seed.
///
/// # Errors
/// As [`run`](crate::run).
pub fn run_seed(plan: &Plan, seed: u64) -> Result<SeedRun, Error> {
    run_seed_without(plan, seed, &BTreeSet::new())
}

/// The same without some launches, and without what waits for them.
pub(crate) fn run_seed_without(plan: &Plan, seed: u64, without: &BTreeSet<usize>) -> Result<SeedRun, Error> {
    let file = &plan.file;
    let machine = Machine::new(plan, seed)?;
    let mut modules = Vec::new();
    for (object, named) in plan.objects.iter().zip(&file.objects) {
        modules.push(machine.load(&named.place, &object.elf)?);
    }
    let own = machine.stream(&file.place)?;
    let mut runner = Runner {
        plan,
        own,
        modules,
        without,
        addresses: vec![0; file.buffers.len()],
        alive: vec![false; file.buffers.len()],
        streams: HashMap::new(),
        order: Vec::new(),
        waited_for: (0..file.steps.len())
            .filter_map(|step| file.queued(step))
            .flat_map(|(_, after)| after.iter().copied())
            .collect(),
        events: vec![None; file.steps.len()],
        lost_streams: HashSet::new(),
        lost: BTreeSet::new(),
        reports: Vec::new(),
        launches: vec![0; file.launches.len()],
        steps: vec![0; file.steps.len()],
        machine,
    };
    runner.buffers()?;
    let mut complete = true;
    for step in 0..file.steps.len() {
        if !runner.step(step)? {
            complete = false;
            break;
        }
    }
    complete &= runner.lost.is_empty();
    for stream in &runner.order {
        complete &= runner.machine.synchronize(*stream) == hipSuccess;
    }
    let outputs = runner.outputs(&mut complete);
    Ok(runner.end(seed, complete, outputs))
}

/// The state of a run.
struct Runner<'p> {
    machine: Machine,
    plan: &'p Plan,
    /// The stream of the sanitizer's own copies.
    own: hipStream_t,
    modules: Vec<hipModule_t>,
    /// Launches that are not run.
    without: &'p BTreeSet<usize>,
    /// Where each buffer lies, or lay last.
    addresses: Vec<u64>,
    alive: Vec<bool>,
    streams: HashMap<&'p str, hipStream_t>,
    /// The streams in the order they were made.
    order: Vec<hipStream_t>,
    /// Steps that a later one waits for.
    waited_for: HashSet<usize>,
    /// The events behind them.
    events: Vec<Option<hipEvent_t>>,
    /// Streams in which a launch was left out: nothing behind it would have run.
    lost_streams: HashSet<&'p str>,
    /// Steps that were left out.
    lost: BTreeSet<usize>,
    reports: Vec<Report>,
    launches: Vec<u64>,
    steps: Vec<u64>,
}

impl<'p> Runner<'p> {
    /// Makes and fills the buffers that are there from the start.
    fn buffers(&mut self) -> Result<(), Error> {
        let at_first = self.plan.file.at_first();
        for index in &at_first {
            let place = &self.plan.file.buffers[*index].place;
            self.allocate(*index, place)
                .map_err(|refusal| self.machine.error(place, refusal))?;
        }
        for index in at_first {
            let place = &self.plan.file.buffers[index].place;
            self.fill(index).map_err(|refusal| self.machine.error(place, refusal))?;
        }
        Ok(())
    }

    fn allocate(&mut self, index: usize, at: &Place) -> Result<(), Refusal> {
        let buffer = &self.plan.file.buffers[index];
        self.addresses[index] = self.machine.allocate(at, buffer.bytes(), &buffer.label)?;
        self.alive[index] = true;
        Ok(())
    }

    fn fill(&self, index: usize) -> Result<(), Refusal> {
        for (offset, bytes) in self.plan.parts(index, &self.addresses) {
            let address = self.addresses[index] + offset as u64;
            self.machine.upload(address, &bytes, self.own)?;
        }
        Ok(())
    }

    /// Makes a step. False: nothing after it can be.
    fn step(&mut self, index: usize) -> Result<bool, Error> {
        let plan = self.plan;
        let step = &plan.file.steps[index];
        if let Some((stream, after)) = plan.file.queued(index) {
            let left_out = matches!(step.action, Action::Launch(launch) if self.without.contains(&launch));
            if left_out || self.lost_streams.contains(stream) || after.iter().any(|step| self.lost.contains(step)) {
                self.lost_streams.insert(stream);
                self.lost.insert(index);
                return Ok(true);
            }
        }
        let made = match &step.action {
            Action::Launch(launch) => return self.launch(index, *launch),
            Action::Copy(copy) => return self.copy(index, copy, &step.place),
            Action::Alloc { buffer } => {
                let made = self.allocate(*buffer, &step.place);
                self.steps[index] = self.machine.calls();
                made.and_then(|()| self.fill(*buffer))
            }
            // What was left out would not have ended, and so would nothing that waits for it.
            Action::Free { .. } if !self.lost.is_empty() && !plan.file.strict => return Ok(false),
            Action::Free { buffer } => {
                let status = self.machine.free(self.addresses[*buffer]);
                self.steps[index] = self.machine.calls();
                self.alive[*buffer] = false;
                // A second free is a report, and the program goes on.
                if status == hipErrorInvalidValue {
                    Ok(())
                } else {
                    refuse("hipFree", status)
                }
            }
            Action::Wait(name) => {
                let waits_for_lost = match name {
                    Some(name) => self.lost_streams.contains(name.as_str()),
                    None => !self.lost.is_empty(),
                };
                if waits_for_lost {
                    return Ok(false);
                }
                self.wait(name.as_deref())
            }
        };
        self.goes_on(&step.place, made)
    }

    fn wait(&self, name: Option<&str>) -> Result<(), Refusal> {
        let streams = match name {
            Some(name) => self.streams.get(name).copied().into_iter().collect(),
            None => self.order.clone(),
        };
        let mut streams = streams.into_iter();
        streams.try_for_each(|stream| refuse("hipStreamSynchronize", self.machine.synchronize(stream)))
    }

    /// Whether the program goes on after a call.
    fn goes_on(&mut self, at: &Place, made: Result<(), Refusal>) -> Result<bool, Error> {
        let Err(refusal) = made else { return Ok(true) };
        // Something earlier has stopped the card, or this does not fit: the reports say which.
        self.reports.extend(self.machine.take_reports());
        if self.reports.is_empty() {
            return Err(self.machine.error(at, refusal));
        }
        Ok(false)
    }

    /// The stream of a name, after what the step waits for.
    fn stream(&mut self, name: &'p str, after: &[usize], at: &Place) -> Result<hipStream_t, Error> {
        let stream = match self.streams.get(name) {
            Some(stream) => *stream,
            None => {
                let stream = self.machine.stream(at)?;
                self.streams.insert(name, stream);
                self.order.push(stream);
                stream
            }
        };
        for before in after {
            if let Some(event) = self.events[*before] {
                self.machine.wait(at, stream, event)?;
            }
        }
        Ok(stream)
    }

    /// Marks the end of a step for those that wait for it.
    fn record(&mut self, index: usize, stream: hipStream_t, at: &Place) -> Result<(), Error> {
        if self.waited_for.contains(&index) {
            let event = self.machine.event(at)?;
            self.machine.record(at, event, stream)?;
            self.events[index] = Some(event);
        }
        Ok(())
    }

    fn launch(&mut self, index: usize, number: usize) -> Result<bool, Error> {
        let plan = self.plan;
        let launch = &plan.file.launches[number];
        let at = &launch.place;
        let module = self.modules[plan.object_of[number]];
        let function = self.machine.function(at, module, &launch.kernel)?;
        let stream = self.stream(&launch.stream, &launch.after, at)?;
        let args = plan.arguments(number, &self.addresses);
        let queued = Launch {
            grid: launch.grid,
            block: launch.block,
            lds: launch.lds,
            args: &args,
        };
        let status = self.machine.launch(function, &queued, stream);
        self.launches[number] = self.machine.calls();
        self.steps[index] = self.machine.calls();
        let goes_on = self.goes_on(at, refuse("hipModuleLaunchKernel", status))?;
        if goes_on {
            self.record(index, stream, at)?;
        }
        Ok(goes_on)
    }

    fn copy(&mut self, index: usize, copy: &'p Copy, at: &Place) -> Result<bool, Error> {
        let stream = self.stream(&copy.stream, &copy.after, at)?;
        let address = |(buffer, offset): (usize, u64)| self.addresses[buffer] + offset;
        let status = self
            .machine
            .copy(address(copy.to), address(copy.from), copy.bytes, stream);
        self.steps[index] = self.machine.calls();
        let goes_on = self.goes_on(at, refuse("hipMemcpyAsync", status))?;
        if goes_on {
            self.record(index, stream, at)?;
        }
        Ok(goes_on)
    }

    /// What the buffers that are saved hold.
    fn outputs(&self, complete: &mut bool) -> Vec<Option<Vec<u8>>> {
        let mut outputs = Vec::new();
        for (index, buffer) in self.plan.file.buffers.iter().enumerate() {
            if buffer.save.is_none() {
                continue;
            }
            let mut bytes = vec![
                0;
                if *complete && self.alive[index] {
                    buffer.bytes()
                } else {
                    0
                }
            ];
            if bytes.is_empty() {
                outputs.push(None);
                continue;
            }
            let copied = self.machine.download(self.addresses[index], &mut bytes, self.own) == hipSuccess;
            *complete &= copied;
            outputs.push(copied.then_some(bytes));
        }
        outputs
    }

    fn end(mut self, seed: u64, complete: bool, outputs: Vec<Option<Vec<u8>>>) -> SeedRun {
        self.reports.extend(self.machine.take_reports());
        // The wait is the sanitizer's own; that the kernel does not end is a report of its own.
        self.reports.retain(|report| report.kind != ReportKind::EndlessWait);
        let file = &self.plan.file;
        if self.plan.options.leak_check && complete {
            let allocates = |step: &usize| matches!(file.steps[*step].action, Action::Alloc { .. });
            let allocating = (0..file.steps.len()).filter(allocates);
            let calls: Vec<u64> = allocating.map(|step| self.steps[step]).collect();
            let leaks = self.machine.leaks().into_iter();
            self.reports.extend(leaks.filter(|leak| calls.contains(&leak.call)));
        }
        let mut unchecked = 0;
        // When the card has stopped, whatever did it is reported: nothing after it has run.
        if let Some(checked) = self.plan.options.checked.as_ref().filter(|_| complete) {
            let launch_of = |call: u64| self.launches.iter().position(|launch| *launch == call && call > 0);
            self.reports.retain(|report| {
                let sides = [Some(report.call), report.other.as_ref().map(|other| other.call)];
                let mut launches = sides.into_iter().flatten().filter_map(launch_of).peekable();
                let keep = launches.peek().is_none() || launches.any(|launch| checked.get(launch) == Some(&true));
                unchecked += usize::from(!keep);
                keep
            });
        }
        let warnings = self.machine.warnings();
        SeedRun {
            seed,
            reports: self.reports,
            warnings,
            launches: self.launches,
            steps: self.steps,
            complete,
            unchecked,
            instructions: self.machine.instructions(),
            outputs,
            left_out: self.without.clone(),
            objects: self.plan.object_of.clone(),
        }
    }
}
