//! Calls during which another thread does something. The observer of the calls starts it, every time.

use super::rig::{Rig, backend};
use parking_lot::Mutex;
use rocmforge_hip_sys::*;
use rocmforge_memory::{Reading, Readings};
use rocmforge_runtime::*;
use rocmforge_sim::{FaultPlan, Schedule, SimHost, When};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// A call that is not made is an error, rather than a test that never ends.
const LONG: Duration = Duration::from_secs(60);

/// How far the work of the other thread came while the call was under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It is done.
    Done,
    /// It waits for something that the thread of the call has.
    Waits,
}

/// Runs `work` on another thread from inside of the next call of that name, which goes on when the work is done or waits.
fn in_the_middle_of<T: Send + 'static>(
    rig: &Rig,
    call: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> mpsc::Receiver<(JoinHandle<T>, Progress)> {
    let (give, take) = mpsc::channel();
    rig.before(call, move || {
        let (started, starts) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            // The kernel's own name of this thread: `<process>/task/<thread>`.
            let name = std::fs::read_link("/proc/thread-self").expect("Linux names the thread");
            started.send(name).expect("the call waits for it");
            work()
        });
        let name = starts.recv_timeout(LONG).expect("the thread starts");
        let progress = progress_of(&thread, &Path::new("/proc").join(name).join("stat"));
        give.send((thread, progress)).expect("the test waits for it");
    });
    take
}

/// Looks at a thread until its work is done, or until it sleeps. A thread that only gets no processor does not sleep: the load of the
/// machine decides nothing here.
fn progress_of<T>(thread: &JoinHandle<T>, stat: &Path) -> Progress {
    // A lock that a third thread has for a moment is no wait: so many looks in a row find the thread asleep.
    const LOOKS: u32 = 20;
    let (begin, mut asleep) = (Instant::now(), 0);
    while asleep < LOOKS {
        assert!(begin.elapsed() < LONG, "the work is not done and waits for nothing");
        std::thread::sleep(Duration::from_millis(1));
        if thread.is_finished() {
            return Progress::Done;
        }
        // The state stands behind the name, which is in parentheses. The file is gone with the thread.
        let line = std::fs::read_to_string(stat).unwrap_or_default();
        let sleeps = line
            .rsplit_once(") ")
            .is_some_and(|(_, fields)| fields.starts_with('S'));
        asleep = if sleeps { asleep + 1 } else { 0 };
    }
    Progress::Waits
}

struct Events {
    rig: Rig,
    backend: Arc<HipBackend>,
    /// The stream the event is recorded on, its raw handle, and its work's buffer.
    first: HipStream,
    handle: usize,
    buffer: HipBuffer<u8>,
    event: Arc<HipEvent>,
}

/// A stream that is stuck in its work, and an event recorded behind the work.
fn stuck_before_the_event() -> Events {
    // What is not stuck is done at once.
    let rig = Rig::with(|config| config.schedule = Schedule::Eager);
    let backend = rig.open().unwrap();
    let first = backend.create_stream("first").unwrap();
    first.query().unwrap();
    let handle = rig.last_stream();
    rig.hold(handle, true);
    let buffer = HipBuffer::<u8>::zeroed(&first, Elems(64), "buffer").unwrap();
    let event = Arc::new(backend.create_event("event").unwrap());
    first.record(&event).unwrap();
    Events {
        rig,
        backend,
        first,
        handle,
        buffer,
        event,
    }
}

/// Records the event on an idle stream.
fn record_elsewhere(events: &Events) -> impl FnOnce() -> HipStream + Send + use<> {
    let second = events.backend.create_stream("second").unwrap();
    let event = Arc::clone(&events.event);
    move || {
        second.record(&event).unwrap();
        second
    }
}

#[test]
fn an_event_recorded_elsewhere_does_not_complete_what_it_marked_before() {
    let events = stuck_before_the_event();
    let thread = in_the_middle_of(&events.rig, "hipEventQuery", record_elsewhere(&events));
    let _ = events.event.query().unwrap();
    let (thread, progress) = thread.recv_timeout(LONG).expect("the call is made");
    let second = thread.join().unwrap();
    // If the query took the first stream's work for done, this frees memory that the work will write.
    drop(events.buffer);
    assert_eq!(events.rig.violations(), [""; 0]);
    events.rig.hold(events.handle, false);
    drop((events.first, second));
    events.backend.synchronize().unwrap();
    assert_eq!(events.rig.live_memory(), 0);
    assert_eq!(events.rig.violations(), [""; 0]);
    assert_eq!(progress, Progress::Waits);
}

#[test]
fn a_wait_for_an_event_is_noted_for_the_record_it_saw() {
    let events = stuck_before_the_event();
    let third = events.backend.create_stream("third").unwrap();
    events.rig.clear_log();
    let thread = in_the_middle_of(&events.rig, "hipStreamWaitEvent", record_elsewhere(&events));
    third.wait_event(&events.event).unwrap();
    let (thread, progress) = thread.recv_timeout(LONG).expect("the call is made");
    let second = thread.join().unwrap();
    // The third stream may use the first one's buffer only behind a wait for the first one's work.
    let copy = HipBuffer::<u8>::zeroed(&third, Elems(64), "copy").unwrap();
    copy.copy_from_buffer(&third, &events.buffer).unwrap();
    let (mut marks, mut waits) = (std::collections::HashMap::new(), Vec::new());
    for call in events.rig.log() {
        match call.api {
            "hipEventRecord" => drop(marks.insert(call.event, call.stream)),
            // Without a record in this log, it was recorded on the first stream before.
            "hipStreamWaitEvent" => waits.push(marks.get(&call.event).copied().unwrap_or(Some(events.handle))),
            _ => {}
        }
    }
    assert!(
        waits.contains(&Some(events.handle)),
        "waits only for the streams {waits:x?}"
    );
    events.rig.hold(events.handle, false);
    drop((events.first, second, third));
    assert_eq!(progress, Progress::Waits);
}

#[test]
fn events_of_two_backends_have_no_time_between_them() {
    let ((_one, first), (_two, second)) = (backend(), backend());
    let start = first.create_timing_event("start").unwrap();
    let end = second.create_timing_event("end").unwrap();
    first.stream().record(&start).unwrap();
    second.stream().record(&end).unwrap();
    let error = start.elapsed(&end).unwrap_err();
    assert!(matches!(error, HipError::ForeignObject { .. }), "{error}");
}

/// A desktop that holds some memory, and the machine's own.
struct Desktop {
    sim: Arc<SimHost>,
    others: Arc<AtomicU64>,
}

impl Readings for Desktop {
    fn read(&self) -> Reading {
        let used = self.others.load(Ordering::Relaxed) + self.sim.allocation_stats(0).live_bytes;
        Reading {
            total: Some(Bytes(1 << 30)),
            used: Some(Bytes(used)),
            ..Reading::default()
        }
    }
}

fn with_desktop() -> (Rig, Arc<HipBackend>, Arc<AtomicU64>) {
    let rig = Rig::with(|_| ());
    let others = Arc::new(AtomicU64::new(32 * MIB));
    let desktop = Desktop {
        sim: Arc::clone(&rig.sim),
        others: Arc::clone(&others),
    };
    let provider = rig.provider().with_readings(Box::new(desktop));
    let options = BackendOptions {
        policy: Policy::headless(),
        ..BackendOptions::default()
    };
    let backend = HipBackend::open(provider, options).unwrap();
    (rig, backend, others)
}

fn megabytes(backend: &HipBackend, count: u64) -> HipResult<HipBuffer<u8>> {
    // SAFETY: nothing reads it.
    unsafe { HipBuffer::uninit(backend.stream(), Elems((count * MIB) as usize), "buffer") }
}

#[test]
fn the_desktops_share_stays_visible_while_the_driver_gives_and_takes() {
    let (rig, backend, _) = with_desktop();
    let before = backend.card().budget();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = || {
        let (card, seen) = (Arc::clone(backend.card()), Arc::clone(&seen));
        move || seen.lock().push(card.budget())
    };
    rig.before("hipMalloc", look());
    let buffer = megabytes(&backend, 64).unwrap();
    rig.after("hipFree", look());
    drop(buffer);
    let seen = seen.lock();
    assert_eq!(seen.len(), 2);
    for during in seen.iter() {
        assert_eq!((during.others, during.budget), (before.others, before.budget));
        assert_eq!(during.committed.0 + during.reserved.0, 64 * MIB);
    }
}

#[test]
fn memory_the_driver_never_gave_excuses_nobody() {
    let (rig, backend, others) = with_desktop();
    rig.set_faults(FaultPlan::new().call("hipMalloc", When::From(1), hipErrorOutOfMemory));
    assert!(matches!(
        megabytes(&backend, 64).unwrap_err(),
        HipError::DriverOutOfMemory { .. }
    ));
    others.fetch_add(64 * MIB, Ordering::Relaxed);
    let budget = backend.card().budget();
    assert_eq!(budget.others, Some(Bytes(96 * MIB)));
    assert_eq!((budget.committed, budget.peak), (Bytes(0), Bytes(0)));
}

#[test]
fn a_request_waits_for_what_another_thread_is_giving_back() {
    let (rig, backend, _) = with_desktop();
    let all = backend.card().budget().available.0 / MIB;
    let most = megabytes(&backend, all - 10).unwrap();
    most.view(0..1).unwrap().clear(backend.stream()).unwrap();
    drop(most); // still in use: the backend keeps it
    let other = Arc::clone(&backend);
    let thread = in_the_middle_of(&rig, "hipFree", move || megabytes(&other, 20).map(drop));
    backend.synchronize().unwrap();
    let (thread, progress) = thread.recv_timeout(LONG).expect("the call is made");
    thread.join().unwrap().unwrap();
    assert_eq!(progress, Progress::Waits);
}

#[test]
fn a_wait_for_a_stream_waits_for_the_events_it_waits_for() {
    let events = stuck_before_the_event();
    let third = events.backend.create_stream("third").unwrap();
    third.wait_event(&events.event).unwrap();
    let queries = events.rig.count("hipStreamQuery");

    let error = third.synchronize().unwrap_err();
    assert!(matches!(error, HipError::Timeout { .. }), "{error}");
    assert!(events.rig.count("hipStreamQuery") > queries + 1);
}
