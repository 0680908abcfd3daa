//! Choice and settings of a device, which a program asks for before it works.

use super::properties::{pci, properties_of, uuid};
use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use rocmforge_hip_sys::*;
use std::ffi::{CStr, c_char, c_int, c_void};

/// `HSA_AMD_LINK_INFO_TYPE_PCIE`: how two cards are connected.
const LINK_PCIE: u32 = 2;
/// From one card to another by way of the host's bridge.
const HOPS: u32 = 2;

/// Figures that `hipChooseDevice` compares: 0 asks for nothing, anything else is a least amount.
type Requirements = [u64; 14];

fn requirements(p: &DeviceProperties6) -> Requirements {
    let int = |n: c_int| u64::try_from(n).unwrap_or(0);
    [
        int(p.major),
        int(p.minor),
        p.totalGlobalMem as u64,
        p.sharedMemPerBlock as u64,
        int(p.maxThreadsPerBlock),
        p.totalConstMem as u64,
        int(p.multiProcessorCount),
        int(p.maxThreadsPerMultiProcessor),
        int(p.memoryClockRate),
        int(p.memoryBusWidth),
        int(p.l2CacheSize),
        int(p.regsPerBlock),
        p.maxSharedMemoryPerMultiProcessor as u64,
        int(p.warpSize),
    ]
}

impl Call<'_> {
    pub(crate) unsafe fn hipChooseDeviceR0600(
        &mut self,
        device: *mut c_int,
        wanted: *const hipDeviceProp_tR0600,
    ) -> Hip {
        required(device)?;
        required(wanted)?;
        // SAFETY: promised by the caller of the HIP function.
        let wanted = DeviceProperties6::from(unsafe { &*wanted });
        // SAFETY: as above.
        unsafe { self.choose(device, &requirements(&wanted)) }
    }

    pub(crate) unsafe fn hipChooseDevice(&mut self, device: *mut c_int, wanted: *const hipDeviceProp_tR0000) -> Hip {
        required(device)?;
        required(wanted)?;
        // SAFETY: promised by the caller of the HIP function.
        let wanted = DeviceProperties5::from(unsafe { &*wanted });
        let wanted = DeviceProperties6::from(&wanted);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.choose(device, &requirements(&wanted)) }
    }

    /// The first device that meets all requirements; the first of all if none does.
    ///
    /// # Safety
    /// `device` is valid for writing.
    unsafe fn choose(&mut self, device: *mut c_int, wanted: &Requirements) -> Hip {
        let has = |card: &crate::machine::card::Card| {
            let found = requirements(&properties_of(&card.config));
            found.iter().zip(wanted).all(|(found, wanted)| found >= wanted)
        };
        let anything = wanted.iter().any(|wish| *wish != 0);
        let chosen = self.cards.iter().position(has).filter(|_| anything).unwrap_or(0);
        // SAFETY: promised by the caller.
        unsafe { answer(device, chosen as c_int) }
    }

    pub(crate) unsafe fn hipDeviceGetByPCIBusId(&mut self, device: *mut c_int, address: *const c_char) -> Hip {
        required(device)?;
        required(address)?;
        // SAFETY: promised by the caller of the HIP function: a text that ends with NUL.
        let wanted = unsafe { CStr::from_ptr(address) }
            .to_str()
            .map_err(|_| hipErrorInvalidValue)?;
        let function = |address: &str| {
            let digit = address.split_once('.')?.1;
            u32::from_str_radix(digit.get(..1)?, 16).ok()
        };
        let place = |address: &str| Some((pci(address)?, function(address)?));
        let wanted = place(wanted).ok_or(hipErrorInvalidValue)?;
        let mut places = self.cards.iter().map(|card| place(&card.config.pci));
        let found = places.position(|place| place == Some(wanted));
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(device, found.ok_or(hipErrorInvalidValue)? as c_int) }
    }

    pub(crate) unsafe fn hipDeviceComputeCapability(
        &mut self,
        major: *mut c_int,
        minor: *mut c_int,
        device: hipDevice_t,
    ) -> Hip {
        required(major)?;
        required(minor)?;
        let card = self.card_index(device)?;
        let found = properties_of(&self.cards[card].config);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(major, found.major) }?;
        // SAFETY: as above.
        unsafe { answer(minor, found.minor) }
    }

    /// A kernel reaches its own card's memory only, so there is nothing that one card could do to another.
    pub(crate) unsafe fn hipDeviceGetP2PAttribute(
        &mut self,
        value: *mut c_int,
        attribute: hipDeviceP2PAttr,
        from: c_int,
        to: c_int,
    ) -> Hip {
        required(value)?;
        let (card, peer) = (self.card_index(from)?, self.card_index(to)?);
        fail_if(card == peer, hipErrorInvalidDevice)?;
        fail_if(attribute > hipDevP2PAttrHipArrayAccessSupported, hipErrorInvalidValue)?;
        let access = attribute == hipDevP2PAttrAccessSupported && self.may_access(card, peer);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(value, c_int::from(access)) }
    }

    pub(crate) unsafe fn hipExtGetLinkTypeAndHopCount(
        &mut self,
        from: c_int,
        to: c_int,
        link: *mut u32,
        hops: *mut u32,
    ) -> Hip {
        required(link)?;
        required(hops)?;
        fail_if(from == to || from < 0 || to < 0, hipErrorInvalidValue)?;
        self.card_index(from)?;
        self.card_index(to)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(link, LINK_PCIE) }?;
        // SAFETY: as above.
        unsafe { answer(hops, HOPS) }
    }

    /// AMD's cards have one split, so every known wish is granted and forgotten.
    pub(crate) fn hipDeviceSetCacheConfig(&mut self, config: hipFuncCache_t) -> Hip {
        fail_if(config > hipFuncCachePreferEqual, hipErrorInvalidValue)
    }

    pub(crate) fn hipFuncSetCacheConfig(&mut self, function: *const c_void, config: hipFuncCache_t) -> Hip {
        fail_if(function.is_null(), hipErrorInvalidDeviceFunction)?;
        self.hipDeviceSetCacheConfig(config)
    }

    pub(crate) fn hipFuncSetSharedMemConfig(&mut self, function: *const c_void, config: hipSharedMemConfig) -> Hip {
        fail_if(function.is_null(), hipErrorInvalidDeviceFunction)?;
        self.hipDeviceSetSharedMemConfig(config)
    }

    pub(crate) fn hipDeviceSetSharedMemConfig(&mut self, config: hipSharedMemConfig) -> Hip {
        fail_if(config > hipSharedMemBankSizeEightByte, hipErrorInvalidValue)
    }

    cases! {
        fn hipDeviceGetUuid(to: *mut hipUUID, device: hipDevice_t) => |c| {
            let card = c.card_index(device)?;
            answer(to, uuid(&c.cards[card].config))
        };
        fn hipDeviceGetCacheConfig(config: *mut hipFuncCache_t) => |_c| answer(config, hipFuncCachePreferNone);
        fn hipDeviceGetSharedMemConfig(config: *mut hipSharedMemConfig) => |_c| answer(config, hipSharedMemBankSizeFourByte);
        fn hipChooseDeviceR0000(device: *mut c_int, prop: *const hipDeviceProp_tR0000)
            => |c| c.hipChooseDevice(device, prop);
    }
}
