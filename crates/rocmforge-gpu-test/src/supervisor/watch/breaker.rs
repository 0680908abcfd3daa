//! Circuit breaker: after a reset of the card no test touches it again this boot, unless the user says so.
//!
//! Two sources say that an AMD card was reset or given up, both open to every user: the kernel's dumps of failed devices
//! (`/sys/class/devcoredump`) and its events about them (`WEDGED=`). NVIDIA's driver says it in the [kernel log](super::kernel_log),
//! which not every user may read; a card that has fallen off the bus shows that to everybody in its configuration space.

use super::kernel_log::KernelLog;
use crate::card::files::names;
use rocmforge_machine::uevents::Uevents;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Watches one card.
pub(crate) struct Breaker {
    /// The card's PCI address.
    card: String,
    /// `sys/class/devcoredump`.
    dumps: PathBuf,
    /// The card's configuration space, of an NVIDIA card that had one when the watch began.
    configuration: Option<PathBuf>,
    log: Option<KernelLog>,
    state: Mutex<State>,
}

struct State {
    /// Dumps that were there before us: of a card that was reset before.
    known: BTreeSet<String>,
    /// `None` where the kernel's events cannot be heard, as in a container.
    events: Option<Uevents>,
    tripped: Option<String>,
}

impl Breaker {
    /// Watches the card at `card` from now on; `root` is where `sys` lies.
    pub(crate) fn new(card: &str, root: &Path, events: Option<Uevents>) -> Self {
        let dumps = root.join("sys/class/devcoredump");
        let known = dumps_in(&dumps);
        Self {
            card: card.to_owned(),
            dumps,
            configuration: None,
            log: None,
            state: Mutex::new(State {
                known,
                events,
                tripped: None,
            }),
        }
    }

    /// Watches NVIDIA's card at `card` from now on.
    pub(crate) fn nvidia(card: &str, root: &Path) -> Self {
        let configuration = root.join("sys/bus/pci/devices").join(card).join("config");
        Self {
            configuration: Some(configuration).filter(|path| !is_lost(path)),
            log: KernelLog::open(root),
            ..Self::new(card, root, None)
        }
    }

    /// What happened to the card, if something did since the watch began.
    pub(crate) fn tripped(&self) -> Option<String> {
        let mut state = self.state.lock().expect("nobody panics holding it");
        if state.tripped.is_none() {
            state.tripped = self.look(&mut state);
        }
        state.tripped.clone()
    }

    fn look(&self, state: &mut State) -> Option<String> {
        if let Some(said) = self.log.as_ref().and_then(|log| log.fatal(&self.card)) {
            return Some(format!("the driver lost {} ({said})", self.card));
        }
        if self.configuration.as_deref().is_some_and(is_lost) {
            return Some(format!("{} does not answer on the bus any more", self.card));
        }
        if let Some(events) = &mut state.events {
            for event in events.by_ref() {
                if event.is_of(&self.card)
                    && let Some(method) = event.value("WEDGED")
                {
                    return Some(format!("the driver reset or gave up {} (WEDGED={method})", self.card));
                }
            }
        }
        for name in dumps_in(&self.dumps) {
            if state.known.insert(name.clone()) && self.is_ours(&name) {
                return Some(format!("the driver left a dump of the failed {} ({name})", self.card));
            }
        }
        None
    }

    /// Whether a dump is of our card. One that does not say of which device it is could be.
    fn is_ours(&self, dump: &str) -> bool {
        match fs::read_link(self.dumps.join(dump).join("failing_device")) {
            Ok(device) => device
                .file_name()
                .is_some_and(|name| name.eq_ignore_ascii_case(&self.card)),
            Err(_) => true,
        }
    }
}

/// Whether a device is not there, or answers as nobody does: with ones only.
fn is_lost(configuration: &Path) -> bool {
    let mut vendor = [0; 4];
    let read = fs::File::open(configuration).and_then(|mut file| file.read_exact(&mut vendor));
    read.is_err() || vendor == [0xff; 4]
}

/// The dumps in a folder.
fn dumps_in(folder: &Path) -> BTreeSet<String> {
    names(folder).filter(|name| name.starts_with("devcd")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixDatagram;

    const CARD: &str = "0000:03:00.0";

    fn dump(root: &Path, name: &str, device: Option<&str>) {
        let folder = root.join("sys/class/devcoredump").join(name);
        fs::create_dir_all(&folder).unwrap();
        if let Some(device) = device {
            symlink(format!("../../../pci0000:00/{device}"), folder.join("failing_device")).unwrap();
        }
    }

    #[test]
    fn a_new_dump_of_our_card_trips_it_for_good() {
        let root = tempfile::tempdir().unwrap();
        dump(root.path(), "devcd1", Some(CARD));
        let breaker = Breaker::new(CARD, root.path(), None);
        assert_eq!(breaker.tripped(), None, "an old dump is an old story");
        dump(root.path(), "devcd2", Some("0000:0e:00.0"));
        dump(root.path(), "disabled", None);
        assert_eq!(breaker.tripped(), None, "another device");
        dump(root.path(), "devcd3", Some(CARD));
        assert!(breaker.tripped().unwrap().contains("devcd3"));
        fs::remove_dir_all(root.path().join("sys/class/devcoredump")).unwrap();
        assert!(
            breaker.tripped().unwrap().contains("devcd3"),
            "dumps go after some minutes"
        );
    }

    #[test]
    fn a_dump_of_nobody_knows_what_could_be_ours() {
        let root = tempfile::tempdir().unwrap();
        let breaker = Breaker::new(CARD, root.path(), None);
        assert_eq!(breaker.tripped(), None);
        dump(root.path(), "devcd1", None);
        assert!(breaker.tripped().is_some());
    }

    #[test]
    fn an_event_about_our_card_trips_it_and_others_do_not() {
        let root = tempfile::tempdir().unwrap();
        let (kernel, ours) = UnixDatagram::pair().unwrap();
        let breaker = Breaker::new(CARD, root.path(), Some(Uevents::from_socket(ours.into()).unwrap()));
        assert_eq!(breaker.tripped(), None);
        let say = |text: &str| kernel.send(text.as_bytes()).map(drop).unwrap();
        let path = |pci: &str| format!("/devices/pci0000:00/{pci}/drm/card1");
        say(&format!(
            "change@{0}\0ACTION=change\0DEVPATH={0}\0HOTPLUG=1\0",
            path(CARD)
        ));
        say(&format!(
            "change@{0}\0ACTION=change\0DEVPATH={0}\0WEDGED=rebind\0",
            path("0000:0e:00.0")
        ));
        assert_eq!(breaker.tripped(), None);
        say(&format!(
            "change@{0}\0ACTION=change\0DEVPATH={0}\0WEDGED=none\0",
            path(CARD)
        ));
        assert!(breaker.tripped().unwrap().contains("WEDGED=none"));
    }

    #[test]
    fn an_nvidia_card_is_lost_by_its_drivers_word_or_when_it_answers_no_more() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/bus/pci/devices").join(CARD);
        let log = root.path().join("dev/kmsg");
        for folder in [&device, &root.path().join("dev")] {
            fs::create_dir_all(folder).unwrap();
        }
        let config = device.join("config");
        let present = || fs::write(&config, [0xde, 0x10, 0x35, 0x23, 0, 0]).unwrap();
        present();
        fs::write(&log, "").unwrap();
        let breaker = Breaker::nvidia(CARD, root.path());
        fs::write(&log, "NVRM: Xid (PCI:0000:03:00): 31, an application's\n").unwrap();
        assert_eq!(breaker.tripped(), None);
        fs::write(&config, [0xff; 64]).unwrap();
        assert!(breaker.tripped().unwrap().contains("does not answer"));
        present();
        let breaker = Breaker::nvidia(CARD, root.path());
        let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
        std::io::Write::write_all(&mut file, b"NVRM: Xid (PCI:0000:03:00): 79, lost\n").unwrap();
        assert!(breaker.tripped().unwrap().contains("Xid 79"));
        fs::remove_dir_all(&device).unwrap();
        // A machine that never showed the card's configuration is not judged by it.
        assert_eq!(Breaker::nvidia(CARD, root.path()).tripped(), None);
    }
}
