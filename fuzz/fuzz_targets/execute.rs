//! Any words in the middle of a kernel: it ends, faults or runs out of its budget, and never takes the process along. The
//! first byte picks the instruction set.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use rocmforge_amdgcn::{ByteState, DEVICE_BASE, Dispatch, ExecOptions, GlobalMemory, Program, execute};

/// One for each instruction set.
const TEMPLATES: [&[u8]; 2] = [
    include_bytes!("../../crates/rocmforge-amdgcn/tests/corpus/template.co"),
    include_bytes!("../../crates/rocmforge-amdgcn/tests/corpus/template-gfx1201.co"),
];
/// What a template has in the place of the words: 16 times `s_nop 5`.
const HOLE: [u8; 4] = 0xbf80_0005_u32.to_le_bytes();
const HOLE_BYTES: usize = 64;
const PROGRAM: u64 = DEVICE_BASE + 0x10_0000;
const ARRAYS: u64 = DEVICE_BASE + 0x20_0000;
const KERNARG: u64 = DEVICE_BASE + 0x1000;

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let Some((pick, bytes)) = bytes.split_first() else {
        return Corpus::Reject;
    };
    let mut elf = TEMPLATES[usize::from(*pick) % TEMPLATES.len()].to_vec();
    let at = elf
        .windows(HOLE_BYTES)
        .position(|window| window.chunks(4).all(|word| word == HOLE))
        .expect("the template has a hole");
    let bytes = &bytes[..bytes.len().min(HOLE_BYTES) / 4 * 4];
    elf[at..at + bytes.len()].copy_from_slice(bytes);
    // What the loader refuses is the other targets' business.
    let Ok(program) = Program::load(&elf, PROGRAM) else {
        return Corpus::Reject;
    };
    let mut memory = GlobalMemory::new(1 << 22).expect("4 MiB of addresses");
    let mut put = |address: u64, bytes: &[u8]| {
        memory.set_state(address, bytes.len() as u64, ByteState::Uninit);
        memory.write(address, bytes).expect("mapped");
    };
    for segment in program.image() {
        put(segment.address, &segment.bytes);
    }
    let mut kernarg = [0; 512];
    for array in 0..4 {
        let address = ARRAYS + array * 0x1000;
        put(address, &[array as u8 * 0x3f; 0x1000]);
        kernarg[8 * array as usize..][..8].copy_from_slice(&address.to_le_bytes());
    }
    put(KERNARG, &kernarg);
    for kernel in program.kernels() {
        let dispatch = Dispatch {
            program: &program,
            kernel,
            grid: [2, 1, 1],
            block: [32, 1, 1],
            dynamic_lds: 64,
            kernarg: KERNARG,
            options: ExecOptions {
                instruction_budget: 10_000,
                ..ExecOptions::default()
            },
        };
        let outcome = execute(&dispatch, &mut memory);
        assert!(outcome.instructions <= 10_100);
    }
    Corpus::Keep
});
