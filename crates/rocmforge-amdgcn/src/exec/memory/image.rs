//! Images: loads, stores, samples and gathers through a resource descriptor of eight scalar registers and a sampler of four.
//!
//! An image has one level of detail, and its rows lie one behind the other: those of one or two dimensions at the distance that the
//! descriptor has, those of slices and layers at the next multiple of 256 bytes. Texels are converted by the descriptor's format.
//!
//! Loads and stores have whole coordinates; what is outside is read as zero and not written. Samples have coordinates of 32-bit floats,
//! in texels or in widths of the image. A position is rounded to 1/256 of a texel: AMD's units have that many steps between texels
//! (`subTexelPrecisionBits` is 8 in its Vulkan drivers), and ROCm's device library avoids the rounding where HIP asks for the texel that
//! a position is in. A point is the texel that the rounded position is in. A linear filter is the sum of the 2, 4 or 8 texels around it,
//! each with the product of the weights along its dimensions, which are multiples of 1/256; it is calculated exactly and rounded once.
//! Texels with a weight of zero are not read. A layer is rounded to the nearest, and there is no layer outside.
//!
//! Not modelled, and a fault where a descriptor asks for it: see [`Image::read`] and [`Sampler::read`].

use crate::exec::code::isa::{Handler, plain};
use crate::exec::code::operands::{NOTHING, Refused, source};
use crate::exec::memory::form;
use crate::exec::memory::texel::{Format, Select};
use crate::exec::memory::typed::{self, Values};
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::fields::{Kind, Src};
use crate::exec::state::request::Addresses;
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind};
use rocmforge_isa::{Arch, Dimensions, Inst, Memory, Op, Operand, Ty};

/// Marks of `Src::mods` of a lowered instruction's `c`.
const GFX12: u8 = 1;
/// The coordinates count texels.
const UNNORMALISED: u8 = 2;
/// A level of detail follows the coordinates, which has to be 0.
const LEVEL: u8 = 4;

/// A lowered instruction's fields: `a.lo` has the registers of the coordinates, a byte each, `a.up` the parts that have registers,
/// `b.reg` the data, `c.reg` and `c.lo` descriptor and sampler, and `imm` the dimensions, by the number that descriptors have.
fn coordinate(w: &Wave, i: &Ins, n: usize, lane: usize) -> u32 {
    w.v[i.a.lo.to_le_bytes()[n] as usize].0[lane]
}

/// Numbers of dimensions in instructions and descriptors.
const DIMENSIONS: [(u32, Dimensions); 5] = [
    (8, Dimensions::One),
    (9, Dimensions::Two),
    (10, Dimensions::Three),
    (12, Dimensions::OneLayered),
    (13, Dimensions::TwoLayered),
];

fn field(word: u32, low: u32, width: u32) -> u32 {
    word >> low & ((1 << width) - 1)
}

/// What an access needs of a resource descriptor.
struct Image {
    base: u64,
    dimensions: Dimensions,
    /// Texels along each dimension; the last one of layers.
    size: [u32; 3],
    /// Bytes from texel to texel, from row to row, and from slice to slice.
    steps: [u64; 3],
    format: Format,
    select: [Select; 4],
}

impl Image {
    /// Reads the registers; an error says what the descriptor asks for that is not modelled.
    fn read(w: &Wave, i: &Ins) -> Result<Self, Refused> {
        /// Rows of images with slices begin at multiples of this.
        const ROW: u64 = 256;
        let word: [u32; 8] = std::array::from_fn(|n| w.s[(i.c.reg as usize + n) & 127]);
        let gfx12 = i.c.mods & GFX12 != 0;
        let number = field(word[3], 28, 4);
        let known = DIMENSIONS.iter().find(|(known, _)| *known == number);
        if number < 8 {
            return Err("a descriptor of something other than an image (TYPE)");
        }
        let Some(&(_, dimensions)) = known else {
            return Err("cubes or several samples of a pixel (TYPE)");
        };
        if number != i.imm as u32 {
            return Err("an image of other dimensions than the instruction has (TYPE)");
        }
        if field(word[3], 20, 5) != 0 {
            return Err("texels in tiles (SW_MODE)");
        }
        let levels = if gfx12 {
            field(word[1], 12, 5) | field(word[1], 25, 5) | field(word[3], 15, 5)
        } else {
            field(word[1], 16, 4) | field(word[3], 12, 8)
        };
        if levels != 0 {
            return Err("levels of detail (MAX_MIP, BASE_LEVEL, LAST_LEVEL)");
        }
        let reserved = if gfx12 {
            field(word[1], 8, 4) | field(word[2], 30, 2) | field(word[3], 12, 3)
        } else {
            field(word[1], 8, 8) | field(word[1], 28, 2) | field(word[2], 12, 2) | field(word[2], 28, 4)
        };
        if reserved | field(word[4], 16, 16) | word[5] | word[6] | word[7] != 0 {
            return Err("a part of the layers, compression or another option of an image");
        }
        let format = Format::of(field(word[1], if gfx12 { 17 } else { 20 }, 8))?;
        let (width, height) = if gfx12 {
            (field(word[2], 0, 14), field(word[2], 14, 16))
        } else {
            (field(word[2], 0, 12), field(word[2], 14, 14))
        };
        let mut size = [(field(word[1], 30, 2) | width << 2) + 1, height + 1, 1];
        let texel = format.bytes() as u64;
        let depth = field(word[4], 0, 16) + 1;
        let mut row = u64::from(size[0]) * texel;
        if matches!(dimensions, Dimensions::One | Dimensions::Two) {
            if depth < size[0] {
                return Err("rows that are longer than the distance between them (PITCH)");
            }
            row = u64::from(depth) * texel;
        } else {
            size[2] = depth;
            row = row.next_multiple_of(ROW);
        }
        if dimensions.space() == 1 {
            size[1] = 1;
        }
        Ok(Self {
            base: u64::from(word[0]) << 8 | u64::from(word[1] & 0xFF) << 40,
            dimensions,
            size,
            steps: [texel, row, row * u64::from(size[1])],
            format,
            select: Select::all(word[3] & 0xFFF)?,
        })
    }

    /// The address of a texel that is inside.
    fn address(&self, [x, y, z]: [u32; 3]) -> u64 {
        let [texel, row, slice] = self.steps;
        self.base + u64::from(x) * texel + u64::from(y) * row + u64::from(z) * slice
    }

    /// The values that an instruction has registers for.
    fn values(&self, i: &Ins) -> Values {
        let chosen = (0..4).filter(|n| i.a.up >> n & 1 != 0);
        Values::new(chosen.map(|n| self.select[n]), self.format)
    }

    /// Lanes whose texel, by whole coordinates, is inside, and their addresses.
    fn texels(&self, w: &Wave, i: &Ins) -> (u32, Addresses) {
        let (mut inside, mut at) = (0, [0; 32]);
        let space = self.dimensions.space();
        for (l, at) in at.iter_mut().enumerate() {
            let mut place = [0; 3];
            for n in 0..space {
                place[n] = coordinate(w, i, n, l);
            }
            if self.dimensions.layered() {
                place[2] = coordinate(w, i, space, l);
            }
            if place.iter().zip(self.size).all(|(place, size)| *place < size) {
                inside |= 1 << l;
                *at = self.address(place);
            }
        }
        (inside & w.exec(), at)
    }
}

/// What is read outside of an image.
#[derive(Clone, Copy)]
enum Outside {
    Wrap,
    Mirror,
    Clamp,
    Border,
}

/// What a sample needs of a sampler.
struct Sampler {
    outside: [Outside; 3],
    linear: bool,
    unnormalised: bool,
    /// The four values outside, where there is a border.
    border: [f32; 4],
}

impl Sampler {
    /// Reads the registers; an error says what the sampler asks for that is not modelled.
    fn read(w: &Wave, i: &Ins, space: usize) -> Result<Self, Refused> {
        let word: [u32; 4] = std::array::from_fn(|n| w.s[(i.c.lo as usize + n) & 127]);
        let gfx12 = i.c.mods & GFX12 != 0;
        let unnormalised = field(word[0], 15, 1) != 0 || i.c.mods & UNNORMALISED != 0;
        let mut outside = [Outside::Clamp; 3];
        for (n, outside) in outside.iter_mut().enumerate().take(space) {
            *outside = match field(word[0], 3 * n as u32, 3) {
                0 | 1 if unnormalised => return Err("coordinates in texels that wrap around (CLAMP)"),
                0 => Outside::Wrap,
                1 => Outside::Mirror,
                2 => Outside::Clamp,
                6 => Outside::Border,
                _ => return Err("a mirror that is used once, or half a border (CLAMP)"),
            };
        }
        if field(word[0], 9, 6) | word[0] >> 16 != 0 {
            return Err("anisotropy, comparison or another option of a sampler");
        }
        let filter = field(word[2], 20, 2);
        if filter > 1 || filter != field(word[2], 22, 2) || field(word[2], 24, 8) != 0 {
            return Err("this filter (XY_MAG_FILTER, XY_MIN_FILTER, Z_FILTER, MIP_FILTER)");
        }
        if field(word[2], 0, 20) != 0 {
            return Err("a bias of levels of detail (LOD_BIAS)");
        }
        let options = if gfx12 {
            field(word[3], 0, 30)
        } else {
            word[3] & 0x3FFF_FFFF
        };
        let border = match field(word[3], 30, 2) {
            _ if options != 0 => return Err("a colour of the border from memory (BORDER_COLOR_PTR)"),
            0 => [0.0; 4],
            1 => [0.0, 0.0, 0.0, 1.0],
            2 => [1.0; 4],
            _ => return Err("a colour of the border from memory (BORDER_COLOR_TYPE)"),
        };
        Ok(Self {
            outside,
            linear: filter == 1,
            unnormalised,
            border,
        })
    }

    /// The place of texel `n` of a row; `None` for the border.
    fn place(&self, dimension: usize, n: i64, size: u32) -> Option<u32> {
        let size = i64::from(size);
        let place = match self.outside[dimension] {
            Outside::Wrap => n.rem_euclid(size),
            Outside::Mirror => {
                let n = n.rem_euclid(2 * size);
                n.min(2 * size - 1 - n)
            }
            Outside::Clamp => n.clamp(0, size - 1),
            Outside::Border if (0..size).contains(&n) => n,
            Outside::Border => return None,
        };
        Some(place as u32)
    }
}

/// Steps between two texels.
const STEPS: i64 = 256;

/// A position in steps; NaN gives 0.
fn position(coordinate: u32, size: u32, unnormalised: bool) -> i64 {
    /// Far outside of every image, and far from the ends of an integer.
    const FAR: f64 = (1u64 << 48) as f64;
    let coordinate = f64::from(f32::from_bits(coordinate));
    let texels = if unnormalised {
        coordinate
    } else {
        coordinate * f64::from(size)
    };
    (texels * STEPS as f64).round_ties_even().clamp(-FAR, FAR) as i64
}

/// One of the texels that a lane's sample is made of.
#[derive(Clone, Copy, Default)]
struct Corner {
    /// In units of `STEPS` to the power of the dimensions.
    weight: i64,
    /// `None` for the border.
    at: Option<u64>,
}

/// The texels around a position, of which corner `n` is behind it along each dimension whose bit `n` has.
fn corners(w: &Wave, i: &Ins, image: &Image, sampler: &Sampler, linear: bool, lane: usize) -> [Corner; 8] {
    let space = image.dimensions.space();
    let mut first = [0; 3];
    let mut behind = [0; 3];
    for n in 0..space {
        let size = image.size[n];
        let mut at = position(coordinate(w, i, n, lane), size, sampler.unnormalised);
        if linear {
            at -= STEPS / 2;
        }
        (first[n], behind[n]) = (at.div_euclid(STEPS), at.rem_euclid(STEPS));
    }
    let layer = if image.dimensions.layered() {
        let layer = f32::from_bits(coordinate(w, i, space, lane));
        (layer.round_ties_even() as i64).clamp(0, i64::from(image.size[2]) - 1) as u32
    } else {
        0
    };
    let mut corners = [Corner::default(); 8];
    for (number, corner) in corners.iter_mut().enumerate().take(1 << space) {
        let mut place = [0, 0, layer];
        let (mut weight, mut inside) = (1, true);
        for n in 0..space {
            let step = (number >> n & 1) as i64;
            weight *= if step == 1 { behind[n] } else { STEPS - behind[n] };
            match sampler.place(n, first[n] + step, image.size[n]) {
                Some(found) => place[n] = found,
                None => inside = false,
            }
        }
        *corner = Corner {
            weight,
            at: inside.then(|| image.address(place)),
        };
    }
    corners
}

/// Notes what a descriptor asks for that is not modelled.
#[cold]
fn refuse(w: &Wave, c: &mut Ctx<'_>, i: &Ins, how: Access, why: Refused) {
    let [low, high] = [0, 1].map(|n| u64::from(w.s[(i.c.reg as usize + n) & 127]));
    let base = low << 8 | (high & 0xFF) << 40;
    let lane = w.exec().trailing_zeros();
    if let Some(fault) = c.fault(w, i, FaultKind::BufferDescriptor, how, lane, base, 0) {
        fault.note = why.into();
    }
}

/// The image of an access with an active lane. `None` after noting a fault.
fn image(w: &Wave, c: &mut Ctx<'_>, i: &Ins, how: Access) -> Option<Image> {
    if w.exec() == 0 {
        return None;
    }
    let found = Image::read(w, i).and_then(|image| {
        let level = image.dimensions.space() + usize::from(image.dimensions.layered());
        let other = |l: usize| w.exec() >> l & 1 != 0 && coordinate(w, i, level, l) != 0;
        if i.c.mods & LEVEL != 0 && (0..32).any(other) {
            return Err("a level of detail other than 0");
        }
        Ok(image)
    });
    found.map_err(|why| refuse(w, c, i, how, why)).ok()
}

/// Loads a texel per lane.
struct Load;

impl Handler for Load {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(image) = image(w, c, i, Access::Load) else {
            return;
        };
        let values = image.values(i);
        let (inside, at) = image.texels(w, i);
        let texels = typed::load(w, c, i, inside, &at, (image.format, &values));
        for (register, select) in values.iter().enumerate() {
            let value = |l: usize| match inside >> l & 1 {
                0 => 0,
                _ => select.load(image.format, &texels[l]),
            };
            w.put(i.dst.wrapping_add(register as u8), &std::array::from_fn(value));
        }
    }
}

/// Stores a texel per lane.
struct Store;

impl Handler for Store {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(image) = image(w, c, i, Access::Store) else {
            return;
        };
        let (format, gfx12) = (image.format, i.c.mods & GFX12 != 0);
        let texels = match typed::from_registers(w, i, format, i.a.up, gfx12) {
            Ok(texels) => texels,
            Err(why) => return refuse(w, c, i, Access::Store, why),
        };
        let (inside, at) = image.texels(w, i);
        typed::store(w, c, i, inside, &at, (format, &texels, i.a.up));
    }
}

/// Samples an image per lane.
struct Sample;

impl Handler for Sample {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(image) = sampled(w, c, i) else { return };
        let (image, sampler) = image;
        let (format, values) = (image.format, image.values(i));
        let all: [[Corner; 8]; 32] = std::array::from_fn(|l| corners(w, i, &image, &sampler, sampler.linear, l));
        let exec = w.exec();
        let border = |select: Select| match select {
            Select::Part(n) if format.is_integer() => sampler.border[n] as u32,
            Select::Part(n) => sampler.border[n].to_bits(),
            Select::One => format.one(),
            Select::Zero => 0,
        };
        let mut sums = [[0.0f64; 32]; 4];
        let mut found = [[0u32; 32]; 4];
        // A point is in one texel.
        let count = if sampler.linear {
            1 << image.dimensions.space()
        } else {
            1
        };
        for number in 0..count {
            let lanes = |wanted: &dyn Fn(Corner) -> bool| {
                (0..32)
                    .filter(|&l| exec >> l & 1 != 0 && wanted(all[l][number]))
                    .fold(0, |lanes, l| lanes | 1u32 << l)
            };
            let weighs = |corner: Corner| !sampler.linear || corner.weight != 0;
            let read = lanes(&|corner| weighs(corner) && corner.at.is_some());
            let outside = lanes(&|corner| weighs(corner) && corner.at.is_none());
            let at = std::array::from_fn(|l| all[l][number].at.unwrap_or_default());
            let texels = typed::load(w, c, i, read, &at, (format, &values));
            for (register, select) in values.iter().enumerate() {
                for l in (0..32).filter(|l| (read | outside) >> l & 1 != 0) {
                    let value = match read >> l & 1 {
                        1 => select.load(format, &texels[l]),
                        _ => border(select),
                    };
                    found[register][l] = value;
                    sums[register][l] += f64::from(f32::from_bits(value)) * all[l][number].weight as f64;
                }
            }
        }
        let whole = (STEPS as f64).powi(image.dimensions.space() as i32);
        for (register, (sums, found)) in sums.iter().zip(&found).take(values.iter().count()).enumerate() {
            let value = |l: usize| {
                if sampler.linear {
                    ((sums[l] / whole) as f32).to_bits()
                } else {
                    found[l]
                }
            };
            w.put(i.dst.wrapping_add(register as u8), &std::array::from_fn(value));
        }
    }
}

/// Gathers one part of the four texels around a position, in the order of the graphics standards.
struct Gather;

impl Handler for Gather {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some((image, sampler)) = sampled(w, c, i) else {
            return;
        };
        let format = image.format;
        let select = image.select[i.a.up.trailing_zeros() as usize & 3];
        let all: [[Corner; 8]; 32] = std::array::from_fn(|l| corners(w, i, &image, &sampler, true, l));
        let exec = w.exec();
        let mut found = [[0; 32]; 4];
        for (register, (found, number)) in found.iter_mut().zip([2, 3, 1, 0]).enumerate() {
            // What this texel gives is in one register alone.
            let values = Values::new(
                (0..=register).map(|n| if n == register { select } else { Select::Zero }),
                format,
            );
            let read = (0..32)
                .filter(|&l| all[l][number].at.is_some())
                .fold(0, |lanes, l| lanes | 1u32 << l)
                & exec;
            let at = std::array::from_fn(|l| all[l][number].at.unwrap_or_default());
            let texels = typed::load(w, c, i, read, &at, (format, &values));
            for (l, found) in found.iter_mut().enumerate() {
                *found = match (read >> l & 1, select.of(format)) {
                    (0, Select::Part(n)) if format.is_integer() => sampler.border[n] as u32,
                    (0, Select::Part(n)) => sampler.border[n].to_bits(),
                    _ => select.load(format, &texels[l]),
                };
            }
        }
        for (register, found) in found.iter().enumerate() {
            w.put(i.dst.wrapping_add(register as u8), found);
        }
    }
}

/// Image and sampler. `None` after noting a fault.
fn sampled(w: &Wave, c: &mut Ctx<'_>, i: &Ins) -> Option<(Image, Sampler)> {
    let image = image(w, c, i, Access::Load)?;
    let found = Sampler::read(w, i, image.dimensions.space()).and_then(|sampler| {
        if sampler.linear && image.format.is_integer() {
            return Err("a linear filter of integers");
        }
        Ok(sampler)
    });
    let sampler = found.map_err(|why| refuse(w, c, i, Access::Load, why)).ok()?;
    Some((image, sampler))
}

/// Lowers an operation on an image.
pub(crate) fn lower(inst: &Inst) -> Result<Ins, Refused> {
    let Some(image) = inst.image.as_deref() else {
        return Err("an image without an address");
    };
    let Operand::Sgpr(resource) = inst.src[2] else {
        return Err("a resource descriptor outside the scalar registers");
    };
    let sampler = match image.sampler {
        Operand::None => 0,
        Operand::Sgpr(first) => first,
        _ => return Err("a sampler outside the scalar registers"),
    };
    let space = image.dimensions.space();
    let level = inst.op == Op::ImageLoadMip || inst.op == Op::ImageStoreMip;
    let used = space + usize::from(image.dimensions.layered()) + usize::from(level);
    // Gradients come first. They and the level of a sample choose among levels, of which there is one.
    let gradients = match inst.op {
        Op::ImageSampleD => 2 * space,
        Op::ImageSampleDG16 => 2 * space.div_ceil(2),
        _ => 0,
    };
    let mut coordinates = [0; 4];
    let registers = image
        .address
        .get(gradients..gradients + used)
        .ok_or("an image without an address")?;
    for (to, register) in coordinates.iter_mut().zip(registers) {
        *to = *register;
    }
    let gather = inst.op == Op::ImageGather4Lz;
    if gather && (image.parts.count_ones() != 1 || space != 2) {
        return Err("a gather of several parts, or of other than two dimensions");
    }
    let number = DIMENSIONS.iter().find(|(_, known)| *known == image.dimensions);
    let marks = [
        (inst.arch == Arch::Gfx1201, GFX12),
        (image.unnormalised, UNNORMALISED),
        (level, LEVEL),
    ];
    let mut ins = Ins {
        a: Src {
            lo: u32::from_le_bytes(coordinates),
            up: image.parts.into(),
            ..Src::ZERO
        },
        b: source(inst.src[1], Ty::B32)?,
        c: Src {
            lo: sampler.into(),
            mods: marks
                .into_iter()
                .filter(|(set, _)| *set)
                .fold(0, |all, (_, mark)| all | mark),
            ..Src::reg(Kind::S, resource)
        },
        imm: number.map_or(0, |(number, _)| *number as i32),
        sdst: 0,
        run: match inst.op {
            _ if gather => plain::<Gather>(),
            Op::ImageLoad | Op::ImageLoadMip => plain::<Load>(),
            Op::ImageStore | Op::ImageStoreMip => plain::<Store>(),
            _ => plain::<Sample>(),
        },
        half: match inst.op.facts().memory {
            Memory::Store => form::coherence_of_store(inst.mem),
            _ => form::coherence_of_load(inst.mem),
        },
        ..NOTHING
    };
    if let Operand::Vgpr(register) = inst.dst {
        ins.dst = register;
    }
    Ok(ins)
}
