//! The ELF file around the kernels.

use crate::error::limit;
use crate::{Container, KernelCode, KernelDescriptor, ParseError};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader, Sym};
use std::collections::HashMap;

type Header = FileHeader64<LE>;
type Segment = ProgramHeader64<LE>;

/// `e_ident[EI_OSABI]` of HSA code objects.
const ELFOSABI_AMDGPU_HSA: u8 = 64;
/// The metadata note's type; its owner is `AMDGPU`.
const NT_AMDGPU_METADATA: u32 = 32;
/// Most program headers. The linker makes about ten.
const MAX_SEGMENTS: usize = 256;
/// How many times the size of the file all symbol names together may be. Names may share their ends, so the sum can exceed
/// the file a little; a file made to be slow has every symbol name most of it.
const MAX_NAMES: usize = 8;

/// An ELF file whose header is that of a linked AMD code object.
pub(crate) struct AmdElf<'a> {
    bytes: &'a [u8],
    header: &'a Header,
    segments: &'a [Segment],
    version: u8,
}

fn broken(error: object::read::Error) -> ParseError {
    ParseError::Elf(error.to_string())
}

impl<'a> AmdElf<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        if let Some(container) = Container::of(bytes) {
            return Err(ParseError::Container(container));
        }
        let Some(ident) = bytes.get(..20).filter(|ident| ident.starts_with(b"\x7fELF")) else {
            if bytes.starts_with(b"\x7fELF") {
                return Err(ParseError::Elf(format!("truncated after {} bytes", bytes.len())));
            }
            return Err(ParseError::NotElf {
                start: bytes.iter().copied().take(8).collect(),
                len: bytes.len(),
            });
        };
        let (class, data, os_abi, abi_version) = (ident[4], ident[5], ident[7], ident[8]);
        let machine = u16::from_le_bytes([ident[18], ident[19]]);
        match machine {
            machine if machine == elf::EM_AMDGPU.0 => {}
            machine if machine == elf::EM_CUDA.0 => return Err(ParseError::Container(Container::Cubin)),
            // x86-64, AArch64, RISC-V, POWER64: where ROCm programs run.
            62 | 183 | 243 | 21 => return Err(ParseError::Container(Container::HostElf)),
            other => {
                return Err(ParseError::NotAmdGpu(format!(
                    "its machine is {other}, AMD GPUs are 224"
                )));
            }
        }
        if (class, data) != (2, 1) {
            return Err(ParseError::NotAmdGpu("it is not 64-bit little-endian".to_owned()));
        }
        if os_abi != ELFOSABI_AMDGPU_HSA {
            return Err(ParseError::NotAmdGpu(format!(
                "its OS ABI is {os_abi}, ROCm's is {ELFOSABI_AMDGPU_HSA} (65 is PAL, 66 is Mesa)"
            )));
        }
        // ABI versions 0 to 4 are code object versions 2 to 6.
        let version = abi_version.saturating_add(2);
        if !(4..=6).contains(&version) {
            return Err(ParseError::Version(version));
        }
        let header = Header::parse(bytes).map_err(broken)?;
        if header.e_type(LE) != elf::ET_DYN {
            return Err(ParseError::NotAmdGpu(
                "it is not linked (its type is not ET_DYN): link it with lld".to_owned(),
            ));
        }
        let segments = header.program_headers(LE, bytes).map_err(broken)?;
        limit("program headers", segments.len(), MAX_SEGMENTS)?;
        let elf = Self {
            bytes,
            header,
            segments,
            version,
        };
        elf.check_extent()?;
        elf.check_segments()?;
        Ok(elf)
    }

    pub(crate) fn code_object_version(&self) -> u8 {
        self.version
    }

    pub(crate) fn flags(&self) -> u32 {
        self.header.e_flags(LE).0
    }

    fn loads(&self) -> impl Iterator<Item = &'a Segment> {
        self.segments
            .iter()
            .filter(|segment| segment.p_type(LE) == elf::PT_LOAD)
    }

    /// Everything the tables point at lies within the file. Who gets only the address of an image (`hipModuleLoadData`)
    /// takes its length from these tables: it would read past the end of one that is cut off.
    fn check_extent(&self) -> Result<(), ParseError> {
        let length = self.bytes.len() as u64;
        let outside = |what: &str, start: u64| {
            ParseError::Elf(format!(
                "the {what} at offset {start:#x} lies outside of the file: it may be truncated"
            ))
        };
        for (what, start) in [
            ("program headers", self.header.e_phoff(LE)),
            ("section headers", self.header.e_shoff(LE)),
        ] {
            if start > length {
                return Err(outside(what, start));
            }
        }
        for segment in self.segments {
            let start = segment.p_offset(LE);
            if start.checked_add(segment.p_filesz(LE)).is_none_or(|end| end > length) {
                return Err(outside("segment", start));
            }
        }
        for section in self.header.section_headers(LE, self.bytes).map_err(broken)? {
            let start = section.sh_offset(LE);
            let end = start.checked_add(section.sh_size(LE));
            if section.sh_type(LE) != elf::SHT_NOBITS && end.is_none_or(|end| end > length) {
                return Err(outside("section", start));
            }
        }
        Ok(())
    }

    /// Loadable segments lie within the file and do not overlap in memory.
    fn check_segments(&self) -> Result<(), ParseError> {
        let mut ranges = Vec::new();
        for segment in self.loads() {
            let (start, size, filled) = (segment.p_vaddr(LE), segment.p_memsz(LE), segment.p_filesz(LE));
            let end = start.checked_add(size).filter(|_| filled <= size);
            let end = end.ok_or_else(|| {
                ParseError::Elf(format!(
                    "a segment at {start:#x} of {size:#x} bytes holds {filled:#x} of the file"
                ))
            })?;
            segment.data(LE, self.bytes).map_err(|()| {
                ParseError::Elf(format!(
                    "the segment at {start:#x} lies outside of the file: it may be truncated"
                ))
            })?;
            if size > 0 {
                ranges.push((start, end));
            }
        }
        ranges.sort_unstable();
        match ranges.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            Some(pair) => Err(ParseError::Elf(format!(
                "segments at {:#x} and {:#x} overlap",
                pair[0].0, pair[1].0
            ))),
            None => Ok(()),
        }
    }

    /// The contents of the metadata note.
    pub(crate) fn metadata_note(&self) -> Result<&'a [u8], ParseError> {
        let find = |mut notes: NoteIterator<'a, Header>| -> Result<Option<&'a [u8]>, ParseError> {
            while let Some(note) = notes.next().map_err(broken)? {
                if note.n_type(LE).0 == NT_AMDGPU_METADATA && note.name() == b"AMDGPU" {
                    return Ok(Some(note.desc()));
                }
            }
            Ok(None)
        };
        for segment in self.segments {
            if let Some(notes) = segment.notes(LE, self.bytes).map_err(broken)?
                && let Some(found) = find(notes)?
            {
                return Ok(found);
            }
        }
        Err(ParseError::NoMetadata)
    }

    pub(crate) fn symbols(&self) -> Result<Symbols<'a, '_>, ParseError> {
        let sections = self.header.sections(LE, self.bytes).map_err(broken)?;
        let mut addresses = HashMap::new();
        let mut names = 0;
        for kind in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
            let table = sections.symbols(LE, self.bytes, kind).map_err(broken)?;
            for symbol in table.iter().filter(|symbol| !symbol.is_undefined(LE)) {
                let name = symbol.name(LE, table.strings()).map_err(broken)?;
                names += name.len();
                limit(
                    "symbol names in bytes",
                    names,
                    self.bytes.len().saturating_mul(MAX_NAMES),
                )?;
                addresses.entry(name).or_insert(symbol.st_value(LE));
            }
        }
        Ok(Symbols { elf: self, addresses })
    }

    /// `size` bytes of the file at `address` of a loadable segment, with the segment.
    fn at(&self, address: u64, size: usize) -> Option<(&'a [u8], &'a Segment)> {
        self.loads().find_map(|segment| {
            let data = segment.data(LE, self.bytes).ok()?;
            let start = usize::try_from(address.checked_sub(segment.p_vaddr(LE))?).ok()?;
            Some((data.get(start..start.checked_add(size)?)?, segment))
        })
    }
}

/// The addresses of an ELF file's symbols.
pub(crate) struct Symbols<'a, 'b> {
    elf: &'b AmdElf<'a>,
    addresses: HashMap<&'a [u8], u64>,
}

impl Symbols<'_, '_> {
    /// Where the code of the kernel with that descriptor symbol is.
    pub(crate) fn code_of(&self, symbol: &str) -> Result<KernelCode, String> {
        let address = *self.addresses.get(symbol.as_bytes()).ok_or_else(|| {
            let symbol: String = symbol.chars().take(256).collect();
            format!("the file has no symbol {symbol:?} for its descriptor")
        })?;
        let found = self.elf.at(address, KernelDescriptor::SIZE);
        let (bytes, _) = found.ok_or_else(|| format!("its descriptor at {address:#x} is in no segment of the file"))?;
        let bytes: &[u8; 64] = bytes.try_into().map_err(|_| "its descriptor is truncated".to_owned())?;
        let descriptor = KernelDescriptor::parse(bytes);
        let offset = descriptor.kernel_code_entry_byte_offset;
        let entry = address.checked_add_signed(offset).filter(|entry| entry % 256 == 0);
        let entry =
            entry.ok_or_else(|| format!("its entry ({address:#x} plus {offset:#x}) is not a multiple of 256"))?;
        let executable = |segment: &Segment| segment.p_flags(LE).0 & elf::PF_X.0 != 0;
        let found = self.elf.at(entry, 4).filter(|(_, segment)| executable(segment));
        let (_, segment) = found.ok_or_else(|| format!("its entry at {entry:#x} is in no executable segment"))?;
        let end = segment.p_vaddr(LE) + segment.p_filesz(LE);
        Ok(KernelCode {
            descriptor_address: address,
            entry_address: entry,
            code_limit: end - entry,
            descriptor,
        })
    }
}
