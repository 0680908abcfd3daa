//! Memory that graphs allocate, and objects of the program that they keep alive.
//!
//! The memory is reserved when its node is made and keeps its address as long as a node or an executable graph may allocate it. What
//! is in it is gone with every run of the node; outside of a run it is as freed memory.

use super::graph_nodes::NewNode;
use super::memory::{address_of, pointer_to};
use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::queues::graphs::{Block, GraphBlock, Shown, Step, UserObject, Work};
use crate::queues::op::OpKind;
use crate::queues::point::StreamId;
use rocmforge_hip_sys::*;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

/// The most references that HIP counts.
const MOST: u32 = i32::MAX as u32;

impl Call<'_> {
    pub(crate) unsafe fn graph_add_mem_alloc_node(&mut self, new: NewNode, params: *mut hipMemAllocNodeParams) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        required(params)?;
        // SAFETY: as above.
        let mut wanted = unsafe { params.read() };
        wanted.dptr = std::ptr::null_mut();
        let props = &wanted.poolProps;
        let pinned = props.allocType == hipMemAllocationTypePinned && props.locationType == hipMemLocationTypeDevice;
        let card = self.card_index(props.locationId);
        let result = match card {
            Ok(card) if pinned && wanted.bytesize > 0 => self.reserve_block(card, &mut wanted),
            _ => Err(hipErrorInvalidValue),
        };
        // SAFETY: as above.
        unsafe { answer(params, wanted) }?;
        // SAFETY: as above.
        unsafe { self.add_node(new, Work::Alloc(result?)) }
    }

    /// Reserves what `wanted` asks for, and puts the address into it.
    fn reserve_block(&mut self, card: usize, wanted: &mut hipMemAllocNodeParams) -> Hip<Block> {
        self.healthy(card)?;
        let size = wanted.bytesize;
        let address = self.allocate(card, size)?;
        let allocation = self.cards[card].vram.find(address);
        let id = allocation.map_or(0, |allocation| allocation.id);
        let block = Block {
            address,
            id,
            size: size as u64,
        };
        wanted.dptr = pointer_to(address);
        let made = GraphBlock {
            params: Shown(*wanted),
            card,
            block,
            holders: 1,
            used: false,
            has_free: false,
        };
        self.graph_memory.insert(address, made);
        self.use_block(address, id, false);
        Ok(block)
    }

    pub(crate) unsafe fn graph_add_mem_free_node(&mut self, new: NewNode, pointer: *mut c_void) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        required(pointer)?;
        let found = self.graph_memory.get_mut(&address_of(pointer));
        let found = found.filter(|found| !found.has_free).ok_or(hipErrorInvalidValue)?;
        found.has_free = true;
        let block = found.block;
        // SAFETY: as above.
        unsafe { self.add_node(new, Work::Free(block)) }
    }

    /// One that may allocate a block is gone.
    pub(crate) fn drop_block(&mut self, block: Block) {
        let Some(found) = self.graph_memory.get_mut(&block.address) else {
            return;
        };
        found.holders = found.holders.saturating_sub(1);
        if found.holders == 0 && !found.used {
            let card = found.card;
            self.graph_memory.remove(&block.address);
            let actor = self.as_actor();
            self.release(card, block.address, &actor);
        }
    }

    /// An executable graph may allocate what its steps allocate.
    pub(crate) fn hold_blocks(&mut self, steps: &[Step]) {
        for step in steps {
            if let Work::Alloc(block) = step.work
                && let Some(found) = self.graph_memory.get_mut(&block.address)
            {
                found.holders += 1;
            }
            self.hold_blocks(&step.child);
        }
    }

    pub(crate) fn drop_blocks(&mut self, steps: &[Step]) {
        for step in steps {
            if let Work::Alloc(block) = step.work {
                self.drop_block(block);
            }
            self.drop_blocks(&step.child);
        }
    }

    /// Frees what an earlier launch has left, before the next one allocates it again.
    pub(crate) fn free_blocks_first(&mut self, stream: StreamId, steps: &[Step]) {
        for step in steps {
            if let Work::Alloc(Block { address, id, .. }) = step.work {
                let used = false;
                self.enqueue(stream, OpKind::Block { address, id, used }, Vec::new());
            }
        }
    }

    /// Frees a graph's memory by its address, as any other memory. None if it is no graph's.
    pub(crate) fn free_block(&mut self, address: u64) -> Option<Hip> {
        let found = self.graph_memory.get(&address)?;
        let (block, card, holders) = (found.block, found.card, found.holders);
        if !found.used {
            return Some(Err(hipErrorInvalidValue));
        }
        if let Err(status) = self.wait_for_card(card) {
            return Some(Err(status));
        }
        self.use_block(block.address, block.id, false);
        if holders == 0 {
            self.graph_memory.remove(&block.address);
            let actor = self.as_actor();
            self.release(card, block.address, &actor);
        }
        Some(Ok(()))
    }

    pub(crate) unsafe fn hipGraphMemAllocNodeGetParams(
        &mut self,
        node: hipGraphNode_t,
        to: *mut hipMemAllocNodeParams,
    ) -> Hip {
        required(to)?;
        let Work::Alloc(block) = self.node(node)?.work else {
            return Err(hipErrorInvalidValue);
        };
        let found = self.graph_memory.get(&block.address).ok_or(hipErrorInvalidValue)?;
        let shown = found.params.0;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, shown) }
    }

    pub(crate) unsafe fn hipGraphMemFreeNodeGetParams(&mut self, node: hipGraphNode_t, to: *mut c_void) -> Hip {
        required(to)?;
        let Work::Free(block) = self.node(node)?.work else {
            return Err(hipErrorInvalidValue);
        };
        // SAFETY: promised by the caller of the HIP function: it points at a pointer.
        unsafe { answer(to.cast(), pointer_to(block.address)) }
    }

    pub(crate) unsafe fn hipDeviceGetGraphMemAttribute(
        &mut self,
        device: c_int,
        attribute: hipGraphMemAttributeType,
        value: *mut c_void,
    ) -> Hip {
        let card = self.card_index(device)?;
        required(value)?;
        let (now, high) = (self.graph_bytes(card), self.cards[card].graph_high);
        let found = match attribute {
            hipGraphMemAttrUsedMemCurrent => now[0],
            hipGraphMemAttrUsedMemHigh => high[0],
            hipGraphMemAttrReservedMemCurrent => now[1],
            hipGraphMemAttrReservedMemHigh => high[1],
            _ => return Err(hipErrorInvalidValue),
        };
        // SAFETY: promised by the caller of the HIP function: it points at 64 bits.
        unsafe { answer(value.cast(), found) }
    }

    /// The highest figures can be set back, to what they are now.
    pub(crate) unsafe fn hipDeviceSetGraphMemAttribute(
        &mut self,
        device: c_int,
        attribute: hipGraphMemAttributeType,
        value: *mut c_void,
    ) -> Hip {
        let card = self.card_index(device)?;
        required(value)?;
        // Before the value is read: HIP looks at it only for one that can be set.
        let place = match attribute {
            hipGraphMemAttrUsedMemHigh => 0,
            hipGraphMemAttrReservedMemHigh => 1,
            _ => return Err(hipErrorInvalidValue),
        };
        // SAFETY: promised by the caller of the HIP function: it points at 64 bits.
        if unsafe { value.cast::<u64>().read() } != 0 {
            return Err(hipErrorInvalidValue);
        }
        let now = self.graph_bytes(card);
        self.cards[card].graph_high[place] = now[place];
        Ok(())
    }

    pub(crate) unsafe fn hipUserObjectCreate(
        &mut self,
        to: *mut hipUserObject_t,
        user: *mut c_void,
        destroy: Option<hipHostFn_t>,
        count: u32,
        flags: u32,
    ) -> Hip {
        required(to)?;
        let destroy = destroy.ok_or(hipErrorInvalidValue)?;
        if flags != hipUserObjectNoDestructorSync || count == 0 || count > MOST {
            return Err(hipErrorInvalidValue);
        }
        let object = UserObject {
            destroy,
            user: user.expose_provenance(),
            count,
        };
        let call = self.number;
        let handle = self.objects.insert(object, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, std::ptr::without_provenance_mut(handle as usize)) }
    }

    /// Gives up references; without any left the object is destroyed. More than there are is no error, and does nothing.
    pub(crate) fn release_object(&mut self, object: u64, count: u32) {
        let Some(found) = self.objects.get_mut(object).filter(|found| found.count >= count) else {
            return;
        };
        found.count -= count;
        if found.count == 0
            && let Some(found) = self.objects.remove(object)
        {
            self.call_program(found.destroy, found.user);
        }
    }

    /// Gives up what a graph has held.
    pub(crate) fn release_objects(&mut self, objects: BTreeMap<u64, u32>) {
        for (object, count) in objects {
            self.release_object(object, count);
        }
    }

    /// Holds the objects of a graph and of those inside it once more, for what is made of it.
    pub(crate) fn hold_objects(&mut self, graph: u64) -> BTreeMap<u64, u32> {
        let mut held = BTreeMap::new();
        let mut todo = vec![graph];
        while let Some(graph) = todo.pop().and_then(|graph| self.graphs.get(graph)) {
            held.extend(graph.objects.keys().map(|object| (*object, 1)));
            let nodes = graph.nodes.iter().filter_map(|node| self.nodes.get(*node));
            todo.extend(nodes.filter_map(|node| match node.work {
                Work::Child(child) => Some(child),
                _ => None,
            }));
        }
        for object in held.keys() {
            if let Some(found) = self.objects.get_mut(*object) {
                found.count = found.count.saturating_add(1);
            }
        }
        held
    }

    fn check_count(object: hipUserObject_t, count: u32) -> Hip<u64> {
        fail_if(object.is_null() || count == 0 || count > MOST, hipErrorInvalidValue)?;
        Ok(object.addr() as u64)
    }

    pub(crate) fn hipUserObjectRelease(&mut self, object: hipUserObject_t, count: u32) -> Hip {
        let object = Self::check_count(object, count)?;
        self.release_object(object, count);
        Ok(())
    }

    pub(crate) fn hipUserObjectRetain(&mut self, object: hipUserObject_t, count: u32) -> Hip {
        let object = Self::check_count(object, count)?;
        if let Some(found) = self.objects.get_mut(object) {
            found.count = found.count.saturating_add(count);
        }
        Ok(())
    }

    pub(crate) fn hipGraphRetainUserObject(
        &mut self,
        graph: hipGraph_t,
        object: hipUserObject_t,
        count: u32,
        flags: u32,
    ) -> Hip {
        self.graph(graph)?;
        let number = Self::check_count(object, count)?;
        fail_if(flags != 0 && flags != hipGraphUserObjectMove, hipErrorInvalidValue)?;
        if self.objects.get(number).is_none() {
            return Ok(());
        }
        if flags != hipGraphUserObjectMove {
            self.hipUserObjectRetain(object, count)?;
        }
        if let Some(graph) = self.graphs.get_mut(graph.addr() as u64) {
            let held = graph.objects.entry(number).or_default();
            *held = held.saturating_add(count);
        }
        Ok(())
    }

    pub(crate) fn hipGraphReleaseUserObject(&mut self, graph: hipGraph_t, object: hipUserObject_t, count: u32) -> Hip {
        self.graph(graph)?;
        let object = Self::check_count(object, count)?;
        let graph = self.graphs.get_mut(graph.addr() as u64).ok_or(hipErrorInvalidValue)?;
        let Some(held) = graph.objects.get_mut(&object).filter(|held| **held >= count) else {
            return Ok(());
        };
        *held -= count;
        if *held == 0 {
            graph.objects.remove(&object);
        }
        self.release_object(object, count);
        Ok(())
    }

    cases! {
        fn hipGraphAddMemAllocNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, node_params: *mut hipMemAllocNodeParams)
            => |c| c.graph_add_mem_alloc_node((graph_node, graph, dependencies, num_dependencies), node_params);
        fn hipGraphAddMemFreeNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, dev_ptr: *mut c_void)
            => |c| c.graph_add_mem_free_node((graph_node, graph, dependencies, num_dependencies), dev_ptr);
        fn hipDeviceGraphMemTrim(device: c_int) => |c| c.card_index(device).map(|_| ());
        fn hipDrvGraphAddMemFreeNode(ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, dptr: hipDeviceptr_t)
            => |c| c.graph_add_mem_free_node((ph_graph_node, graph, dependencies, num_dependencies), dptr);
    }
}
