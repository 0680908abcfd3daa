//! llama.cpp's `llama-bench` on the same file.

use std::path::Path;
use std::process::Command;

use super::{Failure, Work};

/// Tokens a second of one run.
pub(crate) fn run(program: &Path, model: &Path, kv: &str, work: Work) -> Result<f64, Failure> {
    let (prompt, tokens, depth) = match work {
        Work::Prompt(tokens) => (tokens, 0, 0),
        Work::Decode { tokens, depth, .. } => (0, tokens, depth),
    };
    let output = Command::new(program)
        .arg("-m")
        .arg(model)
        .args(["-ngl", "99", "-fa", "1", "-r", "1", "-o", "json"])
        .args(["-ctk", kv, "-ctv", kv])
        .args([
            "-p",
            &prompt.to_string(),
            "-n",
            &tokens.to_string(),
            "-d",
            &depth.to_string(),
        ])
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed:\n{text}", program.display()).into());
    }
    let runs: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let speed = runs[0]["avg_ts"].as_f64();
    speed.ok_or_else(|| format!("{} printed no avg_ts", program.display()).into())
}
