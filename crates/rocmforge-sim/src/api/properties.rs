//! Device properties, and attributes, which are the same figures one by one.

use super::answer;
use super::device::{LDS_PER_BLOCK, MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK};
use super::pitched::{MAX_PITCH, PITCH};
use crate::calls::call::{Call, Hip};
use crate::config::CardConfig;
use rocmforge_amdgcn::{Arch, WALL_CLOCK_KHZ, shader_clock_khz};
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int};

/// What differs between the cards.
struct Figures {
    /// kHz.
    clock: c_int,
    /// kHz.
    memory_clock: c_int,
    /// Bits.
    bus: c_int,
    /// Bytes.
    l2: c_int,
}

fn figures(arch: &str) -> Figures {
    if arch == Arch::Gfx1201.name() {
        Figures {
            clock: shader_clock_khz(Arch::Gfx1201).cast_signed(),
            memory_clock: 1_258_000,
            bus: 256,
            l2: 8 << 20,
        }
    } else {
        Figures {
            clock: shader_clock_khz(Arch::Gfx1100).cast_signed(),
            memory_clock: 1_250_000,
            bus: 320,
            l2: 6 << 20,
        }
    }
}

/// Work-items that a workgroup processor holds at a time, as HIP counts them.
const THREADS_PER_MULTIPROCESSOR: c_int = 2048;
/// Registers of a workgroup, of 32 bits.
const REGISTERS: c_int = 65_536;
/// LDS of a workgroup processor, in bytes.
const LDS_PER_MULTIPROCESSOR: usize = 2 * LDS_PER_BLOCK as usize;
/// kHz of `clock64`.
const CLOCK_INSTRUCTION: c_int = 1_000_000;
/// kHz of `wall_clock64`.
const WALL_CLOCK: c_int = WALL_CLOCK_KHZ.cast_signed();
/// The largest images of one, two and three dimensions, in elements.
const TEXTURE_1D: c_int = 16_384;
const TEXTURE_2D: [c_int; 2] = [16_384, 16_384];
const TEXTURE_3D: [c_int; 3] = [16_384, 16_384, 8192];
/// Layers of an image.
const TEXTURE_LAYERS: c_int = 8192;
/// What these processors can do, see [`hipDeviceArch_t`]: all but funnel shifts, barriers with votes, surfaces and dynamic parallelism.
const ARCH: hipDeviceArch_t = 0b0_1001_0111_1111_1111;

/// The number `gfx1201` as HIP takes it apart: 12, 0, 1.
fn version(arch: &str) -> [c_int; 3] {
    let digits = arch.strip_prefix("gfx").unwrap_or("1100");
    let (major, rest) = digits.split_at(digits.len().saturating_sub(2));
    let digit = |at: usize| rest.get(at..=at).and_then(|d| c_int::from_str_radix(d, 16).ok());
    [
        major.parse().unwrap_or(11),
        digit(0).unwrap_or(0),
        digit(1).unwrap_or(0),
    ]
}

/// Domain, bus and device of a PCI address.
pub(crate) fn pci(address: &str) -> Option<[c_int; 3]> {
    let mut parts = address
        .split([':', '.'])
        .map(|part| c_int::from_str_radix(part, 16).ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

/// A device's number for life: 16 hexadecimal digits, as ROCm has it. Cards differ by their places.
pub(crate) fn uuid(card: &CardConfig) -> hipUUID {
    let hash = format!("{}{}", card.pci, card.arch)
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(format!("{hash:016x}").bytes()) {
        *to = from as c_char;
    }
    hipUUID { bytes }
}

fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut out = [0; N];
    for (to, from) in out.iter_mut().zip(text.bytes().take(N - 1)) {
        *to = from as c_char;
    }
    out
}

/// What a card answers: a Navi 31 or a Navi 48 as far as it matters to a program that computes, and 0 for what the simulator does not do.
pub(crate) fn properties_of(card: &CardConfig) -> DeviceProperties6 {
    let figures = figures(&card.arch);
    let [domain, bus, device] = pci(&card.pci).unwrap_or([0; 3]);
    let [major, minor, _] = version(&card.arch);
    DeviceProperties6 {
        name: text(&card.name),
        uuid: uuid(card),
        totalGlobalMem: card.pool().0 as usize,
        sharedMemPerBlock: LDS_PER_BLOCK as usize,
        regsPerBlock: REGISTERS,
        warpSize: 32,
        memPitch: MAX_PITCH,
        maxThreadsPerBlock: MAX_THREADS_PER_BLOCK as c_int,
        maxThreadsDim: MAX_BLOCK.map(|n| n as c_int),
        maxGridSize: MAX_GRID.map(|n| n as c_int),
        clockRate: figures.clock,
        totalConstMem: c_int::MAX as usize,
        major,
        minor,
        textureAlignment: PITCH,
        texturePitchAlignment: PITCH,
        deviceOverlap: 1,
        multiProcessorCount: card.multiprocessors as c_int,
        integrated: c_int::from(card.unified_memory),
        canMapHostMemory: 1,
        maxTexture1D: TEXTURE_1D,
        maxTexture1DMipmap: c_int::MAX,
        maxTexture1DLinear: c_int::MAX,
        maxTexture2D: TEXTURE_2D,
        maxTexture2DLinear: [TEXTURE_2D[0], TEXTURE_2D[1], 16 * TEXTURE_2D[0]],
        maxTexture2DGather: TEXTURE_2D,
        maxTexture3D: TEXTURE_3D,
        maxTexture1DLayered: [TEXTURE_1D, TEXTURE_LAYERS],
        maxTexture2DLayered: [TEXTURE_2D[0], TEXTURE_2D[1], TEXTURE_LAYERS],
        maxSurface1D: TEXTURE_1D,
        maxSurface2D: TEXTURE_2D,
        maxSurface3D: TEXTURE_3D,
        maxSurface1DLayered: [TEXTURE_1D, TEXTURE_LAYERS],
        maxSurface2DLayered: [TEXTURE_2D[0], TEXTURE_2D[1], TEXTURE_LAYERS],
        surfaceAlignment: PITCH,
        concurrentKernels: 1,
        pciBusID: bus,
        pciDeviceID: device,
        pciDomainID: domain,
        asyncEngineCount: 2,
        unifiedAddressing: 1,
        memoryClockRate: figures.memory_clock,
        memoryBusWidth: figures.bus,
        l2CacheSize: figures.l2,
        persistingL2CacheMaxSize: figures.l2,
        maxThreadsPerMultiProcessor: THREADS_PER_MULTIPROCESSOR,
        streamPrioritiesSupported: 1,
        globalL1CacheSupported: 1,
        localL1CacheSupported: 1,
        sharedMemPerMultiprocessor: LDS_PER_MULTIPROCESSOR,
        regsPerMultiprocessor: REGISTERS,
        managedMemory: MANAGED_MEMORY,
        multiGpuBoardGroupID: device,
        concurrentManagedAccess: MANAGED_MEMORY,
        canUseHostPointerForRegisteredMem: 1,
        cooperativeLaunch: COOPERATIVE_LAUNCH,
        sharedMemPerBlockOptin: LDS_PER_BLOCK as usize,
        maxBlocksPerMultiProcessor: THREADS_PER_MULTIPROCESSOR / MAX_THREADS_PER_BLOCK as c_int,
        hostRegisterSupported: 1,
        // Atomics over PCIe: ROCm's driver says so of these cards, and a kernel's atomics on host memory are whole here.
        hostNativeAtomicSupported: 1,
        memoryPoolsSupported: 1,
        gcnArchName: text(&card.arch),
        maxSharedMemoryPerMultiProcessor: LDS_PER_MULTIPROCESSOR,
        clockInstructionRate: CLOCK_INSTRUCTION,
        arch: ARCH,
        // The host cannot reach the card's memory by a pointer.
        isLargeBar: 0,
        ..DeviceProperties6::from(&hipDeviceProp_tR0600([0; 1472]))
    }
}

/// Whether `hipMallocManaged` works.
const MANAGED_MEMORY: c_int = 1;
/// Whether workgroups of a launch can wait for each other by HIP's own means.
const COOPERATIVE_LAUNCH: c_int = 1;
/// Whether `hipMemMap` and its kin work.
const VIRTUAL_MEMORY: c_int = 1;
/// Whether streams wait for values in memory.
const STREAM_WAIT_VALUE: c_int = 1;
/// Whether there are texture and surface objects.
const IMAGES: c_int = 1;

/// The same in the layout of HIP 5.
pub(crate) fn old_properties_of(card: &CardConfig) -> DeviceProperties5 {
    let [major, minor, stepping] = version(&card.arch);
    DeviceProperties5 {
        gcnArch: 100 * major + 10 * minor + stepping,
        ..DeviceProperties5::from(&properties_of(card))
    }
}

/// Sizes that an int cannot hold are answered as the largest int, as HIP does it.
fn int(size: usize) -> c_int {
    c_int::try_from(size).unwrap_or(c_int::MAX)
}

/// None for what HIP gives a number and no meaning.
fn attribute_of(card: &CardConfig, attribute: hipDeviceAttribute_t) -> Option<c_int> {
    let p = properties_of(card);
    Some(match attribute {
        hipDeviceAttributeEccEnabled => p.ECCEnabled,
        hipDeviceAttributeAccessPolicyMaxWindowSize => p.accessPolicyMaxWindowSize,
        hipDeviceAttributeAsyncEngineCount => p.asyncEngineCount,
        hipDeviceAttributeCanMapHostMemory => p.canMapHostMemory,
        hipDeviceAttributeCanUseHostPointerForRegisteredMem => p.canUseHostPointerForRegisteredMem,
        hipDeviceAttributeClockRate => p.clockRate,
        hipDeviceAttributeComputeMode => p.computeMode,
        hipDeviceAttributeComputePreemptionSupported => p.computePreemptionSupported,
        hipDeviceAttributeConcurrentKernels => p.concurrentKernels,
        hipDeviceAttributeConcurrentManagedAccess => p.concurrentManagedAccess,
        hipDeviceAttributeCooperativeLaunch => p.cooperativeLaunch,
        hipDeviceAttributeCooperativeMultiDeviceLaunch => p.cooperativeMultiDeviceLaunch,
        hipDeviceAttributeDeviceOverlap => p.deviceOverlap,
        hipDeviceAttributeDirectManagedMemAccessFromHost => p.directManagedMemAccessFromHost,
        hipDeviceAttributeGlobalL1CacheSupported => p.globalL1CacheSupported,
        hipDeviceAttributeHostNativeAtomicSupported => p.hostNativeAtomicSupported,
        hipDeviceAttributeIntegrated => p.integrated,
        hipDeviceAttributeIsMultiGpuBoard => p.isMultiGpuBoard,
        hipDeviceAttributeKernelExecTimeout => p.kernelExecTimeoutEnabled,
        hipDeviceAttributeL2CacheSize => p.l2CacheSize,
        hipDeviceAttributeLocalL1CacheSupported => p.localL1CacheSupported,
        hipDeviceAttributeLuid => 0,
        hipDeviceAttributeLuidDeviceNodeMask => p.luidDeviceNodeMask.cast_signed(),
        hipDeviceAttributeComputeCapabilityMajor => p.major,
        hipDeviceAttributeManagedMemory => p.managedMemory,
        hipDeviceAttributeMaxBlocksPerMultiProcessor => p.maxBlocksPerMultiProcessor,
        hipDeviceAttributeMaxBlockDimX | hipDeviceAttributeMaxThreadsDim => p.maxThreadsDim[0],
        hipDeviceAttributeMaxBlockDimY => p.maxThreadsDim[1],
        hipDeviceAttributeMaxBlockDimZ => p.maxThreadsDim[2],
        hipDeviceAttributeMaxGridDimX => p.maxGridSize[0],
        hipDeviceAttributeMaxGridDimY => p.maxGridSize[1],
        hipDeviceAttributeMaxGridDimZ => p.maxGridSize[2],
        hipDeviceAttributeMaxSurface1D => p.maxSurface1D,
        hipDeviceAttributeMaxSurface1DLayered => p.maxSurface1DLayered[0],
        hipDeviceAttributeMaxSurface2D => p.maxSurface2D[0],
        hipDeviceAttributeMaxSurface2DLayered => p.maxSurface2DLayered[0],
        hipDeviceAttributeMaxSurface3D => p.maxSurface3D[0],
        hipDeviceAttributeMaxSurfaceCubemap => p.maxSurfaceCubemap,
        hipDeviceAttributeMaxSurfaceCubemapLayered => p.maxSurfaceCubemapLayered[0],
        hipDeviceAttributeMaxTexture1DWidth => p.maxTexture1D,
        hipDeviceAttributeMaxTexture1DLayered => p.maxTexture1DLayered[0],
        hipDeviceAttributeMaxTexture1DLinear => p.maxTexture1DLinear,
        hipDeviceAttributeMaxTexture1DMipmap => p.maxTexture1DMipmap,
        hipDeviceAttributeMaxTexture2DWidth => p.maxTexture2D[0],
        hipDeviceAttributeMaxTexture2DHeight => p.maxTexture2D[1],
        hipDeviceAttributeMaxTexture2DGather => p.maxTexture2DGather[0],
        hipDeviceAttributeMaxTexture2DLayered => p.maxTexture2DLayered[0],
        hipDeviceAttributeMaxTexture2DLinear => p.maxTexture2DLinear[0],
        hipDeviceAttributeMaxTexture2DMipmap => p.maxTexture2DMipmap[0],
        hipDeviceAttributeMaxTexture3DWidth => p.maxTexture3D[0],
        hipDeviceAttributeMaxTexture3DHeight => p.maxTexture3D[1],
        hipDeviceAttributeMaxTexture3DDepth => p.maxTexture3D[2],
        hipDeviceAttributeMaxTexture3DAlt => p.maxTexture3DAlt[0],
        hipDeviceAttributeMaxTextureCubemap => p.maxTextureCubemap,
        hipDeviceAttributeMaxTextureCubemapLayered => p.maxTextureCubemapLayered[0],
        hipDeviceAttributeMaxThreadsPerBlock => p.maxThreadsPerBlock,
        hipDeviceAttributeMaxThreadsPerMultiProcessor => p.maxThreadsPerMultiProcessor,
        hipDeviceAttributeMaxPitch => int(p.memPitch),
        hipDeviceAttributeMemoryBusWidth => p.memoryBusWidth,
        hipDeviceAttributeMemoryClockRate => p.memoryClockRate,
        hipDeviceAttributeComputeCapabilityMinor => p.minor,
        hipDeviceAttributeMultiGpuBoardGroupID => p.multiGpuBoardGroupID,
        hipDeviceAttributeMultiprocessorCount | hipDeviceAttributePhysicalMultiProcessorCount => p.multiProcessorCount,
        hipDeviceAttributePageableMemoryAccess => p.pageableMemoryAccess,
        hipDeviceAttributePageableMemoryAccessUsesHostPageTables => p.pageableMemoryAccessUsesHostPageTables,
        hipDeviceAttributePciBusId => p.pciBusID,
        hipDeviceAttributePciDeviceId => p.pciDeviceID,
        hipDeviceAttributePciDomainID => p.pciDomainID,
        hipDeviceAttributePersistingL2CacheMaxSize => p.persistingL2CacheMaxSize,
        hipDeviceAttributeMaxRegistersPerBlock => p.regsPerBlock,
        hipDeviceAttributeMaxRegistersPerMultiprocessor => p.regsPerMultiprocessor,
        hipDeviceAttributeReservedSharedMemPerBlock => int(p.reservedSharedMemPerBlock),
        hipDeviceAttributeMaxSharedMemoryPerBlock => int(p.sharedMemPerBlock),
        hipDeviceAttributeSharedMemPerBlockOptin => int(p.sharedMemPerBlockOptin),
        hipDeviceAttributeSharedMemPerMultiprocessor => int(p.sharedMemPerMultiprocessor),
        hipDeviceAttributeMaxSharedMemoryPerMultiprocessor => int(p.maxSharedMemoryPerMultiProcessor),
        hipDeviceAttributeSingleToDoublePrecisionPerfRatio => p.singleToDoublePrecisionPerfRatio,
        hipDeviceAttributeStreamPrioritiesSupported => p.streamPrioritiesSupported,
        hipDeviceAttributeSurfaceAlignment => int(p.surfaceAlignment),
        hipDeviceAttributeTccDriver => p.tccDriver,
        hipDeviceAttributeTextureAlignment => int(p.textureAlignment),
        hipDeviceAttributeTexturePitchAlignment => int(p.texturePitchAlignment),
        hipDeviceAttributeTotalConstantMemory => int(p.totalConstMem),
        hipDeviceAttributeTotalGlobalMem => int(p.totalGlobalMem),
        hipDeviceAttributeUnifiedAddressing => p.unifiedAddressing,
        hipDeviceAttributeWarpSize => p.warpSize,
        hipDeviceAttributeMemoryPoolsSupported => p.memoryPoolsSupported,
        hipDeviceAttributeVirtualMemoryManagementSupported => VIRTUAL_MEMORY,
        hipDeviceAttributeHostRegisterSupported => p.hostRegisterSupported,
        hipDeviceAttributeMemoryPoolSupportedHandleTypes => p.memoryPoolSupportedHandleTypes.cast_signed(),
        hipDeviceAttributeClockInstructionRate => p.clockInstructionRate,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc => p.cooperativeMultiDeviceUnmatchedFunc,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim => p.cooperativeMultiDeviceUnmatchedGridDim,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim => p.cooperativeMultiDeviceUnmatchedBlockDim,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem => p.cooperativeMultiDeviceUnmatchedSharedMem,
        hipDeviceAttributeIsLargeBar => p.isLargeBar,
        hipDeviceAttributeAsicRevision => p.asicRevision,
        hipDeviceAttributeCanUseStreamWaitValue => STREAM_WAIT_VALUE,
        hipDeviceAttributeImageSupport => IMAGES,
        hipDeviceAttributeFineGrainSupport => 1,
        hipDeviceAttributeWallClockRate => WALL_CLOCK,
        _ => return None,
    })
}

impl Call<'_> {
    pub(crate) unsafe fn hipGetDevicePropertiesR0600(&mut self, to: *mut hipDeviceProp_tR0600, device: c_int) -> Hip {
        super::required(to)?;
        let card = self.card_index(device)?;
        let found = properties_of(&self.cards[card].config);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, (&found).into()) }
    }

    pub(crate) unsafe fn hipGetDeviceProperties(&mut self, to: *mut hipDeviceProp_tR0000, device: c_int) -> Hip {
        super::required(to)?;
        let card = self.card_index(device)?;
        let found = old_properties_of(&self.cards[card].config);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, (&found).into()) }
    }

    pub(crate) unsafe fn hipDeviceGetAttribute(
        &mut self,
        value: *mut c_int,
        attribute: hipDeviceAttribute_t,
        device: c_int,
    ) -> Hip {
        super::required(value)?;
        let card = self.card_index(device)?;
        if let hipDeviceAttributeHdpMemFlushCntl | hipDeviceAttributeHdpRegFlushCntl = attribute {
            // SAFETY: promised by the caller of the HIP function: for these two there is room for an address.
            unsafe { value.cast::<usize>().write_unaligned(0) };
            return Ok(());
        }
        let found = attribute_of(&self.cards[card].config, attribute).ok_or(hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(value, found) }
    }

    cases! {
        fn hipGetDevicePropertiesR0000(properties: *mut hipDeviceProp_tR0000, device: c_int)
            => |c| c.hipGetDeviceProperties(properties, device);
    }
}
