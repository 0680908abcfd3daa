//! The encodings of gfx1100 and gfx1201: where their fields lie, and which synthetic words to try.

/// An operand kind to try in a source field.
pub(crate) struct Kind {
    pub(crate) letter: char,
    pub(crate) code: u32,
    /// Words that follow: a literal or a DPP control.
    pub(crate) extra: &'static [u32],
    /// Must appear in the text, otherwise LLVM took the field for something else.
    pub(crate) shows: &'static str,
}

const fn kind(letter: char, code: u32, extra: &'static [u32], shows: &'static str) -> Kind {
    Kind {
        letter,
        code,
        extra,
        shows,
    }
}

pub(crate) const KINDS: &[Kind] = &[
    kind('v', 0x100 + 96, &[], "96"),
    kind('s', 96, &[], "96"),
    kind('i', 137, &[], "9"),
    kind('l', 255, &[0x1234], "0x1234"),
    kind('d', 250, &[0xff00_e405], "quad_perm"),
    kind('e', 233, &[0x1234_5605], "dpp8"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nine bits: vector or scalar.
    Any,
    /// Eight bits: scalar or constant.
    Scalar,
}

pub(crate) struct SourceField {
    pub(crate) shift: u32,
    pub(crate) kind: Source,
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Gfx1100,
    Gfx1201,
}

impl Target {
    pub(crate) const ALL: [Self; 2] = [Self::Gfx1100, Self::Gfx1201];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1201 => "gfx1201",
        }
    }

    /// Its encodings, in the order of the tables.
    pub(crate) fn classes(self) -> impl Iterator<Item = &'static Class> {
        CLASSES.iter().filter(move |class| class.targets.contains(&self))
    }
}

/// One encoding.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    /// The instruction sets that have it in this form.
    pub(crate) targets: &'static [Target],
    /// Fixed bits of the first word.
    pub(crate) fixed: u32,
    pub(crate) op_shift: u32,
    pub(crate) op_bits: u32,
    pub(crate) words: usize,
    /// Shift and width of each register field, in the order of [`Fields::reg`].
    pub(crate) regs: &'static [(u32, u32)],
    pub(crate) sources: &'static [SourceField],
    pub(crate) candidates: fn() -> Vec<Fields>,
    /// Bits that are not probed: operands whose values are checked by hand.
    pub(crate) skip: u128,
}

/// Values of an encoding's fields.
#[derive(Clone, Default, Debug)]
pub(crate) struct Fields {
    pub(crate) reg: Vec<u32>,
    pub(crate) source: Vec<u32>,
    pub(crate) bits: u128,
    pub(crate) extra: Vec<u32>,
}

/// Register numbers of the synthetic words: destination, then sources.
pub(crate) const DST: u32 = 16;
pub(crate) const SRC: [u32; 3] = [32, 48, 64];
const V: u32 = 0x100;

impl Class {
    pub(crate) fn codes(&self) -> std::ops::Range<u32> {
        match self.name {
            // The other scalar encodings have what is above.
            "SOP2" => 0..0x60,
            "SOPK" => 0..0x1d,
            _ => 0..1 << self.op_bits,
        }
    }

    pub(crate) fn encode(&self, code: u32, fields: &Fields) -> Vec<u32> {
        let mut value = u128::from(self.fixed) | u128::from(code) << self.op_shift | fields.bits;
        for (&(shift, width), &reg) in self.regs.iter().zip(&fields.reg) {
            value |= u128::from(reg & ((1 << width) - 1)) << shift;
        }
        for (source, &code) in self.sources.iter().zip(&fields.source) {
            value |= u128::from(code) << source.shift;
        }
        let mut words: Vec<u32> = (0..self.words).map(|word| (value >> (32 * word)) as u32).collect();
        words.extend(&fields.extra);
        words
    }

    /// Half of a VOPD text that belongs to the class.
    pub(crate) fn pick<'a>(&self, text: &'a str) -> &'a str {
        match (self.name, text.split_once(" :: ")) {
            ("VOPDX", Some((x, _))) => x,
            ("VOPDY", Some((_, y))) => y,
            _ => text,
        }
    }

    /// The bit with which an atomic gives back the old value.
    pub(crate) fn return_bit(&self, target: Target) -> Option<usize> {
        match (self.name, target) {
            ("FLAT" | "GLOBAL" | "BUFFER", Target::Gfx1100) => Some(14),
            ("FLAT" | "GLOBAL" | "BUFFER", Target::Gfx1201) => Some(52),
            _ => None,
        }
    }

    /// Opcodes that are left out of the tables on purpose.
    pub(crate) fn refuses(&self, text: &str) -> bool {
        match self.name {
            "MUBUF" => !text.starts_with("buffer_gl"),
            // What is typed by the instruction itself needs the conversions of images.
            "BUFFER" => text.starts_with("buffer_gl") || text.starts_with("tbuffer"),
            "IMAGE" | "SAMPLE" => !IMAGES.contains(&text.split_whitespace().next().unwrap_or_default()),
            "GWS" => !text.starts_with("ds_gws_"),
            "DS" => text.contains("gws") || text.contains("_gs_reg") || text.contains("ds_ordered_count"),
            _ => false,
        }
    }

    /// Bits that hold the opcode or an operand that shows in the text.
    pub(crate) fn operand_mask(&self, text: &str, fields: &Fields) -> u128 {
        let mut mask = self.skip | ((1 << self.op_bits) - 1) << self.op_shift;
        mask |= fixed_mask(self.fixed, self.op_shift + self.op_bits);
        let shown = registers(text);
        // Zero is the value of fields that are not used; the candidates never use register 0.
        let shows = |number: u32| number != 0 && shown.iter().any(|&(_, first, _)| first == number);
        for (&(shift, width), &reg) in self.regs.iter().zip(&fields.reg) {
            if shows(reg << u32::from(self.name == "SMEM" && shift == 0)) {
                mask |= ((1 << width) - 1) << shift;
            }
        }
        for (source, &code) in self.sources.iter().zip(&fields.source) {
            if shows(code & 0xff) {
                mask |= (if source.kind == Source::Any { 0x1ff } else { 0xff }) << source.shift;
            }
        }
        mask
    }
}

/// Everything above the opcode in the first word, and the fixed bits themselves.
fn fixed_mask(fixed: u32, above: u32) -> u128 {
    let high = if above >= 32 { 0 } else { !0u32 << above };
    u128::from(high | fixed)
}

/// Registers in a text: file, first number, count.
pub(crate) fn registers(text: &str) -> Vec<(char, u32, u32)> {
    let mut found = Vec::new();
    for word in text.split([' ', ',', '|', '-']).filter(|word| !word.is_empty()) {
        let Some(file) = word.chars().next().filter(|file| matches!(file, 'v' | 's')) else {
            continue;
        };
        // `v16.l` is a half of a register.
        let rest = word[1..].trim_end_matches(".l").trim_end_matches(".h");
        if let Ok(number) = rest.parse::<u32>() {
            found.push((file, number, 1));
        } else if let Some((first, last)) = rest
            .strip_prefix('[')
            .and_then(|r| r.strip_suffix(']')?.split_once(':'))
            && let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>())
        {
            found.push((file, first, last + 1 - first));
        }
    }
    found
}

fn fields(reg: &[u32], source: &[u32], bits: u128, extra: &[u32]) -> Fields {
    Fields {
        reg: reg.to_vec(),
        source: source.to_vec(),
        bits,
        extra: extra.to_vec(),
    }
}

/// Every choice of the registers being there or zero, richest first.
fn subsets(regs: &[u32], bits: u128) -> Vec<Fields> {
    let mut all: Vec<u32> = (0..1 << regs.len()).collect();
    all.sort_by_key(|set| std::cmp::Reverse(set.count_ones()));
    let pick = |set: u32| -> Vec<u32> {
        let chosen = |(i, &reg): (usize, &u32)| if set >> i & 1 == 1 { reg } else { 0 };
        regs.iter().enumerate().map(chosen).collect()
    };
    all.into_iter().map(|set| fields(&pick(set), &[], bits, &[])).collect()
}

fn vop3_candidates(bits: u128) -> Vec<Fields> {
    let mut out = Vec::new();
    for first in [V | SRC[0], SRC[0], 0] {
        for second in [V | SRC[1], SRC[1], 0] {
            for third in [V | SRC[2], SRC[2], 0] {
                for dst in [DST, 0] {
                    out.push(fields(&[dst], &[first, second, third], bits, &[]));
                }
            }
        }
    }
    let zeros = |f: &Fields| f.source.iter().chain(&f.reg).filter(|&&code| code == 0).count();
    let scalars = |f: &Fields| f.source.iter().filter(|&&code| code < V).count();
    out.sort_by_key(|f| (zeros(f), scalars(f)));
    out
}

fn sop(sources: usize) -> Vec<Fields> {
    let mut out = Vec::new();
    for dst in [DST, 0] {
        for literal in [&[][..], &[0x1234_5678]] {
            for source in [SRC, [SRC[0], 0, 0], [0, 0, 0]] {
                out.push(fields(&[dst], &source[..sources], 0, literal));
            }
        }
    }
    out
}

const fn any(shift: u32) -> SourceField {
    SourceField {
        shift,
        kind: Source::Any,
    }
}
const fn scalar(shift: u32) -> SourceField {
    SourceField {
        shift,
        kind: Source::Scalar,
    }
}

const VOP3_SOURCES: &[SourceField] = &[any(32), any(41), any(50)];

const BOTH: &[Target] = &Target::ALL;
const GFX11: &[Target] = &[Target::Gfx1100];
const GFX12: &[Target] = &[Target::Gfx1201];

/// Every encoding of a compute program.
#[rustfmt::skip]
pub(crate) static CLASSES: &[Class] = &[
    Class { name: "SOP2", targets: BOTH, fixed: 0x8000_0000, op_shift: 23, op_bits: 7, words: 1, regs: &[(16, 7)], sources: &[scalar(0), scalar(8)], candidates: || sop(2), skip: 0 },
    Class { name: "SOPK", targets: BOTH, fixed: 0xb000_0000, op_shift: 23, op_bits: 5, words: 1, regs: &[(16, 7)], sources: &[], candidates: || sop(0), skip: 0 },
    Class { name: "SOP1", targets: BOTH, fixed: 0xbe80_0000, op_shift: 8, op_bits: 8, words: 1, regs: &[(16, 7)], sources: &[scalar(0)], candidates: || sop(1), skip: 0 },
    Class { name: "SOPC", targets: BOTH, fixed: 0xbf00_0000, op_shift: 16, op_bits: 7, words: 1, regs: &[], sources: &[scalar(0), scalar(8)], candidates: || sop(2), skip: 0 },
    Class { name: "SOPP", targets: BOTH, fixed: 0xbf80_0000, op_shift: 16, op_bits: 7, words: 1, regs: &[], sources: &[], candidates: || sop(0), skip: 0 },
    Class { name: "SMEM", targets: GFX11, fixed: 0xf400_0000, op_shift: 18, op_bits: 8, words: 2, regs: &[(6, 7), (0, 6)], sources: &[], candidates: || { let mut all = subsets(&[DST, SRC[0] / 2], 124 << 57); all.push(Fields::default()); all }, skip: 0xfe1f_ffff_0000_0000 },
    Class { name: "SMEM", targets: GFX12, fixed: 0xf400_0000, op_shift: 13, op_bits: 6, words: 2, regs: &[(6, 7), (0, 6)], sources: &[], candidates: || { let mut all = subsets(&[DST, SRC[0] / 2], 124 << 57); all.push(Fields::default()); all }, skip: 0xfeff_ffff_0000_0000 },
    Class { name: "VOP2", targets: BOTH, fixed: 0, op_shift: 25, op_bits: 6, words: 1, regs: &[(17, 8), (9, 8)], sources: &[any(0)], candidates: || vec![fields(&[DST, SRC[1]], &[V | SRC[0]], 0, &[]), fields(&[DST, SRC[1]], &[V | SRC[0]], 0, &[0x1234])], skip: 0 },
    Class { name: "VOP1", targets: BOTH, fixed: 0x7e00_0000, op_shift: 9, op_bits: 8, words: 1, regs: &[(17, 8)], sources: &[any(0)], candidates: || vec![fields(&[DST], &[V | SRC[0]], 0, &[]), fields(&[0], &[0], 0, &[])], skip: 0 },
    Class { name: "VOPC", targets: BOTH, fixed: 0x7c00_0000, op_shift: 17, op_bits: 8, words: 1, regs: &[(9, 8)], sources: &[any(0)], candidates: || vec![fields(&[SRC[1]], &[V | SRC[0]], 0, &[])], skip: 0 },
    Class { name: "VOP3", targets: BOTH, fixed: 0xd400_0000, op_shift: 16, op_bits: 10, words: 2, regs: &[(0, 8)], sources: VOP3_SOURCES, candidates: || vop3_candidates(0), skip: 0 },
    Class { name: "VOP3P", targets: BOTH, fixed: 0xcc00_0000, op_shift: 16, op_bits: 7, words: 2, regs: &[(0, 8)], sources: VOP3_SOURCES, candidates: || vop3_candidates(0x1800_0000_0000_4000), skip: 0x1800_0000_0000_4000 },
    Class { name: "VOPDX", targets: BOTH, fixed: 0xc800_0000, op_shift: 22, op_bits: 4, words: 2, regs: &[(56, 8), (9, 8)], sources: &[any(0)], candidates: || vopd(DST, 8 << 17 | 0x180 << 32 | 40 << 49), skip: !0 },
    Class { name: "VOPDY", targets: BOTH, fixed: 0xc800_0000, op_shift: 17, op_bits: 5, words: 2, regs: &[(49, 7), (41, 8)], sources: &[any(32)], candidates: || vopd(DST / 2, 8 << 22 | 0x180 | 81 << 56), skip: !0 },
    Class { name: "DS", targets: BOTH, fixed: 0xd800_0000, op_shift: 18, op_bits: 8, words: 2, regs: &[(56, 8), (32, 8), (40, 8), (48, 8)], sources: &[], candidates: || subsets(&[DST, SRC[0], SRC[1], SRC[2]], 0), skip: 0 },
    Class { name: "GWS", targets: GFX11, fixed: 0xd802_0000, op_shift: 18, op_bits: 8, words: 2, regs: &[(32, 8)], sources: &[], candidates: || subsets(&[SRC[0]], 0), skip: 0 },
    Class { name: "FLAT", targets: GFX11, fixed: 0xdc00_0000, op_shift: 18, op_bits: 7, words: 2, regs: &[(56, 8), (32, 8), (40, 8)], sources: &[], candidates: || flat(0), skip: 0xff_0000_0000_0000 },
    Class { name: "SCRATCH", targets: GFX11, fixed: 0xdc01_0000, op_shift: 18, op_bits: 7, words: 2, regs: &[(56, 8), (32, 8), (40, 8)], sources: &[], candidates: || flat(1 << 55), skip: 0xff_0000_0000_0000 },
    Class { name: "GLOBAL", targets: GFX11, fixed: 0xdc02_0000, op_shift: 18, op_bits: 7, words: 2, regs: &[(56, 8), (32, 8), (40, 8)], sources: &[], candidates: || flat(0), skip: 0xff_0000_0000_0000 },
    Class { name: "FLAT", targets: GFX12, fixed: 0xec00_0000, op_shift: 14, op_bits: 8, words: 3, regs: &[(32, 8), (64, 8), (55, 8)], sources: &[], candidates: || vflat(0), skip: 0x7f },
    Class { name: "SCRATCH", targets: GFX12, fixed: 0xed00_0000, op_shift: 14, op_bits: 8, words: 3, regs: &[(32, 8), (64, 8), (55, 8)], sources: &[], candidates: || vflat(1 << 49), skip: 0x7f },
    Class { name: "GLOBAL", targets: GFX12, fixed: 0xee00_0000, op_shift: 14, op_bits: 8, words: 3, regs: &[(32, 8), (64, 8), (55, 8)], sources: &[], candidates: || vflat(0), skip: 0x7f },
    Class { name: "MUBUF", targets: GFX11, fixed: 0xe000_0000, op_shift: 18, op_bits: 8, words: 2, regs: &[], sources: &[], candidates: || vec![Fields::default(), fields(&[], &[], 0x8000_0000_0000_0000, &[])], skip: 0 },
    Class { name: "BUFFER", targets: GFX11, fixed: 0xe000_0000, op_shift: 18, op_bits: 8, words: 2, regs: &[(40, 8), (32, 8)], sources: &[], candidates: || buffer(16 << 48 | 8 << 56, 1 << 54, 1 << 14), skip: 0xff3f_0000_0000_0000 },
    Class { name: "BUFFER", targets: GFX12, fixed: 0xc400_0000, op_shift: 14, op_bits: 8, words: 3, regs: &[(32, 8), (64, 8)], sources: &[], candidates: || buffer(64 << 41 | 8 | 1 << 55, 1 << 62, 1 << 52), skip: 0x3f83_fe00_0040_007f },
    Class { name: "IMAGE", targets: GFX11, fixed: 0xf000_0000, op_shift: 18, op_bits: 8, words: 2, regs: &[(40, 8), (32, 8)], sources: &[], candidates: || { let mut all = image(1 << 2 | 1 << 8 | 16 << 48 | 20 << 58); all.extend(image(1 << 2 | 1 << 8 | 16 << 48)); all }, skip: 0x007f_ffff_0003_ff9d },
    Class { name: "IMAGE", targets: GFX12, fixed: 0xd000_0000, op_shift: 14, op_bits: 8, words: 3, regs: &[(32, 8), (64, 8)], sources: &[], candidates: || image(1 << 22 | 64 << 41), skip: 0xffff_ffff_ffff_feff_03c0_0077 },
    Class { name: "SAMPLE", targets: GFX12, fixed: 0xe400_0000, op_shift: 14, op_bits: 8, words: 3, regs: &[(32, 8), (64, 8)], sources: &[], candidates: || image(1 << 22 | 64 << 41 | 80 << 55), skip: 0xffff_ffff_ffff_ffff_03c0_207f },
];

/// Operations on images that the tables have. The others need levels of detail, comparisons, atomics or rays.
const IMAGES: &[&str] = &[
    "image_load",
    "image_load_mip",
    "image_store",
    "image_store_mip",
    "image_sample",
    "image_sample_l",
    "image_sample_lz",
    "image_sample_d",
    "image_sample_d_g16",
    "image_gather4_lz",
];

/// Data and the first register of an address, in an image with these descriptors.
fn image(bits: u128) -> Vec<Fields> {
    vec![fields(&[SRC[1], SRC[0]], &[], bits, &[])]
}

fn vopd(dst: u32, bits: u128) -> Vec<Fields> {
    let shapes = [(SRC[1], &[][..]), (SRC[1], &[0x1234]), (0, &[])];
    let shape = |(second, literal)| fields(&[dst, second], &[V | SRC[0]], bits, literal);
    shapes.into_iter().map(shape).collect()
}

/// Without and with the bit by which an atomic gives back the old value.
fn with_and_without(returns: u128, bits: u128) -> Vec<Fields> {
    let both = [bits, bits | returns].into_iter();
    both.flat_map(|bits| subsets(&[DST, SRC[0], SRC[1]], bits)).collect()
}

fn flat(bits: u128) -> Vec<Fields> {
    const NO_SADDR: u128 = 124 << 48;
    const GLC: u128 = 1 << 14;
    with_and_without(GLC, bits | NO_SADDR)
}

/// With data that no other operand has the place of; `fixed`: a resource descriptor and a scalar offset; `offset`: an offset in a
/// register; `returns`: atomics give the old value.
fn buffer(fixed: u128, offset: u128, returns: u128) -> Vec<Fields> {
    let mut all = Vec::new();
    for bits in [fixed | offset, fixed | offset | returns, fixed] {
        all.extend(subsets(&[SRC[1], SRC[0]], bits));
    }
    all
}

fn vflat(bits: u128) -> Vec<Fields> {
    const NO_SADDR: u128 = 124;
    const RETURN: u128 = 1 << 52;
    with_and_without(RETURN, bits | NO_SADDR)
}
