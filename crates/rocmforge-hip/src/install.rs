//! Installation: the stub libraries of a folder, and the environment that makes a program load them.

use crate::auditor;
use crate::blas;
use crate::companion::{self, COMPANIONS, Companion};
use crate::names::{NODES, stubs};
use crate::settings::{Abi, Settings};
use crate::stub_library::{StubError, StubLibrary};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// The file name of this crate's library.
pub const LIBRARY: &str = "librocmforge_hip.so";

/// Why a program cannot be made to load the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The library is in none of the places where cargo puts it.
    #[error(
        "{LIBRARY} is not beside this program; looked at {}. Build it with `cargo build --release -p rocmforge-hip`",
        places(.tried)
    )]
    NoLibrary {
        /// Where it was looked for.
        tried: Vec<PathBuf>,
    },
    /// A path that cannot be given to the dynamic linker: not UTF-8, or with a colon or a space in it.
    #[error("the path {0:?} cannot be given to the dynamic linker")]
    Path(PathBuf),
    /// A file cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A stub library cannot be made.
    #[error(transparent)]
    Stub(#[from] StubError),
}

fn places(tried: &[PathBuf]) -> String {
    let tried: Vec<_> = tried.iter().map(|path| path.display().to_string()).collect();
    tried.join(", ")
}

/// Stub libraries in a folder.
#[derive(Debug, Clone)]
pub struct Installation {
    folder: PathBuf,
    library: PathBuf,
}

fn put(folder: &Path, stub: &StubLibrary<'_>) -> Result<(), InstallError> {
    let path = folder.join(stub.soname);
    std::fs::write(&path, stub.write()?).map_err(|source| InstallError::Write { path, source })
}

impl Installation {
    /// The library beside the running program: in its folder, or in cargo's `deps` below it.
    ///
    /// # Errors
    /// [`InstallError::NoLibrary`].
    pub fn find_library() -> Result<PathBuf, InstallError> {
        let program = std::env::current_exe().unwrap_or_default();
        let beside = program.parent().unwrap_or(Path::new("."));
        let places = [
            beside.join(LIBRARY),
            beside.join("deps").join(LIBRARY),
            beside.join("../lib").join(LIBRARY),
        ];
        match places.iter().find(|path| path.is_file()) {
            Some(path) => Ok(path.clone()),
            None => Err(InstallError::NoLibrary { tried: places.to_vec() }),
        }
    }

    /// Writes the stub libraries of every interface to an existing folder; they load `library`.
    ///
    /// # Errors
    /// [`InstallError`].
    pub fn write(folder: &Path, library: &Path) -> Result<Self, InstallError> {
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|source| InstallError::Write {
                path: path.to_owned(),
                source,
            })
        };
        let (folder, library) = (absolute(folder)?, absolute(library)?);
        // Both go into lists that these characters separate.
        for path in [&folder, &library] {
            if path.to_str().is_none_or(|text| text.contains([':', ' ', ';'])) {
                return Err(InstallError::Path(path.clone()));
            }
        }
        let installation = Self { folder, library };
        for abi in Abi::ALL {
            installation.hip_library(abi)?;
        }
        for (abi, blas, rocblas) in [(Abi::Hip6, 2, 4), (Abi::Hip7, 3, 5)] {
            // Programs that are linked to hipBLAS alone find HIP's functions and rocBLAS's through it.
            let hip = format!("libamdhip64.so.{}", abi.number());
            let rocblas_name = format!("librocblas.so.{rocblas}");
            installation.blas_library("hipblas", blas, &[&hip, &rocblas_name])?;
            installation.blas_library("rocblas", rocblas, &[&hip])?;
        }
        let companions = installation.folder.join(auditor::COMPANIONS);
        std::fs::create_dir_all(&companions).map_err(|source| InstallError::Write {
            path: companions.clone(),
            source,
        })?;
        for companion in COMPANIONS {
            for (abi, version) in [Abi::Hip6, Abi::Hip7].into_iter().zip(companion.versions) {
                installation.companion_library(companion, version, abi)?;
            }
            let name = format!("{}/lib{}.so", auditor::COMPANIONS, companion.name);
            installation.link(&name, &format!("lib{}.so.{}", companion.name, companion.versions[0]))?;
        }
        for version in [6, 7] {
            installation.rtc_library(version)?;
        }
        // What programs ask for that were linked against a library without a soname, or that load it by hand.
        for (name, soname) in [
            ("libamdhip64.so", "libamdhip64.so.6"),
            ("libhiprtc.so", "libhiprtc.so.6"),
            ("libhipblas.so", "libhipblas.so.2"),
            ("librocblas.so", "librocblas.so.4"),
        ] {
            installation.link(name, soname)?;
        }
        Ok(installation)
    }

    fn hip_library(&self, abi: Abi) -> Result<(), InstallError> {
        let soname = format!("libamdhip64.so.{}", abi.number());
        let stub = StubLibrary {
            soname: &soname,
            needed: self.library.to_str().into_iter().collect(),
            table: "rocmforge_hip_functions",
            nodes: NODES.to_vec(),
            functions: stubs(),
        };
        self.put(&stub)
    }

    /// hiprtc by itself: its functions are those of HIP's library.
    fn rtc_library(&self, version: u8) -> Result<(), InstallError> {
        self.put(&StubLibrary {
            soname: &format!("libhiprtc.so.{version}"),
            needed: self.library.to_str().into_iter().collect(),
            table: "rocmforge_hip_functions",
            nodes: NODES.to_vec(),
            functions: stubs()
                .into_iter()
                .filter(|stub| stub.name.starts_with("hiprtc"))
                .collect(),
        })
    }

    fn companion_library(&self, companion: &Companion, version: u8, abi: Abi) -> Result<(), InstallError> {
        let folder = self.folder.join(auditor::COMPANIONS);
        let hip = format!("libamdhip64.so.{}", abi.number());
        // Some programs find HIP's functions through them alone. One file for both versions of HIP cannot lead to either.
        let [old, new] = companion.versions;
        let hip = (old != new).then_some(hip.as_str());
        put(
            &folder,
            &StubLibrary {
                soname: &format!("lib{}.so.{version}", companion.name),
                needed: self.library.to_str().into_iter().chain(hip).collect(),
                table: companion::TABLE,
                nodes: companion.node.into_iter().collect(),
                functions: companion::stubs(companion.name),
            },
        )
    }

    fn blas_library(&self, name: &str, version: u8, others: &[&str]) -> Result<(), InstallError> {
        let soname = format!("lib{name}.so.{version}");
        self.put(&StubLibrary {
            soname: &soname,
            needed: self
                .library
                .to_str()
                .into_iter()
                .chain(others.iter().copied())
                .collect(),
            table: blas::TABLE,
            nodes: Vec::new(),
            functions: blas::stubs(name),
        })
    }

    fn put(&self, stub: &StubLibrary<'_>) -> Result<(), InstallError> {
        put(&self.folder, stub)
    }

    fn link(&self, name: &str, to: &str) -> Result<(), InstallError> {
        let path = self.folder.join(name);
        match std::os::unix::fs::symlink(to, &path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => Err(InstallError::Write { path, source }),
            _ => Ok(()),
        }
    }

    /// The folder of the stub libraries.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The variables that a program is to be started with, on top of those of this process.
    pub fn environment(&self, settings: &Settings) -> Vec<(&'static str, OsString)> {
        let prepended = |variable: &str, path: &Path, separator: &str| {
            let mut value = path.as_os_str().to_owned();
            // An empty item of LD_LIBRARY_PATH would mean the current folder.
            if let Some(old) = std::env::var_os(variable).filter(|old| !old.is_empty()) {
                value.push(OsStr::new(separator));
                value.push(old);
            }
            value
        };
        let abi = settings.hip.unwrap_or(Abi::Hip7);
        let soname = format!("libamdhip64.so.{}", abi.number());
        vec![
            (Settings::VARIABLE, settings.to_variable().into()),
            (auditor::FOLDER_VARIABLE, self.folder.clone().into()),
            ("LD_LIBRARY_PATH", prepended("LD_LIBRARY_PATH", &self.folder, ":")),
            ("LD_AUDIT", prepended("LD_AUDIT", &self.library, ":")),
            // A program of ROCmForge's runtime takes this file.
            ("ROCMFORGE_HIP_LIBRARY", self.folder.join(soname).into()),
            // Triton takes this file and looks nowhere else.
            ("TRITON_LIBHIP_PATH", self.folder.join("libamdhip64.so").into()),
        ]
    }
}
