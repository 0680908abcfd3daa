//! Graphs built by hand.

use crate::support::*;
use hip::*;
use rocmforge_sim::{HostAddresses, ReportKind, Schedule, SimHost};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) fn graph(sim: &SimHost) -> hipGraph_t {
    let mut graph = null_mut();
    answers!(hipSuccess, sim.hipGraphCreate(&raw mut graph, 0));
    graph
}

pub(super) fn instantiate(sim: &SimHost, graph: hipGraph_t) -> hipGraphExec_t {
    let mut exec = null_mut();
    answers!(hipSuccess, sim.hipGraphInstantiateWithFlags(&raw mut exec, graph, 0));
    exec
}

pub(super) fn run(sim: &SimHost, exec: hipGraphExec_t) {
    let stream = stream(sim);
    answers!(hipSuccess, sim.hipGraphLaunch(exec, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
}

pub(super) fn fill(dst: *mut c_void, value: u32, size: usize) -> hipMemsetParams {
    hipMemsetParams {
        dst,
        elementSize: 1,
        height: 1,
        pitch: 0,
        value,
        width: size,
    }
}

pub(super) fn add_fill(
    sim: &SimHost,
    graph: hipGraph_t,
    after: &[hipGraphNode_t],
    params: hipMemsetParams,
) -> hipGraphNode_t {
    let mut node = null_mut();
    let (list, n) = (after.as_ptr(), after.len());
    answers!(
        hipSuccess,
        sim.hipGraphAddMemsetNode(&raw mut node, graph, list, n, &raw const params)
    );
    node
}

fn add_copy(
    sim: &SimHost,
    graph: hipGraph_t,
    after: &[hipGraphNode_t],
    (dst, src): (*mut c_void, *mut c_void),
    size: usize,
) -> hipGraphNode_t {
    let mut node = null_mut();
    let (list, n) = (after.as_ptr(), after.len());
    answers!(
        hipSuccess,
        sim.hipGraphAddMemcpyNode1D(&raw mut node, graph, list, n, dst, src, size, hipMemcpyDefault)
    );
    node
}

#[test]
fn nodes_run_in_the_order_of_their_edges_under_every_schedule() {
    for seed in 0..16 {
        let sim = machine_with(|config| (config.schedule, config.strict) = (Schedule::Random(seed), true));
        let (graph, x, y) = (graph(&sim), malloc(&sim, N), malloc(&sim, 2 * N));
        // Made in an order that is not that of the edges.
        let copy = add_copy(&sim, graph, &[], (y, x), N);
        let first = add_fill(&sim, graph, &[], fill(x, 3, N));
        let other = add_fill(&sim, graph, &[], fill(at(y, N), 4, N));
        let (from, to) = ([first, other], [copy, copy]);
        answers!(
            hipSuccess,
            sim.hipGraphAddDependencies(graph, from.as_ptr(), to.as_ptr(), 2)
        );
        answers!(
            hipErrorInvalidValue,
            sim.hipGraphAddDependencies(graph, from.as_ptr(), to.as_ptr(), 1)
        );
        let exec = instantiate(&sim, graph);
        run(&sim, exec);
        let found = download(&sim, y, 2 * N);
        assert_eq!((found[0], found[N - 1], found[N]), (3, 3, 4));
        clean(&sim);
    }
}

#[test]
fn a_graph_says_what_is_in_it() {
    let sim = machine();
    let (graph, x) = (graph(&sim), malloc(&sim, N));
    let first = add_fill(&sim, graph, &[], fill(x, 1, N));
    let second = add_fill(&sim, graph, &[first], fill(x, 2, N));
    let mut last = null_mut();
    let after = [first, second];
    answers!(
        hipSuccess,
        sim.hipGraphAddEmptyNode(&raw mut last, graph, after.as_ptr(), 2)
    );
    let (mut nodes, mut count) = ([null_mut(); 5], 0);
    let (list, n) = (nodes.as_mut_ptr(), &raw mut count);
    answers!(hipSuccess, sim.hipGraphGetNodes(graph, null_mut(), n));
    assert_eq!(count, 3);
    count = 5;
    answers!(hipSuccess, sim.hipGraphGetNodes(graph, list, n));
    assert_eq!((nodes, count), ([first, second, last, null_mut(), null_mut()], 3));
    answers!(hipSuccess, sim.hipGraphGetRootNodes(graph, null_mut(), n));
    assert_eq!(count, 1);
    let mut ends = [null_mut(); 3];
    answers!(hipSuccess, sim.hipGraphGetEdges(graph, null_mut(), null_mut(), n));
    assert_eq!(count, 3);
    answers!(hipSuccess, sim.hipGraphGetEdges(graph, list, ends.as_mut_ptr(), n));
    assert_eq!(
        (nodes[..3].to_vec(), ends),
        (vec![first, first, second], [second, last, last])
    );
    answers!(hipErrorInvalidValue, sim.hipGraphGetEdges(graph, list, null_mut(), n));
    answers!(hipSuccess, sim.hipGraphNodeGetDependencies(last, null_mut(), n));
    assert_eq!(count, 2);
    answers!(hipSuccess, sim.hipGraphNodeGetDependentNodes(first, null_mut(), n));
    assert_eq!(count, 2);
    let mut kind = 99;
    answers!(hipSuccess, sim.hipGraphNodeGetType(last, &raw mut kind));
    assert_eq!(kind, hipGraphNodeTypeEmpty);
    let mut params = fill(null_mut(), 0, 0);
    answers!(hipSuccess, sim.hipGraphMemsetNodeGetParams(second, &raw mut params));
    assert_eq!((params.dst, params.value, params.width), (x, 2, N));
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphMemsetNodeGetParams(last, &raw mut params)
    );
    answers!(hipSuccess, sim.hipGraphDestroyNode(second));
    answers!(hipSuccess, sim.hipGraphNodeGetDependencies(last, null_mut(), n));
    assert_eq!(count, 1);
    clean(&sim);
    answers!(hipErrorInvalidValue, sim.hipGraphNodeGetType(second, &raw mut kind));
    only_report(&sim, ReportKind::StaleHandle);
    let folder = std::env::temp_dir().join(format!("rocmforge-graph-{}.dot", std::process::id()));
    let path = std::ffi::CString::new(folder.to_str().expect("UTF-8")).expect("no NUL");
    answers!(hipSuccess, sim.hipGraphDebugDotPrint(graph, path.as_ptr(), 0));
    let text = std::fs::read_to_string(&folder).expect("written");
    std::fs::remove_file(&folder).expect("it is there");
    assert!(text.contains("node0 -> node1") && text.contains("MEMSET"), "{text}");
}

#[test]
fn circles_and_strangers_are_refused() {
    let sim = machine();
    let (one, two, x) = (graph(&sim), graph(&sim), malloc(&sim, N));
    let (first, stranger) = (
        add_fill(&sim, one, &[], fill(x, 1, N)),
        add_fill(&sim, two, &[], fill(x, 1, N)),
    );
    let second = add_fill(&sim, one, &[first], fill(x, 2, N));
    let mut node = null_mut();
    for list in [[stranger, first], [first, first], [null_mut(), first]] {
        answers!(
            hipErrorInvalidValue,
            sim.hipGraphAddEmptyNode(&raw mut node, one, list.as_ptr(), 2)
        );
    }
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddEmptyNode(&raw mut node, one, null(), 1)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddEmptyNode(null_mut(), one, null(), 0)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddEmptyNode(&raw mut node, null_mut(), null(), 0)
    );
    let bad = fill(x, 1, N + 1);
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddMemsetNode(&raw mut node, one, null(), 0, &raw const bad)
    );
    only_report(&sim, ReportKind::OutOfBounds);
    let odd = hipMemsetParams {
        elementSize: 3,
        ..fill(x, 1, N)
    };
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddMemsetNode(&raw mut node, one, null(), 0, &raw const odd)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddMemsetNode(&raw mut node, one, null(), 0, null())
    );
    answers!(
        hipSuccess,
        sim.hipGraphAddDependencies(one, &raw const second, &raw const first, 1)
    );
    let (mut exec, mut count) = (null_mut(), 0);
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphInstantiateWithFlags(&raw mut exec, one, 0)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphGetNodes(one, null_mut(), &raw mut count)
    );
    answers!(
        hipSuccess,
        sim.hipGraphRemoveDependencies(one, &raw const second, &raw const first, 1)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphInstantiateWithFlags(&raw mut exec, one, 99)
    );
    let exec = instantiate(&sim, one);
    run(&sim, exec);
    assert_eq!(download(&sim, x, 1), [2]);
    clean(&sim);
}

const STEPS: &[u8] = include_bytes!("../kernels/steps-gfx1100.co");

fn add_function(sim: &SimHost) -> hipFunction_t {
    let (mut module, mut function) = (null_mut(), null_mut());
    answers!(
        hipSuccess,
        sim.hipModuleLoadData(&raw mut module, STEPS.as_ptr().cast())
    );
    answers!(
        hipSuccess,
        sim.hipModuleGetFunction(&raw mut function, module, c"add".as_ptr())
    );
    function
}

fn words(sim: &SimHost, ptr: *mut c_void, n: usize) -> Vec<u32> {
    let bytes = download(sim, ptr, 4 * n);
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|word| u32::from_le_bytes(*word))
        .collect()
}

/// Changes an argument that a list of pointers names already.
fn set<T>(argument: &mut T, value: T) {
    *argument = value;
}

/// Knows one kernel and one variable.
struct Known {
    kernel: usize,
    function: usize,
    variable: usize,
    memory: usize,
}

impl HostAddresses for Known {
    fn kernel(&self, address: *const c_void, _: i32) -> Result<hipFunction_t, hipError_t> {
        let known = address.addr() == self.kernel;
        known
            .then(|| std::ptr::without_provenance_mut(self.function))
            .ok_or(hipErrorInvalidDeviceFunction)
    }

    fn variable(&self, address: *const c_void, _: i32) -> Result<(hipDeviceptr_t, usize), hipError_t> {
        let known = address.addr() == self.variable;
        known
            .then(|| (std::ptr::without_provenance_mut(self.memory), 64))
            .ok_or(hipErrorInvalidSymbol)
    }
}

#[test]
fn kernels_by_function_and_by_an_address_of_the_program() {
    let sim = machine();
    let (graph, function) = (graph(&sim), add_function(&sim));
    let (x, out) = (malloc(&sim, 256), malloc(&sim, 256));
    let ones = hipMemsetParams {
        elementSize: 4,
        ..fill(x, 21, 64)
    };
    let first = add_fill(&sim, graph, &[], ones);
    let own = 0x1234_5678usize;
    let (mut a, mut b, mut o, mut n) = (x, x, out, 64u32);
    let mut args: [*mut c_void; 4] = [
        (&raw mut a).cast(),
        (&raw mut b).cast(),
        (&raw mut o).cast(),
        (&raw mut n).cast(),
    ];
    let one = dim3 { x: 1, y: 1, z: 1 };
    let params = |func: *mut c_void, args: &mut [*mut c_void; 4]| hipKernelNodeParams {
        blockDim: dim3 { x: 64, ..one },
        extra: null_mut(),
        func,
        gridDim: one,
        kernelParams: args.as_mut_ptr(),
        sharedMemBytes: 0,
    };
    let named: *mut c_void = std::ptr::without_provenance_mut(own);
    let wanted = params(named, &mut args);
    let mut node = null_mut();
    let add = &raw mut node;
    answers!(
        hipErrorInvalidDeviceFunction,
        sim.hipGraphAddKernelNode(add, graph, &raw const first, 1, &raw const wanted)
    );
    sim.set_host_addresses(Arc::new(Known {
        kernel: own,
        function: function.addr(),
        variable: 0x99,
        memory: x.addr(),
    }));
    answers!(
        hipSuccess,
        sim.hipGraphAddKernelNode(add, graph, &raw const first, 1, &raw const wanted)
    );
    // The arguments were copied.
    set(&mut n, 0);
    let mut shown = wanted;
    answers!(hipSuccess, sim.hipGraphKernelNodeGetParams(node, &raw mut shown));
    // SAFETY: the node shows a list of its four arguments.
    let last = unsafe { shown.kernelParams.wrapping_add(3).read() };
    // SAFETY: of which the last is the number.
    let count = unsafe { last.cast::<u32>().read() };
    assert_eq!((shown.func, shown.blockDim.x, count), (named, 64, 64));
    let exec = instantiate(&sim, graph);
    run(&sim, exec);
    assert_eq!(words(&sim, out, 64), vec![42; 64]);
    // Other arguments for the executable graph alone.
    set(&mut b, out);
    set(&mut n, 64);
    let changed = params(function.cast(), &mut args);
    answers!(
        hipSuccess,
        sim.hipGraphExecKernelNodeSetParams(exec, node, &raw const changed)
    );
    run(&sim, exec);
    assert_eq!(words(&sim, out, 64), vec![63; 64]);
    run(&sim, instantiate(&sim, graph));
    assert_eq!(words(&sim, out, 64), vec![42; 64]);
    // Variables.
    let source = [5u32; 2];
    let from = source.as_ptr().cast();
    let symbol: *const c_void = std::ptr::without_provenance(0x99);
    let mut copy = null_mut();
    let kind = hipMemcpyHostToDevice;
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddMemcpyNodeToSymbol(&raw mut copy, graph, &raw const node, 1, symbol, from, 8, 60, kind)
    );
    answers!(
        hipSuccess,
        sim.hipGraphAddMemcpyNodeToSymbol(&raw mut copy, graph, &raw const node, 1, symbol, from, 8, 4, kind)
    );
    run(&sim, instantiate(&sim, graph));
    assert_eq!(words(&sim, x, 4), [21, 5, 5, 21]);
    clean(&sim);
    let mut bad = wanted;
    bad.func = null_mut();
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddKernelNode(add, graph, null(), 0, &raw const bad)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddKernelNode(add, graph, null(), 0, null())
    );
    let mut huge = params(named, &mut args);
    huge.blockDim.x = 2048;
    assert_ne!(
        call!(sim.hipGraphAddKernelNode(add, graph, null(), 0, &raw const huge)),
        hipSuccess
    );
    let mut value = hipLaunchAttributeValue { words: [2, 0, 0, 0] };
    let priority = hipLaunchAttributePriority;
    answers!(
        hipSuccess,
        sim.hipGraphKernelNodeSetAttribute(node, priority, &raw const value)
    );
    value = hipLaunchAttributeValue::default();
    answers!(
        hipSuccess,
        sim.hipGraphKernelNodeGetAttribute(node, priority, &raw mut value)
    );
    assert_eq!(value.words[0], 2);
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphKernelNodeGetAttribute(node, 77, &raw mut value)
    );
    // Windows, of no bytes: a ratio, what missed persists, bytes.
    let ratio = |of: f32| u64::from(of.to_bits()) << 32;
    for (words, status) in [
        ([0, ratio(0.5), 0, 0], hipSuccess),
        ([0, ratio(1.1), 0, 0], hipErrorInvalidValue),
        ([0, ratio(-0.6), 0, 0], hipErrorInvalidValue),
        ([0, ratio(0.5), 2, 0], hipErrorInvalidValue),
        ([0, ratio(0.5), 0, 1], hipErrorInvalidValue),
    ] {
        let window = hipLaunchAttributeValue { words };
        let attribute = hipLaunchAttributeAccessPolicyWindow;
        answers!(
            status,
            sim.hipGraphKernelNodeSetAttribute(node, attribute, &raw const window)
        );
    }
}

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn count(user: *mut c_void) {
    CALLS.fetch_add(user.addr() as u32, Ordering::Relaxed);
}

#[test]
fn host_functions_events_and_graphs_in_graphs() {
    let sim = machine();
    let (outer, inner, x) = (graph(&sim), graph(&sim), filled(&sim, N, 0));
    let event = event(&sim);
    add_fill(&sim, inner, &[], fill(x, 5, N));
    let (mut child, mut host, mut record, mut wait) = (null_mut(), null_mut(), null_mut(), null_mut());
    answers!(
        hipSuccess,
        sim.hipGraphAddChildGraphNode(&raw mut child, outer, null(), 0, inner)
    );
    let params = hipHostNodeParams {
        r#fn: Some(count),
        userData: std::ptr::without_provenance_mut(10),
    };
    answers!(
        hipSuccess,
        sim.hipGraphAddHostNode(&raw mut host, outer, &raw const child, 1, &raw const params)
    );
    answers!(
        hipSuccess,
        sim.hipGraphAddEventRecordNode(&raw mut record, outer, &raw const host, 1, event)
    );
    answers!(
        hipSuccess,
        sim.hipGraphAddEventWaitNode(&raw mut wait, outer, &raw const record, 1, event)
    );
    // The child is a copy: this is too late for it.
    add_fill(&sim, inner, &[], fill(x, 6, N));
    let exec = instantiate(&sim, outer);
    run(&sim, exec);
    assert_eq!((download(&sim, x, 1), CALLS.load(Ordering::Relaxed)), (vec![5], 10));
    answers!(hipSuccess, sim.hipEventSynchronize(event));
    let (mut found, mut recorded) = (null_mut(), null_mut());
    answers!(hipSuccess, sim.hipGraphChildGraphNodeGetGraph(child, &raw mut found));
    assert_ne!(found, inner);
    answers!(hipErrorInvalidValue, sim.hipGraphDestroy(found));
    answers!(
        hipSuccess,
        sim.hipGraphEventRecordNodeGetEvent(record, &raw mut recorded)
    );
    assert_eq!(recorded, event);
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphEventWaitNodeGetEvent(record, &raw mut recorded)
    );
    let none = hipHostNodeParams {
        r#fn: None,
        userData: null_mut(),
    };
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddHostNode(&raw mut host, outer, null(), 0, &raw const none)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddEventRecordNode(&raw mut record, outer, null(), 0, null_mut())
    );
    answers!(
        hipErrorUnknown,
        sim.hipGraphExecChildGraphNodeSetParams(exec, child, inner)
    );
    clean(&sim);
}

#[test]
fn copies_of_graphs_and_switched_off_nodes() {
    let sim = machine();
    let (original, x) = (graph(&sim), filled(&sim, N, 0));
    let node = add_fill(&sim, original, &[], fill(x, 1, N));
    let (mut copy, mut twin) = (null_mut(), null_mut());
    answers!(hipSuccess, sim.hipGraphClone(&raw mut copy, original));
    answers!(hipSuccess, sim.hipGraphNodeFindInClone(&raw mut twin, node, copy));
    assert_ne!(twin, node);
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphNodeFindInClone(&raw mut twin, twin, copy)
    );
    let other = fill(x, 2, N);
    answers!(hipSuccess, sim.hipGraphMemsetNodeSetParams(twin, &raw const other));
    run(&sim, instantiate(&sim, original));
    assert_eq!(download(&sim, x, 1), [1]);
    let exec = instantiate(&sim, copy);
    run(&sim, exec);
    assert_eq!(download(&sim, x, 1), [2]);
    answers!(hipErrorInvalidValue, sim.hipGraphNodeSetEnabled(exec, node, 0));
    answers!(hipSuccess, sim.hipGraphNodeSetEnabled(exec, twin, 0));
    let mut on = 9;
    answers!(hipSuccess, sim.hipGraphNodeGetEnabled(exec, twin, &raw mut on));
    assert_eq!(on, 0);
    answers!(hipSuccess, sim.hipMemset(x, 7, N));
    run(&sim, exec);
    assert_eq!(download(&sim, x, 1), [7]);
    answers!(hipSuccess, sim.hipGraphNodeSetEnabled(exec, twin, 1));
    // From now on as the original, whose node comes in the same place.
    let (mut error, mut result) = (null_mut(), 99);
    answers!(
        hipSuccess,
        sim.hipGraphExecUpdate(exec, original, &raw mut error, &raw mut result)
    );
    run(&sim, exec);
    assert_eq!((download(&sim, x, 1), result), (vec![1], hipGraphExecUpdateSuccess));
    answers!(hipSuccess, sim.hipGraphUpload(exec, null_mut()));
    clean(&sim);
}

fn allocation(size: usize) -> hipMemAllocNodeParams {
    hipMemAllocNodeParams {
        poolProps: hipMemPoolProps {
            allocType: hipMemAllocationTypePinned,
            handleTypes: 0,
            locationType: hipMemLocationTypeDevice,
            locationId: 0,
            win32SecurityAttributes: null_mut(),
            maxSize: 0,
            reserved: [0; 56],
        },
        accessDescs: null(),
        accessDescCount: 0,
        bytesize: size,
        dptr: null_mut(),
    }
}

/// What `hipGraphMemAllocNodeGetParams` says: access descriptions, their number, size and address.
fn given_back(sim: &SimHost, node: hipGraphNode_t) -> (*const hipMemAccessDesc, usize, usize, *mut c_void) {
    let mut shown = allocation(0);
    answers!(hipSuccess, sim.hipGraphMemAllocNodeGetParams(node, &raw mut shown));
    (shown.accessDescs, shown.accessDescCount, shown.bytesize, shown.dptr)
}

#[test]
fn graphs_allocate_and_free() {
    let sim = machine();
    let (graph, out) = (graph(&sim), malloc(&sim, N));
    let (mut alloc, mut free, mut params) = (null_mut(), null_mut(), allocation(N));
    // Kept and never followed.
    let access = std::ptr::without_provenance(8);
    (params.accessDescs, params.accessDescCount) = (access, 1);
    answers!(
        hipSuccess,
        sim.hipGraphAddMemAllocNode(&raw mut alloc, graph, null(), 0, &raw mut params)
    );
    let x = params.dptr;
    assert_eq!(given_back(&sim, alloc), (access, 1, N, x), "as they were given");
    let filled = add_fill(&sim, graph, &[alloc], fill(x, 4, N));
    let copied = add_copy(&sim, graph, &[filled], (out, x), N);
    answers!(
        hipSuccess,
        sim.hipGraphAddMemFreeNode(&raw mut free, graph, &raw const copied, 1, x)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddMemFreeNode(&raw mut free, graph, &raw const copied, 1, x)
    );
    let exec = instantiate(&sim, graph);
    run(&sim, exec);
    run(&sim, exec);
    assert_eq!(download(&sim, out, N), vec![4; N]);
    let (mut used, mut high) = (9u64, 9u64);
    let asked = |attribute, to: &mut u64| {
        answers!(
            hipSuccess,
            sim.hipDeviceGetGraphMemAttribute(0, attribute, (&raw mut *to).cast())
        );
    };
    asked(hipGraphMemAttrUsedMemCurrent, &mut used);
    asked(hipGraphMemAttrUsedMemHigh, &mut high);
    assert_eq!((used, high), (0, N as u64));
    asked(hipGraphMemAttrReservedMemCurrent, &mut used);
    assert_eq!(used, 0, "nothing is kept of what the graph freed");
    // Not looked at for a figure that cannot be set.
    let nowhere = std::ptr::without_provenance_mut(usize::MAX);
    answers!(
        hipErrorInvalidValue,
        sim.hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, nowhere)
    );
    let mut second = null_mut();
    answers!(
        hipErrorNotSupported,
        sim.hipGraphInstantiate(&raw mut second, graph, null_mut(), null_mut(), 0)
    );
    clean(&sim);
    // Outside of a run the memory is as freed.
    let mut bytes = [0u8; 4];
    let to = bytes.as_mut_ptr().cast();
    answers!(hipSuccess, sim.hipMemcpy(to, x, 4, hipMemcpyDeviceToHost));
    only_report(&sim, ReportKind::UseAfterFree);
    answers!(hipErrorInvalidValue, sim.hipFree(x));
    sim.take_reports();
    let mut copy = null_mut();
    answers!(hipErrorNotSupported, sim.hipGraphClone(&raw mut copy, graph));
    answers!(hipErrorNotSupported, sim.hipGraphDestroyNode(alloc));
    answers!(hipSuccess, sim.hipGraphDestroy(graph));
    answers!(hipSuccess, sim.hipGraphExecDestroy(exec));
    assert_eq!(sim.allocation_stats(0).live, 1);
    let mut empty = allocation(0);
    let other = super::graphs::graph(&sim);
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddMemAllocNode(&raw mut alloc, other, null(), 0, &raw mut empty)
    );
    clean(&sim);
}

static DESTROYED: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn destroy(_: *mut c_void) {
    DESTROYED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn objects_live_as_long_as_the_graphs_that_hold_them() {
    let (sim, mut object) = (machine(), null_mut());
    let make = &raw mut object;
    answers!(
        hipErrorInvalidValue,
        sim.hipUserObjectCreate(make, null_mut(), None, 1, 1)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipUserObjectCreate(make, null_mut(), Some(destroy), 0, 1)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipUserObjectCreate(make, null_mut(), Some(destroy), 1, 0)
    );
    answers!(
        hipSuccess,
        sim.hipUserObjectCreate(make, null_mut(), Some(destroy), 1, 1)
    );
    let graph = graph(&sim);
    answers!(hipErrorInvalidValue, sim.hipGraphRetainUserObject(graph, object, 0, 0));
    answers!(hipSuccess, sim.hipGraphRetainUserObject(graph, object, 1, 0));
    answers!(hipSuccess, sim.hipUserObjectRelease(object, 1));
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 0);
    // What is made of a graph holds them too: a copy, a graph that it is a part of, an executable graph, and one that was updated with it.
    let (mut copy, mut parent, mut child, mut ready, mut updated) =
        (null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
    let none = null_mut();
    answers!(
        hipSuccess,
        sim.hipGraphInstantiate(&raw mut updated, graph, none, none.cast(), 0)
    );
    answers!(hipSuccess, sim.hipGraphClone(&raw mut copy, graph));
    answers!(hipSuccess, sim.hipGraphDestroy(graph));
    answers!(hipSuccess, sim.hipGraphExecDestroy(updated));
    answers!(hipSuccess, sim.hipGraphCreate(&raw mut parent, 0));
    answers!(
        hipSuccess,
        sim.hipGraphAddChildGraphNode(&raw mut child, parent, null_mut(), 0, copy)
    );
    answers!(hipSuccess, sim.hipGraphDestroy(copy));
    answers!(
        hipSuccess,
        sim.hipGraphInstantiate(&raw mut ready, parent, none, none.cast(), 0)
    );
    answers!(hipSuccess, sim.hipGraphDestroy(parent));
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 0);
    answers!(hipSuccess, sim.hipGraphExecDestroy(ready));
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 1);
    answers!(hipSuccess, sim.hipUserObjectRelease(object, 1));
    assert_eq!(DESTROYED.load(Ordering::Relaxed), 1);
}

#[test]
fn a_capture_shows_its_graph_and_takes_nodes_by_hand() {
    let sim = machine();
    let (stream, x) = (stream(&sim), malloc(&sim, N));
    answers!(
        hipSuccess,
        sim.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed)
    );
    answers!(hipSuccess, sim.hipMemsetAsync(x, 1, N, stream));
    let (mut status, mut id, mut graph, mut nodes, mut count) = (9, 0, null_mut(), null(), 0);
    answers!(
        hipSuccess,
        sim.hipStreamGetCaptureInfo_v2(
            stream,
            &raw mut status,
            &raw mut id,
            &raw mut graph,
            &raw mut nodes,
            &raw mut count
        )
    );
    assert_eq!((status, count), (hipStreamCaptureStatusActive, 1));
    assert_ne!(id, 0);
    // SAFETY: the list has one entry and lives until the stream's next call.
    let tail = unsafe { nodes.read() };
    let mut own = add_fill(&sim, graph, &[tail], fill(x, 2, N));
    answers!(
        hipSuccess,
        sim.hipStreamUpdateCaptureDependencies(stream, &raw mut own, 1, hipStreamSetCaptureDependencies)
    );
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(at(x, 8), x, 8, hipMemcpyDeviceToDevice, stream)
    );
    let mut made = null_mut();
    answers!(hipSuccess, sim.hipStreamEndCapture(stream, &raw mut made));
    assert_eq!(made, graph);
    answers!(hipSuccess, sim.hipGraphGetNodes(graph, null_mut(), &raw mut count));
    assert_eq!(count, 3);
    let mut params = fill(null_mut(), 0, 0);
    answers!(hipSuccess, sim.hipGraphMemsetNodeGetParams(tail, &raw mut params));
    assert_eq!((params.dst, params.value, params.width), (x, 1, N));
    run(&sim, instantiate(&sim, graph));
    assert_eq!(download(&sim, x, N), vec![2; N]);
    answers!(
        hipSuccess,
        sim.hipStreamGetCaptureInfo(stream, &raw mut status, &raw mut id)
    );
    assert_eq!(status, hipStreamCaptureStatusNone);
    answers!(
        hipErrorIllegalState,
        sim.hipStreamUpdateCaptureDependencies(stream, &raw mut own, 1, 0)
    );
    // And a capture into a graph that is there.
    answers!(
        hipSuccess,
        sim.hipStreamBeginCaptureToGraph(stream, graph, &raw const own, null(), 1, hipStreamCaptureModeRelaxed)
    );
    answers!(hipSuccess, sim.hipMemsetAsync(x, 6, 4, stream));
    answers!(hipSuccess, sim.hipStreamEndCapture(stream, &raw mut made));
    answers!(hipSuccess, sim.hipGraphGetNodes(graph, null_mut(), &raw mut count));
    assert_eq!(count, 4);
    let mut mode = hipStreamCaptureModeRelaxed;
    answers!(hipSuccess, sim.hipThreadExchangeStreamCaptureMode(&raw mut mode));
    assert_eq!(mode, hipStreamCaptureModeGlobal);
    mode = 3;
    answers!(
        hipErrorInvalidValue,
        sim.hipThreadExchangeStreamCaptureMode(&raw mut mode)
    );
    clean(&sim);
}

#[test]
fn nodes_of_any_kind_by_one_function() {
    let sim = machine();
    let (graph, x) = (graph(&sim), malloc(&sim, N));
    let mut any = hipGraphNodeParams {
        r#type: hipGraphNodeTypeMemset,
        reserved0: [0; 3],
        params: [0; 29],
        reserved2: 0,
    };
    // SAFETY: the union has room for the parameters of a fill.
    unsafe { (&raw mut any.params).cast::<hipMemsetParams>().write(fill(x, 8, N)) };
    let mut node = null_mut();
    answers!(
        hipSuccess,
        sim.hipGraphAddNode(&raw mut node, graph, null(), 0, &raw mut any)
    );
    let exec = instantiate(&sim, graph);
    run(&sim, exec);
    assert_eq!(download(&sim, x, N), vec![8; N]);
    // SAFETY: as above.
    unsafe { (&raw mut any.params).cast::<hipMemsetParams>().write(fill(x, 9, N)) };
    answers!(hipSuccess, sim.hipGraphExecNodeSetParams(exec, node, &raw mut any));
    run(&sim, exec);
    assert_eq!(download(&sim, x, N), vec![9; N]);
    any.r#type = hipGraphNodeTypeExtSemaphoreSignal;
    answers!(
        hipErrorInvalidValue,
        sim.hipGraphAddNode(&raw mut node, graph, null(), 0, &raw mut any)
    );
    any.r#type = hipGraphNodeTypeHost;
    answers!(hipErrorInvalidValue, sim.hipGraphNodeSetParams(node, &raw mut any));
    clean(&sim);
}
