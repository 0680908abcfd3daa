//! Products of 16-bit floats on the matrix unit.

use super::half_rows::HalfExponents;
use crate::declared::{Again, Call, Declared};
use crate::{FloatType, KernelResult, Kernels, KvType, Operand, Strides, WeightType, geometry, reference};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[
    F16,
    Declared {
        call: |c, dims| product(c, dims, Half::F16, true),
        ..F16
    },
    Declared {
        call: |c, dims| product(c, dims, Half::Bf16, false),
        ..F16
    },
    Declared {
        call: |c, dims| product(c, dims, Half::Bf16, true),
        ..F16
    },
];

/// Blocks of a grid's third dimension.
const MAX_BATCH: usize = 65_535;
/// Rows of a for which b is read by rows.
const FEW: usize = 8;
/// Rows of b of a block that does so.
const FEW_TILE: u32 = 16;
/// Rows and columns of a block's tile.
const TILE: [u32; 2] = [128, 64];
/// Blocks that a multiprocessor has room for, by their LDS.
const RESIDENT: u32 = 2;
/// The same on Hopper.
const HOPPER_TILE: [u32; 2] = [128, 256];
/// Four steps of 64 columns of both tiles, and what aligns them.
const HOPPER_LDS: u32 = 4 * (HOPPER_TILE[0] + HOPPER_TILE[1]) * 128 + 1024;

/// A 16-bit float type. Buffers hold the bits, as `u16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Half {
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
}

/// The dimensions of `y[z] = a[z] b[z]^T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Matmul16Shape {
    /// Matrices; up to 65,535.
    pub batch: usize,
    /// Rows of a and y.
    pub m: usize,
    /// Rows of b, columns of y.
    pub n: usize,
    /// Columns of a and b: a multiple of 8.
    pub k: usize,
}

/// Where a product goes.
#[derive(Debug, Clone, Copy)]
pub enum Matmul16Output<'a> {
    /// In the type of the operands, rounded to the nearest, ties to even.
    Half(Operand<'a, u16>),
    /// As it was summed.
    F32(Operand<'a>),
}

/// A function of each element of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Matmul16Activation {
    /// The element itself.
    #[default]
    None,
    /// `x / (1 + e^-x)`.
    Silu,
    /// GELU by its tanh approximation.
    GeluTanh,
    /// GELU by the error function.
    GeluErf,
    /// `max(x, 0)`.
    Relu,
}

/// The operands of a product. `head` of the strides is not looked at: there is one.
#[derive(Debug, Clone, Copy)]
pub struct Matmul16Operands<'a> {
    /// Type of `a` and `b`.
    pub ty: Half,
    /// `[batch, m, k]`: rows begin at multiples of 16 bytes.
    pub a: Operand<'a, u16>,
    /// `[batch, n, k]`, likewise; a `batch` stride of 0 is one matrix for all.
    pub b: Operand<'a, u16>,
    /// `[n]`, added to each row of `alpha a b^T`.
    pub bias: Option<&'a HipBuffer<f32>>,
    /// `[batch, m, n]`.
    pub y: Matmul16Output<'a>,
}

/// `Gemm16` of gemm16.h.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Gemm16 {
    sizes: [u32; 3],
    activation: u32,
    rows: [u64; 3],
    batches: [u64; 3],
    alpha: f32,
    none: u32,
}

impl Kernels {
    /// `y[z] = activation(alpha a[z] b[z]^T + bias)`, summed in f32.
    ///
    /// | rows of a | kernel |
    /// |---|---|
    /// | up to 8 | `matvec16`: reads `b` once, 32 lanes to two of its rows, without the matrix unit |
    /// | more, compute capability 9.0 | `matmul16_hopper`: tiles of 128 x 256 by wgmma |
    /// | more, elsewhere | `matmul16`: tiles of 128 x 64 by mma.sync (NVIDIA from 8.0 on), WMMA or MFMA; on gfx1030 without a matrix unit |
    ///
    /// They sum in different orders, so a row of `y` may differ in its last digits with `m`; but not with `n`, the batch or strides.
    ///
    /// # Errors
    ///
    /// Strides that leave a buffer, rows of `a` or `b` that begin at no multiple of 16 bytes, `k` that is no multiple of 8, elements of `y`
    /// that share a place, a wrong length of `bias`, overlap of `y`, a dimension of 0 or over its limit, an `alpha` that is not finite;
    /// [`KernelError::NotForDevice`](crate::KernelError::NotForDevice) for more than 8 rows on NVIDIA cards before 8.0.
    pub fn matmul16(
        &self,
        stream: &HipStream,
        operands: Matmul16Operands<'_>,
        shape: Matmul16Shape,
        alpha: f32,
        activation: Matmul16Activation,
    ) -> KernelResult<()> {
        self.matmul16_scaled(stream, operands, HalfExponents::default(), shape, alpha, activation)
    }

    /// [`matmul16`](Self::matmul16) of rows with a power of two each: for one matrix, not for a batch, and always by tiles.
    pub(super) fn matmul16_scaled(
        &self,
        stream: &HipStream,
        operands: Matmul16Operands<'_>,
        exponents: HalfExponents<'_>,
        shape: Matmul16Shape,
        alpha: f32,
        activation: Matmul16Activation,
    ) -> KernelResult<()> {
        let (op, s, o) = (self.op("matmul16"), shape, operands);
        let batch = op.dim_to("batch", s.batch, MAX_BATCH)?;
        let sizes = op.dims([("m", s.m), ("n", s.n), ("k", s.k)])?;
        op.multiple("k must be a multiple of 8", s.k, 8)?;
        op.value_of("alpha", alpha, alpha.is_finite(), "finite")?;
        if exponents.a.is_some() {
            op.dim_to("batch", s.batch, 1)?;
        }
        let few = s.m <= FEW && exponents.a.is_none();
        let op = (op.read_halves("a", o.a, [s.batch, 1, s.m, s.k])?)
            .read_halves("b", o.b, [s.batch, 1, s.n, s.k])?
            .read_or_null("bias", o.bias, &[s.n])?;
        let op = match few {
            true => op,
            false => (op.read_or_null("exponents of a", exponents.a, &[s.m])?).read_or_null(
                "exponents of b",
                exponents.b,
                &[s.n],
            )?,
        };
        let shape = [s.batch, 1, s.m, s.n];
        let (y_strides, op) = match o.y {
            Matmul16Output::Half(y) => (y.strides, op.write_strided("y", y, shape)?),
            Matmul16Output::F32(y) => (y.strides, op.write_strided("y", y, shape)?),
        };
        let strides = [o.a.strides, o.b.strides, y_strides];
        let op = op.value(Gemm16 {
            sizes,
            activation: activation as u32,
            rows: strides.map(|s| s.row),
            batches: strides.map(|s| s.batch),
            alpha,
            none: 0,
        });
        let f32_out = matches!(o.y, Matmul16Output::F32(_));
        let (family, name, tile, lds) = self.matmul16_kernel(o.ty, f32_out, few.then_some(s.m))?;
        let tiles = u64::from(sizes[0].div_ceil(tile[0])) * u64::from(sizes[1].div_ceil(tile[1]));
        // More tiles than a grid can have saturate, and the launch is refused.
        let tiles = u32::try_from(tiles).unwrap_or(u32::MAX);
        let threads = self.kernel(family, name)?.meta().max_workgroup_size;
        let config = geometry::config([tiles, 1, batch], threads).with_dynamic_lds(lds);
        op.run(stream, family, (name, config))
    }

    /// Rows and columns of a block's tile in products of more than 8 rows in f16, and the blocks that run at once; `None` where there is no
    /// kernel for them.
    pub(super) fn matmul16_tiles(&self) -> KernelResult<Option<([usize; 2], usize)>> {
        let names = &NAMES[0][1];
        let units = self.backend().device().multiprocessors.max(1) as usize;
        let size = |tile: [u32; 2]| tile.map(|n| n as usize);
        if self.has("matmul16_hopper", names.hopper)? {
            return Ok(Some((size(HOPPER_TILE), units)));
        }
        let there = self.has("matmul16", names.tiles)?;
        Ok(there.then(|| (size(TILE), units * RESIDENT as usize)))
    }

    /// Family and name of the kernel for `few` rows of a or for any number, the rows and columns of its blocks' tiles, and its dynamic LDS.
    fn matmul16_kernel(
        &self,
        ty: Half,
        f32_out: bool,
        few: Option<usize>,
    ) -> KernelResult<(&'static str, &'static str, [u32; 2], u32)> {
        let names = &NAMES[usize::from(ty == Half::Bf16)][usize::from(f32_out)];
        if let Some(m) = few {
            let name = names.few[m.next_power_of_two().ilog2() as usize];
            return Ok(("matvec16", name, [FEW as u32, FEW_TILE], 0));
        }
        if self.has("matmul16_hopper", names.hopper)? {
            return Ok(("matmul16_hopper", names.hopper, HOPPER_TILE, HOPPER_LDS));
        }
        Ok(("matmul16", names.tiles, TILE, 0))
    }
}

/// The kernels of a type of operands and a type of results.
struct Names {
    /// For up to 1, 2, 4 and 8 rows.
    few: [&'static str; 4],
    tiles: &'static str,
    hopper: &'static str,
}

macro_rules! names {
    ($types:literal) => {
        Names {
            few: [
                concat!("matvec16_", $types, "_m1"),
                concat!("matvec16_", $types, "_m2"),
                concat!("matvec16_", $types, "_m4"),
                concat!("matvec16_", $types, "_m8"),
            ],
            tiles: concat!("matmul16_", $types),
            hopper: concat!("matmul16_hopper_", $types),
        }
    };
}

/// By type of the operands (f16, bf16), then of the results (the same, f32).
const NAMES: [[Names; 2]; 2] = [[names!("f16"), names!("f16_f32")], [names!("bf16"), names!("bf16_f32")]];

/// m, n and k: numbers of rows that have a kernel, and the edges of tiles.
const F16: Declared = Declared {
    name: "matmul16",
    call: |c, dims| product(c, dims, Half::F16, false),
    tested: &[
        &[1, 15, 8],
        &[2, 33, 248],
        &[3, 1, 256],
        &[8, 16, 264],
        &[9, 1, 8],
        &[16, 64, 32],
        &[129, 66, 72],
        &[4, 33, 1032],
        &[17, 65, 40],
    ],
    counted: &[
        &[1, 128, 1024],
        &[2, 128, 1024],
        &[4, 128, 1024],
        &[8, 128, 1024],
        &[256, 128, 1024],
    ],
    moved: &[&[1, 64, 1024], &[2, 64, 1024], &[4, 64, 1024], &[8, 64, 1024]],
    again: Again::Blocks,
    ..Declared::NEW
};

/// With a bias where n is odd.
fn product(c: &mut Call<'_>, dims: &[usize], ty: Half, f32_out: bool) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let (weight, float, element, unit) = match ty {
        Half::F16 => (WeightType::F16, FloatType::F16, KvType::F16, 2f64.powi(-11)),
        Half::Bf16 => (WeightType::Bf16, FloatType::Bf16, KvType::Bf16, 2f64.powi(-8)),
    };
    let (a, b) = (
        c.weights("a", weight, m * k)?.cast()?,
        c.weights("b", weight, n * k)?.cast()?,
    );
    let bias = c.input_bias(n % 2 == 1, n)?;
    let strides = |columns| Strides::heads_first(1, 1, columns);
    let (halves, floats);
    let (y, element, unit) = if f32_out {
        floats = c.output("y", m * n)?;
        (
            Matmul16Output::F32(Operand::new(&floats, strides(n))),
            KvType::F32,
            2f64.powi(-24),
        )
    } else {
        halves = c.output_bytes("y", 2 * m * n)?.cast()?;
        (Matmul16Output::Half(Operand::new(&halves, strides(n))), element, unit)
    };
    let operands = Matmul16Operands {
        ty,
        a: Operand::new(&a, strides(k)),
        b: Operand::new(&b, strides(k)),
        bias: bias.as_ref(),
        y,
    };
    let (shape, plain) = (Matmul16Shape { batch: 1, m, n, k }, Matmul16Activation::None);
    c.kernels.matmul16(c.stream, operands, shape, 1.0, plain)?;
    c.expect_typed_within("y", element, |c| {
        let values = |name| reference::float_values(float, c.u8(name));
        let sizes = |name| values(name).iter().map(|x| x.abs()).collect::<Vec<_>>();
        let largest = |x: &[f64]| x.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        let bias = (n % 2 == 1).then(|| c.f32("bias"));
        let y = reference::matmul16(&values("a"), &values("b"), bias, shape, 1.0, plain);
        // Rounding errors of a sum grow with the sizes of the products; then it is rounded.
        let sums = reference::matmul16(&sizes("a"), &sizes("b"), bias, shape, 1.0, plain);
        (5e-7 * largest(&sums) + unit * largest(&y), y)
    });
    Ok(())
}
