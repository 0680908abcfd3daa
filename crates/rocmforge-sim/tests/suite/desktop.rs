//! The desktop on a simulated card: what it holds, who is moved out of whose way, and what kills it.

use crate::support::hip::*;
use crate::support::*;
use rocmforge_memory::{Bytes, Readings};
use rocmforge_sim::{
    CardConfig, Client, DesktopConfig, DesktopDeath, DesktopStatus, FaultPlan, LaunchFault, SimConfig, SimHost, When,
};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// What the card keeps for page tables and firmware.
const RESERVED: u64 = 64 * MIB;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Never fails to stop a queue, unless a test says so.
fn steady(clients: impl IntoIterator<Item = Client>) -> DesktopConfig {
    DesktopConfig {
        preemption_failure: 0.0,
        ..DesktopConfig::with(clients)
    }
}

fn host_with(desktop: DesktopConfig, faults: FaultPlan) -> Arc<SimHost> {
    let card = CardConfig {
        desktop: Some(desktop),
        ..CardConfig::default()
    };
    SimHost::new(SimConfig {
        cards: vec![card],
        faults,
        ..SimConfig::default()
    })
}

fn host(desktop: DesktopConfig) -> Arc<SimHost> {
    host_with(desktop, FaultPlan::new())
}

fn status(sim: &SimHost) -> DesktopStatus {
    sim.desktop(0).expect("the card has a desktop")
}

/// Lets simulated time pass in small steps, looking each time.
fn pass(sim: &SimHost, time: Duration) {
    let end = sim.now() + time;
    while sim.now() < end {
        sim.pause(Duration::from_millis(10).min(end - sim.now()));
        status(sim);
    }
}

fn hip_free(sim: &SimHost) -> u64 {
    let (mut free, mut total) = (0, 0);
    answers!(hipSuccess, sim.hipMemGetInfo(&raw mut free, &raw mut total));
    free as u64
}

fn flat(name: &'static str, bytes: u64) -> Client {
    Client::steps(name, vec![(Duration::ZERO, Bytes(bytes))])
}

#[test]
fn a_desktop_alone_misses_no_frame() {
    let sim = host(steady([
        Client::browser(),
        Client::video(seconds(3)),
        Client::game(seconds(5)),
    ]));
    pass(&sim, seconds(30));
    let status = status(&sim);
    assert!(status.alive() && status.frames_missed == 0, "{status:?}");
    assert!(
        (1795..=1800).contains(&status.frames),
        "{} frames at 60 Hz",
        status.frames
    );
    assert_eq!(
        (status.evicted_peak, status.queue_stops, status.floor_violations),
        (Bytes(0), 0, 0)
    );
    let browser = 400 + 80 * 15;
    assert_eq!(status.wanted, Bytes((64 + 512 + browser + 250 + 300 + 290 * 20) * MIB));
}

#[test]
fn hip_sees_other_rocm_processes_and_what_is_pinned_and_no_graphics() {
    let empty = hip_free(&host(steady([])));
    assert_eq!(empty, (20 * GIB - RESERVED - 64 * MIB) / (2 * MIB) * (2 * MIB));
    assert_eq!(hip_free(&host(steady([flat("browser", 4 * GIB)]))), empty);
    let rocm = Client::rocm(vec![(Duration::ZERO, Bytes(4 * GIB))]);
    assert_eq!(hip_free(&host(steady([rocm.clone()]))), empty - 4 * GIB);
    // The graphics driver sees everybody.
    let sim = host(steady([flat("browser", 3 * GIB), rocm]));
    let ptr = malloc(&sim, GIB as usize);
    let reading = sim.readings(0).read();
    assert_eq!(reading.used, Some(Bytes((64 + 512) * MIB + (3 + 4 + 1) * GIB)));
    assert_eq!(reading.own, Some(Bytes(GIB)));
    answers!(hipSuccess, sim.hipFree(ptr));
}

#[test]
fn the_used_figure_falls_late_and_the_own_figure_at_once() {
    let sim = host(steady([]));
    let ptr = malloc(&sim, GIB as usize);
    let before = sim.readings(0).read();
    answers!(hipSuccess, sim.hipFree(ptr));
    let after = sim.readings(0).read();
    assert_eq!((after.own, after.used), (Some(Bytes(0)), before.used));
    sim.pause(Duration::from_millis(190));
    assert_eq!(sim.readings(0).read().used, before.used);
    sim.pause(Duration::from_millis(20));
    assert_eq!(sim.readings(0).read().used, Some(Bytes(576 * MIB)));
    // It rises at once.
    let ptr = malloc(&sim, GIB as usize);
    assert_eq!(sim.readings(0).read().used, before.used);
    answers!(hipSuccess, sim.hipFree(ptr));
}

#[test]
fn an_allocation_that_hip_allows_evicts_the_desktop() {
    let sim = host(steady([flat("browser", 4 * GIB)]));
    status(&sim);
    let fits = malloc(&sim, (15 * GIB) as usize);
    assert_eq!(status(&sim).evicted_by_us, Bytes(0));
    assert!(hip_free(&sim) > 4 * GIB);
    let too_much = malloc(&sim, (4 * GIB) as usize);
    let status = status(&sim);
    let over = (64 + 512) * MIB + (4 + 15 + 4) * GIB - (20 * GIB - RESERVED);
    assert_eq!((status.evicted, status.evicted_by_us), (Bytes(over), Bytes(over)));
    assert!(status.floor_violations == 1 && status.free == Bytes(0), "{status:?}");
    // The browser's window is hidden: nobody misses a frame until it comes back.
    assert_eq!(status.frames_missed, 0);
    for ptr in [fits, too_much] {
        answers!(hipSuccess, sim.hipFree(ptr));
    }
    clean(&sim);
}

#[test]
fn what_every_frame_needs_is_fetched_back_frame_by_frame() {
    let sim = host(steady([flat("game", 6 * GIB).in_foreground()]));
    status(&sim);
    let ptr = malloc(&sim, (18 * GIB) as usize);
    pass(&sim, seconds(5));
    let squeezed = status(&sim);
    assert!(
        squeezed.frames_missed > 100 && squeezed.queue_stops >= 3,
        "{squeezed:?}"
    );
    assert!(squeezed.alive() && squeezed.longest_freeze < seconds(5), "{squeezed:?}");
    answers!(hipSuccess, sim.hipFree(ptr));
    pass(&sim, seconds(3));
    let then = status(&sim);
    assert!(then.evicted == Bytes(0) && !then.queues_stopped, "{then:?}");
    pass(&sim, seconds(5));
    assert_eq!(status(&sim).frames_missed, then.frames_missed, "on time again");
}

#[test]
fn graphics_that_grows_stops_our_queues_and_waits_span_it() {
    let sim = host(steady([Client::steps("game", vec![(seconds(1), Bytes(8 * GIB))])]));
    let (stream, ptr) = (stream(&sim), malloc(&sim, (12 * GIB) as usize));
    sim.pause(Duration::from_millis(1001));
    let stopped = status(&sim);
    assert!(stopped.queues_stopped && stopped.queue_stops == 1, "{stopped:?}");
    assert_eq!(stopped.evicted_by_us, Bytes(0), "we were moved instead");
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 0, N, stream));
    let start = sim.now();
    for _ in 0..20 {
        answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    }
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    // 12 GiB at 16 GiB/s, and the driver's own pause.
    let waited = sim.now() - start;
    assert!(
        (Duration::from_millis(800)..Duration::from_millis(900)).contains(&waited),
        "{waited:?}"
    );
    let after = status(&sim);
    assert!(
        after.alive() && after.evicted_by_us > Bytes(0),
        "back, in the game's way: {after:?}"
    );
    clean(&sim);
}

#[test]
fn a_queue_that_cannot_be_stopped_costs_the_session_and_the_device() {
    let sim = host(DesktopConfig {
        preemption_failure: 1.0,
        ..steady([Client::game(seconds(1))])
    });
    let (stream, ptr) = (stream(&sim), malloc(&sim, (18 * GIB) as usize));
    answers!(hipSuccess, sim.hipMemsetAsync(ptr, 0, N, stream));
    pass(&sim, seconds(10));
    let status = status(&sim);
    assert_eq!(
        (status.death, status.resets, status.queue_stops),
        (Some(DesktopDeath::Reset), 1, 1)
    );
    assert!(
        status.died_at.is_some_and(|at| at > seconds(1) && at < seconds(10)),
        "{status:?}"
    );
    answers!(hipErrorUnknown, sim.hipStreamSynchronize(stream));
    answers!(hipErrorUnknown, sim.hipFree(ptr));
    answers!(hipErrorUnknown, sim.hipInit(0));
}

/// Frames missed while a launch of `groups` workgroups takes `time`.
fn missed(groups: u32, time: Duration) -> u64 {
    let plan = FaultPlan::new().launch(When::Nth(1), LaunchFault::Takes(time));
    let sim = host_with(steady([]), plan);
    let stream = stream(&sim);
    pass(&sim, seconds(1));
    launch_nothing(&sim, groups, stream);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(sim.launches(), 1, "it takes long, and it runs");
    pass(&sim, seconds(1));
    assert!(status(&sim).alive());
    status(&sim).frames_missed
}

#[test]
fn a_long_launch_on_the_whole_card_makes_frames_late() {
    assert_eq!(
        missed(42, Duration::from_millis(8)),
        0,
        "there is time for a frame's work beside it"
    );
    let short = missed(42, Duration::from_millis(30));
    assert!((1..=2).contains(&short), "{short}");
    let long = missed(42, seconds(1));
    assert!((58..=60).contains(&long), "{long}");
    assert_eq!(missed(41, seconds(1)), 0, "one workgroup processor is left");
}

#[test]
fn a_launch_that_never_ends_freezes_the_desktop_to_death() {
    let sim = host_with(steady([]), FaultPlan::new().launch(When::Nth(1), LaunchFault::Hangs));
    let stream = stream(&sim);
    launch_nothing(&sim, 100, stream);
    for _ in 0..4 {
        answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    }
    pass(&sim, seconds(9));
    assert!(status(&sim).alive());
    pass(&sim, seconds(2));
    assert_eq!(status(&sim).death, Some(DesktopDeath::Frozen));
}

#[test]
fn what_fits_nowhere_is_ended() {
    let desktop = DesktopConfig {
        gtt: Bytes(2 * GIB),
        ..steady([flat("editor", 3 * GIB), flat("browser", 4 * GIB)])
    };
    let sim = host(desktop);
    status(&sim);
    malloc(&sim, (18 * GIB) as usize);
    let status = status(&sim);
    assert_eq!(status.killed, ["browser"], "the largest goes, and then the rest fits");
    assert!(status.alive(), "{status:?}");
}

#[test]
fn the_drivers_overhead_appears_with_the_first_launch() {
    let sim = machine_with(|config| config.cards[0].overhead = Bytes(300 * MIB));
    let (own, free) = (sim.readings(0).read().own, hip_free(&sim));
    assert_eq!(own, Some(Bytes(0)));
    launch_nothing(&sim, 1, null_mut());
    answers!(hipSuccess, sim.hipStreamSynchronize(null_mut()));
    assert_eq!(sim.readings(0).read().own, Some(Bytes(300 * MIB)));
    assert_eq!(hip_free(&sim), free - 300 * MIB);
}

#[test]
fn a_walk_keeps_its_bounds_and_its_pace() {
    for seed in 0..50 {
        let walk = Client::walk(Bytes(GIB), Bytes(12 * GIB));
        let sim = host(DesktopConfig { seed, ..steady([walk]) });
        let wants: Vec<u64> = (0..1200)
            .map(|_| {
                sim.pause(Duration::from_millis(100));
                status(&sim).wanted.0 - 576 * MIB
            })
            .collect();
        assert!(
            wants.iter().all(|bytes| (GIB..=12 * GIB).contains(bytes)),
            "seed {seed}"
        );
        for pair in wants.windows(2) {
            assert!(pair[0].abs_diff(pair[1]) <= 6 * GIB / 30, "seed {seed}: {pair:?}");
        }
        for part in wants.windows(100) {
            assert!(part[0].abs_diff(part[99]) <= 12 * GIB);
        }
        let (least, most) = (wants.iter().min().unwrap(), wants.iter().max().unwrap());
        assert!(most - least > 2 * GIB, "seed {seed}: it hardly moves");
    }
}

#[test]
fn the_same_seed_gives_the_same_session() {
    let run = |seed| {
        let walk = Client::walk(Bytes(GIB), Bytes(12 * GIB)).in_foreground();
        let sim = host(DesktopConfig {
            seed,
            preemption_failure: 0.05,
            ..DesktopConfig::with([walk])
        });
        malloc(&sim, (14 * GIB) as usize);
        pass(&sim, seconds(60));
        (status(&sim), sim.trace_hash())
    };
    let runs: Vec<_> = (0..8).map(run).collect();
    for (seed, first) in runs.iter().enumerate() {
        assert_eq!(&run(seed as u64), first, "seed {seed}");
    }
    assert!(runs.iter().any(|(status, _)| *status != runs[0].0), "seeds matter");
}
