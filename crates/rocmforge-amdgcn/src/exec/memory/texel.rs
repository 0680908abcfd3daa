//! Texels: elements of typed buffers and images, in the formats that descriptors name by a number.
//!
//! The numbers are those of the table of formats in AMD's RDNA3 and RDNA4 guides, which are the same. Formats whose parts are of one size,
//! 8, 16 or 32 bits, are modelled; packed, compressed and sRGB ones are not.

use crate::exec::code::operands::Refused;
use crate::exec::number::num::{f32_to_half, half_to_f32};

/// What the bits of a part are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A fraction of the largest number.
    Unorm,
    Snorm,
    /// An integer that a shader sees as a float.
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Float,
}

/// A format of texels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Format {
    /// Bits of a part.
    bits: u32,
    /// How many parts a texel has.
    pub(crate) parts: usize,
    pub(crate) kind: Kind,
}

/// Bytes of the largest texel.
pub(crate) const LARGEST: usize = 16;

/// The kinds of a row of the table, in its order. Rows of 8 bits lack the last, those of 32 bits have the last three.
const KINDS: [Kind; 7] = [
    Kind::Unorm,
    Kind::Snorm,
    Kind::Uscaled,
    Kind::Sscaled,
    Kind::Uint,
    Kind::Sint,
    Kind::Float,
];

/// The first number of a row, bits of a part, and parts.
const ROWS: [(u32, u32, usize); 10] = [
    (1, 8, 1),
    (7, 16, 1),
    (14, 8, 2),
    (20, 32, 1),
    (23, 16, 2),
    (42, 8, 4),
    (48, 32, 2),
    (51, 16, 4),
    (58, 32, 3),
    (61, 32, 4),
];

impl Format {
    /// The format of a number.
    pub(crate) fn of(number: u32) -> Result<Self, Refused> {
        let mut found = None;
        for (first, bits, parts) in ROWS {
            let kinds = match bits {
                8 => &KINDS[..6],
                16 => &KINDS[..],
                _ => &KINDS[4..],
            };
            let kind = (number.checked_sub(first)).and_then(|n| kinds.get(n as usize));
            found = found.or(kind.map(|&kind| Self { bits, parts, kind }));
        }
        found.ok_or("a packed, compressed or unknown format of texels (FORMAT)")
    }

    /// Bytes of a texel.
    pub(crate) fn bytes(self) -> usize {
        self.parts * self.part_bytes()
    }

    /// Bytes of a part.
    pub(crate) fn part_bytes(self) -> usize {
        self.bits as usize / 8
    }

    /// Whether a shader sees integers.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self.kind, Kind::Uint | Kind::Sint)
    }

    /// The number 1 as a shader sees it.
    pub(crate) fn one(self) -> u32 {
        if self.is_integer() { 1 } else { 1f32.to_bits() }
    }

    /// The register that a shader gets for part `n` of a texel.
    pub(crate) fn load(self, texel: &[u8; LARGEST], n: usize) -> u32 {
        let size = self.part_bytes();
        let mut word = [0; 4];
        word[..size].copy_from_slice(&texel[n * size..][..size]);
        let raw = u32::from_le_bytes(word);
        let signed = ((raw << (32 - self.bits)) as i32) >> (32 - self.bits);
        match self.kind {
            Kind::Uint => raw,
            Kind::Sint => signed as u32,
            Kind::Unorm => ((f64::from(raw) / self.largest()) as f32).to_bits(),
            Kind::Snorm => ((f64::from(signed) / self.largest()).max(-1.0) as f32).to_bits(),
            Kind::Uscaled => (raw as f32).to_bits(),
            Kind::Sscaled => (signed as f32).to_bits(),
            Kind::Float if self.bits == 16 => half_to_f32(raw as u16).to_bits(),
            Kind::Float => raw,
        }
    }

    /// Puts a register into part `n` of a texel: floats are clamped and rounded to the nearest number, integers are clamped.
    pub(crate) fn store(self, texel: &mut [u8; LARGEST], n: usize, register: u32) -> Result<(), Refused> {
        let float = f64::from(f32::from_bits(register));
        // What is not a number becomes 0.
        let scaled = |low: f64| (float.clamp(low, 1.0) * self.largest()).round_ties_even() as i64;
        let raw = match self.kind {
            Kind::Uint if self.bits == 32 => register,
            Kind::Sint if self.bits == 32 => register,
            Kind::Uint => register.min((1 << self.bits) - 1),
            Kind::Sint => {
                let most = (1i32 << (self.bits - 1)) - 1;
                (register as i32).clamp(-most - 1, most) as u32
            }
            Kind::Unorm => scaled(0.0) as u32,
            Kind::Snorm => scaled(-1.0) as u32,
            Kind::Uscaled | Kind::Sscaled => return Err("a store of a float as an integer (USCALED, SSCALED)"),
            Kind::Float if self.bits == 16 => f32_to_half(f32::from_bits(register)).into(),
            Kind::Float => register,
        };
        let size = self.part_bytes();
        texel[n * size..][..size].copy_from_slice(&raw.to_le_bytes()[..size]);
        Ok(())
    }

    /// What a normalised 1 is in memory.
    fn largest(self) -> f64 {
        let bits = if self.kind == Kind::Snorm {
            self.bits - 1
        } else {
            self.bits
        };
        ((1u64 << bits) - 1) as f64
    }
}

/// What one of the four values of a texel is made of: `DST_SEL` of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Select {
    Zero,
    One,
    Part(usize),
}

impl Select {
    /// Those of the lowest 12 bits of a descriptor's fourth word.
    pub(crate) fn all(word: u32) -> Result<[Self; 4], Refused> {
        let mut all = [Self::Zero; 4];
        for (n, select) in all.iter_mut().enumerate() {
            *select = match word >> (3 * n) & 7 {
                0 => Self::Zero,
                1 => Self::One,
                part @ 4.. => Self::Part(part as usize - 4),
                _ => return Err("a reserved selection of a part (DST_SEL)"),
            };
        }
        Ok(all)
    }

    /// Which part of a format it takes; those that the format does not have are 0, and the fourth is 1.
    pub(crate) fn of(self, format: Format) -> Self {
        match self {
            Self::Part(n) if n >= format.parts => {
                if n == 3 {
                    Self::One
                } else {
                    Self::Zero
                }
            }
            other => other,
        }
    }

    /// The register that a shader gets.
    pub(crate) fn load(self, format: Format, texel: &[u8; LARGEST]) -> u32 {
        match self.of(format) {
            Self::Zero => 0,
            Self::One => format.one(),
            Self::Part(n) => format.load(texel, n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of LLVM's `tbuffer_load_format_x ... format:[BUF_FMT_...]` for gfx1100 and gfx1201.
    #[test]
    fn numbers_are_those_of_the_table() {
        for (number, bits, parts, kind) in [
            (1, 8, 1, Kind::Unorm),
            (6, 8, 1, Kind::Sint),
            (7, 16, 1, Kind::Unorm),
            (13, 16, 1, Kind::Float),
            (18, 8, 2, Kind::Uint),
            (20, 32, 1, Kind::Uint),
            (22, 32, 1, Kind::Float),
            (24, 16, 2, Kind::Snorm),
            (29, 16, 2, Kind::Float),
            (42, 8, 4, Kind::Unorm),
            (44, 8, 4, Kind::Uscaled),
            (47, 8, 4, Kind::Sint),
            (50, 32, 2, Kind::Float),
            (57, 16, 4, Kind::Float),
            (58, 32, 3, Kind::Uint),
            (63, 32, 4, Kind::Float),
        ] {
            assert_eq!(Format::of(number), Ok(Format { bits, parts, kind }), "{number}");
        }
        for number in [0, 30, 31, 32, 41, 64, 255] {
            assert!(Format::of(number).is_err(), "{number}");
        }
    }

    #[test]
    fn parts_become_what_their_kind_says() {
        let load = |number, bytes: [u8; 2]| {
            let mut texel = [0; LARGEST];
            texel[..2].copy_from_slice(&bytes);
            Format::of(number).expect("a format").load(&texel, 0)
        };
        let float = |number, bytes| f32::from_bits(load(number, bytes));
        assert_eq!(float(1, [255, 0]), 1.0);
        assert_eq!(float(1, [51, 0]), 0.2);
        assert_eq!((float(2, [0x80, 0]), float(2, [0x81, 0])), (-1.0, -1.0));
        assert_eq!(float(3, [200, 0]), 200.0);
        assert_eq!(float(4, [200, 0]), -56.0);
        assert_eq!(load(5, [200, 0]), 200);
        assert_eq!(load(6, [200, 0]) as i32, -56);
        assert_eq!(float(13, [0, 0x3e]), 1.5);
    }

    #[test]
    fn stores_clamp_and_round() {
        let store = |number, register: u32| {
            let mut texel = [0; LARGEST];
            let format = Format::of(number).expect("a format");
            format.store(&mut texel, 0, register).expect("modelled");
            u32::from_le_bytes([texel[0], texel[1], texel[2], texel[3]])
        };
        assert_eq!(store(1, 2f32.to_bits()), 255);
        assert_eq!(store(1, (-1f32).to_bits()), 0);
        assert_eq!(store(1, f32::NAN.to_bits()), 0);
        assert_eq!(store(1, 0.2f32.to_bits()), 51);
        assert_eq!(store(2, (-1f32).to_bits()), 0x81);
        assert_eq!(store(5, 300), 255);
        assert_eq!(store(6, -300i32 as u32), 0x80);
        assert_eq!(store(13, 1.5f32.to_bits()), 0x3e00);
        assert_eq!(store(22, 0xdead_beef), 0xdead_beef);
    }
}
