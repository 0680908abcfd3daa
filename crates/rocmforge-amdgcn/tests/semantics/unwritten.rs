//! Operations on values that nobody has written: of which words of a result something is said.

use crate::enc;
use crate::rig::{Asm, Launch};
use rocmforge_amdgcn::{ExecOptions, FaultKind, Tools};
use rocmforge_isa::Format;

/// A product of words plus a sum of 64 bits: what the high word of the sum holds says nothing of the low word of the result.
#[test]
fn the_low_word_of_a_product_knows_nothing_of_high_words() {
    let load = enc::code("ds_load_b32", Format::Ds);
    let mad = enc::find("v_mad_u64_u32", Format::Vop3sd).or_else(|| enc::find("v_mad_co_u64_u32", Format::Vop3sd));
    let mad = mad.expect("both cards have it");
    for (unwritten, stored, reported) in [(41, 42, false), (41, 43, true), (40, 42, true), (40, 43, true)] {
        let mut asm = Asm::default();
        asm.prologue(1, 4, 4)
            .mov(40, enc::int(3))
            .mov(41, enc::int(5))
            .mov(39, enc::int(0));
        // Of LDS, which nobody has written.
        asm.put(&enc::ds(load, unwritten, 39, [0, 0], 0));
        let mut words = enc::vop3(mad, 42, [enc::int(7), enc::v(2), enc::v(40)], enc::Fields::default());
        words[0] |= enc::NULL << 8;
        asm.put(&words).store(stored, 1, 0);
        let expected: &[FaultKind] = if reported { &[FaultKind::UninitialisedLds] } else { &[] };
        assert_eq!(kinds(&asm), expected, "v{unwritten} unwritten, v{stored} stored");
    }
}

/// Kinds of the faults of a kernel that loads v41 from LDS that nobody has written, executes some words and stores a register.
fn faults(words: &[u32], stored: u32) -> Vec<FaultKind> {
    let mut asm = Asm::default();
    asm.prologue(1, 4, 4);
    for known in [39, 40, 42, 43] {
        asm.mov(known, enc::int(0));
    }
    asm.put(&enc::ds(enc::code("ds_load_b32", Format::Ds), 41, 39, [0, 0], 0));
    asm.put(words).store(stored, 1, 0);
    kinds(&asm)
}

/// Kinds of the faults of a kernel with 64 bytes of LDS.
fn kinds(asm: &Asm) -> Vec<FaultKind> {
    let launch = Launch {
        words: &asm.0,
        lanes: 32,
        input: &[0; 128],
        output: 128,
        lds: 64,
        ..Launch::default()
    };
    launch.launch().outcome.faults.iter().map(|fault| fault.kind).collect()
}

/// Only these lanes are on.
fn lanes(mask: u32) -> [u32; 2] {
    [
        enc::sop1(enc::code("s_mov_b32", Format::Sop1), enc::EXEC, enc::LITERAL),
        mask,
    ]
}

/// An exchange gives each of its registers what is unknown of the other, wherever they are.
#[test]
fn an_exchange_exchanges_what_is_unknown() {
    let unwritten = [FaultKind::UninitialisedLds];
    let swap = enc::code("v_swap_b32", Format::Vop1);
    assert_eq!(faults(&[], 41), unwritten);
    for (dst, src) in [(40, 41), (41, 40)] {
        let once = [enc::vop1(swap, dst, enc::v(src))];
        let text = format!("v_swap_b32 v{dst}, v{src}");
        assert_eq!(faults(&once, 40), unwritten, "{text}, v40 stored");
        assert_eq!(faults(&once, 41), [], "{text}, v41 stored");
        let twice = [once, once].concat();
        assert_eq!(faults(&twice, 40), [], "{text} twice, v40 stored");
        assert_eq!(faults(&twice, 41), unwritten, "{text} twice, v41 stored");
        // Lanes that are off keep their values: v40 and v41 have unknown ones then.
        let some = [&lanes(0xff)[..], &once, &lanes(u32::MAX)].concat();
        for (stored, mask) in [(40, 0xff), (40, !0xff), (41, 0xff), (41, !0xff)] {
            let words = [&some[..], &lanes(mask)].concat();
            let expected = if (stored == 40) == (mask == 0xff) {
                &unwritten[..]
            } else {
                &[]
            };
            assert_eq!(
                faults(&words, stored),
                expected,
                "{text} in eight lanes, v{stored} stored under {mask:#x}"
            );
        }
    }
    if let Some(swap) = enc::find("v_swaprel_b32", Format::Vop1) {
        // v42 and v41: a distance of 2 for the source, and of 1 for the destination.
        let words = [
            enc::sop1(0, enc::M0, enc::LITERAL),
            1 << 16 | 2,
            enc::vop1(swap, 40, enc::v(40)),
        ];
        assert_eq!(faults(&words, 41), [], "v_swaprel_b32, v41 stored");
        assert_eq!(faults(&words, 42), unwritten, "v_swaprel_b32, v42 stored");
    }
}

/// An exchange of halves: the others stay.
#[test]
fn an_exchange_of_halves_exchanges_what_is_unknown_of_them() {
    let Some(swap) = enc::find("v_swap_b16", Format::Vop1) else {
        return;
    };
    let (left, shift) = (
        enc::code("v_lshlrev_b32", Format::Vop2),
        enc::code("v_lshrrev_b32", Format::Vop2),
    );
    let xor = enc::code("v_xor_b32", Format::Vop2);
    // v40.l and v41.h; then each half of both registers as a computed value, which may not be stored.
    let exchange = [enc::vop1(swap, 40, enc::v(41 | 0x80))];
    for (register, high, reported) in [
        (40, false, true),
        (40, true, false),
        (41, false, true),
        (41, true, false),
    ] {
        let shifted = if high { shift } else { left };
        let half = [
            enc::vop2(shifted, 44, enc::int(16), register),
            enc::vop2(xor, 44, enc::v(42), 44),
        ];
        let expected: &[FaultKind] = if reported { &[FaultKind::UninitialisedLds] } else { &[] };
        let found = faults(&[&exchange[..], &half].concat(), 44);
        assert_eq!(found, expected, "v{register}, high: {high}");
    }
    // Both halves of one register, of which the low one is unknown.
    let both = [exchange[0], enc::vop1(swap, 40, enc::v(40 | 0x80))];
    let xor = |shifted: u32| {
        [
            enc::vop2(shifted, 44, enc::int(16), 40),
            enc::vop2(xor, 44, enc::v(42), 44),
        ]
    };
    let found = faults(&[&both[..], &xor(shift)].concat(), 44);
    assert_eq!(
        found,
        [FaultKind::UninitialisedLds],
        "v40.h after v_swap_b16 v40.l, v40.h"
    );
    let found = faults(&[&both[..], &xor(left)].concat(), 44);
    assert_eq!(found, [], "v40.l after v_swap_b16 v40.l, v40.h");
}

/// A half of a mask that hides what is unknown hides it in one half, and the other half stays.
#[test]
fn a_mask_of_16_bits_hides_bytes_of_a_half() {
    let (and, or) = (
        enc::code("v_and_b16", Format::Vop3),
        enc::code("v_or_b16", Format::Vop3),
    );
    let xor = enc::code("v_xor_b32", Format::Vop2);
    // The low half of the source, or with an `op_sel` of 9 the high one into the high one; the rest of v44 is known.
    for op_sel in [0, 9] {
        for (code, mask, reported) in [(and, 0, false), (and, 1, true), (or, 1, true), (or, -1, false)] {
            let fields = enc::Fields {
                op_sel,
                ..enc::Fields::default()
            };
            let masked = enc::vop3(code, 44, [enc::v(41), enc::int(mask), 0], fields);
            let words = [
                &[enc::vop1(1, 44, enc::int(0))][..],
                &masked,
                &[enc::vop2(xor, 44, enc::v(42), 44)],
            ]
            .concat();
            let expected: &[FaultKind] = if reported { &[FaultKind::UninitialisedLds] } else { &[] };
            assert_eq!(faults(&words, 44), expected, "{code:#x}, mask {mask}, op_sel {op_sel}");
        }
    }
    // What it does not write stays unknown.
    let masked = enc::vop3(and, 41, [enc::v(41), enc::int(0), 0], enc::Fields::default());
    let words = [&masked[..], &[enc::vop2(xor, 44, enc::v(42), 41)]].concat();
    assert_eq!(faults(&words, 44), [FaultKind::UninitialisedLds], "v41.h");
}

/// `v_readfirstlane_b32` reads the first lane that is on, and lane 0 if none is.
#[test]
fn the_first_lane_has_the_unknown_bytes_of_its_own() {
    let load = enc::ds(enc::code("ds_load_b32", Format::Ds), 43, 39, [0, 0], 0);
    let first = enc::code("v_readfirstlane_b32", Format::Vop1);
    for unwritten in [1, 0xffff_fffe, 0x8000_0000] {
        for exec in [0, 1, 2, 0x8000_0000, u32::MAX] {
            let words = [
                &lanes(unwritten)[..],
                &load,
                &lanes(exec),
                &[enc::vop1(first, 20, enc::v(43))],
                &lanes(u32::MAX),
                &[enc::vop1(1, 44, 20)],
            ]
            .concat();
            let lane = if exec == 0 { 0 } else { exec.trailing_zeros() };
            let expected: &[FaultKind] = if unwritten >> lane & 1 != 0 {
                &[FaultKind::UninitialisedLds]
            } else {
                &[]
            };
            assert_eq!(faults(&words, 44), expected, "{unwritten:#x} unwritten, {exec:#x} on");
        }
    }
}

/// Each lane computes with its own values, and `v_div_fmas_f32` with its bit of `vcc`.
#[test]
fn results_of_vector_arithmetic_are_unknown_where_a_source_is() {
    let fmas = enc::code("v_div_fmas_f32", Format::Vop3);
    let sums = enc::code("v_mqsad_u32_u8", Format::Vop3);
    let clear = [enc::sop1(enc::code("s_mov_b32", Format::Sop1), enc::VCC, enc::int(0))];
    for unknown in [false, true] {
        let source = enc::v(if unknown { 41 } else { 42 });
        let expected: &[FaultKind] = if unknown { &[FaultKind::UninitialisedLds] } else { &[] };
        let product = enc::vop3(fmas, 44, [enc::v(42), source, enc::v(42)], enc::Fields::default());
        assert_eq!(faults(&[&clear[..], &product].concat(), 44), expected, "v_div_fmas_f32");
        let sum = enc::vop3(sums, 44, [enc::v(42), source, enc::v(48)], enc::Fields::default());
        assert_eq!(faults(&sum, 44), expected, "v_mqsad_u32_u8");
    }
}

/// What another lane has counts as written, whichever instruction brings it.
#[test]
fn values_of_other_lanes_count_as_written() {
    for name in [
        "v_permlane16_b32",
        "v_permlanex16_b32",
        "v_permlane16_var_b32",
        "v_permlanex16_var_b32",
    ] {
        if let Some(code) = enc::find(name, Format::Vop3) {
            let selected = if name.contains("var") { enc::v(40) } else { enc::int(0) };
            let words = enc::vop3(code, 42, [enc::v(41), selected, enc::int(0)], enc::Fields::default());
            assert_eq!(faults(&words, 42), [], "{name}");
        }
    }
}

/// Scalar registers at a distance of `m0`: s50 is written, s51 is not.
#[test]
fn relative_scalar_registers_are_those_that_m0_leads_to() {
    let load = |name: &str| enc::code(name, Format::Sop1);
    let (source, destination) = (load("s_movrels_b32"), load("s_movreld_b32"));
    let options = ExecOptions {
        tools: Tools {
            init_registers: true,
            ..Tools::default()
        },
        ..ExecOptions::default()
    };
    let reported = |relative: u32, m0: u32, stored: u32| {
        let mut asm = Asm::default();
        asm.prologue(1, 4, 4).set(50, 0).set(enc::M0, m0);
        asm.put(&[relative]).mov(42, stored).store(42, 1, 0);
        let launch = Launch {
            words: &asm.0,
            lanes: 32,
            input: &[0; 128],
            output: 128,
            options: options.clone(),
            ..Launch::default()
        };
        let done = launch.launch();
        done.outcome
            .faults
            .iter()
            .any(|f| f.kind == FaultKind::UninitialisedRegister)
    };
    assert!(reported(enc::sop1(source, 60, 50), 1, 60), "s_movrels_b32 of s51");
    assert!(!reported(enc::sop1(source, 60, 49), 1, 60), "s_movrels_b32 of s50");
    assert!(!reported(enc::sop1(destination, 60, 50), 1, 61), "s_movreld_b32 to s61");
    assert!(
        reported(enc::sop1(destination, 60, 50), 1, 60),
        "s_movreld_b32 to s61, not s60"
    );
}
