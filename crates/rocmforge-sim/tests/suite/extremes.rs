//! Figures nobody means: a typed error or an answer, never a panic or a loop without end.

use rocmforge_hip_sys::*;
use rocmforge_memory::{Bytes, Readings};
use rocmforge_sim::{CardConfig, Client, DesktopConfig, SimConfig, SimError, SimHost};
use std::ptr::null_mut;
use std::time::Duration;

fn one(card: CardConfig) -> SimConfig {
    SimConfig {
        cards: vec![card],
        ..SimConfig::default()
    }
}

#[test]
fn a_card_larger_than_its_share_of_addresses_is_refused() {
    for vram in [Bytes(u64::MAX), Bytes((1 << 40) + 1)] {
        let refused = SimHost::try_new(one(CardConfig::with_vram(vram)));
        assert!(matches!(refused, Err(SimError::TooMuchMemory { asked }) if asked == vram));
    }
}

#[test]
fn others_may_hold_more_than_there_is() {
    let sim = SimHost::new(one(CardConfig {
        overhead: Bytes(u64::MAX),
        ..CardConfig::default()
    }));
    sim.set_desktop_used(0, u64::MAX);
    sim.set_other_rocm_used(0, u64::MAX);
    let reading = sim.readings(0).read();
    assert_eq!((reading.used, reading.hip_free), (reading.total, Some(Bytes(0))));
    let mut ptr = null_mut();
    // SAFETY: the pointer given to hipMalloc is valid.
    assert_eq!(unsafe { sim.hipMalloc(&raw mut ptr, 1) }, hipErrorOutOfMemory);
}

#[test]
fn a_desktop_whose_frames_take_no_time_gets_on() {
    let desktop = DesktopConfig {
        frame: Duration::ZERO,
        frame_work: Duration::ZERO,
        ..DesktopConfig::with([Client::walk(Bytes(0), Bytes(u64::MAX >> 1))])
    };
    let sim = SimHost::new(one(CardConfig {
        desktop: Some(desktop),
        ..CardConfig::default()
    }));
    sim.clock().pause(Duration::from_secs(1));
    let frames = sim.desktop(0).map(|status| status.frames);
    assert!(frames.is_some_and(|frames| (1..=1000).contains(&frames)), "{frames:?}");
}

#[test]
fn memory_that_the_process_does_not_have_is_not_registered() {
    let sim = SimHost::new(SimConfig::default());
    let last = std::ptr::without_provenance_mut(usize::MAX - 4095);
    // SAFETY: the simulator touches no memory here; it asks the system whether it is there.
    let register = |size| unsafe { sim.hipHostRegister(last, size, 0) };
    for size in [1, 4096, 8192] {
        assert_eq!(register(size), hipErrorInvalidValue, "{size}");
    }
    // SAFETY: no pointer is followed.
    assert_eq!(unsafe { sim.hipHostUnregister(last) }, hipErrorHostMemoryNotRegistered);
}
