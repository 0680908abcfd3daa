//! Compiler of hiprtc: an installed clang, in a folder of its own.
//!
//! What hiprtc has built in comes from ROCm's headers and device library where the program or an installation has them ([`super::rocm`]);
//! otherwise from ours, in the folder `library`.

use super::device_library;
use super::names::SYMBOL;
use super::program::Program;
use super::rocm::{Headers, Rocm};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

/// Where the compiler is looked for: the variable, then these on PATH.
const VARIABLE: &str = "ROCMFORGE_CLANG";
const COMPILERS: [&str; 3] = ["clang++-22", COMPILER_FOR_ROCM_5, "clang++"];
const COMPILER_FOR_ROCM_5: &str = "clang++-19";

/// What is written for every program.
const FILES: [(&str, &str); 6] = [
    ("before.h", include_str!("library/before.h")),
    ("device.h", include_str!("library/device.h")),
    ("vector.h", include_str!("library/vector.h")),
    ("half.h", include_str!("library/half.h")),
    ("bfloat16.h", include_str!("library/bfloat16.h")),
    ("after.h", include_str!("library/after.h")),
];
/// Headers of HIP, and which of ours stands in for each.
const STAND_INS: [(&str, &str); 8] = [
    ("hip_runtime.h", "device.h"),
    ("hip_runtime_api.h", "device.h"),
    ("hip_vector_types.h", "device.h"),
    ("hip_common.h", "device.h"),
    ("hip_version.h", "device.h"),
    ("hip_fp16.h", "device.h"),
    ("hip_bf16.h", "bfloat16.h"),
    ("hip_bfloat16.h", "bfloat16.h"),
];

/// A code object, and the compiler's warnings.
pub(super) struct Compiled {
    pub(super) code: Vec<u8>,
    pub(super) log: Vec<u8>,
}

/// Why there is no code object. Its text is the program's log.
#[derive(Debug, thiserror::Error)]
pub(super) enum CompileError {
    #[error("hiprtc needs clang with a linker (lld): none of {} is on PATH; ROCMFORGE_CLANG names another one", COMPILERS.join(", "))]
    NoCompiler,
    #[error("{}: {source}", .name.display())]
    Start { name: OsString, source: io::Error },
    #[error("a temporary folder: {0}")]
    Folder(#[from] io::Error),
    #[error("the header {0:?} has a name that leads out of the program's folder")]
    Header(String),
    /// What the compiler said.
    #[error("{0}")]
    Source(String),
}

/// An installed clang.
pub(super) struct Compiler {
    pub(super) name: OsString,
}

/// The newest clang that takes headers and device library of ROCm 5: later ones lack intrinsics that these name.
const LAST_FOR_ROCM_5: u32 = 19;

impl Compiler {
    /// The one that the variable names, or the first on PATH; for files of ROCm 5 rather one that takes them.
    fn find(for_rocm_5: bool) -> Result<Self, CompileError> {
        if let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
            return Ok(Self { name });
        }
        let is_there = |name: &&str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
        };
        let mut names: Vec<&str> = COMPILERS.into_iter().filter(is_there).collect();
        if for_rocm_5 {
            names.sort_by_key(|name| *name != COMPILER_FOR_ROCM_5);
        }
        let name = names.first().ok_or(CompileError::NoCompiler)?;
        Ok(Self { name: name.into() })
    }

    /// Whether it takes headers and device library of ROCm 5, as its version says.
    fn takes_rocm_5(&self) -> bool {
        let version = self.run(Path::new("."), |command| {
            command.arg("-dumpversion");
        });
        let major = version.ok().and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split('.').next()?.trim().parse::<u32>().ok()
        });
        major.is_none_or(|major| major <= LAST_FOR_ROCM_5)
    }

    /// Runs it in a folder; an error is what it has said.
    pub(super) fn run(&self, folder: &Path, arguments: impl FnOnce(&mut Command)) -> Result<Output, CompileError> {
        let mut command = Command::new(&self.name);
        arguments(&mut command);
        // The compiler is no HIP program.
        let output = command.current_dir(folder).env_remove("LD_AUDIT").output();
        let output = output.map_err(|source| CompileError::Start {
            name: self.name.clone(),
            source,
        })?;
        if output.status.success() {
            Ok(output)
        } else {
            Err(CompileError::Source(
                String::from_utf8_lossy(&output.stderr).into_owned(),
            ))
        }
    }
}

/// What a program is compiled for, where it does not say so itself.
pub(super) struct Target<'a> {
    /// The processor.
    pub(super) card: &'a str,
    /// What `hipRuntimeGetVersion` answers.
    pub(super) version: i32,
}

/// Compiles a program.
pub(super) fn compile(
    program: &Program,
    target: &Target<'_>,
    options: &[Cow<'_, str>],
) -> Result<Compiled, CompileError> {
    let folder = tempfile::Builder::new().prefix("rocmforge-hiprtc-").tempdir()?;
    let [own, given] = ["own", "given"].map(|name| folder.path().join(name));
    write_files(&own, &given, program)?;

    let mut options: Vec<String> = options.iter().map(|option| translate(option)).collect();
    let processor = |option: &String| option.strip_prefix("--offload-arch=").map(str::to_owned);
    let mut processors: Vec<String> = options.iter().filter_map(processor).collect();
    if processors.is_empty() {
        processors.push(target.card.to_owned());
        options.push(format!("--offload-arch={}", target.card));
    }
    let wave = if options.iter().any(|option| option == "-mwavefrontsize64") {
        64
    } else {
        32
    };

    let mut rocm = Rocm::find(&options, program.headers.iter().map(|(name, _)| name.as_str()));
    let is_old = |bitcode: &PathBuf| device_library::is_older(bitcode, &processors);
    let old = rocm.bitcode.as_ref().is_some_and(is_old) || rocm.release.is_some_and(|release| release <= 5);
    let compiler = Compiler::find(old)?;
    if old && !compiler.takes_rocm_5() {
        rocm.leave_installed();
    }
    // A program that names a device library means that one.
    let names_library = |option: &String| {
        ["--rocm-path=", "--rocm-device-lib-path=", "--hip-device-lib-path="]
            .iter()
            .any(|start| option.starts_with(start))
    };
    let library = if options.iter().any(names_library) {
        Vec::new()
    } else {
        device_library::options(
            &compiler,
            rocm.bitcode.as_deref(),
            &processors,
            &folder.path().join("library"),
        )?
    };
    let output = compiler.run(&given, |command| {
        command
            .args(["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc"])
            .args(["-O3", "-std=c++17", "-D__HIPCC_RTC__=1", "-D__HIP_PLATFORM_AMD__=1"])
            .arg(format!("-DROCMFORGE_WAVE={wave}"))
            .args(library)
            .args(&options)
            .args(["-I".as_ref(), given.as_os_str()]);
        let header = match &rocm.headers {
            Headers::Own => {
                command.arg(format!("-DROCMFORGE_HIP_VERSION={}", target.version));
                command.args(["-isystem".as_ref(), own.join("include").as_os_str()]);
                own.join("device.h").into_os_string()
            }
            Headers::Installed(folder) => {
                command.args([option_of(folder).as_ref(), folder.as_os_str()]);
                "hip/hip_runtime.h".into()
            }
            Headers::Program => "hip/hip_runtime.h".into(),
        };
        let (before, after) = (
            own.join("before.h").into_os_string(),
            own.join("after.h").into_os_string(),
        );
        for header in [before, "__clang_hip_runtime_wrapper.h".into(), header, after] {
            command.args(["-include".as_ref(), header.as_os_str()]);
        }
        command.args(["program.hip", "-o", "program.co"]);
    })?;
    Ok(Compiled {
        code: fs::read(given.join("program.co"))?,
        log: output.stderr,
    })
}

/// The option for an installation's folder of headers. Before the compiler's own folders, where another installation may be; but the C library's
/// headers, which a distribution has in the same folder, stay behind the compiler's.
fn option_of(folder: &Path) -> &'static str {
    if folder == Path::new("/usr/include") {
        "-idirafter"
    } else {
        "-isystem"
    }
}

/// Writes our headers, the program's and its source.
fn write_files(own: &Path, given: &Path, program: &Program) -> Result<(), CompileError> {
    fs::create_dir_all(own.join("include/hip"))?;
    fs::create_dir(given)?;
    for (name, text) in FILES {
        fs::write(own.join(name), text)?;
    }
    for (name, ours) in STAND_INS {
        fs::write(
            own.join("include/hip").join(name),
            format!("#include \"../../{ours}\"\n"),
        )?;
    }
    for (name, text) in &program.headers {
        let path = Path::new(name);
        if !path
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        {
            return Err(CompileError::Header(name.clone()));
        }
        let path = given.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    fs::write(given.join("program.hip"), source(program))?;
    Ok(())
}

/// The source, and a variable with the address of each thing that is asked for by an expression: it makes the compiler write
/// the instances of templates, and says which symbols they have.
fn source(program: &Program) -> Vec<u8> {
    let mut source = b"#line 1 \"program.hip\"\n".to_vec();
    source.extend(&program.source);
    let mut variables = String::from("\n");
    for (index, expression) in program.expressions.iter().enumerate() {
        // A text in memory cannot fail to be written.
        let _ = writeln!(
            variables,
            "extern \"C\" __device__ __attribute__((used)) const void* {SYMBOL}{index} = (const void*)(&{});",
            expression.to_string_lossy().trim_start_matches('&')
        );
    }
    source.extend(variables.bytes());
    source
}

/// hiprtc's own spellings of clang's options.
fn translate(option: &str) -> String {
    match option.split_once('=') {
        Some(("--gpu-architecture" | "-arch" | "-offload-arch", card)) => format!("--offload-arch={card}"),
        _ => option.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::option_of;
    use std::path::Path;

    #[test]
    fn headers_of_rocm_come_before_those_of_a_distribution() {
        assert_eq!(option_of(Path::new("/opt/rocm/include")), "-isystem");
        assert_eq!(option_of(Path::new("/srv/rocm-6.3/include")), "-isystem");
        assert_eq!(
            option_of(Path::new("/usr/include")),
            "-idirafter",
            "the C library's headers are there"
        );
    }
}
