//! Instructions that move values between lanes: DPP, permutations, single lanes, relative registers.

use crate::enc::{self, EXEC, Fields, LITERAL, M0, decode, int, v};
use crate::harness::Random;
use crate::rig::{Asm, Launch, word};
use crate::valu::{is_modelled, named};
use rocmforge_amdgcn::{ExecOptions, Tools};
use rocmforge_isa::{Format, Op};

const EXECS: [u32; 4] = [u32::MAX, 0x8421_a5f0, 0x0000_ff3c, 0];

/// What all records and the number of a lane say of its registers.
type Expected = Box<dyn Fn(&[[u32; 8]], usize) -> [u32; 4]>;

/// One instruction to try: its words, the lanes that are on, and what is in `v[40:43]` afterwards, for each lane.
struct Try {
    words: Vec<u32>,
    exec: u32,
    expected: Expected,
}

/// The registers of a try: `v2` to `v9` hold the lane's record. `v[40:43]` start as `v[6:9]`.
const RECORD: u32 = 8;

fn records() -> Vec<[u32; 8]> {
    let mut random = Random(0x1a9e);
    (0..32).map(|_| std::array::from_fn(|_| random.next() as u32)).collect()
}

/// Runs many tries in one wave.
fn check(tries: &[Try]) {
    check_with(&records(), tries);
}

fn check_with(records: &[[u32; 8]], tries: &[Try]) {
    let input: Vec<u8> = records.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    for tries in tries.chunks(128) {
        let mut asm = Asm::default();
        asm.prologue(RECORD, 32, 2048);
        for (index, one) in tries.iter().enumerate() {
            for reg in 0..4 {
                asm.mov(40 + reg, v(6 + reg));
            }
            asm.set(EXEC, one.exec)
                .put(&one.words)
                .put(&[enc::sop1(0, EXEC, int(-1))]);
            asm.store(40, 4, 16 * index as u32);
        }
        let done = Launch {
            words: &asm.0,
            lanes: 32,
            input: &input,
            output: 2048 * 32,
            options: ExecOptions {
                // Shuffles read lanes that are off, and their results are stored.
                tools: Tools::none(),
                ..ExecOptions::default()
            },
            ..Launch::default()
        }
        .run();
        for (index, one) in tries.iter().enumerate() {
            let text = decode(&one.words, 0).map_or_else(|_| format!("{:08x?}", one.words), |inst| inst.to_string());
            for lane in 0..32 {
                let ours: [u32; 4] = std::array::from_fn(|n| word(&done.output, 2048 * lane + 16 * index + 4 * n));
                let expected = (one.expected)(records, lane);
                assert_eq!(
                    ours, expected,
                    "`{text}`, exec {:#x}, lane {lane}: {:x?}",
                    one.exec, records[lane]
                );
            }
        }
    }
}

/// The registers as they were.
fn kept(record: &[u32; 8]) -> [u32; 4] {
    [record[4], record[5], record[6], record[7]]
}

fn on(exec: u32, lane: usize) -> bool {
    exec >> lane & 1 != 0
}

/// The lane that a DPP16 control reads, if it is in the row.
fn dpp16(control: u32, lane: usize) -> Option<usize> {
    let (row, at, n) = (lane & !15, lane & 15, (control & 15) as usize);
    match control {
        0..=0xff => Some((lane & !3) | (control >> (2 * (lane & 3)) & 3) as usize),
        0x101..=0x10f => (at + n < 16).then_some(lane + n),
        0x111..=0x11f => (at >= n).then(|| lane - n),
        0x121..=0x12f => Some(row | (at + 16 - n) % 16),
        0x140 => Some(row | (15 - at)),
        0x141 => Some((lane & !7) | (7 - (lane & 7))),
        0x150..=0x15f => Some(row | n),
        _ => Some(row | (at ^ n)),
    }
}

#[derive(Clone, Copy)]
struct Dpp {
    control: u32,
    rows: u32,
    banks: u32,
    bound: bool,
    fetch: bool,
}

impl Dpp {
    fn word(self, reg: u32) -> u32 {
        self.rows << 28
            | self.banks << 24
            | u32::from(self.bound) << 19
            | u32::from(self.fetch) << 18
            | self.control << 8
            | reg
    }

    /// What the lane reads of `v2`; `None` where the lane does not take part.
    fn source(self, records: &[[u32; 8]], exec: u32, lane: usize) -> Option<u32> {
        let masked = self.rows >> (lane / 16) & 1 == 0 || self.banks >> (lane % 16 / 4) & 1 == 0;
        if !on(exec, lane) || masked {
            return None;
        }
        match dpp16(self.control, lane).filter(|&from| self.fetch || on(exec, from)) {
            Some(from) => Some(records[from][0]),
            None => self.bound.then_some(0),
        }
    }
}

fn controls() -> impl Iterator<Item = u32> {
    (0..0x100)
        .chain(0x101..0x110)
        .chain(0x111..0x120)
        .chain(0x121..0x130)
        .chain(0x140..0x142)
        .chain(0x150..0x170)
}

#[test]
fn every_dpp16_control() {
    let mut tries = Vec::new();
    for (index, control) in controls().enumerate() {
        for (bound, fetch) in [(false, false), (true, false), (false, true), (true, true)] {
            let (rows, banks) = [(15, 15), (1, 15), (2, 7), (15, 10), (3, 1)][index % 5];
            for exec in EXECS {
                let dpp = Dpp {
                    control,
                    rows,
                    banks,
                    bound,
                    fetch,
                };
                let words = vec![enc::vop1(1, 40, 250), dpp.word(2)];
                tries.push(Try {
                    words,
                    exec,
                    expected: Box::new(move |records, lane| {
                        let mut out = kept(&records[lane]);
                        out[0] = dpp.source(records, exec, lane).unwrap_or(out[0]);
                        out
                    }),
                });
            }
        }
    }
    check(&tries);
}

/// The other uses of a permuted operand: a second source, a compare, a carry, the long form.
#[test]
fn dpp16_of_other_operations() {
    let sub = enc::code("v_sub_nc_u32", Format::Vop2);
    let long = enc::code("v_sub_nc_u32", Format::Vop3);
    let less = enc::code("v_cmp_lt_u32", Format::Vopc);
    let mut tries = Vec::new();
    for control in [0x1b, 0x101, 0x113, 0x127, 0x140, 0x141, 0x155, 0x16b] {
        for exec in EXECS {
            for (bound, fetch) in [(false, false), (true, false), (false, true)] {
                let dpp = Dpp {
                    control,
                    rows: 15,
                    banks: 13,
                    bound,
                    fetch,
                };
                let difference = move |records: &[[u32; 8]], lane: usize| {
                    let mut out = kept(&records[lane]);
                    if let Some(a) = dpp.source(records, exec, lane) {
                        out[0] = a.wrapping_sub(records[lane][1]);
                    }
                    out
                };
                tries.push(Try {
                    words: vec![enc::vop2(sub, 40, 250, 3), dpp.word(2)],
                    exec,
                    expected: Box::new(difference),
                });
                let mut words = enc::vop3(long, 40, [250, v(3), 0], Fields::default()).to_vec();
                words.push(dpp.word(2));
                tries.push(Try {
                    words,
                    exec,
                    expected: Box::new(difference),
                });
                // v_cmp_lt_u32 vcc, v2 (permuted), v3; v_mov_b32 v40, vcc_lo in all lanes.
                let mut words = vec![enc::vopc(less, 250, 3), dpp.word(2)];
                words.extend([enc::sop1(0, EXEC, int(-1)), enc::vop1(1, 40, enc::VCC)]);
                tries.push(Try {
                    words,
                    exec,
                    expected: Box::new(move |records, lane| {
                        let mut out = kept(&records[lane]);
                        out[0] = (0..32).fold(0, |mask, l| {
                            let a = dpp.source(records, exec, l);
                            mask | u32::from(a.is_some_and(|a| a < records[l][1])) << l
                        });
                        out
                    }),
                });
            }
        }
    }
    check(&tries);
}

#[test]
fn dpp8() {
    let mut random = Random(8);
    let mut tries = Vec::new();
    for _ in 0..64 {
        let select = random.next() as u32 & 0xff_ffff;
        for fetch in [false, true] {
            for exec in EXECS {
                let code = if fetch { 234 } else { 233 };
                tries.push(Try {
                    words: vec![enc::vop1(1, 40, code), select << 8 | 2],
                    exec,
                    expected: Box::new(move |records, lane| {
                        let mut out = kept(&records[lane]);
                        let from = (lane & !7) | (select >> (3 * (lane & 7)) & 7) as usize;
                        if on(exec, lane) {
                            // There is no bound control: lanes that are off read as zero.
                            out[0] = if fetch || on(exec, from) { records[from][0] } else { 0 };
                        }
                        out
                    }),
                });
            }
        }
    }
    check(&tries);
}

/// What a lane gets from another. Bit 0 of `op_sel`: lanes that are off may be read; bit 1: else zero instead of the old
/// value.
fn permuted(records: &[[u32; 8]], lane: usize, from: usize, exec: u32, op_sel: u32) -> [u32; 4] {
    let mut out = kept(&records[lane]);
    if on(exec, lane) {
        if op_sel & 1 != 0 || on(exec, from) {
            out[0] = records[from][0];
        } else if op_sel & 2 != 0 {
            out[0] = 0;
        }
    }
    out
}

#[test]
fn permutations_of_rows() {
    let mut random = Random(16);
    let mut tries = Vec::new();
    for name in ["v_permlane16_b32", "v_permlanex16_b32"] {
        let code = enc::code(name, Format::Vop3);
        let other = if name.contains('x') { 16 } else { 0 };
        for n in 0..32 {
            let select = if n == 0 { 0xfedc_ba98_7654_3210 } else { random.next() };
            for op_sel in 0..4 {
                let exec = EXECS[n % 4];
                let mut asm = Asm::default();
                asm.set(20, select as u32).set(21, (select >> 32) as u32);
                let fields = Fields {
                    op_sel,
                    ..Fields::default()
                };
                asm.put(&enc::vop3(code, 40, [v(2), 20, 21], fields));
                tries.push(Try {
                    words: asm.0,
                    exec,
                    expected: Box::new(move |records, lane| {
                        let from = ((lane & 16) ^ other) | (select >> (4 * (lane & 15)) & 15) as usize;
                        permuted(records, lane, from, exec, op_sel)
                    }),
                });
            }
        }
    }
    check(&tries);
}

/// The same with a lane's choice in a register of its own (gfx1201).
#[test]
fn permutations_of_rows_by_register() {
    let mut tries = Vec::new();
    for (name, other) in [("v_permlane16_var_b32", 0), ("v_permlanex16_var_b32", 16)] {
        let Some(code) = enc::find(name, Format::Vop3) else {
            continue;
        };
        for op_sel in 0..4 {
            for exec in EXECS {
                let fields = Fields {
                    op_sel,
                    ..Fields::default()
                };
                tries.push(Try {
                    words: enc::vop3(code, 40, [v(2), v(3), 0], fields).to_vec(),
                    exec,
                    expected: Box::new(move |records, lane| {
                        let from = ((lane & 16) ^ other) | (records[lane][1] & 15) as usize;
                        permuted(records, lane, from, exec, op_sel)
                    }),
                });
            }
        }
    }
    check(&tries);
}

#[test]
fn single_lanes() {
    let first = enc::code("v_readfirstlane_b32", Format::Vop1);
    let read = enc::code("v_readlane_b32", Format::Vop3);
    let write = enc::code("v_writelane_b32", Format::Vop3);
    let mut tries = Vec::new();
    for exec in EXECS {
        let all_on = enc::sop1(0, EXEC, int(-1));
        tries.push(Try {
            words: vec![enc::vop1(first, 20, v(2)), all_on, enc::vop1(1, 40, 20)],
            exec,
            expected: Box::new(move |records, lane| {
                let mut out = kept(&records[lane]);
                out[0] = records[if exec == 0 { 0 } else { exec.trailing_zeros() as usize }][0];
                out
            }),
        });
        for select in [0, 5, 31, 32, 63, 0xffff_ffe7u32] {
            let mut asm = Asm::default();
            asm.set(21, select)
                .put(&enc::vop3(read, 20, [v(2), 21, 0], Fields::default()));
            asm.put(&[all_on, enc::vop1(1, 40, 20)]);
            tries.push(Try {
                words: asm.0,
                exec,
                expected: Box::new(move |records, lane| {
                    let mut out = kept(&records[lane]);
                    out[0] = records[select as usize & 31][0];
                    out
                }),
            });
            let mut asm = Asm::default();
            asm.set(20, 0x1234_5678).set(21, select);
            asm.put(&enc::vop3(write, 40, [20, 21, 0], Fields::default()));
            tries.push(Try {
                words: asm.0,
                exec,
                expected: Box::new(move |records, lane| {
                    let mut out = kept(&records[lane]);
                    // Also a lane that is off.
                    if lane == select as usize & 31 {
                        out[0] = 0x1234_5678;
                    }
                    out
                }),
            });
        }
    }
    check(&tries);
}

/// What compilers make of a ballot and of a prefix count.
#[test]
fn ballots_and_prefix_counts() {
    let less = enc::code("v_cmp_lt_u32", Format::Vop3);
    let low = enc::code("v_mbcnt_lo_u32_b32", Format::Vop3);
    let high = enc::code("v_mbcnt_hi_u32_b32", Format::Vop3);
    let tries: Vec<Try> = EXECS
        .into_iter()
        .map(|exec| {
            let mut asm = Asm::default();
            asm.put(&enc::vop3(less, 20, [v(2), v(3), 0], Fields::default()));
            asm.mov(40, 20);
            asm.put(&enc::vop3(low, 41, [20, int(0), 0], Fields::default()));
            asm.put(&enc::vop3(high, 42, [20, v(41), 0], Fields::default()));
            Try {
                words: asm.0,
                exec,
                expected: Box::new(move |records, lane| {
                    let mut out = kept(&records[lane]);
                    let says = |l: usize| on(exec, l) && records[l][0] < records[l][1];
                    if on(exec, lane) {
                        out[0] = (0..32).fold(0, |mask, l| mask | u32::from(says(l)) << l);
                        out[1] = (0..lane).filter(|&l| says(l)).count() as u32;
                        out[2] = out[1];
                    }
                    out
                }),
            }
        })
        .collect();
    check(&tries);
}

#[test]
fn exchanges_through_lds_without_memory() {
    let push = enc::code("ds_permute_b32", Format::Ds);
    let pull = enc::code("ds_bpermute_b32", Format::Ds);
    let mut records = records();
    // Addresses that collide, that are no multiple of four, and that lie past the wave.
    for (lane, record) in records.iter_mut().enumerate() {
        record[1] = match lane % 4 {
            0 => record[1] % 128,
            1 => 4 * (lane as u32 / 3),
            2 => record[1],
            _ => 4 * (31 - lane as u32) + 1,
        };
    }
    let mut tries = Vec::new();
    for exec in EXECS {
        for offset in [0, 8, 127, 0xfffc] {
            let lane_of = move |address: u32| (address.wrapping_add(offset) / 4 % 32) as usize;
            tries.push(Try {
                words: enc::ds(pull, 40, 3, [2, 0], offset).to_vec(),
                exec,
                expected: Box::new(move |records, lane| {
                    let mut out = kept(&records[lane]);
                    let from = lane_of(records[lane][1]);
                    if on(exec, lane) {
                        out[0] = if on(exec, from) { records[from][0] } else { 0 };
                    }
                    out
                }),
            });
            tries.push(Try {
                words: enc::ds(push, 40, 3, [2, 0], offset).to_vec(),
                exec,
                expected: Box::new(move |records, lane| {
                    let mut out = kept(&records[lane]);
                    if on(exec, lane) {
                        // The highest of several sources wins.
                        let source = (0..32).rev().find(|&l| on(exec, l) && lane_of(records[l][1]) == lane);
                        out[0] = source.map_or(0, |l| records[l][0]);
                    }
                    out
                }),
            });
        }
    }
    check_with(&records, &tries);
}

/// The lane that `ds_swizzle_b32` reads.
fn swizzle(offset: u32, lane: u32) -> u32 {
    if offset >= 0xe000 {
        let mask = offset & 31;
        return (lane & 31).reverse_bits() >> 27 >> mask.count_ones() | lane & mask;
    }
    if offset >= 0xc000 {
        // Rotation: bit 10 tells the direction, the mask which bits stay.
        let (mask, n) = (offset & 31, offset >> 5 & 31);
        let moved = if offset >> 10 & 1 == 1 { lane + 32 - n } else { lane + n };
        return lane & mask | moved & !mask & 31;
    }
    if offset & 0x8000 != 0 {
        return lane & !3 | offset >> (2 * (lane & 3)) & 3;
    }
    let (and, or, xor) = (offset & 31, offset >> 5 & 31, offset >> 10 & 31);
    (lane & and | or) ^ xor
}

#[test]
fn swizzles() {
    let code = enc::code("ds_swizzle_b32", Format::Ds);
    let mut random = Random(0x5717);
    let mut offsets: Vec<u32> = vec![
        0x001f, 0x041f, 0x401f, 0x7c1f, 0x03e0, 0x8000, 0x801b, 0x80ff, 0xc000, 0xc020, 0xc420,
    ];
    offsets.extend((0..200).map(|_| random.next() as u32 & 0x7fff));
    offsets.extend((0..32).map(|_| 0x8000 | random.next() as u32 & 0xff));
    offsets.extend((0..64).map(|_| 0xc000 | random.next() as u32 & 0x7ff));
    offsets.extend((0..32).map(|mask| 0xe000 | mask));
    let tries: Vec<Try> = offsets
        .into_iter()
        .map(|offset| (enc::ds(code, 40, 2, [0, 0], offset), offset))
        // The Fourier patterns may be refused.
        .filter(|(words, offset)| *offset < 0xe000 || crate::valu::lowers(words))
        .enumerate()
        .map(|(n, (words, offset))| {
            let exec = EXECS[n % 4];
            Try {
                words: words.to_vec(),
                exec,
                expected: Box::new(move |records, lane| {
                    let mut out = kept(&records[lane]);
                    let from = swizzle(offset, lane as u32) as usize;
                    if on(exec, lane) {
                        out[0] = if on(exec, from) { records[from][0] } else { 0 };
                    }
                    out
                }),
            }
        })
        .collect();
    check(&tries);
}

#[test]
fn swaps_and_relative_registers() {
    let mut tries = Vec::new();
    let mut put = |name: &str, m0: u32, dst: u32, src: u32, result: fn(&[u32; 8]) -> [u32; 4]| {
        if !is_modelled(name) {
            return;
        }
        let code = enc::code(name, Format::Vop1);
        for exec in EXECS {
            tries.push(Try {
                words: vec![enc::sop1(0, M0, LITERAL), m0, enc::vop1(code, dst, v(src))],
                exec,
                expected: Box::new(move |records, lane| {
                    let record = &records[lane];
                    if on(exec, lane) { result(record) } else { kept(record) }
                }),
            });
        }
    };
    put("v_swap_b32", 0, 40, 41, |r| [r[5], r[4], r[6], r[7]]);
    put("v_movrels_b32", 2, 40, 41, |r| [r[7], r[5], r[6], r[7]]);
    put("v_movreld_b32", 3, 40, 41, |r| [r[4], r[5], r[6], r[5]]);
    put("v_movrelsd_b32", 2, 40, 41, |r| [r[4], r[5], r[7], r[7]]);
    put("v_movrelsd_2_b32", 3 << 16 | 1, 40, 41, |r| [r[4], r[5], r[6], r[6]]);
    put("v_swaprel_b32", 3 << 16 | 1, 40, 41, |r| [r[4], r[5], r[7], r[6]]);
    // Halves: v40.l and v41.h.
    put("v_swap_b16", 0, 40, 41 | 0x80, |r| {
        [r[4] & 0xffff_0000 | r[5] >> 16, r[5] & 0xffff | r[4] << 16, r[6], r[7]]
    });
    check(&tries);
}

pub(crate) fn ops() -> Vec<Op> {
    [
        "v_permlane16_b32",
        "v_permlanex16_b32",
        "v_permlane16_var_b32",
        "v_permlanex16_var_b32",
        "v_readfirstlane_b32",
        "v_readlane_b32",
        "v_writelane_b32",
        "ds_permute_b32",
        "ds_bpermute_b32",
        "ds_swizzle_b32",
        "v_swap_b32",
        "v_swap_b16",
        "v_swaprel_b32",
        "v_movrels_b32",
        "v_movreld_b32",
        "v_movrelsd_b32",
        "v_movrelsd_2_b32",
    ]
    .into_iter()
    .filter_map(named)
    .collect()
}
