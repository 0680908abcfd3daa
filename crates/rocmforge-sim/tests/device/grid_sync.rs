//! Cooperative launches and barriers of the whole grid.

use super::rig::{Arg, Machine, machines, machines_with};
use rocmforge_hip_sys::*;
use rocmforge_sim::{ReportKind, SimConfig};
use std::ptr::null_mut;

const GROUPS: u32 = 40;
const ROUNDS: u32 = 4;

/// What `grid_rounds` leaves, counted one round after the other.
fn expected() -> Vec<u32> {
    let mut values = vec![0u32; GROUPS as usize];
    for _ in 0..ROUNDS {
        let sum = values.iter().fold(0u32, |sum, value| sum.wrapping_add(*value));
        values = (0..GROUPS).map(|group| group.wrapping_add(sum)).collect();
    }
    values
}

fn go(machine: &Machine, groups: u32) -> (hipError_t, *mut std::ffi::c_void) {
    let values = machine.zeros(8 * GROUPS as usize);
    let (mut ptr, mut n, mut rounds) = (values, GROUPS, ROUNDS);
    let mut params = [(&raw mut ptr).cast(), (&raw mut n).cast(), (&raw mut rounds).cast()];
    let function = machine.function("grid_rounds");
    let (params, stream) = (params.as_mut_ptr(), null_mut());
    // SAFETY: one valid pointer for each argument.
    let status =
        unsafe { (machine.sim).hipModuleLaunchCooperativeKernel(function, groups, 1, 1, 64, 1, 1, 0, stream, params) };
    (status, values)
}

#[test]
fn every_workgroup_waits_for_all_whatever_the_order() {
    for seed in 0..4 {
        for machine in machines_with(|config: &mut SimConfig| config.seed = seed) {
            // A second launch finds the counters as new.
            for _ in 0..2 {
                let (status, values) = go(&machine, GROUPS);
                assert_eq!(status, hipSuccess);
                assert_eq!(machine.wait(), hipSuccess, "{:#?}", machine.sim.reports());
                assert_eq!(machine.download::<u32>(values, GROUPS as usize), expected());
            }
            machine.clean();
        }
    }
}

#[test]
fn more_workgroups_than_fit_are_refused() {
    for machine in machines() {
        let (status, _) = go(&machine, 1 << 20);
        assert_eq!(status, hipErrorCooperativeLaunchTooLarge);
        machine.clean();
        let mut can = 0;
        // SAFETY: a valid pointer.
        let status =
            unsafe { (machine.sim).hipDeviceGetAttribute(&raw mut can, hipDeviceAttributeCooperativeLaunch, 0) };
        assert_eq!((status, can), (hipSuccess, 1));
    }
}

/// A grid barrier in a launch that is not cooperative has nothing to meet at.
#[test]
fn a_plain_launch_has_no_grid_barrier() {
    for machine in machines() {
        let args = [
            Arg::Ptr(machine.zeros(8 * GROUPS as usize)),
            Arg::U32(GROUPS),
            Arg::U32(1),
        ];
        assert_eq!(machine.launch("grid_rounds", GROUPS, 64, &args), hipSuccess);
        assert_eq!(machine.wait(), hipErrorIllegalAddress);
        let reports = machine.sim.take_reports();
        assert_eq!(reports[0].kind, ReportKind::OutOfBounds, "{}", reports[0]);
        assert!(reports[0].message.contains("null pointer"), "{}", reports[0]);
    }
}
