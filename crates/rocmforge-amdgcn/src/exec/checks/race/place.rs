//! Places of accesses: offsets in global memory or LDS, where memcheck lets the access happen.

use crate::exec::state::ctx::Ctx;
use crate::exec::state::request::Addresses;
use crate::gathered::Gathered;

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
pub(super) fn places<'a>(c: &'a Ctx<'_>, lds: bool, at: &Addresses, bytes: usize) -> Option<Gathered<'a>> {
    if lds {
        Gathered::new(&c.lds, at, bytes)
    } else {
        c.memory.gather(at, bytes, false)
    }
}
