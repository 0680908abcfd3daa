//! Processes as `/proc` shows them.

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use std::collections::BTreeSet;
use std::fs;

/// A process as `/proc` shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) state: char,
    pub(super) parent: u32,
    /// When it started, in clock ticks since boot: with the number, one of its kind.
    pub(super) started: u64,
}

/// All that there are now.
pub(super) fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

impl Process {
    pub(super) fn read(id: u32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    /// `id (name) state parent ... started ...`; the name may hold anything, closing brackets too.
    fn parse(stat: &str) -> Option<Self> {
        let (id, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        Some(Self {
            id: id.parse().ok()?,
            name: name.to_owned(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            started: fields.nth(17)?.parse().ok()?,
        })
    }

    /// Whether it was started with `variable` in its environment, of this value.
    pub(super) fn has(&self, variable: &str, value: &str) -> bool {
        let wanted = format!("{variable}={value}");
        fs::read(format!("/proc/{}/environ", self.id))
            .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|one| one == wanted.as_bytes()))
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.id.cast_signed())
    }

    /// Kills this process, and not one that has got its number meanwhile.
    pub(super) fn kill(&self) {
        let Some(handle) = self.pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return;
        };
        if Self::read(self.id).is_some_and(|now| now.started == self.started) {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }

    /// Takes the exit status of a child of ours, if it has ended.
    pub(super) fn reap(&self) {
        if let Some(pid) = self.pid() {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// The state of a process: `R`unning, `S`leeping, `D` waiting in the kernel, s`T`opped, `Z`ombie. `None` if it has gone.
pub(crate) fn state_of(id: u32) -> Option<char> {
    Process::read(id).map(|process| process.state)
}

/// Adds to `found` the children of its processes, and theirs.
pub(super) fn add_descendants(processes: &[Process], found: &mut BTreeSet<u32>) {
    loop {
        let before = found.len();
        let children = processes
            .iter()
            .filter(|one| found.contains(&one.parent))
            .map(|one| one.id);
        let children: Vec<u32> = children.collect();
        found.extend(children);
        if found.len() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 0 0";
        let expected = Process {
            id: 42,
            name: "a) b (c".to_owned(),
            state: 'S',
            parent: 7,
            started: 123_456,
        };
        assert_eq!(Process::parse(stat), Some(expected));
        assert_eq!(Process::parse("42 (cut"), None);
    }

    #[test]
    fn descendants_of_descendants_are_found() {
        let process = |id, parent| Process {
            id,
            name: String::new(),
            state: 'S',
            parent,
            started: 0,
        };
        // Listed so that one pass in order would miss some.
        let processes = [
            process(5, 4),
            process(4, 3),
            process(3, 2),
            process(9, 1),
            process(6, 3),
        ];
        let mut found = BTreeSet::from([3]);
        add_descendants(&processes, &mut found);
        assert_eq!(found, BTreeSet::from([3, 4, 5, 6]));
    }

    #[test]
    fn we_find_ourselves() {
        let me = Process::read(std::process::id()).unwrap();
        assert_eq!(
            Some(me.parent),
            rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned())
        );
        assert!(matches!(state_of(me.id), Some('R' | 'S')));
        assert_eq!(state_of(0x7fff_fff0), None);
        assert!(
            processes()
                .iter()
                .any(|one| one.id == me.id && one.started == me.started)
        );
    }
}
