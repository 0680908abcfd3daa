//! Findings: reports of the simulator, printed when they appear, each pair of places or calls once.

use crate::call_stack::CallStacks;
use crate::record::{Record, Records};
use crate::settings::Settings;
use parking_lot::{Mutex, MutexGuard};
use rocmforge_sim::{Counters, Report, ReportFilter, ReportKind, Side, Site};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What two reports share that are one finding: kind, and for each side the place in the kernel's source or the call.
type Identity = (ReportKind, Vec<Site>, Option<(u64, u64)>);

/// Those of this process.
pub(crate) struct Findings {
    log: Option<PathBuf>,
    print_limit: u64,
    suppressions: Vec<ReportFilter>,
    /// Reports of the simulator that were looked at.
    seen: AtomicU64,
    known: Mutex<Known>,
}

/// What was found so far.
#[derive(Default)]
pub(crate) struct Known {
    /// Findings, and how often they occurred.
    found: HashMap<Identity, u64>,
    /// Those that a suppression fits.
    suppressed: HashSet<Identity>,
}

/// How much was found.
#[derive(Clone, Copy)]
pub(crate) struct Totals {
    /// Findings, each pair of places or calls counted once.
    pub(crate) findings: u64,
    /// How often they occurred.
    pub(crate) found: u64,
    /// Findings that a suppression fits.
    pub(crate) suppressed: u64,
}

impl Findings {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            log: settings.log.clone(),
            print_limit: settings.print_limit,
            suppressions: settings.suppressions.clone(),
            seen: AtomicU64::new(0),
            known: Mutex::default(),
        }
    }

    /// Whether the simulator has made reports that were not looked at.
    pub(crate) fn is_behind(&self, reported: u64) -> bool {
        self.seen.load(Ordering::Relaxed) < reported
    }

    /// Prints and records those of `reports` that are new.
    pub(crate) fn add(&self, reports: Vec<Report>, reported: u64, stacks: &CallStacks, records: &Records) {
        self.seen.fetch_max(reported, Ordering::Relaxed);
        let mut known = self.known.lock();
        for report in reports {
            if let Some(suppression) = self.suppressions.iter().position(|filter| filter.fits(&report)) {
                if known.suppressed.insert(identity(&report)) {
                    records.add(&Record::Suppressed {
                        suppression,
                        tool: report.kind.tool().to_string(),
                        report: serde_json::to_value(&report).unwrap_or_default(),
                    });
                }
                continue;
            }
            let count = known.found.entry(identity(&report)).or_default();
            *count += report.count.max(1);
            if *count > report.count.max(1) {
                continue;
            }
            let stack = stacks.of(report.call);
            let text = text(&report, &stack, stacks);
            let printed = known.found.len() as u64;
            if self.print_limit == 0 || printed <= self.print_limit {
                say(self.log.as_deref(), &text);
            }
            records.add(&Record::Finding {
                tool: report.kind.tool().to_string(),
                text,
                report: serde_json::to_value(&report).unwrap_or_default(),
                stack,
            });
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        let known = self.known.lock();
        Totals {
            findings: known.found.len() as u64,
            found: known.found.values().sum(),
            suppressed: known.suppressed.len() as u64,
        }
    }

    /// Prints warnings about kernels, notes about the program's code, and the summary. Where launches are `selected`, how many were checked; with
    /// the seed of a random order, whether time may have had a part in it.
    pub(crate) fn end(
        &self,
        absent: &BTreeMap<String, u64>,
        counters: Counters,
        warnings: &[Report],
        notes: &[String],
        selected: bool,
        seed: Option<u64>,
    ) {
        let Totals {
            findings,
            found,
            suppressed,
        } = self.totals();
        let mut text = self.warnings(warnings);
        for note in notes {
            let _ = writeln!(text, "{PREFIX} {note}");
        }
        for (name, calls) in absent {
            let _ = writeln!(
                text,
                "{PREFIX} {name} is not simulated; called {calls} times, answered that it is not supported"
            );
        }
        if let Some(seed) = seed {
            let threads = (counters.threads > 1).then(|| format!("{} threads called HIP", counters.threads));
            let unattended = (counters.unattended > 0)
                .then(|| format!("{} operations ran while the program made no call", counters.unattended));
            let reasons: Vec<_> = threads.into_iter().chain(unattended).collect();
            if !reasons.is_empty() {
                let _ = writeln!(
                    text,
                    "{PREFIX} --seed {seed} may give another run next time: {}",
                    reasons.join(", ")
                );
            }
        }
        let unprinted = match self.print_limit {
            0 => 0,
            limit => findings.saturating_sub(limit),
        };
        if unprinted > 0 {
            let _ = writeln!(text, "{PREFIX} {unprinted} more not printed: see --print-limit");
        }
        if selected {
            let _ = writeln!(
                text,
                "{PREFIX} {} of {} launches checked; {} findings in the others",
                counters.checked_launches, counters.launches, counters.unchecked_findings
            );
        }
        if suppressed > 0 {
            let _ = writeln!(text, "{PREFIX} {suppressed} suppressed");
        }
        let _ = writeln!(
            text,
            "{PREFIX} {findings} findings ({found} times), {} launches, {} wave instructions",
            counters.launches, counters.instructions
        );
        say(self.log.as_deref(), &text);
    }

    /// A line for each warning about a place in a kernel of which there is no finding.
    fn warnings(&self, warnings: &[Report]) -> String {
        let known = self.known.lock();
        let is_found = |warning: &&Report| {
            let own = warning.site();
            let mut all = known.found.keys().chain(&known.suppressed);
            all.any(|(kind, sites, _)| *kind == warning.kind && sites.contains(&own))
        };
        let of_memory = warnings.iter().filter(|warning| warning.is_of_memory());
        let mut text = String::new();
        for warning in of_memory.filter(|warning| !is_found(warning)) {
            let _ = writeln!(text, "{PREFIX} warning: {}", warning.line());
        }
        text
    }

    /// Keeps others from adding findings until the result is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

/// Start of every line, as with compute-sanitizer: it marks lines that are not the program's own output.
const PREFIX: &str = "=========";

fn identity(report: &Report) -> Identity {
    // Each leak is one of its own.
    let leak = (report.kind == ReportKind::Leak).then_some((report.call, report.address));
    let mut sites = vec![report.site()];
    sites.extend(report.other.as_deref().map(Side::site));
    sites.sort();
    (report.kind, sites, leak)
}

fn text(report: &Report, stack: &[String], stacks: &CallStacks) -> String {
    let mut text = String::new();
    for line in report.to_string().lines() {
        let _ = writeln!(text, "{PREFIX} {line}");
    }
    let mut section = |title: &str, frames: &[String]| {
        if frames.is_empty() {
            return;
        }
        let _ = writeln!(text, "{PREFIX}     {title}");
        for frame in frames {
            let _ = writeln!(text, "{PREFIX}         {frame}");
        }
    };
    section("host stack of the call:", stack);
    if let Some(other) = report.other.as_ref().filter(|other| other.call != report.call) {
        section("host stack of the other call:", &stacks.of(other.call));
    }
    if let Some(allocation) = report
        .allocation
        .as_ref()
        .filter(|allocation| allocation.allocated_by != report.call)
    {
        section("host stack of the allocation:", &stacks.of(allocation.allocated_by));
    }
    let _ = writeln!(text, "{PREFIX}");
    text
}

/// Prints to a file or to standard error. Nothing else can be done where that fails.
pub(crate) fn say(log: Option<&Path>, text: &str) {
    let written = match log {
        Some(path) => File::options()
            .append(true)
            .create(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes())),
        None => std::io::stderr().lock().write_all(text.as_bytes()),
    };
    let _ = written;
}
