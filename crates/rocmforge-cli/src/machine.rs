//! Backends that a model runs on: the CPU, or devices with their budgets and launches.

use std::collections::HashSet;

use rocmforge::backend::{Availability, BackendOptions, HipBackend, PoolOptions};
use rocmforge::device::Device;
use rocmforge::ggml::{CpuBackend, HipGgmlBackend, HostAccess, HybridBackend};
use rocmforge::memory::Policy;

use crate::failure::Failure;
use crate::options::MachineOptions;

/// Memory of all devices in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// The most that each held at once.
    pub(crate) peak: u64,
    /// What may be held in all.
    pub(crate) budget: u64,
}

/// What lies on devices: layers with their part of the cache, the output matrix, the embedding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// Parts of the model on devices.
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
        let budgets = self.cards().iter().map(|card| card.hip().card().budget());
        let none = Memory { peak: 0, budget: 0 };
        Some(budgets.fold(none, |sum, card| Memory {
            peak: sum.peak.saturating_add(card.peak.0),
            budget: sum.budget.saturating_add(card.budget.0),
        }))
    }

    fn launch_count(&self) -> Option<u64> {
        Some(self.cards().iter().map(HipGgmlBackend::launches).sum())
    }

    fn placement(&self) -> Option<Placement> {
        let (on_device, parts) = self.groups_on_gpu();
        let statistics = self.statistics();
        Some(Placement {
            on_device,
            parts,
            spills: statistics.spills,
            returns: statistics.returns,
            replays: self.cards().iter().map(HipGgmlBackend::replays).sum(),
        })
    }
}

/// A program over any backend.
pub(crate) trait Program {
    /// Runs it. `device` names the machine for people.
    fn run<M: Machine>(&self, machine: M, device: &str) -> Result<(), Failure>;
}

/// Opens the devices that the options name, and runs the program on them.
pub(crate) fn run(program: &impl Program, options: &MachineOptions) -> Result<(), Failure> {
    let names = match options.device.as_str() {
        "auto" => usable(),
        name => name,
    };
    if names == "cpu" {
        if options.vram.is_some() {
            return Err("--vram is for a device's memory, and the CPU uses none".into());
        }
        return program.run(options.cpu(false), "cpu");
    }
    let activations = options.activations(true);
    let (mut labels, mut cards, mut addresses) = (Vec::new(), Vec::new(), HashSet::new());
    for name in names.split(',') {
        let device = open(name, options)?;
        let is_new = addresses.insert(device.backend().device().pci.clone());
        if device.sim().is_none() && !is_new {
            return Err(format!("--device names the card {name} twice").into());
        }
        labels.push(format!("{name} ({})", device.backend().device().name));
        cards.push(HipGgmlBackend::new(device.backend())?.activations(activations));
    }
    let mut cards = cards.into_iter();
    let first = cards.next().ok_or("--device names no device")?;
    let hybrid = HybridBackend::new(first, options.cpu(true));
    let hybrid = cards.try_fold(hybrid, HybridBackend::with_card)?;
    program.run(hybrid, &labels.join(", "))
}

/// A card of this machine that can be used, else the CPU. Says which, and why.
fn usable() -> &'static str {
    let why = match HipBackend::availability() {
        Availability::Available { .. } => {
            eprintln!("device hip:0, the first AMD card (--device names another)");
            return "hip:0";
        }
        Availability::Unavailable(why) => why,
    };
    if rocmforge::device::open("nvidia:0").is_ok() {
        eprintln!("device nvidia:0, the first NVIDIA card (--device names another)");
        return "nvidia:0";
    }
    eprintln!("device cpu, because no card can be used: {why}");
    "cpu"
}

fn open(name: &str, options: &MachineOptions) -> Result<Device, Failure> {
    let Some(most) = options.vram else {
        return Ok(rocmforge::device::open(name)?);
    };
    let settings = BackendOptions {
        pool: PoolOptions::ON,
        policy: Policy::fixed(most),
        ..BackendOptions::default()
    };
    Ok(rocmforge::device::open_with(&name.parse()?, settings)?)
}
