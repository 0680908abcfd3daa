//! The stand-ins, compiled for a test each.

use libloading::os::unix::Library;
use rocmforge_nvidia::CudaDriver;
use rocmforge_test_support::shared_library;
use std::ffi::{c_int, c_uint};
use std::path::{Path, PathBuf};

/// A library of its own for each test: the stand-in keeps what it has seen.
pub(crate) struct Fake {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

/// Compiles the driver's stand-in; a function in `without` gets another name.
pub(crate) fn build(without: &[&str]) -> Fake {
    let left_out: Vec<String> = without.iter().map(|name| format!("{name}=left_out_{name}")).collect();
    compile("cuda.c", "libcuda.so.1", &left_out)
}

/// Compiles a stand-in, with these definitions.
pub(crate) fn compile(source: &str, library: &str, defines: &[impl AsRef<str>]) -> Fake {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(library);
    let defines: Vec<String> = defines.iter().map(|define| format!("-D{}", define.as_ref())).collect();
    let defines: Vec<&str> = defines.iter().map(String::as_str).collect();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/driver").join(source);
    shared_library(&source, &path, &defines);
    Fake { _folder: folder, path }
}

impl Fake {
    pub(crate) fn driver(&self) -> CudaDriver {
        CudaDriver::load_from(self.path.to_str().unwrap()).unwrap()
    }

    /// A function of the stand-in's own, by name.
    fn own<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the library is the stand-in, which has no constructors; the caller names the type in `cuda.c`.
        let library = unsafe { Library::new(&self.path) }.unwrap();
        // SAFETY: as above.
        let function = *unsafe { library.get::<F>(name.as_bytes()) }.unwrap();
        std::mem::forget(library);
        function
    }

    pub(crate) fn seen(&self, index: c_int) -> u64 {
        let seen: unsafe extern "C" fn(c_int) -> u64 = self.own("fake_seen");
        // SAFETY: an index below 16, by the callers.
        unsafe { seen(index) }
    }

    pub(crate) fn answer(&self, status: c_uint) {
        let answer: unsafe extern "C" fn(c_uint) = self.own("fake_answer");
        // SAFETY: takes a number.
        unsafe { answer(status) }
    }

    /// Like `answer`, once so many calls have been made.
    pub(crate) fn answer_after(&self, calls: c_int, status: c_uint) {
        let answer: unsafe extern "C" fn(c_int, c_uint) = self.own("fake_answer_after");
        // SAFETY: takes numbers.
        unsafe { answer(calls, status) }
    }

    /// Whether a call has answered what it was to answer.
    pub(crate) fn has_answered(&self) -> bool {
        let answered: unsafe extern "C" fn() -> c_int = self.own("fake_has_answered");
        // SAFETY: takes nothing.
        unsafe { answered() != 0 }
    }

    pub(crate) fn contexts(&self) -> c_int {
        let contexts: unsafe extern "C" fn() -> c_int = self.own("fake_contexts");
        // SAFETY: takes nothing.
        unsafe { contexts() }
    }
}
