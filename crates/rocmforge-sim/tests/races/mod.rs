//! Races between streams and the host: found under every schedule, also when the order happened to be right; and never
//! in a program that orders its work.

use rocmforge_amdgcn::Tools;
use rocmforge_hip_sys::*;
use rocmforge_sim::{Access, Report, ReportKind, Schedule, SimConfig, SimHost};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const N: usize = 256;

/// Calls a HIP function that must succeed.
macro_rules! ok {
    ($sim:ident . $function:ident ( $($arg:expr),* $(,)? )) => {{
        // SAFETY: the tests pass valid pointers and live handles.
        let status = unsafe { $sim.$function($($arg),*) };
        assert_eq!(status, hipSuccess, stringify!($function));
    }};
}

// Behind the macro it uses.
mod edges;

fn schedules() -> Vec<Schedule> {
    let mut all = vec![Schedule::Lazy, Schedule::Eager, Schedule::Reverse];
    all.extend((0..20).map(Schedule::Random));
    all.extend((0..10).map(|seed| Schedule::Pct { seed, depth: 3 }));
    all
}

/// Runs a program under every schedule, strict and not.
fn everywhere(program: impl Fn(&Arc<SimHost>)) -> Vec<(SimConfig, Vec<Report>)> {
    let mut runs = Vec::new();
    for schedule in schedules() {
        for strict in [false, true] {
            let config = SimConfig {
                schedule,
                strict,
                tools: Tools::all(),
                ..SimConfig::default()
            };
            let sim = SimHost::new(config.clone());
            program(&sim);
            // SAFETY: the function takes no pointers.
            assert_eq!(unsafe { sim.hipDeviceSynchronize() }, hipSuccess);
            runs.push((config, sim.take_reports()));
        }
    }
    runs
}

#[track_caller]
fn clean(program: impl Fn(&Arc<SimHost>)) {
    for (config, reports) in everywhere(program) {
        assert!(
            reports.is_empty(),
            "{:?} strict {}: {reports:#?}",
            config.schedule,
            config.strict
        );
    }
}

/// The one race there is, which must be the same under every schedule.
#[track_caller]
fn one_race(program: impl Fn(&Arc<SimHost>)) -> Report {
    let mut runs = everywhere(program).into_iter();
    let mut only = |(config, mut reports): (SimConfig, Vec<Report>)| {
        assert_eq!(
            reports.len(),
            1,
            "{:?} strict {}: {reports:#?}",
            config.schedule,
            config.strict
        );
        let report = reports.remove(0);
        assert_eq!(report.kind, ReportKind::Race, "{report}");
        report
    };
    let first = runs.next().map(&mut only).expect("there are schedules");
    for run in runs {
        let report = only(run);
        // Host memory lies elsewhere in every run.
        let device = |r: &Report| Some(r.address).filter(|address| *address >= 1 << 47);
        let sides = |r: &Report| {
            (
                r.call,
                r.access,
                device(r),
                r.size,
                r.other.as_ref().map(|o| (o.call, o.access)),
            )
        };
        assert_eq!(sides(&report), sides(&first), "{report}\n{first}");
    }
    first
}

fn malloc(sim: &SimHost) -> *mut c_void {
    let mut ptr = null_mut();
    ok!(sim.hipMalloc(&raw mut ptr, N));
    ptr
}

fn pinned(sim: &SimHost) -> *mut u8 {
    let mut ptr = null_mut();
    ok!(sim.hipHostMalloc(&raw mut ptr, N, 0));
    ptr.cast()
}

fn stream(sim: &SimHost, flags: u32) -> hipStream_t {
    let mut stream = null_mut();
    ok!(sim.hipStreamCreateWithFlags(&raw mut stream, flags));
    stream
}

fn free_stream(sim: &SimHost) -> hipStream_t {
    stream(sim, hipStreamNonBlocking)
}

fn event(sim: &SimHost) -> hipEvent_t {
    let mut event = null_mut();
    ok!(sim.hipEventCreateWithFlags(&raw mut event, hipEventDisableTiming));
    event
}

fn at(ptr: *mut c_void, offset: usize) -> *mut c_void {
    ptr.wrapping_byte_add(offset)
}

fn set(ptr: *mut u8, value: u8) {
    // SAFETY: the tests pass pinned memory of N bytes.
    unsafe { ptr.write_bytes(value, N) };
}

#[test]
fn two_streams_that_write_the_same_bytes_race() {
    let report = one_race(|sim| {
        let (a, b, ptr) = (free_stream(sim), free_stream(sim), malloc(sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N / 2, a)); // call 4
        ok!(sim.hipMemsetAsync(at(ptr, N / 4), 2, N / 2, b)); // call 5
    });
    assert_eq!(
        (report.call, report.size, report.access),
        (5, N as u64 / 4, Some(Access::Write))
    );
    let other = report.other.as_ref().expect("two sides");
    assert_eq!(
        (other.call, other.api, other.access),
        (4, "hipMemsetAsync", Some(Access::Write))
    );
    assert_eq!(report.allocation.as_ref().map(|a| a.size), Some(N as u64));
    let text = report.to_string();
    assert!(
        text.contains("other: write by hipMemsetAsync (call 4, stream 2)"),
        "{text}"
    );
}

#[test]
fn neighbours_and_readers_do_not_race() {
    clean(|sim| {
        let (a, b, ptr, out) = (free_stream(sim), free_stream(sim), malloc(sim), malloc(sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N / 2, a));
        ok!(sim.hipMemsetAsync(at(ptr, N / 2), 2, N / 2, b));
        ok!(sim.hipDeviceSynchronize());
        ok!(sim.hipMemcpyAsync(out, ptr, N / 2, hipMemcpyDeviceToDevice, a));
        ok!(sim.hipMemcpyAsync(at(out, N / 2), ptr, N / 2, hipMemcpyDeviceToDevice, b));
    });
}

#[test]
fn every_kind_of_order_is_known() {
    clean(|sim| {
        let (a, b, ptr) = (free_stream(sim), free_stream(sim), malloc(sim));
        let write = |value, stream| ok!(sim.hipMemsetAsync(ptr, value, N, stream));
        write(0, a);
        write(1, a);
        // An event, destroyed right behind the wait.
        let done = event(sim);
        ok!(sim.hipEventRecord(done, a));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        ok!(sim.hipEventDestroy(done));
        write(2, b);
        // The host between them: a stream, an event, asking.
        ok!(sim.hipStreamSynchronize(b));
        write(3, a);
        let done = event(sim);
        ok!(sim.hipEventRecord(done, a));
        ok!(sim.hipEventSynchronize(done));
        write(4, b);
        // SAFETY: the stream is alive.
        while unsafe { sim.hipStreamQuery(b) } != hipSuccess {}
        write(5, a);
        ok!(sim.hipEventRecord(done, a));
        // SAFETY: the event is alive.
        while unsafe { sim.hipEventQuery(done) } != hipSuccess {}
        write(6, b);
        ok!(sim.hipDeviceSynchronize());
        write(7, a);
        // A stream that is destroyed with work in it.
        ok!(sim.hipEventRecord(done, a));
        ok!(sim.hipStreamDestroy(a));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        write(8, b);
        // Transitively, over streams that touch nothing.
        let others = [free_stream(sim), free_stream(sim), free_stream(sim)];
        let mut last = b;
        for next in others {
            ok!(sim.hipEventRecord(done, last));
            ok!(sim.hipStreamWaitEvent(next, done, 0));
            last = next;
        }
        write(9, last);
    });
}

#[test]
fn the_null_stream_orders_blocking_streams_and_no_others() {
    clean(|sim| {
        let (a, b, ptr) = (
            stream(sim, hipStreamDefault),
            stream(sim, hipStreamDefault),
            malloc(sim),
        );
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipMemset(ptr, 2, N));
        ok!(sim.hipMemsetAsync(ptr, 3, N, b));
        ok!(sim.hipMemset(ptr, 4, N));
        ok!(sim.hipMemsetAsync(ptr, 5, N, a));
        ok!(sim.hipStreamDestroy(a));
        ok!(sim.hipMemset(ptr, 6, N));
        ok!(sim.hipMemsetAsync(ptr, 7, N, b));
        ok!(sim.hipStreamSynchronize(null_mut()));
        ok!(sim.hipMemsetAsync(ptr, 8, N, free_stream(sim)));
    });
    one_race(|sim| {
        let (a, ptr) = (free_stream(sim), malloc(sim));
        ok!(sim.hipMemset(ptr, 1, N));
        ok!(sim.hipMemsetAsync(ptr, 2, N, a));
    });
    // Two blocking streams order nothing between themselves.
    one_race(|sim| {
        let (a, b, ptr) = (
            stream(sim, hipStreamDefault),
            stream(sim, hipStreamDefault),
            malloc(sim),
        );
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
    });
}

#[test]
fn an_event_stands_for_what_was_before_its_last_record() {
    // Recorded before the write it should cover.
    one_race(|sim| {
        let (a, b, ptr, done) = (free_stream(sim), free_stream(sim), malloc(sim), event(sim));
        ok!(sim.hipEventRecord(done, a));
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
    });
    // Recorded on the wrong stream.
    one_race(|sim| {
        let (a, b, ptr, done) = (free_stream(sim), free_stream(sim), malloc(sim), event(sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipEventRecord(done, b));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
    });
    // Recorded again elsewhere before the wait.
    one_race(|sim| {
        let (a, b, c, ptr, done) = (
            free_stream(sim),
            free_stream(sim),
            free_stream(sim),
            malloc(sim),
            event(sim),
        );
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipEventRecord(done, a));
        ok!(sim.hipEventRecord(done, c));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
    });
    // Never recorded.
    one_race(|sim| {
        let (a, b, ptr, done) = (free_stream(sim), free_stream(sim), malloc(sim), event(sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
    });
}

#[test]
fn memory_that_changes_hands_does_not_race_with_its_past() {
    clean(|sim| {
        let (a, b) = (free_stream(sim), free_stream(sim));
        for round in 0..10 {
            let ptr = malloc(sim);
            ok!(sim.hipMemsetAsync(ptr, round, N, if round % 2 == 0 { a } else { b }));
            ok!(sim.hipStreamSynchronize(if round % 2 == 0 { a } else { b }));
            ok!(sim.hipFree(ptr));
        }
        for round in 0..10 {
            let mut ptr = null_mut();
            ok!(sim.hipMallocAsync(&raw mut ptr, N, a));
            ok!(sim.hipMemsetAsync(ptr, round, N, a));
            let ready = event(sim);
            ok!(sim.hipEventRecord(ready, a));
            ok!(sim.hipStreamWaitEvent(b, ready, 0));
            ok!(sim.hipMemsetAsync(ptr, round, N, b));
            ok!(sim.hipFreeAsync(ptr, b));
        }
    });
}

#[test]
fn stream_ordered_memory_belongs_to_its_stream() {
    one_race(|sim| {
        let (a, b, mut ptr) = (free_stream(sim), free_stream(sim), null_mut());
        ok!(sim.hipMallocAsync(&raw mut ptr, N, a));
        ok!(sim.hipMemsetAsync(ptr, 1, N, b));
    });
}

#[test]
fn a_free_that_nothing_orders_behind_the_use_is_found_under_every_schedule() {
    for schedule in schedules() {
        for by_stream in [false, true] {
            let sim = SimHost::new(SimConfig {
                schedule,
                strict: true,
                ..SimConfig::default()
            });
            let (a, b, ptr) = (free_stream(&sim), free_stream(&sim), malloc(&sim));
            ok!(sim.hipMemsetAsync(ptr, 1, N, a)); // call 4
            if by_stream {
                ok!(sim.hipFreeAsync(ptr, b)); // call 5
            } else {
                ok!(sim.hipFree(ptr));
            }
            ok!(sim.hipDeviceSynchronize());
            let reports = sim.take_reports();
            assert_eq!(reports.len(), 1, "{schedule:?} {reports:#?}");
            let report = &reports[0];
            assert_eq!((report.kind, report.call), (ReportKind::UseAfterFree, 4), "{report}");
            let other = report.other.as_ref().expect("who freed it");
            assert_eq!(other.call, 5, "{report}");
        }
    }
}

#[test]
fn a_copy_and_the_host() {
    // The host changes the source of a copy before it knows that the copy has run.
    let early_write = |announced: bool| {
        move |sim: &Arc<SimHost>| {
            let (a, ptr, host) = (free_stream(sim), malloc(sim), pinned(sim));
            set(host, 1);
            ok!(sim.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, a));
            if announced {
                sim.host_writes(host, N);
            }
            set(host, 2);
            ok!(sim.hipStreamSynchronize(a));
        }
    };
    one_race(early_write(false));
    let report = one_race(early_write(true));
    let other = report.other.as_ref().expect("two sides");
    assert!([report.api, other.api].contains(&"host write"), "{report}");
    let file = |side: &[rocmforge_amdgcn::Frame]| side.iter().any(|f| f.file.ends_with("races/mod.rs") && f.line > 0);
    assert!(file(&report.frames) || file(&other.frames), "{report}");
    // The host reads what a copy brings before it knows.
    one_race(|sim| {
        let (a, ptr, host) = (free_stream(sim), malloc(sim), pinned(sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipMemcpyAsync(host.cast(), ptr, N, hipMemcpyDeviceToHost, a));
        sim.host_reads(host, N);
    });
    // As it should be; reading what a copy reads is fine.
    clean(|sim| {
        let (a, ptr, host) = (free_stream(sim), malloc(sim), pinned(sim));
        set(host, 1);
        sim.host_writes(host, N);
        ok!(sim.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, a));
        sim.host_reads(host, N);
        ok!(sim.hipStreamSynchronize(a));
        set(host, 2);
        sim.host_writes(host, N);
        ok!(sim.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, a));
        ok!(sim.hipMemsetAsync(ptr, 3, N, a));
        ok!(sim.hipMemcpyAsync(host.cast(), ptr, N, hipMemcpyDeviceToHost, a));
        ok!(sim.hipStreamSynchronize(a));
        sim.host_reads(host, N);
        set(host, 4);
    });
}

struct Flag {
    done: AtomicBool,
    host: *mut u8,
    sim: Arc<SimHost>,
}

unsafe extern "C" fn fill_and_tell(user: *mut c_void) {
    // SAFETY: the test passes a flag that outlives the call.
    let flag = unsafe { &*user.cast::<Flag>() };
    flag.sim.host_writes(flag.host, N);
    set(flag.host, 9);
    flag.done.store(true, Ordering::Release);
}

#[test]
fn host_functions_are_ordered_like_their_stream() {
    clean(|sim| {
        let (a, ptr, host) = (free_stream(sim), malloc(sim), pinned(sim));
        set(host, 1);
        let flag = Flag {
            done: AtomicBool::new(false),
            host,
            sim: sim.clone(),
        };
        let user = (&raw const flag).cast_mut().cast();
        ok!(sim.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, a));
        ok!(sim.hipLaunchHostFunc(a, Some(fill_and_tell), user));
        ok!(sim.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, a));
        // The program knows from its own flag that the function has run.
        while !flag.done.load(Ordering::Acquire) {
            // SAFETY: the stream is alive.
            let _ = unsafe { sim.hipStreamQuery(a) };
        }
        ok!(sim.hipStreamSynchronize(a));
        set(host, 2);
    });
    one_race(|sim| {
        let (a, b, ptr, host) = (free_stream(sim), free_stream(sim), malloc(sim), pinned(sim));
        let flag = Flag {
            done: AtomicBool::new(false),
            host,
            sim: sim.clone(),
        };
        let user = (&raw const flag).cast_mut().cast();
        set(host, 1);
        ok!(sim.hipMemcpyAsync(ptr, host.cast(), N, hipMemcpyHostToDevice, a));
        ok!(sim.hipLaunchHostFunc(b, Some(fill_and_tell), user));
        ok!(sim.hipDeviceSynchronize());
    });
}

#[test]
fn threads_that_only_a_lock_orders_are_distinguished_on_request() {
    for separate_threads in [false, true] {
        let sim = SimHost::new(SimConfig {
            separate_threads,
            tools: Tools::all(),
            ..SimConfig::default()
        });
        let (a, b, ptr) = (free_stream(&sim), free_stream(&sim), malloc(&sim));
        sim.as_thread(1, || {
            ok!(sim.hipMemsetAsync(ptr, 1, N, a));
            ok!(sim.hipStreamSynchronize(a));
        });
        sim.as_thread(2, || ok!(sim.hipMemsetAsync(ptr, 2, N, b)));
        ok!(sim.hipDeviceSynchronize());
        assert_eq!(sim.take_reports().len(), usize::from(separate_threads));
        // An edge through a stream counts in both.
        sim.as_thread(1, || {
            ok!(sim.hipDeviceSynchronize());
            ok!(sim.hipMemsetAsync(ptr, 3, N, a));
        });
        sim.as_thread(2, || {
            ok!(sim.hipStreamSynchronize(a));
            ok!(sim.hipMemsetAsync(ptr, 4, N, b));
        });
        ok!(sim.hipDeviceSynchronize());
        assert!(sim.take_reports().is_empty());
    }
}

#[test]
fn an_accident_of_the_implementation_orders_nothing_in_a_strict_simulation() {
    for (config, reports) in everywhere(|sim| {
        let (a, b, ptr) = (free_stream(sim), free_stream(sim), malloc(sim));
        let mut host = [0u8; N];
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        // Today this waits, as the memory is pageable.
        ok!(sim.hipMemcpyAsync(host.as_mut_ptr().cast(), ptr, N, hipMemcpyDeviceToHost, a));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
        ok!(sim.hipDeviceSynchronize());
    }) {
        let kinds: Vec<_> = reports.iter().map(|r| r.kind).collect();
        let expected: &[ReportKind] = if config.strict {
            &[ReportKind::Race, ReportKind::Race]
        } else {
            &[]
        };
        assert_eq!(kinds, expected, "{:?}: {reports:#?}", config.schedule);
    }
}
