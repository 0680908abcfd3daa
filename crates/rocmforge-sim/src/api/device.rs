//! Devices: what there is and what it can do.

use super::{answer, answer_text, required};
use crate::calls::call::{Call, Hip};
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uint};

/// Lowest and highest stream priority; the lowest is the friendliest to the desktop.
pub(crate) const PRIORITY_LEAST: i32 = 1;
pub(crate) const PRIORITY_GREATEST: i32 = -1;
/// LDS of a workgroup, in bytes.
pub(crate) const LDS_PER_BLOCK: u32 = 65_536;
/// Work-items of a workgroup.
pub(crate) const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Work-items of a workgroup in each dimension.
pub(crate) const MAX_BLOCK: [u32; 3] = [1024, 1024, 1024];
/// Workgroups of a launch in each dimension.
pub(crate) const MAX_GRID: [u32; 3] = [2_147_483_647, 65_536, 65_536];

impl Call<'_> {
    pub(crate) fn hipInit(&mut self, flags: c_uint) -> Hip {
        if flags != 0 {
            return Err(hipErrorInvalidValue);
        }
        if self.cards.is_empty() {
            Err(hipErrorNoDevice)
        } else {
            Ok(())
        }
    }

    pub(crate) unsafe fn hipRuntimeGetVersion(&mut self, version: *mut c_int) -> Hip {
        let value = self.config.hip_version.runtime_version();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(version, value) }
    }

    pub(crate) unsafe fn hipGetDeviceCount(&mut self, count: *mut c_int) -> Hip {
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

    pub(crate) fn hipSetDevice(&mut self, device: c_int) -> Hip {
        let card = self.card_index(device)?;
        self.thread_state().device = card;
        Ok(())
    }

    pub(crate) unsafe fn hipGetDevice(&mut self, device: *mut c_int) -> Hip {
        let current = self.device() as c_int;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(device, current) }
    }

    pub(crate) unsafe fn hipDeviceGet(&mut self, device: *mut hipDevice_t, ordinal: c_int) -> Hip {
        required(device)?;
        self.card_index(ordinal)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(device, ordinal) }
    }

    pub(crate) unsafe fn hipDeviceGetName(&mut self, name: *mut c_char, len: c_int, device: hipDevice_t) -> Hip {
        let card = self.card_index(device)?;
        let text = self.cards[card].config.name.clone();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_text(name, len, &text) }
    }

    pub(crate) unsafe fn hipDeviceGetPCIBusId(&mut self, id: *mut c_char, len: c_int, device: c_int) -> Hip {
        let card = self.card_index(device)?;
        let text = self.cards[card].config.pci.clone();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_text(id, len, &text) }
    }

    pub(crate) unsafe fn hipDeviceTotalMem(&mut self, bytes: *mut usize, device: hipDevice_t) -> Hip {
        required(bytes)?;
        let card = self.card_index(device)?;
        let total = self.cards[card].config.pool().0 as usize;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(bytes, total) }
    }

    pub(crate) unsafe fn hipDeviceGetStreamPriorityRange(&mut self, least: *mut c_int, greatest: *mut c_int) -> Hip {
        for (to, value) in [(least, PRIORITY_LEAST), (greatest, PRIORITY_GREATEST)] {
            if !to.is_null() {
                // SAFETY: promised by the caller of the HIP function.
                unsafe { answer(to, value) }?;
            }
        }
        Ok(())
    }

    cases! {
        fn hipDriverGetVersion(version: *mut c_int) => |c| c.hipRuntimeGetVersion(version);
        fn hipCtxGetDevice(device: *mut hipDevice_t) => |c| c.hipGetDevice(device);
    }
}
