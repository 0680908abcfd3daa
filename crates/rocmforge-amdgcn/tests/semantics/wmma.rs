//! Matrix multiply-accumulate of a wave: 16 x 16 results, 16 deep.
//!
//! As the ISA's section on WMMA lays the matrices out for waves of 32: lane `l` holds row `l mod 16` of A and column
//! `l mod 16` of B, so that both halves of the wave hold the same; register `r` of C and D holds row `2 r + l / 16` of
//! column `l mod 16`.

// Registers and lanes are the coordinates of a matrix element.
#![allow(clippy::needless_range_loop)]

use crate::enc::{self, Fields, v};
use crate::harness::Random;
use crate::registers::{A, B, C, D, Reg, launch, run};
use crate::rig::Asm;
use crate::valu::{lowers, named};
use rocmforge_amdgcn::{ExecOptions, Fault, FaultKind, POISON, Tools};
use rocmforge_isa::{Format, Op};

/// Packs a row of elements of `bits` bits into the registers from `first` on, of lane `index` and its twin.
fn pack(regs: &mut [Reg; 32], first: u32, index: usize, bits: u32, row: &[u32; 16]) {
    let per = 32 / bits as usize;
    for (k, element) in row.iter().enumerate() {
        let reg = first as usize - 2 + k / per;
        let shift = k % per * bits as usize;
        for lane in [index, index + 16] {
            regs[reg][lane] |= (element & (u32::MAX >> (32 - bits))) << shift;
        }
    }
}

/// Row and column of what a lane holds in a register of C and D.
fn place(r: usize, lane: usize) -> (usize, usize) {
    (2 * r + lane / 16, lane % 16)
}

struct Floats {
    name: &'static str,
    /// From and to the bits of an element of A and B.
    narrow: fn(f64) -> u32,
    widen: fn(u32) -> f64,
    /// C and D in halves of registers.
    half: bool,
    /// Relative distance of neighbours in D.
    step: f64,
}

const FLOATS: [Floats; 4] = [
    Floats {
        name: "v_wmma_f32_16x16x16_f16",
        narrow: |x| half::f16::from_f64(x).to_bits().into(),
        widen: |bits| half::f16::from_bits(bits as u16).to_f64(),
        half: false,
        step: 1.0 / 8_388_608.0,
    },
    Floats {
        name: "v_wmma_f32_16x16x16_bf16",
        narrow: |x| half::bf16::from_f64(x).to_bits().into(),
        widen: |bits| half::bf16::from_bits(bits as u16).to_f64(),
        half: false,
        step: 1.0 / 8_388_608.0,
    },
    Floats {
        name: "v_wmma_f16_16x16x16_f16",
        narrow: |x| half::f16::from_f64(x).to_bits().into(),
        widen: |bits| half::f16::from_bits(bits as u16).to_f64(),
        half: true,
        step: 1.0 / 1024.0,
    },
    Floats {
        name: "v_wmma_bf16_16x16x16_bf16",
        narrow: |x| half::bf16::from_f64(x).to_bits().into(),
        widen: |bits| half::bf16::from_bits(bits as u16).to_f64(),
        half: true,
        step: 1.0 / 128.0,
    },
];

/// `exact`: small integers, whose products and sums are exact in every format in any order.
fn floats(kind: &Floats, exact: bool, fields: Fields, seed: u64) {
    let code = enc::code(kind.name, Format::Vop3p);
    let words = enc::vop3p(code, D, [v(A), v(B), v(C)], Fields { hi: 7, ..fields });
    if !lowers(&words) {
        return;
    }
    let mut random = Random(seed);
    let mut number = || {
        let x = random.next();
        if exact {
            f64::from((x % 5) as u32) - 2.0
        } else {
            (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    };
    let mut element = || (kind.narrow)(number());
    let a: [[u32; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| element()));
    let b: [[u32; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| element()));
    let c: [[f64; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| (kind.widen)(element())));
    let mut noise = Random(seed ^ 1);
    let mut regs = [[0; 32]; 32];
    for n in 0..16 {
        pack(&mut regs, A, n, 16, &a[n]);
        // Row n of what is packed is column n of B.
        pack(&mut regs, B, n, 16, &std::array::from_fn(|k| b[k][n]));
    }
    let shift = if fields.op_sel & 4 != 0 { 16 } else { 0 };
    for r in 0..8 {
        for lane in 0..32 {
            let (row, column) = place(r, lane);
            let x = c[row][column];
            regs[C as usize - 2 + r][lane] = if kind.half {
                let other = noise.next() as u32 & !(0xffff << shift);
                (kind.narrow)(x) << shift | other
            } else {
                (x as f32).to_bits()
            };
            regs[D as usize - 2 + r][lane] = noise.next() as u32;
        }
    }
    let ours = run(&words, &regs);
    // Negation of the elements of even and odd depth, and of C; its absolute value.
    let sign = |mask: u32, n: usize| if mask >> n & 1 == 1 { -1.0 } else { 1.0 };
    let element = |bits: u32, source: usize, k: usize| {
        let mask = if k.is_multiple_of(2) { fields.neg } else { fields.abs };
        (kind.widen)(bits) * sign(mask, source)
    };
    for r in 0..8 {
        for lane in 0..32 {
            let (row, column) = place(r, lane);
            let mut addend = c[row][column];
            if fields.abs & 4 != 0 {
                addend = addend.abs();
            }
            addend *= sign(fields.neg, 2);
            let terms: Vec<f64> = (0..16)
                .map(|k| element(a[row][k], 0, k) * element(b[k][column], 1, k))
                .chain([addend])
                .collect();
            let sum: f64 = terms.iter().sum();
            // Each of 16 additions may round, in an order and with intermediate widths that the ISA leaves open.
            let tolerance = terms.iter().map(|t| t.abs()).sum::<f64>() * kind.step * 2.0;
            let got = if kind.half {
                let old = regs[D as usize - 2 + r][lane];
                assert_eq!(
                    ours[r][lane] & !(0xffff << shift),
                    old & !(0xffff << shift),
                    "{}: the other half",
                    kind.name
                );
                (kind.widen)(ours[r][lane] >> shift & 0xffff)
            } else {
                f32::from_bits(ours[r][lane]).into()
            };
            let allowed = if exact { 0.0 } else { tolerance };
            assert!(
                (got - sum).abs() <= allowed,
                "{} {fields:?}, row {row}, column {column}: {got}, the model says {sum} within {allowed}",
                kind.name
            );
        }
    }
}

#[test]
fn matrices_of_floats() {
    let plain = Fields::default();
    for kind in &FLOATS {
        floats(kind, true, plain, 1);
        floats(kind, false, plain, 2);
        if kind.half {
            floats(kind, true, Fields { op_sel: 4, ..plain }, 3);
            floats(kind, false, Fields { op_sel: 4, ..plain }, 4);
        }
        for (neg, abs) in [(1, 0), (2, 1), (3, 3), (4, 0), (4, 4), (0, 4)] {
            floats(kind, true, Fields { neg, abs, ..plain }, 5);
        }
    }
}

/// Elements of `bits` bits; bit 0 of `fields.neg` makes A signed, bit 1 makes B signed.
fn integers(name: &str, bits: u32, fields: Fields, large: bool) {
    let code = enc::code(name, Format::Vop3p);
    let words = enc::vop3p(code, D, [v(A), v(B), v(C)], Fields { hi: 7, ..fields });
    let mut random = Random(u64::from(bits) + 7);
    let mask = u32::MAX >> (32 - bits);
    let mut element = || random.next() as u32 & mask;
    let a: [[u32; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| element()));
    let b: [[u32; 16]; 16] = std::array::from_fn(|_| std::array::from_fn(|_| element()));
    let mut regs = [[0; 32]; 32];
    for n in 0..16 {
        pack(&mut regs, A, n, bits, &a[n]);
        pack(&mut regs, B, n, bits, &std::array::from_fn(|k| b[k][n]));
    }
    for r in 0..8 {
        for lane in 0..32 {
            regs[C as usize - 2 + r][lane] = match (large, (r + lane) % 2) {
                (true, 0) => i32::MAX as u32 - lane as u32,
                (true, _) => i32::MIN as u32 + lane as u32,
                _ => random.next() as u32 >> 8,
            };
        }
    }
    let ours = run(&words, &regs);
    let value = |x: u32, source: u32| {
        let signed = fields.neg >> source & 1 == 1;
        i64::from(x) - if signed && x >> (bits - 1) == 1 { 1 << bits } else { 0 }
    };
    for r in 0..8 {
        for lane in 0..32 {
            let (row, column) = place(r, lane);
            let products: i64 = (0..16).map(|k| value(a[row][k], 0) * value(b[k][column], 1)).sum();
            let exact = products + i64::from(regs[C as usize - 2 + r][lane] as i32);
            let model = if fields.clamp {
                exact.clamp(i32::MIN.into(), i32::MAX.into())
            } else {
                exact
            };
            assert_eq!(
                ours[r][lane], model as u32,
                "{name} {fields:?}, row {row}, column {column}"
            );
        }
    }
}

#[test]
fn matrices_of_integers() {
    for (name, bits) in [("v_wmma_i32_16x16x16_iu8", 8), ("v_wmma_i32_16x16x16_iu4", 4)] {
        for neg in 0..4 {
            for clamp in [false, true] {
                for large in [false, true] {
                    let fields = Fields {
                        neg,
                        clamp,
                        ..Fields::default()
                    };
                    integers(name, bits, fields, large);
                }
            }
        }
    }
}

/// The accumulator may be an inline constant, and the destination may be the accumulator.
#[test]
fn accumulators() {
    let code = enc::code("v_wmma_i32_16x16x16_iu8", Format::Vop3p);
    let fields = Fields {
        hi: 7,
        ..Fields::default()
    };
    let mut regs = [[0; 32]; 32];
    for n in 0..16 {
        pack(&mut regs, A, n, 8, &std::array::from_fn(|k| (n + k) as u32));
        pack(&mut regs, B, n, 8, &std::array::from_fn(|k| (n * 3 + k) as u32));
    }
    let model = |row: usize, column: usize| (0..16).map(|k| ((row + k) * (column * 3 + k)) as u32).sum::<u32>();
    let constant = run(&enc::vop3p(code, D, [v(A), v(B), enc::int(7)], fields), &regs);
    for lane in 0..32 {
        regs[D as usize - 2][lane] = lane as u32;
    }
    let same = run(&enc::vop3p(code, D, [v(A), v(B), v(D)], fields), &regs);
    for r in 0..8 {
        for lane in 0..32 {
            let (row, column) = place(r, lane);
            assert_eq!(constant[r][lane], model(row, column) + 7);
            let old = if r == 0 { lane as u32 } else { 0 };
            assert_eq!(same[r][lane], model(row, column) + old);
        }
    }
}

/// The matrix instructions, and the registers that A and B have.
const OPERANDS: [(&str, u32); 6] = [
    ("v_wmma_f32_16x16x16_f16", 8),
    ("v_wmma_f32_16x16x16_bf16", 8),
    ("v_wmma_f16_16x16x16_f16", 8),
    ("v_wmma_bf16_16x16x16_bf16", 8),
    ("v_wmma_i32_16x16x16_iu8", 4),
    ("v_wmma_i32_16x16x16_iu4", 2),
];

const EXEC_LO: u32 = 126;

/// What a matrix instruction finds that runs with this `exec` over these registers.
fn faults(name: &str, regs: &[Reg; 32], exec: u32) -> Vec<Fault> {
    let fields = Fields {
        hi: 7,
        ..Fields::default()
    };
    let words = enc::vop3p(enc::code(name, Format::Vop3p), D, [v(A), v(B), v(C)], fields);
    let mut asm = Asm::default();
    asm.set(EXEC_LO, exec).put(&words).set(EXEC_LO, u32::MAX);
    launch(&asm.0, regs, ExecOptions::default()).outcome.faults
}

#[test]
fn halves_of_a_or_b_that_differ_are_a_fault() {
    for (name, registers) in OPERANDS {
        let mut random = Random(u64::from(registers));
        let mut same = [[0; 32]; 32];
        for reg in &mut same {
            for lane in 0..16 {
                // Small numbers in any of the types.
                reg[lane] = random.next() as u32 & 0x3c00_3c00;
                reg[lane + 16] = reg[lane];
            }
        }
        // The instruction does not look at `exec`, so it changes nothing.
        for exec in [u32::MAX, 0xFFFF, 0xFFFF_0000, 0] {
            assert_eq!(faults(name, &same, exec), [], "{name} with {exec:#x}");
            for (operand, first) in [("A", A), ("B", B)] {
                for n in 0..registers {
                    let mut regs = same;
                    let lane = (3 * n + 5) as usize % 16;
                    regs[(first - 2 + n) as usize][lane + 16] ^= 1 << (4 * n);
                    let found = faults(name, &regs, exec);
                    let [fault] = &found[..] else {
                        panic!("{name}, {operand} {n}, {exec:#x}: {found:?}");
                    };
                    assert_eq!((fault.kind, fault.lane as usize), (FaultKind::MatrixHalves, lane + 16));
                    let place = format!("{operand} in v{} is ", first + n);
                    let lanes = format!(" in lane {}; 0 more places differ", lane);
                    assert!(
                        fault.note.starts_with(&place) && fault.note.ends_with(&lanes),
                        "{name}: {fault}"
                    );
                }
            }
        }
        // Registers behind the operands, and the accumulator, have no such rule.
        let mut regs = same;
        for reg in (A + registers..B).chain(B + registers..C).chain(C..C + 8) {
            regs[reg as usize - 2][20] ^= 1;
        }
        assert_eq!(faults(name, &regs, u32::MAX), [], "{name}");
        // All that differs is one fault.
        for reg in [A, A + 1, B] {
            regs[reg as usize - 2][31] ^= 1;
        }
        let found = faults(name, &regs, u32::MAX);
        assert_eq!(found.len(), 1, "{name}");
        assert!(found[0].note.ends_with("; 2 more places differ"), "{}", found[0]);
    }
}

/// A half that nobody wrote may hold the right bits by chance: init_registers tells.
#[test]
fn a_half_that_nobody_wrote_is_a_fault_of_init_registers() {
    let name = "v_wmma_f32_16x16x16_f16";
    let (high, fields) = (
        40,
        Fields {
            hi: 7,
            ..Fields::default()
        },
    );
    let words = enc::vop3p(enc::code(name, Format::Vop3p), D, [v(high), v(B), v(C)], fields);
    let run = |exec: u32, init_registers: bool| {
        let mut asm = Asm::default();
        asm.set(EXEC_LO, exec).set(4, POISON);
        for n in 0..8 {
            asm.mov(high + n, 4);
        }
        asm.set(EXEC_LO, u32::MAX).put(&words);
        let tools = Tools {
            init_registers,
            ..Tools::default()
        };
        let options = ExecOptions {
            tools,
            ..ExecOptions::default()
        };
        launch(&asm.0, &[[0; 32]; 32], options).outcome.faults
    };
    // Registers start as what is written here, so the halves are equal.
    for (exec, written, not) in [(0x0000_FFFF, 0, 16), (0xFFFF_0000, 16, 0), (0xFFFF_FFF7, 19, 3)] {
        assert_eq!(run(exec, false), [], "{exec:#x}");
        let found = run(exec, true);
        let halves: Vec<&Fault> = found.iter().filter(|f| f.kind == FaultKind::MatrixHalves).collect();
        assert_eq!(halves.len(), 1, "{found:?}");
        assert_eq!(
            (halves[0].lane, halves[0].note.as_str()),
            (
                not,
                format!("A was written in lane {written} and not in lane {not}").as_str()
            )
        );
        // The results of those rows are unknown, and all are stored.
        assert!(found.iter().any(|f| f.kind == FaultKind::UninitialisedRegister));
    }
    assert_eq!(run(u32::MAX, true), []);
}

/// Row 3 of A is unknown: so is row 3 of the result, which is register 1 in lanes 16 to 31, and nothing else.
#[test]
fn a_result_is_unknown_where_its_row_or_column_is() {
    let name = "v_wmma_i32_16x16x16_iu8";
    let fields = Fields {
        hi: 7,
        ..Fields::default()
    };
    let high = 40;
    for (sources, registers, lanes) in [
        // Register 0 holds rows 0 and 1.
        ([v(high), v(B)], 1 << 1, 0xFFFF_0000u32),
        ([v(A), v(high)], 0xFF, 0x0008_0008),
    ] {
        for stored in 0..8 {
            let words = enc::vop3p(
                enc::code(name, Format::Vop3p),
                50,
                [sources[0], sources[1], v(C)],
                fields,
            );
            let mut asm = Asm::default();
            asm.set(EXEC_LO, !0x0008_0008);
            for n in 0..4 {
                asm.mov(high + n, enc::int(0));
            }
            asm.set(EXEC_LO, u32::MAX).put(&words).mov(D, v(50 + stored));
            let tools = Tools {
                init_registers: true,
                ..Tools::default()
            };
            let options = ExecOptions {
                tools,
                ..ExecOptions::default()
            };
            let found = launch(&asm.0, &[[0; 32]; 32], options).outcome.faults;
            // The values differ in no lane: the registers start alike in lanes 3 and 19.
            let unknown = registers >> stored & 1 == 1;
            assert_eq!(!found.is_empty(), unknown, "register {stored}: {found:?}");
            for fault in found {
                assert_eq!(fault.kind, FaultKind::UninitialisedRegister);
                assert!(fault.note.contains(&format!("{lanes:#010x}")), "{fault}");
            }
        }
    }
}

pub(crate) fn ops() -> Vec<Op> {
    FLOATS
        .iter()
        .map(|kind| kind.name)
        .chain(["v_wmma_i32_16x16x16_iu8", "v_wmma_i32_16x16x16_iu4"])
        .filter_map(named)
        .collect()
}
