//! Accesses to texels: what the lanes of a wave load from and store to typed buffers and images, as observers are notified of it.

use crate::exec::code::operands::Refused;
use crate::exec::memory::lane::{self, LaneAccess};
use crate::exec::memory::texel::{Format, LARGEST, Select};
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::request::{Addresses, Data, Place, Request, shape};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, POISON};

/// The texels of all lanes.
pub(crate) type Texels = [[u8; LARGEST]; 32];

/// What the registers behind the first destination get.
pub(crate) struct Values {
    select: [Select; 4],
    count: usize,
}

impl Values {
    pub(crate) fn new(of: impl IntoIterator<Item = Select>, format: Format) -> Self {
        let mut values = Self {
            select: [Select::Zero; 4],
            count: 0,
        };
        for (to, select) in values.select.iter_mut().zip(of) {
            *to = select.of(format);
            values.count += 1;
        }
        values
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Select> {
        self.select.into_iter().take(self.count)
    }
}

/// The request for texels of `size` bytes.
fn request(access: Access, size: usize, lanes: u32, at: &Addresses, data: Data) -> Request<'_> {
    Request {
        place: Place::Global,
        access,
        size: size as u32,
        exec: lanes,
        at,
        shape: shape(at, lanes, size as u64),
        data,
    }
}

/// The texels that some lanes load, poison where they may not. Registers that are made of bytes nobody has written count as such.
pub(crate) fn load(
    w: &Wave,
    c: &mut Ctx<'_>,
    i: &Ins,
    lanes: u32,
    at: &Addresses,
    (format, values): (Format, &Values),
) -> Texels {
    let mut texels = [[0; LARGEST]; 32];
    if lanes == 0 {
        return texels;
    }
    let size = format.bytes();
    if c.observed {
        c.observe(w, i, &request(Access::Load, size, lanes, at, Data::None));
    }
    for l in (0..32).filter(|l| lanes >> l & 1 != 0) {
        let known = c.unwritten.len();
        c.loading = Some(i.dst);
        let bytes = lane::read(c, w, i, LaneAccess::new(Place::Global, Access::Load, l, at[l]), size);
        match bytes {
            Some(bytes) => texels[l][..size].copy_from_slice(bytes),
            None => texels[l] = std::array::from_fn(|n| POISON.to_le_bytes()[n % 4]),
        }
        c.loading = None;
        // Of bytes of memory, which the conversion makes into registers.
        for load in c.unwritten.split_off(known) {
            let part = format.part_bytes();
            for (register, select) in values.iter().enumerate() {
                if let Select::Part(n) = select
                    && load.bytes >> (n * part) & ((1 << part) - 1) != 0
                {
                    let mut load = load;
                    load.register = i.dst.wrapping_add(register as u8);
                    load.address += (n * part) as u64;
                    load.bytes = 0xF;
                    c.unwritten.push(load);
                }
            }
        }
    }
    texels
}

/// Stores the texels of some lanes, made of the registers for the parts in `mask`.
pub(crate) fn store(
    w: &Wave,
    c: &mut Ctx<'_>,
    i: &Ins,
    lanes: u32,
    at: &Addresses,
    (format, texels, mask): (Format, &Texels, u32),
) {
    if lanes == 0 {
        return;
    }
    // Registers of parts that the format does not have get nowhere.
    let all = (1 << format.parts) - 1;
    c.writes(i, Place::Global, at[lanes.trailing_zeros() as usize & 31]);
    let size = format.bytes();
    if c.observed {
        let data = Data::Texels {
            first: i.b.reg,
            count: (mask & all).count_ones() as u8,
            whole: format.part_bytes() == 4 && mask & all == all,
        };
        c.observe(w, i, &request(Access::Store, size, lanes, at, data));
    }
    for l in (0..32).filter(|l| lanes >> l & 1 != 0) {
        let access = LaneAccess::new(Place::Global, Access::Store, l, at[l]);
        lane::write(c, w, i, access, &texels[l][..size]);
    }
}

/// The texels that lanes make of their registers: those for the parts in `mask`, one behind the other from the data register on. Parts
/// that are not in it are zero, of gfx1201 what the first register has.
pub(crate) fn from_registers(w: &Wave, i: &Ins, format: Format, mask: u32, gfx12: bool) -> Result<Texels, Refused> {
    let mut texels = [[0; LARGEST]; 32];
    for (l, texel) in texels.iter_mut().enumerate() {
        for n in 0..format.parts {
            let before = (mask & ((1 << n) - 1)).count_ones();
            let register = match mask >> n & 1 {
                1 => before,
                _ if gfx12 => 0,
                _ => continue,
            };
            let register = i.b.reg as usize + register as usize;
            format.store(texel, n, w.v[register & 255].0[l])?;
        }
    }
    Ok(texels)
}
