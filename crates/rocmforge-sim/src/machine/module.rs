//! Loaded code objects.

use crate::machine::vram::{OutOfMemory, Vram};
use object::{Object, ObjectSymbol, SymbolKind};
use rocmforge_amdgcn::{Arch, LoadError, Program};
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

/// Code that a program has, and that does not run on the card it was loaded for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignCode {
    /// The card's processor.
    pub card: String,
    /// What the code is for.
    pub targets: Vec<String>,
    /// Processors that are simulated and would run it.
    pub would_run: Vec<String>,
}

impl ForeignCode {
    /// Code for `targets`, of which a processor runs what `runs` says.
    pub(crate) fn new(card: &str, targets: Vec<String>, runs: impl Fn(&str) -> bool) -> Self {
        let simulated = Arch::ALL.iter().map(|arch| arch.name()).filter(|arch| runs(arch));
        Self {
            card: card.to_owned(),
            targets,
            would_run: simulated.map(str::to_owned).collect(),
        }
    }
}

impl std::fmt::Display for ForeignCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no code for this card, which is {}", self.card)?;
        match &self.targets[..] {
            [] => f.write_str(", and none for another card of AMD's"),
            targets => write!(f, "; there is code for {}", targets.join(", ")),
        }
    }
}

/// Why a code object was refused.
pub(crate) enum Refused {
    /// Not a code object, or a damaged one.
    Image(ParseError),
    /// A damaged bundle.
    Bundle(BundleError),
    /// For other processors.
    Arch(ForeignCode),
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
            let targets = vec![object.target.arch.clone()];
            let foreign = ForeignCode::new(arch, targets, |arch| object.target.runs_on(arch));
            return Err(Refused::Arch(foreign));
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
