//! Compiled files of the exotic corpus: two compilers with ten settings each.

use rocmforge_isa::Arch;
use std::path::{Path, PathBuf};

pub(crate) const FILES: [&str; 4] = ["lanes", "numbers", "memory", "matrix"];
pub(crate) const COMPILERS: [&str; 2] = ["19", "22"];

/// Levels, and fast arithmetic.
pub(crate) const LEVELS: [&str; 6] = ["-O0", "-O1", "-O2", "-O3", "-Os", "-O3 -ffast-math"];

/// Flushed denormals (also with output modifiers), and the other versions of the format.
const MORE: [&str; 4] = [
    "-O3 -fgpu-flush-denormals-to-zero",
    "-O3 -ffast-math -fgpu-flush-denormals-to-zero -mno-amdgpu-ieee -fno-honor-nans",
    "-O2 -mcode-object-version=4",
    "-O2 -mcode-object-version=6",
];

const PACK: &str = "objects.zst";

/// One compiled file.
pub(crate) struct Object {
    /// File, compiler, flags, with spaces between.
    pub(crate) name: String,
    pub(crate) elf: Vec<u8>,
}

impl Object {
    pub(crate) fn file(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    pub(crate) fn compiler(&self) -> &str {
        self.name.split(' ').nth(1).unwrap_or_default()
    }
}

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exotic").join(name)
}

/// The committed objects.
pub(crate) fn read() -> Vec<Object> {
    let bytes = std::fs::read(path(PACK)).expect("the objects are committed");
    let bytes = zstd::decode_all(&bytes[..]).expect("zstd");
    let mut rest = &bytes[..];
    let mut objects = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|&b| b == b'\n').expect("a heading");
        let heading = std::str::from_utf8(&rest[..end]).expect("UTF-8");
        let (size, name) = heading.split_once(' ').expect("size and name");
        let (elf, after) = rest[end + 1..].split_at(size.parse().expect("a size"));
        objects.push(Object {
            name: name.to_string(),
            elf: elf.to_vec(),
        });
        rest = after;
    }
    objects
}

fn write(objects: &[Object]) {
    let mut bytes = Vec::new();
    for object in objects {
        bytes.extend(format!("{} {}\n", object.elf.len(), object.name).into_bytes());
        bytes.extend(&object.elf);
    }
    std::fs::write(path(PACK), zstd::encode_all(&bytes[..], 19).expect("zstd")).expect("writable");
}

/// Compiles one file.
pub(crate) fn compile(source: &Path, arch: Arch, compiler: &str, flags: &str, to: &Path) -> Object {
    let file = source.file_stem().expect("a file").to_string_lossy();
    let version = if flags.contains("object-version") {
        ""
    } else {
        "-mcode-object-version=5"
    };
    let status = rocmforge_test_support::device_clang(&format!("clang++-{compiler}"), arch.name())
        .args(["-std=c++20", "-fuse-cuid=none"])
        .args(format!("{flags} {version}").split_whitespace())
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/include"))
        .arg(source)
        .arg("-o")
        .arg(to)
        .status()
        .expect("clang");
    assert!(status.success(), "{file} {} {compiler} {flags}", arch.name());
    Object {
        name: format!("{file} {compiler} {flags}"),
        elf: std::fs::read(to).expect("compiled"),
    }
}

/// Compiles everything; `to` is a folder for the files, which stay.
pub(crate) fn build(to: &Path) -> Vec<Object> {
    let mut objects = Vec::new();
    for file in FILES {
        for compiler in COMPILERS {
            for flags in LEVELS.into_iter().chain(MORE) {
                let target = to.join(format!("{}.co", objects.len()));
                let source = path(&format!("kernels/{file}.hip"));
                objects.push(compile(&source, Arch::Gfx1100, compiler, flags, &target));
            }
        }
    }
    objects
}

#[test]
#[ignore = "builds and records the objects and LLVM's text; needs clang, lld and llvm-objdump of both versions"]
fn record() {
    let folder = std::env::temp_dir().join(format!("rocmforge-exotic-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let objects = build(&folder);
    write(&objects);
    for compiler in COMPILERS {
        let count = super::text::record(&objects, compiler, &folder);
        println!("{compiler}: {count} distinct instructions");
    }
    std::fs::remove_dir_all(&folder).expect("removable");
}
