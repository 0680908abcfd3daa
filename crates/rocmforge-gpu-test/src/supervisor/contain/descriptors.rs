//! Open files of this process: as many as it may have. Its tests get the limit that the user gave.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;

/// Descriptors of a running test: its pipes, log, lock and group, and those that are needed to start it.
const OF_A_TEST: u64 = 16;
/// Descriptors of everything else.
const OWN: u64 = 48;

/// The limit that this process was started with.
static GIVEN: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit as far as a user may. Most systems begin with 1,024 open files, which is too few for a hundred tests at a time.
pub(crate) fn raise() {
    let given = given();
    let most = Rlimit {
        current: given.maximum,
        maximum: given.maximum,
    };
    // Where it is refused, fewer tests run at a time.
    let _ = setrlimit(Resource::Nofile, most);
}

fn given() -> Rlimit {
    *GIVEN.get_or_init(|| getrlimit(Resource::Nofile))
}

/// Lets `command`'s process have as many as the user gave. To be asked for last: what is opened before the program runs has high numbers.
pub(crate) fn limit(command: &mut Command) {
    let given = given();
    let limit = move || Ok(setrlimit(Resource::Nofile, given)?);
    // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(limit) };
}

/// Tests that can run at a time.
pub(crate) fn most_tests() -> usize {
    tests_within(getrlimit(Resource::Nofile).current)
}

fn tests_within(files: Option<u64>) -> usize {
    let tests = files.map_or(u64::MAX, |files| files.saturating_sub(OWN) / OF_A_TEST);
    usize::try_from(tests.max(1)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_files_are_fewer_tests_and_never_none() {
        assert_eq!(
            [None, Some(1024), Some(100), Some(0)].map(tests_within),
            [usize::MAX, 61, 3, 1]
        );
    }
}
