//! The report of fixture trees, and a probe that meets misbehaving libraries.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::lock::Holder;

use super::gather;
use super::probe::{End, Probe, Step, ask_with};
use super::report::Lock;
use rocmforge_test_support::machines::{APU, GIB, H200, Machine, SECOND, XT};

/// The command whose advice the screens are.
const COMMAND: &str = "cargo xtask test-gpu";

/// The whole screen, compared with the reviewed text (`INSTA_UPDATE=always` writes what it is now).
#[track_caller]
fn screen(name: &str, tree: &Machine) {
    let text = gather(tree.path(), false, COMMAND).to_string();
    assert!(text.lines().count() <= 40, "one screen:\n{text}");
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn no_card() {
    screen("no_card", &Machine::new());
}

#[test]
fn no_driver() {
    let device = "sys/bus/pci/devices/0000:03:00.0";
    let bridge = "sys/bus/pci/devices/0000:00:01.0";
    let tree = Machine::new()
        .file(&format!("{device}/vendor"), "0x1002\n")
        .file(&format!("{device}/class"), "0x030000\n")
        .file(&format!("{bridge}/vendor"), "0x1002\n")
        .file(&format!("{bridge}/class"), "0x060400\n");
    screen("no_driver", &tree);
}

#[test]
fn no_permission() {
    let tree = Machine::headless()
        .device_file("dev/kfd", 0o660)
        .device_file("dev/dri/renderD128", 0o660);
    screen("no_permission", &tree);
}

#[test]
fn wrong_group() {
    let tree = Machine::headless()
        .file(
            "proc/self/status",
            "Uid:\t54321\t54321\nGid:\t54321\t54321\nGroups:\t54322 44\n",
        )
        .file("etc/group", "users:x:54322:\nvideo:x:44:\n")
        .device_file("dev/kfd", 0o660);
    screen("wrong_group", &tree);
}

#[test]
fn apu_only() {
    screen("apu_only", &Machine::new().driver().card(0, APU, true));
}

#[test]
fn apu_and_card() {
    screen("apu_and_card", &Machine::headless().card(1, APU, true));
}

#[test]
fn two_cards() {
    screen("two_cards", &Machine::headless().card(1, SECOND, true));
}

#[test]
fn nvidia_card() {
    screen("nvidia_card", &Machine::new().nvidia(0, H200, 0x0302));
}

#[test]
fn nvidia_card_with_a_display() {
    let tree = Machine::new().nvidia(0, H200, 0x0300).nvidia_socket(H200, "connected");
    screen("nvidia_card_with_a_display", &tree);
}

#[test]
fn display_on_the_card() {
    screen("display_on_the_card", &Machine::new().driver().card(0, XT, true));
}

#[test]
fn headless() {
    screen(
        "headless",
        &Machine::headless().file("opt/rocm-6.4.1/.info/version", "6.4.1-83\n"),
    );
}

#[test]
fn old_rocm() {
    screen(
        "old_rocm",
        &Machine::headless().file("opt/rocm-5.7.1/.info/version", "5.7.1-98\n"),
    );
}

#[test]
fn container_without_kfd() {
    let tree = Machine::headless();
    fs::remove_file(tree.path().join("dev/kfd")).unwrap();
    fs::remove_dir_all(tree.path().join("dev/dri")).unwrap();
    screen("container_without_kfd", &tree);
}

#[test]
fn unreadable_sysfs() {
    let tree = Machine::headless()
        .file("sys/class/drm/card0/device/mem_info_vram_used", "a lot\n")
        .file("sys/class/drm/card0/device/mem_info_vram_total", "\n")
        .file("sys/class/kfd/kfd/topology/nodes/1/properties", "\n");
    let text = gather(tree.path(), false, COMMAND).to_string();
    let folder = format!("{}/", tree.path().display());
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!("unreadable_sysfs", text.replace(&folder, "ROOT/"));
    });
}

#[test]
fn quarantined() {
    let held = r#"{"boot":"boot-one","cause":"stuck","test":"kernels::softmax","reason":"process 7 cannot be killed","since":0}"#;
    let file = "state/rocmforge/gpu-0000:03:00.0.quarantine";
    screen("quarantined", &Machine::headless().file(file, held));
    let other_boot = held.replace("boot-one", "boot-zero");
    let text = gather(Machine::headless().file(file, &other_boot).path(), false, COMMAND).to_string();
    assert!(!text.contains("quarantine"), "{text}");
}

#[test]
fn without_wave_save_and_restore() {
    screen(
        "without_cwsr",
        &Machine::headless().file("sys/module/amdgpu/parameters/cwsr_enable", "0\n"),
    );
}

#[test]
fn somebody_else_computes() {
    let tree = Machine::headless()
        .process(70, "Xwayland", &["/dev/dri/card0"])
        .process(71, "python", &["/dev/kfd", "/dev/dri/renderD128"])
        .file("sys/class/kfd/kfd/proc/71/vram_4711", "1073741824\n");
    screen("somebody_else_computes", &tree);
}

#[test]
fn what_hip_says_stands_beside_what_sysfs_says() {
    let tree = Machine::headless();
    let mut report = gather(tree.path(), false, COMMAND);
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
fn a_crash_and_a_hang_of_the_library_are_distinguished_and_survived() {
    let patience = Duration::from_secs(60);
    let crashed = ask_with(
        &mut shell(r#"echo 'noise rocmforge-probe: {"Version":{"runtime":60300000}}'; kill -SEGV $$"#),
        patience,
    );
    assert_eq!(crashed.end, End::Crashed(11));
    assert_eq!(crashed.steps, [Step::Version { runtime: 60_300_000 }]);
    assert!(!crashed.candidates.is_empty());
    assert_eq!(ask_with(&mut shell("exit 3"), patience).end, End::Exited(3));

    let limit = Duration::from_millis(300);
    assert_eq!(ask_with(&mut shell("exec sleep 1000"), limit).end, End::TimedOut(limit));

    assert!(matches!(
        ask_with(&mut Command::new("/no/such/program"), patience).end,
        End::NotStarted(_)
    ));

    let tree = Machine::headless();
    let mut report = gather(tree.path(), false, COMMAND);
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

#[test]
fn advice_names_the_command_that_the_user_called() {
    let tree = Machine::headless();
    let text = gather(tree.path(), false, "cargo gpu-test").to_string();
    for part in [
        "`cargo gpu-test` runs every",
        "`cargo gpu-test --device hip:0000:03:00.0` runs",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(!text.contains("xtask"), "{text}");
}
