//! Our text against `llvm-objdump`'s of the version that built the object.

use super::objects::{self, COMPILERS, Object};
use rocmforge_isa::Arch;
use rocmforge_test_support::llvm::{self, Answer};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Other ways to write what LLVM 22 writes, one of which is ours; LLVM 19's text is ours to the letter.
///
/// LLVM 22 names the half of a register everywhere, and beside a high half repeats it as `op_sel`. We, like LLVM 19, name
/// halves only where a high one is used (and in `v_mov_b16`), and then either so or as `op_sel`. Literals that an inline
/// constant could hold and rotating swizzles have names now, where LLVM 19 prints their numbers.
fn spellings(text: &str) -> Vec<String> {
    let text = plain_literals(&plain_swizzle(text));
    let without_halves = text.replace(".l", "").replace(".h", "");
    let without_op_sel = match text.split_once(" op_sel:[") {
        Some((before, after)) => format!("{before}{}", after.split_once(']').map_or("", |(_, rest)| rest)),
        None => text.clone(),
    };
    let high = text.contains(".h");
    let names_op_sel = text.contains(" op_sel:[");
    let mut spellings = vec![text];
    // Never both away at once: one of them tells the halves.
    if !high || names_op_sel {
        spellings.push(without_halves);
    }
    if high {
        spellings.push(without_op_sel);
    }
    spellings
}

/// `lit(0xffffffff)` is `-1` to LLVM 19.
fn plain_literals(text: &str) -> String {
    let Some((before, rest)) = text.split_once("lit(0x") else {
        return text.to_string();
    };
    let (digits, after) = rest.split_once(')').expect("closed");
    let value = u32::from_str_radix(digits, 16).expect("hexadecimal") as i32;
    if (-16..=64).contains(&value) {
        format!("{before}{value}{after}")
    } else {
        format!("{before}{value:#x}{after}")
    }
}

/// `swizzle(ROTATE,0,3)` and `swizzle(FFT,28)` are numbers to LLVM 19.
fn plain_swizzle(text: &str) -> String {
    for (name, base) in [("ROTATE", 0xc000), ("FFT", 0xe000)] {
        if let Some((before, rest)) = text.split_once(&format!("swizzle({name},")) {
            let fields: Vec<u32> = rest
                .trim_end_matches(')')
                .split(',')
                .map(|n| n.parse().expect("a number"))
                .collect();
            let value = match fields[..] {
                [direction, by] => base | direction << 10 | by << 5,
                [mask] => base | mask,
                _ => panic!("{text}"),
            };
            return format!("{before}{value}");
        }
    }
    text.to_string()
}

fn file(compiler: &str) -> String {
    format!("text-{compiler}.zst")
}

pub(crate) fn distinct(objects: &[Object], arch: Arch, compiler: &str, folder: &Path) -> Vec<Answer> {
    let mut distinct = BTreeMap::new();
    for object in objects.iter().filter(|object| object.compiler() == compiler) {
        let path = folder.join("object.co");
        std::fs::write(&path, &object.elf).expect("writable");
        for answer in llvm::objdump(&format!("llvm-objdump-{compiler}"), arch, &path) {
            distinct.insert(answer.words, answer.text);
        }
    }
    distinct
        .into_iter()
        .map(|(words, text)| Answer { words, text })
        .collect()
}

/// Records LLVM's text of every distinct instruction; gives their number.
pub(crate) fn record(objects: &[Object], compiler: &str, folder: &Path) -> usize {
    let answers = distinct(objects, Arch::Gfx1100, compiler, folder);
    llvm::record(&objects::path(&file(compiler)), &answers);
    answers.len()
}

fn recorded(compiler: &str) -> Vec<Answer> {
    llvm::read(&objects::path(&file(compiler)))
}

/// Lines that tell where our text is none of LLVM's spellings.
pub(crate) fn differences(arch: Arch, compiler: &str, mut answers: Vec<Answer>) -> Vec<String> {
    for answer in &mut answers {
        let text = answer.text.take().expect("an instruction");
        let ours = llvm::ours(arch, &answer.words).map(|(text, _)| text);
        let same = ours
            .ok()
            .filter(|ours| compiler == "22" && spellings(&text).contains(ours));
        answer.text = Some(same.unwrap_or(text));
    }
    llvm::differences(arch, &answers)
}

#[test]
fn every_recorded_instruction_has_llvms_text() {
    let mut mnemonics = BTreeSet::new();
    for compiler in COMPILERS {
        let answers = recorded(compiler);
        let count = answers.len();
        assert!(count > 10_000, "only {count} instructions are recorded");
        for text in answers.iter().flat_map(|answer| &answer.text) {
            mnemonics.insert(text.split(' ').next().unwrap_or_default().to_string());
        }
        let differences = differences(Arch::Gfx1100, compiler, answers);
        println!(
            "clang {compiler}: {count} distinct instructions, {} differ",
            differences.len()
        );
        assert!(
            differences.is_empty(),
            "{} of {count}:\n{}",
            differences.len(),
            differences.join("\n")
        );
    }
    println!("{} mnemonics", mnemonics.len());
    assert!(mnemonics.len() > 400, "only {} mnemonics", mnemonics.len());
}

#[test]
fn the_recorded_text_is_what_llvm_says_now() {
    let folder = std::env::temp_dir().join(format!("rocmforge-exotic-text-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    for compiler in COMPILERS {
        if !llvm::installed(&format!("llvm-objdump-{compiler}")) {
            continue;
        }
        let now = distinct(&objects::read(), Arch::Gfx1100, compiler, &folder);
        let then = recorded(compiler);
        assert_eq!(now.len(), then.len());
        for (now, then) in now.iter().zip(&then) {
            assert_eq!((&now.words, &now.text), (&then.words, &then.text));
        }
    }
    std::fs::remove_dir_all(&folder).expect("removable");
}
