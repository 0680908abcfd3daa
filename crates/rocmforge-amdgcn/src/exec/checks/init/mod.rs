//! initcheck: uses of values that nobody has written. racecheck asks it what depends on a load of LDS that races with a write.
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
//! lanes (permutes, DPP, `v_readlane`: [`lanes`]) and of two registers, and for the halves of packed and 16-bit operands. In a sum, difference
//! or product of integers, only the bytes from the first unknown one on are unknown. Any other operation with an unknown operand has an unknown
//! result. These count as written: in a wave of 64 what other lanes give, except by DPP; a register of which an instruction of 32-bit operands
//! writes one half, or `v_writelane` a lane; both registers of an exchange of halves; a scalar that comes from a lane of what was loaded
//! from private memory. A matrix instruction of gfx11 makes the results of the rows and
//! columns unknown that it needs unknown lanes for, and with
//! `init_registers` is a fault itself where a lane of A or B was written and its twin in the other half of the wave was not. So a
//! report is a true one except for values that arithmetic cancels, and some uses are missed.
//!
//! A shuffle (`ds_bpermute`, `ds_swizzle`) from a lane that is off gives an unknown value too: a card gives 0, HIP and CUDA say that it is
//! undefined. DPP controls and `v_permlane` are not shuffles of a language but compilers' means, with a defined value for such lanes.

mod bits;
mod lanes;
mod origin;
mod unknown;
mod uses;

use crate::exec::code::Code;
use crate::exec::memory::buffer::reached as reached_in_buffer;
use crate::exec::simd::masks::bits_of_bytes;
use crate::exec::state::ctx::{Ctx, FromInactive, Ins};
use crate::exec::state::fields::Flow;
use crate::exec::state::request::{Data, Place, Request};
use crate::exec::state::wave::{EXEC, M0, NULL, VCC, Wave, upper_scalars};
use crate::fault::{Access, FaultKind};
use crate::kernarg::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::kernel::Kernel;
use crate::program::Program;
use origin::{Memory, Origin, Origins};
use rocmforge_isa::{Arch, Inst};
use std::rc::Rc;
use unknown::Unknown;
use uses::{Changes, Part, Reg, Use, What};

/// Whether an instruction only moves or selects bits of its sources.
pub(crate) fn moves_bits(inst: &Inst) -> bool {
    bits::Bits::of(inst).is_some_and(|bits| !bits.computes())
}

/// All four bytes of a register.
const ALL: u8 = 0xF;
/// The bytes that are unknown come from an operation, not from memory.
const COMPUTED: u8 = 0x10;

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
        Box::new(Self {
            uses,
            units: vec![Unknown::none(); units as usize],
            registers,
            vgprs: kernel.setup.vgprs,
            origins: Origins::default(),
            stored: Vec::new(),
        })
    }

    /// Counts all registers of a wave as written. Gives what was known of them.
    pub(crate) fn set_aside(&mut self, w: &Wave) -> Vec<Known> {
        let units = [Some(w.unit()), w.high.as_ref().map(|high| high.unit())];
        let take = |unit: usize| Known(unit, std::mem::replace(&mut self.units[unit], Unknown::none()));
        units.into_iter().flatten().map(take).collect()
    }

    /// Takes back what was set aside, beside what has become known since, or in its place.
    pub(crate) fn take_back(&mut self, known: Vec<Known>, beside: bool) {
        for Known(unit, before) in known {
            let now = std::mem::replace(&mut self.units[unit], before);
            if beside {
                self.units[unit].add(&now);
            }
        }
    }

    /// Whether two states of a wave are the same where they are known.
    pub(crate) fn are_same(&self, one: &Wave, other: &Wave) -> bool {
        let unknown = &self.units[one.unit()];
        let vgprs = (self.vgprs as usize).min(256);
        let vector = |n: usize| {
            let (a, b, state) = (&one.v[n].0, &other.v[n].0, &unknown.v[n]);
            (0..32).all(|l| (a[l] ^ b[l]) & !bits_of_bytes(state[l] & ALL) == 0)
        };
        // The upper lanes' scalar registers are copies.
        let scalar = |n: usize| one.first_lane != 0 || (one.s[n] ^ other.s[n]) & !unknown.s[n] == 0;
        (0..vgprs).all(vector)
            && (0..128).all(scalar)
            && (unknown.scc || one.first_lane != 0 || one.scc == other.scc)
            && match (&one.high, &other.high) {
                (Some(one), Some(other)) => self.are_same(one, other),
                (one, other) => one.is_none() == other.is_none(),
            }
    }

    /// Whether a byte of LDS holds a copy of an unknown value.
    pub(crate) fn is_copy_in_lds(&self, at: usize) -> bool {
        self.origins.is_copy(Memory::in_lds(at as u64))
    }

    /// Whether an instruction changes memory that is neither LDS nor a lane's own.
    pub(crate) fn leaves(&self, w: &Wave, i: &Ins, index: usize) -> bool {
        let part = self.uses.0[index].as_ref().and_then(|u| u.parts.first());
        part.is_some_and(|part| part.leaves(w, i))
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
                let stored = u.what == What::Store && c.replays && u.leaves(w, i);
                if address != 0 {
                    self.origins
                        .report(w, c, i, effect.from, address, "an address depends on it");
                } else if data != 0 && u.what == What::Atomic {
                    self.origins
                        .report(w, c, i, effect.from, data, "an atomic changes memory by it");
                } else if data != 0 && stored {
                    self.origins
                        .report(w, c, i, effect.from, data, "it is stored to global memory");
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
                    let narrow = match u.what {
                        What::Halves(halves) => halves.written & ALL,
                        What::Select => u.written,
                        _ => u.narrow.map_or(ALL, |narrow| narrow.written),
                    };
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
                            let kept = if old & ALL & !narrow == 0 { 0 } else { old & !narrow };
                            unknown.v[at][l] = kept | new;
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
            let anywhere = !c.check_uninit;
            if anywhere
                || r.place == Place::Global && (nothing_else || bytes.iter().any(|(_, (computed, _))| *computed))
            {
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
        let inactive = std::mem::take(&mut c.inactive);
        if inactive != FromInactive::default() {
            self.shuffled(w, inactive, i, index);
        }
        let unwritten = std::mem::take(&mut c.unwritten);
        if unwritten.is_empty() {
            return;
        }
        let part = self.uses.0[index].as_ref().and_then(|u| u.parts.first());
        let (narrow, size) = part.map_or((None, 0), |part| (part.narrow, part.loads));
        for load in &unwritten {
            let copied = || self.copies(w, load.place, load.lane, load.address, load.bytes);
            if load.place == Place::Lds && load.race.is_none() && copied() != load.bytes {
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
                // A byte may be a race's, and written by nobody.
                if unknown.v[reg as usize][load.lane] != 0 {
                    unknown.v_from[reg as usize] = unknown.v_from[reg as usize].or(origin);
                } else {
                    unknown.comes_from(reg as usize, origin, 1 << load.lane);
                }
                unknown.v[reg as usize][load.lane] |= bytes;
            }
        }
    }
}

impl Part {
    /// Whether it changes memory that is neither LDS nor a lane's own.
    fn leaves(&self, w: &Wave, i: &Ins) -> bool {
        match self.changes {
            Changes::Nothing => false,
            Changes::Global => true,
            Changes::Any => {
                let apertures = &w.v[i.a.reg.wrapping_add(1) as usize].0;
                let local = |lane: usize| matches!(apertures[lane], SHARED_APERTURE | PRIVATE_APERTURE);
                !(0..32).all(|lane| w.exec() >> lane & 1 == 0 || local(lane))
            }
        }
    }

    fn is_vector(&self) -> bool {
        self.reads
            .iter()
            .chain(&self.writes)
            .any(|reg| matches!(reg, Reg::V(..)))
    }
}

/// What was known of the registers of a unit.
pub(crate) struct Known(usize, Unknown);
