//! Errors of compiling and checking kernels, each with what to do.

use std::io;
use std::path::PathBuf;

/// What can go wrong. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KernelsError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "no clang++ found (tried ROCMFORGE_CLANG, clang++-{major}, clang++). Install Debian's clang-{major}; the committed packs work without it"
    )]
    NoCompiler { major: &'static str },
    #[error(
        "the pinned compiler is clang {pinned}, this is \"{found}\"; pass --any-compiler to build packs for your own use"
    )]
    WrongCompiler { pinned: &'static str, found: String },
    #[error("{arch}: clang failed on {source_file}:\n{log}")]
    Compile {
        arch: String,
        source_file: String,
        log: String,
    },
    #[error("{arch}: {family}: the object cannot be read: {reason}")]
    BadObject {
        arch: String,
        family: String,
        reason: String,
    },
    #[error("{arch}: kernel {kernel} {what}; kernels must not spill or use private memory")]
    Spills { arch: String, kernel: String, what: String },
    #[error(
        "{arch}: kernel {kernel} declares {bytes} bytes of LDS, a launch there may have {limit}; make its tiles smaller"
    )]
    Lds {
        arch: String,
        kernel: String,
        bytes: u32,
        limit: u32,
    },
    #[error(
        "{arch}: kernel {kernel} has {bytes} bytes of code, the instruction cache holds {limit}; unroll less, or let results go through LDS to one \
         copy of what becomes of them"
    )]
    Code {
        arch: String,
        kernel: String,
        bytes: u64,
        limit: u64,
    },
    #[error(
        "{arch}: of kernel {kernel} {waves} waves fit on a SIMD, with {vgprs} vector registers and {lds} bytes of LDS for a workgroup of \
         {block}; tools/kernels/src/occupancy.rs asks for {least}. Make its tiles smaller, or state there what it gets by with and why"
    )]
    Occupancy {
        arch: String,
        kernel: String,
        waves: u32,
        least: u32,
        vgprs: u32,
        lds: u32,
        block: u32,
    },
    #[error(
        "{arch}: kernel {kernel}: {instruction} at {place} goes by flat addresses; the compiler does not know whether the pointer is to global memory \
         or LDS. Keep pointers to both apart"
    )]
    Flat {
        arch: String,
        kernel: String,
        instruction: String,
        place: String,
    },
    #[error("{program} is no ptxas that answers; ROCMFORGE_PTXAS names one (it comes with CUDA)")]
    NoAssembler { program: String },
    #[error("{card}: ptxas refuses {family}:\n{log}")]
    NotAssembled { card: String, family: String, log: String },
    #[error(
        "{card}: {family}: ptxas runs wgmma instructions one after another; wait for them before their registers are used:\n{log}"
    )]
    Serialized { card: String, family: String, log: String },
    #[error("{arch}: kernel {kernel} has another argument layout than on the other targets")]
    ArgumentLayout { arch: String, kernel: String },
    #[error(
        "{arch}: family {family} {} kernel {kernel}, against what `FAMILIES` in tools/kernels/src/families.rs states; a kernel \
         that some targets lack is stated there",
        if *exists { "has" } else { "lacks" }
    )]
    Kernel {
        arch: String,
        family: String,
        kernel: String,
        exists: bool,
    },
    #[error("{}: {source}", path.display())]
    Pack {
        path: PathBuf,
        source: rocmforge_code_object::PackError,
    },
    #[error("no family is called {name:?}: a family is a file kernels/NAME.hip, or a type of one: matvec_q8_q4_0")]
    NoFamily { name: String },
    #[error("there is no pack for {target}; `cargo xtask kernels build --arch {target}` makes its packs")]
    NoPack { target: String },
    #[error("git knows no commit {name:?}")]
    NoCommit { name: String },
    #[error("{0}")]
    Manifest(String),
    #[error(
        "{} packs are not what the sources give: {}{}. Run `cargo xtask kernels build` and commit the result",
        packs.len(),
        packs.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", "),
        if packs.len() > 20 { ", ..." } else { "" }
    )]
    Differ { packs: Vec<String> },
    #[error("no new kernel {name:?}: {why}. Nothing was changed")]
    New { name: String, why: String },
    #[error("not comparable: {0}")]
    NotComparable(String),
}

/// The error of a file, or of a program that is started.
pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> KernelsError {
    let path = path.into();
    |source| KernelsError::Io { path, source }
}
