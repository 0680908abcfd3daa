//! initcheck: uses of values that nobody has written.
//!
//! A load of memory nobody has written is no fault yet: copies of records read the padding between their fields. What such a
//! load gives is followed until something depends on it: an address, a branch, which lanes are active, or global memory that is
//! given a value computed from it, or nothing but it. Then it is a fault, at the load.
//!
//! Beside each vector register goes a byte for each lane: which of its four bytes are unknown, and whether they are as
//! they came from memory or computed. Beside each scalar register go 32 bits, and one bit beside `scc`. A store of bytes as
//! they came, beside others that are written, makes the bytes that they are stored to unwritten again. So following begins with the first load of unwritten
//! memory in a workgroup and ends with the workgroup; until then it costs nothing. With
//! [`Tools::init_registers`](crate::Tools::init_registers) it begins with the launch, and registers nobody has written count too.
//!
//! What of a value is unknown is exact for lanes, for operations that move bits ([`bits`]), for `and` and `or` of
//! scalars, for selection (an unknown operand that a zero masks out or that is not selected does not matter), for exchanges between
//! lanes (permutes, DPP, `v_readlane`: [`lanes`]) and of two registers, and for the halves of packed and 16-bit operands. Any other
//! operation with an unknown operand has an unknown result. Counted as written are what other lanes give to a wave of 64 but for DPP, a
//! register of which an instruction writes one half or `v_writelane` a lane, both registers of an exchange of halves, and a scalar that
//! comes from a lane of what was loaded from private memory. A matrix instruction of gfx11 makes the results of the rows and
//! columns unknown that it needs unknown lanes for, and with
//! `init_registers` is a fault itself where a lane of A or B was written and its twin in the other half of the wave was not. So a
//! report is a true one but for values that arithmetic cancels, and some uses are missed.

mod bits;
mod lanes;
mod origin;
mod uses;

use crate::exec::code::Code;
use crate::exec::memory::buffer::reached as reached_in_buffer;
use crate::exec::simd::masks::bits_of_bytes;
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::fields::{Flow, Src};
use crate::exec::state::request::{Data, Place, Request};
use crate::exec::state::wave::{EXEC, M0, NULL, VCC, Wave, upper_scalars};
use crate::fault::{Access, FaultKind};
use crate::kernel::Kernel;
use crate::program::Program;
use bits::Value;
use origin::{Memory, Origin, Origins};
use rocmforge_isa::Arch;
use std::rc::Rc;
use uses::{Part, Reg, Use, What};

/// All four bytes of a register.
const ALL: u8 = 0xF;
/// The bytes that are unknown come from an operation, not from memory.
const COMPUTED: u8 = 0x10;

/// Unknown bits of a wave's registers, and where the last unknown value of each comes from.
#[derive(Clone)]
struct Unknown {
    v: Box<[[u8; 32]; 256]>,
    v_from: [Origin; 256],
    s: [u32; 128],
    s_from: [Origin; 128],
    scc: bool,
    scc_from: Origin,
}

/// What the instructions of a program use, by lowered instruction: `None` for what does nothing here.
pub(crate) struct Uses(Vec<Option<Use>>);

impl Uses {
    /// Reads the code of a program once more.
    pub(crate) fn of(program: &Program) -> Rc<Self> {
        let code: &Code = &program.code;
        let mut uses: Vec<Option<Use>> = Vec::new();
        uses.resize_with(code.ins.len(), || None);
        let gfx11 = program.arch() == Arch::Gfx1100;
        for (at, index) in code.starts() {
            let (ins, wide) = (&code.ins[index], code.is_wide(at));
            uses[index] = program
                .instruction(at)
                .map(|inst| Use::of(&inst, gfx11, wide, ins.flow == Flow::Halves));
        }
        Rc::new(Self(uses))
    }
}

/// The state of the check during a workgroup, or a launch.
pub(crate) struct Init {
    uses: Rc<Uses>,
    /// By [`Wave::unit`]. The scalar registers are those of the wave's first.
    units: Vec<Unknown>,
    /// Registers nobody has written count.
    registers: bool,
    /// Vector registers the kernel asked for.
    vgprs: u32,
    origins: Origins,
    /// Bytes that are about to receive an unknown value as it came from memory.
    stored: Vec<(Memory, Origin)>,
}

/// What a part of an instruction does to the registers, found before any part writes.
struct Effect {
    /// Unknown bytes of each lane, for bitwise operations.
    bytes: Option<Box<[u8; 32]>>,
    /// Lanes, or bits of a scalar, that are unknown.
    result: u32,
    /// The same of the first word of a result, where it differs.
    low: Option<u32>,
    /// The same of the upper word of a pair.
    upper: u32,
    /// Lanes that are written, where they are active.
    lanes: u32,
    from: Origin,
    /// Whether the result of an `and` or `or` of scalars has a bit that is known to be set.
    not_zero: bool,
}

impl Init {
    /// Begins with all registers written, or none; `units`: groups of 32 lanes of a workgroup.
    pub(crate) fn start(uses: Rc<Uses>, kernel: &Kernel, units: u32, registers: bool) -> Box<Self> {
        let unknown = Unknown {
            v: Box::new([[0; 32]; 256]),
            v_from: [Origin::REGISTER; 256],
            s: [0; 128],
            s_from: [Origin::REGISTER; 128],
            scc: false,
            scc_from: Origin::REGISTER,
        };
        Box::new(Self {
            uses,
            units: vec![unknown; units as usize],
            registers,
            vgprs: kernel.setup.vgprs,
            origins: Origins::default(),
            stored: Vec::new(),
        })
    }

    /// Whether it goes on in the next workgroup.
    pub(crate) fn always(&self) -> bool {
        self.registers
    }

    /// Which of some unwritten bytes hold a copy of an unknown value.
    pub(crate) fn copies(&self, w: &Wave, place: Place, lane: usize, address: u64, bytes: u64) -> u64 {
        let held = |n: &u64| {
            let at = Memory::new(place, w, lane, address.wrapping_add(*n));
            bytes >> n & 1 != 0 && self.origins.is_copy(at)
        };
        (0..64).filter(held).fold(0, |mask, n| mask | 1 << n)
    }

    /// A wave starts with these scalar registers and v0 written.
    pub(crate) fn start_wave(&mut self, wave: &Wave, scalars: impl Iterator<Item = u8>) {
        self.origins.forget_workgroup();
        if let Some(high) = &wave.high {
            self.start_wave(high, std::iter::empty());
        }
        let unknown = &mut self.units[wave.unit()];
        unknown.v.fill([ALL | COMPUTED; 32]);
        unknown.v[0] = [0; 32];
        unknown.v_from = [Origin::REGISTER; 256];
        unknown.s = [u32::MAX; 128];
        unknown.s_from = [Origin::REGISTER; 128];
        unknown.scc = true;
        for n in scalars.chain(108..128) {
            unknown.s[n as usize & 127] = 0;
        }
    }

    /// What is about to run.
    pub(crate) fn before(&mut self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, index: usize) {
        self.stored.clear();
        c.unwritten.clear();
        let uses = Rc::clone(&self.uses);
        let Some(u) = &uses.0[index] else {
            return;
        };
        if self.registers {
            self.range(w, c, i, u);
        }
        let parts = uses::moved(&u.parts, w.s[M0]);
        let effects: Vec<Effect> = parts.iter().map(|part| self.effect(w, c, i, part)).collect();
        for (part, effect) in parts.iter().zip(effects) {
            self.write(w, part, &effect);
            if let Some(high) = &w.high {
                self.known_above(high, w.s[EXEC + 1], part);
            }
        }
    }

    /// What is about to run in each half of a wave of 64 lanes; `parts`: the first instruction of each part of the one with this head.
    pub(crate) fn before_halves(&mut self, w: &Wave, c: &mut Ctx<'_>, head: &Ins, parts: [&Ins; 2], index: usize) {
        self.stored.clear();
        c.unwritten.clear();
        let uses = Rc::clone(&self.uses);
        let (Some(u), Some(high)) = (&uses.0[index], &w.high) else {
            return;
        };
        if self.registers {
            self.range(w, c, head, u);
        }
        let low_unit = &self.units[w.unit()];
        let scalars = upper_scalars(&low_unit.s, head.half & 1 != 0);
        let (s_from, scc, scc_from) = (low_unit.s_from, low_unit.scc, low_unit.scc_from);
        let high_unit = &mut self.units[high.unit()];
        (high_unit.s, high_unit.s_from, high_unit.scc, high_unit.scc_from) = (scalars, s_from, scc, scc_from);
        if head.half & 1 != 0 {
            high_unit.s_from[VCC] = s_from[VCC + 1];
        }
        let (below, beyond) = (uses::moved(&u.parts, w.s[M0]), uses::moved(&u.high, w.s[M0]));
        let effects: Vec<Effect> = below.iter().map(|part| self.effect(w, c, parts[0], part)).collect();
        let above: Vec<Effect> = beyond.iter().map(|part| self.effect(high, c, parts[1], part)).collect();
        for (part, effect) in below.iter().zip(effects) {
            self.write(w, part, &effect);
        }
        for (part, effect) in beyond.iter().zip(above) {
            self.write(high, part, &effect);
        }
        let mask = head.sdst as usize & 127;
        if !matches!(mask, NULL | EXEC) {
            let upper = (mask + 1) & 127;
            let written = (self.units[high.unit()].s[upper], self.units[high.unit()].s_from[upper]);
            let low = &mut self.units[w.unit()];
            (low.s[upper], low.s_from[upper]) = written;
        }
    }

    /// What an instruction that both halves of a wave execute together writes counts as written in the upper lanes too.
    fn known_above(&mut self, high: &Wave, exec: u32, u: &Part) {
        let unknown = &mut self.units[high.unit()];
        let lanes = if u.whole { u32::MAX } else { exec };
        for &write in &u.writes {
            if let Reg::V(first, count) = write {
                for n in 0..count {
                    let register = &mut unknown.v[first.wrapping_add(n) as usize];
                    for l in (0..32).filter(|l| lanes >> l & 1 != 0) {
                        register[l] = 0;
                    }
                }
            }
        }
    }

    /// Registers beyond those the kernel asked for.
    fn range(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, u: &Use) {
        let last = |reg: &Reg| match *reg {
            Reg::V(first, count) => u32::from(first) + u32::from(count),
            _ => 0,
        };
        let all = u.parts.iter().flat_map(|part| part.reads.iter().chain(&part.writes));
        let used = all.map(last).max().unwrap_or(0);
        if used > self.vgprs
            && let Some(fault) = c.fault(w, i, FaultKind::RegisterOutOfRange, Access::None, 0, 0, 0)
        {
            fault.note = format!("v{} of {}", used - 1, self.vgprs);
        }
    }

    fn effect(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, u: &Part) -> Effect {
        let unknown = &self.units[w.unit()];
        let (exec, vector) = (w.exec(), u.is_vector());
        let from = u
            .reads
            .iter()
            .fold(Origin::NONE, |all, &read| all.or(unknown.origin(read)));
        let mut effect = Effect {
            bytes: None,
            result: 0,
            low: None,
            upper: 0,
            lanes: w.exec(),
            from,
            not_zero: false,
        };
        match u.what {
            What::Known | What::Matrix => {}
            What::Compute | What::Wide => {
                effect.result = unknown.any(&u.reads);
                effect.upper = if vector { 0 } else { effect.result };
            }
            What::Halves(halves) => unknown.halves(w, halves, &mut effect),
            What::Exchange { data } => {
                unknown.exchange(w, c, i, u, data, &mut effect);
                // Compilers keep scalars in lanes of a register and that in private memory, and load all of it where they have written some lanes:
                // masks with bits of lanes that are off, for one.
                if effect.bytes.is_none() && !self.origins.is_shared(effect.from) {
                    effect.result = 0;
                }
            }
            What::Permuted { .. } => unknown.permuted(w, c, i, u, &mut effect),
            What::Bits(operation) if vector => effect.bytes = Some(unknown.bitwise(w, operation)),
            What::Bits(operation) => effect.result = operation.unknown(|operand| unknown.scalar(w, operand)),
            What::And | What::Or => unknown.scalar_bits(w, i, u, &mut effect),
            What::Select => unknown.select(w, u, &mut effect),
            What::Load | What::Store | What::Atomic => {
                let address = unknown.any(&u.reads[..u.address]) & if vector { exec } else { 1 };
                let lanes = if u.buffer { reached_in_buffer(w, i) } else { exec };
                let data = unknown.any(&u.reads[u.address..]) & lanes;
                if address != 0 {
                    self.origins
                        .report(w, c, i, effect.from, address, "an address depends on it");
                } else if data != 0 && u.what == What::Atomic {
                    self.origins
                        .report(w, c, i, effect.from, data, "an atomic changes memory by it");
                }
            }
            What::Branch => {
                // vccz is known as soon as one bit is known to be set.
                let set = |n: usize| w.s[n] & !unknown.s[n] != 0;
                let vcc = u.reads.contains(&Reg::S(VCC as u8, 1)) && set(VCC)
                    || u.reads.contains(&Reg::S(VCC as u8, 2)) && (set(VCC) || set(VCC + 1));
                let lanes = unknown.any(&u.reads);
                if lanes != 0 && !vcc {
                    self.origins
                        .report(w, c, i, effect.from, lanes, "a branch depends on it");
                }
            }
        }
        if u.what == What::Wide {
            let low = |read: &Reg| match *read {
                Reg::V(first, _) => Reg::V(first, 1),
                Reg::S(first, _) => Reg::S(first, 1),
                other => other,
            };
            effect.low = Some(u.reads.iter().fold(0, |all, read| all | unknown.of(low(read))));
        }
        // What a lane gives to a scalar register are bits of a value.
        let one_lane = matches!(u.what, What::Exchange { .. });
        effect.result &= if vector && !one_lane { effect.lanes } else { u32::MAX };
        if u.exec && effect.result & w.live != 0 {
            let lanes = effect.result & w.live;
            self.origins
                .report(w, c, i, effect.from, lanes, "which lanes are active depends on it");
            effect.result = 0;
        }
        if let Some(high) = w.high.as_ref().filter(|high| u.exec && effect.upper & high.live != 0) {
            let lanes = effect.upper & high.live;
            self.origins
                .report(high, c, i, effect.from, lanes, "which lanes are active depends on it");
        }
        if u.what == What::Matrix {
            unknown.matrix_halves(w, c, i, u, self.registers);
        }
        effect
    }

    fn write(&mut self, w: &Wave, u: &Part, effect: &Effect) {
        let unknown = &mut self.units[w.unit()];
        if u.what == What::Matrix {
            return unknown.matrix(u, effect.from);
        }
        let exec = if u.whole { u32::MAX } else { effect.lanes };
        let vector = u.is_vector();
        if let Some(Reg::S(first, count)) = u.saves {
            for n in 0..count {
                unknown.s[first.wrapping_add(n) as usize & 127] = 0;
            }
        }
        let reads_vector = u.reads.iter().any(|r| matches!(r, Reg::V(..)));
        for &write in &u.writes {
            match write {
                Reg::V(first, count) => {
                    let fill = match effect.result {
                        result if vector && reads_vector => result,
                        0 => 0,
                        _ => exec,
                    };
                    let narrow = u.narrow.map_or(ALL, |narrow| narrow.written);
                    for n in 0..count {
                        let fill = effect.low.filter(|_| n == 0).unwrap_or(fill);
                        let at = first.wrapping_add(n) as usize;
                        let mut any = false;
                        for l in (0..32).filter(|l| exec >> l & 1 != 0) {
                            let new = match &effect.bytes {
                                Some(bytes) => bytes[l],
                                None if fill >> l & 1 != 0 => ALL | COMPUTED,
                                None => 0,
                            };
                            let old = unknown.v[at][l];
                            unknown.v[at][l] = if narrow == ALL { new } else { old & !narrow | new };
                            any |= new != 0;
                        }
                        if any {
                            unknown.comes_from(at, effect.from, exec);
                        }
                    }
                }
                Reg::S(first, count) => {
                    for n in 0..count {
                        let at = first.wrapping_add(n) as usize & 127;
                        let exact = matches!(u.what, What::And | What::Or | What::Select | What::Bits(_));
                        let mask = exact || vector;
                        let result = if n == 0 { effect.result } else { effect.upper };
                        unknown.s[at] = if mask || result == 0 { result } else { u32::MAX };
                        unknown.s_from[at] = effect.from;
                        // null, m0 and exec never count as unknown.
                        if (124..128).contains(&at) {
                            unknown.s[at] = 0;
                        }
                    }
                }
                Reg::Scc => {
                    // Whether a result that is partly unknown is not zero may be known all the same.
                    unknown.scc = effect.result | effect.upper != 0 && !effect.not_zero;
                    unknown.scc_from = effect.from;
                }
                Reg::Mask(_) => {}
            }
        }
    }

    /// A request that belongs to the instruction that is about to run.
    pub(crate) fn request(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>) {
        if let (Access::Store, Data::Texels { first, count, .. }) = (r.access, r.data) {
            let registers = Reg::V(first, count);
            let unknown = &self.units[w.unit()];
            let (lanes, from) = (unknown.of(registers) & r.exec, unknown.origin(registers));
            if lanes != 0 {
                self.origins
                    .report(w, c, i, from, lanes, "it is stored to global memory");
            }
            return;
        }
        let (first, shift) = match (r.access, r.data) {
            (Access::Store, Data::Words(reg)) => (reg, 0),
            (Access::Store, Data::Bytes(reg, shift)) => (reg, shift as usize / 8),
            _ => return,
        };
        let unknown = &self.units[w.unit()];
        let size = r.size as usize;
        let registers = (0..(size + shift).div_ceil(4)).map(|n| first.wrapping_add(n as u8));
        if registers.fold(0, |mask, n| mask | unknown.of(Reg::V(n, 1))) & r.exec == 0 {
            return;
        }
        let (mut used, mut from) = (0, Origin::NONE);
        for l in (0..32).filter(|l| r.exec >> l & 1 != 0) {
            let byte = |n: usize| {
                let reg = first.wrapping_add(((n + shift) / 4) as u8) as usize;
                let state = unknown.v[reg][l];
                (state >> ((n + shift) % 4) & 1 != 0).then(|| (state & COMPUTED != 0, unknown.v_from[reg]))
            };
            let bytes: Vec<(usize, (bool, Origin))> = (0..size).filter_map(|n| Some((n, byte(n)?))).collect();
            if bytes.is_empty() {
                continue;
            }
            // Padding has written fields beside it.
            let nothing_else = bytes.len() == size;
            if r.place == Place::Global && (nothing_else || bytes.iter().any(|(_, (computed, _))| *computed)) {
                used |= 1 << l;
                from = bytes.iter().fold(from, |all, (_, (_, origin))| all.or(*origin));
            } else {
                self.stored.extend(
                    bytes
                        .iter()
                        .map(|&(n, (_, origin))| (Memory::new(r.place, w, l, r.at[l].wrapping_add(n as u64)), origin)),
                );
            }
        }
        if used != 0 {
            self.origins
                .report(w, c, i, from, used, "it is stored to global memory");
        }
    }

    /// What has run.
    pub(crate) fn after(&mut self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, index: usize) {
        for (at, origin) in self.stored.drain(..) {
            // Nobody has written it, as far as what follows is concerned.
            at.forget(c);
            self.origins.put(at, origin);
        }
        let unwritten = std::mem::take(&mut c.unwritten);
        if unwritten.is_empty() {
            return;
        }
        let part = self.uses.0[index].as_ref().and_then(|u| u.parts.first());
        let (narrow, size) = part.map_or((None, 0), |part| (part.narrow, part.loads));
        for load in &unwritten {
            let copied = || self.copies(w, load.place, load.lane, load.address, load.bytes);
            if load.place == Place::Lds && copied() != load.bytes {
                c.warn(w, i, load, size);
            }
            let (mut left, mut word, mut origin) = (load.bytes, None, Origin::REGISTER);
            while left != 0 {
                let n = left.trailing_zeros() as usize;
                left &= left - 1;
                let address = load.address.wrapping_add(n as u64);
                if word != Some(address / 4) {
                    let at = Memory::new(load.place, w, load.lane, address);
                    (word, origin) = (Some(address / 4), self.origins.of(w, at, load, i.at, size));
                }
                let unknown = &mut self.units[w.unit()];
                let reg = load.register.wrapping_add((n / 4) as u8);
                if load.access == Access::Scalar {
                    unknown.s[reg as usize & 127] |= 0xFF << (8 * (n % 4));
                    unknown.s_from[reg as usize & 127] = origin;
                    continue;
                }
                let bytes = match narrow {
                    None => 1 << (n % 4),
                    Some(narrow) if narrow.signed && n + 1 == size as usize => {
                        narrow.written & (ALL << (narrow.first as usize + n))
                    }
                    Some(narrow) => 1 << (narrow.first as usize + n),
                };
                unknown.v[reg as usize][load.lane] |= bytes;
                unknown.comes_from(reg as usize, origin, 1 << load.lane);
            }
        }
    }
}

impl Part {
    fn is_vector(&self) -> bool {
        self.reads
            .iter()
            .chain(&self.writes)
            .any(|reg| matches!(reg, Reg::V(..)))
    }
}

impl Unknown {
    /// Lanes in which some byte of a register is unknown; all, if a scalar one is.
    fn of(&self, reg: Reg) -> u32 {
        let lanes = |state: &[u8; 32]| (0..32).fold(0, |mask, l| mask | u32::from(state[l] & ALL != 0) << l);
        match reg {
            Reg::V(first, count) => (0..count).fold(0, |mask, n| mask | lanes(&self.v[first.wrapping_add(n) as usize])),
            Reg::S(first, count) => {
                let any = (0..count).any(|n| self.s[first.wrapping_add(n) as usize & 127] != 0);
                if any { u32::MAX } else { 0 }
            }
            Reg::Mask(n) => self.s[n as usize & 127],
            Reg::Scc if self.scc => u32::MAX,
            Reg::Scc => 0,
        }
    }

    fn any(&self, reads: &[Reg]) -> u32 {
        reads.iter().fold(0, |mask, &read| mask | self.of(read))
    }

    /// Where the unknown value of a register comes from.
    fn origin(&self, reg: Reg) -> Origin {
        let if_unknown = |unknown: bool, origin: Origin| if unknown { origin } else { Origin::NONE };
        match reg {
            Reg::V(first, count) => (0..count).map(|n| first.wrapping_add(n)).fold(Origin::NONE, |all, n| {
                all.or(if_unknown(self.of(Reg::V(n, 1)) != 0, self.v_from[n as usize]))
            }),
            Reg::S(first, count) => (0..count).fold(Origin::NONE, |all, n| {
                all.or(self.origin(Reg::Mask(first.wrapping_add(n))))
            }),
            Reg::Mask(n) => if_unknown(self.s[n as usize & 127] != 0, self.s_from[n as usize & 127]),
            Reg::Scc => if_unknown(self.scc, self.scc_from),
        }
    }

    /// A register has got unknown values in some of these lanes.
    fn comes_from(&mut self, register: usize, origin: Origin, lanes: u32) {
        let others = self.of(Reg::V(register as u8, 1)) & !lanes != 0;
        let before = &mut self.v_from[register];
        *before = if others { before.or(origin) } else { origin };
    }

    /// Unknown halves of the result of an operation of 16-bit values.
    fn halves(&self, w: &Wave, halves: uses::Halves, effect: &mut Effect) {
        use rocmforge_isa::Operand;
        let mut out = Box::new([0; 32]);
        for l in (0..32).filter(|l| w.exec() >> l & 1 != 0) {
            let depends = |bytes: [u8; 3]| {
                halves.src.iter().zip(bytes).any(|(&operand, bytes)| match operand {
                    Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => self.v[n as usize][l] & bytes != 0,
                    Operand::Sgpr(n) => self.s[n as usize & 127] & bits_of_bytes(bytes) != 0,
                    Operand::VccLo => self.s[VCC] & bits_of_bytes(bytes) != 0,
                    _ => false,
                })
            };
            let (low, high) = (depends(halves.low), depends(halves.high));
            effect.result |= u32::from(low | high) << l;
            out[l] = match (low, high) {
                (false, false) => 0,
                _ => u8::from(low) * 0b0011 | u8::from(high) * 0b1100 | COMPUTED,
            };
        }
        if halves.packed {
            effect.bytes = Some(out);
        }
    }

    fn bitwise(&self, w: &Wave, operation: bits::Bits) -> Box<[u8; 32]> {
        use rocmforge_isa::Operand;
        let mut out = Box::new([0; 32]);
        for l in (0..32).filter(|l| w.exec() >> l & 1 != 0) {
            let computed = std::cell::Cell::new(if operation.computes() { COMPUTED } else { 0 });
            let mask = operation.unknown(|operand| match operand {
                Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => {
                    let state = self.v[n as usize][l];
                    computed.set(computed.get() | state & COMPUTED);
                    Value {
                        bits: bits::value(w, operand, l),
                        unknown: bits_of_bytes(state),
                    }
                }
                other => self.scalar(w, other),
            });
            let bytes = (0..4).fold(0, |bytes, n| bytes | u8::from(mask >> (8 * n) & 0xFF != 0) << n);
            out[l] = if bytes == 0 { 0 } else { bytes | computed.get() };
        }
        out
    }

    /// A scalar operand.
    fn scalar(&self, w: &Wave, operand: rocmforge_isa::Operand) -> Value {
        use rocmforge_isa::Operand;
        let unknown = match operand {
            Operand::Sgpr(n) => self.s[n as usize & 127],
            Operand::VccLo => self.s[VCC],
            Operand::VccHi => self.s[VCC + 1],
            _ => 0,
        };
        Value {
            bits: bits::value(w, operand, 0),
            unknown,
        }
    }

    /// Unknown bits of an `and` or `or` of scalars, one word or two.
    fn scalar_bits(&self, w: &Wave, i: &Ins, u: &Part, effect: &mut Effect) {
        let two = u.reads.iter().any(|read| matches!(read, Reg::S(_, 2)));
        let mut known = [0; 2];
        for n in 0..1 + usize::from(two) {
            (known[n], effect.not_zero) = {
                let (unknown, ones) = self.scalar_word(w, i, u, n);
                (unknown, effect.not_zero | (ones & !unknown != 0))
            };
        }
        [effect.result, effect.upper] = known;
    }

    /// Unknown bits of a word of the result, and bits that are set in it.
    fn scalar_word(&self, w: &Wave, i: &Ins, u: &Part, n: usize) -> (u32, u32) {
        let s = |register: u8| {
            let at = (register as usize + n) & 127;
            (self.s[at], w.s[at])
        };
        match (u.reads.first(), u.reads.get(1)) {
            (Some(&Reg::S(a, _)), Some(&Reg::S(b, _))) => {
                let ((pa, a), (pb, b)) = (s(a), s(b));
                if u.what == What::And {
                    ((pa | pb) & (pa | a) & (pb | b), a & b)
                } else {
                    ((pa | pb) & (pa | !a) & (pb | !b), a | b)
                }
            }
            (Some(&Reg::S(a, _)), _) => {
                let constant: &Src = if i.a.kind == crate::exec::state::fields::Kind::C {
                    &i.a
                } else {
                    &i.b
                };
                let other = (w.scalar64(constant) >> (32 * n)) as u32;
                (s(a).0 & if u.what == What::And { other } else { !other }, 0)
            }
            _ => (0, 0),
        }
    }

    /// Unknown bits of the selected operand.
    fn select(&self, w: &Wave, u: &Part, effect: &mut Effect) {
        use rocmforge_isa::Operand;
        let scalar = |n: usize| if self.s[n & 127] == 0 { 0 } else { u32::MAX };
        if !matches!(u.writes.first(), Some(Reg::V(..))) {
            // s_cselect: the first operand where scc is set.
            let operand = |operand| match operand {
                Operand::Sgpr(n) => scalar(n as usize),
                Operand::VccLo => scalar(VCC),
                _ => 0,
            };
            let taken = operand(u.select[usize::from(w.scc == 0)]);
            effect.result = if self.scc { u32::MAX } else { taken };
            if self.scc {
                effect.from = effect.from.or(self.scc_from);
            }
            effect.upper = effect.result;
            return;
        }
        let operand = |operand, l: usize| match operand {
            Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => self.v[n as usize][l],
            Operand::Sgpr(n) if scalar(n as usize) != 0 => ALL | COMPUTED,
            _ => 0,
        };
        let by = match u.select[2] {
            Operand::Sgpr(n) => n as usize & 127,
            _ => VCC,
        };
        let mut bytes = Box::new([0; 32]);
        let mut selected = [false; 2];
        effect.from = if self.s[by] & w.exec() != 0 {
            self.s_from[by]
        } else {
            Origin::NONE
        };
        for l in (0..32).filter(|l| w.exec() >> l & 1 != 0) {
            let n = (w.s[by] >> l & 1) as usize;
            bytes[l] = if self.s[by] >> l & 1 != 0 {
                ALL | COMPUTED
            } else {
                operand(u.select[n], l)
            };
            selected[n] |= bytes[l] != 0;
        }
        for operand in (0..2).filter(|&n| selected[n]).map(|n| u.select[n]) {
            effect.from = effect.from.or(match operand {
                Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => self.origin(Reg::V(n, 1)),
                Operand::Sgpr(n) => self.origin(Reg::Mask(n)),
                _ => Origin::NONE,
            });
        }
        effect.bytes = Some(bytes);
    }

    /// Reports lanes of A and B that are known in one half of the wave only.
    fn matrix_halves(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, u: &Part, registers: bool) {
        for (n, name) in ["A", "B"].into_iter().enumerate().filter(|_| registers) {
            let lanes = u.reads.get(n).map_or(0, |&read| self.of(read));
            let one_half = (lanes ^ lanes >> 16) & 0xFFFF;
            if one_half == 0 {
                continue;
            }
            let lane = one_half.trailing_zeros();
            let (written, not) = if lanes >> lane & 1 == 0 {
                (lane, lane + 16)
            } else {
                (lane + 16, lane)
            };
            if let Some(fault) = c.fault(w, i, FaultKind::MatrixHalves, Access::None, not, 0, 0) {
                fault.note = format!("{name} was written in lane {written} and not in lane {not}");
            }
        }
    }

    /// A matrix instruction reads and writes all lanes, whatever `exec` is.
    fn matrix(&mut self, u: &Part, from: Origin) {
        let operand = |n: usize| u.reads.get(n).map_or(0, |&read| self.of(read));
        let (a, b) = (operand(0), operand(1));
        let rows = (a | a >> 16) & 0xFFFF;
        let columns = (b | b >> 16) & 0xFFFF;
        let results: [u32; 8] = std::array::from_fn(|r| {
            let half = |row: usize| if rows >> row & 1 != 0 { 0xFFFF } else { 0 };
            let addend = match u.reads.get(2) {
                Some(&Reg::V(first, _)) => self.of(Reg::V(first.wrapping_add(r as u8), 1)),
                Some(&other) => self.of(other),
                None => 0,
            };
            half(2 * r) | half(2 * r + 1) << 16 | columns | columns << 16 | addend
        });
        if let Some(&Reg::V(first, _)) = u.writes.first() {
            for (r, result) in results.into_iter().enumerate() {
                let at = first.wrapping_add(r as u8) as usize;
                for l in 0..32 {
                    self.v[at][l] = if result >> l & 1 != 0 { ALL | COMPUTED } else { 0 };
                }
                self.v_from[at] = from;
            }
        }
    }
}
