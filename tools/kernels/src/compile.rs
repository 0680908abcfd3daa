//! The compiler and its flags.

use crate::targets::is_ptx;
use crate::{KernelsError, at, families, read, workspace_root};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The compiler release the committed packs are made with.
pub(crate) const PINNED: &str = "19.1.7";
/// Its major version, as Debian names the package.
pub(crate) const PINNED_MAJOR: &str = "19";

/// Everything but the source, the target and the output. `-fuse-cuid=none`, the prefix map and the compilation directory make the
/// result independent of where the repository lies; `--no-gpu-bundle-output` because the bundler is a package of its own.
pub(crate) const FLAGS: &[&str] = &[
    "-x",
    "hip",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-nogpulib",
    "-nogpuinc",
    "-std=c++20",
    "-O3",
    "-mcode-object-version=5",
    "-fuse-cuid=none",
    "-gline-tables-only",
    "-fdebug-compilation-dir=.",
    "-Wall",
    "-Wextra",
    "-Werror",
];

/// The same for NVIDIA's processors: PTX text, in the version that drivers of CUDA 12 read. Without line tables and comments, which were a quarter
/// of the packs and which nothing read.
pub(crate) const PTX_FLAGS: &[&str] = &[
    "-x",
    "cuda",
    "--cuda-device-only",
    "-S",
    "-nogpulib",
    "-nogpuinc",
    "--cuda-feature=+ptx80",
    "-std=c++20",
    "-O3",
    "-fuse-cuid=none",
    "-fno-verbose-asm",
    "-fdebug-compilation-dir=.",
    "-Wall",
    "-Wextra",
    "-Werror",
];

pub(crate) fn flags(arch: &str) -> &'static [&'static str] {
    if is_ptx(arch) { PTX_FLAGS } else { FLAGS }
}

/// A clang++ that can compile for AMD GPUs and for PTX.
pub(crate) struct Compiler {
    program: String,
    /// First line of `--version`: release and build.
    pub(crate) version: String,
}

impl Compiler {
    /// Looks for one: `ROCMFORGE_CLANG`, then the pinned one by Debian's name, then any.
    pub(crate) fn find() -> Result<Self, KernelsError> {
        let named = std::env::var("ROCMFORGE_CLANG").ok();
        let candidates = match named {
            Some(program) => vec![program],
            None => vec![format!("clang++-{PINNED_MAJOR}"), "clang++".to_owned()],
        };
        for program in candidates {
            if let Ok(output) = Command::new(&program).arg("--version").output()
                && output.status.success()
                && let Some(line) = String::from_utf8_lossy(&output.stdout).lines().next()
            {
                return Ok(Self {
                    program,
                    version: line.trim().to_owned(),
                });
            }
        }
        Err(KernelsError::NoCompiler { major: PINNED_MAJOR })
    }

    /// Compiles a family for one target.
    pub(crate) fn compile(&self, root: &Path, family: &str, arch: &str) -> Result<Vec<u8>, KernelsError> {
        self.compile_file(root, &families::source(family), arch, families::defines(family))
    }

    /// Compiles one source for one target. Runs in the repository's root on a relative path, so that file names in the line
    /// tables are `kernels/...`. Of two flags that contradict each other, the one in `more` counts.
    pub(crate) fn compile_file(
        &self,
        root: &Path,
        source_file: &str,
        arch: &str,
        more: &[&str],
    ) -> Result<Vec<u8>, KernelsError> {
        let object = scratch(&format!("{arch}.co"))?;
        let output = Command::new(&self.program)
            .current_dir(root)
            .args(flags(arch))
            .args(more)
            .arg(format!("-ffile-prefix-map={}=.", root.display()))
            .arg(format!("--offload-arch={arch}"))
            .arg(source_file)
            .arg("-o")
            .arg(&object)
            .output()
            .map_err(at(&self.program))?;
        if !output.status.success() {
            return Err(KernelsError::Compile {
                arch: arch.to_owned(),
                source_file: source_file.to_owned(),
                log: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        let bytes = read(&object)?;
        // Best effort: a leftover under target/ is harmless.
        let _ = std::fs::remove_file(&object);
        Ok(bytes)
    }
}

/// Whether a compiler, by the first line of its `--version`, is of the release the committed packs are made with.
pub(crate) fn is_pinned(version: &str) -> bool {
    let mut words = version.split_whitespace();
    words.any(|word| word == PINNED || word.starts_with(&format!("{PINNED}-")))
}

/// A path of its own for a file that is needed for a moment.
pub(crate) fn scratch(ending: &str) -> Result<PathBuf, KernelsError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let out = workspace_root().join("target/kernels");
    std::fs::create_dir_all(&out).map_err(at(&out))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Ok(out.join(format!("{number}.{}.{ending}", std::process::id())))
}

pub(crate) fn sorted(directory: &Path, extension: &str) -> Result<Vec<String>, KernelsError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(at(directory))? {
        let path = entry.map_err(at(directory))?.path();
        if path.extension().is_some_and(|e| e == extension)
            && let Some(name) = path.file_name()
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
