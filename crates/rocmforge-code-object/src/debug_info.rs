//! Source positions of instructions, from the DWARF line tables that `-gline-tables-only` leaves in a code object.

use gimli::{EndianSlice, LittleEndian, SectionId};
use object::elf::{STT_FUNC, Sym64};
use object::read::elf::{ElfFile64, Sym as _};
use object::{Endianness, Object as _, ObjectSection as _};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// One source position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function, as the compiler names it; empty when unknown.
    pub function: String,
    /// File, as it was given to the compiler; empty when unknown.
    pub file: String,
    /// Line, from 1; 0 when unknown.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
}

impl Frame {
    /// The innermost of some frames that lies in a file of the program; the innermost of all, where none does. Frames come innermost first.
    pub fn of_program(frames: &[Self]) -> Option<&Self> {
        let own = frames.iter().find(|frame| !frame.is_in_header_of_toolchain());
        own.or(frames.first())
    }

    /// Whether the file is a header of the compiler, of the C++ library, of HIP or of ROCm's libraries, or what hiprtc has built in.
    fn is_in_header_of_toolchain(&self) -> bool {
        let path = &self.file;
        let below = |start: &str| path.split_once(start).map(|(_, rest)| rest);
        let of_hip = below("include/hip/").is_some_and(|rest| {
            let starts = ["amd_detail/", "nvidia_detail/", "hip_"];
            starts.iter().any(|start| rest.starts_with(start))
        });
        of_hip
            || path.starts_with("/usr/include/")
            || below("/lib/clang/").is_some_and(|rest| rest.contains("/include/"))
            || below("/rocm").is_some_and(|rest| rest.starts_with(['/', '-']) && rest.contains("/include/"))
            || below("/rocmforge-hiprtc-").is_some_and(|rest| rest.contains("/own/"))
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 && !self.file.is_empty() {
            // Compilers write line 0 for code that they have made of several lines.
            return write!(
                f,
                "{} {} (no line: it may be made of several)",
                self.function, self.file
            );
        }
        write!(f, "{} {}:{}:{}", self.function, self.file, self.line, self.column)
    }
}

/// The debug sections of a code object, and its functions.
///
/// Line tables are not parsed until somebody asks for a position: that happens when a fault is reported, so its cost does not
/// matter, and most programs are never asked about.
#[derive(Clone, Debug, Default)]
pub struct DebugInfo {
    sections: BTreeMap<&'static str, Vec<u8>>,
    functions: Vec<Function>,
    /// Names, each up to a zero byte: many functions may have one in common.
    names: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Function {
    addresses: Range<u64>,
    /// Where its name starts among all.
    name: usize,
}

/// Inlined frames of one instruction at most: real code has a handful, hostile DWARF can nest without end.
const MAX_FRAMES: usize = 64;

impl DebugInfo {
    /// Keeps the debug sections of `elf`. An object without any, or with broken ones, has no positions to tell.
    pub fn from_elf(elf: &[u8]) -> Self {
        const IDS: [SectionId; 10] = [
            SectionId::DebugAbbrev,
            SectionId::DebugAddr,
            SectionId::DebugAranges,
            SectionId::DebugInfo,
            SectionId::DebugLine,
            SectionId::DebugLineStr,
            SectionId::DebugRanges,
            SectionId::DebugRngLists,
            SectionId::DebugStr,
            SectionId::DebugStrOffsets,
        ];
        let Ok(file) = ElfFile64::<Endianness>::parse(elf) else {
            return Self::default();
        };
        let section = |id: SectionId| {
            let data = file.section_by_name(id.name())?.data().ok()?;
            Some((id.name(), data.to_vec()))
        };
        // A program that is stripped has the symbols of its dynamic table alone.
        let tables = [file.elf_symbol_table(), file.elf_dynamic_symbol_table()];
        let table = tables.into_iter().find(|table| !table.is_empty());
        let names = table.and_then(|table| file.section_by_index(table.string_section()).ok()?.data().ok());
        let function = |symbol: &Sym64<Endianness>| {
            let endian = file.endian();
            let addresses = symbol.st_value(endian)..symbol.st_value(endian).saturating_add(symbol.st_size(endian));
            (symbol.st_type() == STT_FUNC && !addresses.is_empty()).then(|| Function {
                addresses,
                name: symbol.st_name(endian) as usize,
            })
        };
        Self {
            sections: IDS.into_iter().filter_map(section).collect(),
            functions: table
                .into_iter()
                .flat_map(|table| table.iter().filter_map(function))
                .collect(),
            names: names.unwrap_or_default().to_vec(),
        }
    }

    /// The addresses of the function that ELF address `pc` lies in.
    pub fn function(&self, pc: u64) -> Option<Range<u64>> {
        self.function_at(pc).map(|function| function.addresses.clone())
    }

    fn function_at(&self, pc: u64) -> Option<&Function> {
        self.functions.iter().find(|function| function.addresses.contains(&pc))
    }

    fn name(&self, function: &Function) -> String {
        let name = self.names.get(function.name..).unwrap_or_default();
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    }

    /// Position of the instruction at ELF address `pc`: where it was written, then the calls through which it was inlined,
    /// innermost first. Empty when the object does not tell.
    pub fn frames(&self, pc: u64) -> Vec<Frame> {
        // No code lies at the very end of the address space, and addr2line adds one to the address.
        if pc == u64::MAX {
            return Vec::new();
        }
        // addr2line adds numbers that DWARF gives it unchecked, which panics on hostile sections in debug builds. A missing
        // position must never cost the report it belongs to.
        let frames = std::panic::catch_unwind(|| self.try_frames(pc));
        frames.ok().and_then(Result::ok).unwrap_or_default()
    }

    fn try_frames(&self, pc: u64) -> Result<Vec<Frame>, gimli::Error> {
        if self.sections.is_empty() {
            return Ok(Vec::new());
        }
        let dwarf = gimli::Dwarf::load(|id| -> Result<_, gimli::Error> {
            let data = self.sections.get(id.name()).map_or(&[][..], Vec::as_slice);
            Ok(EndianSlice::new(data, LittleEndian))
        })?;
        let context = addr2line::Context::from_dwarf(dwarf)?;
        let mut frames = Vec::new();
        let mut found = context.find_frames(pc).skip_all_loads()?;
        while frames.len() < MAX_FRAMES
            && let Some(frame) = found.next()?
        {
            let function = frame.function.and_then(|name| Some(name.raw_name().ok()?.into_owned()));
            let location = frame.location;
            let number = |value: Option<u32>| value.unwrap_or(0);
            frames.push(Frame {
                function: function.unwrap_or_default(),
                file: location.as_ref().and_then(|at| at.file).unwrap_or_default().to_string(),
                line: number(location.as_ref().and_then(|at| at.line)),
                column: number(location.as_ref().and_then(|at| at.column)),
            });
        }
        // Where nothing is inlined into a function, line tables have no name of it.
        if let Some(outermost) = frames.last_mut()
            && outermost.function.is_empty()
            && let Some(function) = self.function_at(pc)
        {
            outermost.function = self.name(function);
        }
        Ok(frames)
    }
}

#[cfg(test)]
mod tests {
    use super::Frame;

    #[test]
    fn the_frame_of_the_program_is_the_innermost_outside_of_headers() {
        let frame = |file: &str| Frame {
            function: String::new(),
            file: file.to_owned(),
            line: 1,
            column: 1,
        };
        let headers = [
            "/usr/include/hip/amd_detail/amd_device_functions.h",
            "/srv/venv/lib/python3.12/site-packages/_rocm_sdk_devel/include/hip/hip_fp16.h",
            "/opt/rocm-6.3.0/include/rocprim/block/block_scan.hpp",
            "/usr/lib/llvm-19/lib/clang/19/include/__clang_hip_math.h",
            "/usr/include/c++/14/bits/stl_algo.h",
            "/tmp/rocmforge-hiprtc-a1b2/own/device.h",
        ];
        let own = [
            "kernel.hip",
            "include/hip/kernels.h",
            "/srv/rocm_project/include/kernel.h",
        ];
        for (header, own) in headers.iter().flat_map(|header| own.map(|own| (*header, own))) {
            let frames = [frame(header), frame(own), frame("main.hip")];
            assert_eq!(Frame::of_program(&frames), Some(&frames[1]), "{header} {own}");
            assert_eq!(Frame::of_program(&[frame(header)]), Some(&frame(header)), "no other");
        }
        assert_eq!(Frame::of_program(&[]), None);
    }

    #[test]
    fn a_frame_without_a_line_says_so() {
        let frame = |line, column| Frame {
            function: "k".to_owned(),
            file: "a.hip".to_owned(),
            line,
            column,
        };
        assert_eq!(frame(3, 7).to_string(), "k a.hip:3:7");
        assert_eq!(frame(0, 0).to_string(), "k a.hip (no line: it may be made of several)");
    }
}
