//! Encodings by mnemonic, found by asking the decoder about every opcode of every format; and the words of instructions.
//! All of them of the instruction set that these tests are compiled for, [`ARCH`].

use crate::ARCH;
use rocmforge_isa::{Arch, DecodeError, Format, Inst, Op, decode_for};
use std::sync::OnceLock;

/// One opcode of one format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoding {
    pub(crate) format: Format,
    pub(crate) code: u32,
    pub(crate) op: Op,
    /// The mnemonic; of gfx1201, the one that gfx1100 has for the same.
    pub(crate) name: &'static str,
}

/// What gfx1201 calls otherwise: its name, and gfx1100's. AMD's pseudocode of both is the same.
const RENAMED: [(&str, &str); 9] = [
    ("s_add_co_u32", "s_add_u32"),
    ("s_sub_co_u32", "s_sub_u32"),
    ("s_add_co_i32", "s_add_i32"),
    ("s_sub_co_i32", "s_sub_i32"),
    ("s_add_co_ci_u32", "s_addc_u32"),
    ("s_sub_co_ci_u32", "s_subb_u32"),
    ("s_addk_co_i32", "s_addk_i32"),
    ("v_mad_co_u64_u32", "v_mad_u64_u32"),
    ("v_mad_co_i64_i32", "v_mad_i64_i32"),
];

fn name(op: Op) -> &'static str {
    let renamed = RENAMED.iter().find(|(name, _)| *name == op.mnemonic());
    renamed.map_or(op.mnemonic(), |(_, name)| name)
}

pub(crate) fn decode(words: &[u32], pc: u64) -> Result<Inst, DecodeError> {
    decode_for(ARCH, words, pc)
}

pub(crate) const VCC: u32 = 106;
pub(crate) const NULL: u32 = 124;
pub(crate) const M0: u32 = 125;
pub(crate) const EXEC: u32 = 126;
pub(crate) const LITERAL: u32 = 255;

/// Source field of a vector register.
pub(crate) const fn v(reg: u32) -> u32 {
    256 + reg
}

/// Source field of an inline integer.
pub(crate) const fn int(value: i32) -> u32 {
    if value >= 0 {
        128 + value as u32
    } else {
        (192 - value) as u32
    }
}

pub(crate) fn sop1(code: u32, dst: u32, src: u32) -> u32 {
    0xbe80_0000 | dst << 16 | code << 8 | src
}

pub(crate) fn sop2(code: u32, dst: u32, src0: u32, src1: u32) -> u32 {
    0x8000_0000 | code << 23 | dst << 16 | src1 << 8 | src0
}

pub(crate) fn sopc(code: u32, src0: u32, src1: u32) -> u32 {
    0xbf00_0000 | code << 16 | src1 << 8 | src0
}

pub(crate) fn sopk(code: u32, dst: u32, imm: u16) -> u32 {
    0xb000_0000 | code << 23 | dst << 16 | u32::from(imm)
}

pub(crate) fn vop1(code: u32, dst: u32, src: u32) -> u32 {
    0x7e00_0000 | dst << 17 | code << 9 | src
}

pub(crate) fn vop2(code: u32, dst: u32, src0: u32, vsrc1: u32) -> u32 {
    code << 25 | dst << 17 | vsrc1 << 9 | src0
}

pub(crate) fn vopc(code: u32, src0: u32, vsrc1: u32) -> u32 {
    0x7c00_0000 | code << 17 | vsrc1 << 9 | src0
}

/// Modifier fields of VOP3 and VOP3P; `hi` is `op_sel_hi`, `abs` is `neg_hi` in VOP3P.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Fields {
    pub(crate) neg: u32,
    pub(crate) abs: u32,
    pub(crate) op_sel: u32,
    pub(crate) hi: u32,
    pub(crate) clamp: bool,
    pub(crate) omod: u32,
}

pub(crate) fn vop3(code: u32, dst: u32, src: [u32; 3], m: Fields) -> [u32; 2] {
    [
        0xd400_0000 | code << 16 | u32::from(m.clamp) << 15 | m.op_sel << 11 | m.abs << 8 | dst,
        src[0] | src[1] << 9 | src[2] << 18 | m.omod << 27 | m.neg << 29,
    ]
}

pub(crate) fn vop3p(code: u32, dst: u32, src: [u32; 3], m: Fields) -> [u32; 2] {
    [
        0xcc00_0000 | code << 16 | u32::from(m.clamp) << 15 | (m.hi >> 2) << 14 | m.op_sel << 11 | m.abs << 8 | dst,
        src[0] | src[1] << 9 | src[2] << 18 | (m.hi & 3) << 27 | m.neg << 29,
    ]
}

/// X and Y: code, destination, first and second source. The destinations are of different parity.
pub(crate) fn vopd(x: [u32; 4], y: [u32; 4]) -> [u32; 2] {
    assert_ne!(x[1] & 1, y[1] & 1);
    [
        0xc800_0000 | x[0] << 22 | y[0] << 17 | x[3] << 9 | x[2],
        x[1] << 24 | (y[1] >> 1) << 17 | y[3] << 9 | y[2],
    ]
}

pub(crate) fn smem(code: u32, dst: u32, base: u32, offset: u32, imm: i32) -> [u32; 2] {
    let (shift, mask) = match ARCH {
        Arch::Gfx1100 => (18, 0x1f_ffff),
        Arch::Gfx1201 => (13, 0xff_ffff),
    };
    [
        0xf400_0000 | code << shift | dst << 6 | base >> 1,
        offset << 25 | (imm as u32 & mask),
    ]
}

/// `data` are the two data registers.
pub(crate) fn ds(code: u32, dst: u32, addr: u32, data: [u32; 2], offset: u32) -> [u32; 2] {
    [
        0xd800_0000 | code << 18 | offset,
        dst << 24 | data[1] << 16 | data[0] << 8 | addr,
    ]
}

/// Segment: 0 flat, 1 scratch, 2 global. `glc` makes an atomic return the old value.
pub(crate) fn flat(
    segment: u32,
    code: u32,
    dst: u32,
    addr: Option<u32>,
    data: u32,
    saddr: u32,
    imm: i32,
    glc: bool,
) -> Vec<u32> {
    let sve = u32::from(segment == 1 && addr.is_some());
    let (glc, imm, addr) = (u32::from(glc), imm as u32, addr.unwrap_or(0));
    match ARCH {
        Arch::Gfx1100 => vec![
            0xdc00_0000 | code << 18 | segment << 16 | glc << 14 | (imm & 0x1fff),
            dst << 24 | sve << 23 | saddr << 16 | data << 8 | addr,
        ],
        Arch::Gfx1201 => vec![
            0xec00_0000 | segment << 24 | code << 14 | saddr,
            data << 23 | glc << 20 | sve << 17 | dst,
            imm << 8 | addr,
        ],
    }
}

/// Fields of a buffer instruction.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Buffer {
    /// Destination of a load, otherwise data.
    pub(crate) data: u32,
    pub(crate) address: u32,
    /// First of four scalar registers.
    pub(crate) descriptor: u32,
    /// A source field.
    pub(crate) soffset: u32,
    pub(crate) offset: u32,
    pub(crate) offen: bool,
    pub(crate) idxen: bool,
    /// An atomic gives the old value.
    pub(crate) returns: bool,
}

pub(crate) fn buffer(code: u32, b: Buffer) -> Vec<u32> {
    let (offen, idxen, returns) = (u32::from(b.offen), u32::from(b.idxen), u32::from(b.returns));
    match ARCH {
        Arch::Gfx1100 => vec![
            0xe000_0000 | code << 18 | returns << 14 | b.offset & 0xfff,
            b.soffset << 24 | idxen << 23 | offen << 22 | b.descriptor / 4 << 16 | b.data << 8 | b.address,
        ],
        Arch::Gfx1201 => vec![
            0xc400_0000 | code << 14 | b.soffset,
            idxen << 31 | offen << 30 | 1 << 23 | returns << 20 | b.descriptor << 9 | b.data,
            b.offset << 8 | b.address,
        ],
    }
}

/// Operands of an operation on an image: `addresses` registers from `address` on.
#[derive(Clone, Copy, Default)]
pub(crate) struct Image {
    pub(crate) data: u32,
    pub(crate) address: u32,
    pub(crate) addresses: u32,
    pub(crate) descriptor: u32,
    pub(crate) sampler: u32,
    /// Their number in instructions.
    pub(crate) dimensions: u32,
    pub(crate) parts: u32,
}

/// A sample, or a load or store.
pub(crate) fn image(code: u32, sample: bool, i: Image) -> Vec<u32> {
    match ARCH {
        Arch::Gfx1100 => vec![
            0xf000_0000 | code << 18 | i.parts << 8 | i.dimensions << 2,
            i.sampler / 4 << 26 | i.descriptor / 4 << 16 | i.data << 8 | i.address,
        ],
        Arch::Gfx1201 => {
            // The last register of a sample begins a group.
            let fields = if sample { 4 } else { 5 };
            let register = |n: u32| if n < i.addresses.min(fields) { i.address + n } else { 0 };
            let top = if sample { 0xe400_0000 } else { 0xd000_0000 };
            let high = if sample { i.sampler << 23 } else { register(4) << 24 };
            vec![
                top | i.parts << 22 | code << 14 | i.dimensions,
                high | i.descriptor << 9 | i.data,
                register(0) | register(1) << 8 | register(2) << 16 | register(3) << 24,
            ]
        }
    }
}

/// An instruction of this opcode with the plainest operands.
pub(crate) fn plain(format: Format, code: u32) -> Vec<u32> {
    match format {
        Format::Sop1 => vec![sop1(code, 4, 6), 0],
        Format::Sop2 => vec![sop2(code, 4, 6, 8), 0],
        Format::Sopc => vec![sopc(code, 6, 8)],
        Format::Sopk => vec![sopk(code, 4, 0x201), 0],
        Format::Sopp => vec![0xbf80_0000 | code << 16],
        Format::Smem => smem(code, 16, 4, NULL, 0).to_vec(),
        Format::Vop1 => vec![vop1(code, 4, v(6))],
        Format::Vop2 => vec![vop2(code, 4, v(6), 8), 0],
        Format::Vopc => vec![vopc(code, v(6), 8)],
        Format::Vop3 => vop3(code, 4, [v(6), v(8), v(10)], Fields::default()).to_vec(),
        Format::Vop3sd => vop3(code, 4, [v(6), v(8), 10], Fields::default()).to_vec(),
        Format::Vop3p => {
            let m = Fields {
                hi: 7,
                ..Fields::default()
            };
            vop3p(code, 4, [v(6), v(16), v(24)], m).to_vec()
        }
        Format::Ds => ds(code, 4, 6, [8, 10], 0).to_vec(),
        Format::Flat => flat(0, code, 4, Some(6), 8, NULL, 0, false),
        Format::Scratch => flat(1, code, 4, Some(6), 8, NULL, 0, false),
        Format::Global => flat(2, code, 4, Some(6), 8, NULL, 0, false),
        Format::Mubuf => buffer(
            code,
            Buffer {
                data: 4,
                address: 6,
                descriptor: 8,
                soffset: 12,
                offen: true,
                ..Buffer::default()
            },
        ),
        Format::Image => image(code, false, PLAIN_IMAGE),
        Format::Vopd => Vec::new(),
    }
}

const PLAIN_IMAGE: Image = Image {
    data: 4,
    address: 6,
    addresses: 2,
    descriptor: 8,
    sampler: 0,
    dimensions: 1,
    parts: 1,
};

/// Other ways to write it, where the decoder does not take fields that an opcode leaves alone.
fn attempts(format: Format, code: u32) -> Vec<Vec<u32>> {
    let none = Fields::default();
    let mut all = vec![plain(format, code)];
    match format {
        Format::Sop1 => all.extend([vec![sop1(code, 4, 0)], vec![sop1(code, 0, 6)], vec![sop1(code, 0, 0)]]),
        Format::Vop1 => all.extend([vec![vop1(code, 0, 0)], vec![vop1(code, 0, v(0))]]),
        Format::Sopk => all.extend([
            vec![sopk(code, 0, 0)],
            vec![sopk(code, 124, 0)],
            vec![sopk(code, 0, 0x201), 0],
        ]),
        Format::Vop3 | Format::Vop3sd => {
            for src in [
                [v(6), v(8), v(10)],
                [v(6), v(8), 10],
                [v(6), v(8), 0],
                [v(6), 8, 10],
                [v(6), 8, 0],
                [8, 8, 0],
                [v(6), 0, 0],
                [0, 0, 0],
            ] {
                for dst in [4, EXEC, 0] {
                    all.push(vop3(code, dst, src, none).to_vec());
                }
            }
        }
        Format::Vop3p => {
            for hi in [7, 3, 0] {
                for src in [[v(6), v(16), v(24)], [v(6), v(16), 0]] {
                    all.push(vop3p(code, 4, src, Fields { hi, ..none }).to_vec());
                }
            }
        }
        Format::Smem => all.extend([0, NULL].map(|offset| smem(code, 0, 0, offset, 0).to_vec())),
        Format::Ds => {
            for dst in [4, 0] {
                for addr in [6, 0] {
                    for data in [[8, 10], [8, 0], [0, 0]] {
                        all.push(ds(code, dst, addr, data, 0).to_vec());
                    }
                }
            }
            // Global wave sync has the bit of the global data share, and at most one operand.
            for addr in [6, 0] {
                let [first, second] = ds(code, 0, addr, [0, 0], 0);
                all.push(vec![first | 1 << 17, second]);
            }
        }
        Format::Mubuf => {
            let quad = Buffer {
                descriptor: 8,
                ..Buffer::default()
            };
            // Loads into LDS have no data, and invalidations nothing at all.
            all.extend([quad, Buffer::default()].map(|fields| buffer(code, fields)));
            let returns = Buffer { returns: true, ..quad };
            all.push(buffer(code, returns));
        }
        Format::Image => {
            for addresses in [2, 3, 4, 6] {
                let load = Image {
                    addresses,
                    ..PLAIN_IMAGE
                };
                let sample = Image { sampler: 16, ..load };
                all.extend([image(code, false, load), image(code, true, sample)]);
            }
        }
        Format::Flat | Format::Scratch | Format::Global => {
            let segment = match format {
                Format::Flat => 0,
                Format::Scratch => 1,
                _ => 2,
            };
            for dst in [4, 0] {
                for data in [8, 0] {
                    for saddr in [NULL, 4] {
                        for addr in [Some(6), None] {
                            for glc in [false, true] {
                                all.push(flat(segment, code, dst, addr, data, saddr, 0, glc));
                            }
                        }
                    }
                }
            }
        }
        _ => {}
    }
    all
}

/// Every opcode the decoder knows, with the words of an instruction that has it.
pub(crate) fn all() -> &'static [(Encoding, Vec<u32>)] {
    static ALL: OnceLock<Vec<(Encoding, Vec<u32>)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let (scalar_loads, memory) = match ARCH {
            Arch::Gfx1100 => (256, 128),
            Arch::Gfx1201 => (64, 256),
        };
        let formats = [
            (Format::Sop1, 256),
            (Format::Sop2, 128),
            (Format::Sopc, 128),
            (Format::Sopk, 32),
            (Format::Sopp, 128),
            (Format::Smem, scalar_loads),
            (Format::Vop1, 256),
            (Format::Vop2, 64),
            (Format::Vopc, 256),
            (Format::Vop3, 1024),
            (Format::Vop3p, 128),
            (Format::Ds, 256),
            (Format::Flat, memory),
            (Format::Scratch, memory),
            (Format::Global, memory),
            (Format::Mubuf, 256),
            (Format::Image, 256),
        ];
        let mut found = Vec::new();
        for (format, count) in formats {
            for code in 0..count {
                let decoded = attempts(format, code).into_iter().find_map(|words| {
                    let inst = decode(&words, 0).ok()?;
                    (inst.format == format || inst.format == Format::Vop3sd).then_some((inst, words))
                });
                if let Some((inst, mut words)) = decoded {
                    words.truncate(inst.size as usize / 4);
                    let encoding = Encoding {
                        format: inst.format,
                        code,
                        op: inst.op,
                        name: name(inst.op),
                    };
                    found.push((encoding, words));
                }
            }
        }
        found
    })
}

/// The opcode of a mnemonic in a format.
pub(crate) fn find(name: &str, format: Format) -> Option<u32> {
    all()
        .iter()
        .find(|(e, _)| e.format == format && e.name == name)
        .map(|(e, _)| e.code)
}

/// The same where it has to exist.
pub(crate) fn code(name: &str, format: Format) -> u32 {
    find(name, format).unwrap_or_else(|| panic!("{name} has no {format:?} encoding"))
}
