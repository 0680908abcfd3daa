//! Any words, as instructions of each architecture: one that prints and whose size fits what was given, or a refusal that
//! prints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocmforge_isa::{Arch, decode_for};

fuzz_target!(|bytes: &[u8]| {
    let (words, _) = bytes.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    for arch in [Arch::Gfx1100, Arch::Gfx1201] {
        let mut at = 0;
        while at < words.len() {
            match decode_for(arch, &words[at..], 4 * at as u64) {
                Ok(inst) => {
                    let size = usize::from(inst.size) / 4;
                    assert!(size > 0 && at + size <= words.len());
                    assert!(!inst.to_string().is_empty());
                    let _ = inst.branch_target(4 * at as u64);
                    at += size;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    at += 1;
                }
            }
        }
    }
});
