//! A card with just enough of a driver to launch kernels.

use rocmforge_amdgcn::{
    ByteState, DEVICE_BASE, Dispatch, ExecOptions, Geometry, GlobalMemory, Outcome, Program, Status, execute,
    kernarg_bytes,
};
use rocmforge_code_object::CodeObject;
use rocmforge_isa::Arch;

/// Names the instruction set of the card under test; see [`crate::second_card`].
pub(crate) const ARCH_VARIABLE: &str = "ROCMFORGE_TEST_ARCH";

pub(crate) fn arch() -> Arch {
    std::env::var(ARCH_VARIABLE).map_or(Arch::Gfx1100, |name| name.parse().expect("an instruction set"))
}

/// Lanes of the waves under test.
pub(crate) const LANES_VARIABLE: &str = "ROCMFORGE_TEST_LANES";

pub(crate) fn lanes() -> u32 {
    std::env::var(LANES_VARIABLE).map_or(32, |lanes| lanes.parse().expect("32 or 64"))
}

pub(crate) struct Card {
    pub(crate) memory: GlobalMemory,
    pub(crate) options: ExecOptions,
    program: Program,
    object: CodeObject,
    next: u64,
}

/// An argument: a device address or a number.
pub(crate) enum Arg {
    Ptr(u64),
    U32(u32),
}

impl Card {
    pub(crate) fn new(elf: &[u8]) -> Self {
        let mut memory = GlobalMemory::new(1 << 30).expect("address space");
        let base = DEVICE_BASE + 0x10_0000;
        let program = Program::load(elf, base).expect("loads");
        for segment in program.image() {
            memory.set_state(segment.address, segment.bytes.len() as u64, ByteState::Uninit);
            memory.write(segment.address, &segment.bytes).expect("image");
        }
        let object = CodeObject::parse(elf).expect("parses");
        Self {
            memory,
            options: ExecOptions::default(),
            program,
            object,
            next: base + 0x100_0000,
        }
    }

    /// Memory nobody has written.
    pub(crate) fn alloc(&mut self, bytes: usize) -> u64 {
        let address = self.next;
        self.memory.set_state(address, bytes as u64, ByteState::Uninit);
        self.next += (bytes as u64).next_multiple_of(256) + 256;
        address
    }

    pub(crate) fn upload<T: bytemuck::Pod>(&mut self, data: &[T]) -> u64 {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let address = self.alloc(bytes.len());
        self.memory.write(address, bytes).expect("inside");
        address
    }

    pub(crate) fn download<T: bytemuck::Pod>(&self, address: u64, n: usize) -> Vec<T> {
        let mut data = vec![T::zeroed(); n];
        self.memory
            .read(address, bytemuck::cast_slice_mut(&mut data))
            .expect("every element is written");
        data
    }

    pub(crate) fn launch(&mut self, kernel: &str, grid: [u32; 3], block: [u32; 3], lds: u32, args: &[Arg]) -> Outcome {
        let meta = self.object.kernel(kernel).expect("kernel");
        let bytes: Vec<Vec<u8>> = args
            .iter()
            .map(|arg| match arg {
                Arg::Ptr(p) => p.to_le_bytes().to_vec(),
                Arg::U32(n) => n.to_le_bytes().to_vec(),
            })
            .collect();
        let explicit: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let geometry = Geometry {
            grid,
            block,
            dynamic_lds: lds,
        };
        let segment = kernarg_bytes(meta, &explicit, &geometry).expect("arguments");
        let kernarg = self.upload(&segment);
        let dispatch = Dispatch {
            program: &self.program,
            kernel: self
                .program
                .kernel(kernel)
                .unwrap_or_else(|| panic!("{:?}", self.program.refusal(kernel))),
            grid,
            block,
            dynamic_lds: lds,
            kernarg,
            options: self.options.clone(),
        };
        execute(&dispatch, &mut self.memory)
    }

    /// Launches and expects nothing wrong.
    #[track_caller]
    pub(crate) fn run(&mut self, kernel: &str, grid: u32, block: u32, args: &[Arg]) -> Outcome {
        let outcome = self.launch(kernel, [grid, 1, 1], [block, 1, 1], 0, args);
        for fault in &outcome.faults {
            assert_eq!(fault.to_string(), "", "{kernel}");
        }
        assert_eq!(outcome.status, Status::Completed, "{kernel}");
        outcome
    }
}

/// The object of a set of fixtures for the card and the waves under test.
macro_rules! fixture {
    ($name:ident $file:literal) => {
        pub(crate) fn $name() -> &'static [u8] {
            match (arch(), lanes()) {
                (Arch::Gfx1100, 32) => include_bytes!(concat!("../fixtures/", $file, ".co")),
                (Arch::Gfx1201, 32) => include_bytes!(concat!("../fixtures/", $file, "-gfx1201.co")),
                (Arch::Gfx1100, _) => include_bytes!(concat!("../fixtures/", $file, "-gfx1100-wave64.co")),
                (Arch::Gfx1201, _) => include_bytes!(concat!("../fixtures/", $file, "-gfx1201-wave64.co")),
            }
        }
    };
}

fixture! { kernels "kernels" }
fixture! { faults "faults" }
fixture! { racy "races" }
fixture! { lanes_of_waves "lanes" }

/// Numbers of a fixed seed.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 33
    }

    pub(crate) fn u32s(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| (self.next() >> 16) as u32).collect()
    }

    /// Mostly in -100 to 100, some of any bits.
    pub(crate) fn f32s(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|k| {
                let bits = (self.next() >> 16) as u32;
                if k % 8 == 7 {
                    f32::from_bits(bits)
                } else {
                    (bits as i32 as f32) / 21_474_836.0
                }
            })
            .collect()
    }
}
