//! Fixture tree of a machine: the files of sysfs and `/proc` that a discovery reads.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rocmforge_machine::sysfs::Sysfs;
use tempfile::TempDir;

/// A machine to be.
pub struct Tree(TempDir);

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// A machine with a user, groups and no card.
    pub fn new() -> Self {
        let tree = Self(tempfile::tempdir().expect("a temporary directory"));
        tree.file(
            "proc/self/status",
            "Name:\ttest\nUid:\t54321\t54321\t54321\t54321\nGid:\t54321\t54321\t54321\t54321\nGroups:\t44 992\n",
        );
        tree.file("etc/group", "root:x:0:\nvideo:x:44:me\nrender:x:992:me\n");
        fs::create_dir_all(tree.path().join("proc/self/ns")).unwrap();
        symlink("pid:[4026531836]", tree.path().join("proc/self/ns/pid")).unwrap();
        tree
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, with its folders.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// A card as DRM shows it, with its memory and what is in use.
    pub fn card(&self, number: u32, pci: &str, total: u64, used: u64) -> &Self {
        let card = format!("sys/class/drm/card{number}/device");
        let id = format!("DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME={pci}\n");
        self.file(&format!("{card}/uevent"), &id)
            .file(&format!("{card}/vendor"), "0x1002\n")
            .file(&format!("{card}/device"), "0x744c\n")
            .file(&format!("{card}/mem_info_vram_total"), format!("{total}\n"))
            .file(&format!("{card}/mem_info_vram_used"), format!("{used}\n"))
            .file(&format!("{card}/mem_info_gtt_total"), format!("{}\n", 15_u64 << 30))
            .file(&format!("{card}/mem_info_gtt_used"), format!("{}\n", 1_u64 << 30))
            .file(&format!("sys/class/drm/renderD{}/device/uevent", 128 + number), &id)
    }

    /// A connector of a card.
    pub fn connector(&self, name: &str, status: &str, enabled: &str) -> &Self {
        self.file(&format!("sys/class/drm/{name}/status"), format!("{status}\n"))
            .file(&format!("sys/class/drm/{name}/enabled"), format!("{enabled}\n"))
    }

    /// A card as KFD shows it.
    pub fn node(&self, number: u32, gpu_id: u32, version: u32, bus: u32, memory: u64) -> &Self {
        let node = format!("sys/class/kfd/kfd/topology/nodes/{number}");
        self.file(&format!("{node}/gpu_id"), format!("{gpu_id}\n"))
            .file(
                &format!("{node}/properties"),
                format!(
                    "cpu_cores_count 0\nsimd_count 168\nlocation_id {}\ndomain 0\ndrm_render_minor {}\n\
                     gfx_target_version {version}\nlocal_mem_size 0\n",
                    bus << 8,
                    127 + number
                ),
            )
            .file(
                &format!("{node}/mem_banks/0/properties"),
                format!("heap_type 1\nsize_in_bytes {memory}\nflags 0\n"),
            )
    }

    /// A reader of it.
    pub fn sysfs(&self) -> Sysfs {
        Sysfs::at(self.path())
    }
}

/// The PCI address of the Radeon.
pub const XT: &str = "0000:03:00.0";
/// The PCI address of the processor's graphics.
pub const APU: &str = "0000:0e:00.0";
/// Bytes.
pub const GIB: u64 = 1 << 30;

/// A desktop: a Radeon with a display and the processor's own graphics.
pub fn apu_and_card() -> Tree {
    let tree = Tree::new();
    tree.card(1, XT, 20 * GIB, 3 * GIB).card(2, APU, GIB / 2, GIB / 8);
    tree.connector("card1-DP-1", "connected", "enabled")
        .connector("card1-HDMI-A-1", "disconnected", "disabled");
    tree.connector("card2-HDMI-A-2", "disconnected", "disabled");
    tree.file("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
    tree.node(1, 4711, 110_000, 3, 20 * GIB)
        .node(2, 815, 100_306, 0x0e, GIB / 2);
    tree
}
