//! Runs raw instruction words in a kernel that loads and stores their registers.

use crate::ARCH;
use rocmforge_amdgcn::{ByteState, DEVICE_BASE, Dispatch, ExecOptions, GlobalMemory, Outcome, Program, Status};
use rocmforge_isa::Arch;

/// Operands of one lane. `d` is what the destination holds before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) c: u64,
    pub(crate) d: u64,
}

pub(crate) use rocmforge_test_support::Random;

const EDGES32: [u32; 39] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc0_1234,
    0x3f00_0000,
    0x3fc0_0000,
    0xc020_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x4b00_0001,
    0x4f00_0000,
    0xcf00_0000,
    0x4f80_0000,
    0xffff_ffff,
    0x7fff_ffff,
    31,
    32,
    33,
    0x0000_ff00,
    0x3f80_0001,
    0x477f_f000,
    // Signalling NaN; the edges of half precision, in both halves.
    0x7f80_0001,
    0xffa0_0000,
    0x8000_7c00,
    0x3c00_fc00,
    0x7bff_03ff,
    0xbc00_0400,
    0x7c01_7bff,
    0x0001_8000,
    0x7e00_7c01,
];

const EDGES64: [u64; 18] = [
    0,
    0x8000_0000_0000_0000,
    1,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff8_0000_0000_0000,
    u64::MAX,
    0x7fff_ffff_ffff_ffff,
    0x41df_ffff_ffc0_0000,
    0xc1e0_0000_0000_0000,
    0x41f0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x8000_0000_0000_0001,
];

/// Every pair of edge values, then random ones: 2560 lanes.
pub(crate) fn lanes(wide: bool) -> Vec<Lane> {
    let mut random = Random(0x5eed);
    let mut lanes = edge_lanes(wide);
    while lanes.len() < 2560 {
        let mut lane = Lane {
            a: random.next(),
            b: random.next(),
            c: random.next(),
            d: random.next(),
        };
        // Half of them have small shift counts and near exponents.
        if lanes.len().is_multiple_of(2) {
            lane.b = lane.b & 0x807f_ffff_807f_ffff | 0x3f80_0000_3f80_0000;
            lane.c &= 0x3f;
        }
        lanes.push(lane);
    }
    lanes
}

/// Every pair of edge values, in whole waves.
pub(crate) fn edge_lanes(wide: bool) -> Vec<Lane> {
    let edge = |at: usize| match wide {
        true => EDGES64[at % EDGES64.len()],
        // The high halves of 32-bit operands are noise that nothing may read.
        false => u64::from(EDGES32[at % EDGES32.len()]) | 0xdead_beef_0000_0000,
    };
    let count = if wide { EDGES64.len() } else { EDGES32.len() };
    (0..(count * count).next_multiple_of(32))
        .map(|at| Lane {
            a: edge(at),
            b: edge(at / count),
            c: edge(at * 7 + 3),
            d: edge(at * 11 + 5),
        })
        .collect()
}

const TEMPLATE: &[u8] = match ARCH {
    Arch::Gfx1100 => include_bytes!("../corpus/template.co"),
    Arch::Gfx1201 => include_bytes!("../corpus/template-gfx1201.co"),
};
/// What the template has in the place of the tested instructions: 16 times `s_nop 5`.
const HOLE: u32 = 0xbf80_0005;

fn patched(words: &[u32]) -> Vec<u8> {
    assert!(words.len() <= 16);
    let mut elf = TEMPLATE.to_vec();
    let hole: Vec<u8> = std::iter::repeat_n(HOLE.to_le_bytes(), 16).flatten().collect();
    let at = elf
        .windows(64)
        .position(|window| window == &hole[..])
        .expect("the template has a hole");
    for (index, word) in words.iter().enumerate() {
        elf[at + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
    }
    elf
}

/// Runs a kernel of the template over the lanes and gives what it stored.
pub(crate) fn run(kernel: &str, words: &[u32], lanes: &[Lane]) -> Vec<u64> {
    let (outcome, stored) = launch(kernel, words, lanes);
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults.first());
    stored
}

/// The same for words that may fault.
pub(crate) fn launch(kernel: &str, words: &[u32], lanes: &[Lane]) -> (Outcome, Vec<u64>) {
    launch_object(&patched(words), kernel, lanes)
}

/// Runs a kernel of an object over the lanes and gives what it stored.
pub(crate) fn execute(elf: &[u8], kernel: &str, lanes: &[Lane]) -> Vec<u64> {
    let (outcome, stored) = launch_object(elf, kernel, lanes);
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults.first());
    stored
}

fn launch_object(elf: &[u8], kernel: &str, lanes: &[Lane]) -> (Outcome, Vec<u64>) {
    let base = DEVICE_BASE + 0x10_0000;
    let program = Program::load(elf, base).unwrap_or_else(|error| panic!("{error}"));
    let mut memory = GlobalMemory::new(1 << 24).expect("16 MiB of addresses");
    let mut put = |address: u64, bytes: &[u8]| {
        memory.set_state(address, bytes.len() as u64, ByteState::Uninit);
        memory.write(address, bytes).expect("mapped");
    };
    for segment in program.image() {
        put(segment.address, &segment.bytes);
    }
    let arrays = DEVICE_BASE + 0x20_0000;
    let size = 8 * lanes.len() as u64;
    let fields: [fn(&Lane) -> u64; 4] = [|l| l.a, |l| l.b, |l| l.c, |l| l.d];
    let mut kernarg = vec![0; 512];
    for (index, field) in fields.into_iter().enumerate() {
        let address = arrays + index as u64 * size;
        let bytes: Vec<u8> = lanes.iter().flat_map(|lane| field(lane).to_le_bytes()).collect();
        put(address, &bytes);
        kernarg[8 * index..][..8].copy_from_slice(&address.to_le_bytes());
    }
    put(DEVICE_BASE + 0x1000, &kernarg);
    let dispatch = Dispatch {
        program: &program,
        kernel: program.kernel(kernel).expect("a kernel of the object"),
        grid: [lanes.len() as u32 / 32, 1, 1],
        block: [32, 1, 1],
        dynamic_lds: 0,
        kernarg: DEVICE_BASE + 0x1000,
        options: ExecOptions::default(),
    };
    let outcome = rocmforge_amdgcn::execute(&dispatch, &mut memory);
    let mut bytes = vec![0; size as usize];
    memory.read(arrays + 3 * size, &mut bytes).expect("written");
    let stored = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    (outcome, stored.collect())
}

/// `v8 = op(v2, v4, v6)` as VOP3, with as many sources as `sources`.
pub(crate) fn vop3(code: u32, sources: usize) -> [u32; 2] {
    let fields = [0x102, 0x104 << 9, 0x106 << 18];
    [0xd400_0008 | code << 16, fields[..sources].iter().sum()]
}
