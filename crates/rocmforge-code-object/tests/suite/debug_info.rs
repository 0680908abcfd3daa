//! Source positions from a code object's line tables.
#![allow(clippy::print_stdout)] // seeds belong in a test's output

use rocmforge_code_object::DebugInfo;

/// The kernel of `lines.hip`, which is in the same folder.
fn object() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lines.co")).expect("committed")
}

/// ELF address of the kernel's only store, as `llvm-objdump -d` shows it.
const STORE: u64 = 0x1624;

#[test]
fn a_store_inlined_into_a_kernel_has_both_positions() {
    let elf = object();
    let frames = DebugInfo::from_elf(&elf).frames(STORE);
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert!(frames[0].function.contains("store"), "{frames:?}");
    assert!(frames[0].file.ends_with("lines.hip"), "{frames:?}");
    assert_eq!((frames[0].line, frames[0].column), (3, 42));
    assert_eq!(
        (frames[1].function.as_str(), frames[1].line, frames[1].column),
        ("lines", 7, 5)
    );
}

#[test]
fn addresses_outside_the_code_have_no_position() {
    let elf = object();
    let debug = DebugInfo::from_elf(&elf);
    for pc in [0, 1, u64::MAX, u64::MAX - 3, 1 << 47] {
        assert!(debug.frames(pc).is_empty(), "{pc:#x}");
    }
    assert!(DebugInfo::from_elf(b"not an ELF file").frames(0).is_empty());
    assert!(DebugInfo::default().frames(0).is_empty());
}

#[test]
fn broken_debug_sections_do_not_panic() {
    let elf = object();
    let mut state = 3u64;
    println!("seed {state}");
    // Knuth's linear congruential generator.
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..3000 {
        let mut broken = elf.clone();
        for _ in 0..1 + random(16) {
            let at = random(broken.len());
            broken[at] = random(256) as u8;
        }
        broken.truncate(broken.len() - random(2) * random(512));
        let _ = DebugInfo::from_elf(&broken).frames(STORE);
    }
}
