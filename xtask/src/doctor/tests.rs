//! The report of fixture trees, and a probe that meets misbehaving libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rocmforge_testkit::lock::Holder;

use super::gather;
use super::probe::{End, Probe, Step, ask_with};
use super::report::Lock;

const GIB: u64 = 1 << 30;

fn file(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A machine with a user outside every group, and nothing else.
fn machine() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    file(
        tree.path(),
        "proc/self/status",
        "Uid:\t54321\t54321\nGid:\t54321\t54321\nGroups:\t54322\n",
    );
    file(tree.path(), "etc/group", "users:x:54322:\n");
    tree
}

fn card(root: &Path, number: u32, pci: &str, node: (u32, u32), display: bool) {
    let device = format!("sys/class/drm/card{number}/device");
    file(
        root,
        &format!("{device}/uevent"),
        &format!("DRIVER=amdgpu\nPCI_SLOT_NAME={pci}\n"),
    );
    file(root, &format!("{device}/vendor"), "0x1002\n");
    file(root, &format!("{device}/device"), "0x744c\n");
    file(
        root,
        &format!("{device}/mem_info_vram_total"),
        &format!("{}\n", 20 * GIB),
    );
    file(root, &format!("{device}/mem_info_vram_used"), &format!("{}\n", 3 * GIB));
    let status = if display {
        ("connected", "enabled")
    } else {
        ("disconnected", "disabled")
    };
    file(root, &format!("sys/class/drm/card{number}-DP-1/status"), status.0);
    file(root, &format!("sys/class/drm/card{number}-DP-1/enabled"), status.1);
    let (bus, version) = node;
    let node = format!("sys/class/kfd/kfd/topology/nodes/{}", number + 1);
    file(root, &format!("{node}/gpu_id"), "4711\n");
    file(
        root,
        &format!("{node}/properties"),
        &format!("location_id {}\ngfx_target_version {version}\n", bus << 8),
    );
    file(root, "sys/module/amdgpu/parameters/cwsr_enable", "1\n");
    device_file(root, "dev/kfd", 0o666);
}

fn device_file(root: &Path, path: &str, mode: u32) {
    file(root, path, "");
    fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
}

fn says(root: &Path, parts: &[&str], silent: &[&str]) {
    let text = gather(root, false).to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    for part in silent {
        assert!(!text.contains(part), "{part:?} is in:\n{text}");
    }
    assert!(text.lines().count() <= 40, "one screen:\n{text}");
}

const XT: (u32, u32) = (3, 110_000);
const APU: (u32, u32) = (14, 100_306);

#[test]
fn no_driver() {
    let tree = machine();
    says(
        tree.path(),
        &[
            "none with a driver",
            "amdgpu is not loaded",
            "/dev/kfd is not there",
            "There is no AMD card",
            "test-gpu",
        ],
        &["usermod"],
    );
}

#[test]
fn no_permission() {
    let tree = machine();
    card(tree.path(), 0, "0000:03:00.0", XT, false);
    device_file(tree.path(), "dev/kfd", 0o600);
    device_file(tree.path(), "dev/dri/renderD128", 0o600);
    says(
        tree.path(),
        &[
            "/dev/kfd not for this user (mode 600",
            "/dev/dri/renderD128 not for",
            "54321 in 54321, users",
            "usermod -aG",
        ],
        &["drives a display"],
    );
}

#[test]
fn apu_only() {
    let tree = machine();
    card(tree.path(), 0, "0000:0e:00.0", APU, true);
    says(
        tree.path(),
        &["gfx1036, shares the system's memory", "its budget is 0 unless"],
        &["usermod"],
    );
}

#[test]
fn apu_and_card() {
    let tree = machine();
    card(tree.path(), 0, "0000:03:00.0", XT, false);
    card(tree.path(), 1, "0000:0e:00.0", APU, true);
    says(
        tree.path(),
        &[
            "0000:03:00.0, 1002:744c, amdgpu, gfx1100\n",
            "3.0 GiB (3221225472 B) used of 20.0 GiB",
            "0000:0e:00.0 drives a display",
            "cwsr_enable=1",
        ],
        &["0000:03:00.0 drives a display", "cwsr_enable=0"],
    );
}

#[test]
fn display_on_the_card() {
    let tree = machine();
    card(tree.path(), 0, "0000:03:00.0", XT, true);
    file(tree.path(), "sys/module/amdgpu/parameters/cwsr_enable", "0\n");
    says(
        tree.path(),
        &[
            "displays   DP-1\n",
            "--allow-display-gpu",
            "can only be ended by a reset",
        ],
        &[],
    );
}

#[test]
fn headless() {
    let tree = machine();
    card(tree.path(), 0, "0000:03:00.0", XT, false);
    file(tree.path(), "opt/rocm-6.4.1/.info/version", "6.4.1-83\n");
    says(
        tree.path(),
        &[
            "displays   none",
            "/dev/kfd usable (mode 666",
            "6.4.1-83 in /opt/rocm-6.4.1",
            "not asked: another root",
        ],
        &["drives a display", "usermod"],
    );
}

#[test]
fn unreadable_memory() {
    let tree = machine();
    card(tree.path(), 0, "0000:03:00.0", XT, false);
    file(tree.path(), "sys/class/drm/card0/device/mem_info_vram_used", "a lot\n");
    says(
        tree.path(),
        &["unknown used of 20.0 GiB", "holds \"a lot\"", "falls back to a quarter"],
        &[],
    );
}

#[test]
fn what_hip_says_stands_beside_what_sysfs_says() {
    let tree = machine();
    card(tree.path(), 0, "0000:03:00.0", XT, false);
    let mut report = gather(tree.path(), false);
    let device = |memory| Step::Device {
        index: 0,
        name: "Radeon".into(),
        pci: "0000:03:00.0".into(),
        memory,
    };
    report.hip = Probe {
        candidates: vec![],
        steps: vec![
            Step::Loaded {
                path: "libamdhip64.so.6".into(),
                missing: vec![],
            },
            Step::Init {
                status: "hipSuccess (0)".into(),
                good: true,
            },
            device(Some((19 * GIB, 20 * GIB))),
        ],
        end: End::Answered,
    };
    let holder = Holder {
        pid: 77,
        command: "cargo xtask test-gpu".into(),
        since: 0,
    };
    report.locks = vec![Lock {
        card: "0000:03:00.0".into(),
        holder: Some(Some(holder)),
    }];
    let text = report.to_string();
    for part in [
        "19.0 GiB (20401094656 B) free of 20.0 GiB",
        "hipInit: hipSuccess",
        "held by pid 77 (cargo xtask",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_crash_and_a_hang_of_the_library_are_told_apart_and_survived() {
    let patience = Duration::from_secs(20);
    let crashed = ask_with(
        &mut shell(r#"echo 'noise rocmforge-probe: {"Version":{"runtime":60300000}}'; kill -SEGV $$"#),
        patience,
    );
    assert_eq!(crashed.end, End::Crashed(11));
    assert_eq!(crashed.steps, [Step::Version { runtime: 60_300_000 }]);
    assert!(!crashed.candidates.is_empty());
    assert_eq!(ask_with(&mut shell("exit 3"), patience).end, End::Exited(3));

    let start = Instant::now();
    let limit = Duration::from_millis(300);
    assert_eq!(ask_with(&mut shell("exec sleep 60"), limit).end, End::TimedOut(limit));
    assert!(start.elapsed() < Duration::from_secs(20));

    assert!(matches!(
        ask_with(&mut Command::new("/no/such/program"), patience).end,
        End::NotStarted(_)
    ));

    let tree = machine();
    card(tree.path(), 0, "0000:03:00.0", XT, false);
    let mut report = gather(tree.path(), false);
    report.hip = Probe {
        steps: vec![],
        ..crashed
    };
    let text = report.to_string();
    assert!(
        text.contains("the library crashed with signal 11") && text.contains("does not survive its own start"),
        "{text}"
    );
    assert!(
        text.contains("would be tried: libamdhip64.so.7 (dynamic linker)"),
        "{text}"
    );
}
