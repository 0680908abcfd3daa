//! Source positions from a code object's line tables.

use crate::random::Random;
use object::{Object as _, ObjectSection as _};
use rocmforge_amdgcn::{DebugInfo, Op, decode};

fn object() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/lines.co")).expect("committed")
}

/// ELF address of the kernel's only global store.
fn store(elf: &[u8]) -> u64 {
    let file = object::File::parse(elf).expect("an ELF file");
    let section = file.section_by_name(".text").expect("code");
    let data = section.data().expect("readable");
    let words: Vec<u32> = data
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let mut at = 0;
    loop {
        let pc = section.address() + 4 * at as u64;
        let inst = decode(&words[at..], pc).expect("code");
        if inst.op == Op::GlobalStoreB32 {
            return pc;
        }
        at += usize::from(inst.size / 4);
    }
}

#[test]
fn a_store_inlined_into_a_kernel_has_both_positions() {
    let elf = object();
    let frames = DebugInfo::from_elf(&elf).frames(store(&elf));
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
    let pc = store(&elf);
    let mut random = Random(3);
    println!("seed 3");
    for _ in 0..3000 {
        let mut broken = elf.clone();
        for _ in 0..1 + random.below(16) {
            let at = random.below(broken.len() as u32) as usize;
            broken[at] = random.next() as u8;
        }
        broken.truncate(broken.len() - random.below(2) as usize * random.below(512) as usize);
        let _ = DebugInfo::from_elf(&broken).frames(pc);
    }
}
