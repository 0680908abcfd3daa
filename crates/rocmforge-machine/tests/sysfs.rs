//! Discovery on fixture trees: machines as sysfs shows them, down to ones that lie.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use rocmforge_machine::Bytes;
use rocmforge_machine::sysfs::{AMD, Access, ReadError, Sysfs, gfx_name};
use rocmforge_test_support::tree::{APU, GIB, Tree, XT, apu_and_card};

#[test]
fn a_card_and_an_apu() {
    let tree = apu_and_card();
    let machine = tree.sysfs().machine();
    assert_eq!(machine.problems, []);
    let [xt, apu] = &machine.cards[..] else {
        panic!("{:?}", machine.cards)
    };
    assert_eq!(
        (xt.name.as_str(), xt.pci.as_deref(), xt.driver.as_deref()),
        ("card1", Some(XT), Some("amdgpu"))
    );
    assert_eq!((xt.vendor, xt.device), (Some(AMD), Some(0x744c)));
    assert_eq!(
        (xt.vram_total, xt.vram_used),
        (Some(Bytes::gib(20)), Some(Bytes::gib(3)))
    );
    assert_eq!((xt.displays(), apu.displays()), (1, 0));
    assert_eq!(xt.render_node.as_deref(), Some("renderD129"));
    assert_eq!(apu.render_node.as_deref(), Some("renderD130"));
    assert_eq!(xt.connectors.len(), 2);
    let node = machine.node_of(xt).expect("the card's node");
    assert_eq!(
        (node.gpu_id, node.target.as_deref(), node.render_minor),
        (4711, Some("gfx1100"), Some(128))
    );
    assert_eq!(node.memory, Bytes::gib(20));
    assert!(
        !machine.is_unified(xt) && machine.is_unified(apu),
        "gfx1036 is part of a processor"
    );
}

#[test]
fn a_display_counts_where_it_is_plugged_in_or_driven() {
    for (status, enabled, displays) in [
        ("connected", "enabled", 1),
        ("connected", "disabled", 1),
        ("disconnected", "enabled", 1),
        ("disconnected", "disabled", 0),
    ] {
        let tree = Tree::new();
        tree.card(0, XT, 20 * GIB, 0).connector("card0-DP-1", status, enabled);
        assert_eq!(
            tree.sysfs().machine().cards[0].displays(),
            displays,
            "{status}, {enabled}"
        );
    }
}

#[test]
fn a_node_with_processor_cores_shares_their_memory() {
    let tree = Tree::new();
    tree.card(0, XT, 20 * GIB, 0).node(1, 4711, 110_000, 3, 20 * GIB);
    let unified = || {
        let machine = tree.sysfs().machine();
        machine.is_unified(&machine.cards[0])
    };
    assert!(!unified());
    let properties = "cpu_cores_count 16\nlocation_id 768\ngfx_target_version 110000\n";
    tree.file("sys/class/kfd/kfd/topology/nodes/1/properties", properties);
    assert!(unified());
}

#[test]
fn amds_cards_are_distinguished_from_others_and_boards_have_names() {
    let tree = Tree::new();
    tree.card(0, XT, 20 * GIB, 0).card(1, APU, GIB, 0);
    let device = |number: u32, file: &str| format!("sys/class/drm/card{number}/device/{file}");
    tree.file(&device(0, "product_name"), "Radeon RX 7900 XT\n")
        .file(&device(1, "product_name"), "\n")
        .file(&device(1, "vendor"), "0x10de\n");
    let machine = tree.sysfs().machine();
    let names: Vec<_> = machine.cards.iter().map(|card| card.product.as_deref()).collect();
    assert_eq!(names, [Some("Radeon RX 7900 XT"), None]);
    let amd: Vec<_> = machine.amd_cards().map(|card| card.number).collect();
    assert_eq!(amd, [0]);
}

#[test]
fn targets_have_one_hexadecimal_digit_for_minor_and_step() {
    for (version, name) in [
        (110_000, Some("gfx1100")),
        (90_010, Some("gfx90a")),
        (91_515, Some("gfx9ff")),
        (91_600, None),
        (90_016, None),
        (991_515, Some("gfx99ff")),
        (1_000_000, None),
        (9_999, None),
    ] {
        assert_eq!(gfx_name(version).as_deref(), name, "{version}");
    }
}

#[test]
fn a_file_is_read_up_to_a_mebibyte() {
    let tree = Tree::new();
    tree.card(0, XT, 20 * GIB, 0);
    for (length, problems) in [(1 << 20, 0), ((1 << 20) + 1, 1)] {
        tree.file("sys/class/drm/card0/device/product_name", "x".repeat(length));
        let machine = tree.sysfs().machine();
        assert_eq!(machine.problems.len(), problems, "{length} bytes");
        assert_eq!(machine.cards[0].product.is_some(), problems == 0);
    }
}

#[test]
fn card_1_is_not_card_10() {
    let tree = Tree::new();
    tree.card(1, XT, GIB, 0)
        .card(10, APU, GIB, 0)
        .connector("card10-DP-1", "connected", "enabled");
    let cards = tree.sysfs().cards(&mut Vec::new());
    assert_eq!(
        cards
            .iter()
            .map(|card| (card.number, card.displays()))
            .collect::<Vec<_>>(),
        [(1, 0), (10, 1)]
    );
}

#[test]
fn a_process_number_of_another_name_space_is_not_believed() {
    let tree = apu_and_card();
    tree.file("sys/class/kfd/kfd/proc/77/vram_4711", format!("{GIB}\n"));
    assert_eq!(tree.sysfs().process_vram(77, 4711), Some(Bytes::gib(1)));
    assert_eq!(tree.sysfs().process_vram(78, 4711), None);
    let space = tree.path().join("proc/self/ns/pid");
    fs::remove_file(&space).unwrap();
    symlink("pid:[4026532999]", &space).unwrap();
    assert_eq!(tree.sysfs().process_vram(77, 4711), None);
}

#[test]
fn the_users_of_a_card_are_those_of_that_card() {
    let tree = apu_and_card();
    let sysfs = Sysfs::at(tree.path());
    let open = |process: u32, descriptor: u32, file: &str| {
        let folder = tree.path().join(format!("proc/{process}/fd"));
        fs::create_dir_all(&folder).unwrap();
        symlink(file, folder.join(descriptor.to_string())).unwrap();
    };
    tree.file("proc/70/comm", "Xwayland\n")
        .file("proc/71/comm", "browser\n");
    tree.file("proc/72/comm", "python\n");
    open(70, 5, "/dev/dri/card1");
    open(70, 6, "/dev/dri/renderD129");
    open(70, 7, "/dev/dri/renderD129");
    open(71, 5, "/dev/dri/renderD130");
    open(72, 5, "/dev/kfd");
    open(std::process::id(), 5, "/dev/dri/card1");
    let machine = sysfs.machine();
    let card = &machine.cards[0];
    let node = machine.node_of(card).unwrap();
    let vram = |process: u32, bytes: u64| {
        let file = format!("sys/class/kfd/kfd/proc/{process}/vram_{}", node.gpu_id);
        tree.file(&file, format!("{bytes}\n"));
    };
    vram(72, 3 << 30);
    vram(73, 0);
    let users = sysfs.users_of(card, Some(node));
    let found: Vec<_> = users
        .iter()
        .map(|user| (user.process, user.name.as_deref(), user.vram))
        .collect();
    assert_eq!(
        found,
        [(70, Some("Xwayland"), None), (72, Some("python"), Some(Bytes::gib(3)))]
    );
    assert_eq!(
        users[0].files,
        ["/dev/dri/card1", "/dev/dri/renderD129"].map(std::path::PathBuf::from)
    );
    assert!(users[1].files.is_empty());

    assert_eq!(sysfs.kfd_processes(), Some(vec![72, 73]));
    fs::remove_file(tree.path().join("proc/self/ns/pid")).unwrap();
    assert_eq!(sysfs.kfd_processes(), None, "numbers of another name space");
}

#[test]
fn two_cards_headless() {
    let tree = Tree::new();
    tree.card(0, XT, 16 * GIB, 0).card(1, "0000:43:00.0", 16 * GIB, 0);
    tree.node(1, 1, 110_000, 3, 16 * GIB)
        .node(2, 2, 110_001, 0x43, 16 * GIB);
    let machine = tree.sysfs().machine();
    let targets: Vec<_> = machine
        .cards
        .iter()
        .map(|card| machine.node_of(card).and_then(|node| node.target.clone()))
        .collect();
    assert_eq!(targets, [Some("gfx1100".to_owned()), Some("gfx1101".to_owned())]);
    assert_eq!(machine.cards.iter().map(|card| card.displays()).sum::<u32>(), 0);
}

#[test]
fn a_machine_without_a_driver_is_empty_and_no_error() {
    let machine = Tree::new().sysfs().machine();
    assert!(machine.cards.is_empty() && machine.nodes.is_empty() && machine.kfd.is_none());
    assert!(!machine.amdgpu_loaded);
    assert_eq!(machine.problems, []);
    // And nothing at all.
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(Sysfs::at(empty.path()).machine().problems, []);
}

#[test]
fn device_files_and_groups() {
    let tree = Tree::new();
    tree.file("dev/kfd", "")
        .file("dev/dri/renderD129", "")
        .file("dev/dri/renderD128", "")
        .file("dev/dri/card0", "");
    let mode = |path: &str, mode: u32| {
        fs::set_permissions(tree.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("dev/kfd", 0o660);
    mode("dev/dri/renderD128", 0o666);
    mode("dev/dri/renderD129", 0o640);
    let machine = tree.sysfs().machine();
    let kfd = machine.kfd.expect("it is there");
    assert_eq!(
        (kfd.access, kfd.mode, kfd.path.to_str()),
        (Access::Denied, 0o660, Some("/dev/kfd"))
    );
    let nodes: Vec<_> = machine
        .render_nodes
        .iter()
        .map(|node| (node.path.to_str().unwrap(), node.access))
        .collect();
    assert_eq!(
        nodes,
        [
            ("/dev/dri/renderD128", Access::Usable),
            ("/dev/dri/renderD129", Access::Denied)
        ]
    );
    assert_eq!(machine.user.uid, Some(54321));
    let groups: Vec<_> = machine
        .user
        .groups
        .iter()
        .filter_map(|group| group.name.as_deref())
        .collect();
    assert_eq!(groups, ["video", "render"]);
}

#[test]
fn garbage_is_reported_by_name_and_never_guessed() {
    let tree = apu_and_card();
    let device = "sys/class/drm/card1/device";
    tree.file(&format!("{device}/mem_info_vram_total"), "20 GB\n");
    tree.file(&format!("{device}/mem_info_vram_used"), "-1\n");
    tree.file(&format!("{device}/vendor"), [0xff, 0xfe, 0x00]);
    tree.file(&format!("{device}/device"), "0x744c744c744c\n");
    tree.file(&format!("{device}/product_name"), vec![b'x'; 2 << 20]);
    tree.file(
        "sys/class/kfd/kfd/topology/nodes/1/properties",
        "location_id 99999999999\n\0\n\n = \n",
    );
    tree.file("sys/class/kfd/kfd/topology/nodes/x/gpu_id", "1\n");
    tree.file("sys/class/kfd/kfd/topology/nodes/3/gpu_id", "");
    tree.file(
        "sys/class/drm/card99999999999/device/uevent",
        "PCI_SLOT_NAME=0000:05:00.0\n",
    );
    fs::create_dir_all(tree.path().join(device).join("mem_info_gtt_total.d")).unwrap();
    let machine = tree.sysfs().machine();
    let xt = &machine.cards[0];
    assert_eq!(
        (xt.vram_total, xt.vram_used, xt.vendor, xt.device),
        (None, None, None, None)
    );
    assert_eq!(xt.product, None);
    assert_eq!(machine.cards.len(), 2, "a number that is no number is no card");
    assert_eq!(machine.nodes.len(), 1);
    let said = machine
        .problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n");
    for part in [
        "\"20 GB\", not a decimal number",
        "\"-1\"",
        "vendor is not a text",
        "0x744c744c744c",
        "location_id",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
    assert!(
        machine
            .problems
            .iter()
            .any(|problem| matches!(problem, ReadError::NotText(path) if path.ends_with("product_name")))
    );
}

#[test]
fn a_hostile_address_is_no_address() {
    let long = "0".repeat(10_000);
    for slot in [
        "",
        "03:00.0",
        "0000:03:00",
        "0000:03:00.0/../..",
        "zzzz:03:00.0",
        "0000:é3:00.0",
        long.as_str(),
    ] {
        let tree = Tree::new();
        tree.card(0, slot, GIB, 0);
        let machine = tree.sysfs().machine();
        assert_eq!(machine.cards[0].pci, None, "{slot:?}");
        assert_eq!(machine.problems.len(), 2, "the card's and the render node's");
    }
}

#[test]
fn a_directory_or_a_pipe_in_the_place_of_a_file_does_not_hang() {
    let tree = apu_and_card();
    let used = tree.path().join("sys/class/drm/card1/device/mem_info_vram_used");
    fs::remove_file(&used).unwrap();
    fs::create_dir(&used).unwrap();
    let total = tree.path().join("sys/class/drm/card1/device/mem_info_vram_total");
    fs::remove_file(&total).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &total,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let machine = tree.sysfs().machine();
    assert_eq!((machine.cards[0].vram_total, machine.cards[0].vram_used), (None, None));
    assert_eq!(machine.problems.len(), 2);
}

#[test]
fn this_machine_can_be_looked_at() {
    // Whatever it has: no panic, and every card has a name.
    assert!(Sysfs::host().is_host() && !Sysfs::at("/tmp").is_host());
    let machine = Sysfs::host().machine();
    assert!(machine.cards.iter().all(|card| card.name.starts_with("card")));
    assert!(machine.user.uid.is_some());
}
