//! The project's own kernels, as both compilers write them at every level: they load, and their text is LLVM's.

use crate::objects::{COMPILERS, LEVELS, compile};
use crate::text;
use rocmforge_amdgcn::{DEVICE_BASE, Program};
use std::path::{Path, PathBuf};

fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources: Vec<PathBuf> = ["kernels", "crates/rocmforge-amdgcn/tests/fixtures"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder"))
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hip"))
        .collect();
    sources.push(root.join("crates/rocmforge-amdgcn/tests/corpus/opcodes.hip"));
    sources.sort();
    sources
}

#[test]
#[ignore = "compiles every kernel of the project a dozen times: minutes; needs clang, lld and llvm-objdump of both versions"]
fn every_kernel_of_the_project_loads_and_has_llvms_text_at_every_level() {
    let folder = std::env::temp_dir().join(format!("rocmforge-project-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let mut failures = Vec::new();
    let (mut objects, mut instructions) = (0, 0);
    for source in sources() {
        for compiler in COMPILERS {
            for flags in LEVELS {
                let object = compile(&source, compiler, flags, &folder.join("project.co"));
                objects += 1;
                if let Err(error) = Program::load(&object.elf, DEVICE_BASE) {
                    failures.push(format!("{}: {error}", object.name));
                }
                let answers = text::distinct(std::slice::from_ref(&object), compiler, &folder);
                instructions += answers.len();
                let differences = text::differences(compiler, answers);
                failures.extend(differences.iter().map(|line| format!("{}: {line}", object.name)));
            }
        }
    }
    std::fs::remove_dir_all(&folder).expect("removable");
    println!(
        "{objects} objects, {instructions} distinct instructions, {} failures",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures[..failures.len().min(60)].join("\n"));
}
