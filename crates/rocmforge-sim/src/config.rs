//! Configuration of the simulator: cards, checks, schedules and the desktop beside them.

use crate::desktop::config::DesktopConfig;
use crate::faults::plan::FaultPlan;
use crate::selection::LaunchSelection;
use rocmforge_amdgcn::Arch;
use rocmforge_amdgcn::Tools;
use rocmforge_memory::Bytes;
use std::time::Duration;

/// The major version of HIP whose behaviour is simulated. They differ in error codes, in when the last error is
/// overwritten and in what a stale handle does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HipVersion {
    /// HIP 6: every call overwrites the last error, stale streams are answered with an error code.
    #[default]
    Hip6,
    /// HIP 7: the last error stays until it is read, stale streams are not validated (here: reported).
    Hip7,
}

impl HipVersion {
    /// What `hipRuntimeGetVersion` answers: major * 10 000 000 + minor * 100 000 + patch.
    pub fn runtime_version(self) -> i32 {
        match self {
            HipVersion::Hip6 => 60_240_000,
            HipVersion::Hip7 => 70_100_000,
        }
    }
}

/// Which of the legal orders the simulator picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Schedule {
    /// Nothing runs until a wait forces it, and then only what the wait needs, oldest first.
    #[default]
    Lazy,
    /// Everything runs as soon as it may: the order an idle machine would show.
    Eager,
    /// A seeded choice among the ready operations; unforced work may run at any call.
    Random(u64),
    /// Nothing runs until forced, and then the youngest stream first.
    Reverse,
    /// Probabilistic concurrency testing: streams and host threads have random priorities, the highest that can run does,
    /// and at `depth - 1` random steps the one that runs drops below all others. A bug that needs `d` orderings among
    /// `n` streams and threads in `k` calls and operations (at most 16384) is found by one seed with a probability of at
    /// least 1 / (15 n (2k)^(d-1)) at depth `d`.
    Pct {
        /// Seeds priorities and change points, together with [`SimConfig::seed`].
        seed: u64,
        /// How many orderings a bug may need to be found with the probability above. 1 changes no priority.
        depth: u32,
    },
}

/// What fresh device memory contains before anybody writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Poison {
    /// All ones: a NaN in every float type, -1 in every integer type.
    #[default]
    Nan,
    /// Whatever the address held before: plausible numbers of an earlier owner.
    Stale,
    /// Zeros, as memory that comes straight from the kernel driver has.
    Zero,
}

/// What happens to the addresses of freed device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FreedMemory {
    /// They stay unused, so that an access through a stale pointer is a use after free even when memory has been allocated since. When
    /// address space is short the range that was freed first is used again first. The card's free figure counts none of it.
    #[default]
    Quarantined,
    /// They are handed out again at once, as AMD's allocator does: a stale pointer then hits the next owner's memory.
    ReusedAtOnce,
}

/// One simulated card.
#[derive(Clone, Debug)]
pub struct CardConfig {
    /// The instruction set: `"gfx1100"` or `"gfx1201"`, see [`CardConfig::of`].
    pub arch: String,
    /// What `hipDeviceGetName` answers.
    pub name: String,
    /// PCI address as `hipDeviceGetPCIBusId` prints it.
    pub pci: String,
    /// Size of the video memory; of a GPU that shares the system's, the part of it that is carved out.
    pub vram: Bytes,
    /// What of the machine's memory ([`SimConfig::host_memory`]) the driver maps at most for a GPU that shares it. Other cards have
    /// none of it.
    pub gtt: Bytes,
    /// What the desktop holds of it. HIP does not see it; `mem_info_vram_used` does.
    pub desktop_used: Bytes,
    /// What other ROCm processes hold of it. Both HIP and sysfs see it.
    pub other_rocm_used: Bytes,
    /// A desktop that lives, in place of the two figures above, which are then not used.
    pub desktop: Option<DesktopConfig>,
    /// What the driver takes for this process with its first launch, beside what it allocates: private memory of waves,
    /// room to save a queue.
    pub overhead: Bytes,
    /// Displays this card drives.
    pub displays: u32,
    /// Workgroup processors, as `hipDeviceAttributeMultiprocessorCount` counts them on RDNA.
    pub multiprocessors: u32,
    /// Whether the memory is the system's (an APU). What is allocated is then taken from the machine's memory, or from the carve-out
    /// if that is at least as large as what may be mapped.
    pub unified_memory: bool,
}

impl CardConfig {
    /// All that HIP counts as compute units of RDNA, which are its workgroup processors: one bit each, in words.
    pub(crate) fn cu_mask(&self) -> Vec<u32> {
        let full = (self.multiprocessors / 32) as usize;
        let rest = (1 << (self.multiprocessors % 32)) - 1;
        std::iter::repeat_n(u32::MAX, full)
            .chain((rest != 0).then_some(rest))
            .collect()
    }
}

impl Default for CardConfig {
    /// A card of RDNA3.
    fn default() -> Self {
        Self {
            arch: Arch::Gfx1100.name().to_owned(),
            name: "Simulated Radeon (gfx1100)".to_owned(),
            pci: "0000:03:00.0".to_owned(),
            vram: Bytes(20 << 30),
            gtt: Bytes(0),
            desktop_used: Bytes(1 << 30),
            other_rocm_used: Bytes(0),
            desktop: None,
            overhead: Bytes(0),
            displays: 1,
            multiprocessors: 42,
            unified_memory: false,
        }
    }
}

impl CardConfig {
    /// The default card of an instruction set: about a Radeon RX 7900 XT or an RX 9070 XT.
    pub fn of(arch: Arch) -> Self {
        let card = Self::default().with_arch(arch);
        match arch {
            Arch::Gfx1100 => card,
            Arch::Gfx1201 => Self {
                vram: Bytes(16 << 30),
                ..card
            },
        }
    }

    /// This card with another instruction set, the name that says so and its number of workgroup processors; the memory
    /// stays.
    pub fn with_arch(self, arch: Arch) -> Self {
        Self {
            arch: arch.name().to_owned(),
            name: format!("Simulated Radeon ({arch})"),
            multiprocessors: match arch {
                Arch::Gfx1100 => 42,
                Arch::Gfx1201 => 32,
            },
            ..self
        }
    }

    /// A GPU that shares the system's memory, of which it may map `gtt` bytes: about a Radeon 8060S (Strix Halo), with the 512 MiB
    /// carve-out that most firmware has. Its instruction set is not executed here, so it loads no code object: it is for what a
    /// program does with memory.
    pub fn apu(gtt: Bytes) -> Self {
        Self {
            arch: "gfx1151".to_owned(),
            name: "Simulated Radeon (gfx1151)".to_owned(),
            vram: Bytes(512 << 20),
            gtt,
            desktop_used: Bytes(256 << 20),
            multiprocessors: 20,
            unified_memory: true,
            ..Self::default()
        }
    }

    /// What allocations are taken from.
    pub(crate) fn pool(&self) -> Bytes {
        if self.is_mapped() { self.gtt } else { self.vram }
    }

    /// Whether that is the machine's own memory.
    pub(crate) fn is_mapped(&self) -> bool {
        self.unified_memory && self.vram < self.gtt
    }

    /// A default card with `vram` bytes of memory and no desktop on it.
    pub fn with_vram(vram: Bytes) -> Self {
        Self {
            vram,
            desktop_used: Bytes(0),
            displays: 0,
            ..Self::default()
        }
    }
}

/// A simulated machine.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Its cards, in HIP's order. None is legal: every call then answers `hipErrorNoDevice`.
    pub cards: Vec<CardConfig>,
    /// Whether a kernel may access the memory of another card, once the program has enabled that (`hipDeviceEnablePeerAccess`).
    pub peer_access: bool,
    /// Seeds everything that is chosen: schedules, the order of waves.
    pub seed: u64,
    /// Whose behaviour is simulated.
    pub hip_version: HipVersion,
    /// Which legal order is picked.
    pub schedule: Schedule,
    /// Drops every ordering that is an accident of today's implementation: `hipFree`, `hipHostFree`, `hipHostUnregister`
    /// and `hipModuleUnload` that wait, copies to pageable memory and fills of pinned memory that wait although called
    /// asynchronous. Asynchronous copies from pageable memory read late in either mode.
    pub strict: bool,
    /// Orders HIP calls of different host threads only where a stream, an event or a wait does. Otherwise they count as
    /// ordered in the order they are made, and a host function that has run counts as seen by the calls after it: what
    /// the program's own locks and joins order is not known here, so anything else would report correct programs.
    pub separate_threads: bool,
    /// What fresh memory contains.
    pub poison: Poison,
    /// What happens to the addresses of freed memory.
    pub freed: FreedMemory,
    /// Bytes behind every allocation that belong to no one, rounded up to 256. None: a quarter of the allocation, from 256 B to
    /// 16 MiB. They are addresses, not memory: the card's free figure counts none of them, and there are fewer of them, at least 256 B,
    /// when address space is short.
    pub padding: Option<Bytes>,
    /// Instructions a launch may execute before it counts as endless.
    pub instruction_budget: u64,
    /// Which checks kernels run under.
    pub tools: Tools,
    /// Which launches are checked, in the order in which they are enqueued: of the others only what makes their results unusable is
    /// reported. They are not stopped after [`max_faults`](Self::max_faults).
    pub selection: LaunchSelection,
    /// Host threads that share the workgroups of a launch, see
    /// [`ExecOptions::threads`](rocmforge_amdgcn::ExecOptions::threads). The result is that of one.
    pub threads: usize,
    /// Count what each launch does, see [`counters`](crate::counters).
    pub counters: bool,
    /// Keep what ran and when, see [`SimHost::timeline`](crate::SimHost::timeline).
    pub timeline: bool,
    /// Faults collected from one launch before it is stopped, see [`Report::stopped`](crate::Report::stopped).
    pub max_faults: usize,
    /// How long a program makes no call before what it has queued runs all the same: after one to two times this what is queued up to
    /// a host function of a stream, after twenty times everything. None: work runs only during calls, and the same calls give the
    /// same run.
    pub unattended: Option<Duration>,
    /// What `HIP_HIDDEN_FREE_MEM` would hide from `hipMemGetInfo`.
    pub hidden_free: Bytes,
    /// The memory of the machine, without what is carved out of it for a GPU: more cannot be pinned.
    pub host_memory: Bytes,
    /// What goes wrong, and when.
    pub faults: FaultPlan,
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            cards: vec![CardConfig::default()],
            peer_access: false,
            seed: 0,
            hip_version: HipVersion::default(),
            schedule: Schedule::default(),
            strict: false,
            separate_threads: false,
            poison: Poison::default(),
            freed: FreedMemory::default(),
            padding: None,
            instruction_budget: 20_000_000_000,
            tools: Tools::default(),
            selection: LaunchSelection::default(),
            counters: false,
            threads: 1,
            timeline: false,
            max_faults: 64,
            unattended: None,
            hidden_free: Bytes(0),
            host_memory: Bytes(64 << 30),
            faults: FaultPlan::default(),
        }
    }
}

impl SimConfig {
    /// A machine with `memory` bytes that its GPU shares ([`CardConfig::apu`]): half of what is not carved out may be mapped.
    pub fn apu(memory: Bytes) -> Self {
        let card = CardConfig::apu(Bytes(0));
        let host_memory = memory.saturating_sub(card.vram);
        let gtt = Bytes(host_memory.0 / 2);
        Self {
            cards: vec![CardConfig { gtt, ..card }],
            host_memory,
            ..Self::default()
        }
    }

    /// A machine with `n` default cards, each at its own PCI address.
    pub fn with_cards(n: usize) -> Self {
        Self::of_cards(std::iter::repeat_n(CardConfig::default(), n))
    }

    /// A machine with these cards, each at its own PCI address.
    pub fn of_cards(cards: impl IntoIterator<Item = CardConfig>) -> Self {
        let place = |(index, card): (usize, CardConfig)| CardConfig {
            pci: format!("0000:{:02x}:00.0", 3 + index),
            ..card
        };
        Self {
            cards: cards.into_iter().enumerate().map(place).collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn device_names_know_each_processor() {
        assert_eq!(rocmforge_machine::SIMULATED, crate::Arch::ALL.map(crate::Arch::name));
    }
}
