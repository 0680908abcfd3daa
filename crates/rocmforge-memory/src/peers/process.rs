//! Processes of a ledger: the identity of this one, and whether another one has ended.

use std::sync::atomic::{AtomicU32, Ordering};

use rocmforge_machine::ReadError;
use rocmforge_machine::process::ProcessId;
use rocmforge_machine::sysfs::Sysfs;

use super::error::PeersError;
use super::page::{Identity, checksum};

/// This process's identity for one more card.
pub(super) fn me() -> Result<Identity, PeersError> {
    static CARDS: AtomicU32 = AtomicU32::new(0);
    let me = ProcessId::current().map_err(no_proc)?;
    let spaces = Sysfs::host().name_spaces().map_err(no_proc)?;
    Ok(Identity {
        pid: me.pid,
        incarnation: CARDS.fetch_add(1, Ordering::Relaxed),
        start: me.started,
        namespace: checksum(spaces.as_bytes()),
    })
}

/// A number that is another one after each start of the machine.
pub(super) fn boot() -> Result<u64, PeersError> {
    let id = Sysfs::host().boot_id().map_err(no_proc)?;
    // Of the whole line: so it stands in the pages that programs of this boot have written.
    Ok(checksum(format!("{id}\n").as_bytes()))
}

fn no_proc(error: ReadError) -> PeersError {
    PeersError::NoProc(error.kind())
}

/// Whether the process behind `identity` has ended, as far as `observer` can tell.
///
/// A process of another container cannot be looked up by its number, so it counts as alive.
pub(super) fn is_dead(identity: &Identity, observer: &Identity) -> bool {
    let process = ProcessId {
        pid: identity.pid,
        started: identity.start,
    };
    identity.namespace == observer.namespace && process.has_ended()
}

#[cfg(all(test, not(miri)))] // files, locks and processes are not Miri's
mod tests {
    use super::*;
    use std::fs;
    use std::process::{Command, Stdio};

    #[test]
    fn a_start_of_the_machine_is_known_by_the_kernels_number() {
        let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(boot().unwrap(), checksum(&id));
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
    fn an_ended_process_is_distinguished_from_one_that_got_its_number() {
        let observer = me().unwrap();
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let sleeper = Identity {
            pid: child.id(),
            start: Sysfs::host().process(child.id()).unwrap().started,
            ..observer
        };
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
