//! init_registers: uses of registers whose value comes from nowhere.
//!
//! Beside each vector register goes a bit for each lane, beside each scalar register 32 bits, and one bit beside `scc`: set
//! where nothing was ever written, or what was written depends on such a place. Loads of memory nobody has written set
//! them too, unless initcheck reports those itself. Copies and arithmetic hand the bits on, and nothing is reported until
//! such a value decides something: an address, a branch, the exec mask, or what is stored to global memory.
//!
//! The bits are exact for lanes, and for bitwise and, or, and selection (an unknown operand that a zero masks out or that is
//! not selected does not matter); any other operation with an unknown operand has an unknown result. What other lanes'
//! registers give (permutes, DPP, `v_readlane`) counts as written, and so does a register of which an instruction writes
//! one half. A matrix instruction of gfx11 makes the results of the rows and columns unknown that it needs unknown lanes for,
//! and is a fault itself where a lane of A or B was written and its twin in the other half of the wave was not. So a report is a true one but for values that arithmetic cancels, and some uses are missed.

use super::code::{Code, Ins};
use super::ctx::Ctx;
use super::mem::reached_in_buffer;
use super::observe::{Place, Request};
use super::vector::cross;
use super::wave::{EXEC, VCC, Wave};
use crate::arch::Arch;
use crate::fault::{Access, FaultKind};
use crate::inst::{Format, Inst, Op, Operand, Ty};
use crate::program::{Kernel, Program};

/// A run of registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reg {
    V(u8, u8),
    S(u8, u8),
    /// A scalar register with a bit for each lane.
    Mask(u8),
    Scc,
}

/// What an instruction does with unknown values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// The results are unknown where a source is.
    Compute,
    /// Bitwise `and` or `or` of scalars.
    And,
    Or,
    /// One of the first two sources, by the third (or by `scc`).
    Select,
    /// The results are known.
    Known,
    /// Rows of A times columns of B plus C, with the lanes of gfx11.
    Matrix,
    /// Only the address matters (first source).
    Load,
    /// Address, then data.
    Store,
    /// A conditional branch.
    Branch,
}

/// Registers an instruction reads and writes.
struct Use {
    what: What,
    reads: Vec<Reg>,
    /// How many of the reads are address.
    address: usize,
    writes: Vec<Reg>,
    /// It writes what `exec` was to this register.
    saves: Option<Reg>,
    /// It goes to global memory.
    global: bool,
    /// It does so through a resource descriptor, which may keep lanes away.
    buffer: bool,
    /// It writes `exec`.
    exec: bool,
}

/// Unknown bits of a wave's registers.
#[derive(Clone)]
struct Unknown {
    v: [u32; 256],
    s: [u32; 128],
    scc: bool,
}

/// The state of the check during a launch.
pub(crate) struct Init {
    uses: Vec<Option<Box<Use>>>,
    waves: Vec<Unknown>,
    /// Vector registers the kernel asked for.
    vgprs: u32,
    /// Lanes whose load met unwritten memory.
    loaded: u32,
    /// LDS that is about to receive an unknown value.
    stored: Vec<(u64, u32)>,
}

fn reg(operand: Operand, regs: u8) -> Option<Reg> {
    Some(match operand {
        Operand::Vgpr(n) => Reg::V(n, regs.max(1)),
        Operand::VgprHalf { reg, .. } => Reg::V(reg, 1),
        Operand::Sgpr(n) => Reg::S(n, regs.max(1)),
        Operand::VccLo => Reg::S(VCC as u8, regs.max(1)),
        Operand::VccHi => Reg::S(VCC as u8 + 1, 1),
        Operand::ExecLo => Reg::S(EXEC as u8, 1),
        Operand::Scc => Reg::Scc,
        Operand::VccZ => Reg::S(VCC as u8, 1),
        _ => return None,
    })
}

/// Whether a scalar operation leaves `scc` alone.
fn keeps_scc(name: &str) -> bool {
    const KEEP: [&str; 16] = [
        "SMov", "SCmov", "SCselect", "SBrev", "SCtz", "SClz", "SCls", "SSext", "SBitset", "SPack", "SMul", "SGet",
        "SSet", "SBfm", "SSwappc", "SCall",
    ];
    KEEP.iter().any(|start| name.starts_with(start))
}

impl Use {
    fn of(inst: &Inst) -> Self {
        let name = format!("{:?}", inst.op);
        let mut reads: Vec<Reg> = Vec::new();
        let mut writes: Vec<Reg> = Vec::new();
        let mut halves = Some(inst);
        while let Some(half) = halves {
            for (operand, ty) in half.src.iter().zip(half.ty.src) {
                reads.extend(match reg(*operand, ty.regs()) {
                    Some(Reg::S(n, _)) if ty == Ty::Mask => Some(Reg::Mask(n)),
                    other => other,
                });
            }
            writes.extend(reg(half.dst, half.ty.dst.regs()));
            writes.extend(reg(half.sdst, half.ty.sdst.regs().min(1)));
            halves = half.dual.as_deref();
        }
        let memory = matches!(
            inst.format,
            Format::Ds | Format::Global | Format::Flat | Format::Scratch
        ) || inst.format == Format::Mubuf && inst.ty.src[2] != Ty::None;
        let scalar = matches!(inst.format, Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk);
        let mut what = What::Compute;
        let mut address = 0;
        let mut saves = None;
        if scalar {
            let read_back = ["SAddk", "SMulk", "SCmov", "SBitset"]
                .iter()
                .any(|start| name.starts_with(start));
            if read_back {
                reads.extend(reg(inst.dst, inst.ty.dst.regs()));
            }
            if name.starts_with("SAddc") || name.starts_with("SSubb") || name.starts_with("SCmov") {
                reads.push(Reg::Scc);
            }
            if name.contains("Saveexec") {
                saves = writes.pop();
            }
            if name.contains("Saveexec") || name.contains("Wrexec") {
                reads.push(Reg::S(EXEC as u8, 1));
                writes.push(Reg::S(EXEC as u8, 1));
            }
            if !keeps_scc(&name) {
                writes.push(Reg::Scc);
            }
            what = match inst.op {
                Op::SAndB32 | Op::SAndB64 => What::And,
                Op::SOrB32 | Op::SOrB64 => What::Or,
                Op::SCselectB32 | Op::SCselectB64 => What::Select,
                Op::SGetregB32 | Op::SGetpcB64 => What::Known,
                Op::SXorB32 | Op::SXorB64 if inst.src[0] == inst.src[1] => What::Known,
                _ => What::Compute,
            };
            if name.contains("AndSaveexec") {
                what = What::And;
            } else if name.contains("OrSaveexec") {
                what = What::Or;
            }
            // What is negated first, or saved besides, is beyond these two rules.
            if matches!(what, What::And | What::Or) && (name.contains("Not") || inst.ty.dst.regs() > 1) {
                what = What::Compute;
            }
            if matches!(inst.op, Op::SSetpcB64 | Op::SSwappcB64) {
                what = What::Load;
                address = reads.len();
            }
        } else if inst.format == Format::Smem {
            what = What::Load;
            address = reads.len();
        } else if inst.format == Format::Sopp {
            what = What::Branch;
            match inst.op {
                Op::SCbranchScc0 | Op::SCbranchScc1 => reads.push(Reg::Scc),
                Op::SCbranchVccz | Op::SCbranchVccnz => reads.push(Reg::S(VCC as u8, 1)),
                _ => what = What::Known,
            }
        } else if memory {
            let data = reg(inst.src[1], inst.ty.src[1].regs());
            let second = if inst.format == Format::Ds {
                reg(inst.src[2], inst.ty.src[2].regs())
            } else {
                None
            };
            reads.clear();
            reads.extend(reg(inst.src[0], inst.ty.src[0].regs()));
            if inst.format != Format::Ds {
                reads.extend(reg(inst.src[2], inst.ty.src[2].regs()));
            }
            reads.extend(reg(inst.mem.soffset, 1));
            address = reads.len();
            reads.extend(data);
            reads.extend(second);
            what = if name.contains("Load") { What::Load } else { What::Store };
            if matches!(inst.op, Op::DsBpermuteB32 | Op::DsPermuteB32 | Op::DsSwizzleB32) {
                what = What::Known;
            }
        } else {
            let lanes = inst.mods.dpp.is_some() || cross::lookup(inst.op, false).is_some();
            if lanes {
                what = What::Known;
            } else if name.starts_with("VCndmask") {
                what = if inst.dual.is_some() { What::Known } else { What::Select };
            } else if name.contains("Fmac") || name.contains("2acc") || name.contains("VSwap") {
                reads.extend(reg(inst.dst, inst.ty.dst.regs()));
            } else if matches!(inst.op, Op::VXorB32 | Op::VSubNcU32 | Op::VSubF32) && inst.src[0] == inst.src[1] {
                what = What::Known;
            }
            if name.contains("DivFmas") {
                reads.push(Reg::S(VCC as u8, 1));
            }
        }
        // The exec mask is no operand where it only says which lanes take part.
        let exec = writes.contains(&Reg::S(EXEC as u8, 1));
        Self {
            what,
            reads,
            address,
            writes,
            saves,
            global: matches!(inst.format, Format::Global | Format::Flat | Format::Mubuf),
            buffer: memory && inst.format == Format::Mubuf,
            exec,
        }
    }
}

impl Init {
    /// Reads the code of a program once more: `None` for what does nothing here.
    pub(crate) fn start(program: &Program, kernel: &Kernel, waves: u32) -> Box<Self> {
        let code: &Code = &program.code;
        let mut uses: Vec<Option<Box<Use>>> = Vec::new();
        uses.resize_with(code.ins.len(), || None);
        for (at, index) in code.starts() {
            if let Some(inst) = program.instruction(at) {
                let mut of = Use::of(&inst);
                if program.arch() == Arch::Gfx1100 && super::is_matrix(inst.op) {
                    of.what = What::Matrix;
                }
                uses[index] = Some(Box::new(of));
            }
        }
        let unknown = Unknown {
            v: [u32::MAX; 256],
            s: [u32::MAX; 128],
            scc: true,
        };
        Box::new(Self {
            uses,
            waves: vec![unknown; waves as usize],
            vgprs: kernel.setup.vgprs,
            loaded: 0,
            stored: Vec::new(),
        })
    }

    /// A wave starts with these scalar registers and v0 written.
    pub(crate) fn start_wave(&mut self, wave: u32, scalars: impl Iterator<Item = u8>) {
        let unknown = &mut self.waves[wave as usize];
        unknown.v = [u32::MAX; 256];
        unknown.v[0] = 0;
        unknown.s = [u32::MAX; 128];
        unknown.scc = true;
        for n in scalars.chain(108..128) {
            unknown.s[n as usize & 127] = 0;
        }
    }

    /// What is about to run.
    pub(crate) fn before(&mut self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, index: usize) {
        self.loaded = 0;
        self.stored.clear();
        let Some(u) = self.uses[index].take() else {
            return;
        };
        self.step(w, c, i, &u);
        self.uses[index] = Some(u);
    }

    fn step(&mut self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, u: &Use) {
        let exec = w.exec();
        let last = |reg: &Reg| match *reg {
            Reg::V(first, count) => u32::from(first) + u32::from(count),
            _ => 0,
        };
        let used = u.reads.iter().chain(&u.writes).map(last).max().unwrap_or(0);
        if used > self.vgprs
            && let Some(fault) = c.fault(w, i, FaultKind::RegisterOutOfRange, Access::None, 0, 0, 0)
        {
            fault.note = format!("v{} of {}", used - 1, self.vgprs);
        }
        if u.what == What::Matrix {
            return self.matrix(w, c, i, u);
        }
        let unknown = &self.waves[w.index as usize];
        let of = |reads: &[Reg]| reads.iter().fold(0, |mask, &read| mask | unknown.of(read));
        let vector = u.reads.iter().chain(&u.writes).any(|reg| matches!(reg, Reg::V(..)));
        let active = if vector { exec } else { u32::MAX };
        let mut result = match u.what {
            What::Known => 0,
            What::Compute => of(&u.reads),
            What::And | What::Or => match (u.reads.first(), u.reads.get(1)) {
                (Some(&Reg::S(a, _)), Some(&Reg::S(b, _))) => {
                    let (pa, pb) = (unknown.s[a as usize & 127], unknown.s[b as usize & 127]);
                    let (a, b) = (w.s[a as usize & 127], w.s[b as usize & 127]);
                    if u.what == What::And {
                        (pa | pb) & (pa | a) & (pb | b)
                    } else {
                        (pa | pb) & (pa | !a) & (pb | !b)
                    }
                }
                (Some(&Reg::S(a, _)), _) => {
                    let other = w.scalar(if i.a.kind == super::code::Kind::C { &i.a } else { &i.b });
                    unknown.s[a as usize & 127] & if u.what == What::And { other } else { !other }
                }
                _ => 0,
            },
            What::Select => self.select(w, i, u),
            What::Load | What::Store | What::Branch | What::Matrix => 0,
        };
        result &= active;
        match u.what {
            What::Load | What::Store => {
                let address = of(&u.reads[..u.address]) & if vector { exec } else { 1 };
                let data = of(&u.reads[u.address..]) & if u.buffer { reached_in_buffer(w, i) } else { exec };
                if address != 0 {
                    report(w, c, i, address, "an address depends on it");
                } else if data != 0 && u.global && u.what == What::Store {
                    report(w, c, i, data, "it is stored to global memory");
                }
                if data != 0 && !u.global {
                    self.stored.push((0, data));
                }
            }
            What::Branch => {
                // vccz is known as soon as one bit is known to be set.
                let vcc = unknown.s[VCC];
                let known = u.reads.contains(&Reg::S(VCC as u8, 1)) && w.s[VCC] & !vcc != 0;
                if of(&u.reads) != 0 && !known {
                    report(w, c, i, of(&u.reads), "a branch depends on it");
                }
            }
            _ if u.exec && result & w.live != 0 => {
                report(w, c, i, result & w.live, "which lanes are active depends on it");
                result = 0;
            }
            _ => {}
        }
        // Whether a result that is partly unknown is not zero may be known all the same.
        let ones = match (u.what, u.reads.first(), u.reads.get(1)) {
            (What::And, Some(&Reg::S(a, _)), Some(&Reg::S(b, _))) => w.s[a as usize & 127] & w.s[b as usize & 127],
            (What::Or, Some(&Reg::S(a, _)), Some(&Reg::S(b, _))) => w.s[a as usize & 127] | w.s[b as usize & 127],
            _ => 0,
        };
        let unknown = &mut self.waves[w.index as usize];
        if let Some(Reg::S(n, _)) = u.saves {
            unknown.s[n as usize & 127] = 0;
        }
        for &write in &u.writes {
            match write {
                Reg::V(first, count) => {
                    let fill = if vector && u.reads.iter().any(|r| matches!(r, Reg::V(..))) {
                        result
                    } else if result != 0 {
                        exec
                    } else {
                        0
                    };
                    for n in 0..count {
                        let slot = &mut unknown.v[first.wrapping_add(n) as usize];
                        *slot = *slot & !exec | fill & exec;
                    }
                }
                Reg::S(first, count) => {
                    for n in 0..count {
                        let at = first.wrapping_add(n) as usize & 127;
                        let mask = matches!(u.what, What::And | What::Or | What::Select) || vector;
                        unknown.s[at] = if mask || result == 0 { result } else { u32::MAX };
                        // null, m0 and exec never count as unknown.
                        if (124..128).contains(&at) {
                            unknown.s[at] = 0;
                        }
                    }
                }
                Reg::Scc => unknown.scc = result != 0 && ones & !result == 0,
                Reg::Mask(_) => {}
            }
        }
    }

    /// A matrix instruction reads and writes all lanes, whatever `exec` is.
    fn matrix(&mut self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, u: &Use) {
        let unknown = &mut self.waves[w.index as usize];
        let operand = |n: usize| u.reads.get(n).map_or(0, |&read| unknown.of(read));
        let (a, b) = (operand(0), operand(1));
        for (name, lanes) in [("A", a), ("B", b)] {
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
        let rows = (a | a >> 16) & 0xFFFF;
        let columns = (b | b >> 16) & 0xFFFF;
        let results: [u32; 8] = std::array::from_fn(|r| {
            let half = |row: usize| if rows >> row & 1 != 0 { 0xFFFF } else { 0 };
            let addend = match u.reads.get(2) {
                Some(&Reg::V(first, _)) => unknown.v[first.wrapping_add(r as u8) as usize],
                Some(&other) => unknown.of(other),
                None => 0,
            };
            half(2 * r) | half(2 * r + 1) << 16 | columns | columns << 16 | addend
        });
        if let Some(&Reg::V(first, _)) = u.writes.first() {
            for (r, result) in results.into_iter().enumerate() {
                unknown.v[first.wrapping_add(r as u8) as usize] = result;
            }
        }
    }

    /// Unknown bits of the selected operand.
    fn select(&self, w: &Wave, i: &Ins, u: &Use) -> u32 {
        let unknown = &self.waves[w.index as usize];
        let operand = |src: &super::code::Src| match src.kind {
            super::code::Kind::V => unknown.v[src.reg as usize],
            super::code::Kind::S => {
                if unknown.s[src.reg as usize & 127] == 0 {
                    0
                } else {
                    u32::MAX
                }
            }
            _ => 0,
        };
        let (first, second) = (operand(&i.a), operand(&i.b));
        let Some(&Reg::V(..)) = u.writes.first() else {
            // s_cselect: the first operand where scc is set.
            let taken = if w.scc != 0 { first } else { second };
            return if unknown.scc { u32::MAX } else { taken };
        };
        let (by, unsure) = match i.c.kind {
            super::code::Kind::S => (w.s[i.c.reg as usize & 127], unknown.s[i.c.reg as usize & 127]),
            _ => (w.s[VCC], unknown.s[VCC]),
        };
        first & !by | second & by | unsure
    }

    /// A request that belongs to the instruction that is about to run.
    pub(crate) fn request(&mut self, c: &Ctx<'_>, r: &Request<'_>) {
        let lanes = (0..32).filter(|l| r.exec >> l & 1 != 0);
        match (r.access, r.place) {
            (Access::Load | Access::Scalar, Place::Global) if !c.check_uninit => {
                for l in lanes {
                    let written = c.memory.offset(r.at[l], r.size as usize);
                    if !written.is_some_and(|off| c.memory.readable(off, r.size as usize, true)) {
                        self.loaded |= if r.access == Access::Scalar { u32::MAX } else { 1 << l };
                    }
                }
            }
            (Access::Load, Place::Lds) if !c.check_uninit => {
                for l in lanes {
                    let at = r.at[l] as usize;
                    let state = c.lds_state.get(at..at + r.size as usize);
                    if state.is_some_and(|state| state.iter().any(|&s| s != 3)) {
                        self.loaded |= 1 << l;
                    }
                }
            }
            (Access::Store, Place::Lds) if !self.stored.is_empty() => {
                let data = self.stored[0].1;
                for l in lanes.filter(|l| data >> l & 1 != 0) {
                    self.stored.push((r.at[l], r.size));
                }
            }
            _ => {}
        }
    }

    /// What has run.
    pub(crate) fn after(&mut self, w: &Wave, c: &mut Ctx<'_>, index: usize) {
        for &(at, size) in self.stored.iter().skip(1) {
            // Nobody has written it, as far as what follows is concerned.
            if let Some(state) = c.lds_state.get_mut(at as usize..at as usize + size as usize) {
                state.fill(2);
            }
        }
        self.stored.clear();
        if self.loaded == 0 {
            return;
        }
        let Some(u) = &self.uses[index] else {
            return;
        };
        let unknown = &mut self.waves[w.index as usize];
        for &write in &u.writes {
            match write {
                Reg::V(first, count) => {
                    for n in 0..count {
                        unknown.v[first.wrapping_add(n) as usize] |= self.loaded;
                    }
                }
                Reg::S(first, count) => {
                    for n in 0..count {
                        unknown.s[first.wrapping_add(n) as usize & 127] = u32::MAX;
                    }
                }
                Reg::Scc | Reg::Mask(_) => {}
            }
        }
    }
}

impl Unknown {
    /// Lanes in which some register is unknown; all, if a scalar one is.
    fn of(&self, reg: Reg) -> u32 {
        match reg {
            Reg::V(first, count) => (0..count).fold(0, |mask, n| mask | self.v[first.wrapping_add(n) as usize]),
            Reg::S(first, count) => {
                let any = (0..count).any(|n| self.s[first.wrapping_add(n) as usize & 127] != 0);
                if any { u32::MAX } else { 0 }
            }
            Reg::Mask(n) => self.s[n as usize & 127],
            Reg::Scc => {
                if self.scc {
                    u32::MAX
                } else {
                    0
                }
            }
        }
    }
}

#[cold]
fn report(w: &Wave, c: &mut Ctx<'_>, i: &Ins, lanes: u32, why: &str) {
    let lane = lanes.trailing_zeros() % 32;
    if let Some(fault) = c.fault(w, i, FaultKind::UninitialisedRegister, Access::None, lane, 0, 0) {
        fault.note = format!("lanes {lanes:#010x}: {why}");
    }
}
