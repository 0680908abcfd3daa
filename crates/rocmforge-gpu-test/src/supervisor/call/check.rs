//! Check of a device: whether it may be used, and how. What was found is printed, a refusal ends the run.

use super::examine::examine;
use super::supervisor::Supervisor;
use crate::CAREFUL_VARIABLE;
use crate::bundle::contents::Contents;
use crate::card::device::Device;
use crate::card::preflight::WITHOUT_CWSR;
use crate::supervisor::judge::verdict::TestGpuError;
use crate::supervisor::run::plan::Plan;
use crate::supervisor::watch::escalation::Grace;
use rocmforge_machine::DeviceName;
use std::time::Duration;

/// Seconds that a test may take unless the user says otherwise.
const DEADLINE: u64 = 300;
/// Time that a test may stand still.
const SILENCE: Duration = Duration::from_secs(30);

impl Supervisor<'_> {
    /// Looks whether a device may be used, and plans a run on it: every test once, reported in the folder of reports.
    pub(crate) fn check(&self, name: DeviceName) -> Result<Plan, TestGpuError> {
        let device = Device::find(name, &self.sysfs, &self.machine)?;
        let examined = examine(&device, &self.sysfs, &self.machine, self.consent())?;
        let mut deadline = Duration::from_secs(self.args.deadline.unwrap_or(DEADLINE));
        if examined.without_cwsr {
            deadline = self.deadline_without_cwsr(deadline)?;
        }
        let mut environment = device.environment();
        environment.extend(self.bundle.iter().map(Contents::environment));
        if examined.careful {
            environment.push((CAREFUL_VARIABLE, "1".to_owned()));
        }
        Ok(Plan {
            device,
            findings: examined.findings,
            careful: examined.careful,
            deadline,
            silence: SILENCE,
            grace: Grace::default(),
            environment,
            wanted_jobs: None,
            repeat: 1,
            forbid_leftovers: self.args.forbid_leftovers,
            recorded: false,
            directory: self.directory.clone(),
        })
    }

    fn deadline_without_cwsr(&self, wanted: Duration) -> Result<Duration, TestGpuError> {
        if self.args.deadline.is_some() && wanted > WITHOUT_CWSR {
            return Err(TestGpuError::TooLong {
                deadline: wanted.as_secs(),
                longest: WITHOUT_CWSR.as_secs(),
            });
        }
        Ok(wanted.min(WITHOUT_CWSR))
    }
}
