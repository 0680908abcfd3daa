//! Counters of every kernel: what it asks of a card at fixed shapes, counted by the simulator, against
//! committed bounds.

#![allow(clippy::print_stdout)] // the table is shown by `cargo xtask kernels counters`

mod attention16;
mod bytes;
mod chosen;
mod decode;
mod launches;
mod packed;
mod products16;
mod roofline;
mod table;

use chosen::Chosen;
use launches::Device;
use rocmforge_code_object::CodeObject;
use rocmforge_kernels::{KernelResult, Pack};
use rocmforge_sim::counters::{Class, KernelCounts, LaunchCounts, by_kernel};
use rocmforge_sim::{Arch, CardConfig, SimConfig};
use rocmforge_testkit::{LeaseOptions, gpu_with};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
enum CountersError {
    #[error("bounds in kernels/: {0}")]
    Io(#[from] std::io::Error),
    #[error("kernels/counters.txt, line {line}: {what}")]
    Bounds { line: usize, what: String },
    #[error("kernels/bytes.txt, line {line}: {what}")]
    Bytes { line: usize, what: String },
    #[error(
        "{}. If that is meant, run `cargo xtask kernels counters --bless` and commit the result",
        .0.join("; ")
    )]
    Passed(Vec<String>),
    #[error("kernels/README.md: {0}")]
    Table(String),
    #[error(
        "these kernels are never launched here: {0}; add a launch to crates/rocmforge-kernels/tests/counters/launches.rs"
    )]
    Missing(String),
}

/// The figures with bounds.
const BOUNDED: [&str; 4] = ["instructions", "segments", "conflicts", "barriers"];

fn figures(counts: &KernelCounts) -> [u64; 4] {
    let c = &counts.counters;
    let segments = c.loads.segments + c.stores.segments + c.atomics.segments;
    [c.total(), segments, c.lds.conflicts, c.barriers]
}

/// `kernels` of the workspace.
fn kernels() -> PathBuf {
    // When it runs: clones that share a target folder may share this program.
    let crate_folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&crate_folder).join("../../kernels")
}

/// Prints what every kernel asks for. With `ROCMFORGE_COUNTERS_BLESS` that becomes the bounds.
#[test]
fn every_kernel_is_within_its_bounds() -> Result<(), Box<dyn Error>> {
    let chosen = Chosen::read()?;
    let mut counts = measure(&chosen, Arch::Gfx1100)?;
    missing(&counts, &chosen)?;
    chosen.retain(&mut counts);
    print(&counts);
    let path = kernels().join("counters.txt");
    let committed = std::fs::read_to_string(&path).map_err(CountersError::Io)?;
    let committed = bounds(&committed)?;
    if std::env::var_os("ROCMFORGE_COUNTERS_BLESS").is_some() {
        let mut text = format!(
            "# kernel {}\n# Upper bounds at the shapes of `cargo xtask kernels counters`.\n",
            BOUNDED.join(" ")
        );
        let new = counts.iter().map(|(kernel, counts)| (kernel.clone(), figures(counts)));
        for (kernel, figures) in chosen.written(committed, new.collect()) {
            let figures: Vec<String> = figures.iter().map(u64::to_string).collect();
            text += &format!("{kernel} {}\n", figures.join(" "));
        }
        std::fs::write(&path, text).map_err(CountersError::Io)?;
        println!("wrote {}", path.display());
        return Ok(());
    }
    Ok(check(&counts, &committed)?)
}

/// The bounds of `kernels/counters.txt`: a kernel and its figures a line.
fn bounds(text: &str) -> Result<BTreeMap<String, [u64; 4]>, CountersError> {
    let mut bounds = BTreeMap::new();
    for (n, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.starts_with('#') && !l.is_empty())
    {
        let bad = |what: &str| CountersError::Bounds {
            line: n + 1,
            what: what.to_owned(),
        };
        let mut words = line.split_whitespace();
        let kernel = words.next().ok_or_else(|| bad("no kernel"))?;
        let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
        let numbers = numbers.map_err(|_| bad("not a number"))?;
        let numbers = numbers.try_into().map_err(|_| bad("not four figures"))?;
        bounds.insert(kernel.to_owned(), numbers);
    }
    Ok(bounds)
}

fn check(counts: &BTreeMap<String, KernelCounts>, bounds: &BTreeMap<String, [u64; 4]>) -> Result<(), CountersError> {
    let mut passed = Vec::new();
    for (kernel, counts) in counts {
        let Some(bounds) = bounds.get(kernel) else {
            passed.push(format!("{kernel} has no bounds"));
            continue;
        };
        for ((name, now), bound) in BOUNDED.iter().zip(figures(counts)).zip(bounds) {
            if now > *bound {
                passed.push(format!("{kernel}: {now} {name}, at most {bound} are allowed"));
            }
        }
    }
    if passed.is_empty() {
        Ok(())
    } else {
        Err(CountersError::Passed(passed))
    }
}

/// Family and name of each kernel of gfx1100.
fn all_kernels() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let pack = Pack::embedded("gfx1100").ok_or("no pack for gfx1100")?;
    let mut all = Vec::new();
    for family in pack.families() {
        let object = pack.object(family)?.unwrap_or_default();
        let kernels = CodeObject::parse(&object)?.kernels;
        all.extend(kernels.into_iter().map(|kernel| (family.to_owned(), kernel.name)));
    }
    assert!(!all.is_empty(), "the pack has no kernel of gfx1100");
    Ok(all)
}

/// Refuses chosen kernels that no counted launch uses.
fn missing(counts: &BTreeMap<String, KernelCounts>, chosen: &Chosen) -> Result<(), Box<dyn Error>> {
    let all: BTreeSet<String> = all_kernels()?.into_iter().map(|(_, kernel)| kernel).collect();
    let is_missing = |kernel: &String| chosen.has(kernel) && !counts.contains_key(kernel);
    let missing: Vec<String> = all.into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(CountersError::Missing(missing.join(" ")).into())
    }
}

fn print(counts: &BTreeMap<String, KernelCounts>) {
    println!(
        "{:<28} {:>9} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>7} {:>9} {:>8} {:>8} {:>9} {:>5} {:>10}",
        "kernel",
        "instr",
        "salu%",
        "valu%",
        "vopd%",
        "trns%",
        "wmma%",
        "lds%",
        "glob%",
        "bran%",
        "barrier",
        "KiB asked",
        "seg/load",
        "seg/stor",
        "conflict%",
        "waves",
        "limit"
    );
    for (kernel, counts) in counts {
        let c = &counts.counters;
        let share = |class: Class| 100.0 * c.of(class) as f64 / c.total().max(1) as f64;
        let conflicts = 100.0 * c.lds.conflicts as f64 / c.lds.cycles.max(1) as f64;
        println!(
            "{kernel:<28} {:>9} {:>5.1} {:>5.1} {:>5.1} {:>5.1} {:>5.1} {:>5.1} {:>5.1} {:>5.1} {:>7} {:>9} {:>8.2} {:>8.2} {:>9.1} {:>5} {:>10}",
            c.total(),
            share(Class::Salu),
            share(Class::Valu),
            share(Class::Vopd),
            share(Class::Trans),
            share(Class::Wmma),
            share(Class::Lds),
            share(Class::Global),
            share(Class::Branch),
            c.barriers,
            (c.loads.bytes + c.stores.bytes + c.atomics.bytes) >> 10,
            c.loads.segments_per_request(),
            c.stores.segments_per_request(),
            conflicts,
            counts.occupancy.waves_per_simd,
            counts.occupancy.limit.to_string(),
        );
    }
}

/// Runs every chosen kernel once or more, on a simulated card. Launches that only prepare an operand do not count.
fn measure(chosen: &Chosen, arch: Arch) -> Result<BTreeMap<String, KernelCounts>, Box<dyn Error>> {
    let mut declared = Vec::new();
    let mut launches = counted_on(arch, |device| {
        let kernels = chosen.of_kernels(device.kernels);
        let kernels = &kernels;
        declared = Device { kernels, ..*device }.launch_all()?;
        Ok(())
    })?;
    // The others were not enqueued.
    declared.retain(|(kernel, prepares)| *prepares || chosen.has(kernel));
    let mut declared = declared.into_iter();
    launches.retain(|_| !declared.next().is_some_and(|(_, prepares)| prepares));
    Ok(by_kernel(&launches))
}

/// Counts of the launches that `run` makes on a simulated gfx1100.
fn counted(run: impl FnOnce(&Device<'_>) -> KernelResult<()>) -> Result<Vec<LaunchCounts>, Box<dyn Error>> {
    counted_on(Arch::Gfx1100, run)
}

/// Counts of the launches that `run` makes on a simulated card, unless ROCMFORGE_DEVICE names another.
fn counted_on(
    arch: Arch,
    run: impl FnOnce(&Device<'_>) -> KernelResult<()>,
) -> Result<Vec<LaunchCounts>, Box<dyn Error>> {
    let options = LeaseOptions {
        sim: SimConfig {
            cards: vec![CardConfig::of(arch)],
            counters: true,
            ..SimConfig::default()
        },
        ..LeaseOptions::default()
    };
    let lease = gpu_with(options);
    let sim = lease
        .sim()
        .ok_or("unset ROCMFORGE_DEVICE: the kernels are counted on a simulated card")?
        .clone();
    let device = Device {
        kernels: lease.kernels(),
        stream: lease.backend().stream(),
    };
    run(&device)?;
    lease.backend().synchronize()?;
    Ok(sim.take_launch_counts())
}

#[test]
fn bounds_are_read_and_enforced() {
    let found = bounds("# comment\nadd 10 20 0 0\n").expect("sound");
    assert_eq!(found["add"], [10, 20, 0, 0]);
    assert!(bounds("add 10 20 0\n").is_err() && bounds("add x 1 2 3\n").is_err());
}
