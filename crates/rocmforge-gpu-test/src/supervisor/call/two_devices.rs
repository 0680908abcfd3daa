//! Run of the same tests on two devices, whose buffers are compared.

use super::supervisor::Supervisor;
use crate::Outcome;
use crate::supervisor::find::discover::Test;
use crate::supervisor::judge::against::{COMPARISON, Comparison, Run};
use crate::supervisor::judge::verdict;
use crate::supervisor::report::{Summary, folder};
use crate::supervisor::run::plan::{self, Plan};
use std::path::Path;

impl Supervisor<'_> {
    /// Runs the tests on one device, and as often and as many at a time on another, and compares what they computed.
    pub(crate) fn compared(&self, plan: &Plan, other: &Plan, tests: &[Test]) -> Outcome {
        let plan = Plan {
            recorded: true,
            ..plan.clone()
        };
        let results = self.run_on(&plan, tests)?;
        let beside = Plan {
            wanted_jobs: plan.wanted_jobs,
            repeat: plan.repeat,
            recorded: true,
            directory: folder::within(&plan.directory, "against")?,
            ..other.clone()
        };
        let others = self.run_on(&beside, tests)?;
        let comparison = Comparison::new(&run_of(&results, &plan.directory), &run_of(&others, &beside.directory))?;
        comparison.write_json(&plan.directory)?;
        let report = plan.directory.join(COMPARISON);
        say!("{}", comparison.to_string().trim_end());
        self.verdict(&results, &plan.directory)?;
        self.verdict(&others, &beside.directory)?;
        verdict::agreement(&comparison, &results.device, &others.device, &report)
    }
}

fn run_of<'a>(summary: &'a Summary, directory: &Path) -> Run<'a> {
    Run {
        device: summary.device.clone(),
        results: &summary.results,
        buffers: plan::buffers_in(directory),
    }
}
