//! Probabilistic concurrency testing: bugs of a known depth are found as often as promised, and every run repeats.

use rocmforge_hip_sys::*;
use rocmforge_memory::Bytes;
use rocmforge_sim::{CardConfig, Schedule, SimConfig, SimHost};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

/// Calls a HIP function that must succeed.
macro_rules! ok {
    ($sim:ident . $function:ident ( $($arg:expr),* $(,)? )) => {{
        // SAFETY: the tests pass valid pointers and live handles.
        let status = unsafe { $sim.$function($($arg),*) };
        assert_eq!(status, hipSuccess, stringify!($function));
    }};
}

fn machine(schedule: Schedule) -> Arc<SimHost> {
    SimHost::new(SimConfig {
        schedule,
        cards: vec![CardConfig::with_vram(Bytes(64 << 20))],
        ..SimConfig::default()
    })
}

fn stream(sim: &SimHost) -> hipStream_t {
    let mut stream = null_mut();
    ok!(sim.hipStreamCreateWithFlags(&raw mut stream, hipStreamNonBlocking));
    stream
}

/// The order in which marked operations ran.
#[derive(Default)]
struct Log(Mutex<String>);

/// A mark of a log: what a host function is given.
struct Mark<'a>(&'a Log, char);

unsafe extern "C" fn write_mark(user: *mut c_void) {
    // SAFETY: `marks` passes a mark that outlives the program's last wait.
    let mark = unsafe { &*user.cast::<Mark<'_>>() };
    mark.0.0.lock().expect("no test panics with the lock held").push(mark.1);
}

/// Runs a program of two streams, each of which writes its letters in its own order, and gives the order of all, with
/// the number of calls and operations.
fn interleaving(schedule: Schedule, streams: [&str; 2]) -> (String, u64) {
    let sim = machine(schedule);
    let log = Log::default();
    let marks: Vec<Vec<Mark>> = streams
        .iter()
        .map(|letters| letters.chars().map(|letter| Mark(&log, letter)).collect())
        .collect();
    for marks in &marks {
        let stream = stream(&sim);
        for mark in marks {
            ok!(sim.hipLaunchHostFunc(stream, Some(write_mark), std::ptr::from_ref(mark).cast_mut().cast()));
        }
    }
    ok!(sim.hipDeviceSynchronize());
    let counters = sim.counters();
    let order = log.0.lock().expect("no test panics with the lock held").clone();
    (order, counters.calls + counters.operations)
}

/// Finds `wanted` within as many seeds as the bound of [`Schedule::Pct`] says on average at most.
#[track_caller]
fn found_within_the_bound(streams: [&str; 2], depth: u32, wanted: impl Fn(&str) -> bool) {
    let others = [Schedule::Lazy, Schedule::Eager, Schedule::Reverse];
    for schedule in others {
        let (order, _) = interleaving(schedule, streams);
        assert!(!wanted(&order), "{schedule:?} finds it too: {order}");
    }
    let (_, steps) = interleaving(Schedule::Lazy, streams);
    // Two streams and the host.
    let bound = 15 * 3 * (2 * steps).pow(depth - 1);
    let found = (0..bound).find(|seed| wanted(&interleaving(Schedule::Pct { seed: *seed, depth }, streams).0));
    assert!(found.is_some(), "not in {bound} seeds");
}

#[test]
fn a_bug_of_depth_2_is_found() {
    // b between the two halves of a: a < b and b < A.
    found_within_the_bound(["aA", "b"], 2, |order| order == "abA");
}

#[test]
fn a_bug_of_depth_3_is_found() {
    // a < b, b < A and A < B.
    found_within_the_bound(["aA", "bB"], 3, |order| order == "abAB");
}

#[test]
fn the_rate_at_which_bugs_are_found_is_the_promised_one() {
    let seeds = 2000;
    for (streams, depth, wanted) in [(["aA", "b"], 2, "abA"), (["aA", "bB"], 3, "abAB")] {
        let mut found = 0;
        let mut steps = 0;
        for seed in 0..seeds {
            let (order, n) = interleaving(Schedule::Pct { seed, depth }, streams);
            found += u64::from(order == wanted);
            steps = n;
        }
        let promised = seeds as f64 / (15 * 3 * (2 * steps).pow(depth - 1)) as f64;
        assert!(
            found as f64 >= promised,
            "depth {depth}: {found} of {seeds}, promised {promised:.2}"
        );
    }
}

#[test]
fn depth_1_keeps_the_priorities_it_has_drawn() {
    for seed in 0..200 {
        let (order, _) = interleaving(Schedule::Pct { seed, depth: 1 }, ["aA", "bB"]);
        assert!(["aAbB", "bBaA"].contains(&order.as_str()), "seed {seed}: {order}");
    }
}

/// Two host threads, played by one, with streams, events and host functions of their own.
fn threads(schedule: Schedule) -> (u64, String) {
    let sim = machine(schedule);
    let log = Log::default();
    let marks: Vec<Mark> = ('a'..='f').map(|letter| Mark(&log, letter)).collect();
    let streams = [stream(&sim), stream(&sim)];
    let mut event = null_mut();
    ok!(sim.hipEventCreateWithFlags(&raw mut event, hipEventDisableTiming));
    let mut left = [marks[..3].iter(), marks[3..].iter()];
    loop {
        let runnable: Vec<u32> = (0..2).filter(|thread| left[*thread as usize].len() > 0).collect();
        let Some(thread) = sim.next_thread(&runnable) else {
            break;
        };
        let (own, other) = (streams[thread as usize], streams[1 - thread as usize]);
        sim.as_thread(thread, || {
            let mark = left[thread as usize].next().expect("it was runnable");
            ok!(sim.hipLaunchHostFunc(own, Some(write_mark), std::ptr::from_ref(mark).cast_mut().cast()));
            ok!(sim.hipEventRecord(event, own));
            ok!(sim.hipStreamWaitEvent(other, event, 0));
            // SAFETY: the stream is alive.
            let _ = unsafe { sim.hipStreamQuery(other) };
        });
    }
    ok!(sim.hipDeviceSynchronize());
    let order = log.0.lock().expect("no test panics with the lock held").clone();
    (sim.trace_hash(), order)
}

#[test]
fn a_thousand_seeds_repeat() {
    let mut traces = std::collections::BTreeSet::new();
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..1000 {
        let schedule = Schedule::Pct { seed, depth: 3 };
        let first = threads(schedule);
        assert_eq!(first, threads(schedule), "seed {seed}");
        traces.insert(first.0);
        orders.insert(first.1);
    }
    assert!(traces.len() > 20, "{} different runs", traces.len());
    assert!(orders.len() > 10, "{orders:?}");
}

#[test]
fn a_played_thread_has_its_own_device_and_error() {
    let sim = SimHost::new(SimConfig::with_cards(2));
    let device = || {
        let mut device = -1;
        ok!(sim.hipGetDevice(&raw mut device));
        device
    };
    sim.as_thread(1, || {
        ok!(sim.hipSetDevice(1));
        sim.as_thread(2, || assert_eq!(device(), 0));
        assert_eq!(device(), 1);
        // SAFETY: a null pointer is refused.
        let status = unsafe { sim.hipMalloc(null_mut(), 1) };
        assert_eq!(status, hipErrorInvalidValue);
    });
    assert_eq!(device(), 0);
    ok!(sim.hipGetLastError());
    sim.as_thread(1, || {
        // SAFETY: takes no pointer.
        assert_eq!(unsafe { sim.hipGetLastError() }, hipErrorInvalidValue);
    });
}
