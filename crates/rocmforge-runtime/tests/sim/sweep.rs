//! The error sweep: each public entry point of the runtime, and a whole kernel launch, with each of the HIP calls it makes
//! failing in turn. Nothing panics, an error is returned, the ledger is exact, and the machine has everything back.

use super::{codes, sources};
use rocmforge_hip_sys::*;
use rocmforge_kernels::{KernelError, Kernels, Pack};
use rocmforge_memory::{HostBudget, HostReading};
use rocmforge_runtime::*;
use rocmforge_sim::{CardConfig, FaultPlan, LaunchFault, SimConfig, SimHost, When};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Statuses after which the device goes on, one after which it does not, and one that this version of HIP does not have.
const STATUSES: [hipError_t; 4] = [
    hipErrorOutOfMemory,
    hipErrorInvalidValue,
    hipErrorLaunchFailure,
    hipError_t(4242),
];
/// Calls that give something back to the driver.
const GIVES_BACK: [&str; 7] = [
    "hipFree",
    "hipHostFree",
    "hipStreamDestroy",
    "hipEventDestroy",
    "hipModuleUnload",
    "hipGraphDestroy",
    "hipGraphExecDestroy",
];
const N: usize = 100;

fn machine(faults: FaultPlan) -> Arc<SimHost> {
    SimHost::new(SimConfig {
        cards: vec![CardConfig::with_vram(Bytes(1 << 30))],
        faults,
        ..SimConfig::default()
    })
}

fn open(sim: &Arc<SimHost>) -> HipResult<Arc<HipBackend>> {
    let provider = Provider::new(sim.api())
        .with_clock(sim.clock())
        // Its own: what thousands of backends leave to their simulated drivers would fill the machine's.
        .with_host(HostBudget::new(HostReading::default()))
        .with_readings(Box::new(sim.readings(0)));
    let options = BackendOptions {
        policy: Policy::tests(),
        deadline: Duration::from_millis(50),
        ..BackendOptions::default()
    };
    HipBackend::open(provider, options)
}

/// What the entry points work on, made before anything fails.
struct World {
    x: HipBuffer<f32>,
    y: HipBuffer<f32>,
    pinned: Option<PinnedBuffer<f32>>,
    tensor: DeviceTensor,
    start: HipEvent,
    end: HipEvent,
    module: HipModule,
    kernel: HipKernel,
    graph: HipGraph,
    exec: HipGraphExec,
    input: GraphPinned<f32>,
    other: HipStream,
    backend: Arc<HipBackend>,
}

impl World {
    fn new(backend: &Arc<HipBackend>) -> HipResult<Self> {
        let stream = backend.stream();
        let other = backend.create_stream("other")?;
        let x = HipBuffer::from_slice(stream, &[1.5f32; N], "x")?;
        let y = HipBuffer::zeroed(&other, Elems(N), "y")?;
        let (start, end) = (
            backend.create_timing_event("start")?,
            backend.create_timing_event("end")?,
        );
        stream.record(&start)?;
        stream.record(&end)?;
        let module = backend.load_module(scale_object(), "scale")?;
        let kernel = module.kernel("scale")?;
        let (graph, input) = {
            let data = PinnedBuffer::zeroed(backend, Elems(N), "input")?;
            let capture = other.capture("upload")?;
            let input = capture.upload(&other, &x, data)?;
            (capture.finish()?, input)
        };
        let world = Self {
            exec: graph.instantiate()?,
            graph,
            input,
            tensor: DeviceTensor::from_host(backend, &[1.0; 6], &[2, 3])?,
            pinned: Some(PinnedBuffer::zeroed(backend, Elems(N), "pinned")?),
            backend: Arc::clone(backend),
            x,
            y,
            start,
            end,
            module,
            kernel,
            other,
        };
        // Work on one stream that the other has to wait for.
        world.y.fill_bytes(&world.other, 0)?;
        Ok(world)
    }

    fn launch(&self) -> HipResult<()> {
        let args = LaunchArgs::new()
            .buffer(&self.x)
            .out(&self.y)
            .value(N as u64)
            .value(2.0f32);
        // SAFETY: both buffers have the `N` elements that its argument names.
        unsafe {
            self.backend
                .stream()
                .launch(&self.kernel, LaunchConfig::linear(1, 256), args)
        }
    }
}

pub(crate) fn scale_object() -> &'static [u8] {
    static OBJECT: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
        let pack = Pack::embedded("gfx1100").expect("there is a pack");
        pack.object("elementwise")
            .expect("a readable one")
            .expect("it has the family")
    });
    &OBJECT
}

fn hip(error: KernelError) -> HipError {
    match error {
        KernelError::Hip(error) => error,
        other => panic!("no error of the driver: {other}"),
    }
}

/// The file and the function; after a comma, in which case.
type Entry = (&'static str, fn(&mut World) -> HipResult<()>);

/// Every public function that can fail, as one call each; what it makes is dropped, and what a drop had to keep comes out.
/// `every_public_function_that_can_fail_is_here` holds the list to the sources.
const ENTRIES: &[Entry] = &[
    ("backend create_stream", |w| w.backend.create_stream("s").map(drop)),
    ("backend create_event", |w| w.backend.create_event("e").map(drop)),
    ("backend create_timing_event", |w| {
        w.backend.create_timing_event("e").map(drop)
    }),
    ("backend load_module", |w| {
        w.backend.load_module(scale_object(), "m").map(drop)
    }),
    ("module kernel", |w| w.module.kernel("scale").map(drop)),
    ("compat get_memory_info", |w| w.backend.get_memory_info().map(drop)),
    ("compat can_allocate", |w| w.backend.can_allocate(1).map(drop)),
    ("compat safe_alloc_size", |w| w.backend.safe_alloc_size().map(drop)),
    ("compat allocate_buffer_safe", |w| {
        w.backend.allocate_buffer_safe(4096).map(drop)
    }),
    ("compat copy_from_device_safe", |w| {
        w.backend.copy_from_device_safe(&w.y, &mut [0.0; N])
    }),
    ("backend trim_memory", |w| w.backend.trim_memory(Bytes(0)).map(drop)),
    ("backend synchronize", |w| w.backend.synchronize()),
    ("backend ensure_device", |w| w.backend.ensure_device()),
    ("backend thread_device", |w| w.backend.thread_device().map(drop)),
    ("compat verify_device", |w| w.backend.verify_device().map(drop)),
    ("stream query", |w| w.other.query().map(drop)),
    ("stream synchronize", |w| w.other.synchronize()),
    ("stream record", |w| w.other.record(&w.start)),
    ("stream wait_event", |w| w.other.wait_event(&w.end)),
    ("event query", |w| w.end.query().map(drop)),
    ("event synchronize", |w| w.end.synchronize()),
    ("event elapsed", |w| {
        w.end.synchronize()?;
        w.start.elapsed(&w.end).map(drop)
    }),
    ("buffer zeroed", |w| {
        HipBuffer::<u32>::zeroed(w.backend.stream(), Elems(N), "z").map(drop)
    }),
    ("buffer uninit", |w| {
        // SAFETY: nothing reads it.
        unsafe { HipBuffer::<u32>::uninit(w.backend.stream(), Elems(N), "u") }.map(drop)
    }),
    ("buffer from_slice", |w| {
        HipBuffer::from_slice(w.backend.stream(), &[7u32; N], "f").map(drop)
    }),
    ("buffer clear", |w| w.x.clear(&w.other)),
    ("buffer fill_bytes", |w| w.x.fill_bytes(&w.other, 3)),
    ("buffer copy_from_buffer", |w| {
        w.x.copy_from_buffer(w.backend.stream(), &w.y)
    }),
    ("buffer view", |w| w.x.view(1..3).map(drop)),
    ("buffer cast", |w| w.x.cast::<u32>().map(drop)),
    ("buffer to_vec", |w| w.y.to_vec(w.backend.stream()).map(drop)),
    ("copy copy_from_host", |w| w.x.copy_from_host(&w.other, &[0.5; N])),
    ("copy copy_to_host", |w| {
        w.y.copy_to_host(w.backend.stream(), &mut [0.0; N])
    }),
    ("copy copy_from_host, large", |w| {
        let data = vec![5u32; (5 << 18) + 3];
        let buffer = HipBuffer::from_slice(&w.other, &data, "large")?;
        buffer.to_vec(w.backend.stream()).map(drop)
    }),
    ("pinned zeroed", |w| {
        PinnedBuffer::<u8>::zeroed(&w.backend, Elems(N), "p").map(drop)
    }),
    ("pinned wait, of download_async", |w| {
        w.y.download_async(w.backend.stream())?.wait().map(drop)
    }),
    ("pinned download_async", |w| {
        w.y.download_async(w.backend.stream()).map(drop)
    }),
    ("pinned is_done", |w| w.y.download_async(&w.other)?.is_done().map(drop)),
    ("pinned upload_async", |w| {
        let data = w.pinned.take().expect("once");
        w.x.upload_async(&w.other, data)?.wait().map(drop)
    }),
    ("launch launch", |w| w.launch()),
    ("launch launch, and drop everything", |w| {
        w.launch()?;
        let kernel = w.module.kernel("scale")?;
        drop(kernel);
        let buffer = HipBuffer::<f32>::zeroed(&w.other, Elems(N), "dropped")?;
        buffer.copy_from_buffer(w.backend.stream(), &w.y)
    }),
    ("capture capture", |w| w.other.capture("thrown away").map(drop)),
    ("capture finish", |w| {
        let capture = w.other.capture("clear")?;
        w.x.clear(&w.other)?;
        capture.finish().map(drop)
    }),
    ("capture finish, of two streams and a kernel", |w| {
        let (stream, fork) = (w.backend.stream(), w.backend.create_event("fork")?);
        let capture = stream.capture("fork")?;
        w.launch()?;
        stream.record(&fork)?;
        w.other.wait_event(&fork)?;
        // Has to wait for the kernel by an event of the runtime's.
        w.y.clear(&w.other)?;
        w.other.record(&fork)?;
        stream.wait_event(&fork)?;
        let exec = capture.finish()?.instantiate()?;
        exec.launch(&w.other)
    }),
    ("capture finish, unjoined", |w| {
        let fork = w.backend.create_event("fork")?;
        let capture = w.backend.stream().capture("fork")?;
        w.backend.stream().record(&fork)?;
        w.other.wait_event(&fork)?;
        w.y.clear(&w.other)?;
        match capture.finish() {
            Err(HipError::Graph(GraphError::Unjoined { .. })) => Ok(()),
            other => other.map(drop),
        }
    }),
    ("capture upload", |w| {
        let data = w.pinned.take().expect("once");
        let capture = w.other.capture("upload")?;
        capture.upload(&w.other, &w.x, data)?;
        capture.finish().map(drop)
    }),
    ("capture download", |w| {
        let data = w.pinned.take().expect("once");
        let capture = w.other.capture("download")?;
        capture.download(&w.other, &w.x, data)?;
        capture.finish().map(drop)
    }),
    ("exec instantiate", |w| w.graph.instantiate().map(drop)),
    ("exec launch", |w| w.exec.launch(w.backend.stream())),
    ("exec launch, and dropped", |w| w.graph.instantiate()?.launch(&w.other)),
    ("exec update", |w| {
        w.exec.launch(w.backend.stream())?;
        w.exec.update(&w.graph)
    }),
    ("graph_pinned copy_from_slice", |w| {
        w.exec.launch(w.backend.stream())?;
        w.input.copy_from_slice(&[1.0; N])
    }),
    ("graph_pinned copy_to_slice", |w| {
        w.exec.launch(w.backend.stream())?;
        w.input.copy_to_slice(&mut [1.0; N])
    }),
    ("graph_pinned to_vec", |w| {
        w.exec.launch(w.backend.stream())?;
        w.input.to_vec().map(drop)
    }),
    ("tensor zeros", |w| DeviceTensor::zeros(&w.backend, &[3, 5]).map(drop)),
    ("compat empty_safe", |w| {
        DeviceTensor::empty_safe(&w.backend, &[3, 5]).map(drop)
    }),
    ("tensor from_host", |w| {
        DeviceTensor::from_host(&w.backend, &[1.0; 4], &[4]).map(drop)
    }),
    ("tensor from_mmap", |w| {
        DeviceTensor::from_mmap(&w.backend, &[0; 16], 0..16, &[2, 2]).map(drop)
    }),
    ("tensor from_buffer", |w| {
        DeviceTensor::from_buffer(&w.backend, w.x.clone(), &[N]).map(drop)
    }),
    ("tensor reshape", |w| w.tensor.reshape(&[6]).map(drop)),
    ("tensor to_host", |w| w.tensor.to_host().map(drop)),
    ("tensor copy_from_host", |w| w.tensor.copy_from_host(&[2.0; 6])),
    ("launch launch, a whole kernel", |w| {
        let (x, y) = (w.tensor.buffer(), HipBuffer::zeroed(&w.other, Elems(6), "soft")?);
        let kernels = Kernels::load(&w.backend).map_err(hip)?;
        kernels.softmax(w.backend.stream(), x, &y, 2, 3, 1.0).map_err(hip)?;
        y.to_vec(&w.other).map(drop)
    }),
];

/// An entry point, then whatever a destructor kept.
fn run(entry: &Entry, world: &mut World) -> HipResult<()> {
    let result = (entry.1)(world);
    result.and_then(|()| world.backend.synchronize())
}

/// Calls that an entry point makes when nothing fails.
fn calls_of(entry: &Entry) -> u64 {
    let sim = machine(FaultPlan::new());
    let backend = open(&sim).expect("it opens");
    let mut world = World::new(&backend).expect("nothing fails");
    let before = sim.counters().calls;
    run(entry, &mut world).unwrap_or_else(|error| panic!("{}: {error}", entry.0));
    let calls = sim.counters().calls - before;
    let epoch = backend.card().ledger().epoch();
    drop((world, backend));
    assert!(epoch.leaks().is_clean(), "{}: {}", entry.0, epoch.leaks());
    assert_back(&sim, 0, entry.0);
    calls
}

/// The machine has everything back but `kept` things, and saw nothing wrong.
fn assert_back(sim: &SimHost, kept: usize, what: &str) {
    let reports: Vec<String> = sim.reports().iter().map(ToString::to_string).collect();
    assert_eq!(reports, [""; 0], "{what}");
    let left = sim.allocation_stats(0).live as usize + sim.pinned_count();
    assert!(left <= kept, "{what}: {left} allocations are left");
}

/// One entry point with one fault. What the fault struck.
fn strike(entry: &Entry, plan: FaultPlan, status: hipError_t, what: &str) -> Option<&'static str> {
    let sim = machine(FaultPlan::new());
    let backend = open(&sim).expect("it opens");
    let card = Arc::clone(backend.card());
    let epoch = card.ledger().epoch();
    let mut world = World::new(&backend).expect("nothing fails yet");
    sim.set_fault_plan(plan);
    let result = run(entry, &mut world);
    let fired = sim.fired_faults();
    sim.set_fault_plan(FaultPlan::new());
    let Some(fault) = fired.first() else {
        assert!(result.is_ok(), "{what}: nothing failed, and yet {result:?}");
        return None;
    };
    let api = fault.api;
    let what = format!("{what}, which is {api}");
    match &result {
        Err(error) => {
            let refused = status == hipErrorGraphExecUpdateFailure
                && matches!(error, HipError::Graph(GraphError::Refused { .. }));
            let expected = error.status() == Some(status)
                || (status == hipErrorOutOfMemory && error.is_out_of_memory())
                || refused;
            assert!(expected, "{what}: {error}");
            assert!(!error.to_string().is_empty());
        }
        // What was dropped was waited for, and the second attempt came through.
        Ok(()) => assert!(
            fault.api == "hipMalloc" && status == hipErrorOutOfMemory,
            "{what}: it failed and no error was returned"
        ),
    }
    let poisoned = backend.is_poisoned().is_some();
    let calls = sim.counters().calls;
    if !poisoned {
        backend
            .synchronize()
            .unwrap_or_else(|error| panic!("{what}: then {error}"));
        // The backend goes on as if nothing had happened.
        let again = HipBuffer::from_slice(&world.other, &[3u16; 9], "again").and_then(|b| b.to_vec(backend.stream()));
        assert_eq!(again.unwrap_or_else(|error| panic!("{what}: then {error}")), [3u16; 9]);
    }
    drop((world, backend));
    let leaks = epoch.leaks();
    if poisoned {
        assert_eq!(sim.counters().calls, calls, "{what}: a poisoned backend calls nothing");
        assert!(leaks.entries.iter().all(|entry| entry.abandoned), "{what}: {leaks}");
        assert_back(&sim, usize::MAX, &what);
        return Some(api);
    }
    let kept = usize::from(GIVES_BACK.contains(&fault.api));
    assert!(
        leaks.entries.len() == kept && leaks.entries.iter().all(|entry| entry.abandoned),
        "{what}: {leaks}"
    );
    assert_back(&sim, kept, &what);
    Some(api)
}

#[test]
fn every_call_of_every_entry_point_fails_in_turn() {
    let mut struck = 0;
    let mut apis: BTreeSet<&str> = opening_calls();
    for entry in ENTRIES {
        let calls = calls_of(entry);
        for nth in 1..=calls {
            let attempt = |status| {
                let what = format!("{}: call {nth} of {calls} answers {status}", entry.0);
                let plan = FaultPlan::new().any_call(When::Nth(nth), status);
                strike(entry, plan, status, &what).unwrap_or_else(|| panic!("{what}: it was not made"))
            };
            let api = STATUSES.map(attempt)[0];
            struck += STATUSES.len();
            for status in codes::of(api).iter().filter(|status| !STATUSES.contains(status)) {
                attempt(*status);
                struck += 1;
            }
            apis.insert(api);
        }
    }
    assert!(struck > 4000, "only {struck}");
    let unstruck: Vec<String> = sources::hip_calls()
        .into_iter()
        .filter(|api| !apis.contains(api.as_str()) && !SECOND_FAULTS.contains(&api.as_str()))
        .collect();
    assert_eq!(unstruck, [""; 0], "functions that no fault of the sweep has struck");
}

/// What is called only when something else has failed before; each has a test below.
const SECOND_FAULTS: [&str; 2] = ["hipStreamIsCapturing", "hipGetDeviceProperties"];

/// What opening a backend calls.
fn opening_calls() -> BTreeSet<&'static str> {
    let sim = machine(FaultPlan::new());
    open(&sim).unwrap();
    let fails = |nth| {
        let sim = machine(FaultPlan::new().any_call(When::Nth(nth), hipErrorInvalidValue));
        let _ = open(&sim);
        sim.fired_faults().first().map(|fault| fault.api)
    };
    (1..=sim.counters().calls).filter_map(fails).collect()
}

#[test]
fn every_public_function_that_can_fail_is_here() {
    // What needs no backend, or makes one: `opening_fails_cleanly_at_every_call` and `one_device_that_cannot_be_read`; the AMD
    // library: tests/gpu and rocmforge-hip-sys.
    let elsewhere = [
        "backend open",
        "backend devices",
        "backend new_checked",
        "provider amd",
        "geometry validate_launch_config",
    ];
    let swept: BTreeSet<&str> = ENTRIES
        .iter()
        .map(|(name, _)| name.split(',').next().unwrap_or(name))
        .chain(elsewhere)
        .collect();
    let public = sources::fallible_functions();
    assert!(public.len() > 55, "{public:?}");
    let missing: Vec<&String> = public.iter().filter(|name| !swept.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "no entry of the sweep calls {missing:?}");
    let gone: Vec<&&str> = swept.iter().filter(|name| !public.contains(**name)).collect();
    assert!(
        gone.is_empty(),
        "the sweep names {gone:?}, which is no public fallible function"
    );
}

#[test]
fn a_capture_that_fails_twice_ends_all_the_same() {
    for first in [hipErrorOutOfMemory, hipErrorStreamCaptureInvalidated] {
        for api in ["hipStreamIsCapturing", "hipStreamBeginCapture", "hipGraphDestroy"] {
            for status in STATUSES.iter().chain(codes::of(api)) {
                let sim = machine(FaultPlan::new());
                let backend = open(&sim).unwrap();
                let card = Arc::clone(backend.card());
                let world = World::new(&backend).unwrap();
                let capture = world.other.capture("fails").unwrap();
                let plan =
                    FaultPlan::new()
                        .call("hipStreamEndCapture", When::Nth(1), first)
                        .call(api, When::Nth(1), *status);
                sim.set_fault_plan(plan);
                let error = capture.finish().unwrap_err();
                assert_eq!(error.status(), Some(first), "{api} {status}: {error}");
                sim.set_fault_plan(FaultPlan::new());
                if backend.is_poisoned().is_none() {
                    // What the second fault was comes out, if anybody could care; then everything works.
                    let _ = backend.synchronize();
                    world.x.clear(&world.other).unwrap();
                    world.other.synchronize().unwrap();
                }
                drop((world, backend));
                assert!(
                    card.ledger().live().iter().all(|entry| entry.abandoned),
                    "{api} {status}"
                );
            }
        }
    }
}

#[test]
fn a_library_without_the_new_device_properties_is_asked_for_the_old_ones() {
    let newer = || FaultPlan::new().call("hipGetDevicePropertiesR0600", When::From(1), hipErrorNotSupported);
    let sim = machine(newer());
    assert_eq!(open(&sim).unwrap().device().arch, "gfx1100");
    for status in STATUSES {
        let sim = machine(newer().call("hipGetDeviceProperties", When::Nth(1), status));
        assert_eq!(open(&sim).unwrap_err().status(), Some(status));
        assert_back(&sim, 0, "open");
    }
}

#[test]
fn errors_that_show_late_are_returned_all_the_same() {
    let mut struck = 0;
    for entry in ENTRIES {
        for api in [
            "hipMemcpyAsync",
            "hipMemsetAsync",
            "hipModuleLaunchKernel",
            "hipEventRecord",
        ] {
            for status in [hipErrorInvalidValue, hipErrorIllegalAddress] {
                let what = format!("{}: the first {api} answers {status} late", entry.0);
                let plan = FaultPlan::new().late(api, When::Nth(1), status);
                struck += usize::from(strike(entry, plan, status, &what).is_some());
            }
        }
    }
    assert!(struck > 40, "only {struck}");
}

#[test]
fn launches_that_crash_or_hang_are_reported_at_the_next_wait() {
    for (fault, status) in [
        (LaunchFault::IllegalAddress, Some(hipErrorIllegalAddress)),
        (LaunchFault::Fails, Some(hipErrorLaunchFailure)),
        (LaunchFault::Hangs, None),
    ] {
        for version in [rocmforge_sim::HipVersion::Hip6, rocmforge_sim::HipVersion::Hip7] {
            let sim = SimHost::new(SimConfig {
                cards: vec![CardConfig::with_vram(Bytes(1 << 30))],
                hip_version: version,
                faults: FaultPlan::new().launch(When::Nth(1), fault),
                ..SimConfig::default()
            });
            let backend = open(&sim).unwrap();
            let world = World::new(&backend).unwrap();
            world.launch().unwrap();
            let error = backend.synchronize().unwrap_err();
            match status {
                Some(status) => assert_eq!(error.status(), Some(status), "{error}"),
                None => assert!(matches!(error, HipError::Timeout { .. }), "{error}"),
            }
            assert!(matches!(world.launch(), Err(HipError::Poisoned { .. })));
            let calls = sim.counters().calls;
            drop((world, backend));
            assert_eq!(sim.counters().calls, calls);
            assert!(sim.reports().is_empty());
        }
    }
}

#[test]
fn a_lost_device_ends_every_entry_point_with_an_error() {
    // HIP documents no status for it, so any will do, also one after which a device usually goes on.
    for status in [hipErrorUnknown, hipErrorNoDevice, hipErrorOutOfMemory] {
        for entry in ENTRIES {
            let sim = machine(FaultPlan::new());
            let backend = open(&sim).unwrap();
            let epoch = backend.card().ledger().epoch();
            let mut world = World::new(&backend).unwrap();
            sim.set_fault_plan(FaultPlan::new().device_lost(When::Nth(1), status));
            let error = run(entry, &mut world).expect_err(entry.0);
            assert!(
                error.status() == Some(status) || error.is_out_of_memory(),
                "{}: {error}",
                entry.0
            );
            drop((world, backend));
            let leaks = epoch.leaks();
            assert!(
                leaks.entries.iter().all(|entry| entry.abandoned),
                "{}: {leaks}",
                entry.0
            );
            assert!(!leaks.entries.is_empty(), "nothing could be given back");
        }
    }
}

#[test]
fn opening_fails_cleanly_at_every_call() {
    let sim = machine(FaultPlan::new());
    open(&sim).unwrap();
    let calls = sim.counters().calls;
    let mut refused = 0;
    for nth in 1..=calls {
        for status in STATUSES {
            let sim = machine(FaultPlan::new().any_call(When::Nth(nth), status));
            let opened = open(&sim);
            let api = sim.fired_faults().first().map(|fault| fault.api);
            match opened {
                Err(error) => {
                    refused += 1;
                    assert_eq!(error.status(), Some(status), "{api:?}: {error}");
                }
                // The end of the backend, when no caller is left to get the error: the ledger keeps the mark.
                Ok(backend) => {
                    let card = Arc::clone(backend.card());
                    drop(backend);
                    let api = sim.fired_faults().first().map(|fault| fault.api);
                    assert!(matches!(api, Some("hipStreamQuery" | "hipStreamDestroy")), "{api:?}");
                    let left = card.ledger().live();
                    assert!(left.len() == 1 && left[0].abandoned, "{api:?}: {left:?}");
                }
            }
            assert_back(&sim, 0, "open");
        }
    }
    assert!(refused > 60, "{refused}");
}

#[test]
fn what_the_last_frees_cannot_give_back_is_a_leak_that_the_lease_sees() {
    for api in ["hipHostFree", "hipStreamDestroy"] {
        let sim = machine(FaultPlan::new());
        let backend = open(&sim).unwrap();
        let card = Arc::clone(backend.card());
        let epoch = card.ledger().epoch();
        let buffer = HipBuffer::from_slice(backend.stream(), &[1u8; 9], "b").unwrap();
        drop(buffer);
        backend.synchronize().unwrap();
        sim.set_fault_plan(FaultPlan::new().call(api, When::From(1), hipErrorInvalidValue));
        drop(backend);
        assert_eq!(sim.fired_faults().len(), 1, "{api}");
        let leaks = epoch.leaks();
        assert!(
            leaks.entries.len() == 1 && leaks.entries[0].abandoned && leaks.to_string().contains(api),
            "{api}: the staging memory and the stream were meant to live on, not to outlive the backend: {leaks}"
        );
    }
}

#[test]
fn one_device_that_cannot_be_read_hides_no_other() {
    let provider = |sim: &Arc<SimHost>| Provider::new(sim.api()).with_clock(sim.clock());
    let list = |sim: &Arc<SimHost>| HipBackend::devices(&provider(sim), Duration::from_secs(1));
    let sim = SimHost::new(SimConfig::with_cards(3));
    let before = sim.counters().calls;
    assert_eq!(list(&sim).unwrap().len(), 3);
    let calls = sim.counters().calls - before;
    for nth in 3..=calls {
        for status in STATUSES {
            let plan = FaultPlan::new().any_call(When::Nth(nth), status);
            let sim = SimHost::new(SimConfig {
                faults: plan,
                ..SimConfig::with_cards(3)
            });
            let found = list(&sim).unwrap_or_else(|error| panic!("call {nth} answers {status}: {error}"));
            let mut ordinals: Vec<i32> = found.iter().map(|device| device.ordinal).collect();
            ordinals.dedup();
            assert_eq!(ordinals.len(), 2, "call {nth} answers {status}: {ordinals:?}");
        }
    }
    // None at all is an error, with the first one's reason.
    let plan = FaultPlan::new().call("hipDeviceGetName", When::From(1), hipErrorInvalidValue);
    sim.set_fault_plan(plan);
    assert_eq!(list(&sim).unwrap_err().status(), Some(hipErrorInvalidValue));
}
