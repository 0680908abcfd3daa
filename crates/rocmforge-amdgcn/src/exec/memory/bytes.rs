//! Bytes of all lanes of a wave at once, where all of them may be accessed and lie in one memory.

use crate::chunk::BLOCK;
use crate::exec::memory::space::{Global, Lds, Scratch};
use crate::exec::state::ctx::Ctx;
use crate::exec::state::request::Addresses;
use crate::gathered::Gathered;
use crate::memory::all_bytes;

/// A memory, as far as it serves all lanes at once. Where it does not, [`crate::exec::memory::lane`] serves them one by one.
pub(crate) trait Memory {
    /// Bytes to read; `None` where some may not be read.
    fn range<'a>(c: &'a Ctx<'_>, address: u64, len: usize) -> Option<&'a [u8]>;

    /// Bytes to write, which count as written; `None` where some may not be.
    fn range_mut<'a>(c: &'a mut Ctx<'_>, address: u64, len: usize) -> Option<&'a mut [u8]>;

    /// The `len` bytes that each lane reads; `None` where some lane may not read.
    fn gather<'a>(c: &'a Ctx<'_>, at: &Addresses, len: usize) -> Option<Gathered<'a>>;

    /// In a share of memory: lets it read what lanes are about to, before that is tried once more. False where that would be in vain.
    fn share(_: &mut Ctx<'_>, _: &Addresses, _exec: u32, _len: usize) -> bool {
        false
    }

    /// The same for bytes that follow each other.
    fn share_range(_: &mut Ctx<'_>, _address: u64, _len: usize) -> bool {
        false
    }

    /// What lies behind bytes that are accessed is worth to be brought into the host's caches.
    const PREFETCH: bool = false;
}

impl Memory for Global {
    const PREFETCH: bool = true;

    #[inline(always)]
    fn range<'a>(c: &'a Ctx<'_>, address: u64, len: usize) -> Option<&'a [u8]> {
        let off = c.memory.offset(address, len)?;
        c.memory.bytes(off, len, c.check_uninit)
    }

    #[inline(always)]
    fn range_mut<'a>(c: &'a mut Ctx<'_>, address: u64, len: usize) -> Option<&'a mut [u8]> {
        let off = c.memory.offset(address, len)?;
        c.memory.bytes_mut(off, len)
    }

    #[inline(always)]
    fn gather<'a>(c: &'a Ctx<'_>, at: &Addresses, len: usize) -> Option<Gathered<'a>> {
        c.memory.gather(at, len, c.check_uninit)
    }

    #[cold]
    #[inline(never)]
    fn share_range(c: &mut Ctx<'_>, address: u64, len: usize) -> bool {
        c.memory.share.is_some()
            && (c.memory.offset(address, len)).is_some_and(|off| c.memory.share_for(off, len, false))
    }

    #[cold]
    #[inline(never)]
    fn share(c: &mut Ctx<'_>, at: &Addresses, exec: u32, len: usize) -> bool {
        // Lanes most often access the same few blocks.
        let mut last = 0..0;
        let mut lanes = (0..32).filter(|lane| exec >> lane & 1 != 0);
        c.memory.share.is_some()
            && lanes.all(|lane| {
                let Some(off) = c.memory.offset(at[lane], len) else {
                    return false;
                };
                if last.contains(&off) && last.contains(&(off + len - 1)) {
                    return true;
                }
                let block = off & !(BLOCK - 1);
                last = block..block + BLOCK;
                c.memory.share_for(off, len, false)
            })
    }
}

impl Memory for Lds {
    #[inline(always)]
    fn range<'a>(c: &'a Ctx<'_>, address: u64, len: usize) -> Option<&'a [u8]> {
        let at = address as usize;
        let state = c.lds_state.get(at..at + len)?;
        if !c.check_uninit || all_bytes(state, 3) {
            c.lds.get(at..at + len)
        } else {
            None
        }
    }

    #[inline(always)]
    fn range_mut<'a>(c: &'a mut Ctx<'_>, address: u64, len: usize) -> Option<&'a mut [u8]> {
        let at = address as usize;
        c.lds_state.get_mut(at..at + len)?.fill(3);
        c.lds_written = true;
        c.lds.get_mut(at..at + len)
    }

    #[inline(always)]
    fn gather<'a>(c: &'a Ctx<'_>, at: &Addresses, len: usize) -> Option<Gathered<'a>> {
        let gathered = Gathered::new(&c.lds, at, len)?;
        if c.check_uninit {
            let of_lanes = Gathered::new(&c.lds_state, at, len)?;
            // Four words, of which shorter accesses use the first.
            let mut states = [u32::MAX; 4];
            for lane in 0..32 {
                if len < 4 {
                    for byte in 0..len {
                        states[0] &= u32::from(of_lanes.byte(lane, byte)) | !0xFF;
                    }
                }
                for (word, all) in states.iter_mut().enumerate().take(len / 4) {
                    *all &= u32::from_ne_bytes(*of_lanes.word(lane, word));
                }
            }
            if states.iter().any(|states| states & 0x0303_0303 != 0x0303_0303) {
                return None;
            }
        }
        Some(gathered)
    }
}

/// Each lane has its own, so no bytes serve all.
impl Memory for Scratch {
    #[inline(always)]
    fn range<'a>(_: &'a Ctx<'_>, _: u64, _: usize) -> Option<&'a [u8]> {
        None
    }

    #[inline(always)]
    fn range_mut<'a>(_: &'a mut Ctx<'_>, _: u64, _: usize) -> Option<&'a mut [u8]> {
        None
    }

    #[inline(always)]
    fn gather<'a>(_: &'a Ctx<'_>, _: &Addresses, _len: usize) -> Option<Gathered<'a>> {
        None
    }
}
