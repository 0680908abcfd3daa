//! Loads, stores and atomics of every width in every address space: LDS, private, global and generic addresses.
//!
//! Memory is a window of 4096 bytes for each wave (128 bytes for each lane in private memory), known before; each
//! instruction runs once in each wave, over addresses in order, all the same, or scattered. Afterwards the registers and
//! the whole window are what the model says.

mod alignment;
mod atomics;
mod buffer;
mod image;
mod lds;
mod scalar;
mod transpose;
mod typed;

use crate::enc::{self, EXEC, Fields, LITERAL, NULL, decode, int, v};
use crate::harness::Random;
use crate::rig::{Asm, DATA, Launch, word};
use crate::valu::{is_modelled, named};
use rocmforge_amdgcn::{PRIVATE_APERTURE, SHARED_APERTURE};
use rocmforge_isa::{Format, Op};

const WINDOW: usize = 4096;
const PRIVATE: usize = 128;
/// The last eight let every value of [`MEETING`] meet every other.
const WAVES: usize = 14;
const MIXED: usize = 6;

/// Where an instruction's addresses point.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Space {
    Lds,
    /// Through VGPRs.
    Global,
    /// Relative to SGPRs.
    GlobalBase,
    /// Through a resource descriptor.
    Buffer,
    FlatGlobal,
    FlatLds,
    FlatPrivate,
    /// Private memory by VGPR, by SGPR, and by both.
    Private,
    PrivateBase,
    PrivateBoth,
}

impl Space {
    fn is_private(self) -> bool {
        matches!(
            self,
            Self::FlatPrivate | Self::Private | Self::PrivateBase | Self::PrivateBoth
        )
    }
    fn is_lds(self) -> bool {
        matches!(self, Self::Lds | Self::FlatLds)
    }
    fn format(self) -> Format {
        match self {
            Self::Lds => Format::Ds,
            Self::Global | Self::GlobalBase => Format::Global,
            Self::Buffer => Format::Mubuf,
            Self::FlatGlobal | Self::FlatLds | Self::FlatPrivate => Format::Flat,
            Self::Private | Self::PrivateBase | Self::PrivateBoth => Format::Scratch,
        }
    }
    fn size(self) -> usize {
        if self.is_private() { PRIVATE } else { WINDOW }
    }
    /// A constant offset that the format has.
    fn offset(self) -> i32 {
        match self {
            Self::Lds => 20,
            Self::Global => -64,
            // The register is an unsigned offset, so it must not go below zero.
            Self::GlobalBase => -48,
            // What the descriptor lies before the window, less what the instruction adds.
            Self::Buffer => BUFFER_OFFSET as i32 + BUFFER_SCALAR as i32 - BUFFER_BEFORE as i32,
            Self::Private | Self::PrivateBoth => -12,
            Self::PrivateBase => 8,
            _ => 36,
        }
    }
}

/// Buffers: bytes between the descriptor's base and the window, the instruction's offset, the scalar offset.
const BUFFER_BEFORE: u32 = 4096;
const BUFFER_OFFSET: u32 = 36;
const BUFFER_SCALAR: u32 = 20;

/// One lane's view: its address in the window, its data registers, and its destination registers.
struct Access<'a> {
    memory: &'a mut [u8],
    at: usize,
    /// Second address of a `2addr` instruction.
    second: usize,
    data: [u32; 4],
    /// Second data operand of a DS instruction.
    data2: [u32; 4],
    dst: [u32; 4],
    lane: usize,
    exec: u32,
}

impl Access<'_> {
    fn byte(&self) -> u32 {
        self.memory[self.at].into()
    }
    fn short(&self) -> u32 {
        self.byte() | u32::from(self.memory[self.at + 1]) << 8
    }
    fn words_at(&mut self, at: usize, first: usize, count: usize) {
        for n in 0..count {
            self.dst[first + n] = word(self.memory, at + 4 * n);
        }
    }
    fn words(&mut self, count: usize) {
        self.words_at(self.at, 0, count);
    }
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn put_words(&mut self, at: usize, data: &[u32]) {
        for (n, word) in data.iter().enumerate() {
            self.put(at + 4 * n, &word.to_le_bytes());
        }
    }
    fn low(&mut self, half: u32) {
        self.dst[0] = self.dst[0] & 0xffff_0000 | half & 0xffff;
    }
    fn high(&mut self, half: u32) {
        self.dst[0] = self.dst[0] & 0xffff | half << 16;
    }
    fn extended(&self) -> u32 {
        i32::from(self.byte() as i8) as u32
    }
}

type Model = fn(&mut Access);

/// Loads and stores: the name in the FLAT, GLOBAL and SCRATCH formats, the name in DS, bytes per lane, and what they do.
#[rustfmt::skip]
const MOVES: &[(&str, &str, usize, Model)] = &[
    ("load_u8", "load_u8", 1, |x| x.dst[0] = x.byte()),
    ("load_i8", "load_i8", 1, |x| x.dst[0] = x.extended()),
    ("load_u16", "load_u16", 2, |x| x.dst[0] = x.short()),
    ("load_i16", "load_i16", 2, |x| x.dst[0] = i32::from(x.short() as i16) as u32),
    ("load_b32", "load_b32", 4, |x| x.words(1)),
    ("load_b64", "load_b64", 8, |x| x.words(2)),
    ("load_b96", "load_b96", 12, |x| x.words(3)),
    ("load_b128", "load_b128", 16, |x| x.words(4)),
    ("load_d16_u8", "load_u8_d16", 1, |x| x.low(x.byte())),
    ("load_d16_i8", "load_i8_d16", 1, |x| x.low(x.extended())),
    ("load_d16_b16", "load_u16_d16", 2, |x| x.low(x.short())),
    ("load_d16_hi_u8", "load_u8_d16_hi", 1, |x| x.high(x.byte())),
    ("load_d16_hi_i8", "load_i8_d16_hi", 1, |x| x.high(x.extended())),
    ("load_d16_hi_b16", "load_u16_d16_hi", 2, |x| x.high(x.short())),
    ("store_b8", "store_b8", 1, |x| x.put(x.at, &[x.data[0] as u8])),
    ("store_b16", "store_b16", 2, |x| x.put(x.at, &(x.data[0] as u16).to_le_bytes())),
    ("store_b32", "store_b32", 4, |x| x.put_words(x.at, &[x.data[0]])),
    ("store_b64", "store_b64", 8, |x| x.put_words(x.at, &[x.data[0], x.data[1]])),
    ("store_b96", "store_b96", 12, |x| x.put_words(x.at, &[x.data[0], x.data[1], x.data[2]])),
    ("store_b128", "store_b128", 16, |x| x.put_words(x.at, &x.data.clone())),
    ("store_d16_hi_b8", "store_b8_d16_hi", 1, |x| x.put(x.at, &[(x.data[0] >> 16) as u8])),
    ("store_d16_hi_b16", "store_b16_d16_hi", 2, |x| x.put(x.at, &((x.data[0] >> 16) as u16).to_le_bytes())),
];

/// Two addresses: the name, the distance between offset units, words, and what it does.
#[rustfmt::skip]
const PAIRS: &[(&str, usize, usize, Model)] = &[
    ("ds_load_2addr_b32", 4, 1, |x| { x.words_at(x.at, 0, 1); x.words_at(x.second, 1, 1) }),
    ("ds_load_2addr_b64", 8, 2, |x| { x.words_at(x.at, 0, 2); x.words_at(x.second, 2, 2) }),
    ("ds_load_2addr_stride64_b32", 256, 1, |x| { x.words_at(x.at, 0, 1); x.words_at(x.second, 1, 1) }),
    ("ds_load_2addr_stride64_b64", 512, 2, |x| { x.words_at(x.at, 0, 2); x.words_at(x.second, 2, 2) }),
    ("ds_store_2addr_b32", 4, 1, |x| { x.put_words(x.at, &[x.data[0]]); x.put_words(x.second, &[x.data2[0]]) }),
    ("ds_store_2addr_b64", 8, 2, |x| { x.put_words(x.at, &[x.data[0], x.data[1]]); x.put_words(x.second, &[x.data2[0], x.data2[1]]) }),
    ("ds_store_2addr_stride64_b32", 256, 1, |x| { x.put_words(x.at, &[x.data[0]]); x.put_words(x.second, &[x.data2[0]]) }),
    ("ds_store_2addr_stride64_b64", 512, 2, |x| { x.put_words(x.at, &[x.data[0], x.data[1]]); x.put_words(x.second, &[x.data2[0], x.data2[1]]) }),
    ("ds_storexchg_2addr_rtn_b32", 4, 1, exchange2),
    ("ds_storexchg_2addr_stride64_rtn_b32", 256, 1, exchange2),
    ("ds_storexchg_2addr_rtn_b64", 8, 2, exchange2_wide),
    ("ds_storexchg_2addr_stride64_rtn_b64", 512, 2, exchange2_wide),
];

fn exchange2(x: &mut Access) {
    x.words_at(x.at, 0, 1);
    x.words_at(x.second, 1, 1);
    x.put_words(x.at, &[x.data[0]]);
    x.put_words(x.second, &[x.data2[0]]);
}

fn exchange2_wide(x: &mut Access) {
    x.words_at(x.at, 0, 2);
    x.words_at(x.second, 2, 2);
    x.put_words(x.at, &[x.data[0], x.data[1]]);
    x.put_words(x.second, &[x.data2[0], x.data2[1]]);
}

/// Registers: the address pair, the two data operands, the destination.
const ADDRESS: u32 = 34;
const FIRST: u32 = 36;
const SECOND: u32 = 40;
const RESULT: u32 = 44;
/// Words of an input record: 32 of memory, address, padding, first and second data operand, destination.
const RECORD: usize = 64;

/// Values that meet each other in an atomic, in floats and integers alike.
const MEETING: [u32; 16] = [
    0,
    1,
    2,
    0xffff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0x4b80_0000,
    5,
    0x0000_ffff,
    0x3f80_0001,
    0x0080_0000,
    6,
];

struct Case {
    lanes: Vec<[u32; RECORD]>,
    addresses: Vec<usize>,
}

/// Records of all waves. Addresses are a multiple of `align`, with `span` bytes behind them in the window.
fn cases(space: Space, align: usize, span: usize, distinct: bool, nan: bool) -> Case {
    let mut random = Random(0xadd);
    let limit = space.size() - span;
    let mut lanes = Vec::new();
    let mut addresses = Vec::new();
    for wave in 0..WAVES {
        let meet = wave >= MIXED;
        // Places for 32 lanes that do not overlap.
        let stride = span.next_multiple_of(align);
        let mut slots: Vec<usize> = (0..32)
            .map(|lane| (lane * stride) % (limit / stride * stride + stride))
            .collect();
        for lane in 0..32 {
            slots.swap(lane, random.next() as usize % 32);
        }
        for (lane, slot) in slots.into_iter().enumerate() {
            let at = match wave {
                _ if space == Space::PrivateBase => 16,
                0 => (lane * align.max(span)) % (limit + 1) / align * align,
                1 if !distinct => 4 * align.max(8),
                2 | 3 if !space.is_private() => slot,
                _ if meet && !space.is_private() => slot,
                _ if distinct && !space.is_private() => slot,
                _ => random.next() as usize % (limit / align + 1) * align,
            };
            let mut record: [u32; RECORD] = std::array::from_fn(|n| {
                let edge = MEETING[random.next() as usize % MEETING.len()];
                match n {
                    0..32 | 36..44 if wave % 2 == 1 => edge,
                    _ => random.next() as u32,
                }
            });
            if !nan {
                for value in &mut record[..44] {
                    if f32::from_bits(*value).is_nan() {
                        *value &= 0x807f_ffff;
                    }
                }
            }
            record[32] = at as u32;
            lanes.push(record);
            addresses.push(at);
        }
    }
    let mut case = Case { lanes, addresses };
    case.meet(space, nan);
    case
}

impl Case {
    /// Puts values under the addresses of the last waves: each meets each as data, and half of them as comparison.
    fn meet(&mut self, space: Space, nan: bool) {
        let value = |n: usize| match MEETING[n % MEETING.len()] {
            bits if !nan && f32::from_bits(bits).is_nan() => bits & 0x807f_ffff,
            bits => bits,
        };
        for index in MIXED * 32..WAVES * 32 {
            let (wave, lane, at) = (index / 32, index % 32, self.addresses[index]);
            let (old, data) = (value(lane), value(lane / 16 + 2 * (wave - MIXED)));
            let compared = if lane & 1 == 0 { old } else { value(lane + wave) };
            let first = &mut self.lanes[index];
            // One register or two of data, and the value to compare with behind it or in the second operand.
            first[34..42].copy_from_slice(&[data, data, compared, compared, compared, compared, 0, 0]);
            if space == Space::Lds || wave % 2 == 0 {
                first[35] = compared;
            }
            for word in [at, at + 4] {
                let (word, owner) = match space.is_private() {
                    true => (word / 4, index),
                    false => (word / 128, wave * 32 + word % 128 / 4),
                };
                if word < 32 {
                    self.lanes[owner][word] = old;
                }
            }
        }
    }

    /// Window of a wave, or of a lane for private memory.
    fn memory(&self, space: Space, wave: usize, lane: usize) -> Vec<u8> {
        let records = &self.lanes[wave * 32..][..32];
        if space.is_private() {
            return records[lane][..32].iter().flat_map(|word| word.to_le_bytes()).collect();
        }
        // Word k of lane l lies at 128 k + 4 l.
        (0..32)
            .flat_map(|k| records.iter().flat_map(move |record| record[k].to_le_bytes()))
            .collect()
    }
}

/// Runs `words` over the case and compares registers and memory with the model.
fn check(words: &[u32], space: Space, case: &Case, exec: u32, accept: Accept, model: &dyn Fn(&mut Access), name: &str) {
    let offset = space.offset();
    let mut asm = Asm::default();
    asm.prologue(48, 4 * RECORD as u32, 256);
    let shift = |code: &str| enc::code(code, Format::Vop2);
    // v60: the wave's window in global memory; s[6:7] the same.
    asm.put(&[enc::vop2(shift("v_lshrrev_b32"), 60, int(5), 1)]);
    asm.put(&[enc::vop2(shift("v_lshlrev_b32"), 60, int(12), 60)]);
    asm.put(&[enc::vop2(shift("v_add_nc_u32"), 60, LITERAL, 60), DATA as u32]);
    asm.put(&[enc::vop1(2, 6, v(60))]).set(7, (DATA >> 32) as u32);
    // v61: the lane's place in a row of 32 words.
    asm.put(&[enc::vop2(shift("v_and_b32"), 61, int(31), 1)]);
    asm.put(&[enc::vop2(shift("v_lshlrev_b32"), 61, int(2), 61)]);
    let ds_store = enc::code("ds_store_b32", Format::Ds);
    let ds_load = enc::code("ds_load_b32", Format::Ds);
    let scratch_store = enc::code("scratch_store_b32", Format::Scratch);
    let scratch_load = enc::code("scratch_load_b32", Format::Scratch);
    for k in 0..32 {
        if space.is_lds() {
            asm.put(&enc::ds(ds_store, 0, 61, [2 + k, 0], 128 * k));
        } else if space.is_private() {
            asm.put(&enc::flat(1, scratch_store, 0, None, 2 + k, NULL, 4 * k as i32, false));
        }
    }
    // The address, less the constant offset of the instruction.
    asm.put(&[
        enc::vop2(shift("v_add_nc_u32"), ADDRESS, LITERAL, ADDRESS),
        offset.wrapping_neg() as u32,
    ]);
    match space {
        Space::Global | Space::FlatGlobal => {
            let carry = enc::code("v_add_co_u32", Format::Vop3sd);
            let carry_in = enc::code("v_add_co_ci_u32", Format::Vop2);
            // Sign-extended: the sum must not lose the borrow.
            asm.put(&[enc::vop2(shift("v_ashrrev_i32"), ADDRESS + 1, int(31), ADDRESS)]);
            let mut add = enc::vop3(carry, ADDRESS, [6, v(ADDRESS), 0], Fields::default());
            add[0] |= enc::VCC << 8;
            asm.put(&add);
            asm.mov(62, 7);
            asm.put(&[enc::vop2(carry_in, ADDRESS + 1, v(62), ADDRESS + 1)]);
        }
        Space::FlatLds | Space::FlatPrivate => {
            let aperture = if space == Space::FlatLds {
                SHARED_APERTURE
            } else {
                PRIVATE_APERTURE
            };
            asm.put(&[enc::vop2(shift("v_ashrrev_i32"), ADDRESS + 1, int(31), ADDRESS)]);
            asm.put(&[
                enc::vop2(shift("v_add_nc_u32"), ADDRESS + 1, LITERAL, ADDRESS + 1),
                aperture,
            ]);
        }
        Space::Buffer => {
            let (sub, borrow) = (
                enc::code("s_sub_u32", Format::Sop2),
                enc::code("s_subb_u32", Format::Sop2),
            );
            asm.put(&[enc::sop2(sub, 8, 6, LITERAL), BUFFER_BEFORE]);
            asm.put(&[enc::sop2(borrow, 9, 7, int(0))]);
            // The last byte of the window is the last in range.
            asm.set(10, BUFFER_BEFORE + WINDOW as u32)
                .set(11, 3 << 28)
                .set(5, BUFFER_SCALAR);
        }
        Space::PrivateBase => {
            asm.set(5, (16 - offset) as u32);
        }
        Space::PrivateBoth => {
            // Half of the address comes from each.
            asm.set(5, 64);
            asm.put(&[enc::vop2(shift("v_subrev_nc_u32"), ADDRESS, LITERAL, ADDRESS), 64]);
        }
        _ => {}
    }
    asm.set(EXEC, exec).put(words).put(&[enc::sop1(0, EXEC, int(-1))]);
    asm.store(RESULT, 4, 0);
    for k in 0..32 {
        if space.is_lds() {
            asm.put(&enc::ds(ds_load, 2 + k, 61, [0, 0], 128 * k));
        } else if space.is_private() {
            asm.put(&enc::flat(1, scratch_load, 2 + k, None, 0, NULL, 4 * k as i32, false));
        }
        if space.is_lds() || space.is_private() {
            asm.store(2 + k, 1, 16 + 4 * k);
        }
    }
    let input: Vec<u8> = case
        .lanes
        .iter()
        .flatten()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let data: Vec<u8> = (0..WAVES)
        .flat_map(|wave| case.memory(Space::Global, wave, 0))
        .collect();
    let done = Launch {
        words: &asm.0,
        lanes: case.lanes.len(),
        input: &input,
        output: 256 * case.lanes.len(),
        data: &data,
        lds: if space.is_lds() { WINDOW as u32 } else { 0 },
        ..Launch::default()
    }
    .run();
    for wave in 0..WAVES {
        let mut memory = case.memory(space, wave, 0);
        for lane in 0..32 {
            let index = wave * 32 + lane;
            if space.is_private() {
                memory = case.memory(space, wave, lane);
            }
            let record = &case.lanes[index];
            let four = |at: u32| std::array::from_fn(|n| record[at as usize - 2 + n]);
            let at = case.addresses[index];
            let mut access = Access {
                memory: &mut memory,
                at,
                second: at,
                data: four(FIRST),
                data2: four(SECOND),
                dst: four(RESULT),
                lane,
                exec,
            };
            if exec >> lane & 1 != 0 {
                model(&mut access);
            }
            let expected = access.dst;
            let output = &done.output[256 * index..][..256];
            let ours: [u32; 4] = std::array::from_fn(|n| word(output, 4 * n));
            assert!(
                (0..4).all(|n| accept(ours[n], expected[n])),
                "{name} {space:?}, wave {wave} lane {lane}, address {at:#x}, data {:x?}: registers {ours:x?}, the model says {expected:x?}",
                four(FIRST)
            );
            if space.is_private() {
                for k in 0..32 {
                    let (ours, expected) = (word(output, 16 + 4 * k), word(&memory, 4 * k));
                    assert!(
                        accept(ours, expected),
                        "{name} {space:?} lane {lane}, byte {}: {ours:x} {expected:x}",
                        4 * k
                    );
                }
            }
        }
        if space.is_private() {
            continue;
        }
        for at in (0..WINDOW).step_by(4) {
            let (k, lane) = (at / 128, at % 128 / 4);
            let ours = if space.is_lds() {
                word(&done.output, 256 * (wave * 32 + lane) + 16 + 4 * k)
            } else {
                word(&done.data, WINDOW * wave + at)
            };
            let expected = word(&memory, at);
            assert!(
                accept(ours, expected),
                "{name} {space:?}, wave {wave}: {at:#x} holds {ours:#x}, the model says {expected:#x}"
            );
        }
    }
}

/// How words are compared: the same bits, or any NaN for a NaN.
type Accept = fn(u32, u32) -> bool;

fn same(ours: u32, model: u32) -> bool {
    ours == model
}

fn same_float(ours: u32, model: u32) -> bool {
    ours == model || (f32::from_bits(ours).is_nan() && f32::from_bits(model).is_nan())
}

/// Halves, or bfloat16, in pairs: a NaN of either is all ones below its sign except for the fraction.
fn same_halves(ours: u32, model: u32) -> bool {
    let nan = |half: u32| half & 0x7fff > 0x7c00;
    [0, 16].iter().all(|shift| {
        let (a, b) = (ours >> shift & 0xffff, model >> shift & 0xffff);
        a == b || (nan(a) && nan(b))
    })
}

/// Of zeros of both signs either may be the smaller.
fn same_number(ours: u32, model: u32) -> bool {
    ours == model || (ours | model) & 0x7fff_ffff == 0
}

const EXECS: [u32; 3] = [u32::MAX, 0x8421_a5f0, 0x00ff_fff0];

/// The words of a FLAT, GLOBAL or SCRATCH instruction in a space.
fn encode(space: Space, code: u32, loads: bool, stores: bool, glc: bool) -> Vec<u32> {
    if space == Space::Buffer {
        return encode_buffer(code, loads, stores);
    }
    let dst = if loads { RESULT } else { 0 };
    let data = if stores { FIRST } else { 0 };
    let offset = space.offset();
    let segment = match space.format() {
        Format::Flat => 0,
        Format::Scratch => 1,
        _ => 2,
    };
    let (addr, base) = match space {
        Space::GlobalBase => (Some(ADDRESS), 6),
        Space::PrivateBase => (None, 5),
        Space::PrivateBoth => (Some(ADDRESS), 5),
        _ => (Some(ADDRESS), NULL),
    };
    enc::flat(segment, code, dst, addr, data, base, offset, glc)
}

/// The same through a descriptor. An atomic gives the old value in the registers of its data, from where it is moved.
fn encode_buffer(code: u32, loads: bool, stores: bool) -> Vec<u32> {
    let fields = enc::Buffer {
        data: if stores { FIRST } else { RESULT },
        address: ADDRESS,
        descriptor: 8,
        soffset: 5,
        offset: BUFFER_OFFSET,
        offen: true,
        idxen: false,
        returns: loads && stores,
    };
    let mut words = enc::buffer(code, fields);
    if loads && stores {
        let returned = decode(&words, 0).map_or(0, |inst| inst.ty.dst.regs());
        words.extend((0..u32::from(returned)).map(|n| enc::vop1(1, RESULT + n, v(FIRST + n))));
    }
    words
}

const SPACES: [(Space, &str); 10] = [
    (Space::Lds, "ds_"),
    (Space::Global, "global_"),
    (Space::GlobalBase, "global_"),
    (Space::Buffer, "buffer_"),
    (Space::FlatGlobal, "flat_"),
    (Space::FlatLds, "flat_"),
    (Space::FlatPrivate, "flat_"),
    (Space::Private, "scratch_"),
    (Space::PrivateBase, "scratch_"),
    (Space::PrivateBoth, "scratch_"),
];

#[test]
fn loads_and_stores() {
    for &(flat_name, ds_name, bytes, model) in MOVES {
        for (space, prefix) in SPACES {
            let lds = space == Space::Lds;
            let name = format!("{prefix}{}", if lds { ds_name } else { flat_name });
            let code = enc::code(&name, space.format());
            let loads = name.contains("load");
            let words = if lds {
                let (dst, data) = if loads { (RESULT, 0) } else { (0, FIRST) };
                enc::ds(code, dst, ADDRESS, [data, 0], space.offset() as u32).to_vec()
            } else {
                encode(space, code, loads, !loads, false)
            };
            let text = decode(&words, 0).expect("an instruction").to_string();
            let case = cases(space, bytes.min(4), bytes, false, true);
            for exec in EXECS {
                check(&words, space, &case, exec, same, &model, &text);
            }
        }
    }
}

#[test]
fn two_addresses() {
    for &(name, unit, words_each, model) in PAIRS {
        if !is_modelled(name) {
            continue;
        }
        let code = enc::code(name, Format::Ds);
        let loads = name.contains("load") || name.contains("rtn");
        let stores = name.contains("store");
        // Offsets in units, and none: both addresses are the register's.
        for (first, second) in [(1, 3), (2, 0)] {
            let dst = if loads { RESULT } else { 0 };
            let data = if stores { [FIRST, SECOND] } else { [0, 0] };
            let words = enc::ds(code, dst, ADDRESS, data, first | second << 8);
            let shifted = |x: &mut Access| {
                // The window's address counts in the constant offset of the space, which this instruction does not have.
                let base = x.at - Space::Lds.offset() as usize;
                x.at = base + first as usize * unit;
                x.second = base + second as usize * unit;
                model(x);
            };
            let mut case = cases(Space::Lds, 4, 4, true, true);
            let mut random = Random(0x2add);
            for wave in 0..WAVES {
                let mut slots: [usize; 32] = std::array::from_fn(|lane| lane);
                for lane in 0..32 {
                    slots.swap(lane, random.next() as usize % 32);
                }
                for (lane, slot) in slots.into_iter().enumerate() {
                    // No two accesses of a wave overlap: units 1 and 3 beside 2 and 4, or whole rows apart.
                    let base = match unit {
                        4 | 8 => slot / 2 * 4 * unit + slot % 2 * unit,
                        _ => slot * 4 * words_each,
                    };
                    let at = base + 64 * wave + Space::Lds.offset() as usize;
                    case.addresses[wave * 32 + lane] = at;
                    case.lanes[wave * 32 + lane][32] = at as u32;
                }
            }
            for exec in EXECS {
                check(&words, Space::Lds, &case, exec, same, &shifted, name);
            }
        }
    }
}

pub(crate) fn ops() -> Vec<Op> {
    let mut names: Vec<String> = Vec::new();
    for (flat, ds, ..) in MOVES {
        names.extend(["flat", "global", "scratch", "buffer"].map(|space| format!("{space}_{flat}")));
        names.push(format!("ds_{ds}"));
    }
    names.extend(atomics::names());
    names.extend(PAIRS.iter().map(|(name, ..)| (*name).to_owned()));
    let loads = scalar::LOADS.iter().map(|(name, _)| name);
    for name in loads.chain(scalar::NARROW.iter().map(|(name, ..)| name)) {
        names.extend([(*name).to_owned(), name.replace("s_load", "s_buffer_load")]);
    }
    let others = [
        "ds_append",
        "ds_consume",
        "ds_load_addtid_b32",
        "ds_store_addtid_b32",
        "global_load_addtid_b32",
        "global_store_addtid_b32",
        "ds_condxchg32_rtn_b64",
        "global_load_tr_b64",
        "global_load_tr_b128",
    ];
    names.extend(others.map(str::to_owned));
    names.extend(
        [
            "load",
            "load_mip",
            "store",
            "store_mip",
            "sample",
            "sample_l",
            "sample_lz",
            "sample_d",
            "sample_d_g16",
            "gather4_lz",
        ]
        .map(|name| format!("image_{name}")),
    );
    for values in ["x", "xy", "xyz", "xyzw"] {
        names.extend(["load", "store"].map(|name| format!("buffer_{name}_format_{values}")));
    }
    names.iter().filter_map(|name| named(name)).collect()
}
