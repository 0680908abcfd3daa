//! Libraries that do not behave: each loads or is refused as it should be, and its crash or hang stays in a child.

use crate::child::{self, End};
use crate::fake::Fake;
use rocmforge_hip_sys::{HipApi, HipLibrary, Refusal, hipErrorNotSupported, hipSuccess};
use std::os::unix::process::ExitStatusExt;

#[test]
fn a_missing_core_function_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new().without("hipMalloc").without("hipModuleLaunchKernel");
    let path = fake.build(&folder.path().join("libfake.so"));
    let error = HipLibrary::load_from(&path).unwrap_err();
    assert_eq!(error.tried.len(), 1);
    assert_eq!(
        error.tried[0].1,
        Refusal::MissingFunctions(vec!["hipMalloc", "hipModuleLaunchKernel"])
    );
    assert!(
        error.to_string().contains("hipMalloc, hipModuleLaunchKernel"),
        "{error}"
    );
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    // Its constructors have run and may have started threads: it stays, though it is not used.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains(path.to_str().unwrap()), "a refused library was unloaded");
}

#[test]
fn a_library_of_something_else_lists_a_few_of_the_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut fake = Fake::new();
    for name in rocmforge_hip_sys::CORE_FUNCTIONS {
        fake = fake.without(name);
    }
    let error = HipLibrary::load_from(fake.build(&folder.path().join("libother.so"))).unwrap_err();
    let more = rocmforge_hip_sys::CORE_FUNCTIONS.len() - 8;
    assert!(error.to_string().ends_with(&format!("and {more} more")), "{error}");
}

#[test]
fn a_missing_optional_function_answers_not_supported() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new().without("hipExtGetLastError").without("hipGraphDestroy");
    let hip = HipLibrary::load_from(fake.build(&folder.path().join("libfake.so"))).unwrap();
    assert_eq!(hip.missing_optional(), ["hipExtGetLastError", "hipGraphDestroy"]);
    // SAFETY: the fake has no such function; nothing is called.
    assert_eq!(unsafe { hip.hipExtGetLastError() }, hipErrorNotSupported);
    // SAFETY: as above; no handle is looked at.
    let status = unsafe { hip.hipGraphDestroy(std::ptr::null_mut()) };
    assert_eq!(status, hipErrorNotSupported);
    // SAFETY: the fake ignores its argument.
    assert_eq!(unsafe { hip.hipInit(0) }, hipSuccess);
}

#[test]
fn files_that_are_no_library_are_refused_with_the_linkers_words() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libtext.so");
    std::fs::write(&text, "not a library").unwrap();
    for path in [text.as_path(), folder.path()] {
        let error = HipLibrary::load_from(path).unwrap_err();
        assert!(
            matches!(&error.tried[0].1, Refusal::Linker(why) if !why.is_empty()),
            "{error:?}"
        );
    }
    // A library that needs one that does not exist.
    let path = Fake::new().and("unsigned nobody_has_this(void);\nunsigned use(void) { return nobody_has_this(); }\n");
    let error = HipLibrary::load_from(path.build(&folder.path().join("libneedy.so"))).unwrap_err();
    assert!(error.to_string().contains("nobody_has_this"), "{error}");
}

/// The child's part: loads the library, says so, and calls `hipInit`.
fn load_and_init(path: &str) -> ! {
    let hip = HipLibrary::load_from(path).unwrap();
    println!("loaded");
    // SAFETY: the fake's own business; this process exists to take the consequences.
    let status = unsafe { hip.hipInit(0) };
    println!("returned {status}");
    std::process::exit(0)
}

#[test]
fn a_crash_in_hip_init_stays_in_the_child() {
    if let Some(path) = child::role() {
        load_and_init(&path);
    }
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new().with("hipInit", "unsigned hipInit(unsigned flags) { abort(); }");
    let path = fake.build(&folder.path().join("libcrash.so"));
    let name = "misbehaving::a_crash_in_hip_init_stays_in_the_child";
    let (end, output) = child::run(name, path.to_str().unwrap());
    let End::Exited(status) = end else {
        panic!("it hung: {output}")
    };
    assert_eq!(status.signal(), Some(6), "SIGABRT expected, not {status}: {output}");
    assert!(
        output.contains("loaded") && !output.contains("returned"),
        "loading alone calls nothing: {output}"
    );
}

#[test]
fn a_hang_in_hip_init_stays_in_the_child() {
    if let Some(path) = child::role() {
        load_and_init(&path);
    }
    let folder = tempfile::tempdir().unwrap();
    // It makes a file when it is entered, so that the parent need not guess when it hangs.
    let entered = folder.path().join("entered");
    let body = format!(
        "#include <fcntl.h>\nunsigned hipInit(unsigned flags) {{ open(\"{}\", O_CREAT, 0600); for (;;) pause(); }}",
        entered.display()
    );
    let path = Fake::new()
        .with("hipInit", body)
        .build(&folder.path().join("libhang.so"));
    let name = "misbehaving::a_hang_in_hip_init_stays_in_the_child";
    let (end, output) = child::run_until(name, path.to_str().unwrap(), || entered.exists());
    assert!(matches!(end, End::TimedOut), "it ended: {end:?}: {output}");
    assert!(
        entered.exists(),
        "the child did not get as far as hipInit within the limit"
    );
    assert!(
        output.contains("loaded") && !output.contains("returned"),
        "loading alone calls nothing: {output}"
    );
}
