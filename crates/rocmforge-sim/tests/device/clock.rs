//! Clocks that kernels read.

use super::rig::{Arg, Machine, machines};
use rocmforge_hip_sys::*;

const WALL_CLOCK_RATE: hipDeviceAttribute_t = 10_017;

fn attribute(machine: &Machine, attribute: hipDeviceAttribute_t) -> u64 {
    let mut value = 0;
    // SAFETY: a valid pointer.
    assert_eq!(
        unsafe { machine.sim.hipDeviceGetAttribute(&raw mut value, attribute, 0) },
        hipSuccess
    );
    value as u64
}

/// A second of either clock passes in a few thousand rounds, and for the host too.
#[test]
fn waiting_for_a_time_ends() {
    for machine in machines() {
        for (kernel, rate) in [
            ("wait_cycles", hipDeviceAttributeClockRate),
            ("wait_wall", WALL_CLOCK_RATE),
        ] {
            let ticks = 1000 * attribute(&machine, rate);
            let out = machine.zeros(64);
            let (before, clock) = (machine.sim.counters().instructions, machine.sim.clock());
            let started = clock.now();
            machine.run(kernel, 2, 64, &[Arg::Ptr(out), Arg::U64(ticks)]);
            let passed = match (kernel, machine.download::<u64>(out, 4)) {
                ("wait_cycles", found) => [found[0], found[1]],
                (_, found) => [found[1] - found[0], found[3] - found[2]],
            };
            for passed in passed {
                assert!(
                    passed >= ticks && passed < ticks + ticks / 16,
                    "{kernel}: {passed} of {ticks}"
                );
            }
            assert!(machine.sim.counters().instructions - before < 1_000_000, "{kernel}");
            let took = (clock.now() - started).as_secs_f64();
            assert!((1.0..1.1).contains(&took), "{kernel}: {took} s");
        }
    }
}

/// More instructions take more time, in launches that follow each other too.
#[test]
fn time_passes_with_instructions() {
    for machine in machines() {
        let sink = machine.zeros(256);
        let mut last = 0;
        let mut took = |rounds: u32| {
            let out = machine.zeros(16);
            machine.run("measure", 1, 32, &[Arg::Ptr(out), Arg::Ptr(sink), Arg::U32(rounds)]);
            let found = machine.download::<u64>(out, 2);
            assert!(found[0] > last, "{found:?} after {last}");
            last = found[1];
            found[1] - found[0]
        };
        let (short, long) = (took(1000), took(100_000));
        assert!(long > 50 * short && short > 0, "{short} {long}");
    }
}
