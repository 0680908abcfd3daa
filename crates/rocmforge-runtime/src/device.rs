//! Device description. Numbers come from attributes, whose values have not changed from HIP 5.2 to 7.1; only the
//! processor's name needs the properties struct, of which HIP has two under nearly the same name.

use crate::error::{HipError, HipResult};
use crate::hip::{Driver, device};
use rocmforge_hip_sys::*;
use rocmforge_memory::{Bytes, DeviceKey};

/// A device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// HIP's number for it, which depends on `ROCR_VISIBLE_DEVICES` and `HIP_VISIBLE_DEVICES`.
    pub ordinal: i32,
    /// Its name, such as `AMD Radeon RX 7900 XT`.
    pub name: String,
    /// Its processor, without features: `gfx1100`.
    pub arch: String,
    /// Its processor, with features: `gfx90a:sramecc+:xnack-`.
    pub arch_full: String,
    /// Its PCI address, `0000:03:00.0`: what budget and lock go by.
    pub pci: DeviceKey,
    /// Its memory.
    pub total_memory: Bytes,
    /// Threads of a wave: 32 or 64.
    pub wave_size: u32,
    /// Compute units (or pairs of them, as HIP counts).
    pub multiprocessors: u32,
    /// Whether it shares the host's memory (an APU).
    pub integrated: bool,
    /// What a launch may ask for.
    pub limits: DeviceLimits,
    /// What `hipRuntimeGetVersion` says: 60 241 134 is 6.2.
    pub hip_version: i32,
}

/// What a launch may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Threads of a block.
    pub max_threads_per_block: u32,
    /// Threads of a block along x, y, z.
    pub max_block_dim: [u32; 3],
    /// Blocks along x, y, z.
    pub max_grid_dim: [u32; 3],
    /// Bytes of LDS of a block, static and dynamic together.
    pub lds_per_block: u32,
}

impl DeviceInfo {
    /// Asks the driver's device.
    pub(crate) fn query(driver: &Driver) -> HipResult<Self> {
        let attribute = |attribute| device::attribute(driver, attribute);
        let handle = device::get(driver)?;
        let name = device::name(driver, handle)?;
        let pci = device::pci_address(driver)?;
        let total_memory = device::total_memory(driver, handle)?;
        let hip_version = device::version(driver)?;
        let arch_full = device::arch_name(driver)?;

        let info = Self {
            ordinal: driver.ordinal(),
            name,
            arch: arch_full.split(':').next().unwrap_or_default().to_owned(),
            arch_full,
            pci: DeviceKey(pci.to_ascii_lowercase()),
            total_memory,
            wave_size: attribute(hipDeviceAttributeWarpSize)?,
            multiprocessors: attribute(hipDeviceAttributeMultiprocessorCount)?,
            integrated: attribute(hipDeviceAttributeIntegrated)? != 0,
            limits: DeviceLimits {
                max_threads_per_block: attribute(hipDeviceAttributeMaxThreadsPerBlock)?,
                max_block_dim: [
                    attribute(hipDeviceAttributeMaxBlockDimX)?,
                    attribute(hipDeviceAttributeMaxBlockDimY)?,
                    attribute(hipDeviceAttributeMaxBlockDimZ)?,
                ],
                max_grid_dim: [
                    attribute(hipDeviceAttributeMaxGridDimX)?,
                    attribute(hipDeviceAttributeMaxGridDimY)?,
                    attribute(hipDeviceAttributeMaxGridDimZ)?,
                ],
                lds_per_block: attribute(hipDeviceAttributeMaxSharedMemoryPerBlock)?,
            },
            hip_version,
        };
        info.plausible()?;
        Ok(info)
    }

    /// A library whose structs or enums differ from ours shows here, before anything is computed with its figures.
    fn plausible(&self) -> HipResult<()> {
        let bad = |what: String| {
            Err(HipError::ImplausibleDevice {
                ordinal: self.ordinal,
                what,
            })
        };
        let limits = &self.limits;
        if !matches!(self.wave_size, 32 | 64) {
            return bad(format!("a wave size of {}", self.wave_size));
        }
        if !(64..=4096).contains(&limits.max_threads_per_block) {
            return bad(format!("{} threads per block", limits.max_threads_per_block));
        }
        if limits.max_block_dim.contains(&0) || limits.max_grid_dim.contains(&0) {
            return bad(format!(
                "limits of {:?} threads and {:?} blocks",
                limits.max_block_dim, limits.max_grid_dim
            ));
        }
        if limits.lds_per_block < 1024 {
            return bad(format!("{} bytes of LDS", limits.lds_per_block));
        }
        // The smallest APU carve-out is 64 MiB; no card has 64 TiB.
        if !((1 << 26)..(1 << 46)).contains(&self.total_memory.0) {
            return bad(format!("{} of memory", self.total_memory));
        }
        if self.arch.is_empty() {
            return bad("no processor name".to_owned());
        }
        Ok(())
    }
}
