//! The project's own kernels, as both compilers write them at every level: they load, and their text is LLVM's.

use super::objects::{COMPILERS, LEVELS, compile};
use super::text;
use rocmforge_amdgcn::{DEVICE_BASE, Program};
use rocmforge_isa::Arch;
use std::path::{Path, PathBuf};

/// What is written for one card only, by file name.
const GFX1100_ONLY: [&str; 1] = ["opcodes.hip"];
const GFX1201_ONLY: [&str; 2] = ["gfx1201.hip", "opcodes-gfx1201.hip"];

fn sources(arch: Arch) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let others: &[&str] = match arch {
        Arch::Gfx1100 => &GFX1201_ONLY,
        Arch::Gfx1201 => &GFX1100_ONLY,
    };
    const FOLDERS: [&str; 4] = [
        "kernels",
        "crates/rocmforge-amdgcn/tests/fixtures",
        "crates/rocmforge-amdgcn/tests/corpus",
        "crates/rocmforge-isa/tests/corpus",
    ];
    let mut sources: Vec<PathBuf> = FOLDERS
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("a folder"))
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hip"))
        .filter(|path| !others.iter().any(|other| path.ends_with(other)))
        .collect();
    sources.sort();
    sources
}

#[test]
#[ignore = "compiles every kernel of the project a dozen times: minutes; needs clang, lld and llvm-objdump of both versions"]
fn every_kernel_of_the_project_loads_and_has_llvms_text_at_every_level() {
    let folder = std::env::temp_dir().join(format!("rocmforge-project-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let mut failures = Vec::new();
    for arch in Arch::ALL {
        let (mut objects, mut instructions) = (0, 0);
        for source in sources(arch) {
            for compiler in COMPILERS {
                for flags in LEVELS {
                    let object = compile(&source, arch, compiler, flags, &folder.join("project.co"));
                    objects += 1;
                    match Program::load(&object.elf, DEVICE_BASE) {
                        Err(error) => failures.push(format!("{} {}: {error}", arch.name(), object.name)),
                        Ok(program) => failures.extend(
                            program
                                .refusals()
                                .map(|(kernel, why)| format!("{} {} {kernel}: {why}", arch.name(), object.name)),
                        ),
                    }
                    let answers = text::distinct(std::slice::from_ref(&object), arch, compiler, &folder);
                    instructions += answers.len();
                    let differences = text::differences(arch, compiler, answers);
                    failures.extend(
                        differences
                            .iter()
                            .map(|line| format!("{} {}: {line}", arch.name(), object.name)),
                    );
                }
            }
        }
        println!(
            "{}: {objects} objects, {instructions} distinct instructions",
            arch.name()
        );
    }
    std::fs::remove_dir_all(&folder).expect("removable");
    println!("{} failures", failures.len());
    assert!(failures.is_empty(), "{}", failures[..failures.len().min(60)].join("\n"));
}
