//! Every name that a `libamdhip64` exports, with its version node and the module that implements it.
//!
//! Names and nodes are those of AMD's libraries from ROCm 5 to 7.2; a name stays for ever in the node in which it first appeared.
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
    ($($node:literal { $($name:ident: $module:ident,)* })*) => {
        /// Version nodes, oldest first.
        pub(crate) const NODES: &[&str] = &[$($node),*];

        /// All names, in the order of [`FUNCTIONS`].
        pub(crate) static NAMES: &[Name] = &[$($(Name { name: stringify!($name), node: node($node), module: stringify!($module) },)*)*];

        /// Their addresses: what the stub libraries jump through.
        pub(crate) static FUNCTIONS: [Function; NAMES.len()] = [$($(Function(address!($module $name)),)*)*];
    };
}

/// Counts a call of a function that is not simulated, and answers it.
fn absent(name: &'static str) -> hipError_t {
    crate::absent::count(name);
    process::call(|process| process.sim.answered(name, hipErrorNotSupported))
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
        hipChooseDevice: forwarded,
        hipChooseDeviceR0000: forwarded,
        hipCreateSurfaceObject: absent,
        hipCtxCreate: forwarded,
        hipCtxDestroy: forwarded,
        hipCtxDisablePeerAccess: forwarded,
        hipCtxEnablePeerAccess: forwarded,
        hipCtxGetApiVersion: forwarded,
        hipCtxGetCacheConfig: forwarded,
        hipCtxGetCurrent: forwarded,
        hipCtxGetDevice: forwarded,
        hipCtxGetFlags: forwarded,
        hipCtxGetSharedMemConfig: forwarded,
        hipCtxPopCurrent: forwarded,
        hipCtxPushCurrent: forwarded,
        hipCtxSetCacheConfig: forwarded,
        hipCtxSetCurrent: forwarded,
        hipCtxSetSharedMemConfig: forwarded,
        hipCtxSynchronize: forwarded,
        hipDestroySurfaceObject: absent,
        hipDeviceCanAccessPeer: forwarded,
        hipDeviceComputeCapability: forwarded,
        hipDeviceDisablePeerAccess: forwarded,
        hipDeviceEnablePeerAccess: forwarded,
        hipDeviceGet: forwarded,
        hipDeviceGetAttribute: forwarded,
        hipDeviceGetByPCIBusId: forwarded,
        hipDeviceGetCacheConfig: forwarded,
        hipDeviceGetStreamPriorityRange: forwarded,
        hipDeviceGetLimit: forwarded,
        hipDeviceGetName: forwarded,
        hipDeviceGetPCIBusId: forwarded,
        hipDeviceGetSharedMemConfig: forwarded,
        hipDeviceGetTexture1DLinearMaxWidth: absent,
        hipDeviceGetP2PAttribute: forwarded,
        hipDevicePrimaryCtxGetState: forwarded,
        hipDevicePrimaryCtxRelease: forwarded,
        hipDevicePrimaryCtxReset: forwarded,
        hipDevicePrimaryCtxRetain: forwarded,
        hipDevicePrimaryCtxSetFlags: forwarded,
        hipDeviceReset: forwarded,
        hipDeviceSetCacheConfig: forwarded,
        hipDeviceSetSharedMemConfig: forwarded,
        hipDeviceSynchronize: forwarded,
        hipDeviceTotalMem: forwarded,
        hipDriverGetVersion: forwarded,
        hipEventCreate: forwarded,
        hipEventCreateWithFlags: forwarded,
        hipEventDestroy: forwarded,
        hipEventElapsedTime: forwarded,
        hipEventQuery: forwarded,
        hipEventRecord: forwarded,
        hipEventSynchronize: forwarded,
        hipExtGetLinkTypeAndHopCount: forwarded,
        hipExtLaunchMultiKernelMultiDevice: absent,
        hipExtMallocWithFlags: forwarded,
        hipExtModuleLaunchKernel: launch,
        hipHccModuleLaunchKernel: launch,
        hipExtLaunchKernel: launch,
        hipFree: forwarded,
        hipFreeArray: forwarded,
        hipFuncSetAttribute: function,
        hipFuncSetCacheConfig: function,
        hipFuncSetSharedMemConfig: function,
        hipGetDevice: forwarded,
        hipGetDeviceCount: forwarded,
        hipGetDeviceProperties: forwarded,
        hipGetDevicePropertiesR0000: forwarded,
        hipGetErrorName: error,
        hipGetErrorString: error,
        hipGetLastError: forwarded,
        hipMemAdvise: forwarded,
        hipMemAllocHost: forwarded,
        hipHostAlloc: forwarded,
        hipHostFree: forwarded,
        hipHostGetDevicePointer: forwarded,
        hipHostGetFlags: forwarded,
        hipHostMalloc: forwarded,
        hipHostRegister: forwarded,
        hipHostUnregister: forwarded,
        hipInit: forwarded,
        hipIpcCloseMemHandle: forwarded,
        hipIpcGetMemHandle: forwarded,
        hipIpcOpenMemHandle: forwarded,
        hipIpcGetEventHandle: forwarded,
        hipIpcOpenEventHandle: forwarded,
        hipMalloc: forwarded,
        hipMalloc3D: forwarded,
        hipMalloc3DArray: forwarded,
        hipMallocManaged: forwarded,
        hipArrayCreate: forwarded,
        hipArray3DCreate: forwarded,
        hipMallocArray: forwarded,
        hipMallocPitch: forwarded,
        hipMemAllocPitch: forwarded,
        hipMemcpy: forwarded,
        hipMemcpyWithStream: forwarded,
        hipMemcpyParam2D: hip5,
        hipMemcpy2D: forwarded,
        hipMemcpy2DAsync: forwarded,
        hipMemcpy2DToArray: forwarded,
        hipMemcpy3D: forwarded,
        hipMemcpy3DAsync: forwarded,
        hipDrvMemcpy3D: hip5,
        hipDrvMemcpy3DAsync: hip5,
        hipMemcpyAsync: forwarded,
        hipMemcpyDtoD: forwarded,
        hipMemcpyDtoDAsync: forwarded,
        hipMemcpyDtoH: forwarded,
        hipMemcpyDtoHAsync: forwarded,
        hipMemcpyFromSymbol: symbol,
        hipMemcpyFromSymbolAsync: symbol,
        hipMemcpyHtoD: forwarded,
        hipMemcpyHtoDAsync: forwarded,
        hipMemcpyPeer: forwarded,
        hipMemcpyPeerAsync: forwarded,
        hipMemcpyToArray: forwarded,
        hipMemcpyFromArray: forwarded,
        hipMemcpyToSymbol: symbol,
        hipMemcpyToSymbolAsync: symbol,
        hipMemGetAddressRange: forwarded,
        hipGetSymbolAddress: symbol,
        hipGetSymbolSize: symbol,
        hipMemGetInfo: forwarded,
        hipMemPrefetchAsync: forwarded,
        hipMemPtrGetInfo: forwarded,
        hipMemRangeGetAttribute: forwarded,
        hipMemRangeGetAttributes: forwarded,
        hipMemset: forwarded,
        hipMemsetAsync: forwarded,
        hipMemsetD8: forwarded,
        hipMemsetD8Async: forwarded,
        hipMemsetD16: forwarded,
        hipMemsetD16Async: forwarded,
        hipMemsetD32: forwarded,
        hipMemsetD32Async: forwarded,
        hipMemset2D: forwarded,
        hipMemset2DAsync: forwarded,
        hipMemset3D: forwarded,
        hipMemset3DAsync: forwarded,
        hipModuleGetFunction: forwarded,
        hipModuleGetGlobal: forwarded,
        hipModuleGetTexRef: absent,
        hipModuleLaunchKernel: forwarded,
        hipLaunchCooperativeKernel: launch,
        hipLaunchCooperativeKernelMultiDevice: absent,
        hipModuleLoad: forwarded,
        hipModuleLoadData: forwarded,
        hipModuleLoadDataEx: function,
        hipModuleUnload: forwarded,
        hipModuleOccupancyMaxPotentialBlockSize: forwarded,
        hipModuleOccupancyMaxPotentialBlockSizeWithFlags: forwarded,
        hipModuleOccupancyMaxActiveBlocksPerMultiprocessor: forwarded,
        hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags: forwarded,
        hipOccupancyMaxPotentialBlockSize: function,
        hipOccupancyMaxActiveBlocksPerMultiprocessor: function,
        hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags: function,
        hipFuncGetAttribute: forwarded,
        hipFuncGetAttributes: function,
        hipPeekAtLastError: forwarded,
        hipPointerSetAttribute: forwarded,
        hipPointerGetAttributes: hip5,
        hipProfilerStart: forwarded,
        hipProfilerStop: forwarded,
        hipRuntimeGetVersion: forwarded,
        hipGetDeviceFlags: forwarded,
        hipSetDevice: forwarded,
        hipSetDeviceFlags: forwarded,
        hipStreamAddCallback: forwarded,
        hipStreamAttachMemAsync: forwarded,
        hipStreamCreate: forwarded,
        hipStreamCreateWithFlags: forwarded,
        hipStreamCreateWithPriority: forwarded,
        hipStreamDestroy: forwarded,
        hipStreamGetDevice: forwarded,
        hipStreamGetFlags: forwarded,
        hipStreamQuery: forwarded,
        hipStreamSynchronize: forwarded,
        hipStreamWaitEvent: forwarded,
        __hipPopCallConfiguration: fat_binary,
        __hipPushCallConfiguration: fat_binary,
        __hipRegisterFatBinary: fat_binary,
        __hipRegisterFunction: fat_binary,
        __hipRegisterVar: fat_binary,
        __hipRegisterSurface: fat_binary,
        __hipRegisterTexture: fat_binary,
        __hipRegisterManagedVar: fat_binary,
        __hipUnregisterFatBinary: fat_binary,
        __gnu_h2f_ieee: absent,
        __gnu_f2h_ieee: absent,
        hipConfigureCall: absent,
        hipSetupArgument: absent,
        hipLaunchByPtr: absent,
        hipLaunchKernel: launch,
        hipApiName: entry_point,
        hipKernelNameRef: absent,
        hipKernelNameRefByPtr: absent,
        hipGetStreamDeviceId: value,
        hiprtcCompileProgram: rtc,
        hiprtcCreateProgram: rtc,
        hiprtcDestroyProgram: rtc,
        hiprtcGetLoweredName: rtc,
        hiprtcGetProgramLog: rtc,
        hiprtcGetProgramLogSize: rtc,
        hiprtcGetCode: rtc,
        hiprtcGetCodeSize: rtc,
        hiprtcGetErrorString: rtc,
        hiprtcAddNameExpression: rtc,
        hiprtcVersion: rtc,
        hiprtcLinkCreate: absent,
        hiprtcLinkAddFile: absent,
        hiprtcLinkAddData: absent,
        hiprtcLinkComplete: absent,
        hiprtcLinkDestroy: absent,
        hipBindTexture: absent,
        hipBindTexture2D: absent,
        hipBindTextureToArray: absent,
        hipBindTextureToMipmappedArray: absent,
        hipGetTextureAlignmentOffset: absent,
        hipGetTextureReference: absent,
        hipUnbindTexture: absent,
        hipCreateChannelDesc: value,
        hipCreateTextureObject: absent,
        hipDestroyTextureObject: absent,
        hipGetChannelDesc: forwarded,
        hipGetTextureObjectResourceDesc: absent,
        hipGetTextureObjectResourceViewDesc: absent,
        hipGetTextureObjectTextureDesc: absent,
        hipTexRefGetAddress: absent,
        hipTexRefGetAddressMode: absent,
        hipTexRefGetArray: absent,
        hipTexRefGetBorderColor: absent,
        hipTexRefGetFilterMode: absent,
        hipTexRefGetFlags: absent,
        hipTexRefGetFormat: absent,
        hipTexRefGetMaxAnisotropy: absent,
        hipTexRefGetMipmapFilterMode: absent,
        hipTexRefGetMipmapLevelBias: absent,
        hipTexRefGetMipmapLevelClamp: absent,
        hipTexRefGetMipMappedArray: absent,
        hipTexRefSetAddress: absent,
        hipTexRefSetAddress2D: absent,
        hipTexRefSetAddressMode: absent,
        hipTexRefSetArray: absent,
        hipTexRefSetBorderColor: absent,
        hipTexRefSetFilterMode: absent,
        hipTexRefSetFlags: absent,
        hipTexRefSetFormat: absent,
        hipTexRefSetMaxAnisotropy: absent,
        hipTexRefSetMipmapFilterMode: absent,
        hipTexRefSetMipmapLevelBias: absent,
        hipTexRefSetMipmapLevelClamp: absent,
        hipTexRefSetMipmappedArray: absent,
        hipMipmappedArrayCreate: absent,
        hipMallocMipmappedArray: absent,
        hipMipmappedArrayDestroy: absent,
        hipFreeMipmappedArray: absent,
        hipMipmappedArrayGetLevel: absent,
        hipGetMipmappedArrayLevel: absent,
        hipMallocHost: forwarded,
        hipFreeHost: forwarded,
        hipTexObjectCreate: absent,
        hipTexObjectDestroy: absent,
        hipTexObjectGetResourceDesc: absent,
        hipTexObjectGetResourceViewDesc: absent,
        hipTexObjectGetTextureDesc: absent,
        hipExtStreamCreateWithCUMask: forwarded,
        hipStreamGetPriority: forwarded,
        hipMemcpy2DFromArray: forwarded,
        hipMemcpy2DFromArrayAsync: forwarded,
        hipMemcpyAtoH: forwarded,
        hipMemcpyHtoA: forwarded,
        hipMemcpyParam2DAsync: hip5,
        __hipGetPCH: absent,
        hipExtStreamGetCUMask: forwarded,
        _Z22hipCreateSurfaceObjectPP13__hip_surfacePK15hipResourceDesc: absent,
        _Z23hipDestroySurfaceObjectP13__hip_surface: absent,
        _Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j: absent,
        _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_: launch,
        hipEnableActivityCallback: absent,
        hipGetCmdName: absent,
        hipInitActivityCallback: absent,
        hipRegisterActivityCallback: absent,
        hipRegisterApiCallback: absent,
        hipRemoveActivityCallback: absent,
        hipRemoveApiCallback: absent,
    }
    "hip_4.3" {
        hipGraphCreate: forwarded,
        hipGraphDestroy: forwarded,
        hipGraphAddKernelNode: forwarded,
        hipGraphAddMemsetNode: forwarded,
        hipGraphAddMemcpyNode: forwarded,
        hipGraphAddMemcpyNode1D: forwarded,
        hipGraphInstantiate: forwarded,
        hipGraphLaunch: forwarded,
        hipStreamIsCapturing: forwarded,
        hipStreamBeginCapture: forwarded,
        hipStreamEndCapture: forwarded,
        hipGraphExecDestroy: forwarded,
        hipImportExternalSemaphore: absent,
        hipSignalExternalSemaphoresAsync: absent,
        hipWaitExternalSemaphoresAsync: absent,
        hipDestroyExternalSemaphore: absent,
        hipImportExternalMemory: absent,
        hipExternalMemoryGetMappedBuffer: absent,
        hipDestroyExternalMemory: absent,
        hipMemcpy2DToArrayAsync: forwarded,
        hipDrvMemcpy2DUnaligned: hip5,
        hipArrayDestroy: forwarded,
        hipGLGetDevices: absent,
        hipGraphicsGLRegisterBuffer: absent,
        hipGraphicsMapResources: absent,
        hipGraphicsResourceGetMappedPointer: absent,
        hipGraphicsUnmapResources: absent,
        hipGraphicsUnregisterResource: absent,
    }
    "hip_4.4" {
        hipGraphGetNodes: forwarded,
        hipGraphGetRootNodes: forwarded,
        hipGraphKernelNodeGetParams: forwarded,
        hipGraphKernelNodeSetParams: forwarded,
        hipGraphMemcpyNodeGetParams: forwarded,
        hipGraphMemcpyNodeSetParams: forwarded,
        hipGraphMemsetNodeGetParams: forwarded,
        hipGraphMemsetNodeSetParams: forwarded,
        hipGraphAddDependencies: forwarded,
        hipStreamWaitValue32: forwarded,
        hipStreamWaitValue64: forwarded,
        hipStreamWriteValue32: forwarded,
        hipStreamWriteValue64: forwarded,
        hipGraphExecKernelNodeSetParams: forwarded,
        hipGraphAddEmptyNode: forwarded,
    }
    "hip_4.5" {
        hipStreamUpdateCaptureDependencies: forwarded,
        hipGraphRemoveDependencies: forwarded,
        hipGraphGetEdges: forwarded,
        hipGraphNodeGetDependencies: forwarded,
        hipGraphNodeGetDependentNodes: forwarded,
        hipGraphNodeGetType: hip5,
        hipGraphDestroyNode: forwarded,
        hipGraphClone: forwarded,
        hipGraphNodeFindInClone: forwarded,
        hipGraphAddChildGraphNode: forwarded,
        hipGraphChildGraphNodeGetGraph: forwarded,
        hipGraphExecChildGraphNodeSetParams: forwarded,
        hipGraphAddMemcpyNodeFromSymbol: forwarded,
        hipGraphMemcpyNodeSetParamsFromSymbol: forwarded,
        hipGraphExecMemcpyNodeSetParamsFromSymbol: forwarded,
        hipGraphAddMemcpyNodeToSymbol: forwarded,
        hipGraphMemcpyNodeSetParamsToSymbol: forwarded,
        hipGraphExecMemcpyNodeSetParamsToSymbol: forwarded,
        hipGraphExecMemcpyNodeSetParams: forwarded,
        hipGraphMemcpyNodeSetParams1D: forwarded,
        hipGraphExecMemcpyNodeSetParams1D: forwarded,
        hipGraphAddEventRecordNode: forwarded,
        hipGraphEventRecordNodeGetEvent: forwarded,
        hipGraphEventRecordNodeSetEvent: forwarded,
        hipGraphExecEventRecordNodeSetEvent: forwarded,
        hipGraphAddEventWaitNode: forwarded,
        hipGraphEventWaitNodeGetEvent: forwarded,
        hipGraphEventWaitNodeSetEvent: forwarded,
        hipGraphExecEventWaitNodeSetEvent: forwarded,
        hipGraphAddHostNode: forwarded,
        hipGraphHostNodeGetParams: forwarded,
        hipGraphHostNodeSetParams: forwarded,
        hipGraphExecHostNodeSetParams: forwarded,
        hipGraphExecUpdate: forwarded,
        hipGraphInstantiateWithFlags: forwarded,
        hipGraphExecMemsetNodeSetParams: forwarded,
        hipDeviceGetGraphMemAttribute: forwarded,
        hipDeviceSetGraphMemAttribute: forwarded,
        hipDeviceGraphMemTrim: forwarded,
        amd_dbgapi_get_build_name: absent,
        amd_dbgapi_get_git_hash: absent,
        amd_dbgapi_get_build_id: absent,
        hipStreamGetCaptureInfo: forwarded,
        hipStreamGetCaptureInfo_v2: forwarded,
        hipGraphicsGLRegisterImage: absent,
        hipGraphicsSubResourceGetMappedArray: absent,
    }
    "hip_5.0" {
        hipPointerGetAttribute: hip5,
        hipDrvPointerGetAttributes: hip5,
        hipThreadExchangeStreamCaptureMode: forwarded,
        hipGraphKernelNodeSetAttribute: forwarded,
        hipGraphKernelNodeGetAttribute: forwarded,
    }
    "hip_5.1" {
        hipDeviceGetUuid: forwarded,
        hipDeviceGetDefaultMemPool: forwarded,
        hipDeviceSetMemPool: forwarded,
        hipDeviceGetMemPool: forwarded,
        hipMallocAsync: forwarded,
        hipFreeAsync: forwarded,
        hipMemPoolTrimTo: forwarded,
        hipMemPoolSetAttribute: forwarded,
        hipMemPoolGetAttribute: forwarded,
        hipMemPoolSetAccess: forwarded,
        hipMemPoolGetAccess: forwarded,
        hipMemPoolCreate: forwarded,
        hipMemPoolDestroy: forwarded,
        hipMallocFromPoolAsync: forwarded,
        hipMemPoolExportToShareableHandle: forwarded,
        hipMemPoolImportFromShareableHandle: forwarded,
        hipMemPoolExportPointer: forwarded,
        hipMemPoolImportPointer: forwarded,
        hipMemAddressFree: forwarded,
        hipMemAddressReserve: forwarded,
        hipMemCreate: hip5,
        hipMemExportToShareableHandle: forwarded,
        hipMemGetAccess: forwarded,
        hipMemGetAllocationGranularity: hip5,
        hipMemGetAllocationPropertiesFromHandle: hip5,
        hipMemImportFromShareableHandle: forwarded,
        hipMemMap: forwarded,
        hipMemMapArrayAsync: absent,
        hipMemRelease: forwarded,
        hipMemRetainAllocationHandle: forwarded,
        hipMemSetAccess: forwarded,
        hipMemUnmap: forwarded,
    }
    "hip_5.2" {
        hipMemcpy_spt: per_thread,
        hipMemcpyAsync_spt: per_thread,
        hipStreamSynchronize_spt: per_thread,
        hipMemcpyToSymbol_spt: per_thread,
        hipMemcpyFromSymbol_spt: per_thread,
        hipMemcpy2D_spt: per_thread,
        hipMemcpy2DToArray_spt: per_thread,
        hipMemcpy2DFromArray_spt: per_thread,
        hipMemcpy3D_spt: per_thread,
        hipMemset_spt: per_thread,
        hipMemset2D_spt: per_thread,
        hipMemset3D_spt: per_thread,
        hipStreamQuery_spt: per_thread,
        hipStreamGetFlags_spt: per_thread,
        hipStreamGetPriority_spt: per_thread,
        hipStreamWaitEvent_spt: per_thread,
        hipEventRecord_spt: per_thread,
        hipLaunchKernel_spt: per_thread,
        hipLaunchCooperativeKernel_spt: per_thread,
    }
    "hip_5.3" {
        hipDeviceSetLimit: forwarded,
        hiprtcGetBitcode: absent,
        hiprtcGetBitcodeSize: absent,
        hipGraphLaunch_spt: per_thread,
        hipStreamBeginCapture_spt: per_thread,
        hipStreamEndCapture_spt: per_thread,
        hipStreamIsCapturing_spt: per_thread,
        hipStreamGetCaptureInfo_spt: per_thread,
        hipStreamGetCaptureInfo_v2_spt: per_thread,
        hipStreamAddCallback_spt: per_thread,
        hipMemsetAsync_spt: per_thread,
        hipMemset2DAsync_spt: per_thread,
        hipMemset3DAsync_spt: per_thread,
        hipMemcpy3DAsync_spt: per_thread,
        hipMemcpy2DAsync_spt: per_thread,
        hipMemcpyFromSymbolAsync_spt: per_thread,
        hipMemcpyToSymbolAsync_spt: per_thread,
        hipMemcpyFromArray_spt: absent,
        hipMemcpy2DFromArrayAsync_spt: per_thread,
        hipMemcpy2DToArrayAsync_spt: per_thread,
        hipDrvGetErrorName: forwarded,
        hipDrvGetErrorString: error,
        hipUserObjectCreate: forwarded,
        hipUserObjectRelease: forwarded,
        hipUserObjectRetain: forwarded,
        hipGraphRetainUserObject: forwarded,
        hipGraphReleaseUserObject: forwarded,
        hipLaunchHostFunc: forwarded,
        hipLaunchHostFunc_spt: per_thread,
        hipRegisterTracerCallback: entry_point,
        hipGraphDebugDotPrint: forwarded,
        hipGraphKernelNodeCopyAttributes: forwarded,
        hipGraphNodeGetEnabled: forwarded,
        hipGraphNodeSetEnabled: forwarded,
        hipGraphUpload: forwarded,
        hipGraphAddExternalSemaphoresSignalNode: absent,
        hipGraphAddExternalSemaphoresWaitNode: absent,
        hipGraphExternalSemaphoresSignalNodeSetParams: absent,
        hipGraphExternalSemaphoresSignalNodeGetParams: absent,
        hipGraphExternalSemaphoresWaitNodeSetParams: absent,
        hipGraphExternalSemaphoresWaitNodeGetParams: absent,
        hipGraphExecExternalSemaphoresSignalNodeSetParams: absent,
        hipGraphExecExternalSemaphoresWaitNodeSetParams: absent,
    }
    "hip_5.5" {
        hipModuleLaunchCooperativeKernel: forwarded,
        hipModuleLaunchCooperativeKernelMultiDevice: absent,
        hipGraphAddMemAllocNode: forwarded,
        hipGraphMemAllocNodeGetParams: forwarded,
        hipGraphAddMemFreeNode: forwarded,
        hipGraphMemFreeNodeGetParams: forwarded,
        hipGraphAddNode: forwarded,
    }
    "hip_5.6" {
        hipArrayGetInfo: forwarded,
        hipArrayGetDescriptor: forwarded,
        hipArray3DGetDescriptor: forwarded,
        hipDrvGraphAddMemcpyNode: forwarded,
        hipDrvGraphAddMemsetNode: forwarded,
    }
    "hip_6.0" {
        hipChooseDeviceR0600: forwarded,
        hipGetDevicePropertiesR0600: forwarded,
        hipExtGetLastError: forwarded,
        hipDrvGraphMemcpyNodeSetParams: forwarded,
        hipDrvGraphMemcpyNodeGetParams: forwarded,
    }
    "hip_6.1" {
        hipGraphInstantiateWithParams: forwarded,
        hipGetProcAddress: entry_point,
        hipStreamBeginCaptureToGraph: forwarded,
    }
    "hip_6.2" {
        hipGetFuncBySymbol: function,
        hipDrvGraphExecMemcpyNodeSetParams: forwarded,
        hipDrvGraphExecMemsetNodeSetParams: forwarded,
        hipDrvGraphAddMemFreeNode: forwarded,
        hipSetValidDevices: forwarded,
        hipMemcpyAtoD: forwarded,
        hipMemcpyDtoA: forwarded,
        hipMemcpyAtoA: forwarded,
        hipMemcpyAtoHAsync: forwarded,
        hipMemcpyHtoAAsync: forwarded,
        hipMemcpy2DArrayToArray: forwarded,
        hipGraphExecGetFlags: forwarded,
        hipGraphNodeSetParams: forwarded,
        hipGraphExecNodeSetParams: forwarded,
    }
    "hip_6.3" {
        hipExtHostAlloc: host_memory,
    }
    "hip_6.4" {
        hipStreamBatchMemOp: absent,
        hipGraphAddBatchMemOpNode: absent,
        hipGraphBatchMemOpNodeGetParams: absent,
        hipGraphBatchMemOpNodeSetParams: absent,
        hipGraphExecBatchMemOpNodeSetParams: absent,
        hipEventRecordWithFlags: forwarded,
        hipLinkAddData: absent,
        hipLinkAddFile: absent,
        hipLinkComplete: absent,
        hipLinkCreate: absent,
        hipLinkDestroy: absent,
    }
    "hip_6.5" {
        hipLaunchKernelExC: launch,
        hipDrvLaunchKernelEx: launch,
        hipMemGetHandleForAddressRange: absent,
    }
    "hip_7.1" {
        hipModuleGetFunctionCount: library,
        hipMemsetD2D8: forwarded,
        hipMemsetD2D8Async: forwarded,
        hipMemsetD2D16: forwarded,
        hipMemsetD2D16Async: forwarded,
        hipMemsetD2D32: forwarded,
        hipMemsetD2D32Async: forwarded,
        hipStreamGetAttribute: absent,
        hipStreamSetAttribute: absent,
        hipModuleLoadFatBinary: function,
        hipMemcpyBatchAsync: absent,
        hipMemcpy3DBatchAsync: absent,
        hipMemcpy3DPeer: absent,
        hipMemcpy3DPeerAsync: absent,
        hipGetDriverEntryPoint: entry_point,
        hipGetDriverEntryPoint_spt: absent,
        hipMemPrefetchAsync_v2: absent,
        hipMemAdvise_v2: absent,
        hipStreamGetId: forwarded,
    }
    "hip_7.2" {
        hipLibraryLoadData: library,
        hipLibraryLoadFromFile: library,
        hipLibraryUnload: library,
        hipLibraryGetKernel: library,
        hipLibraryGetKernelCount: library,
        hipLibraryEnumerateKernels: library,
        hipKernelGetLibrary: library,
        hipKernelGetName: library,
        hipKernelGetFunction: library,
        hipStreamCopyAttributes: absent,
        hipOccupancyAvailableDynamicSMemPerBlock: absent,
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
