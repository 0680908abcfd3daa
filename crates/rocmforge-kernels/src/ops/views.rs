//! Products of matrices that are views, in batches where several share the right one.

use crate::check::Check;
use crate::{FloatType, KernelResult, Kernels, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// 64 rows of an operand must be addressable in 32 bits within a tile.
const MAX_ROW: usize = (1 << 24) - 1;
/// Blocks of a grid's third dimension.
const MAX_BATCH: usize = 65_535;

/// Distances in elements of an operand `[outer, heads, rows, columns]` whose columns are adjacent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewStrides {
    /// From a batch of heads to the next.
    pub outer: usize,
    /// From a head to the next.
    pub head: usize,
    /// From a row to the next: at most 2^24 - 1, and at least the columns.
    pub row: usize,
}

/// The products `y[o, h] = a[o, h] b[o / (outer / b_outer), h / (heads / b_heads)]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewsShape {
    /// Batches of heads of `a` and `y`.
    pub outer: usize,
    /// Heads of `a` and `y`.
    pub heads: usize,
    /// Batches of heads of `b`; divides `outer`.
    pub b_outer: usize,
    /// Heads of `b`; divides `heads`.
    pub b_heads: usize,
    /// Rows of `a` and `y`.
    pub m: usize,
    /// Columns of `y`.
    pub n: usize,
    /// Columns of `a`.
    pub k: usize,
    /// `b`'s rows are its columns: `[n, k]`.
    pub b_transposed: bool,
}

/// `Views` of matmul_views.hip.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Views {
    sizes: [u32; 3],
    rows: [u32; 3],
    heads: u32,
    shares: [u32; 2],
    none: u32,
    batches: [[u64; 2]; 3],
}

impl Kernels {
    /// `y = a b (+ bias)` for `a` in f32, `b` of type `ty` (f16 and bf16 only transposed) and `y` in f32 without gaps.
    /// Products and sums are f32.
    ///
    /// # Errors
    ///
    /// Strides that lead outside of an operand or make rows overlap, heads that do not divide, a wrong length of `y` or
    /// `bias`, a type that no kernel has, an address of `b` that is no multiple of its element, overlap, a dimension of
    /// 0 or over its limit.
    #[allow(clippy::too_many_arguments)] // operands of one product
    pub fn matmul_views(
        &self,
        stream: &HipStream,
        (a, a_strides): (&HipBuffer<f32>, ViewStrides),
        (ty, b, b_strides): (FloatType, &HipBuffer<u8>, ViewStrides),
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        shape: ViewsShape,
    ) -> KernelResult<()> {
        let check = Check("matmul_views");
        let s = shape;
        let name = match (ty, s.b_transposed) {
            (FloatType::F32, true) => "matmul_views_nt_f32",
            (FloatType::F16, true) => "matmul_views_nt_f16",
            (FloatType::Bf16, true) => "matmul_views_nt_bf16",
            (FloatType::F32, false) => "matmul_views_nn_f32",
            (_, false) => {
                return Err(check.mismatch(
                    "b must be transposed where its type is not f32: bytes of an element",
                    ty.bytes(),
                    FloatType::F32.bytes(),
                ));
            }
        };
        let m = check.dim("m", s.m)?;
        let (n, k) = (check.dim_to("n", s.n, MAX_ROW)?, check.dim_to("k", s.k, MAX_ROW)?);
        let batch = check.dim_to("outer * heads", check.elements("a", &[s.outer, s.heads])?, MAX_BATCH)?;
        let heads = check.dim("heads", s.heads)?;
        let mut shares = [0; 2];
        for (share, (whole, part)) in shares.iter_mut().zip([(s.outer, s.b_outer), (s.heads, s.b_heads)]) {
            check.dim("matrices of b", part)?;
            check.divides("b's matrices must divide a's", part, whole)?;
            *share = (whole / part) as u32;
        }
        let b_rows = if s.b_transposed { [s.n, s.k] } else { [s.k, s.n] };
        let of = |strides: ViewStrides| [strides.outer as u64, strides.head as u64, strides.row as u64, 1];
        let a_bytes = a.cast::<u8>()?;
        check.reach("a", (&a_bytes, 4), &[s.outer, s.heads, s.m, s.k], &of(a_strides))?;
        check.reach(
            "b",
            (b, ty.bytes()),
            &[s.b_outer, s.b_heads, b_rows[0], b_rows[1]],
            &of(b_strides),
        )?;
        let mut rows = [0, 0, n];
        for (row, (strides, cols)) in rows.iter_mut().zip([(a_strides, s.k), (b_strides, b_rows[1])]) {
            *row = check.dim_to("row stride", strides.row, MAX_ROW)?;
            check.holds(
                strides.row >= cols,
                "rows must not overlap: stride and columns",
                strides.row,
                cols,
            )?;
        }
        check.len("y", y, &[s.outer, s.heads, s.m, s.n])?;
        check.aligned("b", b, ty.bytes())?;
        check.disjoint(("y", y), ("a", a))?;
        check.disjoint(("y", y), ("b", b))?;
        check.bias(bias, s.n, y)?;
        let args = LaunchArgs::new().buffer(a).buffer(b).buffer_or_null(bias);
        let matrix = (s.m * s.n) as u64;
        let pair = |strides: ViewStrides| [strides.outer as u64, strides.head as u64];
        let args = args.out(y).value(Views {
            sizes: [m, n, k],
            rows,
            heads,
            shares,
            none: 0,
            batches: [pair(a_strides), pair(b_strides), [matrix * s.heads as u64, matrix]],
        });
        // SAFETY: strides stay inside of their operands, y has the shape's elements, rows are short enough, nothing
        // overlaps: checked above.
        unsafe { self.launch(stream, "matmul_views", name, geometry::gemm(m, n, batch), args) }
    }
}
