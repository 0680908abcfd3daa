//! Fields of lowered instructions: operands, and what the loop over instructions does.

/// Where an operand comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Vector register.
    V,
    /// Scalar register.
    S,
    /// Constant.
    C,
    /// The wave's temporary.
    T,
    Scc,
    VccZ,
    ExecZ,
}

/// An operand of a lowered instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Src {
    pub(crate) kind: Kind,
    pub(crate) reg: u8,
    /// See the constants below.
    pub(crate) mods: u8,
    /// Half of the register a 16-bit operand reads: 0 or 16, as a shift.
    pub(crate) shift: u8,
    pub(crate) lo: u32,
    pub(crate) up: u32,
}

pub(crate) const NEG: u8 = 1;
pub(crate) const ABS: u8 = 2;
/// Packed operands: negate the high lane; which half each lane reads.
pub(crate) const NEG_HI: u8 = 4;
pub(crate) const SEL_LO: u8 = 8;
pub(crate) const SEL_HI: u8 = 16;

impl Src {
    pub(crate) const ZERO: Self = Self::constant(0);

    pub(crate) const fn constant(value: u64) -> Self {
        Self {
            kind: Kind::C,
            reg: 0,
            mods: 0,
            shift: 0,
            lo: value as u32,
            up: (value >> 32) as u32,
        }
    }

    pub(crate) const fn reg(kind: Kind, reg: u8) -> Self {
        Self {
            kind,
            reg,
            mods: 0,
            shift: 0,
            lo: 0,
            up: 0,
        }
    }
}

/// What the loop over instructions does with one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Flow {
    /// Calls its handler and goes on.
    Next,
    Branch,
    Scc0,
    Scc1,
    Vccz,
    Vccnz,
    Execz,
    Execnz,
    /// The same four of waves of 64 lanes.
    Vccz64,
    Vccnz64,
    Execz64,
    Execnz64,
    /// Of waves of 64 lanes: the lower lanes run the next `imm` instructions, then the upper ones the `target` behind those. `sdst` is
    /// the mask that they write, `half` says whether they read `vcc` by lane without naming it.
    Halves,
    /// Jumps to a pair of SGPRs (`a`), writing the return address to `dst` if it is not null.
    SetPc,
    Barrier,
    /// Global wave sync: the handler is in [`crate::exec::memory::gws`].
    Gws,
    End,
    Trap,
    /// Past the last instruction of a function.
    OffEnd,
}
