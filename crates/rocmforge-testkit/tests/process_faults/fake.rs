//! A card that a library compiled from C pretends to be, and processes that use it.

use rocmforge_gpu_test::lock::CardLock;
use rocmforge_hip_sys::{CORE_FUNCTIONS, OPTIONAL_FUNCTIONS, hipDeviceProp_tR0600};
use rocmforge_test_support::shared_library;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Where the fake card says that it is.
pub(crate) const CARD: &str = "0000:03:00.0";
/// Names the planted test that a child is to run.
pub(crate) const PLANTED: &str = "PROCESS_FAULT";
const BEHAVIOUR: &str = include_str!("card.c");

/// Compiles the library to `path`, without the functions named.
pub(crate) fn build(path: &Path, without: &[&str]) {
    let mut source = format!(
        "#define ARCH_NAME {}\n{BEHAVIOUR}\n",
        hipDeviceProp_tR0600::GCN_ARCH_NAME
    );
    for name in CORE_FUNCTIONS.iter().chain(OPTIONAL_FUNCTIONS) {
        let own = BEHAVIOUR.contains(&format!("unsigned {name}("));
        if own || without.contains(name) {
            continue;
        }
        writeln!(source, "unsigned {name}() {{ return 0; }}").unwrap();
    }
    let c = path.with_extension("c");
    fs::write(&c, source).unwrap();
    shared_library(&c, path, &[]);
}

/// The whole library, built once in a process.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Not a temporary directory: nothing would remove it at the end of the process.
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (mine, shared) = (
            folder.join(format!("card-{}.so", std::process::id())),
            folder.join("libcard.so"),
        );
        build(&mine, &[]);
        fs::rename(&mine, &shared).unwrap();
        fs::remove_file(mine.with_extension("c")).unwrap();
        shared
    })
}

/// A session of a user, with a runtime directory of its own.
pub(crate) struct Scene(tempfile::TempDir);

/// How a child ended, and all that it wrote.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) text: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn directory(&self) -> &Path {
        self.0.path()
    }

    /// Where the children look for locks.
    pub(crate) fn locks(&self) -> PathBuf {
        self.directory().join("rocmforge")
    }

    pub(crate) fn lock(&self) -> CardLock {
        CardLock::acquire(&self.locks(), CARD, Duration::ZERO, |_| {}).unwrap()
    }

    /// Whether the library has said so.
    pub(crate) fn has(&self, what: &str) -> bool {
        self.directory().join(what).exists()
    }

    /// This binary, to run one planted test on the card.
    pub(crate) fn command(&self, planted: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                &format!("planted::{planted}"),
                "--test-threads=1",
                "--nocapture",
            ])
            .env(PLANTED, planted)
            .env("ROCMFORGE_DEVICE", format!("hip:{CARD}"))
            .env("ROCMFORGE_HIP_LIBRARY", library())
            .env("ROCMFORGE_LOCK_DIRECTORY", self.locks())
            .env("FAKE_DIRECTORY", self.directory())
            .env_remove("ROCMFORGE_SEED")
            .stdin(Stdio::null());
        command
    }

    /// Starts a child whose output nobody wants.
    pub(crate) fn spawn(&self, command: &mut Command) -> Kept {
        Kept(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn output(&self, command: &mut Command) -> Ended {
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        Ended {
            status: output.status,
            text: String::from_utf8_lossy(&text).into_owned(),
        }
    }

    /// Runs a planted test to its end, as the supervisor does: with the lock inherited.
    pub(crate) fn run_under(&self, lock: &CardLock, planted: &str, environment: &[(&str, &str)]) -> Ended {
        let mut command = self.command(planted);
        command.envs(environment.iter().copied());
        lock.pass_to(&mut command).unwrap();
        self.output(&mut command)
    }
}

/// A child that does not outlive its test.
pub(crate) struct Kept(Child);

impl std::ops::Deref for Kept {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl std::ops::DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
