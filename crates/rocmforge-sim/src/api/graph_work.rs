//! Work of graph nodes: checked and made from the parameters a program gives, shown again, and changed in nodes and executable graphs.

use super::copy::{Copied, Fill};
use super::graph_nodes::NewNode;
use super::required;
use crate::calls::call::{Call, Hip};
use crate::machine::handle::Found;
use crate::machine::steps::Steps;
use crate::queues::graphs::{KernelWork, Shown, Work};
use crate::queues::op::{HostFunction, OpKind, Place};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_void};

/// Which node a call changes.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Node(hipGraphNode_t),
    /// The copy of a node in an executable graph.
    Exec(hipGraphExec_t, hipGraphNode_t),
}

impl Target {
    fn node(self) -> hipGraphNode_t {
        match self {
            Target::Node(node) | Target::Exec(_, node) => node,
        }
    }
}

/// A copy of bytes in a row, as the parameters of a node.
fn flat(dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind) -> hipMemcpy3DParms {
    let pitched = |ptr| hipPitchedPtr {
        ptr,
        pitch: size,
        xsize: size,
        ysize: 1,
    };
    let nowhere = hipPos { x: 0, y: 0, z: 0 };
    hipMemcpy3DParms {
        srcArray: std::ptr::null_mut(),
        srcPos: nowhere,
        srcPtr: pitched(src.cast_mut()),
        dstArray: std::ptr::null_mut(),
        dstPos: nowhere,
        dstPtr: pitched(dst),
        extent: hipExtent {
            width: size,
            height: 1,
            depth: 1,
        },
        kind,
    }
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
        let Some(addresses) = self.sim.host_addresses() else {
            return Err(hipErrorInvalidDeviceFunction);
        };
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
        if size == 0 || dst.cast_const() == src {
            return Err(hipErrorInvalidValue);
        }
        let copy = Copied {
            dst,
            src,
            to: Steps::rows(size),
            from: Steps::rows(size),
            size: [size, 1, 1],
        };
        self.copy_work(Some(copy), flat(dst, src, size, kind))
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
        if p.height > 1 && p.pitch < row {
            return Err(hipErrorInvalidValue);
        }
        let mut pattern = [0; 4];
        for part in pattern.chunks_mut(element) {
            part.copy_from_slice(&p.value.to_le_bytes()[..element]);
        }
        let fill = Fill {
            dst: p.dst,
            steps: Steps::rows(p.pitch),
            pattern,
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
        if event.is_null() {
            return Err(hipErrorInvalidValue);
        }
        self.event(event).map_err(|_| hipErrorInvalidValue)?;
        let event = event.addr() as u64;
        Ok(if records {
            Work::Record(event)
        } else {
            Work::Wait(event)
        })
    }

    pub(crate) unsafe fn graph_add_kernel_node(&mut self, new: NewNode, params: *const hipKernelNodeParams) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        // SAFETY: as above.
        let work = unsafe { self.kernel_work(params) }?;
        // SAFETY: as above.
        unsafe { self.add_node(new, work) }
    }

    pub(crate) unsafe fn graph_add_memcpy_node(&mut self, new: NewNode, params: *const hipMemcpy3DParms) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        // SAFETY: as above.
        let work = unsafe { self.copy_work_3d(params) }?;
        // SAFETY: as above.
        unsafe { self.add_node(new, work) }
    }

    pub(crate) unsafe fn graph_add_memcpy_node_1d(
        &mut self,
        new: NewNode,
        (dst, src): (*mut c_void, *const c_void),
        size: usize,
        kind: hipMemcpyKind,
    ) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        let work = self.copy_work_1d(dst, src, size, kind)?;
        // SAFETY: as above.
        unsafe { self.add_node(new, work) }
    }

    pub(crate) unsafe fn graph_add_memcpy_node_to_symbol(
        &mut self,
        new: NewNode,
        (symbol, src): (*const c_void, *const c_void),
        (size, offset): (usize, usize),
        kind: hipMemcpyKind,
    ) -> Hip {
        let dst = self.named_variable(symbol, size, offset)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.graph_add_memcpy_node_1d(new, (dst, src), size, kind) }
    }

    pub(crate) unsafe fn graph_add_memcpy_node_from_symbol(
        &mut self,
        new: NewNode,
        (dst, symbol): (*mut c_void, *const c_void),
        (size, offset): (usize, usize),
        kind: hipMemcpyKind,
    ) -> Hip {
        let src = self.named_variable(symbol, size, offset)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.graph_add_memcpy_node_1d(new, (dst, src), size, kind) }
    }

    pub(crate) unsafe fn drv_graph_add_memcpy_node(&mut self, new: NewNode, params: *const HIP_MEMCPY3D) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        // SAFETY: as above.
        let work = unsafe { self.copy_work_drv(params) }?;
        // SAFETY: as above.
        unsafe { self.add_node(new, work) }
    }

    pub(crate) unsafe fn graph_add_memset_node(&mut self, new: NewNode, params: *const hipMemsetParams) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        required(params)?;
        // SAFETY: as above.
        let work = self.fill_work(unsafe { &*params })?;
        // SAFETY: as above.
        unsafe { self.add_node(new, work) }
    }

    pub(crate) unsafe fn drv_graph_add_memset_node(
        &mut self,
        new: NewNode,
        params: *const HIP_MEMSET_NODE_PARAMS,
    ) -> Hip {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let params = from_driver(unsafe { &*params });
        // SAFETY: as above.
        unsafe { self.graph_add_memset_node(new, &raw const params) }
    }

    pub(crate) unsafe fn graph_add_host_node(&mut self, new: NewNode, params: *const hipHostNodeParams) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        // SAFETY: as above.
        let work = unsafe { self.host_work(params) }?;
        // SAFETY: as above.
        unsafe { self.add_node(new, work) }
    }

    pub(crate) unsafe fn graph_add_event_node(&mut self, new: NewNode, event: hipEvent_t, records: bool) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        let work = self.event_work(event, records)?;
        // SAFETY: as above.
        unsafe { self.add_node(new, work) }
    }

    /// A node of any kind.
    pub(crate) unsafe fn graph_add_any_node(&mut self, new: NewNode, params: *mut hipGraphNodeParams) -> Hip {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let kind = unsafe { params.read() }.r#type;
        // SAFETY: as above: the union is inside of the struct.
        let union = unsafe { &raw mut (*params).params }.cast::<c_void>();
        let copies = union.wrapping_byte_add(COPY_HEADER);
        // The union holds the parameters of this kind.
        match kind {
            hipGraphNodeTypeKernel => {
                // SAFETY: as above.
                unsafe { self.graph_add_kernel_node(new, union.cast()) }
            }
            hipGraphNodeTypeMemcpy => {
                // SAFETY: as above.
                unsafe { self.graph_add_memcpy_node(new, copies.cast()) }
            }
            hipGraphNodeTypeMemset => {
                // SAFETY: as above.
                unsafe { self.graph_add_memset_node(new, union.cast()) }
            }
            hipGraphNodeTypeHost => {
                // SAFETY: as above.
                unsafe { self.graph_add_host_node(new, union.cast()) }
            }
            hipGraphNodeTypeGraph => {
                // SAFETY: as above.
                let value = unsafe { union.cast::<hipGraph_t>().read() };
                // SAFETY: as above.
                unsafe { self.graph_add_child_graph_node(new, value) }
            }
            hipGraphNodeTypeEmpty => {
                // SAFETY: as above.
                unsafe { self.graph_add_empty_node(new) }
            }
            hipGraphNodeTypeWaitEvent => {
                // SAFETY: as above.
                let value = unsafe { union.cast::<hipEvent_t>().read() };
                // SAFETY: as above.
                unsafe { self.graph_add_event_node(new, value, false) }
            }
            hipGraphNodeTypeEventRecord => {
                // SAFETY: as above.
                let value = unsafe { union.cast::<hipEvent_t>().read() };
                // SAFETY: as above.
                unsafe { self.graph_add_event_node(new, value, true) }
            }
            hipGraphNodeTypeMemAlloc => {
                // SAFETY: as above.
                unsafe { self.graph_add_mem_alloc_node(new, union.cast()) }
            }
            hipGraphNodeTypeMemFree => {
                // SAFETY: as above.
                let value = unsafe { union.cast::<*mut c_void>().read() };
                // SAFETY: as above.
                unsafe { self.graph_add_mem_free_node(new, value) }
            }
            _ => Err(hipErrorInvalidValue),
        }
    }

    /// Gives a node other work of the same kind.
    fn set_work(&mut self, target: Target, work: Work) -> Hip {
        let node = self.node(target.node())?;
        if node.work.kind() != work.kind() {
            return Err(hipErrorInvalidValue);
        }
        let Target::Exec(exec, node) = target else {
            node.work = work;
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

    /// Fails unless there is such a node, and such an executable graph.
    fn check_target(&mut self, target: Target, kind: hipGraphNodeType) -> Hip {
        if let Target::Exec(exec, _) = target {
            self.exec(exec)?;
        }
        if self.node(target.node())?.work.kind() != kind {
            return Err(hipErrorInvalidValue);
        }
        Ok(())
    }

    pub(crate) unsafe fn set_kernel(&mut self, target: Target, params: *const hipKernelNodeParams) -> Hip {
        self.check_target(target, hipGraphNodeTypeKernel)?;
        // SAFETY: promised by the caller of the HIP function.
        let work = unsafe { self.kernel_work(params) }?;
        self.set_work(target, work)
    }

    pub(crate) unsafe fn set_copy(&mut self, target: Target, params: *const hipMemcpy3DParms) -> Hip {
        self.check_target(target, hipGraphNodeTypeMemcpy)?;
        // SAFETY: promised by the caller of the HIP function.
        let work = unsafe { self.copy_work_3d(params) }?;
        self.set_work(target, work)
    }

    pub(crate) fn set_copy_1d(
        &mut self,
        target: Target,
        (dst, src): (*mut c_void, *const c_void),
        size: usize,
        kind: hipMemcpyKind,
    ) -> Hip {
        self.check_target(target, hipGraphNodeTypeMemcpy)?;
        let work = self.copy_work_1d(dst, src, size, kind)?;
        self.set_work(target, work)
    }

    pub(crate) fn set_copy_to_symbol(
        &mut self,
        target: Target,
        (symbol, src): (*const c_void, *const c_void),
        (size, offset): (usize, usize),
        kind: hipMemcpyKind,
    ) -> Hip {
        self.check_target(target, hipGraphNodeTypeMemcpy)?;
        let dst = self.named_variable(symbol, size, offset)?;
        self.set_copy_1d(target, (dst, src), size, kind)
    }

    pub(crate) fn set_copy_from_symbol(
        &mut self,
        target: Target,
        (dst, symbol): (*mut c_void, *const c_void),
        (size, offset): (usize, usize),
        kind: hipMemcpyKind,
    ) -> Hip {
        self.check_target(target, hipGraphNodeTypeMemcpy)?;
        let src = self.named_variable(symbol, size, offset)?;
        self.set_copy_1d(target, (dst, src), size, kind)
    }

    pub(crate) unsafe fn set_copy_drv(&mut self, target: Target, params: *const HIP_MEMCPY3D) -> Hip {
        self.check_target(target, hipGraphNodeTypeMemcpy)?;
        // SAFETY: promised by the caller of the HIP function.
        let work = unsafe { self.copy_work_drv(params) }?;
        self.set_work(target, work)
    }

    pub(crate) unsafe fn set_fill(&mut self, target: Target, params: *const hipMemsetParams) -> Hip {
        self.check_target(target, hipGraphNodeTypeMemset)?;
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let work = self.fill_work(unsafe { &*params })?;
        self.set_work(target, work)
    }

    pub(crate) unsafe fn set_fill_drv(&mut self, target: Target, params: *const HIP_MEMSET_NODE_PARAMS) -> Hip {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let params = from_driver(unsafe { &*params });
        // SAFETY: as above.
        unsafe { self.set_fill(target, &raw const params) }
    }

    pub(crate) unsafe fn set_host(&mut self, target: Target, params: *const hipHostNodeParams) -> Hip {
        self.check_target(target, hipGraphNodeTypeHost)?;
        // SAFETY: promised by the caller of the HIP function.
        let work = unsafe { self.host_work(params) }?;
        self.set_work(target, work)
    }

    pub(crate) fn set_event(&mut self, target: Target, event: hipEvent_t, records: bool) -> Hip {
        let work = self.event_work(event, records)?;
        self.check_target(target, work.kind())?;
        self.set_work(target, work)
    }

    /// Any parameters of a node that can be changed.
    pub(crate) unsafe fn set_any(&mut self, target: Target, params: *mut hipGraphNodeParams) -> Hip {
        required(params)?;
        // SAFETY: promised by the caller of the HIP function.
        let kind = unsafe { params.read() }.r#type;
        // SAFETY: as above: the union is inside of the struct.
        let union = unsafe { &raw mut (*params).params }.cast::<c_void>();
        let copies = union.wrapping_byte_add(COPY_HEADER);
        // The union holds the parameters of this kind.
        match kind {
            hipGraphNodeTypeKernel => {
                // SAFETY: as above.
                unsafe { self.set_kernel(target, union.cast()) }
            }
            hipGraphNodeTypeMemcpy => {
                // SAFETY: as above.
                unsafe { self.set_copy(target, copies.cast()) }
            }
            hipGraphNodeTypeMemset => {
                // SAFETY: as above.
                unsafe { self.set_fill(target, union.cast()) }
            }
            hipGraphNodeTypeHost => {
                // SAFETY: as above.
                unsafe { self.set_host(target, union.cast()) }
            }
            hipGraphNodeTypeWaitEvent => {
                // SAFETY: as above.
                let value = unsafe { union.cast::<hipEvent_t>().read() };
                self.set_event(target, value, false)
            }
            hipGraphNodeTypeEventRecord => {
                // SAFETY: as above.
                let value = unsafe { union.cast::<hipEvent_t>().read() };
                self.set_event(target, value, true)
            }
            _ => Err(hipErrorInvalidValue),
        }
    }

    /// Gives the copy of a child graph's node another graph of the same kinds of nodes.
    pub(crate) fn graph_exec_child_graph_node_set_params(
        &mut self,
        exec: hipGraphExec_t,
        node: hipGraphNode_t,
        child: hipGraph_t,
    ) -> Hip {
        self.check_target(Target::Exec(exec, node), hipGraphNodeTypeGraph)?;
        self.graph(child)?;
        let child = child.addr() as u64;
        if self.node(node)?.graph == child {
            return Err(hipErrorUnknown);
        }
        let new = self.steps(child).ok_or(hipErrorInvalidValue)?;
        self.check_runs(exec, "updated")?;
        let step = self
            .exec(exec)?
            .step_mut(node.addr() as u64)
            .ok_or(hipErrorInvalidValue)?;
        let same = |(old, new): (&crate::queues::graphs::Step, &crate::queues::graphs::Step)| {
            old.work.kind() == new.work.kind()
        };
        if step.child.len() != new.len() || !step.child.iter().zip(&new).all(same) {
            return Err(hipErrorUnknown);
        }
        step.child = new;
        Ok(())
    }
}

/// Bytes before the parameters of a copy in the union of `hipGraphNodeParams`.
const COPY_HEADER: usize = 16;
