//! Places of accesses: offsets in global memory or LDS, where memcheck lets the access happen.

use crate::exec::state::ctx::Ctx;
use crate::exec::state::request::Addresses;

/// Where an access lies, if memcheck lets it happen.
#[inline(always)]
pub(super) fn place(c: &Ctx<'_>, lds: bool, address: u64, bytes: usize) -> Option<usize> {
    if lds {
        (address as usize + bytes <= c.lds.len()).then_some(address as usize)
    } else {
        let offset = c.memory.offset(address, bytes)?;
        c.memory.readable(offset, bytes, false).then_some(offset)
    }
}

/// The same for each lane; inactive lanes have the address of an active one.
#[inline(always)]
pub(super) fn offsets(c: &Ctx<'_>, lds: bool, at: &Addresses, bytes: usize) -> Option<[usize; 32]> {
    if !lds {
        return Some(c.memory.gather(at, bytes, false)?.1);
    }
    let last = c.lds.len().checked_sub(bytes)?;
    let mut offsets = [0; 32];
    let mut outside = false;
    for l in 0..32 {
        offsets[l] = at[l] as usize;
        outside |= offsets[l] > last;
    }
    (!outside).then_some(offsets)
}
