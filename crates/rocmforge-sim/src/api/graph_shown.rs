//! Queries of graph nodes: their parameters, attributes, and whether they are switched on.

use super::answer;
use super::required;
use crate::calls::call::{Call, Hip};
use crate::queues::graphs::{Node, Shown, Work};
use crate::queues::op::HostFunction;
use rocmforge_hip_sys::*;

impl Call<'_> {
    /// A node of this kind.
    fn node_of_kind(&mut self, node: hipGraphNode_t, kind: hipGraphNodeType) -> Hip<&mut Node> {
        let found = self.node(node)?;
        if found.work.kind() == kind {
            Ok(found)
        } else {
            Err(hipErrorInvalidValue)
        }
    }

    pub(crate) unsafe fn hipGraphKernelNodeGetParams(
        &mut self,
        node: hipGraphNode_t,
        to: *mut hipKernelNodeParams,
    ) -> Hip {
        required(to)?;
        let Work::Kernel(kernel) = &self.node(node)?.work else {
            return Err(hipErrorInvalidValue);
        };
        let mut shown = kernel.shown();
        if kernel.function == 0 {
            // Captured: the program's own handle is not known any more, so it gets another of the same function.
            let function = crate::machine::module::Function {
                module: kernel.launch.handle,
                kernel: kernel.launch.kernel,
            };
            let call = self.number;
            let made = self.functions.insert(function, call) as usize;
            if let Work::Kernel(kernel) = &mut self.node(node)?.work {
                kernel.function = made;
            }
            shown.func = std::ptr::without_provenance_mut(made);
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, shown) }
    }

    pub(crate) unsafe fn hipGraphMemcpyNodeGetParams(
        &mut self,
        node: hipGraphNode_t,
        to: *mut hipMemcpy3DParms,
    ) -> Hip {
        required(to)?;
        let Work::Copy(_, Shown(shown)) = self.node(node)?.work.clone() else {
            return Err(hipErrorInvalidValue);
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, shown) }
    }

    pub(crate) unsafe fn hipDrvGraphMemcpyNodeGetParams(&mut self, node: hipGraphNode_t, to: *mut HIP_MEMCPY3D) -> Hip {
        required(to)?;
        let Work::Copy(_, Shown(p)) = self.node(node)?.work.clone() else {
            return Err(hipErrorInvalidValue);
        };
        let kind = |array: hipArray_t| {
            if array.is_null() {
                hipMemoryTypeUnified
            } else {
                hipMemoryTypeArray
            }
        };
        let shown = HIP_MEMCPY3D {
            srcXInBytes: p.srcPos.x,
            srcY: p.srcPos.y,
            srcZ: p.srcPos.z,
            srcLOD: 0,
            srcMemoryType: kind(p.srcArray),
            srcHost: p.srcPtr.ptr,
            srcDevice: p.srcPtr.ptr,
            srcArray: p.srcArray,
            srcPitch: p.srcPtr.pitch,
            srcHeight: p.srcPtr.ysize,
            dstXInBytes: p.dstPos.x,
            dstY: p.dstPos.y,
            dstZ: p.dstPos.z,
            dstLOD: 0,
            dstMemoryType: kind(p.dstArray),
            dstHost: p.dstPtr.ptr,
            dstDevice: p.dstPtr.ptr,
            dstArray: p.dstArray,
            dstPitch: p.dstPtr.pitch,
            dstHeight: p.dstPtr.ysize,
            WidthInBytes: p.extent.width,
            Height: p.extent.height,
            Depth: p.extent.depth,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, shown) }
    }

    pub(crate) unsafe fn hipGraphMemsetNodeGetParams(&mut self, node: hipGraphNode_t, to: *mut hipMemsetParams) -> Hip {
        required(to)?;
        let Work::Fill(_, Shown(shown)) = self.node(node)?.work.clone() else {
            return Err(hipErrorInvalidValue);
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, shown) }
    }

    pub(crate) unsafe fn hipGraphHostNodeGetParams(&mut self, node: hipGraphNode_t, to: *mut hipHostNodeParams) -> Hip {
        required(to)?;
        let (function, user) = match self.node(node)?.work {
            Work::Host(HostFunction::Plain(function), user) => (Some(function), user),
            Work::Host(HostFunction::Callback { .. }, user) => (None, user),
            _ => return Err(hipErrorInvalidValue),
        };
        let shown = hipHostNodeParams {
            r#fn: function,
            userData: std::ptr::with_exposed_provenance_mut(user),
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, shown) }
    }

    pub(crate) unsafe fn hipGraphChildGraphNodeGetGraph(&mut self, node: hipGraphNode_t, to: *mut hipGraph_t) -> Hip {
        let Work::Child(child) = self.node(node)?.work else {
            return Err(hipErrorInvalidValue);
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, std::ptr::without_provenance_mut(child as usize)) }
    }

    pub(crate) unsafe fn graph_event_node_get_event(
        &mut self,
        node: hipGraphNode_t,
        to: *mut hipEvent_t,
        records: bool,
    ) -> Hip {
        let event = match self.node(node)?.work {
            Work::Record(event) if records => event,
            Work::Wait(event) if !records => event,
            _ => return Err(hipErrorInvalidValue),
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, std::ptr::without_provenance_mut(event as usize)) }
    }

    fn check_attribute(attribute: hipLaunchAttributeID) -> Hip {
        match attribute {
            hipLaunchAttributeAccessPolicyWindow | hipLaunchAttributeCooperative | hipLaunchAttributePriority => Ok(()),
            _ => Err(hipErrorInvalidValue),
        }
    }

    pub(crate) unsafe fn hipGraphKernelNodeGetAttribute(
        &mut self,
        node: hipGraphNode_t,
        attribute: hipLaunchAttributeID,
        value: *mut hipLaunchAttributeValue,
    ) -> Hip {
        required(value)?;
        Self::check_attribute(attribute)?;
        let node = self.node_of_kind(node, hipGraphNodeTypeKernel)?;
        let words = node.attributes.get(&attribute).copied().unwrap_or_default();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(value, hipLaunchAttributeValue { words }) }
    }

    pub(crate) unsafe fn hipGraphKernelNodeSetAttribute(
        &mut self,
        node: hipGraphNode_t,
        attribute: hipLaunchAttributeID,
        value: *const hipLaunchAttributeValue,
    ) -> Hip {
        required(value)?;
        Self::check_attribute(attribute)?;
        let node = self.node_of_kind(node, hipGraphNodeTypeKernel)?;
        // SAFETY: promised by the caller of the HIP function.
        let value = unsafe { value.read() };
        if attribute == hipLaunchAttributeAccessPolicyWindow && !is_window(value.words) {
            return Err(hipErrorInvalidValue);
        }
        node.attributes.insert(attribute, value.words);
        Ok(())
    }

    pub(crate) fn hipGraphKernelNodeCopyAttributes(&mut self, from: hipGraphNode_t, to: hipGraphNode_t) -> Hip {
        let attributes = self.node_of_kind(from, hipGraphNodeTypeKernel)?.attributes.clone();
        self.node_of_kind(to, hipGraphNodeTypeKernel)?.attributes = attributes;
        Ok(())
    }

    /// Whether a node of this kind can be switched off.
    fn check_switch(&mut self, node: hipGraphNode_t) -> Hip {
        match self.node(node)?.work {
            Work::Kernel(_) | Work::Copy(..) | Work::Fill(..) => Ok(()),
            _ => Err(hipErrorInvalidValue),
        }
    }

    pub(crate) fn hipGraphNodeSetEnabled(&mut self, exec: hipGraphExec_t, node: hipGraphNode_t, on: u32) -> Hip {
        self.exec(exec)?;
        self.check_switch(node)?;
        self.check_runs(exec, "updated")?;
        let step = self.exec(exec)?.step_mut(node.addr() as u64);
        step.ok_or(hipErrorInvalidValue)?.enabled = on != 0;
        Ok(())
    }

    pub(crate) unsafe fn hipGraphNodeGetEnabled(
        &mut self,
        exec: hipGraphExec_t,
        node: hipGraphNode_t,
        on: *mut u32,
    ) -> Hip {
        required(on)?;
        self.exec(exec)?;
        self.check_switch(node)?;
        let step = self.exec(exec)?.step_mut(node.addr() as u64);
        let enabled = step.ok_or(hipErrorInvalidValue)?.enabled;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(on, u32::from(enabled)) }
    }

    cases! {
        fn hipGraphEventRecordNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t)
            => |c| c.graph_event_node_get_event(node, event_out, true);
        fn hipGraphEventWaitNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t)
            => |c| c.graph_event_node_get_event(node, event_out, false);
    }
}

/// Whether these are the words of an access policy window that a card without persisting L2 memory accepts: of no bytes, with a hit ratio
/// between 0 and 1.
fn is_window(words: [u64; 4]) -> bool {
    /// `hipAccessPropertyPersisting`.
    const PERSISTING: u32 = 2;
    let ratio = f32::from_bits((words[1] >> 32) as u32);
    let missed = words[2] as u32;
    (0.0..=1.0).contains(&ratio) && missed != PERSISTING && words[3] == 0
}
