//! Driver figure: device memory that the compute driver counts for this process, before a lease and after it.
//!
//! The ledger is exact and knows what we asked for; this figure is rounded and knows what we got. Where the ledger is clean
//! and this one has grown, the runtime holds on to something (scratch, code objects): worth knowing, and no leak of ours. As
//! each test has a process of its own, the driver takes all of it back when the test ends. What grows by as much with each
//! lease of a process is another matter: no cache does that, and a program that lives would run out of memory.

use parking_lot::Mutex;
use rocmforge_gpu_test::record::Record;
use rocmforge_machine::sysfs::Sysfs;
use std::collections::VecDeque;
use std::time::Duration;

/// Time between two looks: memory falls late.
const BETWEEN: Duration = Duration::from_millis(50);
/// Leases in a row that leave as much behind before it counts as a leak.
pub(crate) const REPEATS: usize = 5;
/// As much: within the granule in which the driver hands memory out.
const GRANULE: u64 = 2 << 20;

/// What the leases of a process left with the driver.
#[derive(Default)]
pub(crate) struct Grown(VecDeque<u64>);

/// Of this process.
pub(crate) static GROWN: Mutex<Grown> = Mutex::new(Grown(VecDeque::new()));

impl Grown {
    /// Notes what a lease whose ledger was clean left with the driver, `None` if nothing. Returns it if the leases before
    /// left as much.
    pub(crate) fn note(&mut self, retained: Option<u64>) -> Option<u64> {
        let Some(bytes) = retained else {
            self.0.clear();
            return None;
        };
        self.0.push_back(bytes);
        if self.0.len() > REPEATS {
            self.0.pop_front();
        }
        let (least, most) = (self.0.iter().min()?, self.0.iter().max()?);
        (self.0.len() == REPEATS && most - least <= GRANULE).then_some(bytes)
    }
}

/// The figure as it was when the lease began.
pub(crate) struct DriverFigure {
    sysfs: Sysfs,
    gpu_id: u32,
    before: u64,
}

impl DriverFigure {
    /// The figure now, for the card at a PCI address; `None` where the driver does not tell.
    pub(crate) fn now(sysfs: &Sysfs, pci: &str) -> Option<Self> {
        let nodes = sysfs.kfd_nodes(&mut Vec::new());
        let gpu_id = nodes.iter().find(|node| node.pci.eq_ignore_ascii_case(pci))?.gpu_id;
        let mut figure = Self {
            sysfs: sysfs.clone(),
            gpu_id,
            before: 0,
        };
        figure.before = figure.read()?;
        Some(figure)
    }

    fn read(&self) -> Option<u64> {
        Some(self.sysfs.process_vram(std::process::id(), self.gpu_id)?.0)
    }

    /// Three more looks.
    pub(crate) fn again(self) -> Record {
        let after = [0; 3].map(|_| {
            std::thread::sleep(BETWEEN);
            // A process that the driver has forgotten holds nothing.
            self.read().unwrap_or(0)
        });
        Record::Driver {
            before: self.before,
            after,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// A machine with two cards whose driver reports given figures for this process.
    pub(crate) struct FakeKfd(tempfile::TempDir);

    impl FakeKfd {
        pub(crate) fn new() -> Self {
            let kfd = Self(tempfile::tempdir().unwrap());
            let namespace = kfd.0.path().join("proc/self/ns");
            fs::create_dir_all(&namespace).unwrap();
            std::os::unix::fs::symlink("pid:[4026531836]", namespace.join("pid")).unwrap();
            for (node, gpu_id, location) in [(1, 4711, 3 << 8), (2, 815, 14 << 8)] {
                let folder = format!("sys/class/kfd/kfd/topology/nodes/{node}");
                kfd.write(&format!("{folder}/gpu_id"), &gpu_id.to_string());
                kfd.write(&format!("{folder}/properties"), &format!("location_id {location}\n"));
            }
            kfd
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// On the card at 0000:03:00.0.
        pub(crate) fn say(&self, mebibytes: u64) {
            let file = format!("sys/class/kfd/kfd/proc/{}/vram_4711", std::process::id());
            self.write(&file, &format!("{}\n", mebibytes << 20));
        }

        pub(crate) fn figure(&self, pci: &str) -> Option<DriverFigure> {
            DriverFigure::now(&Sysfs::at(self.0.path()), pci)
        }
    }

    /// What `note` answers to each of a row of leases.
    fn noted(leases: &[Option<u64>]) -> Vec<Option<u64>> {
        let mut grown = Grown::default();
        leases.iter().map(|&lease| grown.note(lease)).collect()
    }

    #[test]
    fn as_much_with_each_of_five_leases_is_a_leak() {
        const MIB: u64 = 1 << 20;
        assert_eq!(
            noted(&[Some(8 * MIB); 6]),
            [None, None, None, None, Some(8 * MIB), Some(8 * MIB)]
        );
        // The first lease warms the runtime up.
        let warm = [
            Some(90 * MIB),
            Some(8 * MIB),
            Some(10 * MIB),
            Some(9 * MIB),
            Some(8 * MIB),
            Some(10 * MIB),
        ];
        assert_eq!(noted(&warm), [None, None, None, None, None, Some(10 * MIB)]);
    }

    #[test]
    fn caches_that_fill_and_leases_that_leave_nothing_are_no_leak() {
        const MIB: u64 = 1 << 20;
        let fills = [40, 20, 10, 9, 8, 7].map(|mib| Some(mib * MIB));
        assert_eq!(noted(&fills), [None; 6]);
        let over_a_granule = [
            Some(8 * MIB),
            Some(8 * MIB),
            Some(10 * MIB + 1),
            Some(8 * MIB),
            Some(8 * MIB),
        ];
        assert_eq!(noted(&over_a_granule), [None; 5]);
        let (some, none) = (Some(8 * MIB), None);
        assert_eq!(
            noted(&[some, some, some, some, none, some, some, some, some]),
            [None; 9]
        );
    }

    #[test]
    fn the_figure_of_this_process_on_that_card_is_read() {
        let kfd = FakeKfd::new();
        assert!(kfd.figure("0000:03:00.0").is_none(), "unknown");
        kfd.say(1);
        assert!(kfd.figure("0000:0e:00.0").is_none(), "another card");
        let figure = kfd.figure("0000:03:00.0").unwrap();
        kfd.say(9);
        let expected = Record::Driver {
            before: 1 << 20,
            after: [9 << 20; 3],
        };
        assert_eq!(figure.again(), expected);
    }
}
