//! `cargo xtask tidy`: the repository's own rules, checked on every file git tracks.

mod front_page;
mod paths;
mod profile;
mod prose;

use crate::workspace_root;
use rocmforge_gpu_test::{Outcome, say};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longest Rust file: beyond this it holds several subjects.
const MAX_LINES: usize = 800;
/// Generated files, which are not read from top to bottom.
const GENERATED: &[&str] = &[
    "crates/rocmforge-isa/src/op.rs",
    "crates/rocmforge-isa/src/tables/gfx1100.rs",
    "crates/rocmforge-isa/src/tables/gfx1201.rs",
];

#[derive(Debug, thiserror::Error)]
#[error("{} broken rules:\n{}", .0.len(), .0.iter().map(|broken| format!("  {broken}\n")).collect::<String>())]
struct TidyError(Vec<Broken>);

/// A rule that does not hold.
#[derive(Debug, PartialEq, Eq)]
struct Broken {
    path: PathBuf,
    line: Option<usize>,
    rule: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.rule),
            None => write!(f, "{}: {}", self.path.display(), self.rule),
        }
    }
}

/// Checks every rule and fails if one is broken.
pub(crate) fn run() -> Outcome {
    let root = workspace_root();
    let files = tracked_files(root)?;
    let mut broken = Vec::new();
    for path in &files {
        // A file with bytes that are no text has no lines to check.
        if let Ok(text) = std::fs::read_to_string(root.join(path)) {
            check_text(root, path, &text, &mut broken);
        }
    }
    front_page::check(root, &mut broken)?;
    profile::check(root, &mut broken)?;
    if !broken.is_empty() {
        return Err(TidyError(broken).into());
    }
    say!("tidy: {} files, no broken rule", files.len());
    Ok(())
}

fn tracked_files(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    let output = command.args(["ls-files", "-z"]).current_dir(root).output()?;
    let listing = String::from_utf8_lossy(&output.stdout);
    let paths = listing.split('\0').filter(|path| !path.is_empty());
    Ok(paths.map(PathBuf::from).collect())
}

/// What must not stand in a file, and why. Written in pieces, so that this file does not break its own rules.
fn forbidden(path: &Path) -> Vec<(&'static str, &'static str)> {
    let mut rules = vec![
        (concat!("/ho", "me/"), "a path of somebody's machine"),
        (concat!("/ro", "ot/"), "a path of somebody's machine"),
        (concat!("/wo", "rk/"), "a path of somebody's machine"),
    ];
    if path.extension().is_some_and(|extension| extension == "rs") {
        rules.extend([
            (concat!("to", "do!("), "unfinished code; return a typed error"),
            (concat!("unim", "plemented!("), "unfinished code; return a typed error"),
        ]);
        // The simulator, the ABI, the drop-in library and these checks name everything; the sanitizer's host programs are foreign
        // ones, faults included.
        let names_all = [
            "crates/rocmforge-sim",
            "crates/rocmforge-hip-sys",
            "crates/rocmforge-hip",
            "crates/rocmforge-sanitize/tests/host",
            "xtask",
        ];
        if !names_all.iter().any(|allowed| path.starts_with(allowed)) {
            rules.extend([
                (
                    concat!("hipDevice", "Synchronize"),
                    "wait for a stream, with a deadline",
                ),
                (
                    concat!("hipDevice", "Reset"),
                    "it frees memory under live handles; end the process",
                ),
            ]);
        }
    }
    rules
}

fn check_text(root: &Path, path: &Path, text: &str, broken: &mut Vec<Broken>) {
    let report = |line: Option<usize>, rule: String| Broken {
        path: path.to_owned(),
        line,
        rule,
    };
    let rules = forbidden(path);
    for (number, line) in text.lines().enumerate() {
        for (pattern, why) in &rules {
            if line.contains(pattern) {
                broken.push(report(Some(number + 1), format!("`{pattern}`: {why}")));
            }
        }
        let words = prose::metaphors(path, line).into_iter();
        let paths = paths::missing(root, path, line).into_iter();
        let paths = paths.map(|missing| format!("`{missing}` does not exist"));
        broken.extend(words.chain(paths).map(|rule| report(Some(number + 1), rule)));
    }
    broken.extend(prose::first_line(path, text).map(|rule| report(Some(1), rule)));
    let lines = text.lines().count();
    let rust = path.extension().is_some_and(|extension| extension == "rs");
    if rust && lines > MAX_LINES && !GENERATED.iter().any(|generated| path == Path::new(generated)) {
        broken.push(report(
            None,
            format!("{lines} lines; a file has one subject and at most {MAX_LINES} lines"),
        ));
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let dated = name.is_some_and(names_a_date);
    if path.starts_with("docs") && dated {
        broken.push(report(None, "docs are kept true, not dated".to_owned()));
    }
}

/// Whether a name contains something like 2026-01.
fn names_a_date(name: &str) -> bool {
    name.as_bytes().windows(7).any(|w| {
        w[..2] == *b"20" && w[2].is_ascii_digit() && w[3].is_ascii_digit() && w[4] == b'-' && w[5].is_ascii_digit()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_broken_by(path: &str, text: &str) -> Vec<String> {
        let mut broken = Vec::new();
        check_text(workspace_root(), Path::new(path), text, &mut broken);
        broken.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_rule_is_found_where_it_is_broken() {
        let machine = format!("fine\nlet x = \"/{}/me/x\";\n", "home");
        assert!(rules_broken_by("a.rs", &machine)[0].starts_with("a.rs:2:"));
        assert_eq!(rules_broken_by("a.rs", &format!("{}!()", "todo")).len(), 1);
        assert_eq!(rules_broken_by("docs/report-2026-01-11.md", "x").len(), 1);
        assert_eq!(rules_broken_by("a.rs", &"x\n".repeat(MAX_LINES + 1)).len(), 1);
        let synchronise = format!("//! Waits.\nhipDevice{}()", "Synchronize");
        assert_eq!(
            rules_broken_by("crates/rocmforge-runtime/src/x.rs", &synchronise).len(),
            1
        );
        assert_eq!(rules_broken_by("crates/rocmforge-sim/src/x.rs", &synchronise).len(), 0);
    }

    #[test]
    fn a_clean_file_breaks_nothing() {
        assert_eq!(
            rules_broken_by("docs/memory.md", "The budget is a promise.\n"),
            Vec::<String>::new()
        );
    }
}
