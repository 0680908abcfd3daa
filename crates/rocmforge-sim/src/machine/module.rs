//! Loaded code objects.

use crate::machine::vram::{OutOfMemory, Vram};
use object::{Object, ObjectSymbol, SymbolKind};
use rocmforge_amdgcn::{LoadError, Program};
use rocmforge_code_object::{CodeObject, KernelMeta, ParseError};
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
    /// For another processor.
    Arch(String),
    /// It contains what the interpreter does not model.
    Program(LoadError),
    /// No room for it.
    Memory,
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

/// Size of the ELF file at `image`, of which only the address is known, as HIP finds it: from its own tables. None if
/// it does not start like one.
///
/// # Safety
/// `image` points at an ELF file, or at least at bytes up to where it stops looking like one.
pub(crate) unsafe fn elf_size(image: *const u8) -> Option<usize> {
    for (at, expected) in b"\x7fELF\x02\x01".iter().enumerate() {
        // SAFETY: every byte before was as expected, so the caller's promise covers this one.
        if unsafe { image.wrapping_add(at).read() } != *expected {
            return None;
        }
    }
    // SAFETY: it starts like an ELF file of 64 bits, so its header of 64 bytes is there.
    let header = unsafe { std::slice::from_raw_parts(image, 64) };
    let [programs, sections] = [(32, 54), (40, 58)].map(|(offset, size)| {
        let entry = usize::from(u16_at(header, size));
        let count = usize::from(u16_at(header, size + 2));
        usize::try_from(u64_at(header, offset))
            .ok()
            .and_then(|start| Some((start, entry, start.checked_add(entry * count)?)))
    });
    let (programs, sections) = (programs?, sections?);
    let tables = programs.2.max(sections.2).max(64);
    if tables > MAX_IMAGE {
        return None;
    }
    // SAFETY: the header says that its tables end there.
    let bytes = unsafe { std::slice::from_raw_parts(image, tables) };
    let mut end = tables as u64;
    // File offset and size of what the entries describe; a section without bytes in the file has type 8.
    for (table, offset, size, skip) in [(programs, 8, 32, None), (sections, 24, 32, Some(8))] {
        let (start, entry, stop) = table;
        for at in (start..stop).step_by(entry.max(1)).filter(|_| entry >= 40) {
            if skip.is_some_and(|kind| u32::from(u16_at(bytes, at + 4)) == kind) {
                continue;
            }
            end = end.max(u64_at(bytes, at + offset).saturating_add(u64_at(bytes, at + size)));
        }
    }
    usize::try_from(end).ok().filter(|end| *end <= MAX_IMAGE)
}

/// Larger images are taken for damaged.
const MAX_IMAGE: usize = 1 << 30;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    if let Some(found) = bytes.get(at..at + 8) {
        value.copy_from_slice(found);
    }
    u64::from_le_bytes(value)
}
