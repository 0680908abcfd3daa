//! Auditor of the dynamic linker (`rtld-audit`): answers every search for a library of HIP with the stub library, also where an RPATH
//! or an absolute path would find another one. A companion library ([`crate::companion`]) is found only where the program has none.
//!
//! The dynamic linker calls these two functions when the library is named in `LD_AUDIT`; a program that loads it otherwise never does.

use std::ffi::{CStr, CString, OsStr, c_char, c_uint};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The environment variable with the folder of the stub libraries, for the auditor of the dynamic linker.
pub(crate) const FOLDER_VARIABLE: &str = "ROCMFORGE_HIP_FOLDER";

/// Libraries that are redirected: their files are called so, `.so` and a version.
const REDIRECTED: [&str; 4] = ["libamdhip64", "libhiprtc", "libhipblas", "librocblas"];

/// The folder of the companion libraries, below that of the stub libraries.
pub(crate) const COMPANIONS: &str = "companions";

/// The dynamic linker looks in the system's folders, after all others: `LA_SER_DEFAULT`.
const DEFAULT: c_uint = 0x40;

/// The newest version of the interface that both know.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn la_version(offered: c_uint) -> c_uint {
    const KNOWN: c_uint = 2;
    offered.min(KNOWN)
}

/// Where to look for a library.
///
/// # Safety
/// `name` is a text, as the dynamic linker passes it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn la_objsearch(name: *mut c_char, _cookie: *mut usize, stage: c_uint) -> *mut c_char {
    if name.is_null() {
        return name;
    }
    // SAFETY: promised by the dynamic linker; not null.
    let asked = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from) else {
        return name;
    };
    match redirect(asked, &folder).or_else(|| companion(asked, &folder, stage)) {
        // The dynamic linker keeps the text as long as the program runs.
        Some(path) => CString::new(path.into_os_string().into_vec()).map_or(name, CString::into_raw),
        None => name,
    }
}

/// The file of `folder` that takes the place of `asked`; none if it is another library, or one that the folder does not have.
fn redirect(asked: &Path, folder: &Path) -> Option<PathBuf> {
    let (stem, version) = asked.file_name()?.to_str()?.split_once(".so")?;
    let name = REDIRECTED.iter().find(|name| is_copy_of(stem, name))?;
    if asked.parent() == Some(folder) {
        return None;
    }
    // `libamdhip64.so.6.3.60303` is `libamdhip64.so.6`.
    let major = version.strip_prefix('.').and_then(|rest| rest.split('.').next());
    let soname = major.map_or_else(|| format!("{name}.so"), |major| format!("{name}.so.{major}"));
    Some(folder.join(soname)).filter(|path| path.exists())
}

/// Whether a file called `stem` is the library `name`, or a copy that a tool for wheels has put beside a program: auditwheel adds a part of the
/// file's hash, `libamdhip64-69e34bce`.
fn is_copy_of(stem: &str, name: &str) -> bool {
    stem.strip_prefix(name).is_some_and(|rest| {
        let hash = rest.strip_prefix('-');
        let is_hash = |hash: &str| hash.len() >= 8 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        rest.is_empty() || hash.is_some_and(is_hash)
    })
}

/// The companion that takes the place of `asked`, if this is one of the last places where the dynamic linker looks and nothing is there.
fn companion(asked: &Path, folder: &Path, stage: c_uint) -> Option<PathBuf> {
    if stage != DEFAULT || asked.exists() {
        return None;
    }
    let file = asked.file_name()?.to_str()?;
    if !file.starts_with("lib") {
        return None;
    }
    Some(folder.join(COMPANIONS).join(file)).filter(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_hip_are_redirected_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libamdhip64.so.6"), "").unwrap();
        let of = |asked: &str| redirect(Path::new(asked), folder.path());
        let ours = Some(folder.path().join("libamdhip64.so.6"));
        for asked in [
            "libamdhip64.so.6",
            "/opt/rocm/lib/libamdhip64.so.6",
            "libamdhip64.so.6.3.60303",
            "/wheel/some.libs/libamdhip64-69e34bce.so.6.4.60403",
            "libamdhip64-0123456789ABCDEF.so.6",
        ] {
            assert_eq!(of(asked), ours, "{asked}");
        }
        for asked in [
            "libamdhip64.so.9",
            "libc.so.6",
            "libamdhip64",
            "/",
            "",
            // Other libraries, and other libraries' files.
            "libamdhip64-tools.so.6",
            "libamdhip64-.so.6",
            "libamdhip64-12.so.6",
            "libamdhip64x69e34bce.so.6",
            "libamdhip64.source",
        ] {
            assert_eq!(of(asked), None, "{asked}");
        }
        let own = folder.path().join("libamdhip64.so.6");
        assert_eq!(of(own.to_str().unwrap()), None);
    }

    #[test]
    fn a_companion_is_the_last_place_to_look() {
        let folder = tempfile::tempdir().unwrap();
        let companions = folder.path().join(COMPANIONS);
        std::fs::create_dir(&companions).unwrap();
        std::fs::write(companions.join("librocfft.so.0"), "").unwrap();
        let installed = folder.path().join("librocfft.so.0");
        let ours = Some(companions.join("librocfft.so.0"));
        assert_eq!(companion(&installed, folder.path(), DEFAULT), ours);
        for earlier in [1, 2, 4, 8] {
            assert_eq!(companion(&installed, folder.path(), earlier), None, "stage {earlier}");
        }
        assert_eq!(companion(Path::new("/lib/libother.so.0"), folder.path(), DEFAULT), None);
        std::fs::write(&installed, "").unwrap();
        assert_eq!(companion(&installed, folder.path(), DEFAULT), None, "one is installed");
    }
}
