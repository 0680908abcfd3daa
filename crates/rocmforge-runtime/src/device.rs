//! Device description. Numbers come from attributes, whose values have not changed from HIP 5.2 to 7.1; only the
//! processor's name needs the properties struct, of which HIP has two under nearly the same name.

use crate::driver::Driver;
use crate::error::{HipError, HipResult};
use rocmforge_hip_sys::*;
use rocmforge_memory::{Bytes, DeviceKey};
use std::ffi::{c_char, c_int};

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
        let ordinal = driver.ordinal();
        let attribute = |attribute: hipDeviceAttribute_t| -> HipResult<u32> {
            let mut value: c_int = 0;
            // SAFETY: `value` is a live out-pointer for the call.
            driver.call("hipDeviceGetAttribute", |api| unsafe {
                api.hipDeviceGetAttribute(&mut value, attribute, ordinal)
            })?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let mut device: hipDevice_t = 0;
        // SAFETY: `device` is a live out-pointer for the call.
        driver.call("hipDeviceGet", |api| unsafe { api.hipDeviceGet(&mut device, ordinal) })?;
        let name = text::<256>(|buffer, len| {
            // SAFETY: `buffer` has `len` writable bytes.
            driver.call("hipDeviceGetName", |api| unsafe {
                api.hipDeviceGetName(buffer, len, device)
            })
        })?;
        let pci = text::<64>(|buffer, len| {
            // SAFETY: `buffer` has `len` writable bytes.
            driver.call("hipDeviceGetPCIBusId", |api| unsafe {
                api.hipDeviceGetPCIBusId(buffer, len, ordinal)
            })
        })?;
        let mut total = 0usize;
        // SAFETY: `total` is a live out-pointer for the call.
        driver.call("hipDeviceTotalMem", |api| unsafe {
            api.hipDeviceTotalMem(&mut total, device)
        })?;
        let mut hip_version: c_int = 0;
        // SAFETY: `hip_version` is a live out-pointer for the call.
        driver.call("hipRuntimeGetVersion", |api| unsafe {
            api.hipRuntimeGetVersion(&mut hip_version)
        })?;
        let arch_full = arch_name(driver)?;

        let info = Self {
            ordinal,
            name,
            arch: arch_full.split(':').next().unwrap_or_default().to_owned(),
            arch_full,
            pci: DeviceKey(pci.to_ascii_lowercase()),
            total_memory: Bytes(total as u64),
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

/// Calls something that writes a C string.
fn text<const N: usize>(call: impl FnOnce(*mut c_char, c_int) -> HipResult<()>) -> HipResult<String> {
    let mut buffer = [0u8; N];
    // One byte less than there is: whatever the library does, the last byte stays 0.
    call(buffer.as_mut_ptr().cast(), (N - 1) as c_int)?;
    Ok(c_text(&buffer))
}

fn c_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// `gcnArchName`, from the struct whose layout is known by the symbol's name: R0600 if the library has it, else the old one.
fn arch_name(driver: &Driver) -> HipResult<String> {
    const ARCH_LEN: usize = 256;
    /// Larger than any version of the struct: a library that writes more than it should does no harm.
    #[repr(C, align(8))]
    struct Room<T>(T, [u8; 2624]);

    let mut new = Room(hipDeviceProp_tR0600([0; 1472]), [0; 2624]);
    let status = driver.status(|api| {
        let properties: *mut hipDeviceProp_tR0600 = (&raw mut new).cast();
        // SAFETY: `properties` points at the start of 4 KiB that live for the call.
        unsafe { api.hipGetDevicePropertiesR0600(properties, driver.ordinal()) }
    })?;
    if status != hipErrorNotSupported {
        driver.check("hipGetDevicePropertiesR0600", status)?;
        let at = hipDeviceProp_tR0600::GCN_ARCH_NAME;
        return Ok(c_text(&new.0.0[at..at + ARCH_LEN]));
    }
    let mut old = Room(hipDeviceProp_tR0000([0; 792]), [0; 2624]);
    driver.call("hipGetDeviceProperties", |api| {
        let properties: *mut hipDeviceProp_tR0000 = (&raw mut old).cast();
        // SAFETY: `properties` points at the start of more than 3 KiB that live for the call.
        unsafe { api.hipGetDeviceProperties(properties, driver.ordinal()) }
    })?;
    let at = hipDeviceProp_tR0000::GCN_ARCH_NAME;
    Ok(c_text(&old.0.0[at..at + ARCH_LEN]))
}
