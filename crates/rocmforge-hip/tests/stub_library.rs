//! Stub libraries as the tools of others read them.

use object::read::elf::{ElfFile64, FileHeader, SectionHeader as _};
use object::{Object, ObjectSymbol};
use rocmforge_hip::stub_library::{StubFunction, StubLibrary};
use rocmforge_hip::{Installation, functions};
use std::path::Path;
use std::process::Command;

fn library() -> Vec<u8> {
    let functions = ["first", "second", "third"];
    let stub = |(entry, name): (usize, &&'static str)| StubFunction {
        name,
        node: entry % 2,
        entry,
    };
    StubLibrary {
        soname: "libstub.so.3",
        needed: vec!["/somewhere/libtable.so"],
        table: "the_table",
        nodes: vec!["NODE_1", "NODE_2"],
        functions: functions.iter().enumerate().map(stub).collect(),
    }
    .write()
    .unwrap()
}

#[test]
fn symbols_have_their_versions() {
    let file = library();
    let elf = ElfFile64::<object::Endianness>::parse(&*file).unwrap();
    let mut names: Vec<_> = elf
        .dynamic_symbols()
        .map(|symbol| (symbol.name().unwrap().to_owned(), symbol.is_undefined()))
        .collect();
    names.sort();
    let expected = [
        ("first", false),
        ("second", false),
        ("the_table", true),
        ("third", false),
    ];
    assert_eq!(names, expected.map(|(name, undefined)| (name.to_owned(), undefined)));

    let header = elf.elf_header();
    let (endian, data) = (object::Endianness::Little, &*file);
    let sections = header.sections(endian, data).unwrap();
    let versions = sections.versions(endian, data).unwrap().unwrap();
    for symbol in elf.dynamic_symbols().filter(|symbol| !symbol.is_undefined()) {
        let index = versions.version_index(endian, symbol.index());
        let version = versions.version(index.index()).unwrap().unwrap();
        let name = symbol.name().unwrap();
        let expected: &[u8] = if name == "second" { b"NODE_2" } else { b"NODE_1" };
        assert_eq!(version.name(), expected, "{name}");
    }
    let count = sections.iter().count() as u32;
    assert!(sections.iter().all(|section| section.sh_link(endian) < count));
}

/// A program in C that is linked against a stub library and calls through it, with a table of its own.
#[test]
fn a_program_calls_through_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    write(
        "table.c",
        "static int add(int a, int b, int c, int d, int e, int f, double g, int h) { return a + b + c + d + e + f + (int)g + h; }\n\
         static int two(void) { return 2; }\n\
         void *the_table[] = { (void *)two, (void *)add };\n",
    );
    write(
        "main.c",
        "int sum(int, int, int, int, int, int, double, int); int two(void);\n\
         int main(void) { return sum(1, 2, 3, 4, 5, 6, 7.0, 8) == 36 && two() == 2 ? 0 : 1; }\n",
    );
    let compile = |args: &[&Path]| {
        let status = Command::new("cc").args(args).status().expect("a C compiler");
        assert!(status.success(), "{args:?}");
    };
    let table = path("libtable.so");
    let shared = [
        Path::new("-shared"),
        Path::new("-fPIC"),
        Path::new("-o"),
        &table,
        &path("table.c"),
    ];
    compile(&shared);
    let stub = |name, node, entry| StubFunction { name, node, entry };
    let library = StubLibrary {
        soname: "libstub.so",
        needed: vec![table.to_str().unwrap()],
        table: "the_table",
        nodes: vec!["NODE_1", "NODE_2"],
        functions: vec![stub("sum", 1, 1), stub("two", 0, 0)],
    };
    std::fs::write(path("libstub.so"), library.write().unwrap()).unwrap();
    let program = path("main");
    compile(&[Path::new("-o"), &program, &path("main.c"), &path("libstub.so"), &table]);
    let status = Command::new(&program)
        .env("LD_LIBRARY_PATH", folder.path())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn an_installation_has_every_interface() {
    let folder = tempfile::tempdir().unwrap();
    let installation = Installation::write(folder.path(), Path::new("/somewhere/librocmforge_hip.so")).unwrap();
    for name in [
        "libamdhip64.so.5",
        "libamdhip64.so.6",
        "libamdhip64.so.7",
        "libamdhip64.so",
    ] {
        let file = std::fs::read(installation.folder().join(name)).unwrap();
        let elf = ElfFile64::<object::Endianness>::parse(&*file).unwrap();
        let defined = elf.dynamic_symbols().filter(|symbol| !symbol.is_undefined()).count();
        assert_eq!(defined, functions().count(), "{name}");
    }
    for (name, hip) in [
        ("libhipblas.so.2", "libamdhip64.so.6"),
        ("libhipblas.so.3", "libamdhip64.so.7"),
        ("librocblas.so.4", "libamdhip64.so.6"),
        ("librocblas.so.5", "libamdhip64.so.7"),
    ] {
        let file = std::fs::read(installation.folder().join(name)).unwrap();
        let elf = ElfFile64::<object::Endianness>::parse(&*file).unwrap();
        let symbols: Vec<_> = elf
            .dynamic_symbols()
            .map(|symbol| symbol.name().unwrap().to_owned())
            .collect();
        let expected = if name.contains("hipblas") {
            "hipblasGemmEx"
        } else {
            "rocblas_initialize"
        };
        assert!(symbols.iter().any(|symbol| symbol == expected), "{name}");
        // Programs that name hipBLAS alone find HIP's functions through it.
        let needed = file.windows(hip.len()).any(|part| part == hip.as_bytes());
        assert!(needed, "{name}");
    }
    for (name, expected) in [
        ("libhiprtc.so.6", "hiprtcCompileProgram"),
        ("libhiprtc.so.7", "hiprtcCompileProgram"),
        // A library that is installed is found before these.
        ("companions/libhipblaslt.so.1", "hipblasLtMatmul"),
        ("companions/libroctx64.so.4", "roctxMarkA"),
    ] {
        let file = std::fs::read(installation.folder().join(name)).unwrap();
        let elf = ElfFile64::<object::Endianness>::parse(&*file).unwrap();
        let mut names = elf.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
        assert!(names.any(|symbol| symbol.name() == Ok(expected)), "{name}");
    }
    // Colons separate the paths that the dynamic linker is given.
    assert!(Installation::write(folder.path(), Path::new("/a:b/librocmforge_hip.so")).is_err());
}
