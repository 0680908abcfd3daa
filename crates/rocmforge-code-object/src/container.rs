//! Recognition of container formats that are often mistaken for code objects.

use std::fmt;

/// A format that holds code objects, or that comes before one in compilation, and has to be unpacked or compiled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container {
    /// `__CLANG_OFFLOAD_BUNDLE__`: code objects for several targets behind one another.
    OffloadBundle,
    /// `CCOB`: the same, compressed.
    CompressedOffloadBundle,
    /// The wrapper that `hipcc` puts around a bundle in a host program.
    FatBinaryWrapper,
    /// LLVM bitcode.
    Bitcode,
    /// A static library.
    Archive,
    /// A zstd frame, such as a kernel pack.
    Zstd,
    /// A program or library for the host.
    HostElf,
    /// NVIDIA's ELF file.
    Cubin,
}

impl Container {
    /// Recognises one by its first bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        const MAGICS: &[(&[u8], Container)] = &[
            (b"__CLANG_OFFLOAD_BUNDLE__", Container::OffloadBundle),
            (b"CCOB", Container::CompressedOffloadBundle),
            // 0x4849_5046, little endian.
            (b"FPIH", Container::FatBinaryWrapper),
            (b"BC\xc0\xde", Container::Bitcode),
            (b"!<arch>\n", Container::Archive),
            (b"\x28\xb5\x2f\xfd", Container::Zstd),
        ];
        let found = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic));
        found.map(|(_, container)| *container)
    }

    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::OffloadBundle => {
                "compile with --no-gpu-bundle-output, or unpack it with clang-offload-bundler --unbundle --type=o"
            }
            Self::CompressedOffloadBundle => {
                "compile with --no-gpu-bundle-output -no-offload-compress, or unpack it with clang-offload-bundler"
            }
            Self::FatBinaryWrapper => "unpack the bundle it points to with clang-offload-bundler",
            Self::Bitcode => "compile and link it for a gfx target first",
            Self::Archive => "extract its members with ar x",
            Self::Zstd => "decompress it first; kernel packs are read by rocmforge-kernels",
            Self::HostElf => "its device code, if any, is a bundle in the section .hip_fatbin",
            Self::Cubin => "it runs on NVIDIA's platform only",
        }
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OffloadBundle => "a clang offload bundle",
            Self::CompressedOffloadBundle => "a compressed clang offload bundle",
            Self::FatBinaryWrapper => "a HIP fat binary wrapper",
            Self::Bitcode => "LLVM bitcode",
            Self::Archive => "a static library",
            Self::Zstd => "a zstd-compressed file",
            Self::HostElf => "an ELF file for the host's processor",
            Self::Cubin => "an NVIDIA cubin",
        })
    }
}
