//! KFD's list of processes: a process that has ended is gone from the card when it is gone from there.

use rocmforge_machine::sysfs::Sysfs;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Time between two looks.
const POLL: Duration = Duration::from_millis(20);

/// The list, in `/sys/class/kfd/kfd/proc`.
pub(crate) struct Kfd {
    sysfs: Sysfs,
}

impl Kfd {
    pub(crate) fn new(sysfs: Sysfs) -> Self {
        Self { sysfs }
    }

    /// Waits until the driver has forgotten `processes`, which have ended. Names one that it has not within `patience`.
    pub(crate) fn wait_until_forgotten(&self, processes: &BTreeSet<u32>, patience: Duration) -> Option<u32> {
        let start = Instant::now();
        loop {
            // Within a process name space the numbers belong to other processes, so nothing is known.
            let known = self.sysfs.kfd_processes()?;
            let held = known.into_iter().find(|process| processes.contains(process))?;
            if start.elapsed() >= patience {
                return Some(held);
            }
            std::thread::sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn machine(known: &[u32]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[4026531836]", root.path().join("proc/self/ns/pid")).unwrap();
        for process in known {
            fs::create_dir_all(folder(root.path(), *process)).unwrap();
        }
        root
    }

    fn folder(root: &Path, process: u32) -> std::path::PathBuf {
        root.join(format!("sys/class/kfd/kfd/proc/{process}"))
    }

    fn kfd(root: &Path) -> Kfd {
        Kfd::new(Sysfs::at(root))
    }

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn only_the_processes_asked_for_are_waited_for() {
        let root = machine(&[7, 8]);
        assert_eq!(kfd(root.path()).wait_until_forgotten(&BTreeSet::from([9]), LONG), None);
        let start = Instant::now();
        assert_eq!(
            kfd(root.path()).wait_until_forgotten(&BTreeSet::from([8, 9]), SHORT),
            Some(8)
        );
        assert!(start.elapsed() >= SHORT);
    }

    #[test]
    fn a_process_that_goes_late_is_waited_for() {
        let root = machine(&[7]);
        let path = folder(root.path(), 7);
        let driver = std::thread::spawn(move || {
            std::thread::sleep(SHORT);
            fs::remove_dir(path).unwrap();
        });
        assert_eq!(kfd(root.path()).wait_until_forgotten(&BTreeSet::from([7]), LONG), None);
        driver.join().unwrap();
    }

    #[test]
    fn strangers_numbers_are_not_waited_for() {
        let root = machine(&[7]);
        fs::remove_file(root.path().join("proc/self/ns/pid")).unwrap();
        assert_eq!(kfd(root.path()).wait_until_forgotten(&BTreeSet::from([7]), LONG), None);
    }
}
