//! Machines with drivers, device files and processes, as fixture trees: for tests of what examines a whole machine.

use crate::tree::{self, Tree};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

pub use tree::GIB;
/// A Radeon RX 7900 XT: PCI address, bus, KFD's number of the target.
pub const XT: (&str, u32, u32) = (tree::XT, 3, 110_000);
/// A second card.
pub const SECOND: (&str, u32, u32) = ("0000:07:00.0", 7, 120_001);
/// The graphics of a Ryzen.
pub const APU: (&str, u32, u32) = (tree::APU, 14, 100_306);
/// PCI address of an NVIDIA card.
pub const H200: &str = "0000:06:00.0";

/// A machine to be. Each method adds to it.
pub struct Machine(Tree);

impl Machine {
    /// A machine with a user outside of every group and nothing else.
    #[expect(clippy::new_without_default, reason = "what it has is worth a name")]
    pub fn new() -> Self {
        Self(Tree::new())
            .file(
                "proc/self/status",
                "Uid:\t54321\t54321\nGid:\t54321\t54321\nGroups:\t54322\n",
            )
            .file("etc/group", "users:x:54322:\nrender:x:992:\n")
            .file("proc/sys/kernel/osrelease", "6.14.0-test\n")
            .file("proc/sys/kernel/random/boot_id", "boot-one\n")
    }

    /// A machine with a Radeon that may be used and drives no display.
    pub fn headless() -> Self {
        Self::new().driver().card(0, XT, false)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file, with its folders.
    pub fn file(self, path: &str, content: &str) -> Self {
        self.0.file(path, content);
        self
    }

    /// A symbolic link, with its folders.
    pub fn link(self, path: &str, target: &str) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        symlink(target, path).expect("linked");
        self
    }

    /// A file in the place of a device. Its group, whichever runs the tests, is called `render`.
    pub fn device_file(self, path: &str, mode: u32) -> Self {
        let machine = self.file(path, "");
        let device = machine.path().join(path);
        fs::set_permissions(&device, fs::Permissions::from_mode(mode)).expect("set");
        let group = fs::metadata(device).expect("a file").gid();
        let groups = fs::read_to_string(machine.path().join("etc/group")).expect("groups");
        let render = format!("render:x:{group}:\n");
        let groups = groups.replace(&render, "") + &render;
        machine.file("etc/group", &groups)
    }

    /// The driver, with its defaults, and device files that all may use.
    pub fn driver(self) -> Self {
        self.file("sys/module/amdgpu/parameters/cwsr_enable", "1\n")
            .file("sys/module/amdgpu/parameters/gpu_recovery", "-1\n")
            .device_file("dev/kfd", 0o666)
            .device_file("dev/dri/renderD128", 0o666)
    }

    /// Card `number` with 20 GiB, of which 3 are used, and its compute node.
    pub fn card(self, number: u32, card: (&str, u32, u32), display: bool) -> Self {
        let (pci, bus, version) = card;
        let (status, enabled) = if display {
            ("connected", "enabled")
        } else {
            ("disconnected", "disabled")
        };
        self.0
            .card(number, pci, 20 * GIB, 3 * GIB)
            .connector(&format!("card{number}-DP-1"), status, enabled)
            .node(number + 1, 4711 + number, version, bus, 20 * GIB);
        self
    }

    /// NVIDIA's card `minor` of a PCI class, with its driver and device files that all may use.
    pub fn nvidia(self, minor: u32, pci: &str, class: u32) -> Self {
        let device = format!("sys/bus/pci/devices/{pci}");
        let version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n";
        self.file(&format!("{device}/vendor"), "0x10de\n")
            .file(&format!("{device}/class"), &format!("{class:#06x}00\n"))
            .link(&format!("{device}/driver"), "../../../bus/pci/drivers/nvidia")
            .file(
                &format!("proc/driver/nvidia/gpus/{pci}/information"),
                &format!("Model: \t\t NVIDIA H200\nIRQ:   \t\t 55\nDevice Minor: \t {minor}\n"),
            )
            .file("proc/driver/nvidia/version", version)
            .device_file("dev/nvidiactl", 0o666)
            .device_file("dev/nvidia-uvm", 0o666)
            .device_file(&format!("dev/nvidia{minor}"), 0o666)
    }

    /// A socket of NVIDIA's display adapter.
    pub fn nvidia_socket(self, pci: &str, status: &str) -> Self {
        let uevent = format!("DRIVER=nvidia\nPCI_SLOT_NAME={pci}\n");
        self.file("sys/class/drm/card4/device/uevent", &uevent)
            .file("sys/class/drm/card4/device/vendor", "0x10de\n")
            .file("sys/class/drm/card4-HDMI-A-1/status", status)
            .file("sys/class/drm/card4-HDMI-A-1/enabled", "disabled")
    }

    /// A process that has files open.
    pub fn process(self, id: u32, name: &str, open: &[&str]) -> Self {
        let tree = self.file(&format!("proc/{id}/comm"), &format!("{name}\n")).file(
            &format!("proc/{id}/stat"),
            &format!("{id} ({name}) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 987654"),
        );
        let files = open.iter().enumerate();
        files.fold(tree, |tree, (number, file)| {
            tree.link(&format!("proc/{id}/fd/{number}"), file)
        })
    }
}
