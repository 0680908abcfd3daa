//! Names by which programs ask for HIP's libraries: without a version, and those of copies that a tool for wheels has put beside a program.

use crate::{COMPILER, missing, succeeds, texts};
use std::path::Path;
use std::process::Command;

/// What auditwheel calls a copy of AMD's library.
const COPY: &str = "libamdhip64-69e34bce.so.7.14.60850";

fn compile(folder: &Path, name: &str, source: &str, arguments: &[&str]) {
    let file = format!("{name}.cpp");
    std::fs::write(folder.join(&file), source).expect("written");
    let mut command = Command::new(COMPILER);
    succeeds(command.current_dir(folder).args([&file, "-o", name]).args(arguments));
}

#[track_caller]
fn prints(folder: &Path, program: &str, expected: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge-sanitize"));
    command.current_dir(folder).args(["run", "--", program]);
    let ran = command.output().expect("the program under test is built");
    let (out, found) = texts(&ran);
    assert!(
        ran.status.success() && out == expected,
        "{}\n{out}\n{found}",
        ran.status
    );
}

/// The copy answers that there is no card: it must not be loaded. With version nodes, which the dynamic linker looks for under the copy's
/// name, and without.
#[test]
fn a_copy_in_a_wheel_is_redirected() {
    if let Some(missing) = missing() {
        rocmforge_testkit::skip!("{missing}");
    }
    for nodes in ["", "-Wl,--version-script=nodes"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        std::fs::create_dir(folder.join("libs")).expect("a folder");
        std::fs::write(folder.join("nodes"), "hip_4.2 { global: *; };\n").expect("written");
        let copy = format!("libs/{COPY}");
        let soname = format!("-Wl,-soname,{COPY}");
        let own = "extern \"C\" int hipGetDeviceCount(int* n) { *n = 0; return 100; }\n";
        let mut arguments = vec!["-shared", "-fPIC", soname.as_str()];
        arguments.extend((!nodes.is_empty()).then_some(nodes));
        compile(folder, &copy, own, &arguments);
        // Another library of the wheel needs it too.
        let second =
            "extern \"C\" int hipGetDeviceCount(int*);\nint cards() { int n = 0; hipGetDeviceCount(&n); return n; }\n";
        let path = "-Wl,--disable-new-dtags,-rpath,$ORIGIN";
        compile(folder, "libs/libsecond.so", second, &["-shared", "-fPIC", &copy, path]);
        let program = "#include <cstdio>\nextern \"C\" int hipGetDeviceCount(int*);\nint cards();\n\
                       int main() { int n = 0; hipGetDeviceCount(&n); printf(\"%d %d cards\\n\", n, cards()); }\n";
        let path = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/libs";
        compile(folder, "program", program, &["libs/libsecond.so", &copy, path]);
        prints(folder, "./program", "1 1 cards\n");
    }
}

#[test]
fn libraries_are_found_without_a_version() {
    if let Some(missing) = missing() {
        rocmforge_testkit::skip!("{missing}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = r#"
#include <dlfcn.h>
#include <cstdio>
int main() {
    const char* names[][2] = {{"libamdhip64.so", "hipMalloc"}, {"libhiprtc.so", "hiprtcCreateProgram"}, {"libhipblas.so", "hipblasCreate"}, {"librocblas.so", "rocblas_create_handle"}};
    for (auto& name : names) {
        void* library = dlopen(name[0], RTLD_NOW);
        puts(library && dlsym(library, name[1]) ? name[0] : dlerror());
    }
}
"#;
    compile(folder.path(), "program", program, &["-ldl"]);
    let expected = "libamdhip64.so\nlibhiprtc.so\nlibhipblas.so\nlibrocblas.so\n";
    prints(folder.path(), "./program", expected);
}
