//! Tests of the preflight of NVIDIA cards, usable and not.

use super::*;
use crate::card::quarantine::Cause;
use rocmforge_test_support::machines::{GIB, H200, Machine};

const NONE: Consent = Consent {
    display: false,
    reset: false,
};
const COMPUTING: u32 = 0x0302;
const GRAPHICS: u32 = 0x0300;

fn card(class: u32) -> Machine {
    Machine::new().nvidia(0, H200, class)
}

fn answer(may_display: bool) -> Result<Probed, ProbeError> {
    Ok(Probed {
        pci: H200.to_owned(),
        name: "NVIDIA H200".to_owned(),
        memory: Some((140 * GIB, GIB)),
        may_display,
    })
}

fn texts(
    tree: &Machine,
    held: Option<Quarantine>,
    probed: Option<Result<Probed, ProbeError>>,
    consent: Consent,
) -> Vec<(Level, String)> {
    let sysfs = Sysfs::at(tree.path());
    let machine = sysfs.machine();
    let cards = nvidia::cards(&sysfs, &machine);
    let facts = NvidiaFacts::look(&sysfs, &machine, &cards[0], held);
    let facts = NvidiaFacts { probed, ..facts };
    let findings = facts.findings(consent);
    findings
        .iter()
        .map(|finding| (finding.level, finding.to_string()))
        .collect()
}

#[track_caller]
fn refuses(tree: &Machine, part: &str) {
    let found = texts(tree, None, None, NONE);
    assert_eq!(found[0].0, Level::Refusal, "{found:?}");
    assert!(found[0].1.contains(part), "{found:?}");
}

#[test]
fn a_card_that_may_be_used_is_named_with_its_memory_and_nothing_else() {
    let found = texts(&card(COMPUTING), None, Some(answer(true)), NONE);
    let (used, total) = (Bytes(GIB), Bytes(140 * GIB));
    let expected = [
        format!("NVIDIA H200 at 0000:06:00.0, {used} of {total} used"),
        "kernel 6.14.0-test, NVIDIA driver 580.95.05".to_owned(),
    ];
    assert_eq!(found, expected.map(|text| (Level::Note, text)));
}

#[test]
fn what_keeps_a_card_from_being_used_is_refused_with_what_to_do() {
    let link = format!("sys/bus/pci/devices/{H200}/driver");
    let foreign = card(COMPUTING);
    fs::remove_file(foreign.path().join(&link)).unwrap();
    refuses(
        &foreign.link(&link, "../../drivers/nouveau"),
        "the kernel driver nouveau: install NVIDIA's driver",
    );
    let bare = card(COMPUTING);
    fs::remove_file(bare.path().join(CONTROL)).unwrap();
    refuses(&bare, "/dev/nvidiactl is missing: load NVIDIA's driver");
    refuses(
        &card(COMPUTING).device_file("dev/nvidia0", 0o600),
        "this user may not use /dev/nvidia0 (mode 600)",
    );
    let old = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82.01  Wed\n";
    refuses(
        &card(COMPUTING).file("proc/driver/nvidia/version", old),
        "NVIDIA's driver is 470.82.01: install 525 or newer",
    );
}

#[test]
fn a_driver_that_does_not_answer_is_refused() {
    let found = texts(&card(COMPUTING), None, Some(Err(ProbeError::Crashed(11))), NONE);
    assert_eq!(found[0].0, Level::Refusal);
    assert!(
        found[0].1.contains("crashed with signal 11: see whether `nvidia-smi`"),
        "{found:?}"
    );
}

#[test]
fn a_display_needs_consent() {
    let plugged = || card(GRAPHICS).nvidia_socket(H200, "connected");
    refuses(
        &plugged(),
        "drives a display (HDMI-A-1): a faulty kernel can take the desktop down",
    );
    let consent = Consent { display: true, ..NONE };
    let found = texts(&plugged(), None, None, consent);
    assert_eq!(
        (found[0].0, found[0].1.contains("2 GiB at most")),
        (Level::Warning, true)
    );
    // Sockets that the kernel shows, and none of them is used: the driver need not be asked.
    let unplugged = card(GRAPHICS).nvidia_socket(H200, "disconnected");
    let notes = |found: Vec<(Level, String)>| found.iter().all(|(level, _)| *level == Level::Note);
    assert!(notes(texts(&unplugged, None, Some(answer(true)), NONE)));
    // No socket is shown of a card that could have one.
    assert!(notes(texts(&card(GRAPHICS), None, Some(answer(false)), NONE)));
    let hidden = texts(&card(GRAPHICS), None, Some(answer(true)), NONE);
    assert_eq!(hidden[0].0, Level::Refusal, "{hidden:?}");
}

#[test]
fn other_users_of_the_card_are_named_and_a_computing_one_is_warned_of() {
    let tree = card(COMPUTING)
        .process(70, "Xorg", &["/dev/nvidia0"])
        .process(71, "python", &["/dev/nvidia0", "/dev/nvidia-uvm"])
        .process(72, "elsewhere", &["/dev/nvidia7", "/dev/nvidia-uvm"]);
    let found = texts(&tree, None, None, NONE);
    assert_eq!(found[0].0, Level::Warning);
    assert!(
        found[0].1.starts_with("process 71 (python) uses the card: its memory"),
        "{found:?}"
    );
    assert!(found.contains(&(Level::Note, "process 70 (Xorg) uses the card".to_owned())));
    assert!(found.iter().all(|(_, text)| !text.contains("elsewhere")));
}

#[test]
fn a_quarantine_is_refused() {
    let held = Quarantine {
        boot: "boot-one".to_owned(),
        cause: Cause::Stuck,
        test: "kernels::softmax".to_owned(),
        reason: "process 7 cannot be killed".to_owned(),
        since: 0,
    };
    let found = texts(&card(COMPUTING), Some(held), None, NONE);
    assert_eq!(found[0].0, Level::Refusal);
    assert!(found[0].1.contains("process 7 cannot be killed"), "{found:?}");
}

#[test]
fn what_is_refused_whatever_the_user_says_and_what_wants_care() {
    let facts = |tree: &Machine, probed: Option<Result<Probed, ProbeError>>| {
        let sysfs = Sysfs::at(tree.path());
        let machine = sysfs.machine();
        let cards = nvidia::cards(&sysfs, &machine);
        let facts = NvidiaFacts::look(&sysfs, &machine, &cards[0], None);
        let facts = match probed {
            Some(probed) => facts.with_answer(probed),
            None => facts,
        };
        (facts.is_refused(), facts.wants_care())
    };
    assert_eq!(facts(&card(COMPUTING), None), (false, false));
    // A user may consent to a display; tests are careful there.
    let plugged = card(GRAPHICS).nvidia_socket(H200, "connected");
    assert_eq!(facts(&plugged, None), (false, true));
    assert_eq!(
        facts(&card(COMPUTING), Some(Err(ProbeError::Crashed(11)))),
        (true, false)
    );
    let oldest = |version: &str| card(COMPUTING).file("proc/driver/nvidia/version", &format!("NVRM {version}\n"));
    assert_eq!(facts(&oldest("525.1"), None), (false, false));
    assert_eq!(facts(&oldest("524.9"), None), (true, false));
}
