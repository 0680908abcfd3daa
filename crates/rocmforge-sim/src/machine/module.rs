//! Loaded code objects.

use crate::machine::vram::{OutOfMemory, Vram};
use object::{Object, ObjectSymbol, SymbolKind};
use rocmforge_amdgcn::{LoadError, Program};
use rocmforge_code_object::{BundleError, CodeObject, KernelMeta, ParseError};
use std::collections::BTreeMap;

/// A loaded code object.
pub(crate) struct Module {
    pub(crate) card: usize,
    pub(crate) program: Program,
    pub(crate) kernels: Vec<KernelMeta>,
    /// Device address and size of each global variable.
    pub(crate) globals: BTreeMap<String, (u64, u64)>,
    pub(crate) base: u64,
    pub(crate) size: u64,
}

/// A kernel of one.
pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) kernel: usize,
}

/// Why a code object was refused.
pub(crate) enum Refused {
    /// Not a code object, or a damaged one.
    Image(ParseError),
    /// A damaged bundle.
    Bundle(BundleError),
    /// For another processor.
    Arch(String),
    /// It contains what the interpreter does not model.
    Program(LoadError),
    /// No room for it.
    Memory,
}

impl From<BundleError> for Refused {
    fn from(error: BundleError) -> Self {
        Refused::Bundle(error)
    }
}

impl From<OutOfMemory> for Refused {
    fn from(_: OutOfMemory) -> Self {
        Refused::Memory
    }
}

impl Module {
    /// Loads a code object onto a card: its image is written to the card's memory.
    pub(crate) fn load(elf: &[u8], card: usize, arch: &str, vram: &mut Vram) -> Result<Self, Refused> {
        let object = CodeObject::parse(elf).map_err(Refused::Image)?;
        if !object.target.runs_on(arch) {
            return Err(Refused::Arch(object.target.arch));
        }
        let size = span(elf);
        let base = vram.allocate_system(size)?;
        let program = match Program::load(elf, base) {
            Ok(program) => program,
            Err(error) => {
                vram.release_system(base, size);
                return Err(Refused::Program(error));
            }
        };
        for segment in program.image() {
            if vram.memory.write(segment.address, &segment.bytes).is_err() {
                vram.release_system(base, size);
                return Err(Refused::Memory);
            }
        }
        Ok(Self {
            card,
            program,
            kernels: object.kernels,
            globals: globals(elf, base, size),
            base,
            size,
        })
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<usize> {
        self.kernels.iter().position(|kernel| kernel.name == name)
    }
}

/// Bytes of address space the segments of an ELF file take.
fn span(elf: &[u8]) -> u64 {
    use object::ObjectSegment;
    let Ok(file) = object::read::elf::ElfFile64::<object::Endianness>::parse(elf) else {
        return 0;
    };
    file.segments()
        .map(|s| s.address().saturating_add(s.size()))
        .max()
        .unwrap_or(0)
}

/// Those that lie inside the image: `size` bytes from `base` on.
fn globals(elf: &[u8], base: u64, size: u64) -> BTreeMap<String, (u64, u64)> {
    let Ok(file) = object::read::elf::ElfFile64::<object::Endianness>::parse(elf) else {
        return BTreeMap::new();
    };
    file.dynamic_symbols()
        .chain(file.symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0 && !symbol.is_undefined())
        .filter(|symbol| {
            symbol
                .address()
                .checked_add(symbol.size())
                .is_some_and(|end| end <= size)
        })
        .filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), base + symbol.address(), symbol.size())))
        .filter(|(name, ..)| !name.ends_with(".kd"))
        .map(|(name, address, size)| (name, (address, size)))
        .collect()
}
