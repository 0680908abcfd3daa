//! What the compute driver counts for this process, before a lease and after it.
//!
//! The ledger is exact and knows what we asked for; this figure is rounded and knows what we got. Where the ledger is clean
//! and this one has grown, the runtime holds on to something (scratch, code objects): worth knowing, and no leak of ours. As
//! each test has a process of its own, the driver takes all of it back when the test ends.

use crate::report::Record;
use rocmforge_memory::sysfs::Sysfs;
use std::time::Duration;

/// Time between two looks: memory falls late.
const BETWEEN: Duration = Duration::from_millis(50);

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
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_figure_of_this_process_on_that_card_is_read() {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        fs::create_dir_all(tree.path().join("proc/self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[4026531836]", tree.path().join("proc/self/ns/pid")).unwrap();
        for (node, gpu_id, location) in [(1, 4711, 3 << 8), (2, 815, 14 << 8)] {
            let folder = format!("sys/class/kfd/kfd/topology/nodes/{node}");
            write(&format!("{folder}/gpu_id"), &gpu_id.to_string());
            write(&format!("{folder}/properties"), &format!("location_id {location}\n"));
        }
        let sysfs = Sysfs::at(tree.path());
        assert!(DriverFigure::now(&sysfs, "0000:03:00.0").is_none(), "not told");
        let file = format!("sys/class/kfd/kfd/proc/{}/vram_4711", std::process::id());
        write(&file, "1048576\n");
        assert!(DriverFigure::now(&sysfs, "0000:0e:00.0").is_none(), "another card");
        let figure = DriverFigure::now(&sysfs, "0000:03:00.0").unwrap();
        write(&file, "9437184\n");
        let expected = Record::Driver {
            before: 1 << 20,
            after: [9 << 20; 3],
        };
        assert_eq!(figure.again(), expected);
    }
}
