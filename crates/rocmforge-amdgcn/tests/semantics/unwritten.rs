//! Operations on values that nobody has written: of which words of a result something is said.

use crate::enc;
use crate::rig::{Asm, Launch};
use rocmforge_amdgcn::FaultKind;
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
        let launch = Launch {
            words: &asm.0,
            lanes: 32,
            input: &[0; 128],
            output: 128,
            lds: 64,
            ..Launch::default()
        };
        let kinds: Vec<FaultKind> = launch.launch().outcome.faults.iter().map(|fault| fault.kind).collect();
        let expected: &[FaultKind] = if reported { &[FaultKind::UninitialisedLds] } else { &[] };
        assert_eq!(kinds, expected, "v{unwritten} unwritten, v{stored} stored");
    }
}
