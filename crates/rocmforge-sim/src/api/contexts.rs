//! Contexts, which HIP took over from another driver: each device has one, and a thread has a stack of them. What AMD's
//! implementation does not have is refused here too.

use super::{answer, answer_if_asked};
use crate::calls::call::{Call, Hip, fail_if};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint};

/// Where the handles of contexts start. Like other handles, they are numbers that no pointer can be.
const FIRST: u64 = 0xF000_0000_0000_0000;
/// The distance between two.
const STEP: u64 = 16;

fn handle_of(card: usize) -> hipCtx_t {
    std::ptr::without_provenance_mut((FIRST + card as u64 * STEP) as usize)
}

impl Call<'_> {
    /// The card of a context.
    pub(crate) fn context(&self, context: hipCtx_t) -> Hip<usize> {
        let offset = (context.addr() as u64).checked_sub(FIRST);
        offset
            .filter(|offset| offset % STEP == 0)
            .map(|offset| (offset / STEP) as usize)
            .filter(|card| *card < self.cards.len())
            .ok_or(hipErrorInvalidContext)
    }

    pub(crate) unsafe fn hipCtxCreate(&mut self, context: *mut hipCtx_t, flags: c_uint, device: hipDevice_t) -> Hip {
        let card = self.card_index(device).map_err(|_| hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(context, handle_of(card)) }?;
        self.cards[card].settings.set_flags(flags);
        self.thread_state().contexts.push(card);
        Ok(())
    }

    pub(crate) fn hipCtxDestroy(&mut self, context: hipCtx_t) -> Hip {
        fail_if(context.is_null(), hipErrorInvalidValue)?;
        let card = self.context(context)?;
        let contexts = &mut self.thread_state().contexts;
        contexts.pop_if(|top| *top == card);
        Ok(())
    }

    pub(crate) fn hipCtxPushCurrent(&mut self, context: hipCtx_t) -> Hip {
        let card = self.context(context)?;
        let thread = self.thread_state();
        thread.device = card;
        thread.contexts.push(card);
        Ok(())
    }

    pub(crate) unsafe fn hipCtxPopCurrent(&mut self, context: *mut hipCtx_t) -> Hip {
        let top = self.thread_state().contexts.pop().ok_or(hipErrorInvalidContext)?;
        if context.is_null() {
            return Ok(());
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(context, handle_of(top)) }
    }

    pub(crate) fn hipCtxSetCurrent(&mut self, context: hipCtx_t) -> Hip {
        if context.is_null() {
            self.thread_state().contexts.pop();
            return Ok(());
        }
        let card = self.context(context)?;
        let thread = self.thread_state();
        thread.device = card;
        thread.contexts.pop();
        thread.contexts.push(card);
        Ok(())
    }

    pub(crate) fn hipCtxSetCacheConfig(&mut self, config: hipFuncCache_t) -> Hip {
        self.hipDeviceSetCacheConfig(config)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) fn hipCtxEnablePeerAccess(&mut self, context: hipCtx_t, flags: c_uint) -> Hip {
        let card = self.context(context)?;
        self.hipDeviceEnablePeerAccess(card as c_int, flags)
    }

    pub(crate) fn hipCtxDisablePeerAccess(&mut self, context: hipCtx_t) -> Hip {
        let card = self.context(context)?;
        self.hipDeviceDisablePeerAccess(card as c_int)
    }

    pub(crate) fn hipDevicePrimaryCtxSetFlags(&mut self, device: hipDevice_t, _flags: c_uint) -> Hip {
        self.card_index(device)?;
        Err(hipErrorContextAlreadyInUse)
    }

    cases! {
        fn hipCtxGetCurrent(context: *mut hipCtx_t) => |c| answer(context, handle_of(c.device()));
        fn hipCtxGetSharedMemConfig(config: *mut hipSharedMemConfig) => |c| c.hipDeviceGetSharedMemConfig(config);
        fn hipDevicePrimaryCtxRetain(context: *mut hipCtx_t, device: hipDevice_t)
            => |c| answer(context, handle_of(c.card_index(device)?));
        fn hipDevicePrimaryCtxGetState(device: hipDevice_t, flags: *mut c_uint, active: *mut c_int) => |c| {
            let card = c.card_index(device)?;
            answer_if_asked(flags, 0);
            let used = c.cards[card].vram.stats().allocations > 0 || c.queues.any_work_of(card);
            answer_if_asked(active, c_int::from(used));
            Ok(())
        };
        fn hipDevicePrimaryCtxRelease(dev: hipDevice_t) => |c| c.card_index(dev).map(|_| ());
        fn hipDevicePrimaryCtxReset(dev: hipDevice_t) => |c| c.card_index(dev).map(|_| ());
    }
}
