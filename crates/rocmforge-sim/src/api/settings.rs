//! Settings of a device: limits, flags, peers, and memory for other processes.

use super::memory::address_of;
use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::host::Host;
use rocmforge_hip_sys::*;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// Bytes of stack a work-item can have.
const MAX_STACK: usize = 131_056;
/// `hipDeviceLmemResizeToMax`, which HIP 5.2 has with another value.
const LMEM_RESIZE_TO_MAX: c_uint = 0x10;
/// How a handle of ours for another process starts.
const IPC_MARK: &[u8; 8] = b"rocmsim\0";

impl Host {
    /// Whether kernels of one card can be allowed to access the memory of another. Copies between cards need no leave.
    pub(crate) fn may_access(&self, card: usize, peer: usize) -> bool {
        self.config.peer_access && card != peer
    }
}

impl Call<'_> {
    pub(crate) unsafe fn hipDeviceGetLimit(&mut self, value: *mut usize, limit: hipLimit_t) -> Hip {
        required(value)?;
        let card = self.device();
        let found = *self.limit(card, limit)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(value, found) }
    }

    pub(crate) fn hipDeviceSetLimit(&mut self, limit: hipLimit_t, value: usize) -> Hip {
        let card = self.device();
        let at = self.limit(card, limit)?;
        fail_if(limit == hipLimitStackSize && value > MAX_STACK, hipErrorInvalidValue)?;
        *at = value;
        Ok(())
    }

    fn limit(&mut self, card: usize, limit: hipLimit_t) -> Hip<&mut usize> {
        let settings = &mut self.cards[card].settings;
        match limit {
            hipLimitStackSize => Ok(&mut settings.stack),
            hipLimitMallocHeapSize => Ok(&mut settings.heap),
            _ => Err(hipErrorUnsupportedLimit),
        }
    }

    pub(crate) fn hipSetDeviceFlags(&mut self, flags: c_uint) -> Hip {
        let known = hipDeviceScheduleMask | hipDeviceMapHost | LMEM_RESIZE_TO_MAX;
        if flags & !known != 0 || (flags & hipDeviceScheduleMask).count_ones() > 1 {
            return Err(hipErrorInvalidValue);
        }
        let card = self.device();
        // The others are accepted and forgotten, as by AMD's library.
        self.cards[card].settings.flags = flags & hipDeviceScheduleMask;
        Ok(())
    }

    /// Kernels of the current card may access the memory of another from now on.
    pub(crate) fn hipDeviceEnablePeerAccess(&mut self, peer: c_int, flags: c_uint) -> Hip {
        fail_if(flags != 0, hipErrorInvalidValue)?;
        let (card, peer) = (self.device(), self.card_index(peer)?);
        fail_if(peer == card, hipErrorInvalidDevice)?;
        fail_if(!self.may_access(card, peer), hipErrorNotSupported)?;
        let new = self.cards[card].settings.peers.insert(peer);
        fail_if(!new, hipErrorPeerAccessAlreadyEnabled)
    }

    /// What is queued on the current card may still access the other's memory, and runs first.
    pub(crate) fn hipDeviceDisablePeerAccess(&mut self, peer: c_int) -> Hip {
        let (card, peer) = (self.device(), self.card_index(peer)?);
        fail_if(
            !self.cards[card].settings.peers.contains(&peer),
            hipErrorPeerAccessNotEnabled,
        )?;
        self.wait_for_card(card)?;
        self.cards[card].settings.peers.remove(&peer);
        Ok(())
    }

    pub(crate) unsafe fn hipIpcGetMemHandle(&mut self, handle: *mut hipIpcMemHandle_t, pointer: *mut c_void) -> Hip {
        required(handle)?;
        let address = address_of(pointer);
        let card = self.card_of(address).ok_or(hipErrorInvalidValue)?;
        let allocation = self.cards[card].vram.find(address).ok_or(hipErrorInvalidValue)?;
        let mut reserved = [0; 64];
        reserved[..8].copy_from_slice(IPC_MARK);
        reserved[8..16].copy_from_slice(&allocation.address.to_le_bytes());
        reserved[16..24].copy_from_slice(&allocation.id.to_le_bytes());
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(handle, hipIpcMemHandle_t { reserved }) }
    }

    /// A simulated machine has one process, the one that made the handle; and that one must not open it.
    pub(crate) fn hipIpcOpenMemHandle(
        &mut self,
        pointer: *mut *mut c_void,
        handle: hipIpcMemHandle_t,
        _flags: c_uint,
    ) -> Hip {
        required(pointer)?;
        if handle.reserved.starts_with(IPC_MARK) {
            Err(hipErrorInvalidContext)
        } else {
            Err(hipErrorInvalidValue)
        }
    }

    pub(crate) unsafe fn hipDrvGetErrorName(&mut self, status: hipError_t, name: *mut *const c_char) -> Hip {
        required(name)?;
        let known: &'static CStr = status.c_name().ok_or(hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(name, known.as_ptr()) }
    }

    cases! {
        fn hipGetDeviceFlags(flags: *mut c_uint) => |c| {
            required(flags)?;
            let card = c.device();
            answer(flags, c.cards[card].settings.flags)
        };
        fn hipDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) => |c| {
            required(can)?;
            let (card, peer) = (c.card_index(device)?, c.card_index(peer)?);
            answer(can, c_int::from(c.may_access(card, peer)))
        };
    }
}
