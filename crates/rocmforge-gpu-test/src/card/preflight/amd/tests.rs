//! Tests of the preflight, on machines that are fine and on others.

use super::*;
use crate::card::preflight::Level;
use crate::card::quarantine::Cause;
use rocmforge_test_support::machines::{APU, Machine, SECOND, XT};

/// The findings about the first card.
fn findings(tree: &Machine, consent: Consent) -> Vec<Finding> {
    with(tree, None, consent)
}

fn with(tree: &Machine, quarantine: Option<Quarantine>, consent: Consent) -> Vec<Finding> {
    let sysfs = Sysfs::at(tree.path());
    let machine = sysfs.machine();
    Facts::look(&sysfs, &machine, &machine.cards[0], quarantine).findings(consent)
}

/// The one finding that is graver than a note.
fn only(findings: &[Finding]) -> (Level, String) {
    let serious: Vec<_> = findings.iter().filter(|finding| finding.level > Level::Note).collect();
    assert_eq!(serious.len(), 1, "{findings:?}");
    (serious[0].level, serious[0].to_string())
}

#[track_caller]
fn refuses(tree: &Machine, part: &str) {
    let (level, text) = only(&findings(tree, Consent::default()));
    assert_eq!(level, Level::Refusal);
    assert!(text.contains(part), "{text}");
}

#[track_caller]
fn warns(tree: &Machine, consent: Consent, part: &str) {
    let (level, text) = only(&findings(tree, consent));
    assert_eq!(level, Level::Warning);
    assert!(text.contains(part), "{text}");
}

const NONE: Consent = Consent {
    display: false,
    reset: false,
};

#[test]
fn a_headless_card_that_may_be_used_has_its_versions_noted_and_nothing_else() {
    let tree = Machine::headless()
        .file("sys/class/drm/card0/device/fw_version/mes_fw_version", "0x00000081\n")
        .file("sys/class/drm/card0/device/fw_version/mec_fw_version", "\n")
        .card(1, SECOND, true);
    let found = findings(&tree, NONE);
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["kernel 6.14.0-test, mes firmware 0x00000081, cwsr_enable=1, gpu_recovery=-1"]
    );
}

#[test]
fn what_keeps_a_card_from_being_used_is_refused_with_what_to_do() {
    let bare = || Machine::new().card(0, XT, false);
    refuses(&bare().file("sys/module/amdgpu/x", ""), "/dev/kfd is missing");
    let foreign = bare().file(
        "sys/class/drm/card0/device/uevent",
        "DRIVER=vfio-pci\nPCI_SLOT_NAME=0000:03:00.0\n",
    );
    refuses(&foreign, "modprobe amdgpu");
    let denied = Machine::headless().device_file("dev/dri/renderD128", 0o600);
    refuses(&denied, "this user may not use /dev/dri/renderD128: join the group");
    let others = Machine::headless()
        .card(1, SECOND, false)
        .device_file("dev/dri/renderD129", 0o600);
    assert!(
        findings(&others, NONE)
            .iter()
            .all(|finding| finding.level == Level::Note),
        "another card's node"
    );
    let nodeless = Machine::headless();
    std::fs::remove_dir_all(nodeless.path().join("sys/class/kfd")).unwrap();
    refuses(&nodeless, "the compute driver does not offer 0000:03:00.0");
}

#[test]
fn a_gpu_that_shares_the_systems_memory_is_used_with_care() {
    let tree = Machine::new().driver().card(0, APU, false);
    let found = findings(&tree, NONE);
    let note = found
        .iter()
        .find(|finding| finding.what.contains("shares the system's memory"));
    assert!(note.is_some_and(|note| note.level == Level::Note), "{found:?}");
    assert!(found.iter().all(|finding| finding.level != Level::Refusal), "{found:?}");
}

#[test]
fn a_driver_built_into_the_kernel_or_bound_to_another_card_will_do() {
    let built_in = Machine::headless();
    std::fs::remove_dir_all(built_in.path().join("sys/module")).unwrap();
    let serious = |tree: &Machine| {
        let found = findings(tree, NONE).into_iter();
        found.filter(|finding| finding.level > Level::Note).count()
    };
    assert_eq!(serious(&built_in), 0);
    // The card says nothing of its driver, which is loaded.
    let silent = Machine::headless().file("sys/class/drm/card0/device/uevent", "PCI_SLOT_NAME=0000:03:00.0\n");
    assert_eq!(serious(&silent), 0, "{:?}", findings(&silent, NONE));
}

#[test]
fn a_version_is_a_short_text() {
    for (length, noted) in [(199, true), (200, false)] {
        let tree = Machine::headless().file("proc/sys/kernel/osrelease", &"6".repeat(length));
        let found = findings(&tree, NONE);
        assert_eq!(found[0].what.starts_with("kernel 666"), noted, "{length}");
    }
}

#[test]
fn a_connector_that_is_connected_or_enabled_drives_a_display() {
    for (status, enabled) in [("connected", "disabled"), ("disconnected", "enabled")] {
        let tree = Machine::headless()
            .file("sys/class/drm/card0-DP-1/status", status)
            .file("sys/class/drm/card0-DP-1/enabled", enabled);
        refuses(&tree, "drives a display (DP-1)");
    }
}

#[test]
fn a_display_needs_consent() {
    let tree = Machine::new().driver().card(0, XT, true);
    refuses(
        &tree,
        "drives a display (DP-1): a faulty kernel can take the desktop down; say --allow-display-gpu",
    );
    let consent = Consent { display: true, ..NONE };
    warns(&tree, consent, "tests hold 2 GiB at most");
    let sysfs = Sysfs::at(tree.path());
    let machine = sysfs.machine();
    assert!(Facts::look(&sysfs, &machine, &machine.cards[0], None).wants_care());
}

#[test]
fn dangerous_parameters_are_warned_of() {
    let parameter = |name: &str| Machine::headless().file(&format!("sys/module/amdgpu/parameters/{name}"), "0\n");
    warns(&parameter("cwsr_enable"), NONE, "tests get 60 s at most");
    warns(&parameter("gpu_recovery"), NONE, "a card that hangs stays so");
    let careful = |tree: &Machine| {
        let sysfs = Sysfs::at(tree.path());
        let machine = sysfs.machine();
        let facts = Facts::look(&sysfs, &machine, &machine.cards[0], None);
        (facts.is_without_cwsr(), facts.wants_care())
    };
    assert_eq!(careful(&parameter("cwsr_enable")), (true, true));
    assert_eq!(careful(&parameter("gpu_recovery")), (false, false));
}

#[test]
fn unreadable_memory_is_warned_of() {
    let tree = Machine::headless().file("sys/class/drm/card0/device/mem_info_vram_used", "a lot\n");
    warns(&tree, NONE, "a quarter of the card at most");
}

#[test]
fn other_users_of_the_card_are_named_and_a_computing_one_is_warned_of() {
    let tree = Machine::headless()
        .process(70, "Xwayland", &["/dev/dri/card0"])
        .process(71, "python", &["/dev/kfd", "/dev/dri/renderD128"])
        .file("sys/class/kfd/kfd/proc/71/vram_4711", "1073741824\n");
    warns(&tree, NONE, "process 71 (python) uses the card and holds 1.0 GiB");
    let notes = findings(&tree, NONE);
    assert!(
        notes
            .iter()
            .any(|finding| finding.to_string() == "process 70 (Xwayland) uses the card")
    );
}

#[test]
fn a_quarantine_is_refused_and_consent_lifts_only_a_reset() {
    let tree = Machine::headless();
    let held = |cause| Quarantine {
        boot: "boot-one".to_owned(),
        cause,
        test: "kernels::softmax".to_owned(),
        reason: "process 7 cannot be killed".to_owned(),
        since: 0,
    };
    let consent = Consent { reset: true, ..NONE };
    for (cause, consent, level) in [
        (Cause::Stuck, NONE, Level::Refusal),
        (Cause::Stuck, consent, Level::Refusal),
        (Cause::Reset, NONE, Level::Refusal),
        (Cause::Reset, consent, Level::Warning),
    ] {
        let (found, text) = only(&with(&tree, Some(held(cause)), consent));
        assert_eq!(found, level, "{text}");
        assert!(
            text.contains("process 7 cannot be killed (during kernels::softmax)"),
            "{text}"
        );
    }
}

#[test]
fn the_gravest_comes_first() {
    let tree = Machine::new()
        .driver()
        .card(0, XT, true)
        .file("sys/module/amdgpu/parameters/cwsr_enable", "0\n");
    let levels: Vec<Level> = findings(&tree, NONE).iter().map(|finding| finding.level).collect();
    assert_eq!(levels, [Level::Refusal, Level::Warning, Level::Note]);
}

#[test]
fn an_old_rocm_is_known_by_its_number() {
    assert!(old_rocm("5.7.1-98").is_some_and(|finding| finding.what == "ROCm 5.7.1-98 is older than 6"));
    for fine in ["6.0.0", "7.2.4-1", "", "next"] {
        assert_eq!(old_rocm(fine), None);
    }
}
