//! Registers of one wave.
//!
//! A wave has 32 lanes. One of 64 is two of them, as the hardware has it: it executes a vector instruction in two passes, first lanes 0 to
//! 31 under the lower half of `exec`, then lanes 32 to 63 under the upper half. The upper lanes' registers are a wave of their own behind
//! the lower ones', with a copy of the scalar registers made before each such instruction (see [`Wave::share`]).

use crate::calls::Calls;
use crate::exec::number::mode::Mode;
use crate::exec::simd::masks::spread;
use crate::exec::state::absence::Absence;
use crate::exec::state::fields::{Flow, Kind, Src};
use crate::exec::state::grid::Ticket;
use crate::exec::waves::group::heap::Allocation;
use std::mem::MaybeUninit;

pub(crate) const VCC: usize = 106;
pub(crate) const NULL: usize = 124;
pub(crate) const M0: usize = 125;
pub(crate) const EXEC: usize = 126;
/// Where the upper lanes of a wave of 64 find `exec_lo` and `exec_hi` as operands: their own mask is in the place of `exec_lo`.
pub(crate) const EXEC_OPERAND: u8 = 108;

/// One vector register: a value for each of 32 lanes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [u32; 32]);

/// What a wave waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaveState {
    Ready,
    Barrier,
    /// What `Wave::gws` names.
    Grid,
    Ended,
}

/// One wave: 256 vector registers so that a register number needs no bounds check, and the scalar registers by their
/// operand number (106 vcc, 124 null, 125 m0, 126 exec).
#[derive(Clone)]
#[repr(C)]
pub(crate) struct Wave {
    pub(crate) v: [Lanes; 256],
    /// Where a permuted or saved operand waits for the next lowered instruction.
    pub(crate) tmp: Lanes,
    pub(crate) s: [u32; 128],
    pub(crate) scc: u32,
    /// Floating-point mode; only the handlers in `vector::modal` look at it.
    pub(crate) mode: Mode,
    /// Cycles that have passed beside those of its instructions, and how often the wave has looked at a clock.
    pub(crate) clock: u64,
    pub(crate) looks: u32,
    /// Instructions it has run in earlier turns; what that number will be when this turn is used up, and what is left of the turn.
    pub(crate) ran: u64,
    pub(crate) until: i64,
    pub(crate) left: i64,
    /// Index of the next lowered instruction.
    pub(crate) next: usize,
    /// `exec` while a DPP instruction runs under a narrower one.
    pub(crate) saved_exec: u32,
    /// Lanes the wave started with.
    pub(crate) live: u32,
    pub(crate) index: u32,
    /// Number of its first lane in the wave: 32 for the upper lanes of a wave of 64, else 0.
    pub(crate) first_lane: u32,
    /// Number of its first lane in the workgroup.
    pub(crate) slot: u32,
    /// Lanes 32 to 63 of a wave of 64.
    pub(crate) high: Option<Box<Self>>,
    pub(crate) state: WaveState,
    /// gfx1201: signals to the barrier that no wait has used up.
    pub(crate) signals: u32,
    /// What it waits for with waves of other workgroups.
    pub(crate) gws: Option<Ticket>,
    /// Calls that it is in.
    pub(crate) calls: Calls,
    /// Index of the instruction at which it last had to stop though it could go on.
    pub(crate) last: usize,
    /// As those of the running wave in [`Ctx`](crate::exec::state::ctx::Ctx).
    pub(crate) absent: Vec<Absence>,
    pub(crate) barriers: u32,
    pub(crate) last_write: u32,
    /// The call of device `malloc` that it is in.
    pub(crate) allocation: Option<Box<Allocation>>,
}

impl Wave {
    pub(crate) fn exec(&self) -> u32 {
        self.s[EXEC]
    }

    /// Whether it would do the same as the other from here on.
    pub(crate) fn same_registers(&self, other: &Self) -> bool {
        self.next == other.next
            && self.scc == other.scc
            && self.s == other.s
            && self.v.iter().zip(&other.v).all(|(a, b)| a.0 == b.0)
            && match (&self.high, &other.high) {
                (Some(a), Some(b)) => a.v.iter().zip(&b.v).all(|(a, b)| a.0 == b.0),
                (a, b) => a.is_none() == b.is_none(),
            }
    }

    /// Its number among the groups of 32 lanes of the workgroup.
    pub(crate) fn unit(&self) -> usize {
        self.slot as usize / 32
    }

    /// Active lanes of all that it has, 64 in a wave of 64.
    pub(crate) fn exec64(&self) -> u64 {
        self.all_lanes(EXEC)
    }

    /// Bits of a mask register for all lanes.
    fn all_lanes(&self, register: usize) -> u64 {
        let high = if self.high.is_some() { self.s[register + 1] } else { 0 };
        u64::from(self.s[register]) | u64::from(high) << 32
    }

    /// Lanes of its workgroup's that are not active though the wave started with them.
    pub(crate) fn missing(&self) -> u64 {
        let high = self.high.as_ref().map_or(0, |high| high.live);
        (u64::from(self.live) | u64::from(high) << 32) & !self.exec64()
    }

    /// Whether `vcc` is 0 for all lanes.
    pub(crate) fn vccz(&self) -> bool {
        self.all_lanes(VCC) == 0
    }

    /// Whether no lane is active.
    pub(crate) fn execz(&self) -> bool {
        self.exec64() == 0
    }

    /// Whether a branch by all lanes of a wave of 64 is taken.
    #[cold]
    #[inline(never)]
    pub(crate) fn takes(&self, flow: Flow) -> bool {
        match flow {
            Flow::Vccz64 => self.vccz(),
            Flow::Vccnz64 => !self.vccz(),
            Flow::Execz64 => self.execz(),
            _ => !self.execz(),
        }
    }

    /// Copies the scalar side to the upper lanes of a wave of 64, which are about to execute their part of an instruction; `carry`: it
    /// reads `vcc` by lane without naming it.
    pub(crate) fn share(&mut self, carry: bool) {
        if let Some(high) = &mut self.high {
            high.s = upper_scalars(&self.s, carry);
            high.scc = self.scc;
            high.mode = self.mode;
        }
    }

    /// Changes the calls that it is in, with all its lanes.
    pub(crate) fn change_calls(&mut self, mut change: impl FnMut(&mut Calls)) {
        change(&mut self.calls);
        if let Some(high) = &mut self.high {
            change(&mut high.calls);
        }
    }

    /// Takes over a mask of which the upper lanes have written their half: `register` is the lower half's.
    pub(crate) fn join(&mut self, high: &Self, register: u8) {
        match register as usize {
            NULL => {}
            EXEC => self.s[EXEC + 1] = high.s[EXEC],
            register => self.s[(register + 1) & 127] = high.s[(register + 1) & 127],
        }
        self.s[NULL] = 0;
    }

    /// A 32-bit scalar operand.
    #[inline(always)]
    pub(crate) fn scalar(&self, s: &Src) -> u32 {
        match s.kind {
            Kind::C => s.lo,
            Kind::S => self.s[s.reg as usize & 127],
            _ => self.special(s),
        }
    }

    #[cold]
    fn special(&self, s: &Src) -> u32 {
        match s.kind {
            Kind::Scc => self.scc,
            Kind::VccZ => u32::from(self.vccz()),
            Kind::ExecZ => u32::from(self.execz()),
            Kind::V => self.v[s.reg as usize].0[0],
            _ => s.lo,
        }
    }

    /// A scalar register or a constant.
    #[inline(always)]
    pub(crate) fn uniform(&self, s: &Src) -> u32 {
        let register = self.s[s.reg as usize & 127];
        if s.kind == Kind::C { s.lo } else { register }
    }

    /// A 64-bit scalar operand.
    #[inline(always)]
    pub(crate) fn scalar64(&self, s: &Src) -> u64 {
        match s.kind {
            Kind::S => u64::from(self.s[s.reg as usize & 127]) | u64::from(self.s[(s.reg as usize + 1) & 127]) << 32,
            Kind::C => u64::from(s.lo) | u64::from(s.up) << 32,
            _ => u64::from(self.special(s)),
        }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, reg: u8, value: u32) {
        self.s[reg as usize & 127] = value;
        self.s[NULL] = 0;
    }

    #[inline(always)]
    pub(crate) fn set64(&mut self, reg: u8, value: u64) {
        self.s[reg as usize & 127] = value as u32;
        self.s[(reg as usize + 1) & 127] = (value >> 32) as u32;
        self.s[NULL] = 0;
    }

    /// Writes a vector register's active lanes.
    #[inline(always)]
    pub(crate) fn put(&mut self, reg: u8, value: &[u32; 32]) {
        let exec = self.s[EXEC];
        let out = &mut self.v[reg as usize].0;
        if exec == u32::MAX {
            *out = *value;
        } else {
            let on = spread(exec);
            for l in 0..32 {
                out[l] ^= (out[l] ^ value[l]) & on[l];
            }
        }
    }

    /// A 32-bit vector operand: the register itself, or a scalar spread into `buffer`.
    #[inline(always)]
    pub(crate) fn lanes<'a>(&'a self, s: &Src, buffer: &'a mut MaybeUninit<[u32; 32]>) -> &'a [u32; 32] {
        // Common cases in line, the most common one first, without the jump table that a match over all of them would become.
        if s.kind == Kind::V {
            return &self.v[s.reg as usize].0;
        }
        std::hint::cold_path();
        match s.kind {
            Kind::S | Kind::C => buffer.write([self.uniform(s); 32]),
            _ => self.rare(s, buffer),
        }
    }

    #[inline(never)]
    fn rare<'a>(&'a self, s: &Src, buffer: &'a mut MaybeUninit<[u32; 32]>) -> &'a [u32; 32] {
        match s.kind {
            Kind::T => &self.tmp.0,
            _ => buffer.write([self.special(s); 32]),
        }
    }
}

/// The scalar registers as the upper lanes of a wave of 64 use them: see [`Wave::share`]. The same holds for what is known of registers.
pub(crate) fn upper_scalars(s: &[u32; 128], carry: bool) -> [u32; 128] {
    let mut upper = *s;
    let operand = EXEC_OPERAND as usize;
    (upper[operand], upper[operand + 1]) = (s[EXEC], s[EXEC + 1]);
    upper[EXEC] = s[EXEC + 1];
    if carry {
        upper[VCC] = s[VCC + 1];
    }
    upper
}
