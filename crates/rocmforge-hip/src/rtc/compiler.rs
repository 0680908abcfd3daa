//! Compiler of hiprtc: clang for the card, in a folder of its own, without ROCm's headers and libraries.
//!
//! What hiprtc has built in (`__global__`, `threadIdx`, `__syncthreads` and so on) is in `device.h`, which also stands in for
//! `hip/hip_runtime.h`. Mathematics is what LLVM has instructions for.

use super::names::SYMBOL;
use super::program::Program;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Component, Path};
use std::process::Command;
use std::{fs, io};

/// Where the compiler is looked for: the variable, then these on PATH.
const VARIABLE: &str = "ROCMFORGE_CLANG";
const COMPILERS: [&str; 3] = ["clang++-22", "clang++-19", "clang++"];

const DEVICE_HEADER: &str = include_str!("device.h");

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

/// Compiles a program for a card.
pub(super) fn compile(program: &Program, card: &str, options: &[Cow<'_, str>]) -> Result<Compiled, CompileError> {
    let folder = tempfile::Builder::new().prefix("rocmforge-hiprtc-").tempdir()?;
    let (own, given) = (folder.path().join("own"), folder.path().join("given"));
    fs::create_dir_all(own.join("hip"))?;
    fs::create_dir(&given)?;
    fs::write(own.join("device.h"), DEVICE_HEADER)?;
    fs::write(own.join("hip/hip_runtime.h"), "#include \"../device.h\"\n")?;
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

    let mut arguments: Vec<String> = [
        "-x",
        "hip",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "-nogpulib",
        "-nogpuinc",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.extend(["-O3".to_owned(), "-std=c++17".to_owned()]);
    let translated: Vec<_> = options.iter().map(|option| translate(option)).collect();
    if !translated.iter().any(|option| option.starts_with("--offload-arch=")) {
        arguments.push(format!("--offload-arch={card}"));
    }
    arguments.extend(translated);
    let command = |name: OsString| {
        Command::new(&name)
            .args(&arguments)
            .arg("-include")
            .arg(own.join("device.h"))
            .arg("-I")
            .arg(&given)
            .arg("-isystem")
            .arg(&own)
            .args(["program.hip", "-o", "program.co"])
            .current_dir(&given)
            // The compiler is no HIP program.
            .env_remove("LD_AUDIT")
            .output()
            .map_err(|source| CompileError::Start { name, source })
    };
    let output = match std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
        Some(name) => command(name)?,
        None => COMPILERS
            .iter()
            .find_map(|name| match command((*name).into()) {
                Err(CompileError::Start { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
                started => Some(started),
            })
            .ok_or(CompileError::NoCompiler)??,
    };
    if !output.status.success() {
        return Err(CompileError::Source(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    Ok(Compiled {
        code: fs::read(given.join("program.co"))?,
        log: output.stderr,
    })
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
