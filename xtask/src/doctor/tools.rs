//! Compilers and ROCm installations, and commands that may take only so long.

use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

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
/// More than any answer of interest.
const MOST_OUTPUT: u64 = 1 << 20;

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

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself, with this status.
    With(ExitStatus),
    /// It was stopped when its time was over.
    TimedOut,
}

/// Runs `command` for at most `limit` and returns what it wrote to its standard output, as far as it came.
pub(super) fn run_limited(command: &mut Command, limit: Duration) -> std::io::Result<(Ended, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (sender, output) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Not joined: a process that the child left behind may hold the pipe open for ever.
        thread::spawn(move || {
            let mut stdout = stdout.take(MOST_OUTPUT);
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut chunk) {
                if sender.send(chunk[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
    }
    let deadline = Instant::now() + limit;
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Ended::With(status);
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            break Ended::TimedOut;
        }
        thread::sleep(Duration::from_millis(10));
    };
    let mut bytes = Vec::new();
    while let Ok(chunk) = output.recv_timeout(Duration::from_millis(200)) {
        bytes.extend(chunk);
    }
    Ok((ended, String::from_utf8_lossy(&bytes).into_owned()))
}

fn output_of(name: &str, argument: &str) -> Option<String> {
    let (ended, text) = run_limited(Command::new(name).arg(argument), PATIENCE).ok()?;
    matches!(ended, Ended::With(status) if status.success()).then_some(text)
}

/// Every compiler found: for the host, then for the device.
pub(super) fn find() -> Vec<Tool> {
    let tool = |name: &str, device: bool| {
        let version = output_of(name, "--version")?
            .lines()
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned();
        let amdgpu =
            device.then(|| output_of(name, "--print-targets").is_some_and(|targets| targets.contains("amdgcn")));
        Some(Tool {
            name: name.to_owned(),
            version,
            amdgpu,
        })
    };
    tool("cc", false)
        .into_iter()
        .chain(CLANGS.iter().filter_map(|name| tool(name, true)))
        .collect()
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
