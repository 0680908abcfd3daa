//! Requests to memory: which memory, which lanes, and what they load or store.

use crate::exec::state::wave::Wave;
use crate::fault::Access;
use crate::kernarg::{PRIVATE_APERTURE, SHARED_APERTURE};

/// The memory a request goes to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    Global,
    Lds,
    Scratch,
    /// A generic address: each lane goes where its aperture says.
    Flat,
}

/// Addresses of all lanes; those of inactive lanes mean nothing.
pub(crate) type Addresses = [u64; 32];

/// What a store writes, or where a load puts what it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data {
    None,
    /// Of a load: to registers from this one on.
    Into(u8),
    /// Whole registers from this one on.
    Words(u8),
    /// What some registers from the first on are converted to; `whole`: their bytes as they are.
    Texels {
        first: u8,
        count: u8,
        whole: bool,
    },
    /// The low bytes of a register, after a shift to the right.
    Bytes(u8, u32),
}

impl Data {
    /// Byte `n` of what a lane stores.
    pub(crate) fn byte(self, w: &Wave, lane: usize, n: usize) -> Option<u8> {
        let (reg, shift, n) = match self {
            Data::None | Data::Into(_) | Data::Texels { whole: false, .. } => return None,
            Data::Words(reg) | Data::Texels { first: reg, .. } => (reg as usize + n / 4, 0, n % 4),
            Data::Bytes(reg, shift) => (reg as usize, shift, n),
        };
        Some((w.v[reg & 255].0[lane & 31] >> shift >> (8 * n)) as u8)
    }
}

/// One request of one wave.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) place: Place,
    pub(crate) access: Access,
    /// Bytes per lane.
    pub(crate) size: u32,
    /// Lanes that take part; not 0.
    pub(crate) exec: u32,
    pub(crate) at: &'a Addresses,
    pub(crate) shape: Shape,
    pub(crate) data: Data,
}

impl Request<'_> {
    /// The same for other lanes.
    fn of<'b>(&self, place: Place, exec: u32, at: &'b Addresses) -> Request<'b> {
        Request {
            place,
            exec,
            at,
            shape: shape(at, exec, u64::from(self.size)),
            ..*self
        }
    }

    /// Gives the request to `f`, or its parts where each lane goes where its aperture says.
    #[inline(always)]
    pub(crate) fn by_place(&self, mut f: impl FnMut(&Request<'_>)) {
        if self.place != Place::Flat {
            return f(self);
        }
        let (mut lds, mut scratch) = (0, 0);
        let mut low = *self.at;
        for l in 0..32 {
            match (low[l] >> 32) as u32 {
                SHARED_APERTURE => lds |= 1 << l,
                PRIVATE_APERTURE => scratch |= 1 << l,
                _ => {}
            }
            low[l] &= 0xFFFF_FFFF;
        }
        let (lds, scratch) = (lds & self.exec, scratch & self.exec);
        let global = self.exec & !lds & !scratch;
        for (place, exec, at) in [
            (Place::Global, global, self.at),
            (Place::Lds, lds, &low),
            (Place::Scratch, scratch, &low),
        ] {
            if exec != 0 {
                f(&self.of(place, exec, at));
            }
        }
    }
}

/// A load of bytes that nobody has written, or that another wave writes without order, by one lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwritten {
    pub(crate) place: Place,
    pub(crate) access: Access,
    pub(crate) lane: usize,
    /// What its number in the wave is counted from: see [`Wave::first_lane`].
    pub(crate) first_lane: u32,
    pub(crate) address: u64,
    /// Which bytes those are, a bit for each.
    pub(crate) bytes: u64,
    /// The register that gets the first byte.
    pub(crate) register: u8,
    /// They race with another wave's write instead: its place in [`Races`](crate::exec::state::races::Races).
    pub(crate) race: Option<u32>,
}

/// The addresses of active lanes, and for every other lane that of an active one; `exec` is not 0.
#[inline(always)]
pub(crate) fn filled(at: &Addresses, exec: u32) -> Addresses {
    let first = at[exec.trailing_zeros() as usize & 31];
    let mut filled = [0; 32];
    for l in 0..32 {
        let on = u64::from(exec >> l & 1).wrapping_neg();
        filled[l] = first ^ (first ^ at[l]) & on;
    }
    filled
}

/// How the addresses of the active lanes lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// One after the other without gap, for all lanes from the first active to the last.
    Contiguous,
    /// All the same.
    Uniform,
    Scattered,
}

/// Addresses of lanes whose accesses, of `size` bytes each, lie one behind the other.
#[inline(always)]
pub(crate) fn addresses_of_row(first: u64, size: usize) -> Addresses {
    let mut at = [0; 32];
    for l in 0..32 {
        at[l] = first.wrapping_add((l * size) as u64);
    }
    at
}

/// Finds the shape; `exec` is not 0.
#[inline(always)]
pub(crate) fn shape(addresses: &Addresses, exec: u32, size: u64) -> Shape {
    let first = exec.trailing_zeros();
    let base = addresses[first as usize & 31];
    // Contiguous addresses of lane l are origin + l * size.
    let origin = base.wrapping_sub(u64::from(first) * size);
    let (mut gap, mut differ) = (0, 0);
    if exec == u32::MAX {
        for l in 0..32 {
            gap |= addresses[l] ^ origin.wrapping_add(l as u64 * size);
            differ |= addresses[l] ^ base;
        }
    } else {
        for l in 0..32 {
            let on = u64::from(exec >> l & 1).wrapping_neg();
            gap |= (addresses[l] ^ origin.wrapping_add(l as u64 * size)) & on;
            differ |= (addresses[l] ^ base) & on;
        }
    }
    let run = exec >> first;
    if gap == 0 && run & run.wrapping_add(1) == 0 {
        Shape::Contiguous
    } else if differ == 0 {
        Shape::Uniform
    } else {
        Shape::Scattered
    }
}
