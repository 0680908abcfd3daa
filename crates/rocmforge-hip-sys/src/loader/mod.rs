//! The AMD HIP library: found and loaded at run time, or linked.

mod search;
mod table;

pub use search::{Candidate, LoadOptions};

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use table::{Core, Optional};

/// A loaded HIP library. It is never unloaded: a HIP library keeps threads and per-thread state, and other code in the
/// process may hold pointers into it.
///
/// Loading runs the library's constructors but calls no HIP function. A library that crashes or hangs, in a constructor or
/// in `hipInit`, takes the calling process or thread with it: who does not trust the installation probes it in a
/// process of its own.
pub struct HipLibrary {
    path: PathBuf,
    core: Core,
    optional: Optional,
    simulates: bool,
}

/// What a library that simulates its cards exports, with the value 1: it needs no kernel driver, and its cards are not the machine's.
const SIMULATES: &str = "rocmforge_hip_simulates";

/// Why one candidate was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such file.
    NotFound,
    /// The dynamic linker refused it, and says why.
    Linker(String),
    /// It loaded, but is no HIP library we can use: these core functions are missing.
    MissingFunctions(Vec<&'static str>),
}

/// No usable HIP library. Lists every place looked at and why it was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// What was tried, in that order.
    pub tried: Vec<(Candidate, Refusal)>,
    /// Whether `ROCMFORGE_HIP_LIBRARY` (or the caller) named one file, so that nothing else was tried.
    pub exact: bool,
}

impl HipLibrary {
    /// Loads the library of this machine: see [`LoadOptions::from_env`] for where it looks.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if there is none, or none with every core function.
    pub fn load() -> Result<Self, LoadError> {
        Self::load_with(&LoadOptions::from_env())
    }

    /// Loads exactly this file, or this name as the dynamic linker finds it if it has no slash.
    ///
    /// # Errors
    ///
    /// [`LoadError`] with one entry.
    pub fn load_from(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::load_with(&LoadOptions {
            exact: Some(path.as_ref().to_owned()),
            ..LoadOptions::nowhere()
        })
    }

    /// Loads the first usable library of a search.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if no candidate is usable.
    pub fn load_with(options: &LoadOptions) -> Result<Self, LoadError> {
        let mut tried = Vec::new();
        for candidate in options.candidates() {
            match Self::open(&candidate) {
                Ok(library) => return Ok(library),
                Err(refusal) => tried.push((candidate, refusal)),
            }
        }
        Err(LoadError {
            tried,
            exact: options.exact.is_some(),
        })
    }

    /// The library that this program was linked with when it was built, by the crate hip-sys: the dynamic linker loads it, with its
    /// dependencies, before `main`, and refuses the program without it. Prefer [`Self::load`] unless a packager decides which ROCm a
    /// program belongs to.
    ///
    /// The optional functions are looked up in that library, because a program that names one must not be linked with a library
    /// that lacks it: HIP 5.2's header declares `hipLaunchHostFunc`, and its library has none.
    #[cfg(feature = "linked")]
    pub fn linked() -> Self {
        let core = Core::linked();
        // Where the system does not tell which file it is, the empty path opens the program with all that it is linked with.
        let path = mapped_file(core.address()).unwrap_or_default();
        let library = open(&path);
        let simulates = library.as_ref().is_ok_and(|library| simulates(library));
        let optional = library.map_or_else(|_| Optional::default(), |library| Optional::resolve(&library));
        Self {
            path,
            core,
            optional,
            simulates,
        }
    }

    /// The file that was loaded, or the name it was asked for by where the system does not tell.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the library simulates its cards, as it says itself: no kernel driver and no file of the machine knows of them.
    pub fn simulates(&self) -> bool {
        self.simulates
    }

    /// The optional functions this library lacks. Calls of them answer `hipErrorNotSupported`.
    pub fn missing_optional(&self) -> Vec<&'static str> {
        self.optional.missing()
    }

    fn open(candidate: &Candidate) -> Result<Self, Refusal> {
        let path = candidate.path.as_path();
        if has_slash(path) && !path.exists() {
            return Err(Refusal::NotFound);
        }
        let library = open(path).map_err(|error| match error {
            libloading::Error::DlOpen { source } => Refusal::Linker(source.to_string()),
            other => Refusal::Linker(other.to_string()),
        })?;
        let core = Core::resolve(&library).map_err(Refusal::MissingFunctions)?;
        let optional = Optional::resolve(&library);
        let simulates = simulates(&library);
        // Where its code is: what a stub library leads to is another file.
        let path = mapped_file(core.address()).unwrap_or_else(|| path.to_owned());
        Ok(Self {
            path,
            core,
            optional,
            simulates,
        })
    }
}

/// Whether a library, or one that it needs, says that it simulates its cards.
fn simulates(library: &Library) -> bool {
    // SAFETY: a library that exports this name has a number of 32 bits there.
    let exported = unsafe { library.get::<*const u32>(SIMULATES.as_bytes()) };
    // SAFETY: as above; the library stays loaded.
    exported.is_ok_and(|number| unsafe { number.read() } == 1)
}

/// Opens a library for good: nothing of HIP survives its own dlclose, and what lacks a function may be an old HIP whose constructors
/// have started threads.
fn open(path: &Path) -> Result<ManuallyDrop<Library>, libloading::Error> {
    // RTLD_NOW: a library whose own dependencies do not match is refused here, not in the middle of a program.
    //
    // SAFETY: runs the constructors of a library that the user, the administrator or the distribution put where HIP
    // belongs. Nothing can be checked about it; that is what the type's documentation says.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(ManuallyDrop::new)
}

fn has_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().contains(&b'/')
}

/// The file that is mapped at an address, where the system tells (Linux).
fn mapped_file(address: usize) -> Option<PathBuf> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    maps.split(|&b| b == b'\n').find_map(|line| {
        let range = str::from_utf8(line.split(|&b| b == b' ').next()?).ok()?;
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        if !(start..end).contains(&address) {
            return None;
        }
        let name = line.iter().position(|&b| b == b'/')?;
        Some(path_from(&line[name..]))
    })
}

fn path_from(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(bytes))
}

impl fmt::Debug for HipLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HipLibrary")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("no such file"),
            Self::Linker(reason) => f.write_str(reason),
            Self::MissingFunctions(names) => {
                write!(f, "not a HIP library this crate can use: it lacks {}", names[0])?;
                names[1..].iter().take(7).try_for_each(|name| write!(f, ", {name}"))?;
                if names.len() > 8 {
                    write!(f, " and {} more", names.len() - 8)
                } else {
                    Ok(())
                }
            }
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from(match (self.exact, self.tried.len()) {
            (true, _) => "the HIP library that was named is not usable, and no other one was tried:",
            (false, 0) => "no HIP library: there was nowhere to look",
            (false, _) => {
                "no usable HIP library. Install ROCm's HIP runtime, set ROCM_PATH to where it is, or name the file with \
                 ROCMFORGE_HIP_LIBRARY. Tried:"
            }
        });
        for (candidate, refusal) in &self.tried {
            write!(text, "\n  {} ({}): {refusal}", candidate.path.display(), candidate.from)?;
        }
        f.write_str(&text)
    }
}

impl std::error::Error for LoadError {}
