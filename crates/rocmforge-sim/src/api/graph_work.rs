//! Work of graph nodes: checked and made from the parameters a program gives, shown again, and changed in nodes and executable graphs.

use super::copy::{Copied, Fill, pattern};
use super::graph_nodes::NewNode;
use super::required;
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::handle::Found;
use crate::machine::steps::Steps;
use crate::queues::graphs::{KernelWork, Shown, Step, Work, copy_of_rows};
use crate::queues::op::{HostFunction, OpKind, Place};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_void};

/// Which node a call gives work to.
#[derive(Clone, Copy)]
enum Target {
    /// One that it adds.
    New(NewNode),
    Node(hipGraphNode_t),
    /// The copy of a node in an executable graph.
    Exec(hipGraphExec_t, hipGraphNode_t),
}

/// A fill with the fields in the driver's order.
fn from_driver(p: &HIP_MEMSET_NODE_PARAMS) -> hipMemsetParams {
    hipMemsetParams {
        dst: p.dst,
        elementSize: p.elementSize,
        height: p.height,
        pitch: p.pitch,
        value: p.value,
        width: p.width,
    }
}

impl Call<'_> {
    /// The function that a program names: by its handle, or by an address of its own.
    fn named_function(&mut self, function: *mut c_void) -> Hip<hipFunction_t> {
        required(function)?;
        if self.functions.find(function.addr() as u64) != Found::Unknown {
            return Ok(function.cast());
        }
        let addresses = self.sim.host_addresses().ok_or(hipErrorInvalidDeviceFunction)?;
        let device = self.device() as c_int;
        self.without_lock(|| addresses.kernel(function, device))
    }

    /// A place in a variable that a program names by an address of its own.
    fn named_variable(&mut self, symbol: *const c_void, size: usize, offset: usize) -> Hip<*mut c_void> {
        let addresses = self.sim.host_addresses().filter(|_| !symbol.is_null());
        let addresses = addresses.ok_or(hipErrorInvalidSymbol)?;
        let device = self.device() as c_int;
        let (start, bytes) = self.without_lock(|| addresses.variable(symbol, device))?;
        match offset.checked_add(size) {
            Some(end) if end <= bytes => Ok(start.wrapping_byte_add(offset)),
            _ => Err(hipErrorInvalidValue),
        }
    }

    unsafe fn kernel_work(&mut self, params: *const hipKernelNodeParams) -> Hip<Work> {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let p = unsafe { params.read() };
        let function = self.named_function(p.func)?;
        let found = self.function(function).map_err(|_| hipErrorInvalidDeviceFunction)?;
        let size = |dim: dim3| [dim.x, dim.y, dim.z];
        let shape = (size(p.gridDim), size(p.blockDim), p.sharedMemBytes);
        // SAFETY: promised by the caller of the HIP function.
        let launch = unsafe { self.prepare_launch(found, shape, p.kernelParams, p.extra) }?;
        Ok(Work::Kernel(KernelWork::new(
            Box::new(launch),
            p.func.expose_provenance(),
        )))
    }

    /// Makes a node's work of a copy. A direction that is not the memory's is refused.
    fn copy_work(&mut self, copy: Option<Copied>, shown: hipMemcpy3DParms) -> Hip<Work> {
        let Some(copy) = copy else {
            return Ok(Work::Copy(OpKind::Wait, Shown(shown)));
        };
        let Some((operation, to, from)) = self.prepare_copy(copy, shown.kind)? else {
            return Ok(Work::Copy(OpKind::Wait, Shown(shown)));
        };
        let legal = match (to, from) {
            (Place::Device { .. }, Place::Pageable { .. }) => hipMemcpyHostToDevice,
            (Place::Pageable { .. }, Place::Device { .. }) => hipMemcpyDeviceToHost,
            _ => shown.kind,
        };
        if shown.kind != legal && shown.kind != hipMemcpyDefault {
            return Err(hipErrorInvalidValue);
        }
        Ok(Work::Copy(operation, Shown(shown)))
    }

    unsafe fn copy_work_3d(&mut self, params: *const hipMemcpy3DParms) -> Hip<Work> {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let shown = unsafe { params.read() };
        let copy = self.copied_3d(&shown)?;
        self.copy_work(copy, shown)
    }

    fn copy_work_1d(&mut self, dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind) -> Hip<Work> {
        required(dst)?;
        required(src)?;
        fail_if(size == 0 || dst.cast_const() == src, hipErrorInvalidValue)?;
        let shown = copy_of_rows(dst, src.cast_mut(), [size, 1], kind);
        self.copy_work(Some(Copied::flat(dst, src, size)), shown)
    }

    unsafe fn copy_work_drv(&mut self, params: *const HIP_MEMCPY3D) -> Hip<Work> {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let p = unsafe { params.read() };
        let copy = self.copied_drv(&p)?;
        let pitched = |kind, host: *mut c_void, device: *mut c_void, pitch, height| hipPitchedPtr {
            ptr: match kind {
                hipMemoryTypeHost => host,
                hipMemoryTypeArray => std::ptr::null_mut(),
                _ => device,
            },
            pitch,
            xsize: pitch,
            ysize: height,
        };
        let shown = hipMemcpy3DParms {
            srcArray: p.srcArray,
            srcPos: hipPos {
                x: p.srcXInBytes,
                y: p.srcY,
                z: p.srcZ,
            },
            srcPtr: pitched(
                p.srcMemoryType,
                p.srcHost.cast_mut(),
                p.srcDevice,
                p.srcPitch,
                p.srcHeight,
            ),
            dstArray: p.dstArray,
            dstPos: hipPos {
                x: p.dstXInBytes,
                y: p.dstY,
                z: p.dstZ,
            },
            dstPtr: pitched(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstPitch, p.dstHeight),
            extent: hipExtent {
                width: p.WidthInBytes,
                height: p.Height,
                depth: p.Depth,
            },
            kind: hipMemcpyDefault,
        };
        self.copy_work(copy, shown)
    }

    fn fill_work(&mut self, p: &hipMemsetParams) -> Hip<Work> {
        let element = p.elementSize as usize;
        if ![1, 2, 4].contains(&element) || p.width == 0 || p.height == 0 {
            return Err(hipErrorInvalidValue);
        }
        let row = p.width.checked_mul(element).ok_or(hipErrorInvalidValue)?;
        fail_if(p.height > 1 && p.pitch < row, hipErrorInvalidValue)?;
        let fill = Fill {
            dst: p.dst,
            steps: Steps::rows(p.pitch),
            pattern: pattern(p.value, element),
            width: element,
            size: [row, p.height, 1],
        };
        let (operation, _) = self.prepare_fill(&fill)?.ok_or(hipErrorInvalidValue)?;
        Ok(Work::Fill(operation, Shown(*p)))
    }

    unsafe fn host_work(&mut self, params: *const hipHostNodeParams) -> Hip<Work> {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let p = unsafe { params.read() };
        let function = p.r#fn.ok_or(hipErrorInvalidValue)?;
        Ok(Work::Host(
            HostFunction::Plain(function),
            p.userData.expose_provenance(),
        ))
    }

    fn event_work(&mut self, event: hipEvent_t, records: bool) -> Hip<Work> {
        fail_if(event.is_null(), hipErrorInvalidValue)?;
        self.event(event).map_err(|_| hipErrorInvalidValue)?;
        let event = event.addr() as u64;
        Ok(if records {
            Work::Record(event)
        } else {
            Work::Wait(event)
        })
    }

    /// Fails unless the node exists and is of this kind, and the executable graph exists.
    fn check_node(&mut self, exec: Option<hipGraphExec_t>, node: hipGraphNode_t, kind: hipGraphNodeType) -> Hip {
        if let Some(exec) = exec {
            self.exec(exec)?;
        }
        fail_if(self.node(node)?.work.kind() != kind, hipErrorInvalidValue)
    }

    /// Gives a node, or its copy in an executable graph, other work of the same kind.
    fn change_work(&mut self, exec: Option<hipGraphExec_t>, node: hipGraphNode_t, work: Work) -> Hip {
        let Some(exec) = exec else {
            self.node(node)?.work = work;
            return Ok(());
        };
        self.check_runs(exec, "updated")?;
        let step = self.exec(exec)?.step_mut(node.addr() as u64);
        let step = step.ok_or(hipErrorInvalidValue)?;
        if let (Work::Copy(_, Shown(old)), Work::Copy(_, Shown(new))) = (&step.work, &work)
            && old.kind != new.kind
        {
            return Err(hipErrorInvalidValue);
        }
        step.work = work;
        Ok(())
    }

    /// Gives work to a node: checks which node is meant, makes the work of this kind, adds or changes the node.
    ///
    /// # Safety
    /// The dependencies of a new node are valid as the HIP function asks.
    unsafe fn give_work(
        &mut self,
        target: Target,
        kind: hipGraphNodeType,
        work: impl FnOnce(&mut Self) -> Hip<Work>,
    ) -> Hip {
        let (exec, node) = match target {
            Target::New(new) => {
                // SAFETY: promised by the caller.
                unsafe { self.place_of_node(new) }?;
                let work = work(self)?;
                // SAFETY: as above.
                return unsafe { self.add_node(new, work) };
            }
            Target::Node(node) => (None, node),
            Target::Exec(exec, node) => (Some(exec), node),
        };
        self.check_node(exec, node, kind)?;
        let work = work(self)?;
        self.change_work(exec, node, work)
    }

    unsafe fn kernel_node(&mut self, target: Target, params: *const hipKernelNodeParams) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        let work = |call: &mut Self| unsafe { call.kernel_work(params) };
        // SAFETY: as above.
        unsafe { self.give_work(target, hipGraphNodeTypeKernel, work) }
    }

    unsafe fn copy_node(&mut self, target: Target, params: *const hipMemcpy3DParms) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        let work = |call: &mut Self| unsafe { call.copy_work_3d(params) };
        // SAFETY: as above.
        unsafe { self.give_work(target, hipGraphNodeTypeMemcpy, work) }
    }

    unsafe fn copy_node_1d(
        &mut self,
        target: Target,
        (dst, src): (*mut c_void, *const c_void),
        size: usize,
        kind: hipMemcpyKind,
    ) -> Hip {
        let work = |call: &mut Self| call.copy_work_1d(dst, src, size, kind);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.give_work(target, hipGraphNodeTypeMemcpy, work) }
    }

    unsafe fn copy_node_to_symbol(
        &mut self,
        target: Target,
        (symbol, src): (*const c_void, *const c_void),
        (size, offset): (usize, usize),
        kind: hipMemcpyKind,
    ) -> Hip {
        let work = |call: &mut Self| {
            let dst = call.named_variable(symbol, size, offset)?;
            call.copy_work_1d(dst, src, size, kind)
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.give_work(target, hipGraphNodeTypeMemcpy, work) }
    }

    unsafe fn copy_node_from_symbol(
        &mut self,
        target: Target,
        (dst, symbol): (*mut c_void, *const c_void),
        (size, offset): (usize, usize),
        kind: hipMemcpyKind,
    ) -> Hip {
        let work = |call: &mut Self| {
            let src = call.named_variable(symbol, size, offset)?;
            call.copy_work_1d(dst, src, size, kind)
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.give_work(target, hipGraphNodeTypeMemcpy, work) }
    }

    unsafe fn copy_node_drv(&mut self, target: Target, params: *const HIP_MEMCPY3D) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        let work = |call: &mut Self| unsafe { call.copy_work_drv(params) };
        // SAFETY: as above.
        unsafe { self.give_work(target, hipGraphNodeTypeMemcpy, work) }
    }

    unsafe fn fill_node(&mut self, target: Target, params: *const hipMemsetParams) -> Hip {
        let work = |call: &mut Self| {
            required(params)?;
            // SAFETY: promised by the caller of the HIP function.
            call.fill_work(unsafe { &*params })
        };
        // SAFETY: as above.
        unsafe { self.give_work(target, hipGraphNodeTypeMemset, work) }
    }

    unsafe fn fill_node_drv(&mut self, target: Target, params: *const HIP_MEMSET_NODE_PARAMS) -> Hip {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let params = from_driver(unsafe { &*params });
        // SAFETY: as above.
        unsafe { self.fill_node(target, &raw const params) }
    }

    unsafe fn host_node(&mut self, target: Target, params: *const hipHostNodeParams) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        let work = |call: &mut Self| unsafe { call.host_work(params) };
        // SAFETY: as above.
        unsafe { self.give_work(target, hipGraphNodeTypeHost, work) }
    }

    /// A node that records an event, or waits for one.
    unsafe fn event_node(&mut self, target: Target, event: hipEvent_t, records: bool) -> Hip {
        let kind = if records {
            hipGraphNodeTypeEventRecord
        } else {
            hipGraphNodeTypeWaitEvent
        };
        let work = |call: &mut Self| call.event_work(event, records);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.give_work(target, kind, work) }
    }

    /// Adds or changes a node of any kind; child graphs, empty nodes and memory nodes can only be added.
    unsafe fn any_node(&mut self, target: Target, params: *mut hipGraphNodeParams) -> Hip {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let kind = unsafe { params.read() }.r#type;
        // SAFETY: as above: the union is inside of the struct.
        let union = unsafe { &raw mut (*params).params }.cast::<c_void>();
        let copies = union.wrapping_byte_add(COPY_HEADER);
        // The union holds the parameters of this kind.
        match (kind, target) {
            (hipGraphNodeTypeKernel, _) => {
                // SAFETY: as above.
                unsafe { self.kernel_node(target, union.cast()) }
            }
            (hipGraphNodeTypeMemcpy, _) => {
                // SAFETY: as above.
                unsafe { self.copy_node(target, copies.cast()) }
            }
            (hipGraphNodeTypeMemset, _) => {
                // SAFETY: as above.
                unsafe { self.fill_node(target, union.cast()) }
            }
            (hipGraphNodeTypeHost, _) => {
                // SAFETY: as above.
                unsafe { self.host_node(target, union.cast()) }
            }
            (hipGraphNodeTypeWaitEvent | hipGraphNodeTypeEventRecord, _) => {
                // SAFETY: as above.
                let event = unsafe { union.cast::<hipEvent_t>().read() };
                // SAFETY: as above.
                unsafe { self.event_node(target, event, kind == hipGraphNodeTypeEventRecord) }
            }
            (hipGraphNodeTypeGraph, Target::New(new)) => {
                // SAFETY: as above.
                let child = unsafe { union.cast::<hipGraph_t>().read() };
                // SAFETY: as above.
                unsafe { self.graph_add_child_graph_node(new, child) }
            }
            (hipGraphNodeTypeEmpty, Target::New(new)) => {
                // SAFETY: as above.
                unsafe { self.graph_add_empty_node(new) }
            }
            (hipGraphNodeTypeMemAlloc, Target::New(new)) => {
                // SAFETY: as above.
                unsafe { self.graph_add_mem_alloc_node(new, union.cast()) }
            }
            (hipGraphNodeTypeMemFree, Target::New(new)) => {
                // SAFETY: as above.
                let pointer = unsafe { union.cast::<*mut c_void>().read() };
                // SAFETY: as above.
                unsafe { self.graph_add_mem_free_node(new, pointer) }
            }
            _ => Err(hipErrorInvalidValue),
        }
    }

    /// Gives the copy of a child graph's node another graph of the same kinds of nodes.
    pub(crate) fn hipGraphExecChildGraphNodeSetParams(
        &mut self,
        exec: hipGraphExec_t,
        node: hipGraphNode_t,
        child: hipGraph_t,
    ) -> Hip {
        self.check_node(Some(exec), node, hipGraphNodeTypeGraph)?;
        self.graph(child)?;
        let child = child.addr() as u64;
        fail_if(self.node(node)?.graph == child, hipErrorUnknown)?;
        let new = self.steps(child).ok_or(hipErrorInvalidValue)?;
        self.check_runs(exec, "updated")?;
        let step = self.exec(exec)?.step_mut(node.addr() as u64);
        let step = step.ok_or(hipErrorInvalidValue)?;
        let same = |(old, new): (&Step, &Step)| old.work.kind() == new.work.kind();
        if step.child.len() != new.len() || !step.child.iter().zip(&new).all(same) {
            return Err(hipErrorUnknown);
        }
        step.child = new;
        Ok(())
    }

    cases! {
        fn hipGraphAddKernelNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, node_params: *const hipKernelNodeParams)
            => |c| c.kernel_node(Target::New((graph_node, graph, dependencies, num_dependencies)), node_params);
        fn hipGraphAddMemcpyNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, copy_params: *const hipMemcpy3DParms)
            => |c| c.copy_node(Target::New((graph_node, graph, dependencies, num_dependencies)), copy_params);
        fn hipGraphAddMemcpyNode1D(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_1d(Target::New((graph_node, graph, dependencies, num_dependencies)), (dst, src), count, kind);
        fn hipGraphAddMemcpyNodeToSymbol(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_to_symbol(Target::New((graph_node, graph, dependencies, num_dependencies)), (symbol, src), (count, offset), kind);
        fn hipGraphAddMemcpyNodeFromSymbol(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_from_symbol(Target::New((graph_node, graph, dependencies, num_dependencies)), (dst, symbol), (count, offset), kind);
        fn hipGraphAddMemsetNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, memset_params: *const hipMemsetParams)
            => |c| c.fill_node(Target::New((graph_node, graph, dependencies, num_dependencies)), memset_params);
        fn hipGraphAddHostNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, node_params: *const hipHostNodeParams)
            => |c| c.host_node(Target::New((graph_node, graph, dependencies, num_dependencies)), node_params);
        fn hipGraphAddEventRecordNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, event: hipEvent_t)
            => |c| c.event_node(Target::New((graph_node, graph, dependencies, num_dependencies)), event, true);
        fn hipGraphAddEventWaitNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, event: hipEvent_t)
            => |c| c.event_node(Target::New((graph_node, graph, dependencies, num_dependencies)), event, false);
        fn hipGraphAddNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, node_params: *mut hipGraphNodeParams)
            => |c| c.any_node(Target::New((graph_node, graph, dependencies, num_dependencies)), node_params);
        fn hipGraphKernelNodeSetParams(node: hipGraphNode_t, node_params: *const hipKernelNodeParams)
            => |c| c.kernel_node(Target::Node(node), node_params);
        fn hipGraphMemcpyNodeSetParams(node: hipGraphNode_t, node_params: *const hipMemcpy3DParms)
            => |c| c.copy_node(Target::Node(node), node_params);
        fn hipGraphMemcpyNodeSetParams1D(node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_1d(Target::Node(node), (dst, src), count, kind);
        fn hipGraphMemcpyNodeSetParamsToSymbol(node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_to_symbol(Target::Node(node), (symbol, src), (count, offset), kind);
        fn hipGraphMemcpyNodeSetParamsFromSymbol(node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_from_symbol(Target::Node(node), (dst, symbol), (count, offset), kind);
        fn hipGraphMemsetNodeSetParams(node: hipGraphNode_t, node_params: *const hipMemsetParams)
            => |c| c.fill_node(Target::Node(node), node_params);
        fn hipGraphHostNodeSetParams(node: hipGraphNode_t, node_params: *const hipHostNodeParams)
            => |c| c.host_node(Target::Node(node), node_params);
        fn hipGraphEventRecordNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t)
            => |c| c.event_node(Target::Node(node), event, true);
        fn hipGraphEventWaitNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t)
            => |c| c.event_node(Target::Node(node), event, false);
        fn hipGraphNodeSetParams(node: hipGraphNode_t, node_params: *mut hipGraphNodeParams)
            => |c| c.any_node(Target::Node(node), node_params);
        fn hipGraphExecKernelNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipKernelNodeParams)
            => |c| c.kernel_node(Target::Exec(graph_exec, node), node_params);
        fn hipGraphExecMemcpyNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *mut hipMemcpy3DParms)
            => |c| c.copy_node(Target::Exec(graph_exec, node), node_params);
        fn hipGraphExecMemcpyNodeSetParams1D(graph_exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_1d(Target::Exec(graph_exec, node), (dst, src), count, kind);
        fn hipGraphExecMemcpyNodeSetParamsToSymbol(graph_exec: hipGraphExec_t, node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_to_symbol(Target::Exec(graph_exec, node), (symbol, src), (count, offset), kind);
        fn hipGraphExecMemcpyNodeSetParamsFromSymbol(graph_exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.copy_node_from_symbol(Target::Exec(graph_exec, node), (dst, symbol), (count, offset), kind);
        fn hipGraphExecMemsetNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipMemsetParams)
            => |c| c.fill_node(Target::Exec(graph_exec, node), node_params);
        fn hipGraphExecHostNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipHostNodeParams)
            => |c| c.host_node(Target::Exec(graph_exec, node), node_params);
        fn hipGraphExecEventRecordNodeSetEvent(graph_exec: hipGraphExec_t, node: hipGraphNode_t, event: hipEvent_t)
            => |c| c.event_node(Target::Exec(graph_exec, node), event, true);
        fn hipGraphExecEventWaitNodeSetEvent(graph_exec: hipGraphExec_t, node: hipGraphNode_t, event: hipEvent_t)
            => |c| c.event_node(Target::Exec(graph_exec, node), event, false);
        fn hipGraphExecNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *mut hipGraphNodeParams)
            => |c| c.any_node(Target::Exec(graph_exec, node), node_params);
        fn hipDrvGraphAddMemcpyNode(ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, copy_params: *const HIP_MEMCPY3D, _ctx: hipCtx_t)
            => |c| c.copy_node_drv(Target::New((ph_graph_node, graph, dependencies, num_dependencies)), copy_params);
        fn hipDrvGraphAddMemsetNode(ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, memset_params: *const HIP_MEMSET_NODE_PARAMS, _ctx: hipCtx_t)
            => |c| c.fill_node_drv(Target::New((ph_graph_node, graph, dependencies, num_dependencies)), memset_params);
        fn hipDrvGraphMemcpyNodeSetParams(node: hipGraphNode_t, node_params: *const HIP_MEMCPY3D)
            => |c| c.copy_node_drv(Target::Node(node), node_params);
        fn hipDrvGraphExecMemcpyNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, copy_params: *const HIP_MEMCPY3D, _ctx: hipCtx_t)
            => |c| c.copy_node_drv(Target::Exec(graph_exec, node), copy_params);
        fn hipDrvGraphExecMemsetNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, memset_params: *const HIP_MEMSET_NODE_PARAMS, _ctx: hipCtx_t)
            => |c| c.fill_node_drv(Target::Exec(graph_exec, node), memset_params);
    }
}

/// Bytes before the parameters of a copy in the union of `hipGraphNodeParams`.
const COPY_HEADER: usize = 16;
