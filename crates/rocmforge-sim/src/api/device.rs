//! Devices: what there is and what it can do.

use super::{answer, answer_if_asked, answer_text, required};
use crate::calls::call::{Call, Hip, fail_if};
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
        fail_if(flags != 0, hipErrorInvalidValue)?;
        fail_if(self.cards.is_empty(), hipErrorNoDevice)
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

    cases! {
        fn hipRuntimeGetVersion(version: *mut c_int) => |c| answer(version, c.config.hip_version.runtime_version());
        fn hipGetDevice(device: *mut c_int) => |c| answer(device, c.device() as c_int);
        fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int) => |c| {
            required(device)?;
            c.card_index(ordinal)?;
            answer(device, ordinal)
        };
        fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t) => |c| {
            let card = c.card_index(device)?;
            answer_text(name, len, &c.cards[card].config.name)
        };
        fn hipDeviceGetPCIBusId(id: *mut c_char, len: c_int, device: c_int) => |c| {
            let card = c.card_index(device)?;
            answer_text(id, len, &c.cards[card].config.pci)
        };
        fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) => |c| {
            required(bytes)?;
            let card = c.card_index(device)?;
            answer(bytes, c.cards[card].config.pool().0 as usize)
        };
        fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) => |_c| {
            answer_if_asked(least, PRIORITY_LEAST);
            answer_if_asked(greatest, PRIORITY_GREATEST);
            Ok(())
        };
        fn hipDriverGetVersion(version: *mut c_int) => |c| c.hipRuntimeGetVersion(version);
        fn hipCtxGetDevice(device: *mut hipDevice_t) => |c| c.hipGetDevice(device);
    }
}
