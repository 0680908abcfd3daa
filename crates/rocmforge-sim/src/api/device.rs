//! Devices: what there is and what it can do.

use super::{answer, answer_text, required};
use crate::config::CardConfig;
use crate::machine::sim::{Call, Hip};
use rocmforge_amdgcn::{Arch, WALL_CLOCK_KHZ, shader_clock_khz};
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uint};

/// Lowest and highest stream priority; the lowest is the friendliest to the desktop.
pub(crate) const PRIORITY_LEAST: i32 = 1;
pub(crate) const PRIORITY_GREATEST: i32 = -1;
/// LDS of a workgroup, in bytes.
pub(crate) const LDS_PER_BLOCK: u32 = 65_536;
/// `hipDeviceAttributeWallClockRate`, of HIP 5.7 and later.
const WALL_CLOCK_RATE: hipDeviceAttribute_t = 10_017;
/// Work-items of a workgroup.
pub(crate) const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Work-items of a workgroup in each dimension.
pub(crate) const MAX_BLOCK: [u32; 3] = [1024, 1024, 1024];
/// Workgroups of a launch in each dimension.
pub(crate) const MAX_GRID: [u32; 3] = [2_147_483_647, 65_536, 65_536];

impl Call<'_> {
    pub(crate) fn init(&mut self, flags: c_uint) -> Hip {
        if flags != 0 {
            return Err(hipErrorInvalidValue);
        }
        if self.cards.is_empty() {
            Err(hipErrorNoDevice)
        } else {
            Ok(())
        }
    }

    pub(crate) unsafe fn version(&mut self, version: *mut c_int) -> Hip {
        let value = self.config.hip_version.runtime_version();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(version, value) }
    }

    pub(crate) unsafe fn get_device_count(&mut self, count: *mut c_int) -> Hip {
        let cards = self.cards.len();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(count, cards as c_int) }?;
        if cards == 0 { Err(hipErrorNoDevice) } else { Ok(()) }
    }

    pub(crate) fn card_index(&self, device: c_int) -> Hip<usize> {
        usize::try_from(device)
            .ok()
            .filter(|index| *index < self.cards.len())
            .ok_or(hipErrorInvalidDevice)
    }

    pub(crate) fn set_device(&mut self, device: c_int) -> Hip {
        let card = self.card_index(device)?;
        self.thread_state().device = card;
        Ok(())
    }

    pub(crate) unsafe fn get_device(&mut self, device: *mut c_int) -> Hip {
        let current = self.device() as c_int;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(device, current) }
    }

    pub(crate) unsafe fn device_get(&mut self, device: *mut hipDevice_t, ordinal: c_int) -> Hip {
        required(device)?;
        self.card_index(ordinal)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(device, ordinal) }
    }

    pub(crate) unsafe fn device_get_name(&mut self, name: *mut c_char, len: c_int, device: hipDevice_t) -> Hip {
        let card = self.card_index(device)?;
        let text = self.cards[card].config.name.clone();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_text(name, len, &text) }
    }

    pub(crate) unsafe fn device_get_pci_bus_id(&mut self, id: *mut c_char, len: c_int, device: c_int) -> Hip {
        let card = self.card_index(device)?;
        let text = self.cards[card].config.pci.clone();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_text(id, len, &text) }
    }

    pub(crate) unsafe fn device_total_mem(&mut self, bytes: *mut usize, device: hipDevice_t) -> Hip {
        required(bytes)?;
        let card = self.card_index(device)?;
        let total = self.cards[card].config.pool().0 as usize;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(bytes, total) }
    }

    pub(crate) unsafe fn device_get_attribute(
        &mut self,
        value: *mut c_int,
        attribute: hipDeviceAttribute_t,
        device: c_int,
    ) -> Hip {
        required(value)?;
        let card = self.card_index(device)?;
        let found = attribute_of(&self.cards[card].config, attribute).ok_or(hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(value, found) }
    }

    pub(crate) unsafe fn stream_priority_range(&mut self, least: *mut c_int, greatest: *mut c_int) -> Hip {
        for (to, value) in [(least, PRIORITY_LEAST), (greatest, PRIORITY_GREATEST)] {
            if !to.is_null() {
                // SAFETY: promised by the caller of the HIP function.
                unsafe { answer(to, value) }?;
            }
        }
        Ok(())
    }

    /// Fills a device property struct: zeros, the name at its start and the architecture at its offset. The fields
    /// that an attribute gives stay zero.
    pub(crate) fn properties<const N: usize>(&mut self, device: c_int, arch_at: usize) -> Hip<[u8; N]> {
        let card = self.card_index(device)?;
        let config = &self.cards[card].config;
        let mut bytes = [0; N];
        for (at, text) in [(0, &config.name), (arch_at, &config.arch)] {
            let text = &text.as_bytes()[..text.len().min(255)];
            bytes[at..at + text.len()].copy_from_slice(text);
        }
        Ok(bytes)
    }
}

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

/// What a Navi 31, or a Navi 48, answers, as far as it matters to a program that computes.
fn attribute_of(card: &CardConfig, attribute: hipDeviceAttribute_t) -> Option<c_int> {
    let pci = |part: usize| {
        let parts: Vec<&str> = card.pci.split([':', '.']).collect();
        parts
            .get(part)
            .and_then(|text| i32::from_str_radix(text, 16).ok())
            .unwrap_or(0)
    };
    let figures = figures(&card.arch);
    let arch = card.arch.strip_prefix("gfx").unwrap_or("1100");
    let (major, rest) = arch.split_at(arch.len().saturating_sub(2));
    Some(match attribute {
        hipDeviceAttributeWarpSize => 32,
        hipDeviceAttributeMaxThreadsPerBlock => MAX_THREADS_PER_BLOCK as c_int,
        hipDeviceAttributeMaxBlockDimX => MAX_BLOCK[0] as c_int,
        hipDeviceAttributeMaxBlockDimY => MAX_BLOCK[1] as c_int,
        hipDeviceAttributeMaxBlockDimZ => MAX_BLOCK[2] as c_int,
        hipDeviceAttributeMaxGridDimX => MAX_GRID[0] as c_int,
        hipDeviceAttributeMaxGridDimY => MAX_GRID[1] as c_int,
        hipDeviceAttributeMaxGridDimZ => MAX_GRID[2] as c_int,
        hipDeviceAttributeMaxSharedMemoryPerBlock => LDS_PER_BLOCK as c_int,
        hipDeviceAttributeMaxSharedMemoryPerMultiprocessor => 2 * LDS_PER_BLOCK as c_int,
        hipDeviceAttributeMaxThreadsPerMultiProcessor => 2048,
        hipDeviceAttributeMaxRegistersPerBlock => 65_536,
        hipDeviceAttributeMultiprocessorCount => card.multiprocessors as c_int,
        hipDeviceAttributeComputeCapabilityMajor => major.parse().unwrap_or(11),
        hipDeviceAttributeComputeCapabilityMinor => rest.get(..1).and_then(|d| d.parse().ok()).unwrap_or(0),
        hipDeviceAttributePciDomainID => pci(0),
        hipDeviceAttributePciBusId => pci(1),
        hipDeviceAttributePciDeviceId => pci(2),
        hipDeviceAttributeIntegrated => c_int::from(card.unified_memory),
        hipDeviceAttributeClockRate => figures.clock,
        hipDeviceAttributeMemoryClockRate => figures.memory_clock,
        hipDeviceAttributeMemoryBusWidth => figures.bus,
        hipDeviceAttributeL2CacheSize => figures.l2,
        hipDeviceAttributeTotalConstantMemory => 2_147_483_647,
        hipDeviceAttributeAsyncEngineCount => 2,
        hipDeviceAttributeConcurrentKernels
        | hipDeviceAttributeCanMapHostMemory
        | hipDeviceAttributeManagedMemory
        | hipDeviceAttributeCooperativeLaunch => 1,
        WALL_CLOCK_RATE => WALL_CLOCK_KHZ.cast_signed(),
        hipDeviceAttributeMemoryPoolsSupported => 1,
        hipDeviceAttributeEccEnabled | hipDeviceAttributeKernelExecTimeout => 0,
        _ => return None,
    })
}
