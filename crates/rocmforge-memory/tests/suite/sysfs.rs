//! Readings of a card on fixture trees, and the budgets that come of them.

use std::fs;
use std::os::unix::fs::symlink;

use rocmforge_machine::sysfs::Sysfs;
use rocmforge_memory::{Bytes, Card, DeviceKey, Limit, Policy, Readings, SysfsReadings, Warning};
use rocmforge_test_support::tree::{APU, GIB, Tree, XT, apu_and_card};

#[test]
fn readings_of_one_card_follow_the_files() {
    let tree = apu_and_card();
    tree.file(
        &format!("sys/class/kfd/kfd/proc/{}/vram_4711", std::process::id()),
        format!("{GIB}\n"),
    );
    let readings = SysfsReadings::new(&tree.sysfs(), "0000:03:00.0");
    assert!(readings.found());
    let reading = readings.read();
    assert_eq!(
        (reading.total, reading.used),
        (Some(Bytes::gib(20)), Some(Bytes::gib(3)))
    );
    assert_eq!(
        (reading.own, reading.hip_free, reading.displays),
        (Some(Bytes::gib(1)), None, 1)
    );
    tree.file(
        "sys/class/drm/card1/device/mem_info_vram_used",
        format!("{}\n", 5 * GIB),
    );
    tree.connector("card1-HDMI-A-1", "connected", "enabled");
    let reading = readings.read();
    assert_eq!((reading.used, reading.displays), (Some(Bytes::gib(5)), 2));

    let card = Card::new(DeviceKey::new(XT), Policy::desktop(), Box::new(readings));
    let budget = card.budget();
    assert_eq!((budget.others, budget.own), (Some(Bytes::gib(4)), Bytes::gib(1)));
    assert_eq!(budget.budget, Bytes::gib(16).percent(70));
}

#[test]
fn an_apu_reads_both_kinds_of_memory_and_gets_what_the_system_can_spare() {
    let tree = apu_and_card();
    let budget = || {
        let readings = SysfsReadings::new(&tree.sysfs(), APU);
        Card::new(DeviceKey::new(APU), Policy::headless(), Box::new(readings)).budget()
    };
    // Nobody knows what the system can spare.
    assert_eq!((budget().budget, budget().limit), (Bytes::ZERO, Limit::Unreadable));
    let system = |available: u64| {
        let kib = |gib: u64| gib * GIB / 1024;
        tree.file(
            "proc/meminfo",
            format!("MemTotal: {} kB\nMemAvailable: {} kB\n", kib(31), kib(available)),
        );
    };
    system(20);
    let reading = SysfsReadings::new(&tree.sysfs(), APU).read();
    assert_eq!((reading.total, reading.own), (Some(Bytes::gib(15)), None));
    let shared = reading.shared.expect("an APU");
    assert_eq!(
        (shared.carve_out, shared.carve_out_used),
        (Some(Bytes(GIB / 2)), Some(Bytes(GIB / 8)))
    );
    assert_eq!(
        (shared.gtt, shared.gtt_used),
        (Some(Bytes::gib(15)), Some(Bytes::gib(1)))
    );
    assert_eq!(
        (shared.system.total, shared.system.available),
        (Some(Bytes::gib(31)), Some(Bytes::gib(20)))
    );
    // 14 GiB may be mapped, then 6 GiB are to be had; 2 GiB stay with the system.
    assert_eq!((budget().budget, budget().headroom), (Bytes::gib(12), Bytes::gib(2)));
    system(6);
    assert_eq!((budget().budget, budget().limit), (Bytes::gib(4), Limit::System));
    // A card with memory of its own asks for none of this.
    assert_eq!(SysfsReadings::new(&tree.sysfs(), XT).read().shared, None);
    // Also where only the compute driver shows it.
    let tree = Tree::new();
    tree.node(2, 815, 100_306, 0x0e, GIB / 2);
    let readings = SysfsReadings::new(&tree.sysfs(), APU);
    assert!(!readings.found() && readings.read().unified_memory);
}

#[test]
fn a_card_that_is_not_there_reads_as_unknown() {
    let empty = tempfile::tempdir().unwrap();
    let readings = SysfsReadings::new(&Sysfs::at(empty.path()), XT);
    assert!(!readings.found());
    assert_eq!(readings.read(), Default::default());
}

#[test]
fn figures_that_are_garbage_are_unreadable_and_give_no_budget() {
    let tree = apu_and_card();
    let device = "sys/class/drm/card1/device";
    tree.file(&format!("{device}/mem_info_vram_total"), "20 GB\n");
    tree.file(&format!("{device}/mem_info_vram_used"), "-1\n");
    let card = Card::new(
        DeviceKey::new(XT),
        Policy::desktop(),
        Box::new(SysfsReadings::new(&tree.sysfs(), XT)),
    );
    assert!(card.budget().warnings.contains(&Warning::Unreadable));
    assert_eq!(card.budget().budget, Bytes::ZERO);
}

#[test]
fn what_the_kernel_moved_away_of_ours() {
    let tree = apu_and_card();
    let read = || SysfsReadings::new(&tree.sysfs(), XT).read();
    assert_eq!(
        (read().evicted, read().stopped),
        (None, None),
        "a kernel that does not tell"
    );
    let process = std::process::id();
    tree.file(
        &format!("sys/class/kfd/kfd/proc/{process}/stats_4711/evicted_ms"),
        "1500\n",
    );
    assert_eq!(read().stopped, Some(std::time::Duration::from_millis(1500)));
    let descriptor = |directory: &str, number: u32, target: &str, pci: &str, client: &str, evicted: &str| {
        fs::create_dir_all(tree.path().join(format!("proc/{directory}/fd"))).unwrap();
        let link = tree.path().join(format!("proc/{directory}/fd/{number}"));
        let _ = fs::remove_file(&link);
        symlink(target, link).unwrap();
        tree.file(
            &format!("proc/{directory}/fdinfo/{number}"),
            format!(
                "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t{pci}\namd-evicted-vram:\t{evicted}\n"
            ),
        );
    };
    // The same client twice, another one, another card's, one that is no GPU, and lines that say nothing.
    descriptor("self", 3, "/dev/dri/renderD129", XT, "7", "2048 KiB");
    descriptor("self", 4, "/dev/dri/renderD129", XT, "7", "2048 KiB");
    descriptor("self", 5, "/dev/dri/card1", "0000:03:00.0", "8", "1024 KiB");
    descriptor("self", 6, "/dev/dri/renderD130", APU, "9", "4096 KiB");
    descriptor("self", 7, "/tmp/file", XT, "10", "4096 KiB");
    descriptor("self", 8, "/dev/dri/renderD129", XT, "11", "many");
    descriptor("self", 9, "/dev/dri/renderD129", XT, "none", "4096 KiB");
    assert_eq!(read().evicted, Some(Bytes::mib(3)));
    descriptor("77", 3, "/dev/dri/renderD129", XT, "7", "8192 KiB");
    let other = SysfsReadings::new(&tree.sysfs(), XT).for_process(77).read();
    assert_eq!((other.evicted, other.stopped), (Some(Bytes::mib(8)), None));
    // It shares the system's memory: nothing is evicted from it.
    assert_eq!(SysfsReadings::new(&tree.sysfs(), APU).read().evicted, None);
    // In a process name space, KFD's number may be a stranger's.
    fs::remove_file(tree.path().join("proc/self/ns/pid")).unwrap();
    symlink("pid:[4026532000]", tree.path().join("proc/self/ns/pid")).unwrap();
    assert_eq!((read().stopped, read().evicted), (None, Some(Bytes::mib(3))));
}
