//! A launch and its outcome.

use crate::calls::Calls;
use crate::counters::Counters;
use crate::fault::{Access, Fault, FaultKind};
use crate::footprint::Footprint;
use crate::kernel::Kernel;
use crate::program::Program;
use crate::tools::Tools;

/// Knobs of one launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOptions {
    /// Wave instructions the whole launch may execute before it counts as endless.
    pub instruction_budget: u64,
    /// Distinct faults (kind and instruction) after which the launch stops.
    pub max_faults: usize,
    /// 0 runs the waves of a workgroup in order between barriers; any other value draws the order from this seed.
    pub wave_order_seed: u64,
    /// 0 runs the workgroups in the order of their numbers; any other value draws the order from this seed. A workgroup that waits for
    /// another is set aside until that one has run.
    pub group_order_seed: u64,
    /// The checks to run.
    pub tools: Tools,
    /// Host threads that share the workgroups of a launch. More than one gives the same outcome, or is not used: not with racecheck, not for
    /// kernels with atomics on global memory or calls, not for short launches, and not for kernels that took longer so. What a launch writes
    /// is copied before. A kernel that needs registers or LDS of earlier workgroups is not reproduced.
    pub threads: usize,
    /// Fill all of [`Counters`]; otherwise only workgroups, waves and barriers are counted.
    pub counters: bool,
    /// Its workgroups may wait for each other at barriers of the whole grid (global wave sync).
    pub cooperative: bool,
    /// What the clocks show when the launch begins, in nanoseconds.
    pub start_ns: u64,
}

impl Default for ExecOptions {
    fn default() -> Self {
        Self {
            instruction_budget: 20_000_000_000,
            max_faults: 16,
            wave_order_seed: 0,
            group_order_seed: 0,
            tools: Tools::default(),
            threads: 1,
            counters: false,
            cooperative: false,
            start_ns: 0,
        }
    }
}

/// One launch of a kernel.
#[derive(Debug, Clone)]
pub struct Dispatch<'a> {
    /// The program; its image must have been written to memory at its base.
    pub program: &'a Program,
    /// One of the program's kernels.
    pub kernel: &'a Kernel,
    /// Workgroups in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub block: [u32; 3],
    /// Bytes of LDS beyond the kernel's static ones.
    pub dynamic_lds: u32,
    /// Device address of the kernel arguments, see [`kernarg_bytes`](crate::kernarg_bytes).
    pub kernarg: u64,
    /// Knobs.
    pub options: ExecOptions,
}

/// How a launch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Every wave ended and nothing was wrong.
    Completed,
    /// There are faults; every wave that could go on did.
    Faulted,
    /// The instruction budget ran out (there is a fault that names the instruction).
    BudgetExhausted,
}

/// What a launch did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Distinct faults in the order they were found.
    pub faults: Vec<Fault>,
    /// Loads of LDS that no wave has written and whose values nothing has used, with [`Tools::initcheck`]: no faults, and rarely meant. One
    /// for each instruction.
    pub warnings: Vec<Fault>,
    /// Wave instructions executed (waits, delays and other hints are not counted).
    pub instructions: u64,
    /// How it ended.
    pub status: Status,
    /// Counts.
    pub counters: Counters,
    /// The global memory it touched, with [`Tools::racecheck`]; else empty.
    pub footprint: Footprint,
    /// How far the clocks had gone on when a wave looked at one last, in nanoseconds; 0 if none did.
    pub clock_ns: u64,
}

/// Largest workgroup of the simulated device, in work-items.
pub const MAX_WORKGROUP: u32 = 1024;
/// LDS of the simulated device per workgroup, in bytes.
pub const MAX_LDS: u32 = 65_536;

impl Dispatch<'_> {
    /// Workgroups of the launch; more than 64 bits can count are as many as can be counted.
    pub(crate) fn groups(&self) -> u64 {
        self.grid.iter().fold(1, |n: u64, &d| n.saturating_mul(u64::from(d)))
    }

    /// Why this launch cannot start, if it cannot.
    pub(crate) fn refuse(&self) -> Option<String> {
        let size = self
            .block
            .iter()
            .try_fold(1u32, |n, &d| n.checked_mul(d))
            .unwrap_or(u32::MAX);
        let lds = self.kernel.lds_size.saturating_add(self.dynamic_lds);
        if self.grid.contains(&0) || self.block.contains(&0) {
            Some(format!("grid {:?} of blocks {:?} is empty", self.grid, self.block))
        } else if size > MAX_WORKGROUP {
            Some(format!(
                "block {:?} has {size} work-items, the device takes {MAX_WORKGROUP}",
                self.block
            ))
        } else if lds > MAX_LDS {
            Some(format!(
                "needs {lds} B of LDS, the device has {MAX_LDS} B per workgroup"
            ))
        } else {
            None
        }
    }

    pub(crate) fn refused(&self, kind: FaultKind, note: String) -> Outcome {
        let fault = Fault {
            kind,
            access: Access::None,
            address: 0,
            size: 0,
            pc: self.kernel.entry(),
            frames: self.program.frames(self.kernel.entry()),
            workgroup: [0; 3],
            wave: 0,
            lane: 0,
            count: 1,
            other: None,
            note,
            calls: Calls::NONE,
        };
        Outcome {
            faults: vec![fault],
            warnings: Vec::new(),
            instructions: 0,
            status: Status::Faulted,
            counters: Counters::default(),
            footprint: Footprint::default(),
            clock_ns: 0,
        }
    }
}
