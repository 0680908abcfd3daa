//! Which process is which, and whether it still lives.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::PeersError;
use super::page::{Identity, checksum};

/// This process's identity for one more card.
pub(super) fn me() -> Result<Identity, PeersError> {
    static CARDS: AtomicU32 = AtomicU32::new(0);
    let pid = std::process::id();
    let stat = read_stat(pid).map_err(PeersError::NoProc)?;
    Ok(Identity {
        pid,
        incarnation: CARDS.fetch_add(1, Ordering::Relaxed),
        start: stat.ok_or(PeersError::NoProc(ErrorKind::InvalidData))?.start,
        namespace: namespace(Path::new("/proc/self/ns")).map_err(PeersError::NoProc)?,
    })
}

/// A number that is another one after each start of the machine.
pub(super) fn boot() -> Result<u64, PeersError> {
    let id = fs::read("/proc/sys/kernel/random/boot_id").map_err(|error| PeersError::NoProc(error.kind()))?;
    Ok(checksum(&id))
}

/// What a process number and a start time are relative to: a container has name spaces of its own for both.
fn namespace(spaces: &Path) -> Result<u64, ErrorKind> {
    let mut names = Vec::new();
    for space in ["pid", "time"] {
        match fs::read_link(spaces.join(space)) {
            Ok(link) => names.extend_from_slice(link.as_os_str().as_encoded_bytes()),
            // A kernel without time name spaces has one time only.
            Err(error) if space == "time" && error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.kind()),
        }
    }
    Ok(checksum(&names))
}

/// Whether the process behind `identity` has ended, as far as `observer` can tell.
///
/// A process of another container cannot be looked up by its number, so it counts as alive.
pub(super) fn is_dead(identity: &Identity, observer: &Identity) -> bool {
    if identity.namespace != observer.namespace {
        return false;
    }
    match read_stat(identity.pid) {
        // What cannot be understood is no proof of a death.
        Ok(None) => false,
        Ok(Some(stat)) => stat.start != identity.start || stat.ended,
        Err(kind) => kind == ErrorKind::NotFound,
    }
}

/// The parts of `/proc/<pid>/stat` that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    /// A zombie without further threads: its memory is gone, only its parent has not asked for its status.
    ended: bool,
    start: u64,
}

fn read_stat(pid: u32) -> Result<Option<Stat>, ErrorKind> {
    stat_of(fs::read_to_string(format!("/proc/{pid}/stat")))
}

fn stat_of(read: io::Result<String>) -> Result<Option<Stat>, ErrorKind> {
    match read {
        Ok(text) => Ok(parse_stat(&text)),
        // It ended between the opening and the reading.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Err(ErrorKind::NotFound),
        Err(error) => Err(error.kind()),
    }
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name before the last bracket may hold anything, brackets and line breaks too.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    // Fields 20 and 22, counted from 1; the state is field 3.
    let threads: u64 = fields.nth(16)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    Some(Stat {
        ended: matches!(state, "Z" | "X" | "x") && threads <= 1,
        start,
    })
}

#[cfg(all(test, not(miri)))] // files, locks and processes are not Miri's
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn of(pid: u32) -> Identity {
        Identity {
            pid,
            start: read_stat(pid).unwrap().unwrap().start,
            ..me().unwrap()
        }
    }

    #[test]
    fn a_start_of_the_machine_is_known_by_the_kernels_number() {
        let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(boot().unwrap(), checksum(&id));
    }

    #[test]
    fn a_kernel_may_have_one_time_only() {
        let root = crate::private::tests::scratch();
        let name = |space: &str, number: &str| std::os::unix::fs::symlink(number, root.path().join(space)).unwrap();
        assert_eq!(namespace(root.path()), Err(ErrorKind::NotFound), "but has processes");
        name("pid", "pid:[1]");
        let without = namespace(root.path()).unwrap();
        fs::write(root.path().join("time"), "no link").unwrap();
        assert_eq!(namespace(root.path()), Err(ErrorKind::InvalidInput));
        fs::remove_file(root.path().join("time")).unwrap();
        name("time", "time:[2]");
        assert_ne!(namespace(root.path()).unwrap(), without);
    }

    #[test]
    fn a_process_that_ends_while_it_is_looked_at_is_gone_and_one_that_is_hidden_is_not() {
        let failed = |errno: rustix::io::Errno| stat_of(Err(errno.into()));
        assert_eq!(failed(rustix::io::Errno::SRCH), Err(ErrorKind::NotFound));
        assert_eq!(failed(rustix::io::Errno::NOENT), Err(ErrorKind::NotFound));
        assert_eq!(failed(rustix::io::Errno::ACCESS), Err(ErrorKind::PermissionDenied));
    }

    #[test]
    fn stat_is_read_past_any_name() {
        let line = |name: &str, state: &str, threads: u32| {
            format!(
                "7 ({name}) {state} 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 987654 1000 20 18446744073709551615\n"
            )
        };
        let alive = Stat {
            ended: false,
            start: 987_654,
        };
        for name in ["sh", "a b", "x) Z 1 2", ") (", "", "line\nbreak"] {
            assert_eq!(parse_stat(&line(name, "S", 4)), Some(alive));
        }
        let alive = Some(alive);
        // The main thread is gone, the others run on.
        assert_eq!(parse_stat(&line("sh", "Z", 2)), alive);
        for state in ["Z", "X", "x"] {
            let stat = parse_stat(&line("sh", state, 1)).unwrap();
            assert!(stat.ended && stat.start == 987_654);
        }
        for cut in [
            "",
            "7",
            "7 (sh",
            "7 (sh) S 1 2",
            "7 (sh) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 soon",
        ] {
            assert_eq!(parse_stat(cut), None, "{cut:?}");
        }
    }

    #[test]
    fn this_process_lives_and_counts_its_cards() {
        let (one, two) = (me().unwrap(), me().unwrap());
        assert_ne!(one.incarnation, two.incarnation);
        assert_eq!((one.pid, one.start, one.namespace), (two.pid, two.start, two.namespace));
        assert!(!is_dead(&one, &two));
        assert_eq!(boot(), boot());
    }

    #[test]
    fn a_dead_process_is_told_from_one_that_got_its_number() {
        let observer = me().unwrap();
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let sleeper = of(child.id());
        assert!(!is_dead(&sleeper, &observer));
        // The same number, started at another time: whoever we mean has ended.
        let earlier = Identity {
            start: sleeper.start - 1,
            ..sleeper
        };
        assert!(is_dead(&earlier, &observer));
        // In another container the number says nothing.
        let elsewhere = Identity {
            namespace: observer.namespace ^ 1,
            ..earlier
        };
        assert!(!is_dead(&elsewhere, &observer));
        child.kill().unwrap();
        // Not asked for its status yet: a zombie, which holds no memory.
        while !is_dead(&sleeper, &observer) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(is_dead(&sleeper, &observer));
    }
}
