//! Buffers: memory through a resource descriptor in four scalar registers, with a check of the range.
//!
//! A lane's address is base + scalar offset + offset + index x stride, where offset is the instruction's and the register's, without
//! wrapping at 32 bits. What is out of range is read as zero and not written; an atomic there does nothing and gives zero. Words of a
//! load or store of several are checked one by one, everything else as a whole. The descriptor's `OOB_SELECT` says what is out of
//! range, and the scalar offset counts in its last mode only:
//!
//! | value | out of range |
//! |---|---|
//! | 0 | index >= records, or offset + bytes > stride |
//! | 1 | index >= records |
//! | 2 | records = 0 |
//! | 3 | offset + bytes > records - scalar offset |
//!
//! Typed loads and stores convert texels by the format of the descriptor, and what a load gives of one out of range is zero.
//!
//! Not modelled, and a fault where a descriptor asks for it: see [`Descriptor::read`].

use crate::exec::code::isa::{Handler, plain};
use crate::exec::code::operands::{NOTHING, Refused, sgpr, source};
use crate::exec::memory::form::{self, Access as Lowered, BySize, by_size};
use crate::exec::memory::load;
use crate::exec::memory::space::{Global, Space};
use crate::exec::memory::texel::{Format, Select};
use crate::exec::memory::typed::{self, Values};
use crate::exec::memory::{atomic, store};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::{Kind, Src};
use crate::exec::state::request::{Addresses, Place};
use crate::exec::state::wave::{EXEC, Wave};
use crate::fault::{Access, FaultKind};
use rocmforge_isa::{Arch, Element, Inst, Memory, Op, Operand, Ty};

/// `Src::mods` of a lowered instruction's `c`: a register has offsets, a register has indices, descriptors are those of gfx1201.
const OFFSETS: u8 = 1;
const INDICES: u8 = 2;
const GFX12: u8 = 4;
/// `Src::up` of `c`: `lo` is the number of a scalar register rather than the scalar offset.
const REGISTER: u32 = 1;

/// What an access needs of a resource descriptor.
struct Descriptor {
    base: u64,
    /// Bytes.
    stride: u64,
    /// In units of the stride, or bytes.
    records: u64,
    /// `OOB_SELECT`
    select: u32,
    /// The instruction's scalar offset.
    scalar: u64,
}

impl Descriptor {
    /// Reads the registers; an error says what the descriptor asks for that is not modelled.
    #[inline(always)]
    fn read(w: &Wave, i: &Ins) -> Result<Self, Refused> {
        let word: [u32; 4] = std::array::from_fn(|n| w.s[(i.c.reg as usize + n) & 127]);
        let field = |word: u32, low: u32, width: u32| word >> low & ((1 << width) - 1);
        if field(word[3], 30, 2) != 0 {
            return Err("a descriptor of something other than a buffer (TYPE)");
        }
        if field(word[1], 30, 2) != 0 {
            return Err("swizzled addresses (SWIZZLE_ENABLE)");
        }
        if field(word[3], 23, 1) != 0 {
            return Err("the lane's number added to the index (ADD_TID_ENABLE)");
        }
        let scale = if i.c.mods & GFX12 != 0 {
            [1, 4, 8, 32][field(word[3], 18, 2) as usize]
        } else {
            1
        };
        let descriptor = Self {
            base: u64::from(word[0]) | u64::from(word[1] & 0xFFFF) << 32,
            stride: u64::from(field(word[1], 16, 14)) * scale,
            records: u64::from(word[2]),
            select: field(word[3], 28, 2),
            scalar: u64::from(if i.c.up == REGISTER {
                w.s[i.c.lo as usize & 127]
            } else {
                i.c.lo
            }),
        };
        // AMD's text has no index in raw buffers.
        if descriptor.select == 3 && descriptor.stride != 0 && i.c.mods & INDICES != 0 {
            return Err("an index into a raw buffer with a stride (OOB_SELECT 3)");
        }
        Ok(descriptor)
    }

    #[inline(always)]
    fn addresses(&self, w: &Wave, i: &Ins, out: &mut Addresses) {
        let base = self.base.wrapping_add(self.scalar);
        for (l, out) in out.iter_mut().enumerate() {
            let (index, offset) = parts(w, i, l);
            // A product of 32 bits and 19, and a sum below 2^33.
            *out = base.wrapping_add(offset + index * self.stride);
        }
    }

    /// Lanes of which `size` bytes from byte `skip` of the access on are in range.
    #[inline(always)]
    fn inside(&self, w: &Wave, i: &Ins, skip: u64, size: u64) -> u32 {
        let (bound, records) = match self.select {
            0 => (self.stride, self.records),
            1 => (u64::MAX, self.records),
            2 if self.records == 0 => return 0,
            2 => return u32::MAX,
            _ => (self.records.saturating_sub(self.scalar), u64::MAX),
        };
        let mut inside = 0;
        for l in 0..32 {
            let (index, offset) = parts(w, i, l);
            inside |= u32::from(index < records && offset + skip + size <= bound) << l;
        }
        inside
    }
}

/// Index and offset of a lane.
#[inline(always)]
fn parts(w: &Wave, i: &Ins, l: usize) -> (u64, u64) {
    let first = i.a.reg as usize;
    let indexed = i.c.mods & INDICES != 0;
    let of = |there: bool, reg: usize| if there { u64::from(w.v[reg & 255].0[l]) } else { 0 };
    let index = of(indexed, first);
    let offset = of(i.c.mods & OFFSETS != 0, first + usize::from(indexed));
    (index, offset + u64::from(i.imm as u32))
}

/// The descriptor of an access with an active lane. `None` after noting a fault.
#[inline(always)]
fn descriptor(w: &Wave, c: &mut Ctx<'_>, i: &Ins, how: Access) -> Option<Descriptor> {
    if w.exec() == 0 {
        return None;
    }
    match Descriptor::read(w, i) {
        Ok(descriptor) => Some(descriptor),
        Err(why) => {
            refuse(w, c, i, how, why);
            None
        }
    }
}

#[cold]
fn refuse(w: &Wave, c: &mut Ctx<'_>, i: &Ins, how: Access, why: Refused) {
    let low = w.s[i.c.reg as usize & 127];
    let high = w.s[(i.c.reg as usize + 1) & 127] & 0xFFFF;
    let base = u64::from(low) | u64::from(high) << 32;
    if let Some(fault) = c.fault(
        w,
        i,
        FaultKind::BufferDescriptor,
        how,
        w.exec().trailing_zeros(),
        base,
        i.target,
    ) {
        fault.note = why.into();
    }
}

/// Active lanes of which an access reaches some byte in range; of those of a descriptor that is not modelled, none.
pub(crate) fn reached(w: &Wave, i: &Ins) -> u32 {
    let Ok(descriptor) = Descriptor::read(w, i) else {
        return 0;
    };
    let words =
        (0..u64::from(i.target).div_ceil(4)).map(|word| descriptor.inside(w, i, 4 * word, i.target.min(4).into()));
    w.exec() & words.fold(0, |all, one| all | one)
}

/// The space of buffers. Its lanes are those of the exec mask: what calls it has taken the others away.
struct Buffer;

impl Space for Buffer {
    const PLACE: Place = Place::Global;
    type Memory = Global;

    #[inline(always)]
    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses) {
        // Without a descriptor that is modelled, no lane takes part.
        if let Ok(descriptor) = Descriptor::read(w, i) {
            descriptor.addresses(w, i, out);
        }
    }

    #[inline(always)]
    fn inside(w: &Wave, c: &mut Ctx<'_>, i: &Ins) -> u32 {
        descriptor(w, c, i, Access::Atomic).map_or(0, |descriptor| descriptor.inside(w, i, 0, i.target.into()))
    }
}

/// Runs `access` with the lanes of `mask` only.
#[inline(always)]
fn with_lanes(w: &mut Wave, mask: u32, access: impl FnOnce(&mut Wave)) {
    let exec = w.exec();
    w.s[EXEC] = exec & mask;
    access(w);
    w.s[EXEC] = exec;
}

/// Lanes of `exec` by the words of an access that they may touch: first those with all `R`, then, for each word, those that have it
/// and not all.
#[inline(always)]
fn by_words<const R: usize>(
    w: &mut Wave,
    c: &mut Ctx<'_>,
    i: &Ins,
    descriptor: &Descriptor,
    mut whole: impl FnMut(&mut Wave, &mut Ctx<'_>, u32),
    mut one: impl FnMut(&mut Wave, &mut Ctx<'_>, u32, usize),
) {
    let all = descriptor.inside(w, i, 0, 4 * R as u64);
    if R == 1 || w.exec() & !all == 0 {
        return whole(w, c, all);
    }
    // Before the first register is written, which may be that of the offsets.
    let inside: [u32; R] = std::array::from_fn(|r| descriptor.inside(w, i, 4 * r as u64, 4));
    whole(w, c, all);
    for (r, word) in inside.into_iter().enumerate() {
        one(w, c, word & !all, r);
    }
}

/// Loads `R` registers per lane.
struct LoadWords<const R: usize>;

impl<const R: usize> Handler for LoadWords<R> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(descriptor) = descriptor(w, c, i, Access::Load) else {
            return;
        };
        // Before the first register is written, which may be that of the addresses.
        let mut at = [0; 32];
        descriptor.addresses(w, i, &mut at);
        by_words::<R>(
            w,
            c,
            i,
            &descriptor,
            |w, c, all| {
                let zero = w.exec() & !all;
                with_lanes(w, all, |w| load::words::<Buffer, R>(w, c, i, &at, i.dst));
                for r in 0..R {
                    let out = &mut w.v[(i.dst as usize + r) & 255].0;
                    for (l, out) in out.iter_mut().enumerate() {
                        *out = if zero >> l & 1 != 0 { 0 } else { *out };
                    }
                }
            },
            |w, c, lanes, r| {
                let at = at.map(|at| at.wrapping_add(4 * r as u64));
                with_lanes(w, lanes, |w| {
                    load::words::<Buffer, 1>(w, c, i, &at, i.dst.wrapping_add(r as u8));
                });
            },
        );
    }
}

/// Loads less than a register per lane, `SIZE` bytes.
struct LoadSmall<const SIZE: usize>;

impl<const SIZE: usize> Handler for LoadSmall<SIZE> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(descriptor) = descriptor(w, c, i, Access::Load) else {
            return;
        };
        let inside = descriptor.inside(w, i, 0, SIZE as u64);
        let zero = w.exec() & !inside;
        with_lanes(w, inside, |w| load::Small::<Buffer, SIZE>::run(w, c, i));
        load::put_small(w, i, zero, &[0; 32]);
    }
}

/// Stores `R` registers per lane.
struct StoreWords<const R: usize>;

impl<const R: usize> Handler for StoreWords<R> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(descriptor) = descriptor(w, c, i, Access::Store) else {
            return;
        };
        let mut at = [0; 32];
        descriptor.addresses(w, i, &mut at);
        by_words::<R>(
            w,
            c,
            i,
            &descriptor,
            |w, c, all| with_lanes(w, all, |w| store::words::<Buffer, R>(w, c, i, &at, i.b.reg)),
            |w, c, lanes, r| {
                let at = at.map(|at| at.wrapping_add(4 * r as u64));
                with_lanes(w, lanes, |w| {
                    store::words::<Buffer, 1>(w, c, i, &at, i.b.reg.wrapping_add(r as u8));
                });
            },
        );
    }
}

/// Stores less than a register per lane, `SIZE` bytes.
struct StoreSmall<const SIZE: usize>;

impl<const SIZE: usize> Handler for StoreSmall<SIZE> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(descriptor) = descriptor(w, c, i, Access::Store) else {
            return;
        };
        let inside = descriptor.inside(w, i, 0, SIZE as u64);
        with_lanes(w, inside, |w| store::Small::<Buffer, SIZE>::run(w, c, i));
    }
}

/// The format of the texels behind a descriptor, and what their four values are made of.
#[inline(always)]
fn format(w: &Wave, i: &Ins) -> Result<(Format, [Select; 4]), Refused> {
    let word = w.s[(i.c.reg as usize + 3) & 127];
    Ok((Format::of(word >> 12 & 63)?, Select::all(word)?))
}

/// Loads the first `Ins::b.lo` values of a texel per lane.
struct LoadTyped;

impl Handler for LoadTyped {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(descriptor) = descriptor(w, c, i, Access::Load) else {
            return;
        };
        let (format, select) = match format(w, i) {
            Ok(found) => found,
            Err(why) => return refuse(w, c, i, Access::Load, why),
        };
        let values = Values::new(select.into_iter().take(i.b.lo as usize), format);
        let inside = w.exec() & descriptor.inside(w, i, 0, format.bytes() as u64);
        let mut at = [0; 32];
        descriptor.addresses(w, i, &mut at);
        let texels = typed::load(w, c, i, inside, &at, (format, &values));
        for (register, select) in values.iter().enumerate() {
            let value = |l: usize| match inside >> l & 1 {
                0 => 0,
                _ => select.load(format, &texels[l]),
            };
            w.put(i.dst.wrapping_add(register as u8), &std::array::from_fn(value));
        }
    }
}

/// Stores a texel per lane, from `Ins::b.lo` values.
struct StoreTyped;

impl Handler for StoreTyped {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let Some(descriptor) = descriptor(w, c, i, Access::Store) else {
            return;
        };
        let mask = (1 << i.b.lo) - 1;
        let found = format(w, i).and_then(|(format, _)| {
            let texels = typed::from_registers(w, i, format, mask, i.c.mods & GFX12 != 0)?;
            Ok((format, texels))
        });
        let (format, texels) = match found {
            Ok(found) => found,
            Err(why) => return refuse(w, c, i, Access::Store, why),
        };
        let inside = w.exec() & descriptor.inside(w, i, 0, format.bytes() as u64);
        let mut at = [0; 32];
        descriptor.addresses(w, i, &mut at);
        typed::store(w, c, i, inside, &at, (format, &texels, mask));
    }
}

struct Loads;

impl BySize for Loads {
    fn words<const R: usize>() -> Run {
        plain::<LoadWords<R>>()
    }

    fn small<const N: usize>() -> Run {
        plain::<LoadSmall<N>>()
    }
}

struct Stores;

impl BySize for Stores {
    fn words<const R: usize>() -> Run {
        plain::<StoreWords<R>>()
    }

    fn small<const N: usize>() -> Run {
        plain::<StoreSmall<N>>()
    }
}

/// Typed accesses that have two values in a register, or half a one.
const HALVES: [Op; 10] = [
    Op::BufferLoadD16FormatX,
    Op::BufferLoadD16FormatXy,
    Op::BufferLoadD16FormatXyz,
    Op::BufferLoadD16FormatXyzw,
    Op::BufferLoadD16HiFormatX,
    Op::BufferStoreD16FormatX,
    Op::BufferStoreD16FormatXy,
    Op::BufferStoreD16FormatXyz,
    Op::BufferStoreD16FormatXyzw,
    Op::BufferStoreD16HiFormatX,
];

/// The handler of a buffer operation, and the bytes a lane touches; of typed ones, the least.
fn lookup(inst: &Inst) -> Option<(Lowered, u8)> {
    let facts = inst.op.facts();
    // What is loaded as 16 bits has halves of registers.
    let typed = facts.element == Element::Format && !HALVES.contains(&inst.op);
    Some(match facts.memory {
        Memory::Load if typed && inst.dst != Operand::None => (Lowered::Load(plain::<LoadTyped>()), 1),
        Memory::Store if typed => (Lowered::Store(plain::<StoreTyped>()), 1),
        Memory::Load => {
            let (run, bytes) = by_size::<Loads>(inst)?;
            (Lowered::Load(run), bytes)
        }
        Memory::Store => {
            let (run, bytes) = by_size::<Stores>(inst)?;
            (Lowered::Store(run), bytes)
        }
        Memory::Atomic => (
            Lowered::Atomic(atomic::lookup::<Buffer>(inst.op)?),
            4 * atomic::registers(inst.op)?,
        ),
        _ => return None,
    })
}

/// Lowers a buffer operation.
pub(crate) fn lower(inst: &Inst) -> Result<Ins, Refused> {
    if inst.imm < 0 {
        return Err("a negative offset into a buffer");
    }
    let (access, bytes) = lookup(inst).ok_or(match inst.ty.dst {
        Ty::None if inst.src[1] == Operand::None => "a load from a buffer into LDS",
        _ => "a texel as 16 bits",
    })?;
    let Operand::Sgpr(first) = inst.src[2] else {
        return Err("a resource descriptor outside the scalar registers");
    };
    let (lo, up) = match sgpr(inst.mem.soffset) {
        // The null register reads as zero.
        _ if inst.mem.soffset == Operand::Null => (0, 0),
        Some(register) => (register.into(), REGISTER),
        None => match inst.mem.soffset.constant(Ty::B32) {
            Some(value) => (value as u32, 0),
            None => return Err("this scalar offset into a buffer"),
        },
    };
    let mods = [(inst.mem.offen, OFFSETS), (inst.mem.idxen, INDICES)]
        .into_iter()
        .chain([(inst.arch == Arch::Gfx1201, GFX12)])
        .fold(0, |all, (set, bit)| all | if set { bit } else { 0 });
    let values = inst.ty.dst.regs().max(inst.ty.src[1].regs());
    let mut ins = Ins {
        a: source(inst.src[0], Ty::B32)?,
        b: Src {
            lo: values.into(),
            ..source(inst.src[1], Ty::B32)?
        },
        c: Src {
            lo,
            up,
            mods,
            ..Src::reg(Kind::S, first)
        },
        imm: inst.imm,
        target: bytes.into(),
        sdst: 0,
        ..NOTHING
    };
    if let Operand::Vgpr(register) = inst.dst {
        (ins.dst, ins.sdst) = (register, form::RETURN);
    }
    form::describe(inst.op, &mut ins);
    match access {
        Lowered::Load(run) => {
            ins.run = run;
            ins.half = form::coherence_of_load(inst.mem);
        }
        Lowered::Store(run) | Lowered::Atomic(run) => {
            ins.run = run;
            ins.half = form::coherence_of_store(inst.mem);
        }
        Lowered::Ds(_) => return Err("an LDS operation through a resource descriptor"),
    }
    Ok(ins)
}
