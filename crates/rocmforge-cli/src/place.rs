//! Place: the memory that a model is to fit into, of a card or of the machine.
//!
//! The budget of an AMD card is that of the memory ledger, on a simulated card with the same memory: HIP is not asked. An NVIDIA card is opened.

use clap::Args as Arguments;
use rocmforge::backend::{BackendOptions, PoolOptions};
use rocmforge::device::open_simulated_machine;
use rocmforge::ggml::{Activations, CpuBackend, HipGgmlBackend, HostAccess};
use rocmforge::machine::sysfs::{DrmCard, Machine, Sysfs};
use rocmforge::memory::Bytes;
use rocmforge::models::bert::{Bert, Embedder, EmbedderMemory, EmbedderOptions};
use rocmforge::models::{EngineOptions, Model};
use rocmforge::sim::{Arch, CardConfig, SimConfig};

use crate::cards::{self, KnownCard};
use crate::failure::Failure;
use crate::fit::Answer;
use crate::{doctor, options::CacheOptions};

/// The least memory of a card: kernels alone take some.
const SMALLEST: Bytes = Bytes::mib(64);

/// Options that name a card.
#[derive(Arguments, Debug)]
pub(crate) struct CardOptions {
    /// A card with this much memory and a desktop on it, such as 16GiB [default: the card of this machine].
    #[arg(long)]
    vram: Option<Bytes>,
    /// A card by its name, such as "RX 7900 XTX".
    #[arg(long, conflicts_with = "vram")]
    card: Option<String>,
}

impl CardOptions {
    /// The card that the options name.
    pub(crate) fn asked(&self) -> Result<Option<Asked>, Failure> {
        let imagined = |name: &str, memory, target| Asked {
            name: name.to_owned(),
            memory,
            target,
            ..Asked::any()
        };
        if let Some(name) = &self.card {
            let card = KnownCard::of(name)?;
            return Ok(Some(Asked {
                shared: card.is_shared.then_some(Shared::Usual),
                ..imagined(card.name, card.memory(), Some(card.target.to_owned()))
            }));
        }
        match self.vram {
            Some(memory) if memory < SMALLEST => {
                Err(format!("no card has {memory} of memory; {SMALLEST} is the least that can be asked about").into())
            }
            memory => Ok(memory.map(|memory| imagined("a card of this size", memory, None))),
        }
    }
}

/// A card that is asked about.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) memory: Bytes,
    pub(crate) target: Option<String>,
    /// What the desktop and others hold; `None`: as much as on the usual one.
    used: Option<Bytes>,
    displays: u32,
    /// What it shares of the machine's memory; `None` for a card with memory of its own.
    pub(crate) shared: Option<Shared>,
}

/// How a GPU shares the machine's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shared {
    /// As most machines do: 512 MiB are carved out, and half of the rest may be mapped.
    Usual,
    /// By what this machine says.
    Known {
        /// What may be mapped.
        gtt: Bytes,
        /// What of it is in use.
        gtt_used: Bytes,
        /// The machine's memory without the part that is carved out, and how much of it is available.
        system: Bytes,
        available: Bytes,
    },
}

impl Asked {
    /// A card of which nothing is known.
    pub(crate) fn any() -> Self {
        Self {
            name: String::new(),
            memory: Bytes::gib(20),
            target: None,
            used: None,
            displays: 1,
            shared: None,
        }
    }

    /// This machine's card with the most memory, whether it can be used or not.
    pub(crate) fn of_machine() -> Option<Self> {
        let machine = Sysfs::host().machine();
        let largest = machine.amd_cards().max_by_key(|card| card.vram_total);
        largest.and_then(|card| Self::of_card(&machine, card))
    }

    fn of_card(machine: &Machine, card: &DrmCard) -> Option<Self> {
        Some(Self {
            name: card.product.clone().unwrap_or_else(|| card.name.clone()),
            memory: card.vram_total?,
            target: machine.node_of(card).and_then(|node| node.target.clone()),
            used: card.vram_used,
            displays: card.displays(),
            shared: match machine.is_unified(card) {
                true => {
                    let memory = Sysfs::host().memory();
                    Some(Shared::Known {
                        gtt: card.gtt_total?,
                        gtt_used: card.gtt_used?,
                        system: memory.total?,
                        available: memory.available?,
                    })
                }
                false => None,
            },
        })
    }

    /// Whether this program has kernels for it; a card without a known processor may have any.
    pub(crate) fn has_kernels(&self) -> bool {
        self.target.as_deref().is_none_or(cards::has_kernels)
    }

    /// A simulated card that has this one's memory.
    pub(crate) fn open(&self) -> Result<HipGgmlBackend, Failure> {
        // Where the processor is not simulated, the kernels of another take as much memory.
        let arch = self
            .target
            .as_deref()
            .and_then(|target| target.parse().ok())
            .unwrap_or(Arch::Gfx1100);
        let usual = CardConfig::of(arch);
        let own = |usual: CardConfig| CardConfig {
            vram: self.memory,
            desktop_used: self.used.unwrap_or(Bytes(usual.desktop_used.0.min(self.memory.0))),
            displays: self.displays,
            ..usual
        };
        let (card, host_memory) = match self.shared {
            None => (own(usual), SimConfig::default().host_memory),
            Some(Shared::Usual) => {
                let machine = SimConfig::apu(self.memory);
                let apu = machine.cards.into_iter().next().unwrap_or_default();
                let (vram, gtt, desktop_used) = (apu.vram, apu.gtt, apu.desktop_used);
                let card = CardConfig {
                    vram,
                    gtt,
                    desktop_used,
                    unified_memory: true,
                    ..usual
                };
                (card, machine.host_memory)
            }
            Some(Shared::Known {
                gtt,
                gtt_used,
                system,
                available,
            }) => {
                // What is taken of the mapped memory leaves what the machine has: the scarcer of both.
                let free = gtt.0.saturating_sub(gtt_used.0).min(available.0);
                let card = CardConfig {
                    gtt,
                    unified_memory: true,
                    other_rocm_used: match self.memory < gtt {
                        true => Bytes(gtt.0.saturating_sub(free)),
                        false => Bytes(0),
                    },
                    ..own(usual)
                };
                (card, Bytes(system.0.max(gtt.0)))
            }
        };
        let machine = SimConfig {
            cards: vec![card],
            host_memory,
            ..SimConfig::default()
        };
        let options = BackendOptions {
            pool: PoolOptions::ON,
            ..BackendOptions::default()
        };
        let device = open_simulated_machine(machine, options)?;
        Ok(HipGgmlBackend::new(device.backend())?.activations(Activations::Int8))
    }
}

/// Where `run` would compute a model, by what the machine says of itself.
pub(crate) struct Place {
    /// A card's name, or `cpu`.
    pub(crate) name: String,
    backend: Backend,
    /// What a model may take of its memory; `None` where the system does not say.
    pub(crate) room: Option<usize>,
    /// Whether this program has kernels for the card.
    pub(crate) has_kernels: bool,
}

enum Backend {
    Card(Box<HipGgmlBackend>),
    Cpu(Box<CpuBackend>),
}

impl Place {
    /// The card that the options name, else the first of this machine that can be used, else the CPU.
    pub(crate) fn of(options: &CardOptions) -> Result<Self, Failure> {
        let of = |card: &Asked, backend| Self {
            has_kernels: card.has_kernels(),
            ..Self::on_card(card.name.clone(), backend)
        };
        if let Some(card) = options.asked()? {
            return Ok(of(&card, card.open()?));
        }
        // A card that cannot be opened with its figures is passed over.
        if let Some(card) = Self::usable()
            && let Ok(backend) = card.open()
        {
            return Ok(of(&card, backend));
        }
        if let Ok(device) = rocmforge::device::open("nvidia:0") {
            let name = device.backend().device().name.clone();
            let backend = HipGgmlBackend::new(device.backend())?.activations(Activations::Int8);
            return Ok(Self::on_card(name, backend));
        }
        let cpu = CpuBackend::with_threads(1).activations(Activations::Int8);
        Ok(Self {
            name: "cpu".to_owned(),
            room: cpu.available_bytes(),
            has_kernels: true,
            backend: Backend::Cpu(Box::new(cpu)),
        })
    }

    fn on_card(name: String, backend: HipGgmlBackend) -> Self {
        Self {
            name,
            room: backend.available_bytes(),
            has_kernels: true,
            backend: Backend::Card(Box::new(backend)),
        }
    }

    /// The first AMD card of this machine with kernels here that nothing keeps from being used, in the order of the driver's nodes, as HIP counts them.
    fn usable() -> Option<Asked> {
        let machine = Sysfs::host().machine();
        let ready = doctor::ready_cards();
        let ready = machine.amd_cards().filter(|card| ready.contains(&card.name));
        let first = ready.min_by_key(|card| machine.node_of(card).map(|node| node.number));
        first.and_then(|card| Asked::of_card(&machine, card))
    }

    /// The plan of a model here, as `run` would make it.
    ///
    /// # Errors
    /// The model has no plan: a tensor is missing, or has another shape.
    pub(crate) fn plan(&self, model: &Model) -> Result<Answer, Failure> {
        let options: EngineOptions = CacheOptions::default().engine();
        match &self.backend {
            Backend::Card(card) => Answer::of(model, card.as_ref(), options, self.room),
            Backend::Cpu(cpu) => Answer::of(model, cpu.as_ref(), options, self.room),
        }
    }

    /// What an encoder takes here.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub(crate) fn plan_encoder(&self, model: &Bert) -> Result<EmbedderMemory, Failure> {
        let options = EmbedderOptions::default();
        Ok(match &self.backend {
            Backend::Card(card) => Embedder::forecast(card.as_ref(), model, options)?,
            Backend::Cpu(cpu) => Embedder::forecast(cpu.as_ref(), model, options)?,
        })
    }

    /// Whether the place is a card, beside which the CPU computes what has no room on it.
    pub(crate) fn is_card(&self) -> bool {
        matches!(self.backend, Backend::Card(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of docs/memory.md, from the figures that machines give.
    #[test]
    fn the_budget_of_a_shared_memory_is_that_of_the_ledger() {
        let gib = |gib: f64| Bytes((gib * f64::from(1 << 30)) as u64);
        let card = |carved_out: f64, used: f64, gtt: f64, [system, available]: [f64; 2]| Asked {
            memory: gib(carved_out),
            used: Some(gib(used)),
            shared: Some(Shared::Known {
                gtt: gib(gtt),
                gtt_used: gib(0.0),
                system: gib(system),
                available: gib(available),
            }),
            ..Asked::any()
        };
        for (card, expected) in [
            (card(0.5, 0.0, 7.75, [15.5, 10.5]), 5.4),
            (card(96.0, 1.0, 16.0, [32.0, 31.0]), 77.7),
            // The system has less than may be mapped.
            (card(0.5, 0.0, 63.75, [127.5, 20.0]), 12.0),
        ] {
            let room = card.open().expect("a card").available_bytes().expect("a budget");
            let room = room as f64 / f64::from(1 << 30);
            assert!((room - expected).abs() < 0.1, "{card:?}: {room}");
        }
    }
}
