//! Deterministic counts of a launch, and what limits how many waves a SIMD holds.
//!
//! Counts are of what was asked for, not of time: the same launch gives the same counts everywhere.

use crate::kernel::Kernel;
use rocmforge_code_object::ComputeUnit;
pub use rocmforge_code_object::{Limit, Occupancy};
use rocmforge_isa::{Flow, Format, Inst, Op, Unit};

/// Classes of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Scalar arithmetic.
    Salu,
    /// Vector arithmetic not named below.
    Valu,
    /// Two vector instructions at once.
    Vopd,
    /// Exponential, logarithm, reciprocal, square root, sine, cosine.
    Trans,
    /// Matrix multiply.
    Wmma,
    /// Scalar loads.
    Smem,
    /// LDS, lane permutes included.
    Lds,
    /// Global memory.
    Global,
    /// Memory through generic addresses.
    Flat,
    /// Private memory.
    Scratch,
    /// Jumps, calls and ends.
    Branch,
    /// `s_barrier`.
    Barrier,
    /// Waits for stores and cache invalidations.
    Fence,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Salu,
        Self::Valu,
        Self::Vopd,
        Self::Trans,
        Self::Wmma,
        Self::Smem,
        Self::Lds,
        Self::Global,
        Self::Flat,
        Self::Scratch,
        Self::Branch,
        Self::Barrier,
        Self::Fence,
    ];

    /// The class of an instruction.
    pub fn of(inst: &Inst) -> Self {
        let facts = inst.op.facts();
        match (inst.format, facts.unit) {
            (Format::Vopd, _) => Self::Vopd,
            (_, Unit::Scalar) => match inst.op {
                Op::SBarrier | Op::SBarrierWait => Self::Barrier,
                Op::SWaitStorecnt | Op::SWaitStorecntDscnt | Op::SWaitcntVscnt => Self::Fence,
                Op::STrap | Op::SSethalt | Op::SCodeEnd => Self::Branch,
                _ if facts.flow != Flow::Next => Self::Branch,
                _ => Self::Salu,
            },
            (_, Unit::ScalarMemory) => Self::Smem,
            (_, Unit::Transcendental) => Self::Trans,
            (_, Unit::Matrix | Unit::SparseMatrix) => Self::Wmma,
            (_, Unit::Vector | Unit::Dot) => Self::Valu,
            (_, Unit::Lds) => Self::Lds,
            (_, Unit::VectorMemory) if inst.op.is_cache_operation() => Self::Fence,
            (Format::Flat, Unit::VectorMemory) => Self::Flat,
            (Format::Scratch, Unit::VectorMemory) => Self::Scratch,
            (_, Unit::VectorMemory) => Self::Global,
        }
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Salu => "salu",
            Self::Valu => "valu",
            Self::Vopd => "vopd",
            Self::Trans => "trans",
            Self::Wmma => "wmma",
            Self::Smem => "smem",
            Self::Lds => "lds",
            Self::Global => "global",
            Self::Flat => "flat",
            Self::Scratch => "scratch",
            Self::Branch => "branch",
            Self::Barrier => "barrier",
            Self::Fence => "fence",
        }
    }
}

/// Requests of waves to global memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests: one for each wave instruction with an active lane.
    pub requests: u64,
    /// Bytes all lanes asked for; a byte several lanes ask for counts several times.
    pub bytes: u64,
    /// Aligned 128-byte segments the requests touch, counted for each request by itself: 1 a request at best for 4 B a
    /// lane, 32 at worst.
    pub segments: u64,
}

impl Traffic {
    /// Segments a request touches on average; 0 without requests.
    pub fn segments_per_request(&self) -> f64 {
        if self.requests == 0 {
            return 0.0;
        }
        self.segments as f64 / self.requests as f64
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.segments += other.segments;
    }
}

/// Segments of global memory of which a launch asked for anything, each counted once: what memory has to move at least, where
/// caches keep what is asked for again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Distinct {
    /// Aligned 128-byte segments that loads, scalar loads and atomics read.
    pub read: u64,
    /// Aligned 128-byte segments that stores and atomics wrote.
    pub written: u64,
}

impl Distinct {
    /// Bytes of the segments, read and written.
    pub fn bytes(&self) -> u64 {
        (self.read + self.written) * SEGMENT
    }
}

/// Bytes of a segment.
pub const SEGMENT: u64 = 128;

/// Requests of waves to LDS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LdsTraffic {
    /// Requests; the two halves of a `2addr` instruction count as one each.
    pub requests: u64,
    /// Bytes all lanes asked for.
    pub bytes: u64,
    /// Cycles the requests take at least: see [`LdsTraffic::conflicts`].
    pub cycles: u64,
    /// Further cycles because lanes meet in a bank.
    ///
    /// The rule: 32 banks of 4 B, a cycle serves every bank once, lanes that read the same dword share it, and lanes of an
    /// atomic do not. All 32 lanes go at once when each takes up to 4 B, 16 at a time with 8 B, 8 with 12 or 16 B.
    pub conflicts: u64,
}

/// Deterministic counts of one launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Workgroups started.
    pub workgroups: u64,
    /// Waves started.
    pub waves: u64,
    /// Barriers every wave of a workgroup passed together.
    pub barriers: u64,
    /// Wave instructions by [`Class`]; zero unless [`ExecOptions::counters`](crate::ExecOptions::counters) is set, as are all below.
    pub instructions: [u64; Class::ALL.len()],
    /// Loads from global memory.
    pub loads: Traffic,
    /// Stores to global memory.
    pub stores: Traffic,
    /// Atomics on global memory.
    pub atomics: Traffic,
    /// Scalar loads.
    pub scalar: Traffic,
    /// What all of these touched, each segment once; of several launches the sum.
    pub distinct: Distinct,
    /// LDS.
    pub lds: LdsTraffic,
    /// Bytes of private memory all lanes asked for.
    pub scratch_bytes: u64,
}

impl Counters {
    /// Wave instructions of a class.
    pub fn of(&self, class: Class) -> u64 {
        self.instructions[class as usize]
    }

    /// All wave instructions.
    pub fn total(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Which part of the vector arithmetic instructions multiplies matrices: 0 to 1.
    pub fn wmma_share(&self) -> f64 {
        let vector: u64 = [Class::Valu, Class::Vopd, Class::Trans, Class::Wmma]
            .map(|c| self.of(c))
            .iter()
            .sum();
        if vector == 0 {
            return 0.0;
        }
        self.of(Class::Wmma) as f64 / vector as f64
    }

    /// Adds another launch's.
    pub fn add(&mut self, other: &Self) {
        self.workgroups += other.workgroups;
        self.waves += other.waves;
        self.barriers += other.barriers;
        for (n, more) in self.instructions.iter_mut().zip(other.instructions) {
            *n += more;
        }
        self.loads.add(&other.loads);
        self.stores.add(&other.stores);
        self.atomics.add(&other.atomics);
        self.scalar.add(&other.scalar);
        self.distinct.read += other.distinct.read;
        self.distinct.written += other.distinct.written;
        self.lds.requests += other.lds.requests;
        self.lds.bytes += other.lds.bytes;
        self.lds.cycles += other.lds.cycles;
        self.lds.conflicts += other.lds.conflicts;
        self.scratch_bytes += other.scratch_bytes;
    }
}

impl Kernel {
    /// Occupancy on such a compute unit of launches with workgroups of `block` work-items and that much dynamic LDS.
    pub fn occupancy(&self, unit: &ComputeUnit, block: u32, dynamic_lds: u32) -> Occupancy {
        let lds = self.lds_size.saturating_add(dynamic_lds);
        if self.setup.wide && unit.wave_size == 32 {
            // A register of a wave of 64 lanes takes the place of two.
            let unit = ComputeUnit {
                wave_size: 64,
                vgprs: unit.vgprs / 2,
                vgpr_granule: unit.vgpr_granule / 2,
                ..*unit
            };
            return unit.occupancy(self.setup.vgprs, lds, block);
        }
        unit.occupancy(self.setup.vgprs, lds, block)
    }
}
