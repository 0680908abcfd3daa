//! A code object, loaded for one device address and lowered for execution.

use crate::calls::Calls;
use crate::costs::Costs;
use crate::exec::code::Code;
use crate::exec::lower::functions::{Function, WaveLanes};
use crate::exec::lower::library::Allocator;
use crate::exec::number::mode::Mode;
use crate::exec::state::variables::{Variable, Variables};
use crate::kernel::{self, Kernel};
use crate::load_error::LoadError;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationFlags, SymbolKind};
use rocmforge_code_object::{CodeObject, KernelMeta};
use rocmforge_code_object::{DebugInfo, Frame};
use rocmforge_isa::Arch;
use rocmforge_isa::{Inst, decode_for};

/// Bytes that belong in device memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Device address of its first byte.
    pub address: u64,
    /// Its bytes, relocated; the part that no file bytes fill is zero.
    pub bytes: Vec<u8>,
}

/// A loaded code object: its image, its kernels and their lowered instructions.
pub struct Program {
    arch: Arch,
    base: u64,
    segments: Vec<Segment>,
    kernels: Vec<Kernel>,
    /// Kernels that cannot run, by name.
    refused: Vec<(String, Refusal)>,
    pub(crate) code: Code,
    debug: DebugInfo,
    /// What launches of its kernels took.
    pub(crate) costs: Costs,
}

/// Why a kernel cannot run.
enum Refusal {
    /// It needs something that is not there.
    Need(LoadError),
    /// Its code, at this ELF address, does.
    Code(u64),
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("base", &self.base)
            .field("kernels", &self.kernels)
            .finish_non_exhaustive()
    }
}

/// Relocation types of LLVM's AMDGPU usage guide: symbol plus addend, and load address plus addend.
const R_AMDGPU_ABS64: u32 = 3;
const R_AMDGPU_RELATIVE64: u32 = 13;

/// Span of addresses above which an ELF file is taken for damaged.
const MAX_SPAN: u64 = 1 << 30;

impl Program {
    /// Loads a code object (the raw ELF file) for device address `base` (4 KiB aligned) and lowers its code.
    ///
    /// A kernel that contains or needs something that is not modelled cannot run, and [`refusal`](Self::refusal) says why;
    /// the others can. A function that cannot run is a fault where one of them calls it.
    ///
    /// # Errors
    /// [`LoadError`]: not a gfx1100 or gfx1201 code object, or damaged.
    pub fn load(elf: &[u8], base: u64) -> Result<Self, LoadError> {
        let object = CodeObject::parse(elf)?;
        let Some(arch) = Arch::of(&object.target) else {
            return Err(LoadError::Arch {
                arch: object.target.arch,
            });
        };
        let file = ElfFile64::<Endianness>::parse(elf)?;
        let mut segments = segments(&file, base)?;
        relocate(&file, base, &mut segments)?;
        let (mut kernels, mut refused) = (Vec::new(), Vec::new());
        for meta in &object.kernels {
            match kernel::kernel(arch, meta) {
                Ok(kernel) => kernels.push(kernel),
                Err(what) => {
                    let kernel = meta.name.clone();
                    refused.push((kernel.clone(), Refusal::Need(LoadError::Kernel { kernel, what })));
                }
            }
        }
        let debug = DebugInfo::from_elf(elf);
        let modal = kernels.iter().any(|kernel| kernel.setup.mode != Mode::DEFAULT.0);
        let code = lower_text(arch, &file, base, &debug, modal, &object.kernels)?;
        for kernel in kernels.extract_if(.., |kernel| code.index_of(kernel.entry).is_none()) {
            if code.refusal(kernel.entry).is_none() {
                return Err(LoadError::Layout(format!(
                    "kernel `{}` does not start at a function",
                    kernel.name
                )));
            }
            refused.push((kernel.name, Refusal::Code(kernel.entry)));
        }
        Ok(Self {
            arch,
            base,
            segments,
            kernels,
            refused,
            code,
            debug,
            costs: Costs::default(),
        })
    }

    /// The instruction set it was compiled for.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Device address it was loaded for.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of device memory from the base on that the image takes.
    pub fn size(&self) -> u64 {
        self.segments
            .iter()
            .map(|s| s.address - self.base + s.bytes.len() as u64)
            .max()
            .unwrap_or(0)
    }

    /// What has to be written to device memory before a launch: kernels read constants relative to their pc.
    pub fn image(&self) -> &[Segment] {
        &self.segments
    }

    /// The kernel of that name, if it can run.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// All kernels that can run.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// Why the kernel of that name cannot run: the first instruction that is not modelled, with its source line, or what
    /// else it needs. `None` if it can, or if there is none of that name.
    pub fn refusal(&self, kernel: &str) -> Option<&LoadError> {
        self.refusals().find(|(name, _)| *name == kernel).map(|(_, why)| why)
    }

    /// All kernels that cannot run, and why.
    pub fn refusals(&self) -> impl Iterator<Item = (&str, &LoadError)> {
        self.refused.iter().filter_map(|(name, why)| {
            let why = match why {
                Refusal::Need(why) => why,
                Refusal::Code(entry) => self.code.refusal(*entry)?,
            };
            Some((name.as_str(), why))
        })
    }

    /// The instruction at an offset in `.text`.
    pub(crate) fn instruction(&self, at: usize) -> Option<Inst> {
        let address = self.code.device + at as u64;
        let inside =
            |segment: &&Segment| (segment.address..segment.address + segment.bytes.len() as u64).contains(&address);
        let segment = self.segments.iter().find(inside)?;
        let bytes = &segment.bytes[(address - segment.address) as usize..];
        let words: Vec<u32> = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .take(5)
            .map(|w| u32::from_le_bytes(*w))
            .collect();
        decode_for(self.arch, &words, self.code.start + at as u64).ok()
    }

    /// Every instruction of its code with its address as `llvm-objdump` prints it, except for those that do nothing here (waits, hints).
    pub fn instructions(&self) -> impl Iterator<Item = (u64, Inst)> + '_ {
        let starts = self.code.starts();
        starts.filter_map(|(at, _)| Some((self.code.start + at as u64, self.instruction(at)?)))
    }

    /// Source position of an instruction, innermost inlined function first; empty without line tables.
    pub fn frames(&self, pc: u64) -> Vec<Frame> {
        self.debug.frames(pc)
    }

    /// Whether it has AMD's device `malloc`, whose blocks are reported to an [`Attendant`](crate::Attendant).
    pub fn allocates(&self) -> bool {
        self.code.heap.allocates()
    }

    /// The same, and behind it the calls that lead there. `calls` are those that a wave was in there, or in a function that it called from
    /// there.
    pub(crate) fn stack(&self, pc: u64, calls: &Calls) -> Vec<Frame> {
        let mut frames = self.frames(pc);
        let mut function = self.debug.function(pc);
        for call in calls.innermost_first() {
            if function.is_some() && function == self.debug.function(call.target) {
                frames.extend(self.frames(call.pc));
                function = self.debug.function(call.pc);
            }
        }
        frames
    }
}

fn segments(file: &ElfFile64<'_, Endianness>, base: u64) -> Result<Vec<Segment>, LoadError> {
    let mut out = Vec::new();
    let mut total = 0u64;
    for segment in file.segments() {
        let end = segment
            .address()
            .checked_add(segment.size())
            .filter(|end| *end <= MAX_SPAN);
        total = total.saturating_add(segment.size());
        if end.is_none() || total > MAX_SPAN {
            return Err(LoadError::Layout(format!(
                "segment at {:#x} of {:#x} B",
                segment.address(),
                segment.size()
            )));
        }
        let mut bytes = segment.data()?.to_vec();
        bytes.resize(segment.size() as usize, 0);
        out.push(Segment {
            address: base + segment.address(),
            bytes,
        });
    }
    Ok(out)
}

fn relocate(file: &ElfFile64<'_, Endianness>, base: u64, segments: &mut [Segment]) -> Result<(), LoadError> {
    let dynamic = file.dynamic_symbol_table();
    for (offset, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let RelocationFlags::Elf { r_type } = relocation.flags() else {
            continue;
        };
        let symbol = match relocation.target() {
            object::RelocationTarget::Symbol(index) => {
                use object::ObjectSymbolTable;
                let table = dynamic
                    .as_ref()
                    .ok_or_else(|| LoadError::Layout("relocation without symbols".into()))?;
                let symbol = table.symbol_by_index(index)?;
                if symbol.is_undefined() {
                    let name = symbol.name().unwrap_or("?").to_owned();
                    return Err(LoadError::Layout(format!(
                        "symbol `{name}` is not defined in the code object"
                    )));
                }
                symbol.address()
            }
            _ => 0,
        };
        let value = match r_type.0 {
            R_AMDGPU_RELATIVE64 => base.wrapping_add_signed(relocation.addend()),
            R_AMDGPU_ABS64 => base.wrapping_add(symbol).wrapping_add_signed(relocation.addend()),
            other => return Err(LoadError::Layout(format!("relocation type {other} at {offset:#x}"))),
        };
        let address = base.wrapping_add(offset);
        let slot = segments.iter_mut().find_map(|s| {
            let at = usize::try_from(address.checked_sub(s.address)?).ok()?;
            s.bytes.get_mut(at..at.checked_add(8)?)
        });
        slot.ok_or_else(|| LoadError::Layout(format!("relocation at {offset:#x} is outside every segment")))?
            .copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

/// Lanes of the waves that run the function at an ELF address: its descriptor's if it is a kernel, else those of all kernels.
fn lanes(kernels: &[KernelMeta], entry: u64) -> WaveLanes {
    let of = |kernel: &KernelMeta| {
        let code = kernel.code.as_ref()?;
        Some((code.entry_address, !code.descriptor.wavefront_size32()))
    };
    let known: Vec<(u64, bool)> = kernels.iter().filter_map(of).collect();
    let own = known.iter().find(|(address, _)| *address == entry);
    let mut wide = known.iter().map(|(_, wide)| *wide);
    match own {
        Some((_, true)) => WaveLanes::Of64,
        Some((_, false)) => WaveLanes::Of32,
        None if !known.is_empty() && wide.clone().all(|wide| wide) => WaveLanes::Of64,
        None if wide.any(|wide| wide) => WaveLanes::Unknown,
        None => WaveLanes::Of32,
    }
}

/// Whether nothing can run there: a code object that has only variables contains the padding all the same.
fn is_padding(words: &[u32]) -> bool {
    /// `s_code_end`, which the compiler writes behind the last function.
    const CODE_END: u32 = 0xbf9f_0000;
    words.iter().all(|word| *word == CODE_END)
}

fn lower_text(
    arch: Arch,
    file: &ElfFile64<'_, Endianness>,
    base: u64,
    debug: &DebugInfo,
    modal: bool,
    kernels: &[KernelMeta],
) -> Result<Code, LoadError> {
    let text = file
        .section_by_name(".text")
        .ok_or_else(|| LoadError::Layout("no .text section".into()))?;
    let data = text.data()?;
    let start = text.address();
    let end = start
        .checked_add(data.len() as u64)
        .filter(|end| *end <= MAX_SPAN)
        .ok_or_else(|| LoadError::Layout(format!(".text at {start:#x} of {:#x} B", data.len())))?;
    let words: Vec<u32> = data.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)).collect();
    let mut functions: Vec<(u64, u64, Option<Allocator>)> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0 && s.section_index() == Some(text.index()))
        .map(|s| {
            let allocator = s.name().ok().and_then(Allocator::of);
            (s.address(), s.address().saturating_add(s.size()), allocator)
        })
        .collect();
    functions.sort_unstable();
    functions.dedup_by_key(|f| f.0);
    for &(from, to, _) in &functions {
        if from < start || to > end || from % 4 != 0 {
            return Err(LoadError::Layout(format!(
                "function {from:#x}..{to:#x} is outside .text"
            )));
        }
    }
    // Overlapping functions would be lowered over and over.
    if let Some(pair) = functions.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        return Err(LoadError::Layout(format!(
            "functions at {:#x} and {:#x} overlap",
            pair[0].0, pair[1].0
        )));
    }
    if functions.is_empty() && !is_padding(&words) {
        return Err(LoadError::Layout(
            "no function symbols; do not strip the code object".into(),
        ));
    }
    let functions: Vec<Function> = functions
        .into_iter()
        .map(|(from, to, allocator)| Function {
            addresses: from..to,
            lanes: lanes(kernels, from),
            allocator,
        })
        .collect();
    let variables = variables(file, base);
    Code::lower(arch, &words, start, base, &functions, &variables, debug, modal)
}

/// The variables of a code object that is loaded at `base`.
fn variables(file: &ElfFile64<'_, Endianness>, base: u64) -> Variables {
    let at = |from: u64, size: u64| base.wrapping_add(from)..base.wrapping_add(from).saturating_add(size);
    let end = file
        .segments()
        .map(|segment| segment.address().saturating_add(segment.size()))
        .max();
    let all = file.symbols().chain(file.dynamic_symbols());
    let all = all.filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.is_definition() && symbol.size() > 0);
    let mut all: Vec<Variable> = all
        .map(|symbol| Variable {
            addresses: at(symbol.address(), symbol.size()),
            name: symbol.name().unwrap_or("?").to_owned(),
        })
        .collect();
    // Code may walk through a section whose name is a name in C from one variable to the next: linkers define symbols for its ends.
    let walked = |name: &str| name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    all.extend(
        file.sections()
            .filter(|section| section.name().is_ok_and(walked))
            .map(|section| Variable {
                addresses: at(section.address(), section.size()),
                name: section.name().unwrap_or("?").to_owned(),
            }),
    );
    Variables::new(all, at(0, end.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_code_is_padding() {
        assert!(is_padding(&[]));
        assert!(is_padding(&[0xbf9f_0000; 64]));
        // s_endpgm
        assert!(!is_padding(&[0xbfb0_0000, 0xbf9f_0000]));
    }
}
