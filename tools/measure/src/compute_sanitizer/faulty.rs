//! The faulty kernels: what ours finds in them, and what NVIDIA's tools find.

use super::findings::Finding;
use super::process::Tool;
use crate::workspace_root;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

const DIRECTORY: &str = "crates/rocmforge-sanitize/tests/kernels";

/// A source with a faulty kernel.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// `memcheck/read_past_end`
    pub(super) name: String,
    /// What ours reports, which its own tests hold it to, with the lines.
    marks: BTreeMap<String, BTreeSet<u32>>,
}

impl Source {
    fn read(name: String, text: &str) -> Self {
        let mut marks: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<&str> = text.split_whitespace().collect();
            for pair in words.windows(2).filter(|pair| pair[0] == "FAULT:") {
                marks.entry(pair[1].to_owned()).or_default().insert(line);
            }
        }
        Self { name, marks }
    }

    /// The kinds of its reports.
    fn kinds(&self) -> String {
        self.marks.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// The sources whose faults mean the same on an NVIDIA card, by name.
pub(super) fn sources() -> std::io::Result<Vec<Source>> {
    let root = workspace_root().join(DIRECTORY);
    let amd_only = std::fs::read_to_string(root.join("amd-only.txt"))?;
    let amd_only: BTreeSet<&str> = amd_only.lines().filter_map(|line| line.split(' ').next()).collect();
    let mut found = Vec::new();
    for tool in Tool::ALL {
        for entry in std::fs::read_dir(root.join(tool.name()))? {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{}/{stem}", tool.name());
            if !amd_only.contains(name.as_str()) {
                let text = std::fs::read_to_string(&path)?;
                found.push(Source::read(name, &text));
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// How near a finding comes to the marked fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nearness {
    /// It names a marked line.
    Line,
    /// It names the kernel, at another line or at none.
    Kernel,
}

/// What one tool says of one faulty kernel.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) tool: Tool,
    pub(super) nearness: Nearness,
    pub(super) what: String,
}

/// The tool's findings about the faulty kernel itself, of each kind the nearest.
pub(super) fn verdicts(source: &Source, tool: Tool, findings: &[Finding]) -> Vec<Verdict> {
    let file = format!("{}.hip", source.name);
    let kernel = format!("{}_faulty", source.name.replace('/', "_"));
    let about_it = |finding: &&Finding| finding.kernels.iter().any(|name| name.starts_with(&kernel));
    let mut found: Vec<Verdict> = Vec::new();
    for finding in findings.iter().filter(about_it) {
        let marked = finding.places.iter().any(|place| {
            let lines = source.marks.values().flatten();
            Path::new(&place.file).ends_with(&file) && lines.clone().any(|line| *line == place.line)
        });
        let nearness = if marked { Nearness::Line } else { Nearness::Kernel };
        match found.iter_mut().find(|verdict| verdict.what == finding.what) {
            Some(verdict) => verdict.nearness = verdict.nearness.min(nearness),
            None => found.push(Verdict {
                tool,
                nearness,
                what: finding.what.clone(),
            }),
        }
    }
    found
}

/// A faulty kernel and every tool's word.
pub(super) struct Row {
    pub(super) source: Source,
    pub(super) verdicts: Vec<Verdict>,
    /// What HIP's calls answered, where that was an error, and kernels that did not come to their end.
    pub(super) calls: Vec<String>,
}

/// How far a process came with its faulty kernels.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Those that ended, each with what HIP said.
    pub(super) ended: Vec<(String, String)>,
    /// The one that did not.
    pub(super) stuck: Option<String>,
}

/// What is said of a kernel whose calls all succeeded.
pub(super) const NOTHING: &str = "HIP says nothing";

/// Reads it from the output.
pub(super) fn progress(output: &str) -> Progress {
    let mut progress = Progress {
        ended: Vec::new(),
        stuck: None,
    };
    for line in output.lines().filter_map(|line| line.strip_prefix("FAULTY ")) {
        if let Some(name) = line.strip_suffix(" begins") {
            progress.stuck = Some(name.to_owned());
        } else if let Some((name, said)) = line.split_once(" ends: ") {
            progress.ended.push((name.to_owned(), said.to_owned()));
            progress.stuck = None;
        }
    }
    progress
}

/// The table of all faulty kernels, in Markdown: a row a kind of fault, and then a row a kernel.
pub(super) struct Table<'a>(pub(super) &'a [Row]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut classes: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
        for row in self.0 {
            classes.entry(row.source.kinds()).or_default().push(row);
        }
        writeln!(
            f,
            "| fault | faulty kernels | ours | compute-sanitizer | of them at the line | it says nothing of |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for (kinds, rows) in classes {
            let found = rows.iter().filter(|row| !row.verdicts.is_empty()).count();
            let at_line = |row: &&&Row| row.verdicts.iter().any(|verdict| verdict.nearness == Nearness::Line);
            let exact = rows.iter().filter(at_line).count();
            let silent = rows.iter().filter(|row| row.verdicts.is_empty());
            let silent: Vec<&str> = silent.map(|row| row.source.name.as_str()).collect();
            let n = rows.len();
            writeln!(f, "| {kinds} | {n} | {n} | {found} | {exact} | {} |", silent.join(", "))?;
        }
        writeln!(f, "\n| kernel | ours | compute-sanitizer |\n|---|---|---|")?;
        for row in self.0 {
            let mut said: Vec<String> = row
                .verdicts
                .iter()
                .map(|verdict| {
                    let at = match verdict.nearness {
                        Nearness::Line => "",
                        Nearness::Kernel => " (another line)",
                    };
                    format!("{}: {}{at}", verdict.tool.name(), verdict.what)
                })
                .collect();
            said.extend(row.calls.iter().cloned());
            let said = if said.is_empty() {
                "-".to_owned()
            } else {
                said.join("; ")
            };
            writeln!(f, "| {} | {} | {said} |", row.source.name, row.source.kinds())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::{Finding, Place};
    use super::*;

    fn finding(what: &str, file: &str, line: u32) -> Finding {
        Finding {
            what: what.to_owned(),
            places: vec![Place {
                file: file.to_owned(),
                line,
            }],
            kernels: vec!["memcheck_x_faulty".to_owned()],
            is_call: false,
        }
    }

    #[test]
    fn a_finding_at_a_marked_line_is_nearer_than_one_elsewhere() {
        let source = Source::read("memcheck/x".to_owned(), "int a;\ny[i] = 1; // FAULT: OutOfBounds\n");
        assert_eq!(source.kinds(), "OutOfBounds");
        let file = "crates/rocmforge-sanitize/tests/kernels/memcheck/x.hip";
        let anothers = Finding {
            kernels: vec!["memcheck_y_faulty".to_owned()],
            ..finding("another's", file, 2)
        };
        let both = [
            finding("Invalid write", file, 1),
            finding("Invalid write", file, 2),
            anothers,
        ];
        let found = verdicts(&source, Tool::Memcheck, &both);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].nearness, found[0].what.as_str()),
            (Nearness::Line, "Invalid write")
        );
        let elsewhere = verdicts(
            &source,
            Tool::Memcheck,
            &[finding("Invalid write", "memcheck/y.hip", 2)],
        );
        assert_eq!(elsewhere[0].nearness, Nearness::Kernel);
        let row = Row {
            source,
            verdicts: found,
            calls: vec!["hipStreamQuery answers X".to_owned()],
        };
        let table = Table(&[row]).to_string();
        assert!(table.contains("| OutOfBounds | 1 | 1 | 1 | 1 |  |"), "{table}");
        assert!(
            table.contains("| memcheck/x | OutOfBounds | memcheck: Invalid write; hipStreamQuery answers X |"),
            "{table}"
        );
    }

    #[test]
    fn progress_tells_what_ended_and_what_did_not() {
        let output =
            "running\nFAULTY a/b begins\n========= x\nFAULTY a/b ends: HIP says nothing\n\nFAULTY a/c begins\n";
        let expected = Progress {
            ended: vec![("a/b".to_owned(), NOTHING.to_owned())],
            stuck: Some("a/c".to_owned()),
        };
        assert_eq!(progress(output), expected);
    }

    #[test]
    fn the_sources_are_those_that_mean_the_same() {
        let names: Vec<String> = sources().unwrap().into_iter().map(|source| source.name).collect();
        assert!(names.len() >= 60, "{}", names.len());
        assert!(names.contains(&"synccheck/lane_branch".to_owned()));
        assert!(
            !names.contains(&"initcheck/register".to_owned()),
            "it is AMD's assembly"
        );
    }
}
