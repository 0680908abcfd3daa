//! Kernels with instructions that only gfx1201 has, matrices apart: each kernel of `fixtures/gfx1201.hip` against the ISA's pseudocode.

use crate::card::{Arg, Card, Numbers};
use rocmforge_amdgcn::{ByteState, DEVICE_BASE, FaultKind, Program, Status};
use rocmforge_isa::{Arch, decode_for};
use rocmforge_kernels::Pack;

pub(crate) const OBJECT: &[u8] = include_bytes!("../fixtures/gfx1201.co");

fn shipped(arch: Arch) -> Vec<Vec<u8>> {
    let pack = Pack::embedded(arch.name()).expect("the kernels are embedded");
    let object = |family| pack.object(family).expect("sound").expect("it is there");
    pack.families().map(object).collect()
}

#[test]
fn every_shipped_kernel_loads() {
    let mut kernels = 0;
    for elf in shipped(Arch::Gfx1201) {
        let program = Program::load(&elf, DEVICE_BASE).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(program.arch(), Arch::Gfx1201);
        kernels += program.kernels().len();
    }
    assert!(kernels > 40, "only {kernels} kernels");
}

#[test]
fn both_cards_have_every_kernel() {
    let names = |arch| -> Vec<String> {
        let mut names: Vec<String> = shipped(arch)
            .iter()
            .flat_map(|elf| Program::load(elf, DEVICE_BASE).expect("loads").kernels().to_vec())
            .map(|kernel| kernel.name)
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(Arch::Gfx1100), names(Arch::Gfx1201));
}

/// Singles that tell the orders of signed zeros, NaN of both kinds, and numbers apart.
const EDGES: [u32; 12] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x3fc0_0000,
    0xc020_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0001,
    0xffc0_0002,
    0x7f80_0003,
    0xff80_0004,
];

fn quiet(x: u32) -> u32 {
    x | 0x0040_0000
}

fn is_nan(x: u32) -> bool {
    f32::from_bits(x).is_nan()
}

/// `v_min_num_f32` and `v_max_num_f32` as the pseudocode has them.
fn num(a: u32, b: u32, least: bool) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let (negative_a, negative_b) = (a >> 31 == 1, b >> 31 == 1);
    match (is_nan(a), is_nan(b)) {
        (true, true) => quiet(a),
        (true, false) => b,
        (false, true) => a,
        _ if least && (x < y || x == 0.0 && y == 0.0 && negative_a && !negative_b) => a,
        _ if !least && (x > y || x == 0.0 && y == 0.0 && !negative_a && negative_b) => a,
        _ => b,
    }
}

/// `v_minimum_f32` and `v_maximum_f32`.
fn ieee(a: u32, b: u32, least: bool) -> u32 {
    let signals = |x: u32| is_nan(x) && x & 0x0040_0000 == 0;
    match () {
        () if signals(a) => quiet(a),
        () if signals(b) => quiet(b),
        () if is_nan(a) => a,
        () if is_nan(b) => b,
        () => num(a, b, least),
    }
}

/// Puts words into the place of the `s_nop 5` of a template and runs it: `v8 = op(v2, v4, v6)`.
fn vop3((code, sources): (u32, usize), a: &[u32], b: &[u32], c: &[u32]) -> Vec<u32> {
    const TEMPLATE: &[u8] = include_bytes!("../corpus/template-gfx1201.co");
    let hole: Vec<u8> = std::iter::repeat_n(0xbf80_0005u32.to_le_bytes(), 16)
        .flatten()
        .collect();
    let mut elf = TEMPLATE.to_vec();
    let at = elf.windows(64).position(|window| window == &hole[..]).expect("a hole");
    let fields = [0x102, 0x104 << 9, 0x106 << 18];
    let words = [0xd400_0008 | code << 16, fields[..sources].iter().sum()];
    for (index, word) in words.into_iter().enumerate() {
        elf[at + 4 * index..][..4].copy_from_slice(&u32::to_le_bytes(word));
    }
    let mut card = Card::new(&elf);
    let wide = |x: &[u32]| -> Vec<u64> { x.iter().map(|&x| x.into()).collect() };
    let args: Vec<Arg> = [a, b, c, a]
        .into_iter()
        .map(|x| Arg::Ptr(card.upload(&wide(x))))
        .collect();
    card.run("template_kernel", a.len() as u32 / 32, 32, &args);
    let Arg::Ptr(out) = args[3] else { unreachable!() };
    card.download::<u64>(out, a.len())
        .into_iter()
        .map(|x| x as u32)
        .collect()
}

/// Opcode of a VOP3 operation, from its text.
fn code_of(name: &str) -> (u32, usize) {
    (0..1024)
        .find_map(|code| {
            let inst = [3, 2].into_iter().find_map(|sources| {
                let fields = [0x102, 0x104 << 9, 0x106 << 18];
                let words = [0xd400_0008 | code << 16, fields[..sources].iter().sum()];
                Some((decode_for(Arch::Gfx1201, &words, 0).ok()?, sources))
            })?;
            let text = inst.0.to_string();
            (text.split(' ').next()?.trim_end_matches("_e64") == name).then_some((code, inst.1))
        })
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn minima_and_maxima_of_three_kinds() {
    let n = EDGES.len();
    let count = n * n * n / 32 * 32;
    let of = |step: usize| -> Vec<u32> { (0..count).map(|at| EDGES[at / step % n]).collect() };
    let (a, b, c) = (of(1), of(n), of(n * n));
    type Model = fn(u32, u32, u32) -> u32;
    let models: [(&str, Model); 12] = [
        ("v_min_num_f32", |a, b, _| num(a, b, true)),
        ("v_max_num_f32", |a, b, _| num(a, b, false)),
        ("v_min3_num_f32", |a, b, c| num(num(a, b, true), c, true)),
        ("v_max3_num_f32", |a, b, c| num(num(a, b, false), c, false)),
        ("v_minmax_num_f32", |a, b, c| num(num(a, b, true), c, false)),
        ("v_maxmin_num_f32", |a, b, c| num(num(a, b, false), c, true)),
        ("v_minimum_f32", |a, b, _| ieee(a, b, true)),
        ("v_maximum_f32", |a, b, _| ieee(a, b, false)),
        ("v_minimum3_f32", |a, b, c| ieee(ieee(a, b, true), c, true)),
        ("v_maximum3_f32", |a, b, c| ieee(ieee(a, b, false), c, false)),
        ("v_minimummaximum_f32", |a, b, c| ieee(ieee(a, b, true), c, false)),
        ("v_med3_num_f32", |a, b, c| {
            let most = f32::from_bits(num(num(a, b, false), c, false));
            match () {
                () if is_nan(a) || is_nan(b) || is_nan(c) => num(num(a, b, true), c, true),
                () if most == f32::from_bits(a) => num(b, c, false),
                () if most == f32::from_bits(b) => num(a, c, false),
                () => num(a, b, false),
            }
        }),
    ];
    for (name, model) in models {
        let out = vop3(code_of(name), &a, &b, &c);
        for at in 0..count {
            let wanted = model(a[at], b[at], c[at]);
            assert_eq!(out[at], wanted, "{name} of {:08x} {:08x} {:08x}", a[at], b[at], c[at]);
        }
    }
}

#[test]
fn scalar_floats() {
    let numbers = [
        1.5f32,
        -2.25,
        0.0,
        -0.0,
        1e30,
        -7.5,
        f32::INFINITY,
        f32::NAN,
        1e-40,
        3.999,
    ];
    for a in numbers {
        for b in numbers {
            let c = 0.75f32;
            let mut card = Card::new(OBJECT);
            let out = card.alloc(80);
            let bits = |x: f32| Arg::U32(x.to_bits());
            card.run("scalar32", 1, 32, &[Arg::Ptr(out), bits(a), bits(b), bits(c)]);
            let truth = |x: bool| f32::from(u8::from(x));
            let pick = |least| f32::from_bits(num(a.to_bits(), b.to_bits(), least));
            let half = half::f16::from_f32(a).to_f32();
            let wanted = [
                a + b,
                a - b,
                a * b,
                a.mul_add(b, c),
                pick(true),
                pick(false),
                a.ceil(),
                a.floor(),
                a.trunc(),
                a.round_ties_even(),
                truth(a < b),
                truth(a <= b),
                truth(a == b),
                truth(a != b),
                truth(a.partial_cmp(&b) != Some(std::cmp::Ordering::Less)),
                truth(a.is_nan() || b.is_nan()),
                half,
                truth(a > b),
                truth(!matches!(
                    a.partial_cmp(&b),
                    Some(std::cmp::Ordering::Greater | std::cmp::Ordering::Equal)
                )),
                a.mul_add(b, 3.25),
            ];
            for (at, (ours, wanted)) in card.download::<f32>(out, 20).into_iter().zip(wanted).enumerate() {
                let same = ours.to_bits() == wanted.to_bits() || ours.is_nan() && wanted.is_nan();
                assert!(same, "result {at} of {a} {b}: {ours}, not {wanted}");
            }
        }
    }
}

#[test]
fn scalar_conversions_integers_and_narrow_loads() {
    for (a, n) in [
        (3.75f32, 7u32),
        (-2.5, u32::MAX),
        (1e20, 1 << 31),
        (f32::NAN, 16_777_217),
    ] {
        let mut card = Card::new(OBJECT);
        let (y, z) = (card.alloc(8), card.alloc(8));
        card.run(
            "convert",
            1,
            32,
            &[Arg::Ptr(y), Arg::Ptr(z), Arg::U32(a.to_bits()), Arg::U32(n)],
        );
        assert_eq!(card.download::<f32>(y, 2), [n as f32, n as i32 as f32]);
        assert_eq!(card.download::<u32>(z, 2), [a as u32, a as i32 as u32]);
    }
    let mut numbers = Numbers(5);
    for _ in 0..50 {
        let (a, b) = (numbers.next(), numbers.next());
        let mut card = Card::new(OBJECT);
        let y = card.alloc(24);
        // The harness passes 32 bits at a time or addresses, which are 64.
        card.run("scalar64", 1, 32, &[Arg::Ptr(y), Arg::Ptr(a), Arg::Ptr(b)]);
        assert_eq!(
            card.download::<u64>(y, 3),
            [a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b)]
        );
    }
    let mut card = Card::new(OBJECT);
    let (bytes, halves) = (
        card.upload(&[1u8, 200, 3, 128]),
        card.upload(&[1u16, 40_000, 3, 65_535]),
    );
    for n in 0..4u32 {
        let y = card.alloc(16);
        let args = [bytes, bytes, halves, halves, y].map(Arg::Ptr);
        card.run(
            "scalar_loads",
            1,
            32,
            &args.into_iter().chain([Arg::U32(n)]).collect::<Vec<_>>(),
        );
        let (byte, half) = ([1u8, 200, 3, 128][n as usize], [1u16, 40_000, 3, 65_535][n as usize]);
        let wanted = [byte.into(), byte as i8 as u32, half.into(), half as i16 as u32];
        assert_eq!(card.download::<u32>(y, 4), wanted);
    }
}

#[test]
fn pseudo_scalar_transcendentals() {
    for a in [0.5f32, 1.0, 3.0, 100.0, 0.001] {
        let mut card = Card::new(OBJECT);
        let y = card.alloc(20);
        card.run("pseudo_scalar", 1, 32, &[Arg::Ptr(y), Arg::U32(a.to_bits())]);
        let x = f64::from(a);
        let wanted = [x.exp2(), x.log2(), 1.0 / x, 1.0 / x.sqrt(), x.sqrt()];
        for (ours, wanted) in card.download::<f32>(y, 5).into_iter().zip(wanted) {
            assert!(
                (f64::from(ours) - wanted).abs() <= wanted.abs() * 1e-6 + 1e-7 || ours == wanted as f32,
                "{a}: {ours} {wanted}"
            );
        }
    }
}

#[test]
fn a_wave_knows_its_number() {
    let mut card = Card::new(OBJECT);
    let y = card.alloc(4 * 192);
    card.run("wave_number", 1, 192, &[Arg::Ptr(y)]);
    let wanted: Vec<u32> = (0..192).map(|t| t / 32).collect();
    assert_eq!(card.download::<u32>(y, 192), wanted);
}

#[test]
fn split_barriers() {
    let x: Vec<u32> = (0..256).map(|k| k * k).collect();
    for seed in 0..20 {
        let mut card = Card::new(OBJECT);
        card.options.wave_order_seed = seed;
        let (dx, dy) = (card.upload(&x), card.alloc(1024));
        let outcome = card.run("split", 1, 256, &[Arg::Ptr(dx), Arg::Ptr(dy)]);
        let wanted: Vec<u32> = (0..256).map(|t| x[t ^ 255] + x[t] * 3 + 1).collect();
        assert_eq!(card.download::<u32>(dy, 256), wanted, "seed {seed}");
        assert_eq!(outcome.counters.barriers, 1);
        card.run("first", 1, 256, &[Arg::Ptr(dy)]);
        // Of each of the three barriers exactly one wave is the first.
        let waves: u32 = card.download::<u32>(dy, 256).chunks(32).map(|wave| wave[0]).sum();
        assert_eq!(waves, 3, "seed {seed}");
    }
}

#[test]
fn a_wait_without_a_signal_is_reported() {
    let mut card = Card::new(OBJECT);
    let y = card.alloc(256);
    let outcome = card.launch("unsignalled", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(y)]);
    assert_eq!(outcome.status, Status::Faulted);
    let fault = &outcome.faults[0];
    assert_eq!((fault.kind, fault.wave), (FaultKind::BarrierDivergence, 1), "{fault}");
    assert!(fault.note.contains("not signalled"), "{fault}");
    assert_eq!(
        fault.frames[0].line,
        1 + line_of("__builtin_amdgcn_s_barrier_wait(-1);\n    y[tid()] = 1;")
    );
}

fn line_of(text: &str) -> u32 {
    let source = include_str!("../fixtures/gfx1201.hip");
    source[..source.find(text).expect("in the source")]
        .matches('\n')
        .count() as u32
}

#[test]
fn permutations_with_a_lane_of_each_lane() {
    let mut numbers = Numbers(3);
    let (x, select) = (numbers.u32s(32), numbers.u32s(32));
    let mut card = Card::new(OBJECT);
    let (dx, ds, dy) = (card.upload(&x), card.upload(&select), card.alloc(256));
    card.run("variable_permute", 1, 32, &[Arg::Ptr(dx), Arg::Ptr(ds), Arg::Ptr(dy)]);
    let y = card.download::<u32>(dy, 64);
    for t in 0..32 {
        let from = (select[t] & 15) as usize;
        assert_eq!(
            (y[t], y[t + 32]),
            (x[t & 16 | from], x[(t & 16 ^ 16) | from]),
            "lane {t}"
        );
    }
}

#[test]
fn bytes_of_floats() {
    // All exact in both formats, so that rounding does not matter.
    let x: Vec<f32> = (0..64)
        .map(|k| [1.0, -2.0, 0.5, 6.0, -0.25, 0.0, 12.0, -1.5][k * 5 % 8])
        .collect();
    let noise = Numbers(4).u32s(32);
    let mut card = Card::new(OBJECT);
    let (dx, dn, dy, dz) = (card.upload(&x), card.upload(&noise), card.alloc(256), card.alloc(640));
    card.run(
        "bytes",
        1,
        32,
        &[Arg::Ptr(dx), Arg::Ptr(dn), Arg::Ptr(dy), Arg::Ptr(dz)],
    );
    let (y, z) = (card.download::<u32>(dy, 64), card.download::<f32>(dz, 160));
    let fp8 = |bits: u32| -> f64 {
        let (sign, exponent, mantissa) = (bits >> 7 & 1, bits >> 3 & 15, f64::from(bits & 7));
        let size = if exponent == 0 {
            mantissa / 512.0
        } else {
            (1.0 + mantissa / 8.0) * 2f64.powi(exponent as i32 - 7)
        };
        if sign == 1 { -size } else { size }
    };
    let bf8 = |bits: u32| -> f64 {
        let (sign, exponent, mantissa) = (bits >> 7 & 1, bits >> 2 & 31, f64::from(bits & 3));
        let size = if exponent == 0 {
            mantissa / 65536.0
        } else {
            (1.0 + mantissa / 4.0) * 2f64.powi(exponent as i32 - 15)
        };
        if sign == 1 { -size } else { size }
    };
    for t in 0..32 {
        let (first, second) = (f64::from(x[2 * t]), f64::from(x[2 * t + 1]));
        let byte = |n: u32| y[t] >> (8 * n) & 255;
        assert_eq!(
            [fp8(byte(0)), fp8(byte(1)), bf8(byte(2)), bf8(byte(3))],
            [first, second, first, second]
        );
        assert_eq!(y[t + 32] & 0xff00_ffff, 0x0100_0304, "the other bytes stay");
        let z = |n: usize| f64::from(z[t + 32 * n]);
        assert_eq!([z(0), z(1), z(2), z(3)], [second, first, first, second]);
        let others = noise[t] & 0x7777_7777;
        let dot: f64 = (0..4).map(|n| fp8(byte(n)) * bf8(others >> (8 * n) & 255)).sum();
        let wanted = dot + f64::from(x[t]);
        assert!(
            (z(4) - wanted).abs() <= 1e-5 * wanted.abs().max(1.0) || !wanted.is_finite(),
            "{} {wanted}",
            z(4)
        );
    }
}

#[test]
fn packed_and_floating_point_atomics() {
    let mut card = Card::new(OBJECT);
    let (p, f, q) = (card.upload(&[0u32]), card.upload(&[5.0f32, 5.0]), card.alloc(4));
    card.memory.set_state(q, 4, ByteState::Uninit);
    card.run("atomics", 1, 64, &[Arg::Ptr(p), Arg::Ptr(f), Arg::Ptr(q)]);
    // 64 times (1, 2).
    let wanted = u32::from(half::f16::from_f32(64.0).to_bits()) | u32::from(half::f16::from_f32(128.0).to_bits()) << 16;
    assert_eq!(
        (card.download::<u32>(p, 1), card.download::<u32>(q, 1)),
        (vec![wanted], vec![wanted])
    );
    assert_eq!(card.download::<f32>(f, 2), [63.0, 0.0]);
}
