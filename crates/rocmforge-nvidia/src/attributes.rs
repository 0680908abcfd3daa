//! HIP's attribute numbers in the driver's. Neither may be guessed from the other: they agree nowhere.

use rocmforge_hip_sys::*;
use std::ffi::c_int;

/// `CU_DEVICE_ATTRIBUTE_*` for `hipDeviceAttribute*`.
const DEVICE: &[(hipDeviceAttribute_t, c_int)] = &[
    (hipDeviceAttributeEccEnabled, 32),
    (hipDeviceAttributeAsyncEngineCount, 40),
    (hipDeviceAttributeCanMapHostMemory, 19),
    (hipDeviceAttributeClockRate, 13),
    (hipDeviceAttributeConcurrentKernels, 31),
    (hipDeviceAttributeCooperativeLaunch, 95),
    (hipDeviceAttributeIntegrated, INTEGRATED),
    (hipDeviceAttributeKernelExecTimeout, 17),
    (hipDeviceAttributeL2CacheSize, 38),
    (hipDeviceAttributeComputeCapabilityMajor, MAJOR),
    (hipDeviceAttributeComputeCapabilityMinor, MINOR),
    (hipDeviceAttributeManagedMemory, 83),
    (hipDeviceAttributeMaxBlockDimX, 2),
    (hipDeviceAttributeMaxBlockDimY, 3),
    (hipDeviceAttributeMaxBlockDimZ, 4),
    (hipDeviceAttributeMaxGridDimX, 5),
    (hipDeviceAttributeMaxGridDimY, 6),
    (hipDeviceAttributeMaxGridDimZ, 7),
    (hipDeviceAttributeMaxThreadsPerBlock, 1),
    (hipDeviceAttributeMaxThreadsPerMultiProcessor, 39),
    (hipDeviceAttributeMemoryBusWidth, 37),
    (hipDeviceAttributeMemoryClockRate, 36),
    (hipDeviceAttributeMultiprocessorCount, 16),
    (hipDeviceAttributePciBusId, 33),
    (hipDeviceAttributePciDeviceId, 34),
    (hipDeviceAttributePciDomainID, 50),
    (hipDeviceAttributeMaxRegistersPerBlock, 12),
    (hipDeviceAttributeMaxSharedMemoryPerBlock, 8),
    (hipDeviceAttributeTotalConstantMemory, 9),
    (hipDeviceAttributeWarpSize, 10),
    (hipDeviceAttributeMemoryPoolsSupported, 115),
    (hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, 81),
];

/// `CU_DEVICE_ATTRIBUTE_INTEGRATED`.
pub(crate) const INTEGRATED: c_int = 18;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
pub(crate) const MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
pub(crate) const MINOR: c_int = 76;

/// The driver's number for an attribute of a device.
pub(crate) fn device(attribute: hipDeviceAttribute_t) -> Option<c_int> {
    DEVICE.iter().find(|(hip, _)| *hip == attribute).map(|(_, cuda)| *cuda)
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
        let numbers: BTreeSet<c_int> = DEVICE.iter().map(|(_, cuda)| *cuda).collect();
        assert_eq!(numbers.len(), ours.len());
        assert_eq!(device(9999), None);
    }
}
