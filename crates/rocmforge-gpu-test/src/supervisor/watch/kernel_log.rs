//! Kernel log: NVIDIA's driver names a card's errors there (Xid), and nowhere else that is open without the card.

use rustix::fs::{Mode, OFlags, SeekFrom, open, seek};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The longest record that the kernel gives.
const LONGEST: usize = 8192;

/// Errors after which a card must be reset or the machine restarted; others are an application's own. Numbers are those of NVIDIA's
/// Xid catalogue, <https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>.
const FATAL: [(u32, &str); 11] = [
    (48, "a double-bit memory error"),
    (62, "its microcontroller halted"),
    (64, "its memory could not be repaired"),
    (74, "an NVLink error"),
    (79, "it has fallen off the bus"),
    (95, "a memory error that was not contained"),
    (119, "its system processor does not answer"),
    (120, "its system processor failed"),
    (140, "a memory error that was not contained"),
    (143, "it could not be initialised"),
    (RECOVERY_CHANGED, "it must be reset"),
];

/// "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", and back.
const RECOVERY_CHANGED: u32 = 154;

/// Reads what the kernel says from now on.
pub(crate) struct KernelLog(OwnedFd);

impl KernelLog {
    /// Opens the log of the machine under `root`; `None` where this user may not read it.
    pub(crate) fn open(root: &Path) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let log = open(root.join("dev/kmsg"), flags, Mode::empty()).ok()?;
        seek(&log, SeekFrom::End(0)).ok()?;
        Some(Self(log))
    }

    /// The next record, if there is one.
    fn next(&self) -> Option<String> {
        let mut record = [0; LONGEST];
        loop {
            match rustix::io::read(&self.0, &mut record) {
                Ok(0) => return None,
                Ok(length) => return Some(String::from_utf8_lossy(&record[..length]).into_owned()),
                // Records were overwritten before they were read: the next read begins after them.
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    /// What the driver says of the card at `pci` that it does not survive, if it has said so since the last call.
    pub(crate) fn fatal(&self, pci: &str) -> Option<String> {
        std::iter::from_fn(|| self.next()).find_map(|record| record.lines().find_map(|line| fatal(line, pci)))
    }
}

/// `… NVRM: Xid (PCI:0000:06:00): 79, pid=1, …`; the address has no function.
fn fatal(line: &str, pci: &str) -> Option<String> {
    let (_, rest) = line.split_once("NVRM: Xid (PCI:")?;
    let (address, rest) = rest.split_once("): ")?;
    let device = pci.rsplit_once('.').map_or(pci, |(device, _)| device);
    if !address.eq_ignore_ascii_case(device) {
        return None;
    }
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let number: u32 = number.parse().ok()?;
    // The same number says that nothing has to be done any more.
    if number == RECOVERY_CHANGED && rest.contains("to 0x0") {
        return None;
    }
    let (_, meaning) = FATAL.iter().find(|(fatal, _)| *fatal == number)?;
    Some(format!("Xid {number}: {meaning}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = "0000:06:00.0";

    #[test]
    fn a_fault_of_the_card_is_distinguished_from_one_of_an_application() {
        let said = |text: &str| fatal(text, CARD);
        let lost = "4,1234,99,-;NVRM: Xid (PCI:0000:06:00): 79, pid='<unknown>', GPU has fallen off the bus.";
        assert_eq!(said(lost).as_deref(), Some("Xid 79: it has fallen off the bus"));
        let changed =
            |to: &str| format!("4,1,9,-;NVRM: Xid (PCI:0000:06:00): 154, GPU recovery action changed from {to}");
        assert!(said(&changed("0x0 (None) to 0x1 (GPU Reset Required)")).is_some());
        assert_eq!(said(&changed("0x1 (GPU Reset Required) to 0x0 (None)")), None);
        let others = [
            "4,1,9,-;NVRM: Xid (PCI:0000:07:00): 79, GPU has fallen off the bus.",
            "4,1,9,-;NVRM: Xid (PCI:0000:06:00): 31, pid=7, name=test, MMU Fault",
            "4,1,9,-;NVRM: Xid (PCI:0000:06:00): , cut",
            "4,1,9,-;NVRM: loading",
            "",
        ];
        for other in others {
            assert_eq!(said(other), None, "{other}");
        }
    }

    #[test]
    fn records_from_now_on_are_read() {
        let root = tempfile::tempdir().unwrap();
        assert!(KernelLog::open(root.path()).is_none());
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let path = root.path().join("dev/kmsg");
        std::fs::write(&path, "NVRM: Xid (PCI:0000:06:00): 79, old\n").unwrap();
        let log = KernelLog::open(root.path()).unwrap();
        assert_eq!(log.fatal(CARD), None);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, b"noise\nNVRM: Xid (PCI:0000:06:00): 119, new\n").unwrap();
        assert!(log.fatal(CARD).unwrap().contains("119"));
        assert_eq!(log.fatal(CARD), None, "said once");
    }
}
