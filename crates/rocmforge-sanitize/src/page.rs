//! Pages: what was found, as text and as JSON.

use crate::launch_file::Action;
use crate::object_file::plural;
use crate::outcome::{EndlessLaunch, Finding, Outcome, StoppedLaunch, is_of_same};
use crate::plan::Plan;
use crate::suppress::Suppressions;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A buffer that was to be written to a file.
#[derive(Serialize)]
pub(crate) struct Saved {
    pub(crate) buffer: String,
    pub(crate) file: PathBuf,
    /// None: the card had stopped or the buffer was freed, and nothing could be read.
    pub(crate) bytes: Option<usize>,
}

/// What is reported of an outcome.
pub(crate) struct Page<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) outcome: &'a Outcome,
    pub(crate) saved: &'a [Saved],
    pub(crate) suppressions: &'a Suppressions,
    /// Findings that are not suppressed.
    findings: Vec<&'a Finding>,
    /// How many of them are printed.
    printed: usize,
    /// Suppressions that fit nothing, by their index.
    unused: Vec<usize>,
}

impl<'a> Page<'a> {
    /// `limit` findings are printed at most; 0: all.
    pub(crate) fn new(
        plan: &'a Plan,
        outcome: &'a Outcome,
        saved: &'a [Saved],
        suppressions: &'a Suppressions,
        limit: usize,
    ) -> Self {
        let mut unused: Vec<usize> = (0..suppressions.all.len()).collect();
        let mut findings = Vec::new();
        for finding in &outcome.findings {
            match suppressions.of(finding) {
                Some(index) => unused.retain(|other| *other != index),
                None => findings.push(finding),
            }
        }
        let printed = if limit == 0 {
            findings.len()
        } else {
            limit.min(findings.len())
        };
        Self {
            plan,
            outcome,
            saved,
            suppressions,
            findings,
            printed,
            unused,
        }
    }

    /// Whether nothing was found that is not suppressed.
    pub(crate) fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn suppressed(&self) -> usize {
        self.outcome.findings.len() - self.findings.len()
    }

    fn launch(&self, index: usize) -> String {
        match self.plan.file.launches.get(index) {
            Some(launch) => format!("launch {index} at {}", launch.place),
            None => format!("launch {index}"),
        }
    }

    /// The page for people.
    pub(crate) fn text(&self) -> String {
        let outcome = self.outcome;
        let mut page = String::new();
        for finding in &self.findings[..self.printed] {
            page.push_str(&format!("{}\n", finding.report));
            page.push_str(&self.steps(finding));
            page.push_str(&self.seeds(finding));
        }
        let left = self.findings.len() - self.printed;
        if left > 0 {
            page.push_str(&format!(
                "{} not printed: see --print-limit\n",
                plural(left, "more fault")
            ));
        }
        for stopped in &outcome.stopped {
            page.push_str(&format!(
                "{} was stopped in {}: it has as many findings as are kept of one launch. Nothing after it has run, and no output is written\n",
                self.launch(stopped.launch),
                plural(stopped.seeds, "seed"),
            ));
        }
        for endless in &outcome.endless {
            let left_out = match endless.left_out {
                0 => String::new(),
                n => format!("; {} left it out, and what waits for it", plural(n, "later seed")),
            };
            page.push_str(&format!(
                "{} does not end: judged in seed {}{left_out}\n",
                self.launch(endless.launch),
                endless.seed,
            ));
        }
        for output in self.saved {
            let Saved { buffer, file, bytes } = output;
            match bytes {
                Some(bytes) => page.push_str(&format!("{buffer}: {bytes} B written to {}\n", file.display())),
                None if self.is_freed(buffer) => {
                    page.push_str(&format!("{buffer}: not written, it has been freed\n"));
                }
                None => page.push_str(&format!("{buffer}: not written, the kernel has stopped the card\n")),
            }
        }
        if outcome.differing > 0 {
            page.push_str(&format!(
                "outputs: {} of {} gave others than the first\n",
                outcome.differing,
                plural(outcome.seeds - outcome.incomplete, "seed")
            ));
        }
        if let Some(checked) = &self.plan.options.checked {
            page.push_str(&format!(
                "{} of {} checked; {} in the others\n",
                checked.iter().filter(|checked| **checked).count(),
                plural(checked.len(), "launch"),
                plural(outcome.unchecked, "finding"),
            ));
        }
        if self.suppressed() > 0 {
            page.push_str(&format!("{} suppressed\n", plural(self.suppressed(), "fault")));
        }
        for index in &self.unused {
            page.push_str(&format!(
                "{}: this suppression fits nothing\n",
                self.suppressions.all[*index].place
            ));
        }
        for warning in &outcome.warnings {
            if !outcome
                .findings
                .iter()
                .any(|finding| is_of_same(&finding.report, warning))
            {
                page.push_str(&format!("warning: {}\n", warning.line()));
            }
        }
        page.push_str(&self.last_line());
        page
    }

    fn last_line(&self) -> String {
        let found = match self.findings.len() {
            0 => "nothing found".to_owned(),
            n => plural(n, "fault"),
        };
        format!(
            "rocmforge-sanitize: {found} in {} ({}, {} wave instructions; {})\n",
            plural(self.plan.file.launches.len(), "launch"),
            plural(self.outcome.seeds, "seed"),
            self.outcome.instructions,
            self.tools().join(", "),
        )
    }

    fn seeds(&self, finding: &Finding) -> String {
        let Finding {
            seeds,
            first_seed,
            count,
            report,
            ..
        } = finding;
        let mut line = format!(
            "  in {seeds} of {}, first in seed {first_seed}",
            plural(self.outcome.seeds, "seed")
        );
        // Otherwise the report says how often.
        if *count > report.count * *seeds as u64 {
            line.push_str(&format!("; {count} times in all"));
        }
        line.push_str("\n\n");
        line
    }

    /// Which steps a finding is about, where there are several.
    fn steps(&self, finding: &Finding) -> String {
        let file = &self.plan.file;
        let place = |step: usize| {
            let step_of = file.steps.get(step).filter(|_| file.steps.len() > 1)?;
            Some(match step_of.action {
                Action::Launch(launch) => format!("launch {launch} at {}", step_of.place),
                _ => format!("step {step} at {}", step_of.place),
            })
        };
        let other = finding.other_step.filter(|other| finding.step != Some(*other));
        match (finding.step.and_then(place), other.and_then(place)) {
            (Some(one), Some(other)) => format!("  {one}; the other is {other}\n"),
            (Some(one), None) => format!("  {one}\n"),
            (None, _) => String::new(),
        }
    }

    /// Whether the last step about a buffer frees it.
    fn is_freed(&self, label: &str) -> bool {
        let file = &self.plan.file;
        let last = file.steps.iter().rev().find_map(|step| match step.action {
            Action::Free { buffer } => (file.buffers[buffer].label == label).then_some(true),
            Action::Alloc { buffer } => (file.buffers[buffer].label == label).then_some(false),
            _ => None,
        });
        last == Some(true)
    }

    fn tools(&self) -> Vec<&'static str> {
        let tools = self.plan.file.tools;
        let all = [
            ("memcheck", tools.memcheck),
            ("initcheck", tools.initcheck),
            ("racecheck", tools.racecheck),
            ("synccheck", tools.synccheck),
            ("init_registers", tools.init_registers),
        ];
        all.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect()
    }

    /// The page for machines.
    pub(crate) fn json(&self) -> String {
        let Self { plan, outcome, .. } = self;
        let objects: Vec<&Path> = plan.file.objects.iter().map(|object| object.path.as_path()).collect();
        let place = |index: &usize| self.suppressions.all[*index].place.to_string();
        let page = JsonPage {
            version: 1,
            status: if self.is_clean() { "clean" } else { "reports" },
            launch_file: &plan.file.place.file,
            object: objects.first().copied().unwrap_or(Path::new("")),
            objects: &objects,
            arch: plan.processor(),
            tools: self.tools(),
            seeds: outcome.seeds,
            launches: plan.file.launches.len(),
            checked_launches: plan.options.checked.as_deref(),
            unchecked_findings: outcome.unchecked,
            instructions: outcome.instructions,
            incomplete_seeds: outcome.incomplete,
            differing_outputs: outcome.differing,
            stopped_launches: &outcome.stopped,
            endless_launches: &outcome.endless,
            findings_in_all: self.findings.len(),
            suppressed: self.suppressed(),
            unused_suppressions: self.unused.iter().map(place).collect(),
            findings: &self.findings[..self.printed],
            outputs: self.saved,
        };
        match serde_json::to_string_pretty(&page) {
            Ok(text) => text + "\n",
            // Only a path that is no Unicode can do this.
            Err(error) => format!(
                "{{\"version\": 1, \"status\": \"unprintable\", \"error\": {:?}}}\n",
                error.to_string()
            ),
        }
    }
}

/// What `--format json` prints.
#[derive(Serialize)]
struct JsonPage<'a> {
    version: u32,
    status: &'static str,
    launch_file: &'a Path,
    object: &'a Path,
    objects: &'a [&'a Path],
    arch: &'a str,
    tools: Vec<&'static str>,
    seeds: usize,
    launches: usize,
    checked_launches: Option<&'a [bool]>,
    unchecked_findings: usize,
    instructions: u64,
    incomplete_seeds: usize,
    differing_outputs: usize,
    stopped_launches: &'a [StoppedLaunch],
    endless_launches: &'a [EndlessLaunch],
    findings_in_all: usize,
    suppressed: usize,
    unused_suppressions: Vec<String>,
    findings: &'a [&'a Finding],
    outputs: &'a [Saved],
}
