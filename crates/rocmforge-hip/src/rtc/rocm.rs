//! ROCm's own files for a program of hiprtc: its headers, which the program or an installation has, and its device library.

use std::path::{Path, PathBuf};

/// The installation of ROCm; where it is set, no other place is looked at.
const VARIABLE: &str = "ROCM_PATH";
/// Installations otherwise: AMD's packages, a distribution's.
const PLACES: [&str; 2] = ["/opt/rocm", "/usr"];
/// The header that says that a folder has HIP's.
const HEADER: &str = "hip/hip_runtime.h";
/// The device library below an installation: of ROCm 5 and 6, of ROCm 7, of distributions.
const BITCODE: [&str; 4] = [
    "amdgcn/bitcode",
    "lib/llvm/amdgcn/bitcode",
    "lib/x86_64-linux-gnu/amdgcn/bitcode",
    "lib/amdgcn/bitcode",
];

/// Where HIP's header comes from.
#[derive(Debug, PartialEq)]
pub(super) enum Headers {
    /// A folder of the program's own, which it names in an option or hands over: the compiler finds it there.
    Program,
    /// A folder of an installation.
    Installed(PathBuf),
    /// Ours.
    Own,
}

/// What there is for a program.
#[derive(Debug)]
pub(super) struct Rocm {
    pub(super) headers: Headers,
    /// The major version of HIP that the headers in a folder say they are of.
    pub(super) release: Option<u32>,
    /// The folder of the device library; none: ours is linked.
    pub(super) bitcode: Option<PathBuf>,
}

impl Rocm {
    /// For a program with these options and headers, whose names are as in `#include`.
    pub(super) fn find<'a>(options: &[String], mut headers: impl Iterator<Item = &'a str>) -> Self {
        let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let places = named.map_or_else(|| PLACES.map(PathBuf::from).to_vec(), |path| vec![path.into()]);
        Self::find_in(options, headers.any(|name| name == HEADER), &places)
    }

    /// Leaves what is installed for ours.
    pub(super) fn leave_installed(&mut self) {
        self.bitcode = None;
        if matches!(self.headers, Headers::Installed(_)) {
            (self.headers, self.release) = (Headers::Own, None);
        }
    }

    fn find_in(options: &[String], brings: bool, places: &[PathBuf]) -> Self {
        let own = include_folders(options).into_iter().find(|folder| has_header(folder));
        // A device library beside the program's headers is of their release.
        let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
        let mut installed = places.iter().map(|place| place.join("include"));
        let (headers, release) = if brings || own.is_some() {
            (Headers::Program, own.and_then(|folder| release_of(&folder)))
        } else if let Some(folder) = installed.find(|folder| has_header(folder)) {
            let release = release_of(&folder);
            (Headers::Installed(folder), release)
        } else {
            (Headers::Own, None)
        };
        let bitcode = beside.iter().chain(places).find_map(|place| bitcode_of(place));
        Self {
            headers,
            release,
            bitcode,
        }
    }
}

fn has_header(folder: &Path) -> bool {
    folder.join(HEADER).is_file()
}

/// What `hip/hip_version.h` says.
fn release_of(folder: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(folder.join("hip/hip_version.h")).ok()?;
    let mut lines = text.lines();
    lines.find_map(|line| {
        let rest = line
            .trim()
            .strip_prefix("#define")?
            .trim()
            .strip_prefix("HIP_VERSION_MAJOR")?;
        rest.trim().parse().ok()
    })
}

fn bitcode_of(place: &Path) -> Option<PathBuf> {
    let has_library = |folder: &PathBuf| folder.join("ockl.bc").is_file() && folder.join("ocml.bc").is_file();
    let usual = BITCODE.iter().map(|below| place.join(below)).find(has_library);
    usual.or_else(|| {
        // ROCm 7 has it below the number of its clang.
        let versions = std::fs::read_dir(place.join("lib/llvm/lib/clang")).ok()?;
        let folders = versions
            .flatten()
            .map(|version| version.path().join("lib/amdgcn/bitcode"));
        folders.filter(has_library).max()
    })
}

/// The folders of headers that options name, in their order.
fn include_folders(options: &[String]) -> Vec<PathBuf> {
    const APART: [&str; 4] = ["-I", "-isystem", "-idirafter", "--include-directory"];
    let mut folders = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if APART.contains(&option.as_str()) {
            folders.extend(options.next().map(PathBuf::from));
        } else {
            let joined = ["-isystem", "-idirafter", "--include-directory=", "-I"]
                .iter()
                .find_map(|start| option.strip_prefix(start));
            folders.extend(joined.map(PathBuf::from));
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn the_program_comes_first_then_installations_in_their_order() {
        const LIBRARY: [&str; 2] = ["amdgcn/bitcode/ockl.bc", "amdgcn/bitcode/ocml.bc"];
        let header = ["include/hip/hip_runtime.h"];
        let (empty, bare) = (with(&[]), with(&header));
        let full = with(&[header[0], LIBRARY[0], LIBRARY[1]]);
        let newest = with(&[
            "lib/llvm/lib/clang/20/lib/amdgcn/bitcode/ockl.bc",
            "lib/llvm/lib/clang/20/lib/amdgcn/bitcode/ocml.bc",
        ]);
        let places = |folders: &[&tempfile::TempDir]| -> Vec<PathBuf> {
            folders.iter().map(|folder| folder.path().to_owned()).collect()
        };
        let library = Some(full.path().join("amdgcn/bitcode"));

        let found = Rocm::find_in(&[], false, &places(&[&empty]));
        assert_eq!((found.headers, found.bitcode), (Headers::Own, None));
        let found = Rocm::find_in(&[], false, &places(&[&empty, &bare, &full]));
        assert_eq!(found.headers, Headers::Installed(bare.path().join("include")));
        assert_eq!(found.bitcode, library, "headers and library may be of two packages");
        let found = Rocm::find_in(&[], false, &places(&[&newest]));
        assert!(found.bitcode.unwrap().ends_with("20/lib/amdgcn/bitcode"));
        for option in ["-I", "-isystem", "--include-directory="] {
            let options = [format!("{option}{}", full.path().join("include").display())];
            let found = Rocm::find_in(&options, false, &places(&[&bare, &newest]));
            assert_eq!(
                (found.headers, &found.bitcode),
                (Headers::Program, &library),
                "{option}"
            );
        }
        let apart = ["-I".to_owned(), bare.path().join("include").display().to_string()];
        assert_eq!(Rocm::find_in(&apart, false, &[]).headers, Headers::Program);
        let version = bare.path().join("include/hip/hip_version.h");
        std::fs::write(version, "#pragma once\n#define HIP_VERSION_MAJOR 5\n").unwrap();
        assert_eq!(Rocm::find_in(&apart, false, &[]).release, Some(5));
        assert_eq!(Rocm::find_in(&[], false, &places(&[&bare])).release, Some(5));
        let other = [format!("-I{}", empty.path().display())];
        assert_eq!(Rocm::find_in(&other, false, &[]).headers, Headers::Own);
        assert_eq!(Rocm::find_in(&[], true, &places(&[&full])).headers, Headers::Program);
    }
}
