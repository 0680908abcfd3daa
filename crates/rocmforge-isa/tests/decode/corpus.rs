//! Machine code that the compiler emits.

use rocmforge_isa::Arch;
use rocmforge_test_support::llvm;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is recorded of each instruction set, and its kernels.
const RECORDED: [(Arch, &str, &str); 2] = [
    (Arch::Gfx1100, "compiled.txt.zst", "opcodes.hip"),
    (Arch::Gfx1201, "compiled-gfx1201.txt.zst", "opcodes-gfx1201.hip"),
];

pub(crate) fn corpus_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

#[test]
fn every_recorded_instruction_has_llvms_text() {
    for (arch, recorded, _) in RECORDED {
        has_llvms_text(arch, recorded);
    }
}

fn has_llvms_text(arch: Arch, recorded: &str) {
    let answers = llvm::read(&corpus_file(recorded));
    assert!(answers.len() > 4500, "only {} instructions are recorded", answers.len());
    let mnemonics: std::collections::BTreeSet<&str> = answers
        .iter()
        .filter_map(|answer| answer.text.as_deref()?.split(' ').next())
        .collect();
    assert!(mnemonics.len() > 300, "only {} mnemonics are recorded", mnemonics.len());
    let differences = llvm::differences(arch, &answers);
    assert!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        answers.len(),
        differences.join("\n")
    );
}

#[test]
#[ignore = "records LLVM's answers; needs clang++-19 and llvm-objdump-19"]
fn record() {
    for (arch, recorded, source) in RECORDED {
        record_one(arch, recorded, source);
    }
}

fn record_one(arch: Arch, recorded: &str, source: &str) {
    let folder = std::env::temp_dir().join(format!("rocmforge-corpus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let mut distinct = BTreeMap::new();
    for flags in [
        &["-O0"][..],
        &["-O1"],
        &["-O2"],
        &["-O3"],
        &["-Os"],
        &["-O3", "-ffast-math"],
    ] {
        let object = folder.join("object.co");
        let status = rocmforge_test_support::device_clang("clang++-19", arch.name())
            .args(["-std=c++17", "-mcode-object-version=5"])
            .args(flags)
            .arg(corpus_file(source))
            .arg("-o")
            .arg(&object)
            .status()
            .expect("clang++-19");
        assert!(status.success());
        for answer in llvm::objdump("llvm-objdump-19", arch, &object) {
            distinct.insert(answer.words, answer.text);
        }
    }
    let answers: Vec<_> = distinct
        .into_iter()
        .map(|(words, text)| llvm::Answer { words, text })
        .collect();
    llvm::record(&corpus_file(recorded), &answers);
    std::fs::remove_dir_all(&folder).expect("removable");
    println!("{} distinct {arch} instructions", answers.len());
}
