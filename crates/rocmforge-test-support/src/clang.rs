//! The command line that makes a bare code object of a HIP source.

use std::process::Command;

/// `clang` for one target: no warnings, no header and no device library of ROCm, no bundle around the object. Language version, level, source and
/// output are the caller's.
pub fn device_clang(clang: &str, arch: &str) -> Command {
    let mut command = Command::new(clang);
    command
        .args("-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -w".split(' '))
        .arg(format!("--offload-arch={arch}"));
    command
}
