//! Products of matrices that are views, in batches where several share the right one.

use crate::declared::{Call, Declared};
use crate::{FloatType, KernelResult, Kernels, WeightType, geometry, reference};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[
    NT_F32,
    Declared {
        call: |c, dims| views(c, dims, FloatType::F16, true),
        ..NT_F32
    },
    Declared {
        call: |c, dims| views(c, dims, FloatType::Bf16, true),
        ..NT_F32
    },
    Declared {
        call: |c, dims| views(c, dims, FloatType::F32, false),
        ..NT_F32
    },
];

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
        let op = self.op("matmul_views");
        let s = shape;
        let name = match (ty, s.b_transposed) {
            (FloatType::F32, true) => "matmul_views_nt_f32",
            (FloatType::F16, true) => "matmul_views_nt_f16",
            (FloatType::Bf16, true) => "matmul_views_nt_bf16",
            (FloatType::F32, false) => "matmul_views_nn_f32",
            (_, false) => {
                return Err(op.mismatch(
                    "b must be transposed where its type is not f32: bytes of an element",
                    ty.bytes(),
                    FloatType::F32.bytes(),
                ));
            }
        };
        let m = op.dim("m", s.m)?;
        let (n, k) = (op.dim_to("n", s.n, MAX_ROW)?, op.dim_to("k", s.k, MAX_ROW)?);
        let batch = op.dim_to("outer * heads", op.elements("a", &[s.outer, s.heads])?, MAX_BATCH)?;
        let heads = op.dim("heads", s.heads)?;
        let mut shares = [0; 2];
        for (share, (whole, part)) in shares.iter_mut().zip([(s.outer, s.b_outer), (s.heads, s.b_heads)]) {
            op.dim("matrices of b", part)?;
            op.divides("b's matrices must divide a's", part, whole)?;
            *share = (whole / part) as u32;
        }
        let b_rows = if s.b_transposed { [s.n, s.k] } else { [s.k, s.n] };
        let of = |strides: ViewStrides| [strides.outer as u64, strides.head as u64, strides.row as u64, 1];
        let matrices = [s.b_outer, s.b_heads, b_rows[0], b_rows[1]];
        let op = op
            .read_elements("a", (a, size_of::<f32>()), of(a_strides), [s.outer, s.heads, s.m, s.k])?
            .read_elements("b", (b, ty.bytes()), of(b_strides), matrices)?;
        let mut rows = [0, 0, n];
        for (row, (strides, cols)) in rows.iter_mut().zip([(a_strides, s.k), (b_strides, b_rows[1])]) {
            *row = op.dim_to("row stride", strides.row, MAX_ROW)?;
            op.holds(
                strides.row >= cols,
                "rows must not overlap: stride and columns",
                strides.row,
                cols,
            )?;
        }
        let matrix = (s.m * s.n) as u64;
        let pair = |strides: ViewStrides| [strides.outer as u64, strides.head as u64];
        op.read_or_null("bias", bias, &[s.n])?
            .write("y", y, &[s.outer, s.heads, s.m, s.n], &[])?
            .value(Views {
                sizes: [m, n, k],
                rows,
                heads,
                shares,
                none: 0,
                batches: [pair(a_strides), pair(b_strides), [matrix * s.heads as u64, matrix]],
            })
            .run(stream, "matmul_views", (name, geometry::gemm(m, n, batch)))
    }
}

/// Batches of heads and heads of a, of b, then m, n and k.
const NT_F32: Declared = Declared {
    name: "matmul_views",
    call: |c, dims| views(c, dims, FloatType::F32, true),
    tested: &[
        &[1, 1, 1, 1, 1, 1, 1],
        &[4, 1, 2, 1, 7, 129, 40],
        &[2, 6, 2, 3, 65, 5, 31],
        &[2, 4, 1, 2, 3, 33, 65],
    ],
    counted: &[&[1, 4, 1, 2, 64, 64, 64]],
    ..Declared::NEW
};

/// With a bias where n is odd. Heads lie as projections leave them, `[outer, rows, heads, columns]`; behind each is room for three columns,
/// unless k is a multiple of 64.
fn views(c: &mut Call<'_>, dims: &[usize], ty: FloatType, b_transposed: bool) -> KernelResult<()> {
    let &[outer, heads, b_outer, b_heads, m, n, k] = dims else {
        return Ok(());
    };
    let shape = ViewsShape {
        outer,
        heads,
        b_outer,
        b_heads,
        m,
        n,
        k,
        b_transposed,
    };
    let gap = if k.is_multiple_of(64) { 0 } else { 3 };
    let strides = |heads: usize, rows: usize, cols: usize| ViewStrides {
        outer: rows * heads * (cols + gap),
        head: cols + gap,
        row: heads * (cols + gap),
    };
    let [b_rows, b_cols] = if b_transposed { [n, k] } else { [k, n] };
    let (of_a, of_b) = (strides(heads, m, k), strides(b_heads, b_rows, b_cols));
    let weight = match ty {
        FloatType::F32 => WeightType::F32,
        FloatType::F16 => WeightType::F16,
        FloatType::Bf16 => WeightType::Bf16,
    };
    let a = c.input("a", (outer * of_a.outer).saturating_sub(gap), -1.0..1.0)?;
    let b = c.weights("b", weight, (b_outer * of_b.outer).saturating_sub(gap))?;
    let bias = c.input_bias(n % 2 == 1, n)?;
    let y = c.output("y", outer * heads * m * n)?;
    c.kernels
        .matmul_views(c.stream, (&a, of_a), (ty, &b, of_b), bias.as_ref(), &y, shape)?;
    c.expect("y", 1e-4, |c| {
        let (a, b) = (c.f32("a"), reference::float_values(ty, c.u8("b")));
        let element = |at: usize| {
            let (z, i, j) = (at / (m * n), at / n % m, at % n);
            let (o, h) = (z / heads, z % heads);
            let left = o * of_a.outer + h * of_a.head + i * of_a.row;
            let right = o * b_outer / outer * of_b.outer + h * b_heads / heads * of_b.head;
            let right = |e: usize| {
                right
                    + if b_transposed {
                        j * of_b.row + e
                    } else {
                        e * of_b.row + j
                    }
            };
            let sum: f64 = (0..k).map(|e| f64::from(a[left + e]) * b[right(e)]).sum();
            sum + if n % 2 == 1 { f64::from(c.f32("bias")[j]) } else { 0.0 }
        };
        (0..outer * heads * m * n).map(element).collect()
    });
    Ok(())
}
