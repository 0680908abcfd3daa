//! Another thread comes in the middle of a call. The fake's hooks put it there, every time.

use super::fake::{Fake, backend};
use parking_lot::Mutex;
use rocmforge_hip_sys::*;
use rocmforge_memory::{Reading, Readings};
use rocmforge_runtime::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Runs `work` on another thread from inside of the next call of that name, which goes on when the work is done, or
/// when it has become clear that it waits for the call to end.
fn in_the_middle_of<T: Send + 'static>(
    fake: &Fake,
    call: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> mpsc::Receiver<JoinHandle<T>> {
    let (give, take) = mpsc::channel();
    fake.at(call, move || {
        let (done, wait) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let result = work();
            drop(done);
            result
        });
        let _ = wait.recv_timeout(Duration::from_millis(200));
        give.send(thread).expect("the test waits for it");
    });
    take
}

struct Events {
    fake: Arc<Fake>,
    backend: Arc<HipBackend>,
    /// The stream the event is recorded on, its raw handle, and its work's buffer.
    first: HipStream,
    handle: usize,
    buffer: HipBuffer<u8>,
    event: Arc<HipEvent>,
}

/// A stream that is stuck in its work, and an event recorded behind the work.
fn stuck_before_the_event() -> Events {
    let (fake, backend) = backend();
    let first = backend.create_stream("first").unwrap();
    let buffer = HipBuffer::<u8>::zeroed(&first, Elems(64), "buffer").unwrap();
    let handle = fake.log().last().unwrap().stream;
    let event = Arc::new(backend.create_event("event").unwrap());
    first.record(&event).unwrap();
    fake.stick(Some(handle));
    Events {
        fake,
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
    let thread = in_the_middle_of(&events.fake, "hipEventQuery", record_elsewhere(&events));
    let _ = events.event.query().unwrap();
    let second = thread.recv().unwrap().join().unwrap();
    // If the query took the first stream's work for done, this frees memory that the work will write.
    drop(events.buffer);
    assert_eq!(events.fake.violations(), [""; 0]);
    events.fake.stick(None);
    drop((events.first, second));
    events.backend.synchronize().unwrap();
    assert_eq!(events.fake.live_memory(), 0);
    assert_eq!(events.fake.violations(), [""; 0]);
}

#[test]
fn a_wait_for_an_event_is_noted_for_the_record_it_saw() {
    let events = stuck_before_the_event();
    let third = events.backend.create_stream("third").unwrap();
    events.fake.clear_log();
    let thread = in_the_middle_of(&events.fake, "hipStreamWaitEvent", record_elsewhere(&events));
    third.wait_event(&events.event).unwrap();
    let second = thread.recv().unwrap().join().unwrap();
    // The third stream may use the first one's buffer only behind a wait for the first one's work.
    let copy = HipBuffer::<u8>::zeroed(&third, Elems(64), "copy").unwrap();
    copy.copy_from_buffer(&third, &events.buffer).unwrap();
    let (mut marks, mut waits) = (std::collections::HashMap::new(), Vec::new());
    for call in events.fake.log() {
        match call.name {
            "hipEventRecord" => drop(marks.insert(call.event, call.stream)),
            // Without a record in this log, it was recorded on the first stream before.
            "hipStreamWaitEvent" => waits.push(marks.get(&call.event).copied().unwrap_or(events.handle)),
            _ => {}
        }
    }
    assert!(waits.contains(&events.handle), "waits only for the streams {waits:x?}");
    events.fake.stick(None);
    drop((events.first, second, third));
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

/// A desktop that holds some memory, and the fake's own.
struct Desktop {
    fake: Arc<Fake>,
    others: Arc<AtomicU64>,
}

impl Readings for Desktop {
    fn read(&self) -> Reading {
        let used = self.others.load(Ordering::Relaxed) + self.fake.live_bytes() as u64;
        Reading {
            total: Some(Bytes(1 << 30)),
            used: Some(Bytes(used)),
            ..Reading::default()
        }
    }
}

fn with_desktop() -> (Arc<Fake>, Arc<HipBackend>, Arc<AtomicU64>) {
    let fake = Arc::new(Fake::default());
    let others = Arc::new(AtomicU64::new(32 * MIB));
    let desktop = Desktop {
        fake: Arc::clone(&fake),
        others: Arc::clone(&others),
    };
    let api: Arc<dyn HipApi> = Arc::<Fake>::clone(&fake);
    let provider = Provider::new(api)
        .with_clock(Arc::<Fake>::clone(&fake))
        .with_readings(Box::new(desktop));
    let options = BackendOptions {
        policy: Policy::headless(),
        ..BackendOptions::default()
    };
    let backend = HipBackend::open(provider, options).unwrap();
    (fake, backend, others)
}

fn megabytes(backend: &HipBackend, count: u64) -> HipResult<HipBuffer<u8>> {
    // SAFETY: nothing reads it.
    unsafe { HipBuffer::uninit(backend.stream(), Elems((count * MIB) as usize), "buffer") }
}

#[test]
fn the_desktops_share_stays_visible_while_the_driver_gives_and_takes() {
    let (fake, backend, _) = with_desktop();
    let before = backend.card().budget();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = || {
        let (card, seen) = (Arc::clone(backend.card()), Arc::clone(&seen));
        move || seen.lock().push(card.budget())
    };
    fake.at("hipMalloc", look());
    let buffer = megabytes(&backend, 64).unwrap();
    fake.at("hipFree done", look());
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
    let (fake, backend, others) = with_desktop();
    fake.fail_all(Some(("hipMalloc", hipErrorOutOfMemory)));
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
    let (fake, backend, _) = with_desktop();
    let all = backend.card().budget().available.0 / MIB;
    let most = megabytes(&backend, all - 10).unwrap();
    most.view(0..1).unwrap().clear(backend.stream()).unwrap();
    drop(most); // still in use: the backend keeps it
    let other = Arc::clone(&backend);
    let thread = in_the_middle_of(&fake, "hipFree", move || megabytes(&other, 20).map(drop));
    backend.synchronize().unwrap();
    thread.recv().unwrap().join().unwrap().unwrap();
}

#[test]
fn a_wait_for_a_stream_waits_for_the_events_it_waits_for() {
    let events = stuck_before_the_event();
    let third = events.backend.create_stream("third").unwrap();
    third.wait_event(&events.event).unwrap();
    // The fake's waits end with a query; a stuck stream's never does.
    let queries = events.fake.count("hipStreamQuery");
    events.fake.hang();
    let error = third.synchronize().unwrap_err();
    assert!(matches!(error, HipError::Timeout { .. }), "{error}");
    assert!(events.fake.count("hipStreamQuery") > queries + 1);
}
