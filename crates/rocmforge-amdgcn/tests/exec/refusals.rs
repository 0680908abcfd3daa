//! Kernels that cannot run, beside others of the same object that can.

use crate::card::{Arg, Card, faults};
use object::{Object, ObjectSection, ObjectSymbol};
use rocmforge_amdgcn::{DEVICE_BASE, Program};

/// `s_rfe_b64 s[0:1]`, which only a trap handler may execute.
const RETURN_FROM_TRAP: [u8; 4] = 0xbe80_4a00_u32.to_le_bytes();

/// An object whose function of that name starts with these bytes.
fn patched(elf: &[u8], function: &str, bytes: &[u8]) -> Vec<u8> {
    let file = object::File::parse(elf).expect("an ELF file");
    let symbol = file
        .symbols()
        .find(|symbol| symbol.name() == Ok(function))
        .expect("the function");
    let text = file.section_by_name(".text").expect("code");
    let (offset, _) = text.file_range().expect("in the file");
    let at = (offset + symbol.address() - text.address()) as usize;
    let mut elf = elf.to_vec();
    elf[at..at + bytes.len()].copy_from_slice(bytes);
    elf
}

#[test]
fn one_kernel_is_refused_and_the_others_run() {
    for (bytes, reason) in [(RETURN_FROM_TRAP, "s_rfe_b64"), ([0xff; 4], "is not a")] {
        let elf = patched(faults(), "load_past_end", &bytes);
        let whole = Program::load(faults(), DEVICE_BASE).expect("loads");
        let program = Program::load(&elf, DEVICE_BASE).expect("loads");
        let why = program.refusal("load_past_end").expect("refused").to_string();
        assert!(why.contains(reason), "{why}");
        assert!(program.kernel("load_past_end").is_none());
        assert_eq!(program.refusals().count(), 1);
        assert_eq!(program.kernels().len() + 1, whole.kernels().len());
        assert!(program.refusal("store_past_end").is_none() && program.refusal("nobody").is_none());

        let mut card = Card::new(&elf);
        let (x, y) = (card.upload(&[1.0f32; 64]), card.alloc(256));
        card.run("store_past_end", 1, 64, &[Arg::Ptr(x), Arg::Ptr(y), Arg::U32(63)]);
    }
}

/// Kernels of both wave sizes may lie in one object, and each runs as what it was compiled for.
#[test]
fn kernels_of_both_wave_sizes_load() {
    let elf = patched_descriptor(faults(), "load_past_end");
    let program = Program::load(&elf, DEVICE_BASE).expect("loads");
    assert!(program.kernel("load_past_end").is_some() && program.kernel("store_past_end").is_some());
}

/// The kernel with waves of 64 lanes: its descriptor without `ENABLE_WAVEFRONT_SIZE32`, bit 10 of the 16 bits at 56, and its metadata with
/// that size.
fn patched_descriptor(elf: &[u8], kernel: &str) -> Vec<u8> {
    let file = object::File::parse(elf).expect("an ELF file");
    let name = format!("{kernel}.kd");
    let symbol = file
        .symbols()
        .find(|symbol| symbol.name() == Ok(&name))
        .expect("the descriptor");
    let section = file
        .section_by_index(symbol.section_index().expect("a section"))
        .expect("there");
    let (offset, _) = section.file_range().expect("in the file");
    let at = (offset + symbol.address() - section.address()) as usize + 56;
    let mut elf = elf.to_vec();
    elf[at + 1] &= !0x04;
    let find = |from: usize, text: &[u8]| {
        let found = elf[from..].windows(text.len()).position(|window| window == text);
        from + found.expect("in the metadata") + text.len()
    };
    let symbol = find(
        0,
        &[b".symbol", &[0xa0 | name.len() as u8][..], name.as_bytes()].concat(),
    );
    let size = find(symbol, b".wavefront_size");
    elf[size] = 64;
    elf
}
