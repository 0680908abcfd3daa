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

/// After an exchange the other register is the one that nobody has written; where registers are relative, both count as written.
#[test]
fn an_exchange_moves_what_is_unwritten() {
    let swap = enc::code("v_swap_b32", Format::Vop1);
    assert_eq!(faults(&[], 41), [FaultKind::UninitialisedLds]);
    for (dst, src) in [(40, 41), (41, 40)] {
        for stored in [40, 41] {
            let found = faults(&[enc::vop1(swap, dst, enc::v(src))], stored);
            let expected: &[FaultKind] = if stored == 40 {
                &[FaultKind::UninitialisedLds]
            } else {
                &[]
            };
            assert_eq!(found, expected, "v_swap_b32 v{dst}, v{src}, v{stored} stored");
        }
    }
    if let Some(swap) = enc::find("v_swaprel_b32", Format::Vop1) {
        // v42 and v41: a distance of 2 for the source, and of 1 for the destination.
        let words = [
            enc::sop1(0, enc::M0, enc::LITERAL),
            1 << 16 | 2,
            enc::vop1(swap, 40, enc::v(40)),
        ];
        assert_eq!(faults(&words, 41), [], "v_swaprel_b32");
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

/// What another lane has is as unwritten as it is there, whichever instruction brings it; so is what an unwritten selection of lanes gives.
#[test]
fn values_of_other_lanes_are_followed() {
    for name in [
        "v_permlane16_b32",
        "v_permlanex16_b32",
        "v_permlane16_var_b32",
        "v_permlanex16_var_b32",
    ] {
        if let Some(code) = enc::find(name, Format::Vop3) {
            let selected = if name.contains("var") { enc::v(40) } else { enc::int(0) };
            let words = enc::vop3(code, 42, [enc::v(41), selected, enc::int(0)], enc::Fields::default());
            assert_eq!(faults(&words, 42), [FaultKind::UninitialisedLds], "{name}");
            let words = enc::vop3(code, 42, [enc::v(40), selected, enc::int(0)], enc::Fields::default());
            assert_eq!(faults(&words, 42), [], "{name} of what is written");
            if name.contains("var") {
                let words = enc::vop3(code, 42, [enc::v(40), enc::v(41), enc::int(0)], enc::Fields::default());
                assert_eq!(
                    faults(&words, 42),
                    [FaultKind::UninitialisedLds],
                    "{name} by what is not written"
                );
            }
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
