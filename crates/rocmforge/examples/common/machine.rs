//! Backends that a model runs on: the CPU, or a device with its budget and its launches.

use rocmforge::device::Device;
use rocmforge::ggml::{CpuBackend, HipGgmlBackend, HostAccess};

use super::failure::Failure;
use super::options::Options;

/// Memory of a device in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// The most that was held at once.
    pub(crate) peak: u64,
    /// What may be held in all.
    pub(crate) budget: u64,
}

/// A backend with its figures.
pub(crate) trait Machine: HostAccess {
    /// Memory, of a device.
    fn memory(&self) -> Option<Memory>;

    /// Kernels launched so far, on a device.
    fn launch_count(&self) -> Option<u64>;
}

impl Machine for CpuBackend {
    fn memory(&self) -> Option<Memory> {
        None
    }

    fn launch_count(&self) -> Option<u64> {
        None
    }
}

impl Machine for HipGgmlBackend {
    fn memory(&self) -> Option<Memory> {
        let budget = self.hip().card().budget();
        Some(Memory {
            peak: budget.peak.0,
            budget: budget.budget.0,
        })
    }

    fn launch_count(&self) -> Option<u64> {
        Some(self.launches())
    }
}

/// A program over any backend.
pub(crate) trait Program {
    /// Runs it. `device` names the machine for people.
    fn run<M: Machine>(&self, machine: M, device: &str) -> Result<(), Failure>;
}

/// Opens the device that the options name, and runs the program on it.
pub(crate) fn run(program: &impl Program, options: &Options) -> Result<(), Failure> {
    if options.device == "cpu" {
        return program.run(CpuBackend::new(), "cpu");
    }
    let device: Device = rocmforge::device::open(&options.device)?;
    let info = device.backend().device();
    let name = format!("{} ({})", options.device, info.name);
    program.run(HipGgmlBackend::new(device.backend())?, &name)
}
