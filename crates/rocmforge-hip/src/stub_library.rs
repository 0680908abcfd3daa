//! Stub libraries: small ELF files with the soname, symbols and version nodes of `libamdhip64.so.5`, `.6` and `.7`, whose functions
//! jump into this crate's own library.
//!
//! A program asks the dynamic linker for `hipMalloc` of version `hip_4.2` in `libamdhip64.so.6`. rustc gives a library neither version
//! nodes nor a choice of sonames, and needs no linker for anything else here; so the file is written directly. Each function is two
//! instructions: load the address of a table, jump to its entry. The table is one symbol of this crate's library, which the dynamic
//! linker loads with the stub library (`DT_NEEDED` with its path).
//!
//! Layout: System V ABI (dynamic linking), its x86-64 supplement, and "Symbol Versioning" of the Linux Standard Base.

use object::elf;
use object::write::elf::{FileHeader, ProgramHeader, Rel, SectionHeader, Sym, Verdef, Writer};

/// What a stub library contains.
#[derive(Debug, Clone)]
pub struct StubLibrary<'a> {
    /// Its soname: `libamdhip64.so.6`.
    pub soname: &'a str,
    /// What the dynamic linker loads with it. A name with a slash is a path.
    pub needed: Vec<&'a str>,
    /// The symbol of one of these that is the table of addresses.
    pub table: &'a str,
    /// Version nodes. Empty: the symbols have no versions.
    pub nodes: Vec<&'a str>,
    /// Its functions.
    pub functions: Vec<StubFunction<'a>>,
}

/// A function of a stub library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StubFunction<'a> {
    /// The symbol.
    pub name: &'a str,
    /// Index of its version node; not looked at in a library without nodes.
    pub node: usize,
    /// Index of the entry of the table that it jumps to.
    pub entry: usize,
}

/// Bytes of a page, the alignment of segments.
const PAGE: u64 = 0x1000;
/// Bytes of the code of a function.
const STUB: usize = 16;

/// The library is not made: too many symbols for the format, or a text that is too long.
#[derive(Debug, thiserror::Error)]
#[error("the stub library {soname} cannot be written: {why}")]
pub struct StubError {
    soname: String,
    why: object::write::Error,
}

impl StubLibrary<'_> {
    /// The file, for x86-64 Linux.
    ///
    /// # Errors
    /// [`StubError`].
    pub fn write(&self) -> Result<Vec<u8>, StubError> {
        self.encode().map_err(|why| StubError {
            soname: self.soname.to_owned(),
            why,
        })
    }

    /// Headers and code, then the tables of the dynamic linker, in one segment that is read and executed; the dynamic section and
    /// the address of the table in a segment that is written.
    fn encode(&self) -> object::write::Result<Vec<u8>> {
        let mut file = Vec::new();
        let mut w = Writer::new_single_phase(object::Endianness::Little, true, &mut file);
        w.write_file_header(&FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type: elf::ET_DYN,
            e_machine: elf::EM_X86_64,
            e_entry: 0,
            e_flags: elf::FileFlags::default(),
        })?;
        w.write_program_headers_placeholder(4);

        let text = w.write_align(STUB as u64);
        let text_size = self.functions.len() * STUB;
        w.write(&vec![0; text_size]);

        // Strings first: their offsets are known as soon as they are added.
        let soname = w.add_dynamic_string(self.soname.as_bytes());
        let needed: Vec<_> = self
            .needed
            .iter()
            .map(|name| w.add_dynamic_string(name.as_bytes()))
            .collect();
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .map(|name| w.add_dynamic_string(name.as_bytes()))
            .collect();
        let table_name = w.add_dynamic_string(self.table.as_bytes());
        let names: Vec<_> = self
            .functions
            .iter()
            .map(|f| w.add_dynamic_string(f.name.as_bytes()))
            .collect();

        let dynsym = w.write_null_dynamic_symbol();
        let mut symbol = |name, kind, at: Option<usize>| {
            let st_name = w.dynamic_string_offset(Some(name));
            w.write_dynamic_symbol(&Sym {
                section: at.map(|_| TEXT_SECTION),
                st_name,
                st_info: elf::SymbolInfo::new(elf::STB_GLOBAL, kind),
                st_other: elf::SymbolOther::default(),
                st_shndx: elf::SHN_UNDEF,
                st_value: at.map_or(0, |index| text + (index * STUB) as u64),
                st_size: if at.is_some() { STUB as u64 } else { 0 },
            })
        };
        let table = symbol(table_name, elf::STT_OBJECT, None);
        for (index, name) in names.iter().enumerate() {
            symbol(*name, elf::STT_FUNC, Some(index));
        }
        let symbols = self.functions.len() as u32 + 2;
        let hash = w.write_hash(symbols.next_power_of_two(), symbols, |index| {
            let function = self.functions.get((index as usize).checked_sub(2)?)?;
            Some(elf::hash(function.name.as_bytes()))
        });
        let versioned = !self.nodes.is_empty();
        let (mut versym, mut verdef) = (0, 0);
        if versioned {
            versym = w.write_null_gnu_versym();
            w.write_gnu_versym(elf::VER_NDX_GLOBAL.into());
            for function in &self.functions {
                w.write_gnu_versym((FIRST_NODE + function.node as u16).into());
            }
            verdef = w.write_align_gnu_verdef(self.nodes.len() as u16 + 1);
            let mut define = |index, flags, name: &str, id| {
                let name_at = w.dynamic_string_offset(Some(id));
                w.write_gnu_verdef(&Verdef {
                    version: elf::VER_DEF_CURRENT,
                    flags,
                    index,
                    aux_count: 1,
                    name: name_at,
                    hash: elf::hash(name.as_bytes()),
                });
            };
            define(elf::VER_NDX_GLOBAL, elf::VER_FLG_BASE, self.soname, soname);
            for (index, (name, id)) in self.nodes.iter().zip(&nodes).enumerate() {
                define(FIRST_NODE + index as u16, elf::VersionFlags::default(), name, *id);
            }
        }
        let rela = w.write_align_relocation();
        w.write_relocation(
            true,
            &Rel {
                // Patched below.
                r_offset: 0,
                r_sym: table.0,
                r_type: elf::R_X86_64_GLOB_DAT,
                r_addend: 0,
            },
        );
        let (dynstr, dynstr_size) = w.write_dynstr()?;
        let read_end = w.offset();

        // The address of the table.
        let got = w.write_align(PAGE);
        w.write(&[0; 8]);
        let dynamic = w.write_align_dynamic();
        for id in &needed {
            w.write_dynamic_string(elf::DT_NEEDED, *id)?;
        }
        w.write_dynamic_string(elf::DT_SONAME, soname)?;
        w.write_dynamic(elf::DT_HASH, hash)?;
        w.write_dynamic(elf::DT_STRTAB, dynstr)?;
        w.write_dynamic(elf::DT_STRSZ, dynstr_size.into())?;
        w.write_dynamic(elf::DT_SYMTAB, dynsym)?;
        w.write_dynamic(elf::DT_SYMENT, 24)?;
        w.write_dynamic(elf::DT_RELA, rela)?;
        w.write_dynamic(elf::DT_RELASZ, 24)?;
        w.write_dynamic(elf::DT_RELAENT, 24)?;
        if versioned {
            w.write_dynamic(elf::DT_VERSYM, versym)?;
            w.write_dynamic(elf::DT_VERDEF, verdef)?;
            w.write_dynamic(elf::DT_VERDEFNUM, self.nodes.len() as u64 + 1)?;
        }
        w.write_dynamic(elf::DT_NULL, 0)?;
        let written_end = w.offset();

        // Sections are for tools alone: linkers, nm, debuggers.
        let ids = [&b".text"[..], b".rela.dyn", b".got"].map(|name| w.add_section_name(name));
        w.write_shstrtab()?;
        w.write_null_section_header();
        let offsets = ids.map(|id| w.section_name_offset(Some(id)));
        let section = |sh_name, sh_type, sh_flags, at, sh_size| SectionHeader {
            sh_name,
            sh_type,
            sh_flags,
            sh_addr: at,
            sh_offset: at,
            sh_size,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: 16,
            sh_entsize: 0,
        };
        let (alloc, exec, write) = (elf::SHF_ALLOC, elf::SHF_EXECINSTR, elf::SHF_WRITE);
        w.write_section_header(&section(
            offsets[0],
            elf::SHT_PROGBITS,
            alloc | exec,
            text,
            text_size as u64,
        ));
        w.write_dynstr_section_header(dynstr);
        w.write_dynsym_section_header(dynsym, 1);
        w.write_hash_section_header(hash);
        w.write_gnu_versym_section_header(versym);
        w.write_gnu_verdef_section_header(verdef);
        w.write_section_header(&SectionHeader {
            sh_link: DYNSYM_SECTION,
            sh_entsize: 24,
            ..section(offsets[1], elf::SHT_RELA, alloc, rela, 24)
        });
        w.write_dynamic_section_header(dynamic);
        w.write_section_header(&section(offsets[2], elf::SHT_PROGBITS, alloc | write, got, 8));
        w.write_shstrtab_section_header();

        let segment = |p_type, p_flags, at: u64, end: u64, p_align| ProgramHeader {
            p_type,
            p_flags,
            p_offset: at,
            p_vaddr: at,
            p_paddr: at,
            p_filesz: end - at,
            p_memsz: end - at,
            p_align,
        };
        let (read, execute, write) = (elf::PF_R, elf::PF_X, elf::PF_W);
        let segments = [
            segment(elf::PT_LOAD, read | execute, 0, read_end, PAGE),
            segment(elf::PT_LOAD, read | write, got, written_end, PAGE),
            segment(elf::PT_DYNAMIC, read | write, dynamic, written_end, 8),
            segment(elf::PT_GNU_STACK, read | write, 0, 0, 16),
        ];
        let mut headers: Vec<u8> = Vec::new();
        w.write_headers_to(&mut headers, &segments)?;
        file[..headers.len()].copy_from_slice(&headers);
        file[rela as usize..][..8].copy_from_slice(&got.to_le_bytes());
        for (index, function) in self.functions.iter().enumerate() {
            let at = text as usize + index * STUB;
            file[at..at + STUB].copy_from_slice(&jump(got - at as u64, function.entry));
        }
        Ok(file)
    }
}

/// The section of the code.
const TEXT_SECTION: u32 = 1;
/// The section of the symbols.
const DYNSYM_SECTION: u32 = 3;
/// Index of the first version node of a library: 1 is the library itself.
const FIRST_NODE: elf::VersionIndex = elf::VersionIndex(2);

/// `mov r11, [rip + got - 7]; jmp [r11 + 8 * entry]`: r11 is the register that calls through a procedure linkage table may change.
fn jump(got: u64, entry: usize) -> [u8; STUB] {
    let mut code = [0xCC; STUB];
    code[..3].copy_from_slice(&[0x4C, 0x8B, 0x1D]);
    code[3..7].copy_from_slice(&(got as u32).wrapping_sub(7).to_le_bytes());
    code[7..10].copy_from_slice(&[0x41, 0xFF, 0xA3]);
    code[10..14].copy_from_slice(&(entry as u32 * 8).to_le_bytes());
    code
}
