//! Facts of operations: what each does beside writing its destination, whatever its encoding.
//!
//! The rows stand in `op.rs`, generated from LLVM's own descriptions of the instructions by `cargo xtask opcodes`. Nothing
//! here or in the crates above reads a mnemonic to learn what an operation does.

use crate::operand::Ty;

/// Facts of one operation: [`Op::facts`](crate::Op::facts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Base mnemonic: `v_add_f32`.
    pub mnemonic: &'static str,
    /// What executes it.
    pub unit: Unit,
    /// What it does to memory.
    pub memory: Memory,
    /// What it makes of memory, if it reads and writes it in one step.
    pub atomic: Atomic,
    /// Where execution goes on.
    pub flow: Flow,
    /// Registers it reads that it does not name.
    pub reads: Registers,
    /// Registers it writes that it does not name.
    pub writes: Registers,
    /// Kind of the old value that an atomic gives back, if it is asked for it; [`Ty::None`] for all others.
    pub returned: Ty,
    /// A vector operation whose destination is a scalar register.
    pub scalar_result: bool,
    /// An LDS operation with two addresses: two offsets of eight bits, in elements.
    pub two_offsets: bool,
}

/// What executes an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Scalar arithmetic, program control and waits.
    Scalar,
    /// Loads through the scalar cache.
    ScalarMemory,
    /// Vector arithmetic.
    Vector,
    /// Exponential, logarithm, reciprocal, square root, sine, cosine.
    Transcendental,
    /// Dot products of packed operands.
    Dot,
    /// Matrix products.
    Matrix,
    /// Matrix products with a sparse first operand.
    SparseMatrix,
    /// LDS, and permutations of lanes through it.
    Lds,
    /// Global, generic and private memory.
    VectorMemory,
}

/// What an operation does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Nothing.
    None,
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads and writes in one step that no other access can come between.
    Atomic,
    /// It asks for a line to be brought into a cache.
    Prefetch,
    /// It reads and writes, and is no atomic of one address: counters and stacks in LDS.
    Exchange,
}

/// What an operation that reads and writes memory in one step leaves there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atomic {
    /// It does not do that.
    None,
    /// A result of the old value.
    Compute,
    /// An operand, whatever the old value was.
    Swap,
    /// An operand, if the old value was the one that it expects.
    CompareAndSwap,
}

/// Where execution goes on after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// With the next instruction.
    Next,
    /// At a distance that the instruction has.
    Branch,
    /// There or with the next instruction.
    ConditionalBranch,
    /// At an address in registers.
    Jump,
    /// In a function; the destination gets the address of the next instruction.
    Call,
    /// Nowhere.
    End,
}

/// A set of registers that instructions use without naming them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Registers(pub(crate) u8);

impl Registers {
    /// The scalar condition code.
    pub const SCC: Self = Self(1);
    /// The carry and condition mask, where no encoding of the operation has a field for it.
    pub const VCC: Self = Self(2);
    /// The mask of active lanes.
    pub const EXEC: Self = Self(4);
    /// Register `m0`.
    pub const M0: Self = Self(8);
    /// The floating-point mode: rounding and denormals.
    pub const MODE: Self = Self(16);
    /// The old value of the destination, where it decides about the new one.
    pub const DST: Self = Self(32);

    /// Whether all of `other` are in the set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A row of the table.
#[allow(clippy::too_many_arguments)] // a row has as many columns
pub(crate) const fn facts(
    mnemonic: &'static str,
    unit: Unit,
    memory: Memory,
    atomic: Atomic,
    flow: Flow,
    reads: u8,
    writes: u8,
    returned: Ty,
    scalar_result: bool,
    two_offsets: bool,
) -> Facts {
    Facts {
        mnemonic,
        unit,
        memory,
        atomic,
        flow,
        reads: Registers(reads),
        writes: Registers(writes),
        returned,
        scalar_result,
        two_offsets,
    }
}
