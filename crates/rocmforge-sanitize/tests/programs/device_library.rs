//! AMD's device library as the distribution has it (package `rocm-device-libs`, of ROCm 5), made ready for gfx1100 and gfx1201.
//!
//! It is older than these cards in two places. Their constant of the instruction set is missing; and it reads the wall clock by an intrinsic
//! for an instruction that they do not have: LLVM removes the functions that do, and what waits for a time in device `malloc` then waits
//! for ever. Newer releases of the library have the constants, and LLVM's `readsteadycounter` there.

use super::{COMPILER, succeeds};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const BITCODE: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";
/// Names in file names, and what the library compares with.
const PROCESSORS: [(&str, u32); 2] = [("1100", 11000), ("1201", 12001)];

/// What is missing to link it.
pub(super) fn missing() -> Option<String> {
    let there = Path::new(BITCODE).join("ockl.bc").exists();
    (!there).then(|| "AMD's device library (rocm-device-libs) is not installed".to_owned())
}

/// The folder of the library that the compiler is given.
pub(super) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("device-library");
        // Of this process: another run of the tests may be making it too.
        let own = folder.with_extension(std::process::id().to_string());
        std::fs::create_dir_all(&own).expect("a folder");
        for entry in std::fs::read_dir(BITCODE).expect("it is installed") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a file");
            if name != "ockl.bc" {
                std::fs::copy(&path, own.join(name)).expect("copied");
            }
        }
        for (name, number) in PROCESSORS {
            let text = format!(
                "target triple = \"amdgcn-amd-amdhsa\"\n\
                 @__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {number}, align 4\n"
            );
            assemble(&own, &text, &format!("oclc_isa_version_{name}.bc"));
        }
        let library = Path::new(BITCODE).join("ockl.bc");
        succeeds(convert(&own).args(["-S", "-o", "ockl.ll"]).arg(library));
        let text = std::fs::read_to_string(own.join("ockl.ll")).expect("written");
        let text = text
            .replace("@llvm.amdgcn.s.memrealtime()", "@llvm.readsteadycounter()")
            .replace(" \"target-features\"=\"+s-memrealtime\"", "");
        assemble(&own, &text, "ockl.bc");
        // Whoever comes second keeps the other's, which is the same.
        if std::fs::rename(&own, &folder).is_err() {
            let _ = std::fs::remove_dir_all(&folder);
            let _ = std::fs::rename(&own, &folder);
        }
        folder
    })
}

fn convert(folder: &Path) -> Command {
    let mut command = Command::new(COMPILER);
    command
        .current_dir(folder)
        .args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "-x", "ir", "-emit-llvm"])
        .args(["-Xclang", "-disable-llvm-passes"]);
    command
}

fn assemble(folder: &Path, text: &str, name: &str) {
    std::fs::write(folder.join("source.ll"), text).expect("written");
    succeeds(convert(folder).args(["-c", "source.ll", "-o", name]));
}
