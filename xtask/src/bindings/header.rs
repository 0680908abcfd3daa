//! The HIP headers: where they are, their version, the names in them.

use super::BindingsError;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROLOGUE: &str =
    "#define __HIP_PLATFORM_AMD__ 1\n#include <hip/hip_runtime_api.h>\n#include <hip/hip_version.h>\n";

/// The preprocessed headers.
pub(super) struct Header {
    include: PathBuf,
    /// `HIP_VERSION_MAJOR`, `HIP_VERSION_MINOR`.
    pub(super) version: (u32, u32),
    text: String,
    words: HashSet<String>,
}

/// The folder that holds `hip/hip_runtime_api.h`.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf, BindingsError> {
    let roots = ["ROCM_PATH", "HIP_PATH"].into_iter().filter_map(std::env::var_os);
    let roots = roots.chain(["/usr".into(), "/opt/rocm".into()]).map(PathBuf::from);
    let usual = roots.map(|root| root.join("include"));
    let candidates: Vec<PathBuf> = given.map_or_else(|| usual.collect(), |path| vec![path.to_owned()]);
    let has_header = |path: &&PathBuf| path.join("hip/hip_runtime_api.h").is_file();
    candidates.iter().find(has_header).cloned().ok_or_else(|| {
        let tried: Vec<String> = candidates.iter().map(|path| path.display().to_string()).collect();
        BindingsError::HeadersAbsent {
            tried: tried.join(", "),
        }
    })
}

impl Header {
    pub(super) fn read(include: &Path) -> Result<Self, BindingsError> {
        let mut header = Self {
            include: include.to_owned(),
            version: (0, 0),
            text: String::new(),
            words: HashSet::new(),
        };
        let source = header.write("header.c", "")?;
        let mut command = header.compiler();
        command.args(["-E", "-dD"]).arg(&source);
        header.text = run(command, "the HIP headers")?;
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let words = header.text.split(word).filter(|word| !word.is_empty());
        header.words = words.map(str::to_owned).collect();
        let number = |name: &str| {
            let mut lines = header.text.lines();
            let line = lines.find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        header.version = number("HIP_VERSION_MAJOR")
            .zip(number("HIP_VERSION_MINOR"))
            .ok_or(BindingsError::NoVersion)?;
        Ok(header)
    }

    /// Whether the headers have this name at all.
    pub(super) fn has(&self, name: &str) -> bool {
        self.words.contains(name)
    }

    /// A function's declaration as the headers have it, on one line.
    pub(super) fn declaration(&self, name: &str) -> Option<String> {
        let call = format!(" {name}(");
        let at = self.text.find(&call)?;
        let start = self.text[..at].rfind(['\n', ';']).map_or(0, |before| before + 1);
        let end = at + self.text[at..].find(';')?;
        Some(self.text[start..end].split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Compiles and runs a C program over the headers; answers what it prints.
    pub(super) fn run_program(&self, body: &str) -> Result<String, BindingsError> {
        let source = self.write("probe.c", body)?;
        let program = source.with_extension("");
        let mut command = self.compiler();
        // The names are only looked at, never called: nothing of HIP is linked.
        command.args(["-O1", "-Werror", "-Wno-deprecated-declarations"]);
        command.arg(&source).arg("-o").arg(&program);
        run(command, "the probe")?;
        run(Command::new(&program), "the probe's run")
    }

    fn write(&self, name: &str, body: &str) -> Result<PathBuf, BindingsError> {
        let folder = crate::workspace_root().join(format!("target/bindings-{}", std::process::id()));
        let path = folder.join(name);
        let written =
            std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, format!("{PROLOGUE}{body}")));
        match written {
            Ok(()) => Ok(path),
            Err(source) => Err(BindingsError::Write { path, source }),
        }
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        command.arg("-std=gnu11").arg("-I").arg(&self.include);
        command
    }
}

impl Drop for Header {
    fn drop(&mut self) {
        let folder = crate::workspace_root().join(format!("target/bindings-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(folder);
    }
}

pub(super) fn run(mut command: Command, what: &'static str) -> Result<String, BindingsError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|source| BindingsError::Run { program, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let output = String::from_utf8_lossy(&output.stderr);
    let output = output.lines().take(30).collect::<Vec<_>>().join("\n");
    Err(BindingsError::Compiler {
        what,
        command: format!("{command:?}"),
        output,
    })
}
