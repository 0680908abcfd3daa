//! Kernels and pinned or registered host memory.

use super::rig::{Arg, Machine, machines, machines_with, read, write};
use super::widths::{N, loads_and_stores};
use rocmforge_hip_sys::*;
use rocmforge_sim::{ReportKind, Schedule};
use std::ffi::c_void;
use std::ptr::null_mut;

fn all_widths(machine: &Machine, input: *mut c_void, output: *mut c_void) {
    loads_and_stores(machine, input, output, write, read);
}

#[test]
fn pinned_memory_is_reached_by_every_access() {
    for machine in machines() {
        all_widths(&machine, machine.pinned(4 * N), machine.pinned(4 * N));
    }
}

#[test]
fn registered_memory_is_reached() {
    for machine in machines() {
        // Outlives the machine's use of it, and is touched through pointers alone.
        let mut memory = vec![0u64; 2 * N];
        let start: *mut c_void = memory.as_mut_ptr().cast();
        // SAFETY: the memory is there until it is unregistered.
        assert_eq!(unsafe { machine.sim.hipHostRegister(start, 16 * N, 0) }, hipSuccess);
        let mut device = null_mut();
        // SAFETY: a valid pointer.
        let status = unsafe { machine.sim.hipHostGetDevicePointer(&raw mut device, start, 0) };
        assert_eq!((status, device), (hipSuccess, start), "one address for both");
        all_widths(&machine, start, start.wrapping_byte_add(8 * N));
        // SAFETY: it was registered.
        assert_eq!(unsafe { machine.sim.hipHostUnregister(start) }, hipSuccess);
        let n = Arg::U32(1);
        assert_eq!(
            machine.launch("copy_words", 1, 32, &[Arg::Ptr(start), Arg::Ptr(start), n]),
            hipSuccess
        );
        assert_eq!(machine.wait(), hipErrorIllegalAddress);
        assert!(
            machine
                .sim
                .take_reports()
                .iter()
                .all(|report| report.kind == ReportKind::UseAfterFree)
        );
        drop(memory);
    }
}

/// Every flag that chooses a kind of pinned memory gives memory that kernels reach, also from `hipHostAlloc`.
#[test]
fn flags_make_no_difference() {
    let flags = [
        hipHostMallocPortable,
        hipHostMallocMapped,
        hipHostMallocWriteCombined,
        hipHostMallocNumaUser,
        hipHostMallocCoherent,
        hipHostMallocNonCoherent,
    ];
    for machine in machines() {
        for flags in flags {
            for alloc in [false, true] {
                let mut ptr = null_mut();
                // SAFETY: a valid pointer.
                let status = unsafe {
                    if alloc && flags & hipHostMallocCoherent == 0 && flags & hipHostMallocNonCoherent == 0 {
                        machine.sim.hipHostAlloc(&raw mut ptr, 256, flags)
                    } else {
                        machine.sim.hipHostMalloc(&raw mut ptr, 256, flags)
                    }
                };
                assert_eq!(status, hipSuccess, "{flags:#x}");
                write(ptr, &[41u32; 64]);
                machine.run("copy_words", 1, 64, &[Arg::Ptr(ptr), Arg::Ptr(ptr), Arg::U32(64)]);
                assert_eq!(read::<u32>(ptr, 64), [42; 64], "{flags:#x}");
            }
        }
    }
}

#[test]
fn one_word_past_the_end_is_out_of_bounds() {
    for machine in machines() {
        let (input, output) = (machine.pinned(64), machine.zeros(128));
        write(input, &[1u32; 16]);
        let args = [Arg::Ptr(input), Arg::Ptr(output), Arg::U32(17)];
        assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
        assert_eq!(machine.wait(), hipErrorIllegalAddress);
        let report = machine.only_report(ReportKind::OutOfBounds);
        assert_eq!(report.address, input.addr() as u64 + 64, "{report}");
        let of = report.allocation.as_ref().expect("whose end it is");
        assert_eq!((of.address, of.size), (input.addr() as u64, 64), "{report}");
        assert!(report.to_string().contains("0 B past the end"), "{report}");
        assert!(report.frames[0].file.ends_with("device.hip"), "{report}");
    }
}

#[test]
fn freed_pinned_memory_is_used_after_its_end() {
    for machine in machines_with(|config| config.strict = true) {
        let (input, output) = (machine.pinned(64), machine.zeros(128));
        write(input, &[1u32; 16]);
        let args = [Arg::Ptr(input), Arg::Ptr(output), Arg::U32(16)];
        assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
        // SAFETY: it came from hipHostMalloc; that the launch is still queued is the mistake.
        assert_eq!(unsafe { machine.sim.hipHostFree(input) }, hipSuccess);
        assert_eq!(machine.wait(), hipErrorIllegalAddress);
        let report = machine.only_report(ReportKind::UseAfterFree);
        assert_eq!(report.allocation.as_ref().map(|of| of.size), Some(64), "{report}");
    }
}

/// What the host has written between two launches is seen, copies of the same memory work, and a kernel's write under a queued copy is
/// no change by the host.
#[test]
fn host_kernels_and_copies_take_turns() {
    for machine in machines() {
        let (host, device) = (machine.pinned(64), machine.zeros(64));
        for round in 1..4u32 {
            write(host, &[round; 16]);
            let args = [Arg::Ptr(host), Arg::Ptr(host), Arg::U32(16)];
            assert_eq!(machine.launch("copy_words", 1, 32, &args), hipSuccess);
            // SAFETY: both have this size.
            let status = unsafe {
                machine
                    .sim
                    .hipMemcpyAsync(device, host, 64, hipMemcpyHostToDevice, null_mut())
            };
            assert_eq!(status, hipSuccess);
            assert_eq!(machine.wait(), hipSuccess);
            assert_eq!(machine.download::<u32>(device, 16), [round + 1; 16]);
        }
        machine.clean();
    }
}

/// With an eager card the host sees a kernel's flag without asking HIP for anything.
#[test]
fn the_host_may_poll() {
    for machine in machines_with(|config| config.schedule = Schedule::Eager) {
        let words = machine.pinned(8);
        write(words, &[0u32, 0]);
        let flag = words.wrapping_byte_add(4);
        let args = [Arg::Ptr(words), Arg::Ptr(flag), Arg::U32(99)];
        assert_eq!(machine.launch("publish", 1, 32, &args), hipSuccess);
        while read::<u32>(flag, 1) == [0] {
            std::hint::spin_loop();
        }
        assert_eq!(read::<u32>(words, 1), [99]);
        machine.run("await_flag", 1, 32, &[Arg::Ptr(flag), Arg::Ptr(machine.zeros(128))]);
    }
}

/// Several interpreter threads give what one gives.
#[test]
fn threads_leave_host_memory_to_one() {
    let mut all = Vec::new();
    for threads in [1, 4] {
        for machine in machines_with(|config| {
            config.threads = threads;
            config.tools.racecheck = false;
        }) {
            let (input, output) = (machine.pinned(4 * 2048), machine.pinned(4 * 2048));
            write(input, &(0..2048u32).collect::<Vec<_>>());
            machine.run(
                "copy_words",
                8,
                256,
                &[Arg::Ptr(input), Arg::Ptr(output), Arg::U32(2048)],
            );
            assert_eq!(read::<u32>(output, 2048), (1..2049u32).collect::<Vec<_>>());
            all.push(machine.sim.trace_hash());
        }
    }
    assert_eq!(all[..2], all[2..]);
}
