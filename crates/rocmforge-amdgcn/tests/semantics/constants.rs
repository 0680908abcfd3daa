//! Sources that vector instructions read 16-bit values from, in every form. What a constant is to each operation is defined here; an
//! instruction that has it must give what it gives with a register that holds those bits.

use crate::enc::{self, EXEC, Fields, LITERAL, int, v};
use crate::harness::{Lane, Random, edge_lanes};
use crate::registers;
use crate::valu::{A, B, C, D, Form, MASK, SCALAR, SCALAR_VALUE, lowers, program, run_taken};
use rocmforge_isa::{Format, Inst, Op, OpSel, Operand, Ty};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// By source: the literal that LLVM's assembler writes as the inline constant 1.0, which tells what that constant is there. Those of
/// llvm-mc 19 and 22 for both instruction sets, which agree apart from `v_pk_fmac_f16`, where the younger one follows a measurement on a
/// card. Integers of 16 bits are not in the list: LLVM writes no float as a constant there.
const ONES: &str = include_str!("inline-one.txt");

/// Sources that AMD's guides of both instruction sets say more of: an inline constant fills both halves.
const FILLED: [(&str, usize); 7] = [
    ("v_dot2_f32_bf16", 0),
    ("v_dot2_f32_bf16", 1),
    ("v_dot2_f16_f16", 0),
    ("v_dot2_f16_f16", 1),
    ("v_dot2_bf16_bf16", 0),
    ("v_dot2_bf16_bf16", 1),
    ("v_dot2acc_f32_f16", 0),
];

/// What an inline constant is to a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Constant {
    /// A half in the low 16 bits, or in both halves.
    Half {
        both: bool,
    },
    /// A bfloat16 in the low 16 bits, or in both halves.
    Bfloat {
        both: bool,
    },
    Single,
}

impl Constant {
    /// Bits of the inline constant of a source field. Integers are those of 32 bits, or their low halves twice.
    fn bits(self, field: u32) -> u32 {
        const FLOATS: [f64; 9] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0, 0.159_154_943_091_895_32];
        let low = match field {
            128..=192 => field - 128,
            193..=208 => (field - 192).wrapping_neg(),
            _ => {
                let float = FLOATS[field as usize - 240];
                match self {
                    Self::Half { .. } => half::f16::from_f64(float).to_bits().into(),
                    // The upper half of the single.
                    Self::Bfloat { .. } => (float as f32).to_bits() >> 16,
                    Self::Single => (float as f32).to_bits(),
                }
            }
        };
        match self {
            Self::Half { both: true } | Self::Bfloat { both: true } => low & 0xffff | low << 16,
            _ => low,
        }
    }
}

/// The list of LLVM's, with the sources that AMD's guides say more of.
fn listed() -> &'static BTreeMap<(&'static str, usize), Constant> {
    static LISTED: OnceLock<BTreeMap<(&str, usize), Constant>> = OnceLock::new();
    LISTED.get_or_init(|| {
        let mut listed = BTreeMap::new();
        for line in ONES.lines() {
            let (one, sources) = line.split_once(' ').expect("a literal and sources");
            let constant = match one {
                "0x3c00" => Constant::Half { both: false },
                "0x3c003c00" => Constant::Half { both: true },
                "0x3f80" => Constant::Bfloat { both: false },
                "0x3f800000" => Constant::Single,
                other => panic!("{other}"),
            };
            for source in sources.split(' ') {
                let (name, numbers) = source.split_once(':').expect("an operation and its sources");
                for number in numbers.bytes() {
                    listed.insert((name, usize::from(number - b'0')), constant);
                }
            }
        }
        for source in FILLED {
            match listed.get_mut(&source) {
                Some(Constant::Half { both } | Constant::Bfloat { both }) => *both = true,
                other => panic!("{source:?}: {other:?}"),
            }
        }
        listed
    })
}

/// The field of an inline constant.
fn field(operand: Operand) -> Option<u32> {
    use rocmforge_isa::InlineFloat::*;
    Some(match operand {
        Operand::Int(value) => int(value.into()),
        Operand::Float(float) => {
            let order = [Half, NegHalf, One, NegOne, Two, NegTwo, Four, NegFour, InvTwoPi];
            240 + order.iter().position(|&other| other == float)? as u32
        }
        _ => return None,
    })
}

/// What an inline constant in the place of source `n` is, where the list has that source.
pub(crate) fn bits(inst: &Inst, n: usize) -> Option<u32> {
    let field = field(inst.src[n])?;
    let constant = *listed().get(&(inst.op.mnemonic(), n))?;
    // Of mixed operands those are singles that `op_sel_hi` does not make halves.
    let single = inst.op.facts().op_sel == OpSel::Mixed && inst.mods.op_sel_hi >> n & 1 == 0;
    Some(if single { Constant::Single } else { constant }.bits(field))
}

const SOME_LITERAL: u32 = 0xc2f7_4234;
const REGISTERS: [u32; 3] = [A, B, C];

/// An instruction with these sources, as many as its operation has.
fn form(format: Format, code: u32, op: Op, src: [u32; 3], m: Fields, extra: u32) -> Option<Form> {
    // Which of the sources there are, a mask in the place of the third, and the scalar destination of compares.
    let shapes = [
        (D, src),
        (D, [src[0], src[1], MASK]),
        (D, [src[0], src[1], 0]),
        (24, [src[0], src[1], 0]),
        (EXEC, [src[0], src[1], 0]),
        (D, [src[0], 0, 0]),
    ];
    shapes.into_iter().find_map(|(dst, src)| {
        let mut words = match format {
            Format::Vop1 => vec![enc::vop1(code, dst, src[0])],
            Format::Vop2 if src[1] >= 256 => vec![enc::vop2(code, dst, src[0], src[1] - 256)],
            Format::Vopc if src[1] >= 256 => vec![enc::vopc(code, src[0], src[1] - 256)],
            Format::Vop3 => enc::vop3(code, dst, src, m).to_vec(),
            Format::Vop3p => enc::vop3p(code, dst, src, m).to_vec(),
            _ => return None,
        };
        words.push(extra);
        let form = Form::new(&words, u32::MAX)?;
        let inst = &form.inst;
        let compare = (inst.ty.dst == Ty::None) == (dst == 24 || dst == EXEC);
        let short = matches!(format, Format::Vop2 | Format::Vopc | Format::Vop1);
        (inst.op == op && inst.format == format && (compare || short)).then_some(form)
    })
}

/// The same instruction twice: as it is tested, and with its values where they need no choice.
struct Twins {
    tested: Form,
    plain: Form,
}

/// Runs twins over these lanes; gives how many, and the tested ones that are refused.
fn compare(twins: Vec<Twins>, lanes: &[Lane], plain_lanes: &[Lane]) -> (usize, Vec<String>) {
    let (tested, plain): (Vec<Form>, Vec<Form>) = twins.into_iter().map(|twins| (twins.tested, twins.plain)).unzip();
    if lowers(&program(&tested)) && lowers(&program(&plain)) {
        let (tested, plain) = (run_taken(tested, lanes), run_taken(plain, plain_lanes));
        for ((form, got), (twin, expected)) in tested.iter().zip(&plain) {
            let mut pairs = got.chunks_exact(16).zip(expected.chunks_exact(16));
            let differs = pairs.position(|(a, b)| a != b);
            assert_eq!(
                differs, None,
                "`{}` and `{}`: the first lane that differs",
                form.inst, twin.inst
            );
        }
        return (tested.len(), Vec::new());
    }
    if tested.len() == 1 {
        // Modifiers that are refused in either form say nothing.
        let refused = (lowers(&program(&plain))).then(|| tested[0].inst.to_string());
        return (0, refused.into_iter().collect());
    }
    // What is refused stands together, so most of the rest is found by halves.
    let mut twins: Vec<Twins> = (tested.into_iter().zip(plain))
        .map(|(tested, plain)| Twins { tested, plain })
        .collect();
    let second = twins.split_off(twins.len() / 2);
    let (mut count, mut refused) = compare(twins, lanes, plain_lanes);
    let (done, more) = compare(second, lanes, plain_lanes);
    count += done;
    refused.extend(more);
    (count, refused)
}

fn chunked(twins: Vec<Twins>, lanes: &[Lane], plain_lanes: &[Lane]) -> (usize, Vec<String>) {
    let (mut count, mut refused) = (0, Vec::new());
    let mut rest = twins.into_iter().peekable();
    while rest.peek().is_some() {
        let (done, more) = compare(rest.by_ref().take(64).collect(), lanes, plain_lanes);
        count += done;
        refused.extend(more);
    }
    (count, refused)
}

/// Operations that read 16-bit values: encodings and the sources that hold such values.
fn sources() -> Vec<(Format, u32, Inst, Vec<usize>)> {
    let all = enc::all().iter().filter_map(|(e, words)| {
        let inst = enc::decode(words, 0).ok()?;
        let name = e.op.mnemonic();
        let reads = |n: &usize| {
            listed().contains_key(&(name, *n)) || inst.ty.src[*n].is_half() || matches!(inst.ty.src[*n], Ty::Pk16)
        };
        let sources: Vec<usize> = (0..3).filter(reads).collect();
        (!sources.is_empty()).then_some((e.format, e.code, inst, sources))
    });
    all.collect()
}

/// Modifiers that choose which part of source `n` is read.
fn modifiers(format: Format, n: usize) -> Vec<Fields> {
    let (none, bit) = (Fields::default(), 1 << n);
    match format {
        Format::Vop3 => vec![
            none,
            Fields { neg: bit, ..none },
            Fields { abs: bit, ..none },
            Fields { op_sel: bit, ..none },
            Fields {
                op_sel: bit,
                neg: bit,
                abs: bit,
                ..none
            },
        ],
        Format::Vop3p => {
            let choices = [(0, 7), (0, 0), (7, 7), (7, 0)];
            let signs = [(0, 0), (bit, 0), (0, bit), (bit, bit)];
            choices
                .into_iter()
                .flat_map(|(op_sel, hi)| {
                    signs.map(|(neg, abs)| Fields {
                        op_sel,
                        hi,
                        neg,
                        abs,
                        ..none
                    })
                })
                .collect()
        }
        _ => vec![none],
    }
}

/// Lanes with these bits in the register of source `n`.
fn holding(lanes: &[Lane], n: usize, bits: u64) -> Vec<Lane> {
    let mut lanes = lanes.to_vec();
    for lane in &mut lanes {
        *[&mut lane.a, &mut lane.b, &mut lane.c][n] = bits;
    }
    lanes
}

fn some_lanes() -> Vec<Lane> {
    let mut lanes = edge_lanes(false);
    lanes.truncate(96);
    lanes
}

#[test]
fn constants_are_the_bits_that_are_defined() {
    let fields: Vec<u32> = [0, 1, 2, 33, 64, -1, -7, -16]
        .map(int)
        .into_iter()
        .chain(240..=248)
        .collect();
    // By the source and the bits that it reads.
    let mut groups: BTreeMap<(usize, u32), Vec<Twins>> = BTreeMap::new();
    for (format, code, inst, numbers) in sources() {
        let op = inst.op;
        for n in numbers {
            for m in modifiers(format, n) {
                let with = |field: u32| {
                    let mut src = REGISTERS.map(v);
                    src[n] = field;
                    form(format, code, op, src, m, SOME_LITERAL)
                };
                for &field in fields.iter().chain([&LITERAL, &SCALAR]) {
                    let (Some(tested), Some(plain)) = (with(field), with(v(REGISTERS[n]))) else {
                        continue;
                    };
                    if tested.inst.src[n] == plain.inst.src[n] {
                        continue;
                    }
                    let read = match field {
                        LITERAL => Some(SOME_LITERAL),
                        SCALAR => Some(SCALAR_VALUE as u32),
                        // An integer is one of 32 bits to those that the list does not have.
                        field => bits(&tested.inst, n).or((field < 240).then(|| Constant::Single.bits(field))),
                    };
                    let Some(read) = read else { continue };
                    groups.entry((n, read)).or_default().push(Twins { tested, plain });
                }
            }
        }
    }
    let (mut count, mut refused) = (0, BTreeSet::new());
    for ((n, read), twins) in groups {
        let lanes = holding(&some_lanes(), n, read.into());
        let (done, more) = chunked(twins, &lanes, &lanes);
        count += done;
        refused.extend(more);
    }
    assert!(count > 5000, "{count} pairs");
    // AMD's guides contradict each other about this one.
    assert!(!refused.is_empty());
    for text in refused {
        assert!(text.starts_with("v_dot2_f32_f16 "), "`{text}` is refused");
    }
}

#[test]
fn halves_are_those_that_are_chosen() {
    let turned = |lanes: &[Lane], n: usize| {
        let mut lanes = lanes.to_vec();
        for lane in &mut lanes {
            let [a, b, c] = [&mut lane.a, &mut lane.b, &mut lane.c];
            let reg = match n {
                0 => a,
                1 => b,
                _ => c,
            };
            *reg = u64::from((*reg as u32).rotate_left(16)) | *reg >> 32 << 32;
        }
        lanes
    };
    const ROW_ROR_3: u32 = 0xff00_0000 | 0x123 << 8 | A;
    let mut groups: [Vec<Twins>; 3] = Default::default();
    for (format, code, inst, numbers) in sources() {
        let op = inst.op;
        for n in numbers {
            let plain = match format {
                Format::Vop3p => Fields {
                    hi: 7,
                    ..Fields::default()
                },
                _ => Fields::default(),
            };
            let other = match format {
                Format::Vop3p => Fields {
                    op_sel: 1 << n,
                    hi: 7 & !(1 << n),
                    ..plain
                },
                _ => Fields {
                    op_sel: 1 << n,
                    ..plain
                },
            };
            let mut put = |src: [u32; 3], turned: [u32; 3], extra: u32| {
                let tested = form(format, code, op, turned, other, extra);
                let plain = form(format, code, op, src, plain, extra);
                if let (Some(tested), Some(plain)) = (tested, plain) {
                    groups[n].push(Twins { tested, plain });
                }
            };
            let src = REGISTERS.map(v);
            let packed = !inst.ty.src[n].is_half();
            match format {
                Format::Vop1 | Format::Vop2 | Format::Vopc if packed => {}
                Format::Vop1 | Format::Vop2 | Format::Vopc => {
                    let mut high = src;
                    high[n] += 0x80;
                    put(src, high, SOME_LITERAL);
                }
                Format::Vop3 if packed => {}
                // A mixed operand is of 32 bits without its bit in `op_sel_hi`: that stays.
                Format::Vop3p if op.facts().op_sel == OpSel::Mixed => {
                    let choose = |op_sel| form(format, code, op, src, Fields { op_sel, ..plain }, 0);
                    if let (Some(tested), Some(plain)) = (choose(1 << n), choose(0)) {
                        groups[n].push(Twins { tested, plain });
                    }
                }
                _ => {
                    put(src, src, SOME_LITERAL);
                    if n == 0 {
                        let permuted = [250, src[1], src[2]];
                        put(permuted, permuted, ROW_ROR_3);
                    }
                }
            }
        }
    }
    let lanes = some_lanes();
    for (n, twins) in groups.into_iter().enumerate() {
        assert!(twins.len() > 20, "{} pairs", twins.len());
        let (count, refused) = chunked(twins, &turned(&lanes, n), &lanes);
        assert!(count > 20, "{count} pairs");
        // Of bytes and nibbles AMD and LLVM say different things.
        for text in refused {
            let bytes = ["v_dot4_i32_iu8 ", "v_dot4_u32_u8 ", "v_dot8_i32_iu4 ", "v_dot8_u32_u4 "];
            assert!(bytes.iter().any(|name| text.starts_with(name)), "`{text}` is refused");
        }
    }
}

/// LLVM 22 calls the third source of these 16 bits wide, and `op_sel` chooses its half.
#[test]
fn shifts_of_alignments_are_halves() {
    for name in ["v_alignbit_b32", "v_alignbyte_b32"] {
        let code = enc::code(name, Format::Vop3);
        let op = crate::valu::named(name).expect("an operation");
        let high = Fields {
            op_sel: 4,
            ..Fields::default()
        };
        for third in [v(C), SCALAR, LITERAL] {
            let src = [v(A), v(B), third];
            let tested = form(Format::Vop3, code, op, src, high, SOME_LITERAL).expect("a form");
            let plain = form(
                Format::Vop3,
                code,
                op,
                [v(A), v(B), v(C)],
                Fields::default(),
                SOME_LITERAL,
            )
            .expect("a form");
            let lanes: Vec<Lane> = some_lanes();
            let plain_lanes: Vec<Lane> = lanes
                .iter()
                .map(|lane| {
                    let read = match third {
                        SCALAR => SCALAR_VALUE as u32,
                        LITERAL => SOME_LITERAL,
                        _ => lane.c as u32,
                    };
                    Lane {
                        c: (read >> 16).into(),
                        ..*lane
                    }
                })
                .collect();
            let (count, refused) = compare(vec![Twins { tested, plain }], &lanes, &plain_lanes);
            assert!(count == 1 && refused.is_empty(), "{name}");
        }
    }
}

/// C as a constant: an inline one fills both halves where C holds floats of 16 bits.
#[test]
fn matrices_take_constants_as_c() {
    let mut random = Random(0xc0);
    let mut count = 0;
    for (e, _) in enc::all() {
        let name = e.op.mnemonic();
        let constant = match name.strip_prefix("v_wmma_").and_then(|rest| rest.split('_').next()) {
            Some("f16") => Constant::Half { both: true },
            Some("bf16") => Constant::Bfloat { both: true },
            Some("f32" | "i32") => Constant::Single,
            _ => continue,
        };
        // Lanes 16 to 31 repeat the others. Halves of A and B are between 1 and 2, in either format.
        let regs: [registers::Reg; 32] = std::array::from_fn(|_| {
            let half: [u32; 16] = std::array::from_fn(|_| random.next() as u32 & 0x007f_007f | 0x3f80_3f80);
            std::array::from_fn(|lane| half[lane % 16])
        });
        for field in [0, 1, 64, -1, -16].map(int).into_iter().chain(240..=248) {
            for m in [0, 4].map(|op_sel| Fields {
                hi: 7,
                op_sel,
                ..Fields::default()
            }) {
                let [a, b] = [registers::A, registers::B].map(v);
                let tested = enc::vop3p(e.code, registers::D, [a, b, field], m);
                let plain = enc::vop3p(e.code, registers::D, [a, b, v(registers::C)], m);
                if !lowers(&tested) || !lowers(&plain) {
                    continue;
                }
                let mut filled = regs;
                for reg in &mut filled[registers::C as usize - 2..][..8] {
                    *reg = [constant.bits(field); 32];
                }
                assert_eq!(
                    registers::run(&tested, &filled),
                    registers::run(&plain, &filled),
                    "{name}, constant {field}, {m:?}"
                );
                count += 1;
            }
        }
    }
    assert!(count > 80, "{count} products");
}
