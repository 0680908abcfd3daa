//! The figures, from a library of functions in this file.

use super::*;
use std::cell::RefCell;

/// What the library says in this thread.
#[derive(Default)]
struct Says {
    /// Statuses of the memory's, the processes' and the displays' calls.
    memory: c_int,
    processes: c_int,
    displays: [c_int; 2],
    on: [c_uint; 2],
    without_sockets: bool,
    listed: Vec<Process>,
}

thread_local! {
    static SAYS: RefCell<Says> = RefCell::default();
}

unsafe extern "C" fn init() -> c_int {
    SUCCESS
}

unsafe extern "C" fn device_at(_pci: *const c_char, _device: *mut Device) -> c_int {
    SUCCESS
}

unsafe extern "C" fn memory(_device: Device, memory: *mut Memory) -> c_int {
    let (total, free, used) = (80 << 30, 70 << 30, 10 << 30);
    // SAFETY: a live out-pointer, by the callers in this file.
    unsafe { memory.write(Memory { total, free, used }) };
    SAYS.with_borrow(|says| says.memory)
}

unsafe extern "C" fn processes(_device: Device, count: *mut c_uint, room: *mut Process) -> c_int {
    SAYS.with_borrow(|says| {
        // SAFETY: live for the call, by the callers in this file.
        let has = unsafe { count.replace(says.listed.len() as c_uint) } as usize;
        if has < says.listed.len() {
            return INSUFFICIENT_SIZE;
        }
        // SAFETY: `room` has `has` entries that may be written.
        unsafe { room.copy_from_nonoverlapping(says.listed.as_ptr(), says.listed.len()) };
        says.processes
    })
}

unsafe extern "C" fn active(_device: Device, on: *mut c_uint) -> c_int {
    // SAFETY: a live out-pointer, by the callers in this file.
    unsafe { on.write(SAYS.with_borrow(|says| says.on[0])) };
    SAYS.with_borrow(|says| says.displays[0])
}

unsafe extern "C" fn mode(_device: Device, on: *mut c_uint) -> c_int {
    // SAFETY: a live out-pointer, by the callers in this file.
    unsafe { on.write(SAYS.with_borrow(|says| says.on[1])) };
    SAYS.with_borrow(|says| says.displays[1])
}

const OURS: u32 = 77;

fn read(process: Option<u32>, says: Says) -> Reading {
    let nvml = Nvml {
        init,
        device_at,
        memory,
        processes,
        display_active: active,
        display_mode: mode,
    };
    let device = std::ptr::null_mut();
    let sockets = !says.without_sockets;
    SAYS.set(says);
    NvmlReadings {
        nvml,
        device,
        process,
        sockets,
    }
    .read()
}

/// So many strangers, and ours with these bytes.
fn listed(strangers: u32, ours: &[u64]) -> Vec<Process> {
    let process = |pid, used| Process {
        pid,
        used,
        ..Process::default()
    };
    let others = (0..strangers).map(|n| process(1000 + n, 1 << 30));
    others.chain(ours.iter().map(|&used| process(OURS, used))).collect()
}

fn own(process: Option<u32>, listed: Vec<Process>) -> Option<Bytes> {
    let says = Says {
        listed,
        ..Says::default()
    };
    read(process, says).own
}

#[test]
fn our_share_is_the_drivers_figure_for_our_number() {
    assert_eq!(own(Some(OURS), listed(3, &[518 << 20])), Some(Bytes::mib(518)));
    assert_eq!(own(Some(OURS), listed(3, &[])), Some(Bytes(0)), "nothing yet");
    assert_eq!(
        own(Some(OURS), listed(0, &[1 << 20, 2 << 20])),
        Some(Bytes::mib(3)),
        "parts"
    );
    assert_eq!(own(Some(OURS), listed(1, &[1 << 20, NOT_AVAILABLE])), None);
    assert_eq!(
        own(None, listed(3, &[518 << 20])),
        None,
        "our number is not the machine's"
    );
}

#[test]
fn a_list_longer_than_expected_is_asked_for_again_and_an_endless_one_is_not() {
    for strangers in [63, 64, 65, 255, 256, 4095] {
        assert_eq!(own(Some(OURS), listed(strangers, &[7])), Some(Bytes(7)), "{strangers}");
    }
    assert_eq!(own(Some(OURS), listed(4096, &[7])), None);
    let says = Says {
        processes: 999,
        listed: listed(1, &[7]),
        ..Says::default()
    };
    assert_eq!(read(Some(OURS), says).own, None);
}

#[test]
fn figures_that_cannot_be_read_are_none() {
    let reading = read(None, Says::default());
    assert_eq!(
        (reading.total, reading.used),
        (Some(Bytes::gib(80)), Some(Bytes::gib(10)))
    );
    let says = Says {
        memory: 999,
        ..Says::default()
    };
    let reading = read(None, says);
    assert_eq!((reading.total, reading.used), (None, None));
}

#[test]
fn a_card_that_does_not_say_has_a_display() {
    const OK: c_int = SUCCESS;
    for (statuses, on, expected) in [
        ([OK, OK], [0, 0], 0),
        ([OK, OK], [1, 0], 1),
        ([OK, OK], [0, 1], 1),
        ([OK, OK], [1, 1], 1),
        ([999, OK], [0, 0], 1),
        ([OK, 999], [0, 0], 1),
        // What a driver of 2025 answers for a card without a display, and for one with.
        ([OK, DEPRECATED], [0, 1], 0),
        ([OK, DEPRECATED], [1, 0], 1),
        ([DEPRECATED, OK], [1, 0], 0),
        ([DEPRECATED, OK], [0, 1], 1),
        ([DEPRECATED, DEPRECATED], [0, 0], 1),
        ([999, DEPRECATED], [0, 0], 1),
    ] {
        let says = Says {
            displays: statuses,
            on,
            ..Says::default()
        };
        assert_eq!(read(None, says).displays, expected, "{statuses:?} {on:?}");
    }
}

#[test]
fn a_card_without_sockets_has_no_display_whatever_is_said() {
    let says = Says {
        displays: [999, DEPRECATED],
        on: [1, 1],
        without_sockets: true,
        ..Says::default()
    };
    assert_eq!(read(None, says).displays, 0);

    let devices = tempfile::tempdir().unwrap();
    let pci = "0000:06:00.0";
    assert!(has_sockets(devices.path(), pci), "unknown");
    std::fs::create_dir(devices.path().join(pci)).unwrap();
    for (class, expected) in [
        ("0x030200\n", false),
        ("0x030000\n", true),
        ("0x0380", true),
        ("", true),
    ] {
        std::fs::write(devices.path().join(pci).join("class"), class).unwrap();
        assert_eq!(has_sockets(devices.path(), pci), expected, "{class:?}");
    }
}
