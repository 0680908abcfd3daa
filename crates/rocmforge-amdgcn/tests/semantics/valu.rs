//! Runs a vector instruction in all of its forms over many lanes, and compares every lane with a scalar model.
//!
//! A form is an encoding with its operands: short and long, modifiers, constants in the place of each source, halves of
//! registers, a destination that is also a source, lanes turned off, permuted lanes. What the operands of a form are is
//! read from the decoder, which is checked against LLVM elsewhere; what the instruction makes of them is the model's.

use crate::constants;
use crate::enc::{self, Fields, LITERAL, VCC, decode, int, v};
use crate::harness::{Lane, lanes};
use crate::rig::{Asm, Launch, load, word};
use crate::value::{Out, Value};
use rocmforge_isa::Dpp;
use rocmforge_isa::{Format, Inst, Op, Operand, Ty, Unit};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Double, Half, Single};

/// Operands of one lane, modifiers applied. Those of packed instructions are whole registers as they are.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) s: [u64; 3],
    /// What the destination holds before.
    pub(crate) d: u64,
    /// The lane's bit of the mask that the instruction reads.
    pub(crate) carry: bool,
    pub(crate) lane: u32,
    /// As encoded: `hi` is `op_sel_hi`, `abs` is `neg_hi` in VOP3P.
    pub(crate) mods: Fields,
}

impl Args {
    pub(crate) fn u(&self, n: usize) -> u32 {
        self.s[n] as u32
    }
    pub(crate) fn i(&self, n: usize) -> i32 {
        self.s[n] as i32
    }
    /// An unsigned 16-bit operand.
    pub(crate) fn uh(&self, n: usize) -> u16 {
        self.s[n] as u16
    }
    pub(crate) fn ih(&self, n: usize) -> i16 {
        self.s[n] as i16
    }
    pub(crate) fn h(&self, n: usize) -> Half {
        Half::from_bits(self.uh(n).into())
    }
    pub(crate) fn f(&self, n: usize) -> Single {
        Single::from_bits(self.u(n).into())
    }
    pub(crate) fn d(&self, n: usize) -> Double {
        Double::from_bits(self.s[n].into())
    }
    /// As the host's float.
    pub(crate) fn host(&self, n: usize) -> f32 {
        f32::from_bits(self.u(n))
    }
    /// What the low and the high lane of a packed instruction read.
    pub(crate) fn pair(&self, n: usize) -> [u16; 2] {
        let halves = [self.u(n) as u16, (self.u(n) >> 16) as u16];
        [self.mods.op_sel, self.mods.hi].map(|select| halves[(select >> n & 1) as usize])
    }
    /// The same negated as the modifiers say.
    pub(crate) fn halves(&self, n: usize) -> [Half; 2] {
        let [low, high] = self.pair(n);
        let sign = |mask: u32| ((mask >> n & 1) << 15) as u16;
        [low ^ sign(self.mods.neg), high ^ sign(self.mods.abs)].map(|bits| Half::from_bits(bits.into()))
    }
}

/// A mnemonic and its model.
pub(crate) type Row = (&'static str, fn(&Args) -> Out);

/// Registers of a form: copies of the lane's `a`, `b`, `c`, `d` in `v[12:19]`; the flag goes to `v20`.
pub(crate) const A: u32 = 12;
pub(crate) const B: u32 = 14;
pub(crate) const C: u32 = 16;
pub(crate) const D: u32 = 18;
/// Scalar operand, mask that is read, and mask that is written.
pub(crate) const SCALAR: u32 = 20;
pub(crate) const SCALAR_VALUE: u64 = 0x4009_21fb_c000_3807;
pub(crate) const MASK: u32 = 22;
const MASK_OUT: u32 = 24;
const PARTIAL: u32 = 0x8421_a5f0;
const SOME_LITERAL: u32 = 0xc2f7_4234;

/// One instruction and the lanes it runs in.
pub(crate) struct Form {
    pub(crate) words: Vec<u32>,
    pub(crate) inst: Inst,
    pub(crate) exec: u32,
}

impl Form {
    pub(crate) fn new(words: &[u32], exec: u32) -> Option<Self> {
        let inst = decode(words, 0).ok()?;
        let own = |operand: Operand, regs: u8| match operand {
            Operand::Vgpr(reg) | Operand::VgprHalf { reg, .. } => {
                (A..D + 2).contains(&reg.into()) && u32::from(reg) + u32::from(regs) <= D + 2
            }
            _ => true,
        };
        let scalar = |operand: Operand, ty: Ty| match operand {
            Operand::Sgpr(reg) => u32::from(reg) == if ty == Ty::Mask { MASK } else { SCALAR },
            Operand::VccLo => ty == Ty::Mask,
            Operand::Null | Operand::ExecLo | Operand::M0 => false,
            _ => true,
        };
        let mut sources = inst.src.iter().zip(inst.ty.src);
        let all_own = sources.all(|(&s, ty)| own(s, ty.regs()) && scalar(s, ty)) && own(inst.dst, inst.ty.dst.regs());
        // A trailing word that is no literal is not part of it.
        let words = words.get(..inst.size as usize / 4)?.to_vec();
        all_own.then_some(Self { words, inst, exec })
    }

    fn source(&self, n: usize, wave: &[Lane], lane: u32) -> u64 {
        let ty = self.inst.ty.src[n];
        let from = match self.inst.mods.dpp.filter(|_| n == 0) {
            None => lane,
            Some(Dpp::Dpp8 { lanes, .. }) => (lane & !7) | u32::from(lanes[(lane & 7) as usize]),
            // The only other control that forms use: row_ror:3.
            Some(Dpp::Dpp16 { .. }) => (lane & 16) | ((lane + 13) & 15),
        };
        let raw = match self.inst.src[n] {
            Operand::Vgpr(reg) => register(&wave[from as usize], reg),
            Operand::VgprHalf { reg, hi } => register(&wave[from as usize], reg) >> if hi { 16 } else { 0 },
            // Only as a mask of lanes; as a number it is the same for all.
            Operand::VccLo => wave.iter().rev().fold(0, |mask, lane| mask << 1 | lane.c & 1),
            Operand::Sgpr(reg) if u32::from(reg) == SCALAR => {
                let high = ty.is_half() && self.inst.mods.op_sel >> n & 1 != 0;
                SCALAR_VALUE >> if high { 16 } else { 0 }
            }
            other => match constants::bits(&self.inst, n) {
                Some(bits) => bits.into(),
                None => other.constant(ty).unwrap_or(0),
            },
        };
        let width = if ty.is_half() { 16 } else { 32 * u32::from(ty.regs()) };
        if width == 0 {
            return 0;
        }
        let (mask, sign) = (u64::MAX >> (64 - width.min(64)), 1u64 << (width - 1));
        let mut bits = raw & mask;
        let packed = ty == Ty::PkF16 && self.inst.format != Format::Vop3p;
        if packed && self.inst.mods.neg >> n & 1 != 0 {
            // One modifier for both halves.
            bits ^= 0x8000_8000;
        } else if self.inst.format != Format::Vop3p {
            if self.inst.mods.abs >> n & 1 != 0 {
                bits &= !sign;
            }
            if self.inst.mods.neg >> n & 1 != 0 {
                bits ^= sign;
            }
        }
        bits
    }

    pub(crate) fn dst(&self) -> (u8, bool) {
        match self.inst.dst {
            Operand::Vgpr(reg) => (reg, self.inst.op.mnemonic() == "v_fma_mixhi_f16"),
            Operand::VgprHalf { reg, hi } => (reg, hi),
            _ => (D as u8, false),
        }
    }

    pub(crate) fn args(&self, wave: &[Lane], lane: u32) -> Args {
        let (reg, hi) = self.dst();
        let m = &self.inst.mods;
        Args {
            s: std::array::from_fn(|n| self.source(n, wave, lane)),
            d: register(&wave[lane as usize], reg) >> if hi { 16 } else { 0 },
            carry: wave[lane as usize].c & 1 != 0,
            lane,
            mods: Fields {
                neg: m.neg.into(),
                abs: if self.inst.format == Format::Vop3p {
                    m.neg_hi
                } else {
                    m.abs
                }
                .into(),
                op_sel: m.op_sel.into(),
                hi: m.op_sel_hi.into(),
                clamp: m.clamp,
                omod: m.omod.into(),
            },
        }
    }

    fn mask_out(&self) -> Option<u32> {
        match self.inst.sdst {
            Operand::VccLo => Some(VCC),
            Operand::Sgpr(reg) => Some(reg.into()),
            Operand::ExecLo => Some(MASK_OUT),
            _ => None,
        }
    }

    fn emit(&self, asm: &mut Asm, at: u32) {
        for reg in 0..8 {
            asm.mov(A + reg, v(2 + reg));
        }
        asm.put(&[enc::sop1(0, VCC, MASK), enc::sop1(0, MASK_OUT, MASK)]);
        if self.exec != u32::MAX {
            asm.set(enc::EXEC, self.exec);
        }
        asm.put(&self.words);
        if self.inst.sdst == Operand::ExecLo {
            asm.put(&[enc::sop1(0, MASK_OUT, enc::EXEC)]);
        }
        asm.put(&[enc::sop1(0, enc::EXEC, int(-1))]);
        if let Some(mask) = self.mask_out() {
            // v_cndmask_b32 v20, 0, 1, mask
            asm.put(&enc::vop3(0x101, 20, [int(0), int(1), mask], Fields::default()));
            asm.store(20, 1, at + 8);
        }
        let (reg, _) = self.dst();
        asm.store(u32::from(reg) & !1, 2, at);
    }

    fn check(&self, wave: &[Lane], lane: u32, output: &[u8], model: &impl Fn(&Args) -> Out) -> Result<bool, String> {
        let (reg, hi) = self.dst();
        let pair = u64::from(word(output, 0)) | u64::from(word(output, 4)) << 32;
        // The pair that was stored starts at an even register.
        let odd = 32 * u32::from(reg & 1);
        let before = register(&wave[lane as usize], reg & !1);
        let on = self.exec >> lane & 1 != 0;
        let args = self.args(wave, lane);
        let out = model(&args);
        let width = match self.inst.ty.dst {
            Ty::None | Ty::Mask => 0,
            _ if self.inst.op.mnemonic().starts_with("v_fma_mix") && !self.inst.op.mnemonic().ends_with("f32") => 16,
            ty if ty.is_half() => 16,
            ty => 32 * u32::from(ty.regs()),
        };
        let shift = odd + if hi { 16 } else { 0 };
        let mask = if width == 0 || !on {
            0
        } else {
            u64::MAX >> (64 - width) << shift
        };
        let explain = |what: &str| {
            Err(format!(
                "`{}`, lane {lane}: {what}\n{args:x?}\ngave {pair:#018x} over {before:#018x}, the model says {out:x?}",
                self.inst
            ))
        };
        if (pair ^ before) & !mask != 0 {
            return explain("what must not change did");
        }
        if let (Some(_), Some(model)) = (self.mask_out(), out.flag) {
            let flag = word(output, 8);
            if flag != u32::from(model && on) {
                return explain(&format!("the mask's bit is {flag}"));
            }
        }
        if mask == 0 {
            return Ok(out.flag.is_some());
        }
        let got = (pair & mask) >> shift;
        let clamp = self.inst.mods.clamp;
        if !out.value.accepts(got, self.inst.ty.dst, clamp) {
            return explain("wrong result");
        }
        Ok(!matches!(out.value, Value::Any) || out.flag.is_some())
    }
}

/// The pair that starts at a register of a form, or its upper half.
pub(crate) fn register(lane: &Lane, reg: u8) -> u64 {
    let fields = [lane.a, lane.b, lane.c, lane.d];
    let at = usize::from(reg) - A as usize;
    fields[at / 2] >> (32 * (at as u32 & 1))
}

/// The DPP word of `row_ror:3` on `v12`, and the one of a fixed permutation of eight lanes.
const ROW_ROR_3: u32 = 0xff00_0000 | 0x123 << 8 | A;
const DPP8: u32 = A | 0o3610_7254 << 8;

fn candidates(format: Format, code: u32) -> Vec<(Vec<u32>, u32)> {
    let mut all = Vec::new();
    let full = u32::MAX;
    let constants = [int(-7), int(33), 242, 247, 248, LITERAL, SCALAR];
    match format {
        Format::Vop1 | Format::Vop2 | Format::Vopc => {
            let short = |dst: u32, src: u32, second: u32, extra: u32| {
                let word = match format {
                    Format::Vop1 => enc::vop1(code, dst, src),
                    Format::Vop2 => enc::vop2(code, dst, src, second),
                    _ => enc::vopc(code, src, second),
                };
                vec![word, extra]
            };
            all.push((short(D, v(A), B, SOME_LITERAL), full));
            all.push((short(D, v(A), B, SOME_LITERAL), PARTIAL));
            all.push((short(A, v(A), B, SOME_LITERAL), full));
            all.push((short(B, v(A), B, SOME_LITERAL), full));
            all.extend(constants.map(|src| (short(D, src, B, SOME_LITERAL), full)));
            for (dst, src, second) in [(0, 0x80, 0), (0x80, 0, 0), (0, 0, 0x80), (0x80, 0x80, 0x80)] {
                all.push((short(D | dst, v(A | src), B | second, SOME_LITERAL), full));
            }
            all.push((short(D, 250, B, ROW_ROR_3), full));
            all.push((short(D, 250, B, ROW_ROR_3 | 0x6 << 20), full));
            all.push((short(D, 233, B, DPP8), full));
        }
        Format::Vop3 | Format::Vop3sd => {
            let none = Fields::default();
            let sources = [v(A), v(B), v(C)];
            let mut put = |dst: u32, src: [u32; 3], m: Fields, extra: u32, exec: u32| {
                // Compares, carries and three-source operations keep different things in these fields. Destination and second
                // source stay out of what takes one source only; that comes last, as others may have a constant there too.
                let two = [(dst, src[2]), (dst, MASK), (dst, 0), (MASK_OUT, 0)]
                    .map(|(dst, third)| (dst, [src[0], src[1], third]));
                let others = [(enc::EXEC, [src[0], src[1], 0]), (dst, [src[0], 0, 0])];
                for (dst, src) in two.into_iter().chain(others) {
                    let mut words = enc::vop3(code, dst, src, m).to_vec();
                    if format == Format::Vop3sd {
                        words[0] |= MASK_OUT << 8;
                    }
                    words.push(extra);
                    let fits = decode(&words, 0).is_ok_and(|inst| {
                        let carry = matches!(inst.src[2], Operand::Sgpr(22)) == (inst.ty.src[2] == Ty::Mask);
                        let compare = (inst.ty.dst == Ty::None) == (dst == MASK_OUT);
                        carry && dst != enc::EXEC && compare || inst.sdst == Operand::ExecLo
                    });
                    if fits {
                        all.push((words, exec));
                        return;
                    }
                }
            };
            put(D, sources, none, 0, full);
            put(D, sources, none, 0, PARTIAL);
            for dst in [A, B, C] {
                put(dst, sources, none, 0, full);
            }
            for at in 0..3 {
                for constant in constants {
                    let mut src = sources;
                    src[at] = constant;
                    put(D, src, none, SOME_LITERAL, full);
                }
            }
            for [one, other] in [[0, 1], [1, 2], [0, 2]] {
                for constants in [[int(33), SCALAR], [SCALAR, LITERAL], [248, int(-7)]] {
                    let mut src = sources;
                    (src[one], src[other]) = (constants[0], constants[1]);
                    put(D, src, none, SOME_LITERAL, full);
                }
            }
            for (neg, abs, clamp) in [
                (5, 2, false),
                (2, 7, false),
                (7, 1, true),
                (0, 0, true),
                (1, 0, false),
                (3, 3, false),
            ] {
                let m = Fields {
                    neg,
                    abs: if format == Format::Vop3sd { 0 } else { abs },
                    clamp,
                    ..none
                };
                put(D, sources, m, 0, full);
            }
            // In the mode that kernels start in, the output modifier is ignored.
            for omod in 1..4 {
                put(D, sources, Fields { omod, ..none }, 0, full);
            }
            if format == Format::Vop3 {
                for op_sel in [1, 2, 4, 8, 15] {
                    put(D, sources, Fields { op_sel, ..none }, 0, full);
                }
                put(D, [SCALAR, v(B), v(C)], Fields { op_sel: 1, ..none }, 0, full);
                put(A, sources, Fields { op_sel: 8, ..none }, 0, PARTIAL);
            }
            // Sources that are the same: what v_div_scale is made for.
            put(D, [v(B), v(B), v(C)], none, 0, full);
            put(D, [v(C), v(B), v(C)], none, 0, full);
            put(D, [250, v(B), v(C)], none, ROW_ROR_3, full);
            put(D, [233, v(B), v(C)], none, DPP8, full);
        }
        Format::Vop3p => {
            let plain = Fields {
                hi: 7,
                ..Fields::default()
            };
            let sources = [v(A), v(B), v(C)];
            let mut put = |dst: u32, src: [u32; 3], m: Fields, extra: u32, exec: u32| {
                for third in [src[2], 0] {
                    let mut words = enc::vop3p(code, dst, [src[0], src[1], third], m).to_vec();
                    words.push(extra);
                    if decode(&words, 0).is_ok_and(|inst| (inst.ty.src[2] == Ty::None) == (third == 0)) {
                        all.push((words, exec));
                        return;
                    }
                }
            };
            put(D, sources, plain, 0, full);
            put(D, sources, plain, 0, PARTIAL);
            for dst in [A, B, C] {
                put(dst, sources, plain, 0, full);
            }
            for at in 0..3 {
                for constant in constants {
                    let mut src = sources;
                    src[at] = constant;
                    put(D, src, plain, SOME_LITERAL, full);
                    put(D, src, Fields { hi: 0, ..plain }, SOME_LITERAL, full);
                }
            }
            for (op_sel, hi, neg, abs, clamp) in [
                (7, 0, 0, 0, false),
                (7, 7, 0, 0, false),
                (0, 0, 0, 0, false),
                (1, 6, 1, 2, false),
                (2, 5, 7, 7, false),
                (4, 3, 4, 3, false),
                (0, 7, 3, 0, false),
                (0, 7, 1, 0, false),
                (0, 7, 2, 4, false),
                (0, 7, 0, 0, true),
                (5, 2, 1, 4, true),
                (0, 7, 3, 0, true),
            ] {
                let m = Fields {
                    neg,
                    abs,
                    op_sel,
                    hi,
                    clamp,
                    omod: 0,
                };
                put(D, sources, m, 0, full);
            }
        }
        _ => {}
    }
    all
}

/// All forms of a mnemonic that the decoder takes.
pub(crate) fn forms(name: &str) -> Vec<Form> {
    let mut forms: Vec<Form> = Vec::new();
    for (encoding, _) in enc::all().iter().filter(|(e, _)| e.name == name) {
        for (words, exec) in candidates(encoding.format, encoding.code) {
            let Some(form) = Form::new(&words, exec) else { continue };
            let known = forms
                .iter()
                .any(|other| (&other.words, other.exec) == (&form.words, form.exec));
            if form.inst.op == encoding.op && !known {
                forms.push(form);
            }
        }
    }
    forms
}

/// Sets [`MASK`] to bit 0 of every lane's `c`.
pub(crate) fn mask_prologue(asm: &mut Asm) {
    let and = enc::code("v_and_b32", Format::Vop2);
    let differ = enc::code("v_cmp_ne_u32", Format::Vopc);
    asm.put(&[enc::vop2(and, 21, int(1), 6), enc::vopc(differ, int(0), 21)]);
    asm.put(&[enc::sop1(0, MASK, VCC)]);
}

/// Input records.
pub(crate) fn lane_bytes(lanes: &[Lane]) -> Vec<u8> {
    lanes
        .iter()
        .flat_map(|l| [l.a, l.b, l.c, l.d].map(u64::to_le_bytes).concat())
        .collect()
}

/// Inline constants of `v_dot2_f32_f16` that AMD's guides contradict each other about. All bits of 0 are clear and of -1 are set.
fn is_disputed(source: Operand) -> bool {
    matches!(source, Operand::Int(_) | Operand::Float(_)) && !matches!(source, Operand::Int(0 | -1))
}

/// What the interpreter refuses to model and says so.
fn may_be_refused(inst: &Inst) -> bool {
    let m = &inst.mods;
    (m.clamp && inst.ty.sdst == Ty::None && !matches!(inst.ty.dst, Ty::F16 | Ty::F32 | Ty::F64 | Ty::PkF16))
        || (inst.format == Format::Vop3p && (m.neg | m.neg_hi) != 0)
        || (m.abs != 0 && (inst.ty.src.contains(&Ty::PkF16) || inst.ty.src.contains(&Ty::PkBf16)))
        || (inst.op.facts().unit == Unit::Dot
            && inst.ty.src[0] == Ty::Pk16
            && (m.op_sel & 3 != 0 || m.op_sel_hi & 3 != 3))
        || (inst.op == Op::VDot2F32F16 && inst.src[..2].iter().any(|&source| is_disputed(source)))
}

/// Whether the interpreter takes an instruction.
pub(crate) fn lowers(words: &[u32]) -> bool {
    load(words).is_ok_and(|program| program.refusals().next().is_none())
}

/// Whether it takes an operation in any format.
pub(crate) fn is_modelled(name: &str) -> bool {
    enc::all().iter().any(|(e, words)| e.name == name && lowers(words))
}

/// Compares all forms of an operation with its model over edge values and random ones.
pub(crate) fn check(name: &str, model: impl Fn(&Args) -> Out) {
    if let Err(what) = compare(name, model) {
        panic!("{what}");
    }
}

fn compare(name: &str, model: impl Fn(&Args) -> Out) -> Result<(), String> {
    let all = forms(name);
    if !is_modelled(name) {
        // It has no encoding here, or is refused with an error: the list of what is covered does not need it.
        return Ok(());
    }
    if all.is_empty() {
        return Err(format!("{name} has no form that could be tested"));
    }
    let wide = all.iter().any(|f| f.inst.ty.src.iter().any(|ty| ty.regs() == 2));
    let forms: Vec<Form> = if lowers(&program(&all)) {
        all
    } else {
        let (taken, refused): (Vec<Form>, Vec<Form>) = all.into_iter().partition(|form| lowers(&form.words));
        if let Some(form) = refused.iter().find(|form| !may_be_refused(&form.inst)) {
            return Err(format!("`{}` is refused", form.inst));
        }
        taken
    };
    let record = record(&forms);
    let lanes = lanes(wide);
    let input = lane_bytes(&lanes);
    let done = Launch {
        words: &program(&forms),
        lanes: lanes.len(),
        input: &input,
        output: lanes.len() * record as usize,
        ..Launch::default()
    }
    .run();
    let mut spoken = 0;
    for (index, output) in done.output.chunks_exact(record as usize).enumerate() {
        let wave = &lanes[index & !31..][..32];
        for (form, output) in forms.iter().zip(output.chunks_exact(16)) {
            spoken += usize::from(form.check(wave, index as u32 & 31, output, &model)?);
        }
    }
    let all = lanes.len() * forms.len();
    assert!(
        spoken * 4 > all,
        "{name}: the model spoke for {spoken} of {all} results only"
    );
    Ok(())
}

/// Bytes that a lane stores of these forms.
fn record(forms: &[Form]) -> u32 {
    (forms.len().next_power_of_two() * 16) as u32
}

/// The words that run these forms.
pub(crate) fn program(forms: &[Form]) -> Vec<u32> {
    let mut asm = Asm::default();
    asm.prologue(8, 32, record(forms));
    mask_prologue(&mut asm);
    asm.set64(SCALAR, SCALAR_VALUE);
    for (index, form) in forms.iter().enumerate() {
        form.emit(&mut asm, 16 * index as u32);
    }
    asm.0
}

/// What the forms that are taken store for each lane, 16 bytes a lane: the destination's pair of registers, and the mask's bit.
pub(crate) fn run_forms(forms: Vec<Form>, lanes: &[Lane]) -> Vec<(Form, Vec<u8>)> {
    let forms = if lowers(&program(&forms)) {
        forms
    } else {
        forms.into_iter().filter(|form| lowers(&form.words)).collect()
    };
    run_taken(forms, lanes)
}

/// The same of forms that are known to be taken.
pub(crate) fn run_taken(forms: Vec<Form>, lanes: &[Lane]) -> Vec<(Form, Vec<u8>)> {
    let (words, record) = (program(&forms), record(&forms));
    let done = Launch {
        words: &words,
        lanes: lanes.len(),
        input: &lane_bytes(lanes),
        output: lanes.len() * record as usize,
        ..Launch::default()
    }
    .run();
    let of = |index: usize| {
        let records = done.output.chunks_exact(record as usize);
        records.flat_map(|lane| lane[16 * index..][..16].to_vec()).collect()
    };
    forms
        .into_iter()
        .enumerate()
        .map(|(index, form)| (form, of(index)))
        .collect()
}

/// [`check`] of every row.
pub(crate) fn check_all(rows: &[Row]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(name, model)| compare(name, model).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The operations that rows speak for.
pub(crate) fn ops(rows: &[Row]) -> Vec<Op> {
    rows.iter().flat_map(|(name, _)| named(name)).collect()
}

/// The operation of a mnemonic.
pub(crate) fn named(name: &str) -> Option<Op> {
    enc::all().iter().find(|(e, _)| e.name == name).map(|(e, _)| e.op)
}
