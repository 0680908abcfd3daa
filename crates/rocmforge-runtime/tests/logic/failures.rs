//! Every HIP call fails once; the device hangs. Typed errors, an exact ledger, no call after the end.

use super::rig::{Rig, backend};
use parking_lot::Mutex;
use rocmforge_hip_sys::*;
use rocmforge_runtime::*;
use rocmforge_sim::{FaultPlan, Schedule, SimHost, When};
use std::sync::Arc;
use std::time::Duration;

const OBJECT: &[u8] = include_bytes!("../../../rocmforge-code-object/tests/fixtures/gfx1100-v5.co");

/// Something of everything.
fn program(backend: &Arc<HipBackend>) -> HipResult<()> {
    let stream = backend.stream();
    let other = backend.create_stream("other")?;
    let input = HipBuffer::from_slice(stream, &[1.0f32; 100], "input")?;
    let output = HipBuffer::<f32>::zeroed(&other, Elems(100), "output")?;
    let module = backend.load_module(OBJECT, "fixture")?;
    let kernel = module.kernel("scale")?;
    let args = LaunchArgs::new()
        .buffer(&input)
        .out(&output)
        .value(2.0f32)
        .value(100u32);
    // SAFETY: both buffers have the 100 elements that the last argument names.
    unsafe { other.launch(&kernel, LaunchConfig::linear(1, 128), args)? };
    let event = backend.create_event("event")?;
    other.record(&event)?;
    stream.wait_event(&event)?;
    let pending = output.download_async(stream)?;
    let tensor = DeviceTensor::from_host(backend, &[1.0; 6], &[2, 3])?;
    drop(tensor);
    output.copy_from_buffer(stream, &input)?;
    output.to_vec(&other)?;
    event.synchronize()?;
    drop(pending.wait()?);
    drop((input, output, kernel, module, event, other));
    backend.get_memory_info()?;
    backend.synchronize()
}

#[test]
fn the_program_is_clean() {
    let (rig, backend) = backend();
    let epoch = backend.card().ledger().epoch();
    program(&backend).unwrap();
    assert!(epoch.leaks().is_clean(), "{}", epoch.leaks());
    drop(backend);
    assert_eq!(rig.violations(), [""; 0]);
    assert_eq!(rig.sim.leaks(), []);
}

#[test]
fn every_call_fails_once() {
    let total = {
        let (rig, backend) = backend();
        let before = rig.calls();
        program(&backend).unwrap();
        rig.calls() - before
    };
    assert!(total > 30, "only {total} calls");
    let gives_back = [
        "hipFree",
        "hipHostFree",
        "hipStreamDestroy",
        "hipEventDestroy",
        "hipModuleUnload",
    ];
    // Statuses after which the device goes on, and ones after which it does not.
    for status in [hipErrorOutOfMemory, hipErrorInvalidValue, hipErrorLaunchFailure] {
        for nth in 1..=total {
            let (rig, backend) = backend();
            let epoch = backend.card().ledger().epoch();
            rig.set_faults(FaultPlan::new().any_call(When::Nth(nth), status));
            let result = program(&backend).and_then(|()| backend.synchronize());
            let failed = rig
                .failed()
                .unwrap_or_else(|| panic!("call {nth} of {total} was not made"));
            let error = match result {
                Err(error) => error,
                // The budget does without a figure it can ask for again.
                Ok(()) if failed == "hipMemGetInfo" && status != hipErrorLaunchFailure => continue,
                // It was handled: what was dropped was waited for, and the allocation came through.
                Ok(()) if failed == "hipMalloc" && status == hipErrorOutOfMemory => continue,
                Ok(()) => panic!("{failed} (call {nth}) failed and no error was returned"),
            };
            let out_of_memory = failed == "hipMalloc" && status == hipErrorOutOfMemory;
            assert!(
                error.status() == Some(status) || (out_of_memory && error.is_out_of_memory()),
                "{failed} (call {nth}): {error}"
            );
            let poisoned = backend.is_poisoned().is_some();
            if status == hipErrorLaunchFailure {
                assert!(poisoned, "{failed} (call {nth}) says {status}");
            }
            if poisoned {
                let calls = rig.calls();
                assert!(matches!(program(&backend), Err(HipError::Poisoned { .. })));
                drop(backend);
                assert_eq!(rig.calls(), calls, "no HIP call on a poisoned backend");
                continue;
            }
            // Whatever is left is what the driver refused to take back, and it is marked.
            backend.synchronize().unwrap();
            let report = epoch.leaks();
            if gives_back.contains(&failed) {
                assert!(
                    report.entries.iter().all(|entry| entry.abandoned),
                    "{failed} (call {nth}): {report}"
                );
            } else {
                assert!(report.is_clean(), "{failed} (call {nth}): {report}");
            }
            program(&backend).unwrap_or_else(|error| panic!("after {failed} (call {nth}): {error}"));
            drop(backend);
            let left = usize::from(gives_back.contains(&failed));
            let live = rig.sim.leaks();
            assert_eq!(live.len(), left, "{failed} (call {nth}): {live:?}");
            assert_eq!(rig.violations(), [""; 0], "{failed} (call {nth})");
        }
    }
}

#[test]
fn opening_fails_cleanly_at_every_call() {
    let total = {
        let rig = Rig::with(|_| ());
        rig.open().unwrap();
        rig.calls()
    };
    let mut made = 0;
    for nth in 1..=total {
        let rig = Rig::with_faults(FaultPlan::new().any_call(When::Nth(nth), hipErrorInvalidValue));
        match rig.open() {
            Err(error) => assert_eq!(
                error.status(),
                Some(hipErrorInvalidValue),
                "{:?}: {error}",
                rig.failed()
            ),
            // Budget figures, and what happens when the backend goes.
            Ok(backend) => {
                drop(backend);
                assert!(
                    matches!(
                        rig.failed(),
                        Some("hipMemGetInfo" | "hipStreamQuery" | "hipStreamDestroy")
                    ),
                    "{:?} failed and no error was returned",
                    rig.failed()
                );
                made += 1;
            }
        }
    }
    assert!(made < total / 2, "{made} of {total}");
}

/// A stream that is held until a moment.
type Work = Mutex<Option<(usize, Duration)>>;

/// The simulated clock, which lets the stream go when its moment has come.
struct WorkClock {
    sim: Arc<SimHost>,
    work: Arc<Work>,
}

impl HipClock for WorkClock {
    fn now(&self) -> Duration {
        self.sim.now()
    }
    fn pause(&self, pause: Duration) {
        self.sim.pause(pause);
        let ended = self.work.lock().take_if(|(_, end)| *end <= self.now());
        if let Some((stream, _)) = ended {
            self.sim.hold_stream(std::ptr::without_provenance_mut(stream), false);
        }
    }
}

/// A decoded token is a wait of some milliseconds: pauses that double add up to a third of it.
#[test]
fn the_end_of_a_wait_is_noticed_soon_however_long_it_was() {
    let rig = Rig::with(|config| config.schedule = Schedule::Eager);
    let work = Arc::new(Work::default());
    let clock = WorkClock {
        sim: Arc::clone(&rig.sim),
        work: Arc::clone(&work),
    };
    let provider = rig.provider().with_clock(Arc::new(clock));
    let backend = rig.open_with(provider, PoolOptions::OFF).unwrap();
    let buffer = HipBuffer::from_slice(backend.stream(), &[1u32; 1000], "b").unwrap();
    backend.stream().synchronize().unwrap();
    let stream = rig.last_stream();
    for micros in [20, 300, 2100, 2900, 70_000, 900_000] {
        let time = Duration::from_micros(micros);
        let start = rig.now();
        rig.hold(stream, true);
        *work.lock() = Some((stream, start + time));
        buffer.clear(backend.stream()).unwrap();
        backend.stream().synchronize().unwrap();
        let waited = rig.now() - start;
        // The fill and the calls take some microseconds themselves.
        let most = time + time / 50 + Duration::from_micros(25);
        assert!(time <= waited && waited <= most, "{waited:?} for {time:?}");
    }
}

#[test]
fn a_hang_ends_at_the_deadline_and_poisons() {
    let (rig, backend) = backend();
    let buffer = HipBuffer::from_slice(backend.stream(), &[1u32; 1000], "b").unwrap();
    let stream = rig.last_stream();
    let other = backend.create_stream("other").unwrap();
    rig.hold(stream, true);
    let start = rig.now();
    let mut host = [9u32; 1000];
    let error = buffer.copy_to_host(backend.stream(), &mut host).unwrap_err();
    assert!(
        matches!(&error, HipError::Timeout { waited, .. } if *waited >= backend.deadline()),
        "{error}"
    );
    assert!(
        rig.now() - start < backend.deadline() + Duration::from_millis(10),
        "it polled on"
    );
    assert_eq!(host, [9; 1000], "the driver never saw the slice");

    let calls = rig.calls();
    assert!(matches!(&*backend.is_poisoned().unwrap(), HipError::Timeout { .. }));
    assert!(matches!(other.synchronize(), Err(HipError::Poisoned { .. })));
    assert!(matches!(buffer.to_vec(&other), Err(HipError::Poisoned { .. })));
    assert!(matches!(
        backend.allocate_buffer_safe(1),
        Err(HipError::Poisoned { .. })
    ));
    let card = Arc::clone(backend.card());
    drop((buffer, other, backend));
    assert_eq!(rig.calls(), calls, "no HIP call after the deadline");
    // The driver may still use all of it, so all of it stays: memory, staging, streams.
    assert_eq!(rig.live_memory(), 1);
    assert!(rig.sim.pinned_count() >= 1);
    let left = card.ledger().live();
    assert!(left.iter().all(|entry| entry.abandoned), "{left:?}");
    assert_eq!(left.len(), 1 + rig.sim.pinned_count() + 2, "{left:?}");
    assert_eq!(rig.violations(), [""; 0]);
}

#[test]
fn an_error_in_drop_comes_out_at_the_next_call() {
    let (rig, backend) = backend();
    let buffer = HipBuffer::from_slice(backend.stream(), &[1u8; 8], "b").unwrap();
    backend.synchronize().unwrap();
    rig.set_faults(FaultPlan::new().call("hipFree", When::From(1), hipErrorInvalidDevicePointer));
    drop(buffer);
    rig.set_faults(FaultPlan::new());
    let error = backend.synchronize().unwrap_err();
    assert!(
        matches!(error, HipError::Call { call: "hipFree", status } if status == hipErrorInvalidDevicePointer),
        "{error}"
    );
    // Once.
    backend.synchronize().unwrap();
    let live = backend.card().ledger().live();
    assert!(
        live.iter().any(|entry| entry.abandoned && &*entry.label == "b"),
        "{live:?}"
    );
}

#[test]
fn the_budget_says_no_before_the_driver() {
    let (rig, backend) = backend();
    let safe = backend.safe_alloc_size().unwrap();
    assert!(backend.can_allocate(safe).unwrap());
    assert!(!backend.can_allocate(safe + 1).unwrap());
    let before = rig.count("hipMalloc");
    let error = backend.allocate_buffer_safe(safe + 1).unwrap_err();
    assert!(
        matches!(&error, HipError::OutOfBudget(refused) if refused.requested == Bytes(safe as u64 + 1)),
        "{error}"
    );
    assert_eq!(rig.count("hipMalloc"), before);
    let all = backend.allocate_buffer_safe(safe).unwrap();
    assert!(
        backend.allocate_buffer_safe(1 << 21).is_err(),
        "not 70 % of what is left"
    );
    drop(all);
    let half = backend.allocate_buffer_safe(safe / 2).unwrap();
    let rest = backend.allocate_buffer_safe(safe / 2).unwrap();
    drop((half, rest));
}

#[test]
fn sizes_that_overflow_are_refused() {
    let (rig, backend) = backend();
    let before = rig.count("hipMalloc");
    for len in [usize::MAX, usize::MAX / 4 + 1, isize::MAX as usize / 4 + 1] {
        let error = HipBuffer::<u32>::zeroed(backend.stream(), Elems(len), "huge").unwrap_err();
        assert!(matches!(error, HipError::SizeOverflow { .. }), "{error}");
    }
    let error = DeviceTensor::zeros(&backend, &[usize::MAX, 2]).unwrap_err();
    assert!(matches!(error, HipError::SizeOverflow { .. }), "{error}");
    assert_eq!(rig.count("hipMalloc"), before);
}

/// A handle of null is no handle: as a stream it is HIP's own null stream, as pinned memory it is written to.
#[test]
fn null_after_a_reported_success_is_a_typed_error_and_is_never_used() {
    type Make = fn(&Arc<HipBackend>) -> HipResult<()>;
    let makers: [(&str, Make); 8] = [
        ("hipMalloc", |b| {
            HipBuffer::<f32>::zeroed(b.stream(), Elems(4), "x").map(drop)
        }),
        ("hipHostMalloc", |b| {
            PinnedBuffer::<f32>::zeroed(b, Elems(4), "x").map(drop)
        }),
        ("hipStreamCreateWithFlags", |b| b.create_stream("x").map(drop)),
        ("hipEventCreateWithFlags", |b| b.create_event("x").map(drop)),
        ("hipModuleLoadData", |b| b.load_module(OBJECT, "x").map(drop)),
        ("hipModuleGetFunction", |b| {
            b.load_module(OBJECT, "x")?.kernel("scale").map(drop)
        }),
        ("hipStreamEndCapture", |b| b.stream().capture("x")?.finish().map(drop)),
        ("hipGraphInstantiate", |b| {
            b.stream().capture("x")?.finish()?.instantiate().map(drop)
        }),
    ];
    for (name, make) in makers {
        let (rig, backend) = backend();
        make(&backend).unwrap_or_else(|error| panic!("{name}: {error}"));
        let epoch = backend.card().ledger().epoch();
        rig.set_faults(FaultPlan::new().gives(name, When::Nth(1), 0));
        let error = make(&backend).expect_err(name);
        let cause = match &error {
            HipError::Graph(GraphError::Failed { cause }) => cause,
            error => error,
        };
        assert!(
            matches!(cause, HipError::NullHandle { call } if *call == name),
            "{name}: {error}"
        );
        assert!(cause.to_string().contains("cargo xtask doctor"), "{cause}");
        // Nothing is booked, nothing is given back that never was, and what works goes on.
        assert!(epoch.leaks().is_clean(), "{name}: {}", epoch.leaks());
        backend.synchronize().unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(backend);
        assert_eq!(rig.violations(), [""; 0], "{name}");
    }
}

#[test]
fn a_provider_that_gives_a_null_stream_is_given_no_work() {
    let rig = Rig::with_faults(FaultPlan::new().gives("hipStreamCreateWithFlags", When::From(1), 0));
    // The first work makes the stream.
    let backend = rig.open().expect("no work yet");
    is_given_no_stream(&backend);
}

/// Work on the backend's stream ends with the error of a driver that makes none.
fn is_given_no_stream(backend: &HipBackend) {
    let error = HipBuffer::<u8>::from_slice(backend.stream(), &[1], "b")
        .map(drop)
        .unwrap_err();
    assert!(
        matches!(error, HipError::NullHandle { call } if call == "hipStreamCreateWithFlags"),
        "{error}"
    );
}

/// Some drivers are slower with each stream that they have made: for a stream without work the driver makes nothing.
#[test]
fn a_backends_stream_is_made_by_its_first_work() {
    let rig = Rig::with_faults(FaultPlan::new().gives("hipStreamCreateWithFlags", When::From(2), 0));
    let backend = rig.open().expect("no work yet");
    let own = backend.with_own_stream("own");
    assert!(backend.stream().query().expect("nothing to wait for"));
    HipBuffer::<u8>::from_slice(own.stream(), &[1], "first").expect("the first stream");
    backend.stream().synchronize().expect("nothing to wait for");
    is_given_no_stream(&backend);
}

/// One user of a stream after the other; two at a time have two.
#[test]
fn a_leased_stream_is_nobody_elses_until_it_is_given_back() {
    let rig = Rig::with_faults(FaultPlan::new());
    let backend = rig.open().expect("a device");
    let first = backend.lease_stream("first");
    assert_eq!(first.backend().stream().id(), backend.stream().id());
    let second = backend.lease_stream("second");
    assert_ne!(second.backend().stream().id(), backend.stream().id());
    let of_second = second.backend().lease_stream("third");
    assert_ne!(of_second.backend().stream().id(), second.backend().stream().id());
    drop(first);
    assert_eq!(
        backend.lease_stream("fourth").backend().stream().id(),
        backend.stream().id()
    );
    let id = second.backend().stream().id();
    let kept = Arc::clone(second.backend());
    drop(second);
    assert_eq!(kept.lease_stream("fifth").backend().stream().id(), id);
}
