//! Captures and graphs.

/// As `forward!`, which it uses.
macro_rules! graph_functions {
    () => {forward! {
        // Captures
        fn hipStreamGetCaptureInfo(stream: hipStream_t, capture_status: *mut hipStreamCaptureStatus, id: *mut c_ulonglong)
            => |c| {
            let (nothing, no_list) = (std::ptr::null_mut(), (std::ptr::null_mut(), std::ptr::null_mut()));
            c.stream_get_capture_info(stream, capture_status, id, nothing, no_list)
        };
        fn hipStreamGetCaptureInfo_v2(stream: hipStream_t, capture_status_out: *mut hipStreamCaptureStatus, id_out: *mut c_ulonglong, graph_out: *mut hipGraph_t, dependencies_out: *mut *const hipGraphNode_t, num_dependencies_out: *mut usize)
            => |c| c.stream_get_capture_info(
                stream, capture_status_out, id_out, graph_out, (dependencies_out, num_dependencies_out),
            );
        fn hipStreamUpdateCaptureDependencies(stream: hipStream_t, dependencies: *mut hipGraphNode_t, num_dependencies: usize, flags: c_uint)
            => |c| c.stream_update_capture_dependencies(stream, dependencies, num_dependencies, flags);
        fn hipStreamBeginCaptureToGraph(stream: hipStream_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, dependency_data: *const hipGraphEdgeData, num_dependencies: usize, mode: hipStreamCaptureMode)
            => |c| c.stream_begin_capture_to_graph(
                stream, graph, dependencies, dependency_data, num_dependencies, mode,
            );
        // Graphs
        fn hipGraphCreate(graph: *mut hipGraph_t, flags: c_uint) => |c| c.graph_create(graph, flags);
        fn hipGraphClone(graph_clone: *mut hipGraph_t, original_graph: hipGraph_t)
            => |c| c.graph_clone(graph_clone, original_graph);
        fn hipGraphDestroyNode(node: hipGraphNode_t) => |c| c.graph_destroy_node(node);
        fn hipGraphAddEmptyNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize)
            => |c| c.graph_add_empty_node((graph_node, graph, dependencies, num_dependencies));
        fn hipGraphAddKernelNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, node_params: *const hipKernelNodeParams)
            => |c| c.graph_add_kernel_node((graph_node, graph, dependencies, num_dependencies), node_params);
        fn hipGraphAddMemcpyNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, copy_params: *const hipMemcpy3DParms)
            => |c| c.graph_add_memcpy_node((graph_node, graph, dependencies, num_dependencies), copy_params);
        fn hipGraphAddMemcpyNode1D(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind)
            => |c| c.graph_add_memcpy_node_1d((graph_node, graph, dependencies, num_dependencies), (dst, src), count, kind);
        fn hipGraphAddMemcpyNodeToSymbol(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.graph_add_memcpy_node_to_symbol((graph_node, graph, dependencies, num_dependencies), (symbol, src), (count, offset), kind);
        fn hipGraphAddMemcpyNodeFromSymbol(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.graph_add_memcpy_node_from_symbol((graph_node, graph, dependencies, num_dependencies), (dst, symbol), (count, offset), kind);
        fn hipGraphAddMemsetNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, memset_params: *const hipMemsetParams)
            => |c| c.graph_add_memset_node((graph_node, graph, dependencies, num_dependencies), memset_params);
        fn hipGraphAddHostNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, node_params: *const hipHostNodeParams)
            => |c| c.graph_add_host_node((graph_node, graph, dependencies, num_dependencies), node_params);
        fn hipGraphAddChildGraphNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, child_graph: hipGraph_t)
            => |c| c.graph_add_child_graph_node((graph_node, graph, dependencies, num_dependencies), child_graph);
        fn hipGraphAddEventRecordNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, event: hipEvent_t)
            => |c| c.graph_add_event_node((graph_node, graph, dependencies, num_dependencies), event, true);
        fn hipGraphAddEventWaitNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, event: hipEvent_t)
            => |c| c.graph_add_event_node((graph_node, graph, dependencies, num_dependencies), event, false);
        fn hipGraphAddMemAllocNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, node_params: *mut hipMemAllocNodeParams)
            => |c| c.graph_add_mem_alloc_node((graph_node, graph, dependencies, num_dependencies), node_params);
        fn hipGraphAddMemFreeNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, dev_ptr: *mut c_void)
            => |c| c.graph_add_mem_free_node((graph_node, graph, dependencies, num_dependencies), dev_ptr);
        fn hipGraphAddNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, node_params: *mut hipGraphNodeParams)
            => |c| c.graph_add_any_node((graph_node, graph, dependencies, num_dependencies), node_params);
        fn hipGraphAddDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, num_dependencies: usize)
            => |c| c.graph_add_dependencies(graph, from, to, num_dependencies);
        fn hipGraphRemoveDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, num_dependencies: usize)
            => |c| c.graph_remove_dependencies(graph, from, to, num_dependencies);
        fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, num_nodes: *mut usize)
            => |c| c.graph_get_nodes(graph, nodes, num_nodes, false);
        fn hipGraphGetRootNodes(graph: hipGraph_t, root_nodes: *mut hipGraphNode_t, num_root_nodes: *mut usize)
            => |c| c.graph_get_nodes(graph, root_nodes, num_root_nodes, true);
        fn hipGraphGetEdges(graph: hipGraph_t, from: *mut hipGraphNode_t, to: *mut hipGraphNode_t, num_edges: *mut usize)
            => |c| c.graph_get_edges(graph, from, to, num_edges);
        fn hipGraphNodeGetDependencies(node: hipGraphNode_t, dependencies: *mut hipGraphNode_t, num_dependencies: *mut usize)
            => |c| c.graph_node_get_dependencies(node, dependencies, num_dependencies);
        fn hipGraphNodeGetDependentNodes(node: hipGraphNode_t, dependent_nodes: *mut hipGraphNode_t, num_dependent_nodes: *mut usize)
            => |c| c.graph_node_get_dependent_nodes(node, dependent_nodes, num_dependent_nodes);
        fn hipGraphNodeGetType(node: hipGraphNode_t, kind: *mut hipGraphNodeType)
            => |c| c.graph_node_get_type(node, kind);
        fn hipGraphNodeFindInClone(node: *mut hipGraphNode_t, original_node: hipGraphNode_t, cloned_graph: hipGraph_t)
            => |c| c.graph_node_find_in_clone(node, original_node, cloned_graph);
        fn hipGraphDebugDotPrint(graph: hipGraph_t, path: *const c_char, flags: c_uint)
            => |c| { let _ = flags; c.graph_debug_dot_print(graph, path) };
        // Parameters of nodes
        fn hipGraphKernelNodeGetParams(node: hipGraphNode_t, node_params: *mut hipKernelNodeParams)
            => |c| c.graph_kernel_node_get_params(node, node_params);
        fn hipGraphKernelNodeSetParams(node: hipGraphNode_t, node_params: *const hipKernelNodeParams)
            => |c| c.set_kernel(Target::Node(node), node_params);
        fn hipGraphKernelNodeGetAttribute(node: hipGraphNode_t, attr: hipLaunchAttributeID, value: *mut hipLaunchAttributeValue)
            => |c| c.graph_kernel_node_get_attribute(node, attr, value);
        fn hipGraphKernelNodeSetAttribute(node: hipGraphNode_t, attr: hipLaunchAttributeID, value: *const hipLaunchAttributeValue)
            => |c| c.graph_kernel_node_set_attribute(node, attr, value);
        fn hipGraphKernelNodeCopyAttributes(src: hipGraphNode_t, dst: hipGraphNode_t)
            => |c| c.graph_kernel_node_copy_attributes(src, dst);
        fn hipGraphMemcpyNodeGetParams(node: hipGraphNode_t, node_params: *mut hipMemcpy3DParms)
            => |c| c.graph_memcpy_node_get_params(node, node_params);
        fn hipGraphMemcpyNodeSetParams(node: hipGraphNode_t, node_params: *const hipMemcpy3DParms)
            => |c| c.set_copy(Target::Node(node), node_params);
        fn hipGraphMemcpyNodeSetParams1D(node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind)
            => |c| c.set_copy_1d(Target::Node(node), (dst, src), count, kind);
        fn hipGraphMemcpyNodeSetParamsToSymbol(node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.set_copy_to_symbol(Target::Node(node), (symbol, src), (count, offset), kind);
        fn hipGraphMemcpyNodeSetParamsFromSymbol(node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.set_copy_from_symbol(Target::Node(node), (dst, symbol), (count, offset), kind);
        fn hipGraphMemsetNodeGetParams(node: hipGraphNode_t, node_params: *mut hipMemsetParams)
            => |c| c.graph_memset_node_get_params(node, node_params);
        fn hipGraphMemsetNodeSetParams(node: hipGraphNode_t, node_params: *const hipMemsetParams)
            => |c| c.set_fill(Target::Node(node), node_params);
        fn hipGraphHostNodeGetParams(node: hipGraphNode_t, node_params: *mut hipHostNodeParams)
            => |c| c.graph_host_node_get_params(node, node_params);
        fn hipGraphHostNodeSetParams(node: hipGraphNode_t, node_params: *const hipHostNodeParams)
            => |c| c.set_host(Target::Node(node), node_params);
        fn hipGraphChildGraphNodeGetGraph(node: hipGraphNode_t, graph: *mut hipGraph_t)
            => |c| c.graph_child_graph_node_get_graph(node, graph);
        fn hipGraphEventRecordNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t)
            => |c| c.graph_event_node_get_event(node, event_out, true);
        fn hipGraphEventRecordNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t)
            => |c| c.set_event(Target::Node(node), event, true);
        fn hipGraphEventWaitNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t)
            => |c| c.graph_event_node_get_event(node, event_out, false);
        fn hipGraphEventWaitNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t)
            => |c| c.set_event(Target::Node(node), event, false);
        fn hipGraphMemAllocNodeGetParams(node: hipGraphNode_t, node_params: *mut hipMemAllocNodeParams)
            => |c| c.graph_mem_alloc_node_get_params(node, node_params);
        fn hipGraphMemFreeNodeGetParams(node: hipGraphNode_t, dev_ptr: *mut c_void)
            => |c| c.graph_mem_free_node_get_params(node, dev_ptr);
        fn hipGraphNodeSetParams(node: hipGraphNode_t, node_params: *mut hipGraphNodeParams)
            => |c| c.set_any(Target::Node(node), node_params);
        // Executable graphs
        fn hipGraphInstantiateWithFlags(graph_exec: *mut hipGraphExec_t, graph: hipGraph_t, flags: c_ulonglong)
            => |c| c.graph_instantiate_with_flags(graph_exec, graph, flags);
        fn hipGraphInstantiateWithParams(graph_exec: *mut hipGraphExec_t, graph: hipGraph_t, instantiate_params: *mut hipGraphInstantiateParams)
            => |c| c.graph_instantiate_with_params(graph_exec, graph, instantiate_params);
        fn hipGraphUpload(graph_exec: hipGraphExec_t, stream: hipStream_t) => |c| c.graph_upload(graph_exec, stream);
        fn hipGraphExecGetFlags(graph_exec: hipGraphExec_t, flags: *mut c_ulonglong)
            => |c| c.graph_exec_get_flags(graph_exec, flags);
        fn hipGraphNodeSetEnabled(graph_exec: hipGraphExec_t, node: hipGraphNode_t, is_enabled: c_uint)
            => |c| c.graph_node_set_enabled(graph_exec, node, is_enabled);
        fn hipGraphNodeGetEnabled(graph_exec: hipGraphExec_t, node: hipGraphNode_t, is_enabled: *mut c_uint)
            => |c| c.graph_node_get_enabled(graph_exec, node, is_enabled);
        fn hipGraphExecKernelNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipKernelNodeParams)
            => |c| c.set_kernel(Target::Exec(graph_exec, node), node_params);
        fn hipGraphExecMemcpyNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *mut hipMemcpy3DParms)
            => |c| c.set_copy(Target::Exec(graph_exec, node), node_params);
        fn hipGraphExecMemcpyNodeSetParams1D(graph_exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind)
            => |c| c.set_copy_1d(Target::Exec(graph_exec, node), (dst, src), count, kind);
        fn hipGraphExecMemcpyNodeSetParamsToSymbol(graph_exec: hipGraphExec_t, node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.set_copy_to_symbol(Target::Exec(graph_exec, node), (symbol, src), (count, offset), kind);
        fn hipGraphExecMemcpyNodeSetParamsFromSymbol(graph_exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind)
            => |c| c.set_copy_from_symbol(Target::Exec(graph_exec, node), (dst, symbol), (count, offset), kind);
        fn hipGraphExecMemsetNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipMemsetParams)
            => |c| c.set_fill(Target::Exec(graph_exec, node), node_params);
        fn hipGraphExecHostNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipHostNodeParams)
            => |c| c.set_host(Target::Exec(graph_exec, node), node_params);
        fn hipGraphExecChildGraphNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, child_graph: hipGraph_t)
            => |c| c.graph_exec_child_graph_node_set_params(graph_exec, node, child_graph);
        fn hipGraphExecEventRecordNodeSetEvent(graph_exec: hipGraphExec_t, node: hipGraphNode_t, event: hipEvent_t)
            => |c| c.set_event(Target::Exec(graph_exec, node), event, true);
        fn hipGraphExecEventWaitNodeSetEvent(graph_exec: hipGraphExec_t, node: hipGraphNode_t, event: hipEvent_t)
            => |c| c.set_event(Target::Exec(graph_exec, node), event, false);
        fn hipGraphExecNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *mut hipGraphNodeParams)
            => |c| c.set_any(Target::Exec(graph_exec, node), node_params);
        // Graph memory and user objects
        fn hipDeviceGetGraphMemAttribute(device: c_int, attr: hipGraphMemAttributeType, value: *mut c_void)
            => |c| c.device_get_graph_mem_attribute(device, attr, value);
        fn hipDeviceSetGraphMemAttribute(device: c_int, attr: hipGraphMemAttributeType, value: *mut c_void)
            => |c| c.device_set_graph_mem_attribute(device, attr, value);
        fn hipDeviceGraphMemTrim(device: c_int) => |c| c.card_index(device).map(|_| ());
        fn hipUserObjectCreate(object_out: *mut hipUserObject_t, ptr: *mut c_void, destroy: Option<hipHostFn_t>, initial_refcount: c_uint, flags: c_uint)
            => |c| c.user_object_create(object_out, ptr, destroy, initial_refcount, flags);
        fn hipUserObjectRelease(object: hipUserObject_t, count: c_uint) => |c| c.user_object_release(object, count);
        fn hipUserObjectRetain(object: hipUserObject_t, count: c_uint) => |c| c.user_object_retain(object, count);
        fn hipGraphRetainUserObject(graph: hipGraph_t, object: hipUserObject_t, count: c_uint, flags: c_uint)
            => |c| c.graph_retain_user_object(graph, object, count, flags);
        fn hipGraphReleaseUserObject(graph: hipGraph_t, object: hipUserObject_t, count: c_uint)
            => |c| c.graph_release_user_object(graph, object, count);
        // Nodes as the driver names their parameters
        fn hipDrvGraphAddMemcpyNode(ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, copy_params: *const HIP_MEMCPY3D, ctx: hipCtx_t)
            => |c| { let _ = ctx; c.drv_graph_add_memcpy_node((ph_graph_node, graph, dependencies, num_dependencies), copy_params) };
        fn hipDrvGraphAddMemsetNode(ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, memset_params: *const HIP_MEMSET_NODE_PARAMS, ctx: hipCtx_t)
            => |c| { let _ = ctx; c.drv_graph_add_memset_node((ph_graph_node, graph, dependencies, num_dependencies), memset_params) };
        fn hipDrvGraphAddMemFreeNode(ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, dptr: hipDeviceptr_t)
            => |c| c.graph_add_mem_free_node((ph_graph_node, graph, dependencies, num_dependencies), dptr);
        fn hipDrvGraphMemcpyNodeGetParams(node: hipGraphNode_t, node_params: *mut HIP_MEMCPY3D)
            => |c| c.drv_graph_memcpy_node_get_params(node, node_params);
        fn hipDrvGraphMemcpyNodeSetParams(node: hipGraphNode_t, node_params: *const HIP_MEMCPY3D)
            => |c| c.set_copy_drv(Target::Node(node), node_params);
        fn hipDrvGraphExecMemcpyNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, copy_params: *const HIP_MEMCPY3D, ctx: hipCtx_t)
            => |c| { let _ = ctx; c.set_copy_drv(Target::Exec(graph_exec, node), copy_params) };
        fn hipDrvGraphExecMemsetNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, memset_params: *const HIP_MEMSET_NODE_PARAMS, ctx: hipCtx_t)
            => |c| { let _ = ctx; c.set_fill_drv(Target::Exec(graph_exec, node), memset_params) };
    }};
}

pub(super) use graph_functions;
