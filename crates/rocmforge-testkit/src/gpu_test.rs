//! Builder of a GPU test: its needs, the devices where it is known to fail, and its body.

use crate::data::{Rng, rng};
use crate::lease::{GpuLease, gpu_with};
use crate::needs::{Feature, On};
use crate::options::LeaseOptions;
use crate::watchdog::Watchdog;
use rocmforge_gpu_test::record::{Record, append};
use rocmforge_memory::Bytes;
use rocmforge_sim::SimConfig;
use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// How long a whole test may take, unless it says otherwise: far beyond any, also on a loaded machine.
const DEADLINE: Duration = Duration::from_secs(300);

/// A GPU test. Works under `cargo test`, nextest and the supervisor alike, because it is an ordinary function call.
///
/// ```
/// use rocmforge_testkit::{Bytes, Feature, GpuTest, On};
/// use rocmforge_runtime::{DeviceTensor, HipError};
///
/// GpuTest::new()
///     .vram(Bytes(1 << 20))
///     .feature(Feature::Wave32)
///     .fails_on(On::Arch("gfx1030"), "no matrix instructions there yet")
///     .seeds(3)
///     .run(|gpu, random| {
///         let host = random.vec(33);
///         let x = DeviceTensor::from_host(gpu.backend(), &host, &[33])?;
///         assert_eq!(x.to_host()?, host);
///         Ok::<(), HipError>(())
///     });
/// ```
#[derive(Clone)]
#[must_use = "`run` runs it"]
pub struct GpuTest {
    options: LeaseOptions,
    deadline: Duration,
    vram: Bytes,
    features: Vec<Feature>,
    only: Vec<(On, &'static str)>,
    fails: Vec<(On, &'static str)>,
    seeds: u64,
}

impl Default for GpuTest {
    fn default() -> Self {
        Self::new()
    }
}

impl GpuTest {
    /// A test that runs on every device, once.
    pub fn new() -> Self {
        Self {
            options: LeaseOptions::default(),
            deadline: DEADLINE,
            vram: Bytes(0),
            features: Vec::new(),
            only: Vec::new(),
            fails: Vec::new(),
            seeds: 1,
        }
    }

    /// Skipped where the budget has fewer bytes left.
    pub fn vram(self, bytes: Bytes) -> Self {
        Self { vram: bytes, ..self }
    }

    /// Skipped on processors without it.
    pub fn feature(mut self, feature: Feature) -> Self {
        self.features.push(feature);
        self
    }

    /// Skipped elsewhere, for this reason.
    pub fn only(mut self, on: On, reason: &'static str) -> Self {
        self.only.push((on, reason));
        self
    }

    /// Expected failure there, for this reason: the test counts as passed if it fails, and as failed if it passes.
    pub fn fails_on(mut self, on: On, reason: &'static str) -> Self {
        self.fails.push((on, reason));
        self
    }

    /// Runs with the seeds 0 to `count` - 1, each with a lease of its own.
    pub fn seeds(self, count: u64) -> Self {
        Self { seeds: count, ..self }
    }

    /// How long any wait of the runtime may take; one minute if not said.
    pub fn wait_deadline(mut self, deadline: Duration) -> Self {
        self.options.deadline = deadline;
        self
    }

    /// How long a run of the body may take; five minutes if not said. When it passes, the last launches and the ledger are
    /// printed; the test fails when it ends. One that never ends is the supervisor's.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// The machine to simulate, if the device is simulated.
    pub fn sim(mut self, sim: SimConfig) -> Self {
        self.options.sim = sim;
        self
    }

    /// Runs the body: with a lease, and random data of the seed.
    ///
    /// # Panics
    ///
    /// If the test fails: the body panics or returns an error, the lease ends with a fault, the deadline passes, or all goes
    /// well where a failure was expected. The seed is in the message.
    #[track_caller]
    pub fn run<R: Verdict>(self, body: impl Fn(&GpuLease, &mut Rng) -> R) {
        for seed in 0..self.seeds.max(1) {
            let lease = gpu_with(self.options.clone());
            if let Some(reason) = self.unmet(&lease) {
                append(&Record::Skip { reason });
                return;
            }
            let expected = self.fails.iter().find(|(on, _)| on.matches(&lease)).copied();
            let failure = self.attempt(lease, seed, &body);
            match (failure, expected) {
                (None, None) => {}
                (Some(failure), Some((on, reason))) => {
                    append(&Record::ExpectedFailure {
                        reason: format!("on {on}: {reason}"),
                        failure: failure.text(),
                    });
                    return;
                }
                (None, Some((on, reason))) => {
                    panic!("it passes, and was expected to fail on {on} ({reason}): take the expectation away")
                }
                (Some(Failure::Panic(panic)), None) => resume_unwind(panic),
                (Some(Failure::Text(text)), None) => panic!("seed {seed}: {text}"),
            }
        }
    }

    /// What the device lacks.
    fn unmet(&self, lease: &GpuLease) -> Option<String> {
        let device = lease.backend().device();
        if let Some((on, reason)) = self.only.iter().find(|(on, _)| !on.matches(lease)) {
            return Some(format!(
                "it needs {on}, this is {} ({}): {reason}",
                device.name, device.arch
            ));
        }
        if let Some(feature) = self.features.iter().find(|feature| !feature.is_in(&device.arch)) {
            return Some(format!("{} has no {feature:?}", device.arch));
        }
        let left = lease.backend().card().budget().available;
        (left < self.vram).then(|| format!("it needs {} of memory, the budget has {left}", self.vram))
    }

    /// One run of the body, and all that can be wrong with it.
    fn attempt<R: Verdict>(
        &self,
        lease: GpuLease,
        seed: u64,
        body: impl Fn(&GpuLease, &mut Rng) -> R,
    ) -> Option<Failure> {
        let watchdog = Watchdog::start(self.deadline, lease.backend());
        let ran = catch_unwind(AssertUnwindSafe(|| body(&lease, &mut rng(seed)).failure()));
        let late = watchdog.stop();
        let ended = lease.finish();
        match (ran, ended) {
            (Err(panic), ended) => {
                if let Err(fault) = ended {
                    #[allow(clippy::print_stderr)] // the panic is what the test fails with
                    {
                        eprintln!("also, when the lease ended: {fault}");
                    }
                }
                Some(Failure::Panic(panic))
            }
            (Ok(Some(error)), Err(fault)) => Some(Failure::Text(format!("{error}\nalso, {fault}"))),
            (Ok(Some(error)), Ok(())) => Some(Failure::Text(error)),
            (Ok(None), Err(fault)) => Some(Failure::Text(fault.to_string())),
            (Ok(None), Ok(())) if late => Some(Failure::Text(format!("it took more than {:?}", self.deadline))),
            (Ok(None), Ok(())) => None,
        }
    }
}

enum Failure {
    Panic(Box<dyn Any + Send>),
    Text(String),
}

impl Failure {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Panic(panic) => match panic.downcast::<String>() {
                Ok(text) => *text,
                Err(panic) => panic
                    .downcast::<&str>()
                    .map_or_else(|_| "a panic".to_owned(), |text| (*text).to_owned()),
            },
        }
    }
}

/// What a test's body returns: nothing, or a result whose error fails the test.
pub trait Verdict {
    /// The error, if there is one.
    fn failure(self) -> Option<String>;
}

impl Verdict for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Debug> Verdict for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| format!("{error:?}"))
    }
}
