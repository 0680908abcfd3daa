//! What the compiler emits.

use crate::llvm;
use std::collections::BTreeMap;
use std::process::Command;

const RECORDED: &str = "compiled.txt.zst";

#[test]
fn every_recorded_instruction_has_llvms_text() {
    let answers = llvm::read(RECORDED);
    assert!(answers.len() > 4500, "only {} instructions are recorded", answers.len());
    let mnemonics: std::collections::BTreeSet<&str> = answers
        .iter()
        .filter_map(|answer| answer.text.as_deref()?.split(' ').next())
        .collect();
    assert!(mnemonics.len() > 300, "only {} mnemonics are recorded", mnemonics.len());
    let differences = llvm::differences(&answers);
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
        let status = Command::new("clang++-19")
            .args([
                "-x",
                "hip",
                "--cuda-device-only",
                "--no-gpu-bundle-output",
                "-nogpulib",
                "-nogpuinc",
                "-w",
            ])
            .args(["-std=c++17", "-mcode-object-version=5", "--offload-arch=gfx1100"])
            .args(flags)
            .arg(llvm::corpus_file("opcodes.hip"))
            .arg("-o")
            .arg(&object)
            .status()
            .expect("clang++-19");
        assert!(status.success());
        for answer in llvm::objdump(&object) {
            distinct.insert(answer.words, answer.text);
        }
    }
    let answers: Vec<_> = distinct
        .into_iter()
        .map(|(words, text)| llvm::Answer { words, text })
        .collect();
    llvm::record(RECORDED, &answers);
    std::fs::remove_dir_all(&folder).expect("removable");
    println!("{} distinct instructions", answers.len());
}
