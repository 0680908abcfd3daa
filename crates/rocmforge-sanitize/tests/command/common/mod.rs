//! A folder with objects, and the program run in it as a user runs it.

use clap::Parser;
use rocmforge_kernels::Pack;
use rocmforge_sanitize::{Cli, Exit, main};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How a run ended, and what it printed.
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) status: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// The page of `--format json`.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        assert!(self.err.is_empty(), "{}", self.err);
        serde_json::from_str(&self.out).unwrap()
    }
}

/// `reverse.co` of the manual, `params.co`, and `basic.co`, whose kernels are without a fault.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (from, to) in [
            ("examples/reverse.co", "reverse.co"),
            ("tests/objects/params.co", "params.co"),
        ] {
            std::fs::copy(own.join(from), folder.path().join(to)).unwrap();
        }
        let pack = Pack::read(include_bytes!("../../kernels/prebuilt/gfx1100.pack")).unwrap();
        let basic = pack.object("host/basic.O2").unwrap().unwrap();
        std::fs::write(folder.path().join("basic.co"), basic).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).display().to_string()
    }

    /// Runs a launch file.
    pub(crate) fn run(&self, text: &str, args: &[&str]) -> Ran {
        let path = self.write("launch.toml", text);
        let args: Vec<&str> = [path.as_str()].into_iter().chain(args.iter().copied()).collect();
        call(&args)
    }
}

/// Runs the program with these arguments.
pub(crate) fn call(args: &[&str]) -> Ran {
    let cli = Cli::try_parse_from(["rocmforge-sanitize"].iter().chain(args)).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = main(&cli, &mut out, &mut err);
    Ran {
        exit,
        status: exit.status(&cli),
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

/// Runs a launch file in a folder of its own.
pub(crate) fn run(text: &str, args: &[&str]) -> Ran {
    Folder::new().run(text, args)
}

/// Runs a launch file that must be refused with all of these words.
#[allow(dead_code, reason = "not every test refuses something")]
#[track_caller]
pub(crate) fn refused(text: &str, args: &[&str], words: &[&str]) {
    let ran = run(text, args);
    assert_eq!(ran.exit, Exit::CannotRun, "{text}\n{}", ran.out);
    for word in words {
        assert!(
            ran.err.contains(word),
            "{word:?} is not said of {args:?}\n{text}\n{}",
            ran.err
        );
    }
}
