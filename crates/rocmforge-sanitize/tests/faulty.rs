//! Kernels with one fault each, and the same kernels without it (`tests/kernels/*/*.hip`), compiled at three levels of
//! optimisation.
//!
//! A source says in `//#` lines how it is launched, and marks its faulty lines: `FAULT: Kind` must be reported there under
//! every seed, `ALSO: Kind` may be. Nothing else may be reported, and nothing at all of the corrected kernel, which is
//! launched the same way: `//#-` lines are for the faulty launch only, `//#+` lines for the corrected one.

mod source;
mod faulty {
    mod unoptimised;
}

use rocmforge_kernels::Pack;
use rocmforge_sanitize::{LaunchFile, Plan, SeedRun, run_seed};
use rocmforge_sim::{Report, ReportKind};
use source::{Marker, Source, sources};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const LEVELS: [&str; 3] = ["O1", "O2", "O3"];
/// Seeds of each corrected kernel, which the levels share. `ROCMFORGE_SANITIZE_SEEDS=1000` is the long run.
const TWIN_SEEDS: u64 = 120;
/// For so many seeds of a corrected kernel each level of the faulty one gets one.
const TWINS_A_FAULT: u64 = 20;

fn twin_seeds() -> u64 {
    std::env::var("ROCMFORGE_SANITIZE_SEEDS").map_or(TWIN_SEEDS, |seeds| seeds.parse().expect("a number of seeds"))
}

/// The objects of both simulated cards.
fn packs() -> [Pack; 2] {
    let gfx1100: &[u8] = include_bytes!("kernels/prebuilt/gfx1100.pack");
    let gfx1201: &[u8] = include_bytes!("kernels/prebuilt/gfx1201.pack");
    [gfx1100, gfx1201].map(|bytes| Pack::read(bytes).expect("the pack is committed"))
}

/// Whether a kernel is of gfx1100 alone.
fn is_gfx1100_only(source: &Source) -> bool {
    let mut listed = include_str!("kernels/gfx1100-only.txt").lines();
    listed.any(|line| line.split(' ').next() == Some(&source.name))
}

/// Every source for each card that has it.
fn cards<'s>(packs: &'s [Pack; 2], sources: &'s [Source]) -> Vec<(&'s Source, &'s Pack)> {
    let both = sources
        .iter()
        .flat_map(|source| packs.iter().map(move |pack| (source, pack)));
    both.filter(|(source, pack)| std::ptr::eq(*pack, &packs[0]) || !is_gfx1100_only(source))
        .collect()
}

fn plan(pack: &Pack, source: &Source, level: &str, launch_file: &str) -> Plan {
    let name = format!("{}.{level}", source.name);
    let object = pack
        .object(&name)
        .expect("the pack is sound")
        .unwrap_or_else(|| panic!("{name}: run cargo xtask kernels build"));
    plan_of(&object, &name, launch_file)
}

fn plan_of(object: &[u8], name: &str, launch_file: &str) -> Plan {
    let text = format!("object = \"{name}.co\"\n{launch_file}");
    let file = LaunchFile::parse(Path::new(name), &text).unwrap_or_else(|error| panic!("{name}: {error}"));
    Plan::with_object(file, object).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs jobs on all processors and gives what went wrong.
fn in_parallel<J: Sync>(jobs: &[J], work: impl Fn(&J) -> Vec<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let wrong: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(work(job));
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    wrong
}

/// The marked lines of `source` that a side of a report names.
fn lines(source: &Source, frames: &[rocmforge_amdgcn::Frame]) -> BTreeSet<u32> {
    let file = format!("{}.hip", source.name);
    let of_source = frames.iter().filter(|frame| frame.file.ends_with(&file));
    of_source.map(|frame| frame.line).collect()
}

/// The markers a report hits, one for each of its sides; or what is wrong with it.
fn hits<'s>(source: &'s Source, report: &Report) -> Result<Vec<&'s Marker>, String> {
    let kind = format!("{:?}", report.kind);
    // A call of the host, such as the free before a use, has no line of the kernel.
    let other = report.other.as_ref().filter(|other| other.kernel.is_some());
    let sides = std::iter::once(&report.frames).chain(other.map(|other| &other.frames));
    // The head of a loop is on no line in code that is not optimised.
    let nowhere = |frames: &[rocmforge_amdgcn::Frame]| frames.first().is_some_and(|frame| frame.line == 0);
    let sides = sides.filter(|frames| report.kind != ReportKind::EndlessKernel || !nowhere(frames));
    let mut found = Vec::new();
    for frames in sides {
        let at = lines(source, frames);
        let marker = source.markers.iter().find(|m| m.kind == kind && at.contains(&m.line));
        found.push(marker.ok_or_else(|| format!("{kind} at {at:?} is not marked:\n{report}"))?);
    }
    let race = matches!(
        report.kind,
        ReportKind::LdsRace | ReportKind::GlobalRace | ReportKind::Race
    );
    if race && found.len() != 2 {
        return Err(format!("a race has two sides:\n{report}"));
    }
    Ok(found)
}

/// What a run of the faulty kernel does not report although it must, or reports although it must not.
fn judge(source: &Source, run: &SeedRun) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut hit = BTreeSet::new();
    for report in &run.reports {
        match hits(source, report) {
            Ok(markers) => hit.extend(markers.iter().map(|marker| (marker.line, marker.kind.clone()))),
            Err(problem) => wrong.push(problem),
        }
    }
    let wanted = source.markers.iter().filter(|marker| marker.must);
    let mut groups: BTreeSet<&str> = wanted.clone().map(|marker| marker.kind.as_str()).collect();
    // A loop that does not end may be stopped at any of its lines; everything else must be found at each marked line.
    if groups.remove("EndlessKernel") && !hit.iter().any(|(_, kind)| kind == "EndlessKernel") {
        wrong.push("EndlessKernel is not reported".to_owned());
    }
    for marker in wanted.filter(|marker| groups.contains(marker.kind.as_str())) {
        if !hit.contains(&(marker.line, marker.kind.clone())) {
            wrong.push(format!("{} at line {} is not reported", marker.kind, marker.line));
        }
    }
    wrong
}

fn assert_nothing(wrong: &[String], what: &str) {
    assert!(wrong.is_empty(), "{} {what}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_fault_is_found_at_its_line_under_every_seed() {
    let (packs, all) = (packs(), sources());
    let jobs: Vec<((&Source, &Pack), &str)> = cards(&packs, &all)
        .into_iter()
        .flat_map(|card| LEVELS.map(|level| (card, level)))
        .collect();
    let wrong = in_parallel(&jobs, |((source, pack), level)| {
        let plan = plan(pack, source, level, &source.faulty);
        let mut wrong = Vec::new();
        for seed in 0..(twin_seeds() / TWINS_A_FAULT).max(1) {
            let run = run_seed(&plan, seed).unwrap_or_else(|error| panic!("{}: {error}", source.name));
            let at = format!("{} {} {level} seed {seed}", source.name, pack.arch());
            wrong.extend(
                judge(source, &run)
                    .into_iter()
                    .map(|problem| format!("{at}: {problem}")),
            );
            if !wrong.is_empty() {
                break;
            }
        }
        wrong
    });
    assert_nothing(&wrong, "faults are not found as marked");
}

#[test]
fn no_corrected_kernel_gives_a_report_under_any_seed() {
    let (packs, all) = (packs(), sources());
    let seeds = twin_seeds();
    let levels = LEVELS.len() as u64;
    let jobs: Vec<((&Source, &Pack), u64)> = cards(&packs, &all)
        .into_iter()
        .flat_map(|card| (0..levels).map(move |level| (card, level)))
        .collect();
    let wrong = in_parallel(&jobs, |((source, pack), level)| {
        let name = LEVELS[*level as usize];
        let plan = plan(pack, source, name, &source.correct);
        // Every level, and of these each card, has its share of the seeds.
        let card = u64::from(std::ptr::eq(*pack, &packs[1]));
        let mine = (0..seeds).filter(|seed| seed % levels == *level && seed / levels % 2 == card);
        for seed in mine {
            let run = run_seed(&plan, seed).unwrap_or_else(|error| panic!("{}: {error}", source.name));
            if let Some(report) = run.reports.first() {
                return vec![format!("{} {} {name} seed {seed}: {report}", source.name, pack.arch())];
            }
            if run.instructions == 0 {
                return vec![format!("{} {name} seed {seed}: nothing ran", source.name)];
            }
        }
        Vec::new()
    });
    assert_nothing(&wrong, "reports without a fault");
}

/// A value that is read and dropped is no fault, and not silent either.
#[test]
fn a_load_of_lds_whose_value_nothing_uses_is_a_warning() {
    let (packs, sources) = (packs(), sources());
    let source = sources
        .iter()
        .find(|source| source.name == "initcheck/read_and_dropped");
    let source = source.expect("the kernel is there");
    let text = include_str!("kernels/initcheck/read_and_dropped.hip");
    let loads = (1..).zip(text.lines()).filter(|(_, line)| line.contains("tile[t + 8]"));
    let (line, _) = loads.last().expect("a load");
    for pack in &packs {
        let correct = run_seed(&plan(pack, source, "O3", &source.correct), 0).expect("it runs");
        assert_eq!(correct.reports.len(), 0);
        let [warning] = &correct.warnings[..] else {
            panic!("one warning: {:?}", correct.warnings);
        };
        assert_eq!(
            (warning.kind, warning.frames[0].line),
            (ReportKind::UninitialisedLds, line)
        );
        let faulty = run_seed(&plan(pack, source, "O3", &source.faulty), 0).expect("it runs");
        assert_eq!(
            (faulty.reports.len(), faulty.warnings.len()),
            (1, 0),
            "a fault is no warning"
        );
    }
}

#[test]
fn a_report_says_how_much_of_an_access_is_past_the_end() {
    let (packs, sources) = (packs(), sources());
    let source = sources
        .iter()
        .find(|source| source.name == "memcheck/pair_straddles_end");
    let source = source.expect("the kernel is there");
    for pack in &packs {
        let run = run_seed(&plan(pack, source, "O3", &source.faulty), 0).expect("it runs");
        let [report] = &run.reports[..] else {
            panic!("one report: {:?}", run.reports);
        };
        let message = "the last 4 B of it are past the end of the allocation";
        assert!(report.to_string().contains(message), "{report}");
    }
}

#[test]
fn there_are_enough_of_each_tool() {
    let all = sources();
    assert!(all.len() >= 40, "{} faulty kernels", all.len());
    for (tool, least) in [("memcheck", 15), ("initcheck", 10), ("racecheck", 20), ("synccheck", 8)] {
        let n = all.iter().filter(|source| source.name.starts_with(tool)).count();
        assert!(n >= least, "{tool}: {n}");
    }
}
