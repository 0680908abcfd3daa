//! Search order of the loader, with an environment of the test's own.

use crate::fake::Fake;
use rocmforge_hip_sys::{HipApi, HipLibrary, LoadOptions, Refusal};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `LoadOptions::from_lookup` over these variables, with nothing of this machine.
fn options(variables: &[(&str, &Path)]) -> LoadOptions {
    let lookup = |name: &str| -> Option<OsString> {
        variables
            .iter()
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value.as_os_str().to_owned())
    };
    LoadOptions {
        sonames: Vec::new(),
        opt: None,
        ..LoadOptions::from_lookup(lookup)
    }
}

fn version(hip: &HipLibrary) -> i32 {
    let mut version = 0;
    // SAFETY: it writes one int.
    let status = unsafe { hip.hipRuntimeGetVersion(&mut version) };
    assert!(status.is_success());
    version
}

fn root(folder: &Path, name: &str, soname: &str, version: i32) -> PathBuf {
    let root = folder.join(name);
    Fake::new().version(version).build(&root.join("lib").join(soname));
    root
}

#[test]
fn no_library_at_all_lists_every_place() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(here.join("rocm-6.2.0/lib")).unwrap();
    let mut options = options(&[
        ("ROCM_PATH", &here.join("nowhere")),
        ("HIP_PATH", &here.join("neither")),
    ]);
    options.sonames = vec!["librocmforge-no-such-library.so.7".to_owned()];
    options.opt = Some(here.clone());
    let error = HipLibrary::load_with(&options).unwrap_err();
    assert!(!error.exact);
    // Three names in each of two roots, one name for the linker, three names in one installation.
    assert_eq!(error.tried.len(), 10, "{error}");
    let refusals: Vec<&Refusal> = error.tried.iter().map(|(_, refusal)| refusal).collect();
    assert!(
        refusals[..6]
            .iter()
            .chain(&refusals[7..])
            .all(|refusal| **refusal == Refusal::NotFound),
        "{error}"
    );
    assert!(
        matches!(refusals[6], Refusal::Linker(why) if why.contains("librocmforge-no-such-library")),
        "{error}"
    );
    let text = error.to_string();
    for expected in [
        "ROCMFORGE_HIP_LIBRARY",
        &format!(
            "{}/nowhere/lib/libamdhip64.so.7 (ROCM_PATH): no such file",
            here.display()
        ),
        &format!(
            "{}/neither/lib/libamdhip64.so.5 (HIP_PATH): no such file",
            here.display()
        ),
        "librocmforge-no-such-library.so.7 (dynamic linker): ",
        &format!(
            "{}/rocm-6.2.0/lib/libamdhip64.so.6 (found in {}): no such file",
            here.display(),
            here.display()
        ),
    ] {
        assert!(text.contains(expected), "{expected} is not in: {text}");
    }
}

#[test]
fn nowhere_to_look_is_an_error_too() {
    let error = HipLibrary::load_with(&LoadOptions::nowhere()).unwrap_err();
    assert!(error.tried.is_empty() && error.to_string().contains("nowhere to look"));
}

#[test]
fn the_default_search_has_the_documented_order() {
    let options = LoadOptions::from_lookup(|name| match name {
        "ROCM_PATH" => Some("/r".into()),
        "HIP_PATH" => Some("".into()), // empty is not set
        _ => None,
    });
    assert_eq!(options.opt.as_deref(), Some(Path::new("/opt")));
    let paths: Vec<PathBuf> = options
        .candidates()
        .into_iter()
        .map(|candidate| candidate.path)
        .collect();
    let expected = [
        "/r/lib/libamdhip64.so.7",
        "/r/lib/libamdhip64.so.6",
        "/r/lib/libamdhip64.so.5",
        "libamdhip64.so.7",
        "libamdhip64.so.6",
        "libamdhip64.so.5",
    ];
    assert_eq!(paths[..6], expected.map(PathBuf::from));
}

#[test]
fn an_exact_library_has_no_fallback() {
    let folder = tempfile::tempdir().unwrap();
    let good = root(folder.path(), "good", "libamdhip64.so.6", 6);
    let missing = folder.path().join("missing.so");
    let error =
        HipLibrary::load_with(&options(&[("ROCMFORGE_HIP_LIBRARY", &missing), ("ROCM_PATH", &good)])).unwrap_err();
    assert!(error.exact);
    assert_eq!(error.tried.len(), 1);
    assert_eq!(error.tried[0].1, Refusal::NotFound);
    assert!(error.to_string().contains("no other one was tried"), "{error}");
}

#[test]
fn an_exact_library_comes_before_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let good = root(folder.path(), "good", "libamdhip64.so.6", 6);
    let exact = Fake::new().version(42).build(&folder.path().join("mine.so"));
    let hip = HipLibrary::load_with(&options(&[("ROCMFORGE_HIP_LIBRARY", &exact), ("ROCM_PATH", &good)])).unwrap();
    assert_eq!(version(&hip), 42);
    assert_eq!(hip.path().canonicalize().unwrap(), exact.canonicalize().unwrap());
}

#[test]
fn rocm_path_comes_before_hip_path_and_newer_before_older() {
    let folder = tempfile::tempdir().unwrap();
    let rocm = root(folder.path(), "rocm", "libamdhip64.so.5", 55);
    root(folder.path(), "rocm", "libamdhip64.so.6", 56);
    let hip = root(folder.path(), "hip", "libamdhip64.so.7", 77);
    let both = options(&[("ROCM_PATH", &rocm), ("HIP_PATH", &hip)]);
    assert_eq!(version(&HipLibrary::load_with(&both).unwrap()), 56);
    assert_eq!(
        version(&HipLibrary::load_with(&options(&[("HIP_PATH", &hip)])).unwrap()),
        77
    );
}

#[test]
fn an_unusable_library_does_not_end_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let root = root(folder.path(), "rocm", "libamdhip64.so.6", 6);
    Fake::new().without("hipFree").build(&root.join("lib/libamdhip64.so.7"));
    let hip = HipLibrary::load_with(&options(&[("ROCM_PATH", &root)])).unwrap();
    assert_eq!(version(&hip), 6);
    assert!(hip.path().ends_with("lib/libamdhip64.so.6"), "{}", hip.path().display());
}

#[test]
fn installations_are_searched_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let opt = folder.path();
    root(opt, "rocm-6.9.1", "libamdhip64.so.6", 691);
    root(opt, "rocm-6.10.0", "libamdhip64.so.6", 6100);
    root(opt, "rocm-5.7.0", "libamdhip64.so.5", 570);
    root(opt, "not-rocm", "libamdhip64.so.7", 7);
    std::os::unix::fs::symlink(opt.join("rocm-5.7.0"), opt.join("rocm")).unwrap();
    let options = LoadOptions {
        opt: Some(opt.to_owned()),
        ..LoadOptions::nowhere()
    };
    assert_eq!(
        options.candidates().len(),
        9,
        "three installations, the link is none of its own"
    );
    assert_eq!(version(&HipLibrary::load_with(&options).unwrap()), 6100);
    std::fs::remove_dir_all(opt.join("rocm-6.10.0")).unwrap();
    assert_eq!(version(&HipLibrary::load_with(&options).unwrap()), 691);
}
