//! Backends that a model runs on: the CPU, or devices with their budgets and launches.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rocmforge::backend::{Availability, BackendOptions, HipBackend, PoolOptions};
use rocmforge::device::{Device, DeviceError};
use rocmforge::ggml::{CpuBackend, GgmlError, HipGgmlBackend, HostAccess, HybridBackend};
use rocmforge::memory::Policy;
use rocmforge::tuning;

use crate::cards;
use crate::failure::Failure;
use crate::options::MachineOptions;
use crate::tune;

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
pub(crate) struct Parts {
    /// Parts of the model on devices.
    pub(crate) on_device: usize,
    /// All parts.
    pub(crate) all: usize,
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
    fn parts(&self) -> Option<Parts> {
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

    fn parts(&self) -> Option<Parts> {
        let (on_device, all) = self.groups_on_gpu();
        let statistics = self.statistics();
        Some(Parts {
            on_device,
            all,
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
    match open(options)? {
        Opened::Cpu => program.run(options.cpu(), "cpu"),
        Opened::Cards(cards) => program.run(cards.machine(options)?, &cards.to_string()),
    }
}

/// What the options name.
#[derive(Clone)]
pub(crate) enum Opened {
    /// The CPU alone.
    Cpu,
    /// Cards, with the CPU for what does not fit.
    Cards(Cards),
}

/// An open card, with its name for people.
type Card = (String, Arc<HipBackend>);

/// Open cards.
#[derive(Clone)]
pub(crate) struct Cards {
    first: Card,
    others: Vec<Card>,
}

impl Cards {
    /// A machine of these cards. Several machines share the budget of each card.
    pub(crate) fn machine(&self, options: &MachineOptions) -> Result<HybridBackend, GgmlError> {
        let activations = options.activations();
        let card = |(_, card): &Card| Ok::<_, GgmlError>(tuned(HipGgmlBackend::new(card)?.activations(activations)));
        let hybrid = HybridBackend::new(card(&self.first)?, options.cpu());
        (self.others.iter()).try_fold(hybrid, |hybrid, other| hybrid.with_card(card(other)?))
    }

    /// The first card.
    pub(crate) fn first(&self) -> &Arc<HipBackend> {
        &self.first.1
    }

    fn iter(&self) -> impl Iterator<Item = &Card> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The cards.
    pub(crate) fn backends(&self) -> impl Iterator<Item = &Arc<HipBackend>> {
        self.iter().map(|(_, card)| card)
    }
}

/// A card with what `rocmforge tune` has kept for it. A file that is refused is named once, and built-in rules hold.
pub(crate) fn tuned(card: HipGgmlBackend) -> HipGgmlBackend {
    match tune::folder() {
        Some(folder) => tuned_by(card, &folder),
        None => card,
    }
}

/// A card with what was kept for it in a folder.
fn tuned_by(card: HipGgmlBackend, folder: &Path) -> HipGgmlBackend {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    match tuning::load(folder, card.kernels()) {
        Ok(Some(tuning)) => card.tuned(tuning),
        Ok(None) => card,
        Err(error) => {
            let why = error.to_string();
            // A thread that panicked here has left the set whole.
            let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
            if said.insert(why.clone()) {
                eprintln!("built-in rules hold (`rocmforge tune` measures anew): {why}");
            }
            card
        }
    }
}

impl std::fmt::Display for Cards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let labels = self
            .iter()
            .map(|(name, card)| format!("{name} ({})", card.device().name));
        f.write_str(&labels.collect::<Vec<_>>().join(", "))
    }
}

/// Opens the devices that the options name.
pub(crate) fn open(options: &MachineOptions) -> Result<Opened, Failure> {
    let names = named(&options.device);
    if names == "cpu" {
        if options.vram.is_some() {
            return Err("--vram is for a device's memory, and the CPU uses none".into());
        }
        return Ok(Opened::Cpu);
    }
    let mut addresses = HashSet::new();
    let mut cards = names.split(',').map(|name| -> Result<Card, Failure> {
        let device = open_one(name, options)?;
        let is_new = addresses.insert(device.backend().device().pci.clone());
        if device.sim().is_none() && !is_new {
            return Err(format!("--device names the card {name} twice").into());
        }
        Ok((name.to_owned(), Arc::clone(device.backend())))
    });
    Ok(Opened::Cards(Cards {
        first: cards.next().ok_or("--device names no device")??,
        others: cards.collect::<Result<_, _>>()?,
    }))
}

/// The device that is meant by a name: one that can be used, for `auto`.
pub(crate) fn named(name: &str) -> Cow<'_, str> {
    match name {
        "auto" => Cow::Owned(usable()),
        name => Cow::Borrowed(name),
    }
}

/// A card of this machine that can be used, else the CPU. Says which, and why.
fn usable() -> String {
    let why = match HipBackend::availability() {
        Availability::Available { devices } => {
            // The graphics of a processor may stand before a card.
            let processors = (0..*devices).map(|index| {
                let device = rocmforge::device::open(&format!("hip:{index}"))?;
                Ok(device.backend().device().arch.clone())
            });
            match first_with_kernels(processors) {
                Ok(index) => {
                    eprintln!("device hip:{index}, the first AMD card with kernels here (--device names another)");
                    return format!("hip:{index}");
                }
                Err(why) => why,
            }
        }
        Availability::Unavailable(why) => why.to_string(),
    };
    if rocmforge::device::open("nvidia:0").is_ok() {
        eprintln!("device nvidia:0, the first NVIDIA card (--device names another)");
        return "nvidia:0".to_owned();
    }
    eprintln!("device cpu, because no card can be used: {why}");
    "cpu".to_owned()
}

/// The first device whose processor has kernels in this program. If no device has, the reasons. The devices after it are not opened.
fn first_with_kernels(processors: impl Iterator<Item = Result<String, DeviceError>>) -> Result<usize, String> {
    let mut why = Vec::new();
    for (index, processor) in processors.enumerate() {
        match processor {
            Ok(processor) if cards::has_kernels(&processor) => return Ok(index),
            Ok(processor) => why.push(format!(
                "hip:{index} is {processor}, for which this program has no kernels"
            )),
            Err(error) => why.push(format!("hip:{index}: {error}")),
        }
    }
    match why.is_empty() {
        true => Err("HIP shows no card".to_owned()),
        false => Err(why.join("; ")),
    }
}

fn open_one(name: &str, options: &MachineOptions) -> Result<Device, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge::kernels::{Measured, Parameter};

    #[test]
    fn a_card_is_tuned_as_its_file_says_and_by_rule_where_it_is_refused() {
        let open = || {
            let device = rocmforge::device::open("sim").expect("a simulated card");
            HipGgmlBackend::new(device.backend()).expect("kernels")
        };
        let folder = tempfile::tempdir().expect("a folder");
        let rules = *open().kernels().tuning();
        assert_eq!(*tuned_by(open(), folder.path()).kernels().tuning(), rules);
        let measured = Measured {
            parameter: Parameter::TilesFrom,
            times: vec![(9, 2.0), (17, 1.0)],
            chosen: 17,
        };
        let path = tuning::keep(folder.path(), open().kernels(), &[measured]).expect("written");
        let card = tuned_by(open(), folder.path());
        assert_eq!(card.kernels().tuning().value(Parameter::TilesFrom), 17);
        std::fs::write(path, "{}").expect("written");
        assert_eq!(*tuned_by(open(), folder.path()).kernels().tuning(), rules);
    }

    #[test]
    fn graphics_without_kernels_are_passed_over() {
        let first = |processors: &[&str]| {
            let mut opened = 0;
            let found = first_with_kernels(processors.iter().map(|processor| {
                opened += 1;
                match *processor {
                    "" => Err(DeviceError::NoSimulator),
                    processor => Ok(processor.to_owned()),
                }
            }));
            (found, opened)
        };
        assert_eq!(first(&["gfx1151"]), (Ok(0), 1));
        // The graphics of a Ryzen beside a card; a card that cannot be opened beside one that can.
        assert_eq!(first(&["gfx1036", "gfx1101", "gfx1201"]), (Ok(1), 2));
        assert_eq!(first(&["", "gfx1201"]), (Ok(1), 2));
        let (found, opened) = first(&["gfx1103", ""]);
        let why = found.expect_err("none has kernels");
        assert!(why.contains("hip:0 is gfx1103") && why.contains("; hip:1: "), "{why}");
        assert_eq!(opened, 2);
        assert!(first(&[]).0.is_err());
    }
}
