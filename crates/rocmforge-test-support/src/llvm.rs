//! LLVM's disassemblers: asks them, and reads and writes the files that keep their answers.

use rocmforge_isa::{Arch, decode_for};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What LLVM makes of words: text, or nothing when they are no instruction.
pub struct Answer {
    /// The words of an instruction, or those that were asked about.
    pub words: Vec<u32>,
    /// LLVM's text.
    pub text: Option<String>,
}

/// True when the tool is installed; says so when it is not, because then a test checks less.
#[allow(clippy::print_stderr)] // a test that checks less says so
pub fn installed(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        eprintln!("{tool} is not installed: only the recorded answers are checked");
    }
    found
}

/// Answers that are kept in a file.
pub fn read(path: &Path) -> Vec<Answer> {
    let bytes = std::fs::read(path).expect("the recorded answers are committed");
    let text = String::from_utf8(zstd::decode_all(&bytes[..]).expect("zstd")).expect("UTF-8");
    text.lines()
        .map(|line| {
            let (words, text) = line.split_once('\t').expect("words, a tab, text");
            Answer {
                words: hex(words),
                text: (text != "!").then(|| text.to_string()),
            }
        })
        .collect()
}

/// Keeps answers in a file.
pub fn record(path: &Path, answers: &[Answer]) {
    let mut text = String::new();
    for answer in answers {
        let words: Vec<String> = answer.words.iter().map(|word| format!("{word:08x}")).collect();
        let _ = writeln!(text, "{}\t{}", words.join(" "), answer.text.as_deref().unwrap_or("!"));
    }
    std::fs::write(path, zstd::encode_all(text.as_bytes(), 19).expect("zstd")).expect("writable");
}

/// Words in hexadecimal, with spaces between them.
pub fn hex(words: &str) -> Vec<u32> {
    words
        .split_whitespace()
        .map(|word| u32::from_str_radix(word, 16).expect("hexadecimal"))
        .collect()
}

/// Instructions of an object by a version's `llvm-objdump`: words and text.
pub fn objdump(tool: &str, arch: Arch, object: &Path) -> Vec<Answer> {
    let output = Command::new(tool)
        .arg("-d")
        .arg(format!("--mcpu={arch}"))
        .arg(object)
        .output()
        .expect("objdump");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        let (text, comment) = line.strip_prefix('\t')?.split_once("// ")?;
        let words = comment.split_once(": ")?.1;
        let words = words.split_once('<').map_or(words, |(words, _)| words);
        Some(Answer {
            words: hex(words),
            text: Some(text.trim().to_string()),
        })
    };
    text.lines().filter_map(line).collect()
}

/// Asks `llvm-mc` about up to three words each. The first prefix that is one instruction counts.
pub fn machine_code(arch: Arch, questions: &[Vec<u32>]) -> Vec<Answer> {
    const MARK: &str = "s_nop 0x5a5a";
    let mut input = String::new();
    for words in questions {
        for count in 1..=words.len() {
            let bytes = words[..count].iter().flat_map(|word| word.to_le_bytes());
            let bytes: Vec<String> = bytes.map(|byte| format!("{byte:#04x}")).collect();
            let _ = writeln!(input, "[{}]\n[0x5a 0x5a 0x80 0xbf]", bytes.join(" "));
        }
    }
    let mut child = Command::new("llvm-mc-19")
        .args(["-disassemble", "-arch=amdgcn"])
        .arg(format!("-mcpu={arch}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("llvm-mc-19");
    let mut stdin = child.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("llvm-mc-19");
    writer.join().expect("no panic").expect("llvm-mc reads its input");
    let errors: std::collections::HashSet<usize> = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter_map(|line| line.strip_prefix("<stdin>:")?.split(':').next()?.parse().ok())
        .collect();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut blocks = Vec::new();
    let mut block = Vec::new();
    for line in stdout
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('.') && !line.is_empty())
    {
        if line == MARK {
            let good = !errors.contains(&(2 * blocks.len() + 1)) && block.len() == 1;
            let text: Option<String> = block.first().cloned().filter(|_| good);
            // Comments mark operands that the operation cannot have, except in `s_delay_alu`, where any value is allowed.
            blocks.push(text.filter(|text| text.starts_with("s_delay_alu") || !text.contains("/*")));
            block.clear();
        } else {
            block.push(line.to_string());
        }
    }
    let mut blocks = blocks.into_iter();
    let answer = |words: &Vec<u32>| {
        let tries: Vec<Option<String>> = blocks.by_ref().take(words.len()).collect();
        assert_eq!(tries.len(), words.len(), "llvm-mc answers every question");
        match tries.iter().position(Option::is_some) {
            Some(at) => Answer {
                words: words[..=at].to_vec(),
                text: tries[at].clone(),
            },
            None => Answer {
                words: words.clone(),
                text: None,
            },
        }
    };
    questions.iter().map(answer).collect()
}

/// Our text and size in words, or the error.
pub fn ours(arch: Arch, words: &[u32]) -> Result<(String, usize), rocmforge_isa::DecodeError> {
    decode_for(arch, words, 0).map(|inst| (inst.to_string(), usize::from(inst.size / 4)))
}

/// Lines that tell where we and LLVM differ, for instructions that LLVM knows.
pub fn differences(arch: Arch, answers: &[Answer]) -> Vec<String> {
    let mut out = Vec::new();
    for Answer { words, text } in answers {
        let Some(text) = text else { continue };
        match ours(arch, words) {
            Ok((ours, size)) if ours == *text && size == words.len() => {}
            Ok((ours, size)) => out.push(format!("{words:08x?}: LLVM `{text}`, ours `{ours}` ({size} words)")),
            Err(error) => out.push(format!("{words:08x?}: LLVM `{text}`, ours: {error}")),
        }
    }
    out
}
