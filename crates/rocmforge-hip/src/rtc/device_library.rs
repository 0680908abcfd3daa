//! Device libraries that programs of hiprtc are linked with: ROCm's, made ready for the card if it is older, or ours.
//!
//! AMD's library of ROCm 5 is older than the simulated cards in two places. Constants that say which card it is compiled for are missing. And it
//! reads the wall clock by an intrinsic for an instruction that they do not have: LLVM removes the functions that do. Newer releases
//! have the constants, and LLVM's `readsteadycounter` there.

use super::compiler::{CompileError, Compiler};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sources of ours, and what they are called when they are compiled.
const SOURCES: [(&str, &str); 2] = [
    ("ockl", include_str!("library/ockl.cpp")),
    ("ocml", include_str!("library/ocml.cpp")),
];
/// Versions of code objects whose constant clang looks for.
const ABI_VERSIONS: [u32; 2] = [500, 600];

/// Names and contents of compiled files.
type Files = Arc<Vec<(String, Vec<u8>)>>;
/// What was compiled, by the compiler, the folder of ROCm's library (none: ours) and the processors.
type Key = (OsString, Option<PathBuf>, Vec<String>);

static COMPILED: Mutex<BTreeMap<Key, Files>> = Mutex::new(BTreeMap::new());

/// The options that link the library, whose files are written to `folder`.
///
/// # Errors
/// A file cannot be compiled or written.
pub(super) fn options(
    compiler: &Compiler,
    bitcode: Option<&Path>,
    processors: &[String],
    folder: &Path,
) -> Result<Vec<OsString>, CompileError> {
    fs::create_dir_all(folder)?;
    let Some(bitcode) = bitcode else {
        let mut options = vec!["-nogpulib".into()];
        for (name, bytes) in files(compiler, None, processors, || own(compiler, folder))?.iter() {
            let path = folder.join(name);
            fs::write(&path, bytes)?;
            for option in [
                "-Xclang".as_ref(),
                "-mlink-builtin-bitcode".as_ref(),
                "-Xclang".as_ref(),
                path.as_os_str(),
            ] {
                options.push(option.to_owned());
            }
        }
        return Ok(options);
    };
    let missing = missing(bitcode, processors);
    let mut used = bitcode;
    if !missing.is_empty() {
        let prepare = || prepared(compiler, bitcode, &missing, folder);
        for (name, bytes) in files(compiler, Some(bitcode), processors, prepare)?.iter() {
            fs::write(folder.join(name), bytes)?;
        }
        for entry in fs::read_dir(bitcode)? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if !path.exists() {
                std::os::unix::fs::symlink(entry.path(), path)?;
            }
        }
        used = folder;
    }
    let mut option = OsString::from("--rocm-device-lib-path=");
    option.push(used);
    Ok(vec![option])
}

fn files(
    compiler: &Compiler,
    bitcode: Option<&Path>,
    processors: &[String],
    make: impl FnOnce() -> Result<Vec<(String, Vec<u8>)>, CompileError>,
) -> Result<Files, CompileError> {
    let processors = if bitcode.is_some() { processors } else { &[] };
    let key = (compiler.name.clone(), bitcode.map(Path::to_owned), processors.to_vec());
    if let Some(known) = COMPILED.lock().get(&key) {
        return Ok(known.clone());
    }
    let made = Arc::new(make()?);
    COMPILED.lock().insert(key, made.clone());
    Ok(made)
}

/// Our library: for no processor and no version of code objects, so that it is linked into any.
fn own(compiler: &Compiler, folder: &Path) -> Result<Vec<(String, Vec<u8>)>, CompileError> {
    let one = |(name, text): (&str, &str)| {
        let (source, file) = (format!("{name}.cpp"), format!("{name}.bc"));
        fs::write(folder.join(&source), text)?;
        compiler.run(folder, |command| {
            command
                .args([
                    "-x",
                    "c++",
                    "--target=amdgcn-amd-amdhsa",
                    "-nogpulib",
                    "-std=c++20",
                    "-O3",
                ])
                .args(["-fno-exceptions", "-Xclang", "-disable-llvm-passes"])
                .args(["-Xclang", "-mcode-object-version=none", "-emit-llvm", "-c"])
                .args([&source, "-o", &file]);
        })?;
        Ok((file.clone(), fs::read(folder.join(&file))?))
    };
    SOURCES.into_iter().map(one).collect()
}

/// The constant that says which processor a library is linked for.
const INSTRUCTION_SET: &str = "__oclc_ISA_version";

/// A constant that a library of ROCm lacks.
struct Constant {
    file: String,
    name: &'static str,
    value: u32,
}

/// Whether a library is older than a processor: of ROCm 5.
pub(super) fn is_older(bitcode: &Path, processors: &[String]) -> bool {
    let missing = missing(bitcode, processors);
    missing.iter().any(|constant| constant.name == INSTRUCTION_SET)
}

/// The constants of processors and code objects that a library does not have.
fn missing(bitcode: &Path, processors: &[String]) -> Vec<Constant> {
    let instruction_sets = processors.iter().filter_map(|processor| {
        let short = processor.split(':').next()?.strip_prefix("gfx")?;
        Some(Constant {
            file: format!("oclc_isa_version_{short}.bc"),
            name: INSTRUCTION_SET,
            value: instruction_set(short)?,
        })
    });
    let versions = ABI_VERSIONS.into_iter().map(|value| Constant {
        file: format!("oclc_abi_version_{value}.bc"),
        name: "__oclc_ABI_version",
        value,
    });
    let all = instruction_sets.chain(versions);
    all.filter(|constant| !bitcode.join(&constant.file).exists()).collect()
}

/// What the library compares with: 11000 for `1100`, 9010 for `90a`. None for a family such as `11-generic`.
fn instruction_set(short: &str) -> Option<u32> {
    let (major, rest) = short.split_at_checked(short.len().checked_sub(2)?)?;
    let digit = |at: usize| rest.get(at..=at).and_then(|digit| u32::from_str_radix(digit, 16).ok());
    Some(major.parse::<u32>().ok()? * 1000 + digit(0)? * 100 + digit(1)?)
}

/// What has to be added to, and replaced of, a library that is older than the card.
fn prepared(
    compiler: &Compiler,
    bitcode: &Path,
    missing: &[Constant],
    folder: &Path,
) -> Result<Vec<(String, Vec<u8>)>, CompileError> {
    let assemble = |file: &str, text: &str| {
        fs::write(folder.join("source.ll"), text)?;
        compiler.run(folder, |command| {
            ir(command).args(["-c", "source.ll", "-o", file]);
        })?;
        Ok::<_, CompileError>((file.to_owned(), fs::read(folder.join(file))?))
    };
    let mut files = Vec::new();
    for constant in missing {
        let text = format!(
            "target triple = \"amdgcn-amd-amdhsa\"\n\
             @{} = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {}, align 4\n",
            constant.name, constant.value
        );
        files.push(assemble(&constant.file, &text)?);
    }
    compiler.run(folder, |command| {
        ir(command).args(["-S", "-o", "ockl.ll"]).arg(bitcode.join("ockl.bc"));
    })?;
    let text = fs::read_to_string(folder.join("ockl.ll"))?
        .replace("@llvm.amdgcn.s.memrealtime()", "@llvm.readsteadycounter()")
        .replace(" \"target-features\"=\"+s-memrealtime\"", "");
    files.push(assemble("ockl.bc", &text)?);
    Ok(files)
}

/// LLVM's text or bitcode to the other, unchanged.
fn ir(command: &mut std::process::Command) -> &mut std::process::Command {
    command
        .args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "-x", "ir", "-emit-llvm"])
        .args(["-Xclang", "-disable-llvm-passes"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_instruction_sets_are_those_of_amds_library() {
        for (short, value) in [
            ("1100", 11000),
            ("1201", 12001),
            ("1036", 10306),
            ("90a", 9010),
            ("803", 8003),
        ] {
            assert_eq!(instruction_set(short), Some(value), "{short}");
        }
        for short in ["11-generic", "", "1", "zz00", "é1"] {
            assert_eq!(instruction_set(short), None, "{short}");
        }
    }
}
