//! Buffers: what is in range, for every mode of the check, with and without index and offset, at the borders; and what a descriptor may
//! not ask for.

use super::*;
use crate::ARCH;
use crate::enc::Buffer;
use crate::rig::{Done, load};
use rocmforge_amdgcn::{Arch, ExecOptions, FaultKind, Status, Tools};

/// Bytes at [`DATA`], and where in them the descriptors' base is.
const BYTES: u64 = 1 << 14;
const BASE: u64 = 1 << 12;

#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    pub(super) select: u32,
    pub(super) stride: u32,
    pub(super) records: u32,
    /// Further bits of the last word.
    pub(super) bits: u32,
}

pub(super) const fn descriptor(select: u32, stride: u32, records: u32) -> Descriptor {
    Descriptor {
        select,
        stride,
        records,
        bits: 0,
    }
}

/// Raw buffers, structures, and those of which nothing is checked.
const DESCRIPTORS: [Descriptor; 11] = [
    descriptor(0, 24, 9),
    descriptor(0, 0, 9),
    descriptor(0, 6, 100),
    descriptor(1, 24, 9),
    descriptor(1, 1, 1),
    descriptor(1, 0, 0),
    descriptor(2, 24, 1),
    descriptor(2, 24, 0),
    descriptor(3, 0, 250),
    descriptor(3, 0, 3),
    descriptor(3, 0, u32::MAX),
];

/// Edges of index and offset: zero, just in and out of 9 records, of a stride of 24, of 250 bytes, and negative numbers.
const EDGES: [u32; 16] = [
    0,
    1,
    8,
    9,
    10,
    12,
    20,
    21,
    24,
    23,
    4,
    226,
    230,
    250,
    u32::MAX,
    u32::MAX - 11,
];

/// Whether `size` bytes are in range: the table of AMD's text, over integers that do not overflow.
fn in_range(d: Descriptor, index: i128, offset: i128, scalar: i128, size: i128) -> bool {
    let (records, stride) = (i128::from(d.records), i128::from(d.stride));
    let out = match d.select {
        0 => index >= records || offset + size > stride,
        1 => index >= records,
        2 => records == 0,
        _ => offset + size > (records - scalar).max(0),
    };
    !out
}

/// How an instruction finds its addresses.
#[derive(Clone, Copy, Debug)]
struct Form {
    idxen: bool,
    offen: bool,
    offset: u32,
    /// The scalar offset, in a register.
    scalar: u32,
}

const FORMS: [Form; 7] = [
    form(false, true, 0, 0),
    form(false, true, 12, 4),
    form(true, false, 0, 0),
    form(true, false, 20, 8),
    form(true, true, 4, 0),
    form(false, false, 200, 40),
    form(false, false, 0, 0),
];

const fn form(idxen: bool, offen: bool, offset: u32, scalar: u32) -> Form {
    Form {
        idxen,
        offen,
        offset,
        scalar,
    }
}

/// What an operation does in range: the name, bytes, whether words of it are checked by themselves, data words.
const OPERATIONS: [(&str, usize, bool); 14] = [
    ("load_b32", 4, true),
    ("load_b64", 8, true),
    ("load_b96", 12, true),
    ("load_b128", 16, true),
    ("load_u8", 1, false),
    ("load_i16", 2, false),
    ("load_d16_hi_b16", 2, false),
    ("store_b8", 1, false),
    ("store_d16_hi_b16", 2, false),
    ("store_b32", 4, true),
    ("store_b96", 12, true),
    ("store_b128", 16, true),
    ("atomic_add_u32", 4, false),
    ("atomic_swap_b64", 8, false),
];

/// Registers of a record: index and offset, data, destination.
const PLACE: u32 = 2;
const VALUE: u32 = 8;
const OLD: u32 = 12;

struct Lane {
    index: u32,
    offset: u32,
    data: [u32; 4],
    old: [u32; 4],
}

/// 32 lanes over the edges, or, for what writes, with records that do not touch each other.
fn lanes(random: &mut Random, round: usize) -> Vec<Lane> {
    let mut number = || random.next() as u32;
    let lanes = (0..32).map(|n| Lane {
        index: EDGES[(n + round) % EDGES.len()],
        offset: EDGES[(n * 7 + n / 16 + 3 * round) % EDGES.len()],
        data: std::array::from_fn(|_| number()),
        old: std::array::from_fn(|_| number()),
    });
    lanes.collect()
}

/// The words that set a descriptor in `s[8:11]`.
pub(super) fn set(asm: &mut Asm, d: Descriptor, base: u64) {
    asm.set64(8, base | u64::from(d.stride) << 48)
        .set(10, d.records)
        .set(11, d.select << 28 | d.bits);
}

#[test]
fn ranges() {
    let mut random = Random(0xb0f);
    let data: Vec<u8> = (0..BYTES).map(|n| (n * 31 + n / 251 + 7) as u8).collect();
    let (mut partial, mut inside, mut outside) = (0, 0, 0);
    for (round, (name, bytes, by_words)) in OPERATIONS.into_iter().enumerate() {
        let code = enc::code(&format!("buffer_{name}"), Format::Mubuf);
        for d in DESCRIPTORS {
            for f in FORMS {
                // Refused: see below.
                if d.select == 3 && d.stride != 0 && f.idxen {
                    continue;
                }
                let lanes = lanes(&mut random, round);
                let loads = !name.starts_with("store");
                let whole = bytes as i128;
                // Addresses relative to the base. Lanes that would leave the memory, or meet others that write, are off.
                let mut exec = 0u32;
                let mut taken: Vec<i128> = Vec::new();
                let places: Vec<(i128, i128, i128)> = (lanes.iter().enumerate())
                    .map(|(l, lane)| {
                        let index = if f.idxen { i128::from(lane.index) } else { 0 };
                        let offset = i128::from(f.offset) + if f.offen { i128::from(lane.offset) } else { 0 };
                        let at = i128::from(f.scalar) + offset + index * i128::from(d.stride);
                        let off_limits = at + 16 > i128::from(BYTES - BASE);
                        let any = in_range(d, index, offset, f.scalar.into(), whole.min(4));
                        let aligned = !name.starts_with("atomic") || at % whole == 0;
                        let meets = !name.starts_with("load") && taken.iter().any(|other| (other - at).abs() < whole);
                        if !any || (!off_limits && aligned && !meets) {
                            exec |= 1 << l;
                            taken.push(at);
                        }
                        (index, offset, at)
                    })
                    .collect();
                let mut asm = Asm::default();
                asm.prologue(14, 64, 16);
                set(&mut asm, d, DATA + BASE);
                asm.set(12, f.scalar);
                let atomic = name.starts_with("atomic");
                let fields = Buffer {
                    data: if loads && !atomic { OLD } else { VALUE },
                    // With both the index comes first; the offset alone is in the second register.
                    address: if f.idxen { PLACE } else { PLACE + 1 },
                    descriptor: 8,
                    soffset: 12,
                    offset: f.offset,
                    offen: f.offen,
                    idxen: f.idxen,
                    returns: atomic,
                };
                asm.set(EXEC, exec).put(&enc::buffer(code, fields));
                asm.put(&[enc::sop1(0, EXEC, int(-1))]);
                asm.store(if loads && !atomic { OLD } else { VALUE }, 4, 0);
                let record = |lane: &Lane| {
                    let mut words = [0u32; 16];
                    (words[0], words[1]) = (lane.index, lane.offset);
                    words[6..10].copy_from_slice(&lane.data);
                    words[10..14].copy_from_slice(&lane.old);
                    words
                };
                let input: Vec<u8> = lanes.iter().flat_map(record).flat_map(u32::to_le_bytes).collect();
                let done = Launch {
                    words: &asm.0,
                    lanes: 32,
                    input: &input,
                    output: 16 * 32,
                    data: &data,
                    ..Launch::default()
                }
                .run();

                let mut memory = data.clone();
                for (l, lane) in lanes.iter().enumerate() {
                    let what = || {
                        format!(
                            "{name} {d:?} {f:?}, lane {l}: index {:#x}, offset {:#x}",
                            lane.index, lane.offset
                        )
                    };
                    let mut registers = if loads && !atomic { lane.old } else { lane.data };
                    if exec >> l & 1 != 0 {
                        let (index, offset, at) = places[l];
                        let step = if by_words { 4 } else { bytes };
                        let mut met = [false; 2];
                        for skip in (0..bytes).step_by(step) {
                            let there = in_range(d, index, offset + skip as i128, f.scalar.into(), step as i128);
                            met[usize::from(there)] = true;
                            let place = (i128::from(BASE) + at) as usize + skip;
                            let old: Vec<u8> = if there {
                                memory[place..][..step].to_vec()
                            } else {
                                vec![0; step]
                            };
                            let value = old.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
                            let word = skip / 4;
                            let mut new = None;
                            match name {
                                "load_i16" => registers[0] = i32::from(value as i16) as u32,
                                "load_d16_hi_b16" => registers[0] = registers[0] & 0xffff | (value as u32) << 16,
                                "store_d16_hi_b16" => new = Some(u64::from(lane.data[0] >> 16)),
                                "atomic_add_u32" => {
                                    new = Some(value + u64::from(lane.data[0]));
                                    registers[0] = value as u32;
                                }
                                "atomic_swap_b64" => {
                                    new = Some(u64::from(lane.data[0]) | u64::from(lane.data[1]) << 32);
                                    (registers[0], registers[1]) = (value as u32, (value >> 32) as u32);
                                }
                                _ if loads => registers[word] = value as u32,
                                _ => new = Some(lane.data[word].into()),
                            }
                            if let (Some(new), true) = (new, there) {
                                memory[place..][..step].copy_from_slice(&new.to_le_bytes()[..step]);
                            }
                        }
                        match met {
                            [true, true] => partial += 1,
                            [_, true] => inside += 1,
                            _ => outside += 1,
                        }
                    }
                    let ours: [u32; 4] = std::array::from_fn(|n| word(&done.output, 16 * l + 4 * n));
                    assert_eq!(ours, registers, "{}", what());
                }
                assert!(done.data == memory, "{name} {d:?} {f:?}: memory differs");
            }
        }
    }
    // The edges are of use.
    assert!(
        partial > 100 && inside > 1000 && outside > 1000,
        "{partial} {inside} {outside}"
    );
}

/// A load of four words over its own offsets, with some of the words out of range.
#[test]
fn the_destination_may_be_the_address() {
    let mut asm = Asm::default();
    asm.prologue(0, 4, 16);
    set(&mut asm, descriptor(3, 0, 64), DATA);
    asm.put(&[enc::vop2(
        enc::code("v_lshlrev_b32", Format::Vop2),
        2,
        int(2),
        v(1) - 256,
    )]);
    let load = Buffer {
        data: 2,
        address: 2,
        descriptor: 8,
        soffset: NULL,
        offen: true,
        ..Buffer::default()
    };
    asm.put(&enc::buffer(enc::code("buffer_load_b128", Format::Mubuf), load));
    asm.store(2, 4, 0);
    let data: Vec<u8> = (0..64u32).flat_map(|n| (0xa000 + n).to_le_bytes()).collect();
    let done = Launch {
        words: &asm.0,
        lanes: 32,
        input: &[0; 4],
        output: 16 * 32,
        data: &data,
        ..Launch::default()
    }
    .run();
    for lane in 0..32 {
        for n in 0..4 {
            let word_of = lane + n;
            let model = if word_of < 16 { 0xa000 + word_of as u32 } else { 0 };
            assert_eq!(word(&done.output, 16 * lane + 4 * n), model, "lane {lane}, word {n}");
        }
    }
}

/// Waves that load or store at 4 x lane through a descriptor: of one the register is `v20`, which nobody has written; several store
/// different values.
fn access(name: &str, d: Descriptor, idxen: bool, options: ExecOptions, waves: usize, unwritten: u64) -> Done {
    let mut asm = Asm::default();
    asm.prologue(0, 4, 4);
    if waves > 1 {
        // The first store behind the wait that the kernel starts with would count as one that orders.
        asm.store(1, 1, 0);
    }
    set(&mut asm, d, DATA);
    let and = enc::code("v_and_b32", Format::Vop2);
    asm.put(&[enc::vop2(and, 2, int(31), 1)]);
    asm.put(&[enc::vop2(enc::code("v_lshlrev_b32", Format::Vop2), 2, int(2), 2)]);
    let fields = Buffer {
        data: if waves > 1 && name.contains("store") { 1 } else { 20 },
        address: 2,
        descriptor: 8,
        soffset: NULL,
        offen: !idxen,
        idxen,
        ..Buffer::default()
    };
    asm.put(&enc::buffer(enc::code(name, Format::Mubuf), fields));
    if name.contains("load") {
        asm.store(20, 1, 0);
    }
    Launch {
        words: &asm.0,
        lanes: 32 * waves,
        input: &[0; 4],
        output: 4 * 32 * waves,
        data: &[1; 64],
        unwritten,
        options,
        ..Launch::default()
    }
    .launch()
}

/// The kind of the only fault, if any, and its note.
pub(super) fn fault(done: &Done) -> Option<(FaultKind, String)> {
    assert!(done.outcome.faults.len() <= 1, "{:?}", done.outcome.faults);
    let fault = done.outcome.faults.first()?;
    Some((fault.kind, fault.note.clone()))
}

const RAW: Descriptor = descriptor(3, 0, 64);

#[test]
fn descriptors_that_are_not_modelled_are_faults() {
    let with = |bits: u32| Descriptor { bits, ..RAW };
    let swizzled = Descriptor { stride: 1 << 14, ..RAW };
    for (d, idxen, reason) in [
        (swizzled, false, "SWIZZLE_ENABLE"),
        (with(1 << 23), false, "ADD_TID_ENABLE"),
        (with(1 << 30), false, "TYPE"),
        (descriptor(3, 4, 64), true, "OOB_SELECT 3"),
    ] {
        for name in ["buffer_load_b32", "buffer_store_b8", "buffer_atomic_add_u32"] {
            let done = access(name, d, idxen, ExecOptions::default(), 1, 0);
            let (kind, note) = fault(&done).expect("a fault");
            assert_eq!(kind, FaultKind::BufferDescriptor, "{name}: {note}");
            assert!(note.contains(reason), "{name}: {note}");
            assert_eq!(done.outcome.status, Status::Faulted);
            assert_eq!(done.data, [1; 64], "{name} wrote");
        }
    }
    // Fields that only typed accesses look at.
    assert_eq!(
        fault(&access(
            "buffer_load_b32",
            with(0x7_7fff),
            false,
            ExecOptions::default(),
            1,
            0
        )),
        None
    );
}

#[test]
fn the_stride_of_gfx1201_has_a_scale() {
    for (scale, factor) in [(0, 1), (1, 4), (2, 8), (3, 32)] {
        let factor = if ARCH == Arch::Gfx1201 { factor } else { 1 };
        let d = Descriptor {
            bits: scale << 18,
            ..descriptor(0, 1, 4)
        };
        let mut asm = Asm::default();
        asm.prologue(0, 4, 4);
        set(&mut asm, d, DATA);
        let fields = Buffer {
            data: 20,
            address: 1,
            descriptor: 8,
            soffset: NULL,
            idxen: true,
            ..Buffer::default()
        };
        asm.put(&enc::buffer(enc::code("buffer_load_u8", Format::Mubuf), fields))
            .store(20, 1, 0);
        let data: Vec<u8> = (0..128).map(|n| n + 100).collect();
        let done = Launch {
            words: &asm.0,
            lanes: 32,
            input: &[0; 4],
            output: 4 * 32,
            data: &data,
            ..Launch::default()
        }
        .run();
        for lane in 0..32 {
            let model = if lane < 4 { data[lane * factor] } else { 0 };
            assert_eq!(word(&done.output, 4 * lane), model.into(), "scale {scale}, lane {lane}");
        }
    }
}

/// In range of the descriptor is not in range of the allocation; out of range of the descriptor nothing is touched.
#[test]
fn memory_behind_a_descriptor_is_checked() {
    let longer = descriptor(3, 0, 68);
    for name in ["buffer_load_b32", "buffer_store_b32", "buffer_atomic_add_u32"] {
        assert_eq!(
            fault(&access(name, RAW, false, ExecOptions::default(), 1, 0)),
            None,
            "{name}"
        );
        let (kind, _) = fault(&access(name, longer, false, ExecOptions::default(), 1, 0)).expect("a fault");
        assert_eq!(kind, FaultKind::GlobalOutOfBounds, "{name}");
    }
    let (kind, _) = fault(&access("buffer_load_b32", longer, false, ExecOptions::default(), 1, 4)).expect("a fault");
    assert_eq!(kind, FaultKind::UninitialisedGlobal);
    assert_eq!(
        fault(&access("buffer_load_b32", RAW, false, ExecOptions::default(), 1, 4)),
        None
    );
}

#[test]
fn races_through_descriptors() {
    let options = ExecOptions {
        tools: Tools::all(),
        ..ExecOptions::default()
    };
    let (kind, _) = fault(&access("buffer_store_b32", RAW, false, options.clone(), 2, 0)).expect("a race");
    assert_eq!(kind, FaultKind::GlobalRace);
    for (name, records) in [
        ("buffer_store_b32", 0),
        ("buffer_load_b32", 64),
        ("buffer_atomic_add_u32", 64),
    ] {
        let done = access(name, descriptor(3, 0, records), false, options.clone(), 2, 0);
        assert_eq!(fault(&done), None, "{name}");
    }
}

/// `v20` is never written: its value matters where it arrives in memory.
#[test]
fn unknown_registers_through_descriptors() {
    let options = ExecOptions {
        tools: Tools {
            init_registers: true,
            ..Tools::default()
        },
        ..ExecOptions::default()
    };
    let (kind, note) = fault(&access("buffer_store_b32", RAW, false, options.clone(), 1, 0)).expect("a fault");
    assert_eq!(kind, FaultKind::UninitialisedRegister);
    assert!(
        note.contains("0x0000ffff") && note.contains("stored to global"),
        "{note}"
    );
    let nowhere = descriptor(3, 0, 0);
    assert_eq!(
        fault(&access("buffer_store_b32", nowhere, false, options.clone(), 1, 0)),
        None
    );
    // What an access out of range gives is known to be zero.
    assert_eq!(fault(&access("buffer_load_b32", nowhere, false, options, 1, 0)), None);
}

#[test]
fn requests_are_counted_by_the_lanes_in_range() {
    let options = ExecOptions {
        counters: true,
        ..ExecOptions::default()
    };
    let done = access("buffer_store_b32", RAW, false, options, 1, 0);
    assert_eq!(
        (
            done.outcome.counters.stores.requests,
            done.outcome.counters.stores.bytes
        ),
        (1, 64)
    );
}

/// What a kernel is refused for.
fn refusal(words: &[u32]) -> String {
    let program = load(words).expect("loads");
    let (_, why) = program.refusals().next().expect("refused");
    why.to_string()
}

#[test]
fn what_is_not_executed_is_refused_with_its_reason() {
    let fields = Buffer {
        data: 4,
        address: 6,
        descriptor: 8,
        soffset: 12,
        offen: true,
        ..Buffer::default()
    };
    let halves = enc::code("buffer_load_d16_format_x", Format::Mubuf);
    assert!(refusal(&enc::buffer(halves, fields)).contains("a texel as 16 bits"));
    let load = enc::code("buffer_load_b32", Format::Mubuf);
    if ARCH == Arch::Gfx1201 {
        let negative = Buffer {
            offset: 0xff_fffc,
            ..fields
        };
        assert!(refusal(&enc::buffer(load, negative)).contains("negative offset"));
    } else {
        let lds = enc::code("buffer_load_lds_b32", Format::Mubuf);
        let nothing = Buffer { data: 0, ..fields };
        assert!(refusal(&enc::buffer(lds, nothing)).contains("into LDS"));
        let scc = Buffer { soffset: 253, ..fields };
        assert!(refusal(&enc::buffer(load, scc)).contains("scalar offset"));
    }
    // The status word that a load may ask for.
    let mut tfe = enc::buffer(load, fields);
    match ARCH {
        Arch::Gfx1100 => tfe[1] |= 1 << 21,
        Arch::Gfx1201 => tfe[0] |= 1 << 22,
    }
    assert!(refusal(&tfe).contains("tfe"));
}

/// The scalar offset of gfx1100 may be a constant.
#[test]
fn scalar_offsets_may_be_constants() {
    if ARCH == Arch::Gfx1201 {
        return;
    }
    let mut asm = Asm::default();
    asm.prologue(0, 4, 4);
    set(&mut asm, RAW, DATA);
    let fields = Buffer {
        data: 20,
        descriptor: 8,
        soffset: int(8),
        offset: 4,
        ..Buffer::default()
    };
    asm.put(&enc::buffer(enc::code("buffer_load_b32", Format::Mubuf), fields))
        .store(20, 1, 0);
    let data: Vec<u8> = (0..64).collect();
    let done = Launch {
        words: &asm.0,
        lanes: 32,
        input: &[0; 4],
        output: 4 * 32,
        data: &data,
        ..Launch::default()
    }
    .run();
    assert_eq!(word(&done.output, 0), 0x0f0e_0d0c);
}
