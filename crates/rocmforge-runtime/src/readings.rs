//! Readings for the budget: the kernel's figures of the card, by its PCI address, and what HIP reports free.

use crate::error::Unavailable;
use crate::hip::{self, Driver};
use rocmforge_machine::sysfs::{Access, DeviceFile, Sysfs};
use rocmforge_memory::{DeviceKey, Reading, Readings, SysfsReadings};
use std::sync::Arc;
use std::time::Duration;

/// Both figures together. Neither is enough alone: HIP's does not see what the desktop holds, and the kernel's falls late.
pub(crate) struct CardReadings {
    pub(crate) driver: Arc<Driver>,
    /// sysfs, or what the provider puts in its place.
    pub(crate) system: Option<Box<dyn Readings>>,
}

impl Readings for CardReadings {
    fn read(&self) -> Reading {
        let mut reading = self.system.as_ref().map(|system| system.read()).unwrap_or_default();
        if reading.hip_free.is_some() && reading.total.is_some() {
            return reading;
        }
        if let Ok((free, total)) = hip::memory::info(&self.driver) {
            reading.hip_free.get_or_insert(free);
            reading.total.get_or_insert(total);
        }
        reading
    }

    fn now(&self) -> Duration {
        self.driver.now()
    }
}

/// sysfs of the card at that address, if the machine has one.
pub(crate) fn system_readings(pci: &DeviceKey) -> Option<Box<dyn Readings>> {
    let readings = SysfsReadings::new(&Sysfs::host(), pci.as_str());
    readings.found().then(|| Box::new(readings) as Box<dyn Readings>)
}

/// Looks at `/dev/kfd`, the kernel's topology and the render nodes, without HIP.
pub(crate) fn kernel_shows_a_gpu(sysfs: &Sysfs) -> Result<(), Unavailable> {
    let machine = sysfs.machine();
    let denied = |file: &DeviceFile| {
        let group = file.group.name.clone().unwrap_or_else(|| file.group.id.to_string());
        Unavailable::NoPermission {
            path: file.path.display().to_string(),
            advice: format!("add this user to the group {group} and log in again"),
        }
    };
    let Some(kfd) = &machine.kfd else {
        return Err(Unavailable::NoDriver("/dev/kfd".to_owned()));
    };
    if kfd.access == Access::Denied {
        return Err(denied(kfd));
    }
    if machine.nodes.is_empty() {
        return Err(Unavailable::NoDevice(
            "the amdgpu driver offers none for compute".to_owned(),
        ));
    }
    // HIP opens the render node of each GPU it uses; one usable GPU is enough.
    let render = |minor: u32| {
        let name = format!("renderD{minor}");
        let mut files = machine.render_nodes.iter();
        files.find(|file| file.path.file_name().is_some_and(|at| at == name.as_str()))
    };
    let nodes = machine.nodes.iter().map(|node| node.render_minor.and_then(render));
    let nodes: Vec<_> = nodes.collect();
    match nodes.iter().flatten().find(|file| file.access == Access::Denied) {
        Some(file)
            if nodes
                .iter()
                .all(|node| node.is_some_and(|file| file.access == Access::Denied)) =>
        {
            Err(denied(file))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    /// A tree with a user who has no groups, and files that have the permission bits given.
    fn tree(files: &[(&str, &str, u32)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let status = (
            "proc/self/status",
            "Uid:\t54321\t54321\t54321\t54321\nGid:\t54321\t54321\t54321\t54321\n",
            0o644,
        );
        for (path, content, mode) in files.iter().chain([&status]) {
            let path = root.path().join(Path::new(path));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        root
    }

    const NODE: &str = "location_id 768\ndomain 0\ndrm_render_minor 128\ngfx_target_version 110000\nsimd_count 168\n";
    const GPU: [(&str, &str, u32); 2] = [
        ("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "4242\n", 0o644),
        ("sys/class/kfd/kfd/topology/nodes/1/properties", NODE, 0o644),
    ];

    fn look(files: &[(&str, &str, u32)]) -> Result<(), Unavailable> {
        let root = tree(files);
        kernel_shows_a_gpu(&Sysfs::at(root.path()))
    }

    #[test]
    fn the_kernel_is_asked_before_hip() {
        assert_eq!(look(&[]), Err(Unavailable::NoDriver("/dev/kfd".to_owned())));
        let closed = look(&[("dev/kfd", "", 0o600)]).unwrap_err();
        assert!(
            matches!(&closed, Unavailable::NoPermission { path, .. } if path.ends_with("dev/kfd")),
            "{closed}"
        );
        let open = ("dev/kfd", "", 0o666);
        assert!(matches!(look(&[open]), Err(Unavailable::NoDevice(_))));
        assert_eq!(look(&[open, GPU[0], GPU[1]]), Ok(()));
        assert_eq!(look(&[open, GPU[0], GPU[1], ("dev/dri/renderD128", "", 0o666)]), Ok(()));
        let closed = look(&[open, GPU[0], GPU[1], ("dev/dri/renderD128", "", 0o600)]).unwrap_err();
        assert!(
            matches!(&closed, Unavailable::NoPermission { path, .. } if path.ends_with("renderD128")),
            "{closed}"
        );
    }
}
