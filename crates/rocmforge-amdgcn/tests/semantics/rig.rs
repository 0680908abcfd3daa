//! A bare kernel whose instructions are all the test's, with input, output and scratch memory at fixed addresses.

use crate::ARCH;
use crate::enc::{LITERAL, code, flat, sop1};
use rocmforge_amdgcn::{
    ByteState, DEVICE_BASE, Dispatch, ExecOptions, GlobalMemory, LoadError, Outcome, Program, Status,
};
use rocmforge_isa::{Arch, Format};

const RIG: &[u8] = match ARCH {
    Arch::Gfx1100 => include_bytes!("rig-gfx1100.co"),
    Arch::Gfx1201 => include_bytes!("rig-gfx1201.co"),
};
/// `s_nop 5`, which fills the kernel.
const HOLE: u32 = 0xbf80_0005;
const ROOM: usize = 4096;

const PROGRAM: u64 = DEVICE_BASE + 0x10_0000;
/// Read by the prologue: a record for each lane.
pub(crate) const INPUT: u64 = DEVICE_BASE + 0x20_0000;
/// Written by the test's instructions: a record for each lane.
pub(crate) const OUTPUT: u64 = DEVICE_BASE + 0x40_0000;
/// For tests of memory instructions.
pub(crate) const DATA: u64 = DEVICE_BASE + 0x80_0000;

/// The rig with these instructions, loaded.
pub(crate) fn load(words: &[u32]) -> Result<Program, LoadError> {
    assert!(words.len() <= ROOM, "{} words", words.len());
    let mut elf = RIG.to_vec();
    let hole: Vec<u8> = std::iter::repeat_n(HOLE.to_le_bytes(), ROOM).flatten().collect();
    let at = elf
        .windows(16)
        .position(|window| window == &hole[..16])
        .expect("the kernel has room");
    assert_eq!(elf[at..at + hole.len()], hole[..]);
    for (index, word) in words.iter().enumerate() {
        elf[at + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
    }
    Program::load(&elf, PROGRAM)
}

/// What a launch starts from.
#[derive(Default)]
pub(crate) struct Launch<'a> {
    pub(crate) words: &'a [u32],
    /// Lanes, a multiple of 32; each wave is a workgroup of its own.
    pub(crate) lanes: usize,
    pub(crate) input: &'a [u8],
    /// Bytes of output.
    pub(crate) output: usize,
    /// Bytes at [`DATA`].
    pub(crate) data: &'a [u8],
    /// Bytes behind them that nobody has written.
    pub(crate) unwritten: u64,
    pub(crate) lds: u32,
    pub(crate) options: ExecOptions,
}

pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    /// Bytes that nobody wrote are 0xcc.
    pub(crate) output: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

pub(crate) const UNWRITTEN: u8 = 0xcc;

impl Launch<'_> {
    /// Runs and expects no fault.
    pub(crate) fn run(&self) -> Done {
        let done = self.launch();
        assert_eq!(
            done.outcome.status,
            Status::Completed,
            "{:?} in {:08x?}",
            done.outcome.faults.first(),
            self.words
        );
        done
    }

    pub(crate) fn launch(&self) -> Done {
        let program = load(self.words).unwrap_or_else(|error| panic!("{error}"));
        let mut memory = GlobalMemory::new(1 << 24).expect("16 MiB of addresses");
        let mut put = |address: u64, bytes: &[u8]| {
            memory.set_state(address, bytes.len() as u64, ByteState::Uninit);
            memory.write(address, bytes).expect("mapped");
        };
        for segment in program.image() {
            put(segment.address, &segment.bytes);
        }
        put(INPUT, self.input);
        put(OUTPUT, &vec![UNWRITTEN; self.output]);
        put(DATA, self.data);
        memory.set_state(DATA + self.data.len() as u64, self.unwritten, ByteState::Uninit);
        let dispatch = Dispatch {
            program: &program,
            kernel: program.kernel("rig").expect("the kernel"),
            grid: [self.lanes as u32 / 32, 1, 1],
            block: [32, 1, 1],
            dynamic_lds: self.lds,
            kernarg: DEVICE_BASE,
            options: self.options.clone(),
        };
        let outcome = rocmforge_amdgcn::execute(&dispatch, &mut memory);
        let mut output = vec![0; self.output];
        memory.read(OUTPUT, &mut output).expect("mapped");
        let mut data = vec![0; self.data.len()];
        memory.read(DATA, &mut data).expect("mapped");
        Done { outcome, output, data }
    }
}

/// Words of a test.
#[derive(Default, Clone)]
pub(crate) struct Asm(pub(crate) Vec<u32>);

impl Asm {
    pub(crate) fn put(&mut self, words: &[u32]) -> &mut Self {
        self.0.extend_from_slice(words);
        self
    }

    /// `s_mov_b32 reg, literal`.
    pub(crate) fn set(&mut self, reg: u32, value: u32) -> &mut Self {
        self.put(&[sop1(code("s_mov_b32", Format::Sop1), reg, LITERAL), value])
    }

    /// A 64-bit scalar pair.
    pub(crate) fn set64(&mut self, reg: u32, value: u64) -> &mut Self {
        self.set(reg, value as u32).set(reg + 1, (value >> 32) as u32)
    }

    /// `v_mov_b32 dst, src`, where `src` is a source field.
    pub(crate) fn mov(&mut self, dst: u32, src: u32) -> &mut Self {
        self.put(&[crate::enc::vop1(1, dst, src)])
    }

    /// Sets `v100` to the lane's offset in the output, `s[2:3]` to the output, and loads `words` registers of the lane's
    /// input record from `v2` on. Clobbers `v101` and `s[0:1]`. Record sizes are powers of two.
    pub(crate) fn prologue(&mut self, words: u32, input_record: u32, output_record: u32) -> &mut Self {
        let shift = |record: u32| crate::enc::int(record.trailing_zeros() as i32);
        let lshl = code("v_lshlrev_b32", Format::Vop2);
        let load = code("global_load_b32", Format::Global);
        assert!(input_record.is_power_of_two() && output_record.is_power_of_two());
        self.put(&[crate::enc::vop2(lshl, 101, shift(input_record), 1)]);
        self.put(&[crate::enc::vop2(lshl, 100, shift(output_record), 1)]);
        self.set64(0, INPUT).set64(2, OUTPUT);
        for word in 0..words {
            self.put(&flat(2, load, 2 + word, Some(101), 0, 0, 4 * word as i32, false));
        }
        self
    }

    /// Stores `words` registers from `reg` on into the lane's output record.
    pub(crate) fn store(&mut self, reg: u32, words: u32, at: u32) -> &mut Self {
        let name = [
            "",
            "global_store_b32",
            "global_store_b64",
            "global_store_b96",
            "global_store_b128",
        ];
        let store = code(name[words as usize], Format::Global);
        self.put(&flat(2, store, 0, Some(100), reg, 2, at as i32, false))
    }
}

/// The word of `bytes` at a byte offset.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
