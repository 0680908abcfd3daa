//! No input panics, and errors say where and what.

use crate::random::{Random, words_of};
use rocmforge_isa::{Arch, DecodeError, decode, decode_for};

#[test]
fn no_words_panic() {
    for arch in Arch::ALL {
        decodes_anything(arch);
    }
}

fn decodes_anything(arch: Arch) {
    let mut random = Random(7);
    println!("seed 7");
    let mut good = 0;
    for round in 0..200_000u32 {
        let mut words = if round % 2 == 0 {
            words_of(arch, &mut random)
        } else {
            (0..3).map(|_| random.next() as u32).collect()
        };
        words.truncate(1 + random.below(3) as usize);
        if let Ok(inst) = decode_for(arch, &words, 0x100) {
            assert!(
                usize::from(inst.size) <= 4 * words.len(),
                "{words:08x?} claims {} bytes",
                inst.size
            );
            assert!(!inst.to_string().is_empty());
            let _ = inst.branch_target(u64::MAX);
            good += 1;
        }
    }
    assert!(good > 5_000, "only {good} instructions");
}

#[test]
fn a_cut_off_instruction_names_what_it_needs() {
    let error = decode(&[0xd503_0002], 0x40).expect_err("half of a VOP3");
    assert_eq!(
        error,
        DecodeError::Truncated {
            pc: 0x40,
            words: vec![0xd503_0002],
            need: 2
        }
    );
    let error = decode(&[0x0604_08ff], 0x40).expect_err("its literal is missing");
    assert!(matches!(error, DecodeError::Truncated { need: 2, .. }), "{error}");
    assert!(matches!(decode(&[], 0), Err(DecodeError::Truncated { need: 1, .. })));
}

#[test]
fn refusals_name_the_class() {
    for (first, class) in [
        (0xf030_0000, "MIMG"),
        (0xe800_0000, "MTBUF"),
        (0xf800_0000, "EXP"),
        (0xce00_0000, "LDSDIR"),
        (0xcd00_0000, "VINTERP"),
    ] {
        let error = decode(&[first, 0, 0], 0x1234).expect_err(class);
        assert!(
            matches!(error, DecodeError::Unsupported { class: found, .. } if found == class),
            "{error}"
        );
        assert!(
            error.to_string().contains("0x1234") && error.to_string().contains(class),
            "{error}"
        );
    }
}
