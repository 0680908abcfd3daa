//! Every name that a `libamdhip64` exports, with its version node and the module that implements it.
//!
//! Names and nodes are those of AMD's libraries from ROCm 5 to 7.2; a name stays for ever in the node in which it first appeared. Within a
//! node, names stand under the module that implements them.
//! `forwarded` functions are those of [`rocmforge_hip_sys::for_each_hip_function`]; `absent` ones answer `hipErrorNotSupported`.

use crate::process;
use crate::stub_library::StubFunction;
use rocmforge_hip_sys::{hipError_t, hipErrorNotSupported};

/// One name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) name: &'static str,
    /// Index into [`NODES`].
    pub(crate) node: usize,
    /// The module that implements it.
    pub(crate) module: &'static str,
}

/// The address of a function.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Function(pub(crate) *const ());

// SAFETY: the address of code, which no one writes.
unsafe impl Sync for Function {}

macro_rules! address {
    (absent $name:ident) => {{
        unsafe extern "C" fn absent() -> rocmforge_hip_sys::hipError_t {
            crate::names::absent(stringify!($name))
        }
        absent as *const ()
    }};
    ($module:ident $name:ident) => {
        crate::$module::$name as *const ()
    };
}

macro_rules! names {
    ($($node:literal { $($module:ident { $($name:ident)* })* })*) => {
        /// Version nodes, oldest first.
        pub(crate) const NODES: &[&str] = &[$($node),*];

        /// All names, in the order of [`FUNCTIONS`].
        pub(crate) static NAMES: &[Name] = &[$($($(
            Name { name: stringify!($name), node: node($node), module: stringify!($module) },
        )*)*)*];

        /// Their addresses: what the stub libraries jump through.
        pub(crate) static FUNCTIONS: [Function; NAMES.len()] = [$($($(Function(address!($module $name)),)*)*)*];
    };
}

/// Counts a call of a function that is not simulated, and answers it.
fn absent(name: &'static str) -> hipError_t {
    process::call(|process| {
        crate::absent::count(name);
        process.sim.answered(name, hipErrorNotSupported)
    })
}

/// The index of a node.
const fn node(name: &str) -> usize {
    let mut index = 0;
    while index < NODES.len() {
        if same(NODES[index], name) {
            return index;
        }
        index += 1;
    }
    panic!("every node that a name is in is one of the nodes")
}

/// Whether two texts are the same, at compile time.
pub(crate) const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// The address of a function by its name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    let index = NAMES.iter().position(|known| known.name == name)?;
    FUNCTIONS.get(index)
}

/// Every function of HIP that a program may ask for, and whether it is simulated.
pub fn functions() -> impl Iterator<Item = (&'static str, bool)> {
    NAMES.iter().map(|known| (known.name, known.module != "absent"))
}

/// All of them, for a stub library.
pub(crate) fn stubs() -> Vec<StubFunction<'static>> {
    let stub = |(entry, known): (usize, &Name)| StubFunction {
        name: known.name,
        node: known.node,
        entry,
    };
    NAMES.iter().enumerate().map(stub).collect()
}

names! {
    "hip_4.2" {
        forwarded {
            hipChooseDevice hipChooseDeviceR0000 hipCtxCreate hipCtxDestroy hipCtxDisablePeerAccess
            hipCtxEnablePeerAccess hipCtxGetApiVersion hipCtxGetCacheConfig hipCtxGetCurrent hipCtxGetDevice
            hipCtxGetFlags hipCtxGetSharedMemConfig hipCtxPopCurrent hipCtxPushCurrent hipCtxSetCacheConfig
            hipCtxSetCurrent hipCtxSetSharedMemConfig hipCtxSynchronize hipDeviceCanAccessPeer
            hipDeviceComputeCapability hipDeviceDisablePeerAccess hipDeviceEnablePeerAccess hipDeviceGet
            hipDeviceGetAttribute hipDeviceGetByPCIBusId hipDeviceGetCacheConfig hipDeviceGetStreamPriorityRange
            hipDeviceGetLimit hipDeviceGetName hipDeviceGetPCIBusId hipDeviceGetSharedMemConfig hipDeviceGetP2PAttribute
            hipDevicePrimaryCtxGetState hipDevicePrimaryCtxRelease hipDevicePrimaryCtxReset hipDevicePrimaryCtxRetain
            hipDevicePrimaryCtxSetFlags hipDeviceReset hipDeviceSetCacheConfig hipDeviceSetSharedMemConfig
            hipDeviceSynchronize hipDeviceTotalMem hipDriverGetVersion hipEventCreate hipEventCreateWithFlags
            hipEventDestroy hipEventElapsedTime hipEventQuery hipEventRecord hipEventSynchronize
            hipExtGetLinkTypeAndHopCount hipExtMallocWithFlags hipFree hipFreeArray hipGetDevice hipGetDeviceCount
            hipGetDeviceProperties hipGetDevicePropertiesR0000 hipGetLastError hipMemAdvise hipMemAllocHost hipHostAlloc
            hipHostFree hipHostGetDevicePointer hipHostGetFlags hipHostMalloc hipHostRegister hipHostUnregister hipInit
            hipIpcCloseMemHandle hipIpcGetMemHandle hipIpcOpenMemHandle hipIpcGetEventHandle hipIpcOpenEventHandle
            hipMalloc hipMalloc3D hipMalloc3DArray hipMallocManaged hipArrayCreate hipArray3DCreate hipMallocArray
            hipMallocPitch hipMemAllocPitch hipMemcpy hipMemcpyWithStream hipMemcpy2D hipMemcpy2DAsync
            hipMemcpy2DToArray hipMemcpy3D hipMemcpy3DAsync hipMemcpyAsync hipMemcpyDtoD hipMemcpyDtoDAsync
            hipMemcpyDtoH hipMemcpyDtoHAsync hipMemcpyHtoD hipMemcpyHtoDAsync hipMemcpyPeer hipMemcpyPeerAsync
            hipMemcpyToArray hipMemcpyFromArray hipMemGetAddressRange hipMemGetInfo hipMemPrefetchAsync hipMemPtrGetInfo
            hipMemRangeGetAttribute hipMemRangeGetAttributes hipMemset hipMemsetAsync hipMemsetD8 hipMemsetD8Async
            hipMemsetD16 hipMemsetD16Async hipMemsetD32 hipMemsetD32Async hipMemset2D hipMemset2DAsync hipMemset3D
            hipMemset3DAsync hipModuleGetFunction hipModuleGetGlobal hipModuleLaunchKernel hipModuleLoad
            hipModuleLoadData hipModuleUnload hipModuleOccupancyMaxPotentialBlockSize
            hipModuleOccupancyMaxPotentialBlockSizeWithFlags hipModuleOccupancyMaxActiveBlocksPerMultiprocessor
            hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags hipFuncGetAttribute hipPeekAtLastError
            hipPointerSetAttribute hipProfilerStart hipProfilerStop hipRuntimeGetVersion hipGetDeviceFlags hipSetDevice
            hipSetDeviceFlags hipStreamAddCallback hipStreamAttachMemAsync hipStreamCreate hipStreamCreateWithFlags
            hipStreamCreateWithPriority hipStreamDestroy hipStreamGetDevice hipStreamGetFlags hipStreamQuery
            hipStreamSynchronize hipStreamWaitEvent hipGetChannelDesc hipMallocHost hipFreeHost
            hipExtStreamCreateWithCUMask hipStreamGetPriority hipMemcpy2DFromArray hipMemcpy2DFromArrayAsync
            hipMemcpyAtoH hipMemcpyHtoA hipExtStreamGetCUMask
            hipCreateTextureObject hipDestroyTextureObject hipGetTextureObjectResourceDesc
            hipGetTextureObjectResourceViewDesc hipGetTextureObjectTextureDesc hipCreateSurfaceObject
            hipDestroySurfaceObject _Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc
            _Z23hipDestroySurfaceObjectP13__hip_surface
        }
        entry_point {
            hipApiName
        }
        error {
            hipGetErrorName hipGetErrorString
        }
        fat_binary {
            __hipPopCallConfiguration __hipPushCallConfiguration __hipRegisterFatBinary __hipRegisterFunction
            __hipRegisterVar __hipRegisterSurface __hipRegisterTexture __hipRegisterManagedVar __hipUnregisterFatBinary
        }
        function {
            hipFuncSetAttribute hipFuncSetCacheConfig hipFuncSetSharedMemConfig hipModuleLoadDataEx
            hipOccupancyMaxPotentialBlockSize hipOccupancyMaxActiveBlocksPerMultiprocessor
            hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags hipFuncGetAttributes
        }
        hip5 {
            hipMemcpyParam2D hipDrvMemcpy3D hipDrvMemcpy3DAsync hipPointerGetAttributes hipMemcpyParam2DAsync
        }
        launch {
            hipExtModuleLaunchKernel hipHccModuleLaunchKernel hipExtLaunchKernel hipLaunchCooperativeKernel
            hipLaunchKernel
            _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_
        }
        rtc {
            hiprtcCompileProgram hiprtcCreateProgram hiprtcDestroyProgram hiprtcGetLoweredName hiprtcGetProgramLog
            hiprtcGetProgramLogSize hiprtcGetCode hiprtcGetCodeSize hiprtcGetErrorString hiprtcAddNameExpression
            hiprtcVersion
        }
        symbol {
            hipMemcpyFromSymbol hipMemcpyFromSymbolAsync hipMemcpyToSymbol hipMemcpyToSymbolAsync hipGetSymbolAddress
            hipGetSymbolSize
        }
        value {
            hipGetStreamDeviceId hipCreateChannelDesc
        }
        absent {
            hipDeviceGetTexture1DLinearMaxWidth hipExtLaunchMultiKernelMultiDevice hipModuleGetTexRef
            hipLaunchCooperativeKernelMultiDevice __gnu_h2f_ieee __gnu_f2h_ieee hipConfigureCall hipSetupArgument
            hipLaunchByPtr hipKernelNameRef hipKernelNameRefByPtr hiprtcLinkCreate hiprtcLinkAddFile hiprtcLinkAddData
            hiprtcLinkComplete hiprtcLinkDestroy hipBindTexture hipBindTexture2D hipBindTextureToArray
            hipBindTextureToMipmappedArray hipGetTextureAlignmentOffset hipGetTextureReference hipUnbindTexture
            hipTexRefGetAddress hipTexRefGetAddressMode hipTexRefGetArray hipTexRefGetBorderColor hipTexRefGetFilterMode
            hipTexRefGetFlags hipTexRefGetFormat hipTexRefGetMaxAnisotropy hipTexRefGetMipmapFilterMode
            hipTexRefGetMipmapLevelBias hipTexRefGetMipmapLevelClamp hipTexRefGetMipMappedArray hipTexRefSetAddress
            hipTexRefSetAddress2D hipTexRefSetAddressMode hipTexRefSetArray hipTexRefSetBorderColor
            hipTexRefSetFilterMode hipTexRefSetFlags hipTexRefSetFormat hipTexRefSetMaxAnisotropy
            hipTexRefSetMipmapFilterMode hipTexRefSetMipmapLevelBias hipTexRefSetMipmapLevelClamp
            hipTexRefSetMipmappedArray hipMipmappedArrayCreate hipMallocMipmappedArray hipMipmappedArrayDestroy
            hipFreeMipmappedArray hipMipmappedArrayGetLevel hipGetMipmappedArrayLevel hipTexObjectCreate
            hipTexObjectDestroy hipTexObjectGetResourceDesc hipTexObjectGetResourceViewDesc hipTexObjectGetTextureDesc
            __hipGetPCH _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j
            hipEnableActivityCallback hipGetCmdName hipInitActivityCallback hipRegisterActivityCallback
            hipRegisterApiCallback hipRemoveActivityCallback hipRemoveApiCallback
        }
    }
    "hip_4.3" {
        forwarded {
            hipGraphCreate hipGraphDestroy hipGraphAddKernelNode hipGraphAddMemsetNode hipGraphAddMemcpyNode
            hipGraphAddMemcpyNode1D hipGraphInstantiate hipGraphLaunch hipStreamIsCapturing hipStreamBeginCapture
            hipStreamEndCapture hipGraphExecDestroy hipMemcpy2DToArrayAsync hipArrayDestroy
        }
        hip5 {
            hipDrvMemcpy2DUnaligned
        }
        absent {
            hipImportExternalSemaphore hipSignalExternalSemaphoresAsync hipWaitExternalSemaphoresAsync
            hipDestroyExternalSemaphore hipImportExternalMemory hipExternalMemoryGetMappedBuffer
            hipDestroyExternalMemory hipGLGetDevices hipGraphicsGLRegisterBuffer hipGraphicsMapResources
            hipGraphicsResourceGetMappedPointer hipGraphicsUnmapResources hipGraphicsUnregisterResource
        }
    }
    "hip_4.4" {
        forwarded {
            hipGraphGetNodes hipGraphGetRootNodes hipGraphKernelNodeGetParams hipGraphKernelNodeSetParams
            hipGraphMemcpyNodeGetParams hipGraphMemcpyNodeSetParams hipGraphMemsetNodeGetParams
            hipGraphMemsetNodeSetParams hipGraphAddDependencies hipStreamWaitValue32 hipStreamWaitValue64
            hipStreamWriteValue32 hipStreamWriteValue64 hipGraphExecKernelNodeSetParams hipGraphAddEmptyNode
        }
    }
    "hip_4.5" {
        forwarded {
            hipStreamUpdateCaptureDependencies hipGraphRemoveDependencies hipGraphGetEdges hipGraphNodeGetDependencies
            hipGraphNodeGetDependentNodes hipGraphDestroyNode hipGraphClone hipGraphNodeFindInClone
            hipGraphAddChildGraphNode hipGraphChildGraphNodeGetGraph hipGraphExecChildGraphNodeSetParams
            hipGraphAddMemcpyNodeFromSymbol hipGraphMemcpyNodeSetParamsFromSymbol
            hipGraphExecMemcpyNodeSetParamsFromSymbol hipGraphAddMemcpyNodeToSymbol hipGraphMemcpyNodeSetParamsToSymbol
            hipGraphExecMemcpyNodeSetParamsToSymbol hipGraphExecMemcpyNodeSetParams hipGraphMemcpyNodeSetParams1D
            hipGraphExecMemcpyNodeSetParams1D hipGraphAddEventRecordNode hipGraphEventRecordNodeGetEvent
            hipGraphEventRecordNodeSetEvent hipGraphExecEventRecordNodeSetEvent hipGraphAddEventWaitNode
            hipGraphEventWaitNodeGetEvent hipGraphEventWaitNodeSetEvent hipGraphExecEventWaitNodeSetEvent
            hipGraphAddHostNode hipGraphHostNodeGetParams hipGraphHostNodeSetParams hipGraphExecHostNodeSetParams
            hipGraphExecUpdate hipGraphInstantiateWithFlags hipGraphExecMemsetNodeSetParams
            hipDeviceGetGraphMemAttribute hipDeviceSetGraphMemAttribute hipDeviceGraphMemTrim hipStreamGetCaptureInfo
            hipStreamGetCaptureInfo_v2
        }
        hip5 {
            hipGraphNodeGetType
        }
        absent {
            amd_dbgapi_get_build_name amd_dbgapi_get_git_hash amd_dbgapi_get_build_id hipGraphicsGLRegisterImage
            hipGraphicsSubResourceGetMappedArray
        }
    }
    "hip_5.0" {
        forwarded {
            hipThreadExchangeStreamCaptureMode hipGraphKernelNodeSetAttribute hipGraphKernelNodeGetAttribute
        }
        hip5 {
            hipPointerGetAttribute hipDrvPointerGetAttributes
        }
    }
    "hip_5.1" {
        forwarded {
            hipDeviceGetUuid hipDeviceGetDefaultMemPool hipDeviceSetMemPool hipDeviceGetMemPool hipMallocAsync
            hipFreeAsync hipMemPoolTrimTo hipMemPoolSetAttribute hipMemPoolGetAttribute hipMemPoolSetAccess
            hipMemPoolGetAccess hipMemPoolCreate hipMemPoolDestroy hipMallocFromPoolAsync
            hipMemPoolExportToShareableHandle hipMemPoolImportFromShareableHandle hipMemPoolExportPointer
            hipMemPoolImportPointer hipMemAddressFree hipMemAddressReserve hipMemExportToShareableHandle hipMemGetAccess
            hipMemImportFromShareableHandle hipMemMap hipMemRelease hipMemRetainAllocationHandle hipMemSetAccess
            hipMemUnmap
        }
        hip5 {
            hipMemCreate hipMemGetAllocationGranularity hipMemGetAllocationPropertiesFromHandle
        }
        absent {
            hipMemMapArrayAsync
        }
    }
    "hip_5.2" {
        per_thread {
            hipMemcpy_spt hipMemcpyAsync_spt hipStreamSynchronize_spt hipMemcpyToSymbol_spt hipMemcpyFromSymbol_spt
            hipMemcpy2D_spt hipMemcpy2DToArray_spt hipMemcpy2DFromArray_spt hipMemcpy3D_spt hipMemset_spt
            hipMemset2D_spt hipMemset3D_spt hipStreamQuery_spt hipStreamGetFlags_spt hipStreamGetPriority_spt
            hipStreamWaitEvent_spt hipEventRecord_spt hipLaunchKernel_spt hipLaunchCooperativeKernel_spt
        }
    }
    "hip_5.3" {
        forwarded {
            hipDeviceSetLimit hipDrvGetErrorName hipUserObjectCreate hipUserObjectRelease hipUserObjectRetain
            hipGraphRetainUserObject hipGraphReleaseUserObject hipLaunchHostFunc hipGraphDebugDotPrint
            hipGraphKernelNodeCopyAttributes hipGraphNodeGetEnabled hipGraphNodeSetEnabled hipGraphUpload
        }
        entry_point {
            hipRegisterTracerCallback
        }
        error {
            hipDrvGetErrorString
        }
        per_thread {
            hipGraphLaunch_spt hipStreamBeginCapture_spt hipStreamEndCapture_spt hipStreamIsCapturing_spt
            hipStreamGetCaptureInfo_spt hipStreamGetCaptureInfo_v2_spt hipStreamAddCallback_spt hipMemsetAsync_spt
            hipMemset2DAsync_spt hipMemset3DAsync_spt hipMemcpy3DAsync_spt hipMemcpy2DAsync_spt
            hipMemcpyFromSymbolAsync_spt hipMemcpyToSymbolAsync_spt hipMemcpy2DFromArrayAsync_spt
            hipMemcpy2DToArrayAsync_spt hipLaunchHostFunc_spt
        }
        absent {
            hiprtcGetBitcode hiprtcGetBitcodeSize hipMemcpyFromArray_spt hipGraphAddExternalSemaphoresSignalNode
            hipGraphAddExternalSemaphoresWaitNode hipGraphExternalSemaphoresSignalNodeSetParams
            hipGraphExternalSemaphoresSignalNodeGetParams hipGraphExternalSemaphoresWaitNodeSetParams
            hipGraphExternalSemaphoresWaitNodeGetParams hipGraphExecExternalSemaphoresSignalNodeSetParams
            hipGraphExecExternalSemaphoresWaitNodeSetParams
        }
    }
    "hip_5.5" {
        forwarded {
            hipModuleLaunchCooperativeKernel hipGraphAddMemAllocNode hipGraphMemAllocNodeGetParams
            hipGraphAddMemFreeNode hipGraphMemFreeNodeGetParams hipGraphAddNode
        }
        absent {
            hipModuleLaunchCooperativeKernelMultiDevice
        }
    }
    "hip_5.6" {
        forwarded {
            hipArrayGetInfo hipArrayGetDescriptor hipArray3DGetDescriptor hipDrvGraphAddMemcpyNode
            hipDrvGraphAddMemsetNode
        }
    }
    "hip_6.0" {
        forwarded {
            hipChooseDeviceR0600 hipGetDevicePropertiesR0600 hipExtGetLastError hipDrvGraphMemcpyNodeSetParams
            hipDrvGraphMemcpyNodeGetParams
        }
    }
    "hip_6.1" {
        forwarded {
            hipGraphInstantiateWithParams hipStreamBeginCaptureToGraph
        }
        entry_point {
            hipGetProcAddress
        }
    }
    "hip_6.2" {
        forwarded {
            hipDrvGraphExecMemcpyNodeSetParams hipDrvGraphExecMemsetNodeSetParams hipDrvGraphAddMemFreeNode
            hipSetValidDevices hipMemcpyAtoD hipMemcpyDtoA hipMemcpyAtoA hipMemcpyAtoHAsync hipMemcpyHtoAAsync
            hipMemcpy2DArrayToArray hipGraphExecGetFlags hipGraphNodeSetParams hipGraphExecNodeSetParams
        }
        function {
            hipGetFuncBySymbol
        }
    }
    "hip_6.3" {
        host_memory {
            hipExtHostAlloc
        }
    }
    "hip_6.4" {
        forwarded {
            hipEventRecordWithFlags
        }
        absent {
            hipStreamBatchMemOp hipGraphAddBatchMemOpNode hipGraphBatchMemOpNodeGetParams
            hipGraphBatchMemOpNodeSetParams hipGraphExecBatchMemOpNodeSetParams hipLinkAddData hipLinkAddFile
            hipLinkComplete hipLinkCreate hipLinkDestroy
        }
    }
    "hip_6.5" {
        launch {
            hipLaunchKernelExC hipDrvLaunchKernelEx
        }
        absent {
            hipMemGetHandleForAddressRange
        }
    }
    "hip_7.1" {
        forwarded {
            hipMemsetD2D8 hipMemsetD2D8Async hipMemsetD2D16 hipMemsetD2D16Async hipMemsetD2D32 hipMemsetD2D32Async
            hipStreamGetId
        }
        entry_point {
            hipGetDriverEntryPoint
        }
        function {
            hipModuleLoadFatBinary
        }
        library {
            hipModuleGetFunctionCount
        }
        absent {
            hipStreamGetAttribute hipStreamSetAttribute hipMemcpyBatchAsync hipMemcpy3DBatchAsync hipMemcpy3DPeer
            hipMemcpy3DPeerAsync hipGetDriverEntryPoint_spt hipMemPrefetchAsync_v2 hipMemAdvise_v2
        }
    }
    "hip_7.2" {
        library {
            hipLibraryLoadData hipLibraryLoadFromFile hipLibraryUnload hipLibraryGetKernel hipLibraryGetKernelCount
            hipLibraryEnumerateKernels hipKernelGetLibrary hipKernelGetName hipKernelGetFunction
        }
        absent {
            hipStreamCopyAttributes hipOccupancyAvailableDynamicSMemPerBlock
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_there_twice() {
        let mut names: Vec<_> = NAMES.iter().map(|known| known.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn what_the_simulator_implements_is_not_absent() {
        use rocmforge_hip_sys::{CORE_FUNCTIONS, FOREIGN_FUNCTIONS, OPTIONAL_FUNCTIONS};
        let absent: Vec<_> = functions()
            .filter(|(_, simulated)| !simulated)
            .map(|(name, _)| name)
            .collect();
        for name in [CORE_FUNCTIONS, OPTIONAL_FUNCTIONS, FOREIGN_FUNCTIONS].concat() {
            assert!(find(name).is_some(), "{name} is not in the list");
            assert!(
                !absent.contains(&name),
                "{name} is implemented, and the list says that it is absent"
            );
        }
    }
}
