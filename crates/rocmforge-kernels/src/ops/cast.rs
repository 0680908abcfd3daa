//! Conversion between float types.

use crate::declared::{Call, Declared, LENGTHS};
use crate::{Half, KernelResult, Kernels, KvType, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[F32_F16, F32_BF16, F16_F32, F16_BF16, BF16_F32, BF16_F16];

/// A float type of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloatType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
}

impl FloatType {
    /// The type's name in kernels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }

    /// Of 16 bits, which one; `None` of f32.
    pub const fn half(self) -> Option<Half> {
        match self {
            Self::F32 => None,
            Self::F16 => Some(Half::F16),
            Self::Bf16 => Some(Half::Bf16),
        }
    }

    /// The type of a cache with these elements.
    pub(super) const fn kv(self) -> KvType {
        match self {
            Self::F32 => KvType::F32,
            Self::F16 => KvType::F16,
            Self::Bf16 => KvType::Bf16,
        }
    }

    /// Bytes of an element, and its alignment.
    pub const fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

impl Kernels {
    /// `y = x` in another float type, `n` elements: rounded to the nearest, ties to even; what is too large becomes infinite.
    ///
    /// # Errors
    ///
    /// The same type twice, wrong lengths, an address that is no multiple of its element, overlap, no elements.
    pub fn cast(
        &self,
        stream: &HipStream,
        (from, x): (FloatType, &HipBuffer<u8>),
        (to, y): (FloatType, &HipBuffer<u8>),
        n: usize,
    ) -> KernelResult<()> {
        let op = self.op("cast");
        let name = match (from, to) {
            (FloatType::F32, FloatType::F16) => "cast_f32_f16",
            (FloatType::F32, FloatType::Bf16) => "cast_f32_bf16",
            (FloatType::F16, FloatType::F32) => "cast_f16_f32",
            (FloatType::F16, FloatType::Bf16) => "cast_f16_bf16",
            (FloatType::Bf16, FloatType::F32) => "cast_bf16_f32",
            (FloatType::Bf16, FloatType::F16) => "cast_bf16_f16",
            _ => {
                return Err(op.mismatch(
                    "the types must differ: the bytes of an element of x and of y",
                    from.bytes(),
                    to.bytes(),
                ));
            }
        };
        op.dim_to("elements", n, usize::MAX)?;
        op.read_bytes("x", x, &[n, from.bytes()], from.bytes())?
            .write_bytes("y", y, &[n, to.bytes()], to.bytes())?
            .value(n as u64)
            .run(stream, "cast", (name, geometry::flat(n as u64)))
    }
}

const F32_F16: Declared = Declared {
    name: "cast",
    call: |c, dims| cast(c, dims, [FloatType::F32, FloatType::F16]),
    tested: LENGTHS,
    counted: &[&[1 << 14]],
    moved: &[&[1 << 14]],
    ..Declared::NEW
};
const F32_BF16: Declared = Declared {
    call: |c, dims| cast(c, dims, [FloatType::F32, FloatType::Bf16]),
    ..F32_F16
};
const F16_F32: Declared = Declared {
    call: |c, dims| cast(c, dims, [FloatType::F16, FloatType::F32]),
    ..F32_F16
};
const F16_BF16: Declared = Declared {
    call: |c, dims| cast(c, dims, [FloatType::F16, FloatType::Bf16]),
    ..F32_F16
};
const BF16_F32: Declared = Declared {
    call: |c, dims| cast(c, dims, [FloatType::Bf16, FloatType::F32]),
    ..F32_F16
};
const BF16_F16: Declared = Declared {
    call: |c, dims| cast(c, dims, [FloatType::Bf16, FloatType::F16]),
    ..F32_F16
};

/// Numbers that every type has: what rounding does has tests of its own.
fn cast(c: &mut Call<'_>, dims: &[usize], [from, to]: [FloatType; 2]) -> KernelResult<()> {
    let &[n] = dims else { return Ok(()) };
    let values: Vec<f32> = (0..n).map(|at| (at % 9) as f32 / 4.0 - 1.0).collect();
    let (x, y) = (
        c.bytes("x", quarters(from, &values))?,
        c.output_bytes("y", n * to.bytes())?,
    );
    c.kernels.cast(c.stream, (from, &x), (to, &y), n)?;
    c.expect_typed("y", to.kv(), 0.0, |_| values.into_iter().map(f64::from).collect());
    Ok(())
}

/// Multiples of 1/4 between -1 and 1 in the bytes of a type.
pub(super) fn quarters(ty: FloatType, values: &[f32]) -> Vec<u8> {
    let bytes = |&value: &f32| {
        let bits = value.to_bits();
        match ty {
            FloatType::F32 => bits.to_le_bytes().to_vec(),
            FloatType::Bf16 => ((bits >> 16) as u16).to_le_bytes().to_vec(),
            FloatType::F16 if value == 0.0 => vec![0; 2],
            FloatType::F16 => {
                // The exponents' zeros are 127 and 15.
                let exponent = ((bits >> 23 & 0xff) - 112) << 10;
                let half = bits >> 16 & 0x8000 | exponent | bits >> 13 & 0x3ff;
                (half as u16).to_le_bytes().to_vec()
            }
        }
    };
    values.iter().flat_map(bytes).collect()
}
