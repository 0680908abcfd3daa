//! Running a plan, once for each seed.

use crate::error::Error;
use crate::machine::{Launch, Machine};
use crate::outcome::Outcome;
use crate::plan::Plan;
use rocmforge_hip_sys::*;
use rocmforge_sim::{Report, ReportKind};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What one seed gave.
#[derive(Debug)]
pub struct SeedRun {
    /// The seed.
    pub seed: u64,
    /// What is wrong; empty for a kernel without a fault that this seed shows.
    pub reports: Vec<Report>,
    /// The call that queued each launch, in the order of the launch file: what reports name it by.
    pub launches: Vec<u64>,
    /// Wave instructions of all launches.
    pub instructions: u64,
    /// The bytes of each buffer that is saved, in the order of [`LaunchFile::buffers`](crate::LaunchFile::buffers); none
    /// after a fault that stops the card.
    pub outputs: Vec<Option<Vec<u8>>>,
}

/// Runs all seeds, several at a time, and puts together what they found. The result does not depend on how many run at a
/// time.
///
/// # Errors
/// The machine cannot be made or refuses the sanitizer's own calls. A faulty kernel is not an error.
pub fn run(plan: &Plan) -> Result<Outcome, Error> {
    let seeds = &plan.file.seeds;
    let workers = std::thread::available_parallelism()
        .map_or(1, |n| n.get())
        .min(seeds.len());
    let next = AtomicUsize::new(0);
    let sum: Mutex<Sum> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, seed)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    seeds.get(index).map(|seed| (index, *seed))
                } {
                    let result = run_seed(plan, seed).map(|run| Summary::of(run, index == 0));
                    if result.is_err() {
                        next.store(seeds.len(), Ordering::Relaxed);
                    }
                    // A worker that panics takes the scope along: nobody sees a poisoned lock.
                    if let Ok(mut sum) = sum.lock() {
                        sum.add(index, result);
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_default();
    sum.failed.map_or(Ok(sum.outcome), Err)
}

/// A seed's run without its outputs, but for the first one's: a thousand seeds must not hold a thousand of them.
pub(crate) struct Summary {
    pub(crate) run: SeedRun,
    /// Hash of the outputs.
    pub(crate) outputs: u64,
}

impl Summary {
    fn of(mut run: SeedRun, keep: bool) -> Self {
        let mut hasher = DefaultHasher::new();
        run.outputs.hash(&mut hasher);
        if !keep {
            run.outputs = Vec::new();
        }
        Self {
            run,
            outputs: hasher.finish(),
        }
    }
}

/// Adds runs up in the order of the seeds, whenever each ends.
#[derive(Default)]
struct Sum {
    outcome: Outcome,
    failed: Option<Error>,
    next: usize,
    waiting: BTreeMap<usize, Result<Summary, Error>>,
}

impl Sum {
    fn add(&mut self, index: usize, result: Result<Summary, Error>) {
        self.waiting.insert(index, result);
        while let Some(result) = self.waiting.remove(&self.next) {
            self.next += 1;
            match result {
                Ok(summary) => self.outcome.add(summary),
                Err(error) => {
                    self.failed.get_or_insert(error);
                }
            }
        }
    }
}

/// Runs one seed.
///
/// # Errors
/// As [`run`].
pub fn run_seed(plan: &Plan, seed: u64) -> Result<SeedRun, Error> {
    let file = &plan.file;
    let bytes: u64 = file.buffers.iter().map(|buffer| buffer.bytes() as u64).sum();
    let machine = Machine::new(file, &plan.object.processor, bytes, seed)?;
    let module = machine.load(plan.object_place(), &plan.object.elf)?;
    let own = machine.stream(&file.place)?;
    let mut addresses = Vec::new();
    for (buffer, contents) in file.buffers.iter().zip(&plan.contents) {
        let address = machine.allocate(&buffer.place, buffer.bytes(), &buffer.label)?;
        if let Some(contents) = contents {
            machine.upload(&buffer.place, address, contents, own)?;
        }
        addresses.push(address);
    }
    let mut reports = Vec::new();
    let (streams, launches) = launch_all(&machine, plan, module, &addresses, &mut reports)?;
    let mut healthy = true;
    for stream in streams {
        healthy &= machine.synchronize(stream) == hipSuccess;
    }
    let mut outputs = Vec::new();
    for (buffer, address) in file.buffers.iter().zip(&addresses) {
        if buffer.save.is_none() {
            continue;
        }
        let mut bytes = vec![0; buffer.bytes()];
        let copied = healthy && machine.download(*address, &mut bytes, own) == hipSuccess;
        outputs.push(copied.then_some(bytes));
    }
    reports.extend(machine.take_reports());
    // The wait is the sanitizer's own; that the kernel does not end is a report of its own.
    reports.retain(|report| report.kind != ReportKind::EndlessWait);
    Ok(SeedRun {
        seed,
        reports,
        launches,
        instructions: machine.instructions(),
        outputs,
    })
}

/// Queues every launch, and gives the streams there are and the calls that did it.
fn launch_all(
    machine: &Machine,
    plan: &Plan,
    module: hipModule_t,
    addresses: &[u64],
    reports: &mut Vec<Report>,
) -> Result<(Vec<hipStream_t>, Vec<u64>), Error> {
    let launches = &plan.file.launches;
    let mut streams: HashMap<&str, hipStream_t> = HashMap::new();
    let (mut order, mut calls) = (Vec::new(), Vec::new());
    let mut events: Vec<Option<hipEvent_t>> = Vec::new();
    for (index, launch) in launches.iter().enumerate() {
        let at = &launch.place;
        let function = machine.function(at, module, &launch.kernel)?;
        let stream = match streams.get(launch.stream.as_str()) {
            Some(stream) => *stream,
            None => {
                let stream = machine.stream(at)?;
                streams.insert(&launch.stream, stream);
                order.push(stream);
                stream
            }
        };
        for before in &launch.after {
            if let Some(event) = events.get(*before).copied().flatten() {
                machine.wait(at, stream, event)?;
            }
        }
        let args = plan.arguments(index, addresses);
        let queued = Launch {
            grid: launch.grid,
            block: launch.block,
            lds: launch.lds,
            args: &args,
        };
        let status = machine.launch(function, &queued, stream);
        calls.push(machine.calls());
        if status != hipSuccess {
            // An earlier launch has stopped the card, or this one does not fit: the reports say which.
            reports.extend(machine.take_reports());
            if reports.is_empty() {
                return Err(Error::Refused {
                    at: at.clone(),
                    call: "hipModuleLaunchKernel",
                    status,
                    reasons: Vec::new(),
                });
            }
            break;
        }
        let waited_for = launches[index..].iter().any(|later| later.after.contains(&index));
        events.push(if waited_for {
            let event = machine.event(at)?;
            machine.record(at, event, stream)?;
            Some(event)
        } else {
            None
        });
    }
    Ok((order, calls))
}
