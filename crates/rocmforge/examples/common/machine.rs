//! Backends that a model runs on: the CPU, or a device with its budget and its launches.

use rocmforge::backend::{BackendOptions, PoolOptions};
use rocmforge::device::Device;
use rocmforge::ggml::{CpuBackend, HipGgmlBackend, HostAccess, HybridBackend};
use rocmforge::memory::Policy;

use super::options::Options;
use crate::failure::Failure;

/// Memory of a device in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// The most that was held at once.
    pub(crate) peak: u64,
    /// What may be held in all.
    pub(crate) budget: u64,
}

/// What lies on a device: layers with their part of the cache, the output matrix, the embedding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// Parts of the model on the device.
    pub(crate) on_device: usize,
    /// All parts.
    pub(crate) parts: usize,
    /// Parts that went to the host, and that came back.
    pub(crate) spills: u64,
    pub(crate) returns: u64,
    /// Steps enqueued with one call.
    pub(crate) replays: u64,
}

/// A backend with its figures.
pub(crate) trait Machine: HostAccess {
    /// Memory, of a device.
    fn memory(&self) -> Option<Memory>;

    /// Kernels launched so far, on a device.
    fn launch_count(&self) -> Option<u64>;

    /// What lies on a device.
    fn placement(&self) -> Option<Placement> {
        None
    }
}

impl Machine for CpuBackend {
    fn memory(&self) -> Option<Memory> {
        None
    }

    fn launch_count(&self) -> Option<u64> {
        None
    }
}

impl Machine for HybridBackend {
    fn memory(&self) -> Option<Memory> {
        let budget = self.gpu().hip().card().budget();
        Some(Memory {
            peak: budget.peak.0,
            budget: budget.budget.0,
        })
    }

    fn launch_count(&self) -> Option<u64> {
        Some(self.gpu().launches())
    }

    fn placement(&self) -> Option<Placement> {
        let (on_device, parts) = self.groups_on_gpu();
        let statistics = self.statistics();
        Some(Placement {
            on_device,
            parts,
            spills: statistics.spills,
            returns: statistics.returns,
            replays: self.gpu().replays(),
        })
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
        if options.vram.is_some() {
            return Err("--vram is for a device's memory, and --device cpu uses none".into());
        }
        return program.run(CpuBackend::new().activations(options.activations()), "cpu");
    }
    let device: Device = match options.vram {
        None => rocmforge::device::open(&options.device)?,
        Some(most) => {
            let settings = BackendOptions {
                pool: PoolOptions::ON,
                policy: Policy::fixed(most),
                ..BackendOptions::default()
            };
            rocmforge::device::open_with(&options.device.parse()?, settings)?
        }
    };
    let info = device.backend().device();
    let name = format!("{} ({})", options.device, info.name);
    let activations = options.activations();
    let gpu = HipGgmlBackend::new(device.backend())?.activations(activations);
    let cpu = CpuBackend::new().activations(activations);
    program.run(HybridBackend::new(gpu, cpu), &name)
}
