//! Products of packed weights with a few rows of 8-bit activations.

use crate::check::Check;
use crate::ops::weights::weights;
use crate::{KernelError, KernelResult, Kernels, WeightType, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// Activations that share a scale.
const BLOCK: usize = 32;
/// Bytes of a block: 32 integers, their scale and their sums.
const BLOCK_BYTES: usize = 40;
/// What the addresses of packed weights and 8-bit activations are multiples of.
const ALIGNMENT: usize = 16;
/// The most rows of activations.
const MAX_ROWS: usize = 8;
/// As for other products.
const MAX_COLUMNS: usize = (1 << 24) - 1;
/// Blocks of the grid for each multiprocessor: those that the kernels' registers leave room for on NVIDIA's cards. Each takes an even share
/// of the rows, so more would only load the activations more often.
const RESIDENT: u32 = 2;

/// A matrix of quantised weights in the order that [`Kernels::matvec_q8`] reads. It takes as many bytes as the blocks it was made of.
#[derive(Debug, Clone)]
pub struct PackedWeights {
    bytes: HipBuffer<u8>,
    ty: WeightType,
    n: u32,
    k: u32,
}

impl PackedWeights {
    /// The type of the weights.
    pub fn ty(&self) -> WeightType {
        self.ty
    }

    /// Rows: the length of a product.
    pub fn n(&self) -> usize {
        self.n as usize
    }

    /// Columns: the length of a row of activations.
    pub fn k(&self) -> usize {
        self.k as usize
    }
}

/// Rows of activations as 8-bit integers, 32 to a scale: what [`Kernels::quantize_q8`] makes.
#[derive(Debug, Clone)]
pub struct Q8Activations {
    bytes: HipBuffer<u8>,
    m: usize,
    k: usize,
}

impl Q8Activations {
    /// Bytes of `m` rows of `k`. `None` if `k` is no multiple of 32, or the product overflows.
    pub fn byte_len(m: usize, k: usize) -> Option<usize> {
        match k % BLOCK {
            0 => (k / BLOCK * BLOCK_BYTES).checked_mul(m),
            _ => None,
        }
    }

    /// Rows.
    pub fn m(&self) -> usize {
        self.m
    }

    /// Columns.
    pub fn k(&self) -> usize {
        self.k
    }
}

impl Kernels {
    /// Packs weights `[n, k]` of type `ty` into `packed`, which has as many bytes and an address that is a multiple of 16. No bit is lost.
    ///
    /// # Errors
    ///
    /// A type that is not [packable](WeightType::is_packable), wrong lengths, overlap, a dimension of 0, `k` that is no multiple of the
    /// type's block or over 2^24 - 1, 2^37 weights or more, addresses that are no multiples of 16 and of [`WeightType::alignment`].
    pub fn pack_weight(
        &self,
        stream: &HipStream,
        ty: WeightType,
        w: &HipBuffer<u8>,
        packed: HipBuffer<u8>,
        [n, k]: [usize; 2],
    ) -> KernelResult<PackedWeights> {
        let check = Check("pack_weight");
        let kernels = ty.packed().ok_or(KernelError::NotPackable { op: check.0, ty })?;
        let (rows, cols) = (check.dim_to("n", n, MAX_COLUMNS)?, check.dim_to("k", k, MAX_COLUMNS)?);
        weights(check, ty, ("w", w), [n, k])?;
        check.len("packed", &packed, &[w.len()])?;
        check.aligned("packed", &packed, ALIGNMENT)?;
        check.disjoint(("packed", &packed), ("w", w))?;
        let blocks = check.dim("blocks of 32 weights", check.elements(&[n, k / BLOCK])?)?;
        let args = LaunchArgs::new().buffer(w).out(&packed).value(u64::from(blocks));
        let config = geometry::config([blocks.div_ceil(256), 1, 1], 256);
        // SAFETY: both hold n rows of whole blocks, aligned, and are apart: checked above.
        unsafe { self.launch(stream, "pack_weights", kernels.pack, config, args) }?;
        Ok(PackedWeights {
            bytes: packed,
            ty,
            n: rows,
            k: cols,
        })
    }

    /// `x` `[m, k]` as 8-bit integers in `to`, of [`Q8Activations::byte_len`] bytes at an address that is a multiple of 16. Of 32 neighbours the
    /// largest magnitude becomes 127, the others the nearest integers. Magnitudes below 2^-100 are 0; where one of 32 is infinite or NaN,
    /// products with them are NaN.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `k` that is no multiple of 32, an address that is no multiple of 16.
    pub fn quantize_q8(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        to: HipBuffer<u8>,
        [m, k]: [usize; 2],
    ) -> KernelResult<Q8Activations> {
        let check = Check("quantize_q8");
        check.dim("m", m)?;
        check.dim_to("k", k, MAX_COLUMNS)?;
        if !k.is_multiple_of(BLOCK) {
            return Err(KernelError::Mismatch {
                op: check.0,
                what: "a row must be whole blocks",
                left: k,
                right: BLOCK,
            });
        }
        check.len("x", x, &[m, k])?;
        check.len("to", &to, &[m, k / BLOCK, BLOCK_BYTES])?;
        check.aligned("to", &to, ALIGNMENT)?;
        check.disjoint(("to", &to), ("x", x))?;
        let args = LaunchArgs::new().buffer(x).out(&to).value(x.len() as u64);
        // SAFETY: lengths are those of the shape, blocks are whole, nothing overlaps: checked above.
        unsafe { self.launch(stream, "quantize_q8", "quantize_q8", geometry::flat(x.len()), args) }?;
        Ok(Q8Activations { bytes: to, m, k })
    }

    /// `y = x w^T (+ bias) (+ residual)` for one to eight rows of activations: `x` `[m, k]`, weights `[n, k]`, `bias` `[n]`, `residual` and `y`
    /// `[m, n]`. `y` may be `residual`. Products of integers are exact; they are scaled and summed in f32.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, more than 8 rows, activations and weights that differ in `k`.
    pub fn matvec_q8(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: &Q8Activations,
        bias: Option<&HipBuffer<f32>>,
        residual: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let check = Check("matvec_q8");
        let rows = check.dim_to("m", x.m, MAX_ROWS)?;
        if x.k != w.k() {
            return Err(KernelError::Mismatch {
                op: check.0,
                what: "weights and activations must have as many columns",
                left: w.k(),
                right: x.k,
            });
        }
        check.len("y", y, &[x.m, w.n()])?;
        check.disjoint(("y", y), ("w", &w.bytes))?;
        check.disjoint(("y", y), ("x", &x.bytes))?;
        let mut args = LaunchArgs::new().buffer(&w.bytes).buffer(&x.bytes);
        args = match bias {
            Some(bias) => {
                check.len("bias", bias, &[w.n()])?;
                check.disjoint(("y", y), ("bias", bias))?;
                args.buffer(bias)
            }
            None => args.null(),
        };
        args = match residual {
            Some(residual) => {
                check.len("residual", residual, &[x.m, w.n()])?;
                check.in_place(("y", y), ("residual", residual))?;
                args.buffer(residual)
            }
            None => args.null(),
        };
        let unpackable = KernelError::NotPackable { op: check.0, ty: w.ty };
        let kernels = w.ty.packed().ok_or(unpackable)?;
        let most = kernels.matvec.iter().find(|matvec| x.m <= matvec.most);
        let matvec = most.unwrap_or(&kernels.matvec[3]); // eight: checked above
        let groups = w.n.div_ceil(matvec.rows);
        let blocks = groups.min(self.backend().device().multiprocessors.max(1) * RESIDENT);
        let args = (args.out(y).value(rows).value(w.n).value(w.k / BLOCK as u32))
            .value(groups / blocks)
            .value(groups % blocks);
        let config = geometry::config([blocks, 1, 1], 256);
        // SAFETY: weights and activations have their lengths and alignment since they were made, the other lengths are those of the
        // shapes, y overlaps nothing but a residual that is y itself: checked above. All blocks together have every group once.
        unsafe { self.launch(stream, kernels.family, matvec.name, config, args) }
    }
}
