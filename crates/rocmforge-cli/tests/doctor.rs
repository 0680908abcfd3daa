//! The command `doctor`, on copies of machines: each trouble of a card is named with the next command.

use std::path::Path;
use std::process::{Command, Output};

use rocmforge_test_support::machines::{APU, Machine, SECOND, XT};

fn doctor(root: &Path, options: &[&str]) -> Output {
    doctor_with(root, options, &[])
}

/// With these variables and no others of those that name a library.
fn doctor_with(root: &Path, options: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    command.args(["doctor", "--root"]).arg(root).args(options);
    for name in ["ROCMFORGE_HIP_LIBRARY", "ROCM_PATH", "HIP_PATH"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    command.output().expect("it starts")
}

#[track_caller]
fn report(machine: &Machine) -> String {
    let output = doctor(machine.path(), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A machine of a distribution with an installed HIP.
fn with_hip(machine: Machine, version: &str) -> Machine {
    machine.file(&format!("usr/lib/x86_64-linux-gnu/libamdhip64.so.{version}"), "")
}

/// A card of the RX 7000 series that no driver has taken.
fn bare(device: &str) -> Machine {
    let at = "sys/bus/pci/devices/0000:03:00.0";
    Machine::new()
        .file(&format!("{at}/vendor"), "0x1002\n")
        .file(&format!("{at}/device"), device)
        .file(&format!("{at}/class"), "0x030000\n")
}

#[track_caller]
fn says(machine: &Machine, parts: &[&str]) {
    let text = report(machine);
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

#[test]
fn a_machine_without_a_card_says_what_works_without_one() {
    says(&Machine::new(), &["no AMD card", "--device cpu", "6.14.0-test"]);
}

#[test]
fn a_card_without_driver_is_named_with_the_reason() {
    says(
        &bare("0x744c\n"),
        &["0000:03:00.0, RDNA 3", "amdgpu is not loaded", "sudo modprobe amdgpu"],
    );
    let old = bare("0x7550\n").file("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
    says(
        &old,
        &["RDNA 4", "the kernel is 6.8.0-45-generic", "needs 6.12 or newer"],
    );
    let loaded = || bare("0x744c\n").file("sys/module/amdgpu/parameters/cwsr_enable", "1\n");
    for (id, command) in [
        ("ID=debian\n", "apt install firmware-amd-graphics"),
        ("NAME=\"X\"\nID=ubuntu\nID_LIKE=debian\n", "apt install linux-firmware"),
        (
            "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n",
            "apt install linux-firmware",
        ),
        ("ID=fedora\n", "dnf install amd-gpu-firmware"),
        ("ID=manjaro\nID_LIKE=arch\n", "pacman -S linux-firmware"),
        ("ID=void\n", "linux-firmware"),
    ] {
        says(&loaded().file("etc/os-release", id), &["has no firmware", command]);
    }
    let with_firmware = loaded().file("lib/firmware/amdgpu/psp_13_0_0_sos.bin", "");
    says(&with_firmware, &["did not take it", "dmesg"]);
}

#[test]
fn a_card_for_others_is_named_with_the_group() {
    let machine = Machine::headless()
        .device_file("dev/kfd", 0o660)
        .device_file("dev/dri/renderD128", 0o660);
    let machine = with_hip(machine, "6.4.60401");
    says(
        &machine,
        &[
            "may not use /dev/kfd, which belongs to the group render",
            "sudo usermod -aG render $USER",
            "renderD128",
        ],
    );
}

#[test]
fn a_container_without_the_device_files_gets_the_options_that_pass_them() {
    let machine = Machine::headless();
    std::fs::remove_file(machine.path().join("dev/kfd")).expect("there");
    says(
        &machine,
        &["/dev/kfd is missing", "--device /dev/kfd --device /dev/dri"],
    );
}

#[test]
fn a_hip_that_does_not_know_the_card_is_named_with_its_version() {
    says(
        &Machine::headless(),
        &["there is no HIP library", "next", "hip-runtime-amd"],
    );
    let fedora = Machine::headless().file("etc/os-release", "ID=fedora\n");
    says(&fedora, &["sudo dnf install rocm-hip"]);
    let old = with_hip(Machine::headless(), "5.2.21153");
    says(&old, &["HIP 5.2", "does not know gfx1100", "needs 5.7 or newer"]);
    let rdna4 = with_hip(Machine::new().driver().card(0, SECOND, true), "6.1.40091");
    says(&rdna4, &["does not know gfx1201", "needs 6.3 or newer"]);
    // The newest counts.
    let both = old.file("opt/rocm-6.4.1/lib/libamdhip64.so.6.4.60401", "");
    says(&both, &["no problem was found", "rocmforge doctor --self-test"]);
}

/// The graphics of a processor: known by their PCI numbers, and named where the program has no kernels for them.
#[test]
fn the_graphics_of_a_processor_are_known() {
    let loaded = |device: &str| bare(device).file("proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
    for device in ["0x150e\n", "0x1586\n", "0x1114\n"] {
        says(
            &loaded(device),
            &["RDNA 3.5", "the kernel is 6.8.0-45-generic", "needs 6.10 or newer"],
        );
    }
    says(&loaded("0x15bf\n"), &["RDNA 3 (", "amdgpu is not loaded"]);
    let with = |version: u32| {
        let apu = (APU.0, APU.1, version);
        Machine::new().driver().card(0, apu, true)
    };
    let halo = with_hip(with(110_501), "6.4.60401");
    says(&halo, &["gfx1151", "no problem was found"]);
    let old = with_hip(with(110_500), "5.7.31921");
    says(&old, &["does not know gfx1150", "needs 6.0 or newer"]);
    for (version, target) in [(110_003, "gfx1103"), (100_306, "gfx1036")] {
        let machine = with_hip(with(version), "6.4.60401");
        says(
            &machine,
            &[
                &format!("no kernels for {target}"),
                "gfx1151",
                "rocmforge run --device cpu",
            ],
        );
    }
}

/// The runtime's own variables decide which library is used.
#[test]
fn a_library_that_the_environment_names_is_the_one_that_counts() {
    let machine = with_hip(Machine::headless(), "6.4.60401")
        .file("srv/old/lib/libamdhip64.so.5.2.21153", "")
        .file("srv/new/libamdhip64.so.6.3.60301", "")
        .link("srv/new/mine.so", "libamdhip64.so.6.3.60301");
    for (variable, value, parts) in [
        ("ROCM_PATH", "/srv/old", ["HIP 5.2", "let ROCM_PATH name a newer one"]),
        ("HIP_PATH", "/srv/old", ["(HIP_PATH)", "needs 5.7 or newer"]),
        (
            "ROCM_PATH",
            "/srv/nowhere",
            ["libamdhip64.so.6.4.60401", "no problem was found"],
        ),
        (
            "ROCMFORGE_HIP_LIBRARY",
            "/srv/new/mine.so",
            ["mine.so (ROCMFORGE_HIP_LIBRARY)", "no problem was found"],
        ),
        (
            "ROCMFORGE_HIP_LIBRARY",
            "/srv/old/lib/libamdhip64.so.5.2.21153",
            ["does not know gfx1100", "let ROCMFORGE_HIP_LIBRARY name a newer one"],
        ),
        (
            "ROCMFORGE_HIP_LIBRARY",
            "/srv/absent.so",
            [
                "ROCMFORGE_HIP_LIBRARY names /srv/absent.so",
                "unset ROCMFORGE_HIP_LIBRARY",
            ],
        ),
        (
            "ROCMFORGE_HIP_LIBRARY",
            "",
            ["libamdhip64.so.6.4.60401", "no problem was found"],
        ),
        (
            "ROCMFORGE_HIP_LIBRARY",
            "libamdhip64.so.6.4.60401",
            ["(ROCMFORGE_HIP_LIBRARY)", "no problem was found"],
        ),
    ] {
        let output = doctor_with(machine.path(), &[], &[(variable, value)]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        for part in parts {
            assert!(text.contains(part), "{variable}={value}: {part:?} is missing:\n{text}");
        }
    }
}

#[test]
fn json_has_each_card_with_its_troubles() {
    let machine = with_hip(Machine::headless().card(1, SECOND, true), "6.1.40091");
    let output = doctor(machine.path(), &["--json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    let cards = object["cards"].as_array().expect("an array");
    let usable: Vec<_> = cards.iter().map(|card| card["usable"].as_bool()).collect();
    assert_eq!(usable, [Some(true), Some(false)], "{object}");
    assert!(
        cards[0]["name"].as_str().is_some_and(|name| name.contains(XT.0)),
        "{object}"
    );
    assert!(cards[1]["troubles"][0]["next"].is_string(), "{object}");
}

#[test]
fn hostile_files_are_no_reason_to_fail() {
    let machine = bare("a lot\n")
        .file("etc/os-release", "ID=\u{1b}[2J\n")
        .file("proc/sys/kernel/osrelease", "\n");
    says(&machine, &["AMD card", "modprobe"]);
    let output = doctor(Path::new("/no/such/folder"), &[]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no folder"));
}
