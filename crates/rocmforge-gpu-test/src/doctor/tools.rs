//! Compilers and ROCm installations.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::limited::{Ended, run_limited};

/// Compilers of device code that are looked for: the versions that can target RDNA3, and ROCm's own.
const CLANGS: [&str; 8] = [
    "clang++-21",
    "clang++-20",
    "clang++-19",
    "clang++-18",
    "clang++-17",
    "clang++-16",
    "clang++",
    "/opt/rocm/llvm/bin/clang++",
];
/// A compiler answers a question about itself at once, or is broken.
const PATIENCE: Duration = Duration::from_secs(5);

/// A compiler that answers.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    /// The command.
    pub(super) name: String,
    /// The first line of its version.
    pub(super) version: String,
    /// Whether it can compile for AMD GPUs; `None` where that is not asked of it.
    pub(super) amdgpu: Option<bool>,
}

fn output_of(name: &str, argument: &str) -> Option<String> {
    let (ended, text) = run_limited(Command::new(name).arg(argument), PATIENCE).ok()?;
    matches!(ended, Ended::With(status) if status.success()).then_some(text)
}

/// Every compiler found: for the host, then for the device.
pub(super) fn find() -> Vec<Tool> {
    let tool = |name: &str, device: bool| {
        let said = output_of(name, "--version")?;
        let version = said.lines().next().unwrap_or_default().trim().to_owned();
        let amdgpu =
            device.then(|| output_of(name, "--print-targets").is_some_and(|targets| targets.contains("amdgcn")));
        Some(Tool {
            name: name.to_owned(),
            version,
            amdgpu,
        })
    };
    let clangs = CLANGS.iter().filter_map(|name| tool(name, true));
    tool("cc", false).into_iter().chain(clangs).collect()
}

/// The ROCm installations in `opt`, as (folder, version).
pub(super) fn rocm_versions(root: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(root.join("opt")) else {
        return Vec::new();
    };
    let mut found: Vec<(String, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = std::fs::read_to_string(entry.path().join(".info/version")).ok()?;
            let version = version.lines().next()?.chars().take(40).collect();
            name.starts_with("rocm").then(|| (format!("/opt/{name}"), version))
        })
        .collect();
    found.sort();
    found
}
