//! Planted faults on the device: each must end as it should, the next test must work, the card's memory must come back.

use super::supervisor::Supervisor;
use crate::Outcome;
use crate::bundle::contents::Contents;
use crate::supervisor::find::discover::Test;
use crate::supervisor::judge::verdict::TestGpuError;
use crate::supervisor::report::folder::ReportFolder;
use crate::supervisor::report::{TestResult, Verdict};
use crate::supervisor::run::plan::{LOGS, Plan, log_of};
use crate::text::line;
use rocmforge_memory::Bytes;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The report of planted faults.
const FAULTS: &str = "faults.json";

/// How a test with a planted fault must end.
enum Expected {
    /// Passed, or skipped where the device has nothing to test.
    Well,
    /// Failed, with one of these in its first error.
    Saying(&'static [&'static str]),
    /// Ended by its own signal.
    By(i32),
    /// Ended by the supervisor at its deadline.
    Late,
}

/// The test that runs after each fault.
const HEALTHY: &str = "healthy";
/// Not run by itself: a process of another test.
const PART: &str = "budget::process";
/// Every other test of the target, in this order, and how it ends. What a device says differs.
const PLANTED: [(&str, Expected); 7] = [
    (
        "an_endless_kernel_meets_the_deadline_of_a_wait",
        Expected::Saying(&["was not done after 2"]),
    ),
    ("an_endless_kernel_that_nobody_gives_up", Expected::Late),
    (
        "an_address_that_is_nobodys",
        Expected::Saying(&["hipErrorIllegalAddress"]),
    ),
    ("killed_in_the_middle_of_a_copy", Expected::By(libc::SIGKILL)),
    ("an_allocation_beyond_the_card", Expected::Saying(&["budget"])),
    (
        "an_allocation_beyond_the_card_that_no_budget_sees",
        Expected::Saying(&["the driver was asked for"]),
    ),
    (
        "budget::two_share_the_budget_and_shed_what_a_third_one_takes",
        Expected::Well,
    ),
];
/// Time for a fault: a card is opened and code compiled for it first.
const FAULTY: Duration = Duration::from_secs(15);
/// Time for a test that ends well.
const SOUND: Duration = Duration::from_secs(120);
/// Time for the card's memory to come back after a process.
const RETURN: Duration = Duration::from_secs(15);
/// What the card's memory may differ by and be where it was: two of the driver's granules.
const GRANULES: Bytes = Bytes::mib(4);
/// Time between two looks at the card's memory.
const LOOK: Duration = Duration::from_millis(200);

/// What became of one planted fault.
#[derive(Debug, Serialize)]
struct Report {
    test: String,
    /// How it ended, and the first thing it said of it.
    ended: String,
    seconds: f64,
    /// How the test after it ended.
    next: String,
    /// The card's memory in use before it and after the next test, in bytes, where the driver tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<(u64, u64)>,
    /// What is not as it should be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wrong: Vec<String>,
}

impl Supervisor<'_> {
    /// Plants each fault, one at a time, and reports.
    pub(crate) fn faults(&self, plan: &Plan) -> Outcome {
        let directory = plan.directory.as_path();
        // Before the tests are built, which takes long.
        ReportFolder::check(directory, &[FAULTS])?;
        let tests = self.listed("faults", Contents::faults, Vec::new(), None)?;
        let planted = order(tests)?;
        let lock = self.lock(&plan.device)?;
        let runs = planted.faults.iter().map(|(test, _)| test).chain([&planted.healthy]);
        let files = runs.map(|test| log_of(&test.id(), 0)).chain([FAULTS.to_owned()]);
        let mut folder = ReportFolder::claim(directory, &[LOGS], files)?;
        let one_at_a_time = Plan {
            wanted_jobs: Some(1),
            ..plan.clone()
        };
        let mut runner = self.runner(one_at_a_time, Arc::new(lock), folder.open(LOGS)?);
        let mut run = |test: &Test, deadline: Duration| {
            runner.plan.deadline = deadline;
            runner.run(std::slice::from_ref(test), |_| {}).remove(0)
        };
        let mut reports = Vec::new();
        for (test, ends) in &planted.faults {
            let before = self.memory_of(&plan.device);
            let deadline = if matches!(ends, Expected::Well) { SOUND } else { FAULTY };
            let result = run(test, deadline.min(plan.deadline));
            let next = run(&planted.healthy, plan.deadline);
            let after = before.and_then(|before| self.memory_returned(plan, before));
            reports.push(judge(&result, ends, &next, before.zip(after)));
            if let Some(report) = reports.last() {
                tell!("{report}");
            }
        }
        folder.write(FAULTS, &serde_json::to_vec_pretty(&reports)?)?;
        folder.finish()?;
        if let Some(signal) = self.interrupt.signal() {
            return Err(TestGpuError::Interrupted(signal).into());
        }
        let wrong = reports.iter().filter(|report| !report.wrong.is_empty()).count();
        say!(
            "{} of {} planted faults ended as they should",
            reports.len() - wrong,
            reports.len()
        );
        match wrong {
            0 => Ok(()),
            wrong => Err(TestGpuError::Faults {
                wrong,
                planted: reports.len(),
                directory: directory.display().to_string(),
            }
            .into()),
        }
    }

    /// The card's memory in use as soon as it is back to `before`, or after some time.
    fn memory_returned(&self, plan: &Plan, before: Bytes) -> Option<Bytes> {
        let start = Instant::now();
        loop {
            let used = self.memory_of(&plan.device)?;
            if used <= before.saturating_add(GRANULES) || start.elapsed() >= RETURN {
                return Some(used);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// The tests in the order of [`PLANTED`].
struct Order {
    faults: Vec<(Test, &'static Expected)>,
    healthy: Test,
}

/// Puts the tests in order; a test that nobody planned or that is not there is an error.
fn order(tests: Vec<Test>) -> Result<Order, TestGpuError> {
    let find = |name: &str| {
        let found = tests.iter().find(|test| test.name == name).cloned();
        // They are ignored in the ordinary run, not in this one.
        let test = found.map(|test| Test { ignored: false, ..test });
        test.ok_or_else(|| TestGpuError::FaultsChanged(format!("{name} is missing")))
    };
    let known = |test: &&Test| {
        let mut names = PLANTED.iter().map(|(name, _)| *name).chain([HEALTHY, PART]);
        !names.any(|name| name == test.name)
    };
    if let Some(strange) = tests.iter().find(known) {
        return Err(TestGpuError::FaultsChanged(format!(
            "nobody says how {} ends",
            strange.name
        )));
    }
    let faults = PLANTED.iter().map(|(name, ends)| Ok((find(name)?, ends)));
    Ok(Order {
        faults: faults.collect::<Result<_, TestGpuError>>()?,
        healthy: find(HEALTHY)?,
    })
}

fn judge(result: &TestResult, ends: &Expected, next: &TestResult, memory: Option<(Bytes, Bytes)>) -> Report {
    let said = result.first_error.as_deref().unwrap_or_default();
    let as_it_should = match (ends, &result.verdict) {
        (Expected::Well, Verdict::Passed | Verdict::Skipped { .. }) => true,
        (Expected::Saying(words), Verdict::Failed { .. }) => words.iter().any(|word| said.contains(word)),
        (Expected::By(wanted), Verdict::Crashed { signal }) => signal == wanted,
        (Expected::Late, Verdict::TimedOut { silent: false, .. }) => true,
        _ => false,
    };
    let mut wrong = Vec::new();
    if !as_it_should {
        wrong.push("it ended otherwise than it should".to_owned());
    }
    if !next.passed() {
        wrong.push("the next test did not pass".to_owned());
    }
    if let Some((before, after)) = memory
        && after > before.saturating_add(GRANULES)
    {
        wrong.push(format!("{after} of the card's memory are used, {before} were before"));
    }
    let ended = match said {
        "" => result.verdict.to_string(),
        said => format!("{}: {said}", result.verdict),
    };
    Report {
        test: result.id.clone(),
        ended,
        seconds: result.seconds,
        next: next.verdict.to_string(),
        memory: memory.map(|(before, after)| (before.0, after.0)),
        wrong,
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.wrong.is_empty() { "ok   " } else { "WRONG" };
        write!(
            f,
            "{mark} {} ({:.1} s): {}; next test {}",
            line(&self.test),
            self.seconds,
            line(&self.ended),
            line(&self.next)
        )?;
        if let Some((before, after)) = self.memory {
            write!(f, "; memory used {} before, {} after", Bytes(before), Bytes(after))?;
        }
        self.wrong
            .iter()
            .try_for_each(|wrong| write!(f, "\n      {}", line(wrong)))
    }
}

#[cfg(test)]
mod tests;
