//! Asking `llvm-mc` in batches.

use super::Error;
use super::classes::Target;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a program on this input, to its end.
pub(crate) fn piped(command: &mut Command, input: &[u8]) -> Result<Output, Error> {
    let tool = command.get_program().display().to_string();
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let ended = child.and_then(|mut child| {
        let mut stdin = child.stdin.take().expect("stdin is piped");
        std::thread::scope(|scope| {
            // A program that ends before it has read everything says why by its status.
            scope.spawn(move || stdin.write_all(input).ok());
            child.wait_with_output()
        })
    });
    ended.map_err(|source| Error::Start { tool, source })
}

/// Marks the end of one question's answer. Never asked about.
const MARK: &str = "0x5a 0x5a 0x80 0xbf";
const MARK_TEXT: &str = "s_nop 0x5a5a";

/// Text of the first instruction of each question, `None` when it is invalid. A question must be exactly one instruction.
pub(crate) fn disassemble(tool: &Path, target: Target, questions: &[Vec<u32>]) -> Result<Vec<Option<String>>, Error> {
    let mut answers = Vec::with_capacity(questions.len());
    for batch in questions.chunks(100_000) {
        answers.extend(disassemble_batch(tool, target, batch)?);
    }
    Ok(answers)
}

fn disassemble_batch(tool: &Path, target: Target, questions: &[Vec<u32>]) -> Result<Vec<Option<String>>, Error> {
    let mut input = String::new();
    for words in questions {
        // Brackets keep an instruction that wants more words from taking those of the next question.
        input.push('[');
        for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
            let _ = write!(input, "{byte:#04x} ");
        }
        let _ = writeln!(input, "]\n[{MARK}]");
    }
    let mut command = Command::new(tool);
    command
        .args(["-disassemble", "-arch=amdgcn"])
        .arg(format!("-mcpu={}", target.name()))
        .stderr(Stdio::piped());
    let output = piped(&mut command, input.as_bytes())?;
    let errors = failed_lines(&String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut answers = Vec::with_capacity(questions.len());
    let mut lines: Vec<&str> = Vec::new();
    for line in stdout.lines().map(str::trim) {
        if line == MARK_TEXT {
            let failed = errors.contains(&(2 * answers.len() + 1));
            let odd = lines.len() != 1 || lines[0].contains("/*") || lines[0].contains("src_lds_direct");
            answers.push((!failed && !odd).then(|| lines[0].to_string()));
            lines.clear();
        } else if !line.is_empty() && !line.starts_with('.') {
            lines.push(line);
        }
    }
    if answers.len() != questions.len() {
        return Err(Error::Shape(format!(
            "llvm-mc answered {} of {} questions",
            answers.len(),
            questions.len()
        )));
    }
    Ok(answers)
}

/// Numbers of the input lines with a warning or an error: `<stdin>:8:1: warning: …`.
fn failed_lines(text: &str) -> std::collections::HashSet<usize> {
    text.lines()
        .filter_map(|line| line.strip_prefix("<stdin>:")?.split(':').next()?.parse().ok())
        .collect()
}
