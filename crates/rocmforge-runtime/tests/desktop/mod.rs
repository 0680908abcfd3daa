//! The budget on a simulated card with a desktop: what it grants leaves the session alone, where the rule it replaces
//! ("70 % of what HIP calls free, each time") kills it.

use rocmforge_hip_sys::{HipApi, HipClock, hipSuccess};
use rocmforge_runtime::*;
use rocmforge_sim::{CardConfig, Client, DesktopConfig, DesktopStatus, Poison, SimConfig, SimHost};
use std::sync::Arc;
use std::time::Duration;

mod apu;
mod capacity;
mod pool;
mod rule;
mod walks;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A machine with one 20 GiB card that drives this desktop.
fn machine(desktop: DesktopConfig) -> Arc<SimHost> {
    machine_with(desktop, Poison::default())
}

fn machine_with(desktop: DesktopConfig, poison: Poison) -> Arc<SimHost> {
    let card = CardConfig {
        desktop: Some(desktop),
        ..CardConfig::default()
    };
    SimHost::new(SimConfig {
        cards: vec![card],
        poison,
        ..SimConfig::default()
    })
}

/// A desktop whose card always answers.
fn steady(clients: impl IntoIterator<Item = Client>) -> DesktopConfig {
    DesktopConfig {
        preemption_failure: 0.0,
        ..DesktopConfig::with(clients)
    }
}

fn flat(bytes: u64) -> Client {
    Client::steps("flat", vec![(Duration::ZERO, Bytes(bytes))])
}

fn provider(sim: &Arc<SimHost>) -> Provider {
    Provider::new(sim.api())
        .with_clock(sim.clock())
        .with_readings(Box::new(sim.readings(0)))
}

fn open(sim: &Arc<SimHost>) -> Arc<HipBackend> {
    HipBackend::open(provider(sim), BackendOptions::default()).expect("the simulated card opens")
}

fn status(sim: &SimHost) -> DesktopStatus {
    sim.desktop(0).expect("the card has a desktop")
}

/// The session has noticed nothing of us.
#[track_caller]
fn assert_undisturbed(status: &DesktopStatus) {
    assert_eq!(
        (
            status.frames_missed,
            status.evicted_by_us,
            status.queue_stops,
            status.floor_violations
        ),
        (0, Bytes(0), 0, 0),
        "{status:?}"
    );
}

/// Memory that nobody reads: what counts here is that it is held.
fn held(backend: &Arc<HipBackend>, bytes: u64) -> HipResult<HipBuffer<u8>> {
    // SAFETY: nothing reads it.
    unsafe { HipBuffer::uninit(backend.stream(), Elems(bytes as usize), "held") }
}

/// What HIP says is free, which is what the old rule takes its 70 % of.
fn hip_free(sim: &SimHost) -> Option<u64> {
    let (mut free, mut total) = (0usize, 0usize);
    // SAFETY: both are live out-pointers for the call.
    let status = unsafe { sim.hipMemGetInfo(&raw mut free, &raw mut total) };
    (status == hipSuccess).then_some(free as u64)
}

/// A program that gives back what the budget no longer covers, the newest first, whenever it looks.
fn shed(backend: &HipBackend, buffers: &mut Vec<HipBuffer<u8>>) {
    while {
        let budget = backend.card().budget();
        budget.own > budget.budget && buffers.pop().is_some()
    } {}
}

fn pause(sim: &SimHost, milliseconds: u64) {
    sim.pause(Duration::from_millis(milliseconds));
}
