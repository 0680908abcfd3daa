//! HIP's attribute numbers in the driver's. Neither may be guessed from the other: they agree nowhere.

use rocmforge_hip_sys::*;
use std::ffi::c_int;

/// `CU_DEVICE_ATTRIBUTE_*` for `hipDeviceAttribute*`: the driver's number, and its name there.
pub(crate) const DEVICE: &[(hipDeviceAttribute_t, c_int, &str)] = &[
    (hipDeviceAttributeEccEnabled, 32, "ECC_ENABLED"),
    (hipDeviceAttributeAsyncEngineCount, 40, "ASYNC_ENGINE_COUNT"),
    (hipDeviceAttributeCanMapHostMemory, 19, "CAN_MAP_HOST_MEMORY"),
    (hipDeviceAttributeClockRate, 13, "CLOCK_RATE"),
    (hipDeviceAttributeConcurrentKernels, 31, "CONCURRENT_KERNELS"),
    (hipDeviceAttributeCooperativeLaunch, 95, "COOPERATIVE_LAUNCH"),
    (hipDeviceAttributeIntegrated, INTEGRATED, "INTEGRATED"),
    (hipDeviceAttributeKernelExecTimeout, 17, "KERNEL_EXEC_TIMEOUT"),
    (hipDeviceAttributeL2CacheSize, 38, "L2_CACHE_SIZE"),
    (
        hipDeviceAttributeComputeCapabilityMajor,
        MAJOR,
        "COMPUTE_CAPABILITY_MAJOR",
    ),
    (
        hipDeviceAttributeComputeCapabilityMinor,
        MINOR,
        "COMPUTE_CAPABILITY_MINOR",
    ),
    (hipDeviceAttributeManagedMemory, 83, "MANAGED_MEMORY"),
    (hipDeviceAttributeMaxBlockDimX, 2, "MAX_BLOCK_DIM_X"),
    (hipDeviceAttributeMaxBlockDimY, 3, "MAX_BLOCK_DIM_Y"),
    (hipDeviceAttributeMaxBlockDimZ, 4, "MAX_BLOCK_DIM_Z"),
    (hipDeviceAttributeMaxGridDimX, 5, "MAX_GRID_DIM_X"),
    (hipDeviceAttributeMaxGridDimY, 6, "MAX_GRID_DIM_Y"),
    (hipDeviceAttributeMaxGridDimZ, 7, "MAX_GRID_DIM_Z"),
    (hipDeviceAttributeMaxThreadsPerBlock, 1, "MAX_THREADS_PER_BLOCK"),
    (
        hipDeviceAttributeMaxThreadsPerMultiProcessor,
        39,
        "MAX_THREADS_PER_MULTIPROCESSOR",
    ),
    (hipDeviceAttributeMemoryBusWidth, 37, "GLOBAL_MEMORY_BUS_WIDTH"),
    (hipDeviceAttributeMemoryClockRate, 36, "MEMORY_CLOCK_RATE"),
    (hipDeviceAttributeMultiprocessorCount, 16, "MULTIPROCESSOR_COUNT"),
    (hipDeviceAttributePciBusId, 33, "PCI_BUS_ID"),
    (hipDeviceAttributePciDeviceId, 34, "PCI_DEVICE_ID"),
    (hipDeviceAttributePciDomainID, 50, "PCI_DOMAIN_ID"),
    (hipDeviceAttributeMaxRegistersPerBlock, 12, "MAX_REGISTERS_PER_BLOCK"),
    // Not MAX_SHARED_MEMORY_PER_BLOCK (8), the 48 KiB of a function that has not been allowed more: all functions are, when
    // they are found (`module.rs`).
    (
        hipDeviceAttributeMaxSharedMemoryPerBlock,
        MAX_SHARED,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    ),
    (hipDeviceAttributeTotalConstantMemory, 9, "TOTAL_CONSTANT_MEMORY"),
    (hipDeviceAttributeWarpSize, 10, "WARP_SIZE"),
    (hipDeviceAttributeMemoryPoolsSupported, 115, "MEMORY_POOLS_SUPPORTED"),
    (
        hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
        81,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    ),
];

/// `CU_DEVICE_ATTRIBUTE_INTEGRATED`.
pub(crate) const INTEGRATED: c_int = 18;
/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
pub(crate) const MAX_SHARED: c_int = 97;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
pub(crate) const MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
pub(crate) const MINOR: c_int = 76;

/// The driver's number for an attribute of a device.
pub(crate) fn device(attribute: hipDeviceAttribute_t) -> Option<c_int> {
    DEVICE
        .iter()
        .find(|(hip, ..)| *hip == attribute)
        .map(|(_, cuda, _)| *cuda)
}

/// The driver's number for an attribute of a function: here the two agree, up to the last that HIP has.
pub(crate) fn function(attribute: hipFunction_attribute) -> Option<c_int> {
    (attribute <= HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).then_some(attribute as c_int)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_attribute_of_the_bindings_has_one_number() {
        let ours: Vec<_> = rocmforge_hip_sys::abi::constants()
            .into_iter()
            .filter(|constant| constant.group == "hipDeviceAttribute_t")
            .collect();
        assert!(ours.len() > 20);
        for constant in &ours {
            assert!(
                device(constant.value as hipDeviceAttribute_t).is_some(),
                "{}",
                constant.name
            );
        }
        let numbers: BTreeSet<c_int> = DEVICE.iter().map(|(_, cuda, _)| *cuda).collect();
        assert_eq!(numbers.len(), ours.len());
        assert_eq!(device(9999), None);
    }
}
