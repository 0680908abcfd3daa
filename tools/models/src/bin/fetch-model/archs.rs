//! Making of random models: llama.cpp's sources are fetched and compiled, its test writes a model of each architecture, and llama.cpp
//! computes their logits.
//!
//! Everything happens in one folder beside the models', which is empty when a run begins and gone when it ends. The models come into place in one step.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FetchError, at, cmake, fetch, step};
use rocmforge_fetch_models::manifest::{MANIFEST, Made, MadeFile, Manifest};
use rocmforge_fetch_models::table::Row;
use rocmforge_gpu_test::tell;

/// The seed of the weights. Another one is another recipe.
const SEED: &str = "1";
/// Rows of a file of logits.
const TOKENS: u64 = 128;
/// Bytes that are free before anything is begun: 0.95 GB of models, 0.35 GB of sources and what is compiled of them.
const SPACE: u64 = 1_500_000_000;

/// The project that cmake builds, and its program for logits.
const PROJECT: [(&str, &str); 2] = [
    ("CMakeLists.txt", include_str!("../../../llama-archs/CMakeLists.txt")),
    ("logits.cpp", include_str!("../../../llama-archs/logits.cpp")),
];

/// Makes the models of `row` in `directory`. Takes `packages` instead of what pip would fetch if there are any.
pub(super) fn make((row, recipe): (&Row, u32), directory: &Path, packages: &[PathBuf]) -> Result<(), FetchError> {
    let parent = directory.parent().unwrap_or(directory);
    let work = Work::begin(parent, row.directory)?;
    let generator = cmake::check_machine()?;
    check_space(parent)?;
    let sources = work.folder.join("sources");
    fetch::fetch(row, &sources, packages)?;
    let programs = compile(&work.folder, &sources, generator)?;
    let made = work.folder.join("made");
    let models = write_models(&programs, &made, &work.folder.join("log"))?;
    let manifest = Manifest {
        recipe,
        sources: row.hashes(),
        models,
    };
    let text = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::from);
    let path = made.join(MANIFEST);
    text.and_then(|text| fs::write(&path, text)).map_err(at(&path))?;
    if directory.exists() {
        let old = work.folder.join("old");
        fs::rename(directory, &old).map_err(at(directory))?;
    }
    fs::rename(&made, directory).map_err(at(directory))
}

/// The folder in which models are made. One process has it at a time.
struct Work {
    folder: PathBuf,
    _lock: File,
}

impl Work {
    /// Takes the folder, and removes what a run that was stopped has left in it.
    fn begin(parent: &Path, name: &str) -> Result<Self, FetchError> {
        fs::create_dir_all(parent).map_err(at(parent))?;
        let path = parent.join(format!(".making-{name}.lock"));
        let lock = File::create(&path).map_err(at(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FetchError::Busy(path)),
            Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
        }
        let folder = parent.join(format!(".making-{name}"));
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(at(&folder))?;
        }
        fs::create_dir(&folder).map_err(at(&folder))?;
        Ok(Self { folder, _lock: lock })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tell!("{}: {error}; the next run removes it", self.folder.display());
        }
    }
}

fn check_space(folder: &Path) -> Result<(), FetchError> {
    let space = rustix::fs::statvfs(folder).map_err(|error| at(folder)(error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if free < SPACE {
        return Err(FetchError::Disk {
            path: folder.to_owned(),
            free: free / 1_000_000,
            needed: SPACE / 1_000_000,
        });
    }
    Ok(())
}

/// The programs that cmake has built.
struct Programs {
    /// llama.cpp's own, which writes the models.
    test: PathBuf,
    /// Ours, which computes logits.
    logits: PathBuf,
}

fn compile(work: &Path, sources: &Path, generator: Option<&str>) -> Result<Programs, FetchError> {
    let cmake = cmake::find(work)?;
    let (project, build, log) = (work.join("project"), work.join("build"), work.join("log"));
    fs::create_dir(&project).map_err(at(&project))?;
    for (name, text) in PROJECT {
        let path = project.join(name);
        fs::write(&path, text).map_err(at(&path))?;
    }
    let mut configure = Command::new(&cmake);
    configure.arg("-S").arg(&project).arg("-B").arg(&build);
    configure.arg("-DCMAKE_BUILD_TYPE=Release");
    let mut definition = std::ffi::OsString::from("-DLLAMA_SOURCES=");
    definition.push(sources);
    configure.arg(definition);
    if let Some(generator) = generator {
        configure.args(["-G", generator]);
    }
    step::run("cmake, which configures llama.cpp,", &mut configure, &log)?;
    tell!("compiling llama.cpp's test-llama-archs (about twelve minutes of one core) …");
    let mut make = Command::new(&cmake);
    make.arg("--build")
        .arg(&build)
        .args(["--target", "test-llama-archs", "logits"]);
    if std::env::var_os("CMAKE_BUILD_PARALLEL_LEVEL").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        make.args(["--parallel", &cores.to_string()]);
    }
    step::run("the compilation of llama.cpp", &mut make, &log)?;
    Ok(Programs {
        test: build.join("bin/test-llama-archs"),
        logits: build.join("bin/logits"),
    })
}

/// Writes the models and their logits into `folder`.
fn write_models(programs: &Programs, folder: &Path, log: &Path) -> Result<Vec<Made>, FetchError> {
    fs::create_dir(folder).map_err(at(folder))?;
    tell!("writing the models and computing their logits …");
    let mut test = Command::new(&programs.test);
    step::run("test-llama-archs", test.args(["-s", SEED, "-o"]).arg(folder), log)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let name = entry.map_err(at(folder))?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(".gguf").map(str::to_owned));
    }
    names.sort();
    if names.is_empty() {
        return Err(FetchError::NoModels("test-llama-archs"));
    }
    names
        .into_iter()
        .map(|name| model(programs, folder, name, log))
        .collect()
}

/// Computes the logits of one model.
fn model(programs: &Programs, folder: &Path, name: String, log: &Path) -> Result<Made, FetchError> {
    let model = folder.join(format!("{name}.gguf"));
    let mut logits = Command::new(&programs.logits);
    logits.arg(&model).arg(folder.join(&name));
    step::run(&format!("the computation of {name}'s logits"), &mut logits, log)?;
    let described = |suffix: &str| {
        let name = format!("{name}{suffix}");
        let path = folder.join(&name);
        Ok(MadeFile {
            bytes: fs::metadata(&path).map_err(at(&path))?.len(),
            sha256: fetch::sha256(&path)?,
            name,
        })
    };
    let suffixes = [".gguf", ".ids", ".logits", ".beside.ids", ".beside.logits"];
    let files: Vec<MadeFile> = suffixes.into_iter().map(described).collect::<Result<_, FetchError>>()?;
    Ok(Made {
        vocabulary: files[2].bytes / (4 * TOKENS),
        name,
        files,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program of a few lines of shell in place of a compiled one.
    fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("may run");
        path
    }

    /// `-s SEED -o FOLDER`.
    const WRITES: &str = "printf model > \"$4/b-moe.gguf\"; printf model > \"$4/a-dense.gguf\"";
    /// `MODEL PREFIX`, for a vocabulary of 2.
    const COMPUTES: &str =
        "for p in \"$2\" \"$2.beside\"; do printf 1,2 > $p.ids; head -c 1024 /dev/zero > $p.logits; done";

    fn programs(folder: &Path, test: &str, logits: &str) -> Programs {
        Programs {
            test: program(folder, "test", test),
            logits: program(folder, "logits", logits),
        }
    }

    #[test]
    fn every_model_has_its_logits_and_a_row_in_the_manifest() {
        let work = tempfile::tempdir().expect("a directory");
        let programs = programs(work.path(), WRITES, COMPUTES);
        let made = work.path().join("made");
        let models = write_models(&programs, &made, &work.path().join("log")).expect("made");
        let names: Vec<(&str, u64)> = models.iter().map(|model| (&*model.name, model.vocabulary)).collect();
        assert_eq!(names, [("a-dense", 2), ("b-moe", 2)]);
        let files = &models[1].files;
        assert_eq!((&*files[0].name, files[0].bytes), ("b-moe.gguf", 5));
        assert_eq!((&*files[4].name, files[4].bytes), ("b-moe.beside.logits", 1024));
        let expected = "9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4";
        assert_eq!(files[0].sha256, expected, "printf model | sha256sum");
        let manifest = Manifest {
            recipe: 1,
            sources: "s".to_owned(),
            models,
        };
        fs::write(made.join(MANIFEST), serde_json::to_vec(&manifest).expect("JSON")).expect("written");
        assert!(Manifest::holds(&made, 1, "s"));
        fs::remove_file(made.join("a-dense.beside.logits")).expect("removed");
        assert!(!Manifest::holds(&made, 1, "s"));
    }

    #[test]
    fn a_program_that_fails_or_writes_nothing_is_an_error() {
        let work = tempfile::tempdir().expect("a directory");
        let made = |index: u32| work.path().join(format!("made{index}"));
        let log = work.path().join("log");
        let no_model = programs(work.path(), "exit 0", COMPUTES);
        let error = write_models(&no_model, &made(0), &log).expect_err("no model");
        assert!(matches!(error, FetchError::NoModels(_)), "{error}");

        let aborts = programs(work.path(), "echo assertion; kill -ABRT $$", COMPUTES);
        let error = write_models(&aborts, &made(1), &log)
            .expect_err("it ends by a signal")
            .to_string();
        assert!(
            error.contains("test-llama-archs failed (signal: 6") && error.contains("assertion"),
            "{error}"
        );

        let cannot_load = programs(work.path(), WRITES, "echo 'cannot load' >&2; exit 1");
        let error = write_models(&cannot_load, &made(2), &log)
            .expect_err("status 1")
            .to_string();
        assert!(
            error.contains("computation of a-dense's logits") && error.ends_with("cannot load"),
            "{error}"
        );

        let forgets = programs(work.path(), WRITES, "exit 0");
        let error = write_models(&forgets, &made(3), &log).expect_err("no file").to_string();
        assert!(error.contains("a-dense.ids"), "{error}");
    }

    #[test]
    fn what_a_stopped_run_left_is_removed_and_two_runs_are_not_at_once() {
        let work = tempfile::tempdir().expect("a directory");
        let left = work.path().join(".making-m/made/half.gguf");
        fs::create_dir_all(left.parent().expect("a folder")).expect("created");
        fs::write(&left, "half").expect("written");
        let first = Work::begin(work.path(), "m").expect("free");
        assert_eq!(fs::read_dir(&first.folder).expect("there").count(), 0);
        let error = Work::begin(work.path(), "m").err().expect("one at a time");
        assert!(matches!(error, FetchError::Busy(_)), "{error}");
        let folder = first.folder.clone();
        drop(first);
        assert!(!folder.exists());
        Work::begin(work.path(), "m").expect("free again");
    }

    #[test]
    fn a_wrong_package_is_not_compiled() {
        let work = tempfile::tempdir().expect("a directory");
        let package = work.path().join("package.tar.gz");
        fs::write(&package, "not the package").expect("written");
        let row = rocmforge_fetch_models::table::Model::Archs.row();
        let target = work.path().join("models/llama-archs");
        let error = make((row, 1), &target, &[package]).expect_err("the hash differs");
        // On a machine without a compiler that is the first thing to say.
        assert!(
            matches!(error, FetchError::Hash { .. } | FetchError::Tool { .. }),
            "{error}"
        );
        assert!(!target.exists() && !work.path().join("models/.making-llama-archs").exists());
    }
}
