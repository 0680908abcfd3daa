//! `cargo xtask kernels build|check|ptxas`: compiles `kernels/*.hip` into `kernels/prebuilt/`, and proves that what lies there is what
//! the sources give.
//!
//! Nobody needs this to use or test the workspace: the packs are committed.

mod compile;
mod describe;
mod faulty;
mod flat;
mod manifest;
mod occupancy;
mod pack;
mod ptxas;
mod targets;

use crate::{cargo, workspace_root};
use compile::Compiler;
use describe::describe;
use manifest::{Manifest, TargetEntry};
use rocmforge_gpu_test::{Outcome, say};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use targets::{FAMILIES, TARGETS, has_family};

/// `cargo xtask kernels`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Compiles the kernels and writes the packs and the manifest.
    Build {
        /// Only these targets (gfx1100, ...); another than the committed ones is added to the registry. Default: all of those.
        #[arg(long)]
        arch: Vec<String>,
        /// Accepts a compiler other than the pinned one. Such packs are for your own use, not for committing.
        #[arg(long)]
        any_compiler: bool,
        /// Only the faulty kernels that the sanitizer is tested with.
        #[arg(long, conflicts_with = "arch")]
        faulty_only: bool,
    },
    /// Compiles the kernels and compares the result byte for byte with what is committed. PTX is assembled, if the machine has
    /// ptxas.
    Check {
        /// Only these targets. Default: every target in the manifest.
        #[arg(long)]
        arch: Vec<String>,
        /// Fails where the answer would be "not comparable": no compiler, or another build of it.
        #[arg(long)]
        strict: bool,
    },
    /// Runs every kernel at fixed shapes on a simulated gfx1100 and prints what it asks of the card; fails when a bound in
    /// kernels/counters.txt is passed.
    Counters {
        /// Writes the bounds: what is counted now.
        #[arg(long)]
        bless: bool,
    },
    /// Assembles the kernels' PTX with ptxas and prints the registers, shared memory and spills of every kernel.
    Ptxas {
        /// Only these packs. Default: every pack of PTX.
        #[arg(long)]
        arch: Vec<String>,
    },
    /// Prints registers, LDS and code size of every kernel, from the manifest.
    List {
        /// Only these targets. Default: gfx1100.
        #[arg(long)]
        arch: Vec<String>,
    },
}

/// What can go wrong. Each says what to do.
#[derive(Debug, thiserror::Error)]
enum KernelsError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error(
        "no clang++ found (tried ROCMFORGE_CLANG, clang++-{major}, clang++). Install Debian's clang-{major}; the committed packs work without it",
        major = compile::PINNED_MAJOR
    )]
    NoCompiler,
    #[error(
        "the pinned compiler is clang {}, this is \"{found}\"; pass --any-compiler to build packs for your own use",
        compile::PINNED
    )]
    WrongCompiler { found: String },
    #[error("{arch}: clang failed on {source_file}:\n{log}")]
    Compile {
        arch: String,
        source_file: String,
        log: String,
    },
    #[error("{arch}: {family}: the object cannot be read: {reason}")]
    BadObject {
        arch: String,
        family: String,
        reason: String,
    },
    #[error("{arch}: kernel {kernel} {what}; kernels must not spill or use private memory")]
    Spills { arch: String, kernel: String, what: String },
    #[error(
        "{arch}: kernel {kernel} declares {bytes} bytes of LDS, a launch there may have {limit}; make its tiles smaller"
    )]
    Lds {
        arch: String,
        kernel: String,
        bytes: u32,
        limit: u32,
    },
    #[error(
        "{arch}: of kernel {kernel} {waves} waves fit on a SIMD, with {vgprs} vector registers and {lds} bytes of LDS for a workgroup of \
         {block}; xtask/src/kernels/occupancy.rs asks for {least}. Make its tiles smaller, or state there what it gets by with and why"
    )]
    Occupancy {
        arch: String,
        kernel: String,
        waves: u32,
        least: u32,
        vgprs: u32,
        lds: u32,
        block: u32,
    },
    #[error(
        "{arch}: kernel {kernel}: {instruction} at {place} goes by flat addresses; the compiler does not know whether the pointer is to global memory \
         or LDS. Keep pointers to both apart"
    )]
    Flat {
        arch: String,
        kernel: String,
        instruction: String,
        place: String,
    },
    #[error("{program} is no ptxas that answers; ROCMFORGE_PTXAS names one (it comes with CUDA)")]
    NoAssembler { program: String },
    #[error("{card}: ptxas refuses {family}:\n{log}")]
    NotAssembled { card: String, family: String, log: String },
    #[error(
        "{card}: {family}: ptxas runs wgmma instructions one after another; wait for them before their registers are used:\n{log}"
    )]
    Serialized { card: String, family: String, log: String },
    #[error("{arch}: kernel {kernel} has another argument layout than on the other targets")]
    ArgumentLayout { arch: String, kernel: String },
    #[error(
        "{arch}: family {family} {} kernel {kernel}, against what `FAMILIES` in xtask/src/kernels/targets.rs states; a kernel \
         that some targets lack is stated there",
        if *exists { "has" } else { "lacks" }
    )]
    Kernel {
        arch: String,
        family: String,
        kernel: String,
        exists: bool,
    },
    #[error(
        "{arch}: the pack has the families {found}; kernels/*.hip and `FAMILIES` in xtask/src/kernels/targets.rs give it {expected}"
    )]
    Families {
        arch: String,
        found: String,
        expected: String,
    },
    #[error("{0}")]
    Manifest(String),
    #[error(
        "{count} packs are not what the sources give: {list}. Run `cargo xtask kernels build` and commit the result"
    )]
    Differ { count: usize, list: String },
    #[error("not comparable: {0}")]
    NotComparable(String),
}

fn read(path: &Path) -> Result<Vec<u8>, KernelsError> {
    std::fs::read(path).map_err(|source| KernelsError::Io {
        path: path.into(),
        source,
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), KernelsError> {
    std::fs::write(path, bytes).map_err(|source| KernelsError::Io {
        path: path.into(),
        source,
    })
}

fn prebuilt() -> PathBuf {
    workspace_root().join("kernels/prebuilt")
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    match args.command {
        Command::Build {
            arch,
            any_compiler,
            faulty_only,
        } => build(arch, any_compiler, faulty_only)?,
        Command::Check { arch, strict } => check(arch, strict)?,
        Command::Counters { bless } => counters(bless)?,
        Command::Ptxas { arch } => ptxas::table(arch)?,
        Command::List { arch } => list(arch)?,
    }
    Ok(())
}

/// Counts what every kernel asks of a card: a test of rocmforge-kernels.
fn counters(bless: bool) -> Outcome {
    let mut cargo = cargo();
    // With the features of the whole workspace, so that what `cargo xtask ci` has built is used.
    cargo.args(["test", "--workspace", "--all-features", "--test", "counters", "--"]);
    cargo.args(["--nocapture", "every_kernel_is_within_its_bounds"]);
    if bless {
        cargo.env("ROCMFORGE_COUNTERS_BLESS", "1");
    }
    match cargo.status()?.success() {
        true => Ok(()),
        false => Err("a kernel is outside its bounds; it is named above".into()),
    }
}

/// A target's objects, by family.
type Objects = BTreeMap<String, Vec<u8>>;

/// Does every job, on all processors, until one fails; the results are in the order of the jobs.
fn in_parallel<J: Sync, T: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<T, KernelsError> + Sync,
) -> Result<Vec<T>, KernelsError> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::default();
    let failure: Mutex<Option<KernelsError>> = Mutex::default();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    if failure.lock().expect("no worker panics").is_some() {
                        return;
                    }
                    match work(job) {
                        Ok(result) => done.lock().expect("no worker panics").push((index, result)),
                        Err(error) => *failure.lock().expect("no worker panics") = Some(error),
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().expect("no worker panics") {
        return Err(error);
    }
    let mut done = done.into_inner().expect("no worker panics");
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// Compiles for every target the families that it has. A target's pack may be empty.
fn compile_all(compiler: &Compiler, targets: &[String]) -> Result<BTreeMap<String, Objects>, KernelsError> {
    let families = compile::families(workspace_root())?;
    let jobs: Vec<(&String, &String)> = targets
        .iter()
        .flat_map(|t| families.iter().map(move |f| (t, f)))
        .filter(|(t, f)| has_family(FAMILIES, t, f))
        .collect();
    let objects = in_parallel(&jobs, |(target, family)| {
        compiler.compile(workspace_root(), family, target)
    })?;
    let empty = |target: &String| (target.clone(), Objects::new());
    let mut done: BTreeMap<String, Objects> = targets.iter().map(empty).collect();
    for ((target, family), object) in jobs.into_iter().zip(objects) {
        done.entry(target.clone()).or_default().insert(family.clone(), object);
    }
    Ok(done)
}

fn build(arch: Vec<String>, any_compiler: bool, faulty_only: bool) -> Result<(), KernelsError> {
    let compiler = Compiler::find()?;
    if !any_compiler && !compiler.is_pinned() {
        return Err(KernelsError::WrongCompiler {
            found: compiler.version,
        });
    }
    let targets: Vec<String> = if arch.is_empty() {
        TARGETS.map(|target| target.arch.to_owned()).to_vec()
    } else {
        arch
    };
    if faulty_only {
        return faulty::build(&compiler);
    }
    if targets.len() == TARGETS.len() {
        faulty::build(&compiler)?;
    }
    let source = compile::source_hash(workspace_root())?;
    let mut manifest = Manifest::read(&prebuilt()).unwrap_or_default();
    for (target, objects) in compile_all(&compiler, &targets)? {
        let described = describe(&target, &objects)?;
        let pack = pack::write(&target, &objects);
        let packed = pack::compress(&pack)?;
        std::fs::create_dir_all(prebuilt()).map_err(|source| KernelsError::Io {
            path: prebuilt(),
            source,
        })?;
        write(&prebuilt().join(pack::file_name(&target)), &packed)?;
        let entry = TargetEntry::new(&compiler.version, &source, &pack, &objects, &described);
        let kernels: usize = described.values().map(|o| o.kernels.len()).sum();
        say!(
            "{target}: {} families, {kernels} kernels, no spills, {} bytes of objects in a pack of {}",
            objects.len(),
            pack.len(),
            packed.len()
        );
        manifest.insert(&target, entry, &described)?;
    }
    manifest.check_kernels(FAMILIES, &source)?;
    let texts = |flags: &[&str]| flags.iter().map(|&flag| flag.to_owned()).collect();
    manifest.flags = texts(compile::FLAGS);
    manifest.ptx_flags = texts(compile::PTX_FLAGS);
    manifest.write(&prebuilt())?;
    write(&prebuilt().join("packs.rs"), pack::registry(&manifest).as_bytes())
}

fn check(arch: Vec<String>, strict: bool) -> Result<(), KernelsError> {
    let manifest = Manifest::read(&prebuilt())?;
    let source = compile::source_hash(workspace_root())?;
    let all = arch.is_empty();
    let targets: Vec<String> = if all {
        manifest.targets.keys().cloned().collect()
    } else {
        arch
    };
    let mut differ = Vec::new();
    for target in &targets {
        let entry = manifest.target(target)?;
        if entry.source_sha256 != source {
            differ.push(format!("{target} (made from other sources)"));
        }
        let path = prebuilt().join(pack::file_name(target));
        let packed = read(&path)?;
        let pack = pack::decompress(&packed).map_err(|source| KernelsError::Io {
            path: path.clone(),
            source,
        })?;
        if compile::sha256(&pack) != entry.pack_sha256 {
            differ.push(format!("{target} (the pack is not the manifest's)"));
        }
        let objects =
            pack::read(&packed).ok_or_else(|| KernelsError::Manifest(format!("{} is no pack", path.display())))?;
        describe(target, &objects)?;
    }
    if all {
        differ.extend(faulty::differing(None)?);
        let families = compile::families(workspace_root())?;
        manifest.check_families(FAMILIES, &families)?;
        manifest.check_kernels(FAMILIES, &source)?;
    }
    if !differ.is_empty() {
        return Err(KernelsError::Differ {
            count: differ.len(),
            list: differ.join(", "),
        });
    }
    ptxas::check(&targets)?;
    let not_comparable = |why: String| {
        if strict {
            return Err(KernelsError::NotComparable(why));
        }
        say!("sources and packs match the manifest; code is not comparable: {why}");
        Ok(())
    };
    let compiler = match Compiler::find() {
        Ok(compiler) => compiler,
        Err(error @ KernelsError::NoCompiler) => return not_comparable(error.to_string()),
        Err(error) => return Err(error),
    };
    let (comparable, others): (Vec<String>, Vec<String>) = targets.into_iter().partition(|t| {
        manifest
            .targets
            .get(t)
            .is_some_and(|entry| entry.compiler == compiler.version)
    });
    for (target, objects) in compile_all(&compiler, &comparable)? {
        if compile::sha256(&pack::write(&target, &objects)) != manifest.target(&target)?.pack_sha256 {
            let same = |family: &String, bytes: &Vec<u8>| {
                let known = manifest.targets[&target].families.get(family);
                known.is_some_and(|f| f.sha256 == compile::sha256(bytes))
            };
            let families: Vec<&str> = objects
                .iter()
                .filter(|(f, b)| !same(f, b))
                .map(|(f, _)| f.as_str())
                .collect();
            differ.push(format!("{target} ({})", families.join(" ")));
        } else {
            say!("{target}: {} families, the same bytes", objects.len());
        }
    }
    if all {
        differ.extend(faulty::differing(Some(&compiler))?);
    }
    if !differ.is_empty() {
        return Err(KernelsError::Differ {
            count: differ.len(),
            list: differ.join(", "),
        });
    }
    if !others.is_empty() {
        return not_comparable(format!(
            "{} were made by another compiler than this \"{}\"",
            others.join(", "),
            compiler.version
        ));
    }
    Ok(())
}

fn list(arch: Vec<String>) -> Result<(), KernelsError> {
    let manifest = Manifest::read(&prebuilt())?;
    let targets = if arch.is_empty() {
        vec!["gfx1100".to_owned()]
    } else {
        arch
    };
    for target in targets {
        say!(
            "{target:<10} {:<28} {:>5} {:>5} {:>5} {:>6} {:>6}",
            "kernel",
            "vgpr",
            "agpr",
            "sgpr",
            "LDS B",
            "spills"
        );
        for family in manifest.target(&target)?.families.values() {
            for (name, k) in &family.kernels {
                say!(
                    "{target:<10} {name:<28} {:>5} {:>5} {:>5} {:>6} {:>6}",
                    k.vgprs,
                    k.agprs,
                    k.sgprs,
                    k.lds_bytes,
                    k.vgpr_spills + k.sgpr_spills
                );
            }
        }
    }
    Ok(())
}
