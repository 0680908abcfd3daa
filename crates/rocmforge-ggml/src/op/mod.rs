//! The operations of a graph, with their parameters.
//!
//! An op's name ([`Op::name`]) is ggml's upper-case one; messages and graph files use it. Ops that ggml has under no such name are
//! marked "(not in ggml)".
//!
//! # Dimensions and operands: ours and ggml's
//! Shapes here are outermost first, ggml's `ne` is innermost first: `shape = [ne3, ne2, ne1, ne0]` without the leading ones that ggml
//! fills up with. A "row" is the last dimension here and `ne0` there. Strides are in elements here and in bytes (`nb`) there.
//!
//! | op | here | ggml |
//! |---|---|---|
//! | MUL_MAT | `a [.., m, k]`, `b [.., k, n]`; a stored weight `[n, k]` is a column-major `b` | `src0 [k, n]` is our `b`, `src1 [k, m]` our `a` |
//! | MUL_MAT_ID | `x`, experts, ids | experts, `x`, ids |
//! | SET_ROWS | src, dst, ids | src, ids, with dst as the view's source |
//! | SSM_CONV | state and inputs are two operands | inputs follow the state in `src0` |
//! | GATED_DELTA_NET | the state is the first operand | the state is the last |
//! | recurrent ops | two outputs: results, states | one, with the states after the results |
//! | axes of CONCAT, PERMUTE, PAD | counted from the outermost | counted from the innermost |
//! | PERMUTE | output dimension `i` is input dimension `axes[i]` | input dimension `i` becomes output dimension `axis_i` |
//! | indices | U32 or I32, for SET_ROWS also I64 | I32, for SET_ROWS I64 |

mod facts;
mod kinds;
mod parameters;
mod table;

pub(crate) use facts::{Below, Indices, Output, Rows};
pub use kinds::{DiagFill, PoolKind, SortOrder, TriKind, UpscaleMode};
pub(crate) use parameters::Fault;
pub use rocmforge_kernels::{ExpertUnit, GluKind, Route, RouteGate, Unary};
pub(crate) use table::ops;

use crate::DType;
use crate::params::{Attention, FlashAttnExt, PagedAttention, SoftMax};
use crate::rope::Rope;

/// Most dimensions of the operands of PERMUTE and PAD, whose parameters are one number for each.
pub const MAX_DIMS: usize = 4;

/// One operation. Shapes are outermost first; "rows" are all dimensions but the last. A "plain float" is F32, F16 or BF16: such ops
/// compute in f32 and give the first operand's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// GET_ROWS: `table [.., n, d]` and `ids [.., r]` to `[.., r, d]`: f32 from plain floats and block formats, the table's type
    /// from the others. A table of two dimensions takes ids of any shape; one of more dimensions has a matrix for each list of ids.
    GetRows,
    /// SET_ROWS: `src [.., n, d]`, `dst [.., rows, d]` in a plain float or a block format that can be encoded, `ids [.., n]`: row
    /// `ids[i]` of `dst` becomes row `i` of `src`. Leading dimensions of `ids` may divide those of `src` (the lists repeat). The output
    /// is a view of `dst`; who reads it reads what was written ([`crate::Graph::set_rows`]).
    SetRows,
    /// MUL_MAT: `a [.., m, k]`, `b [.., k, n]` and optionally `bias [n]` to f32 `[.., m, n]`. A weight stored as `[n, k]` is a `b` with
    /// [`crate::Layout::ColMajor`], and a block format always is. Leading dimensions of `b` divide those of `a`: with 8 matrices on the
    /// left and 2 on the right, the first 4 are multiplied by the first (grouped heads).
    MulMat,
    /// MUL_MAT_ID: `x [tokens, used or 1, k]`, `experts [n_expert, k, n]`, `ids [tokens, used]` to f32 `[tokens, used, n]`: row
    /// `[t, u]` of `x` times matrix `ids[t, u]`.
    MulMatId,
    /// ARANGE: no operand, to f32 `[n]`: `start + i * step`, where `n` is `(stop - start) / step` in f32, rounded up.
    Arange {
        /// The first element.
        start: f32,
        /// Where the elements end.
        stop: f32,
        /// Distance of the elements.
        step: f32,
    },
    /// FILL: `x` to a tensor of its shape and type, of which each element is `value`.
    Fill {
        /// Each element.
        value: f32,
    },
    /// ADD: `a + b`; `b`'s dimensions, aligned at the last, divide `a`'s and repeat.
    Add,
    /// SUB: `a - b`, as [`Op::Add`].
    Sub,
    /// MUL: `a * b`, as [`Op::Add`].
    Mul,
    /// DIV: `a / b`, as [`Op::Add`].
    Div,
    /// ADD_ID: `a [tokens, used, n]`, `b [n_expert, n]`, `ids [tokens, used]`: row `ids[t, u]` of `b` added to row `[t, u]` of `a`.
    AddId,
    /// ACC: `src`, `dst`; output `dst`: adds `src`'s elements to `dst`'s, `offset` elements from its start, in place.
    Accumulate {
        /// First element of `dst` that is changed.
        offset: usize,
    },
    /// SCALE: `a * factor`.
    Scale {
        /// The factor.
        factor: f32,
    },
    /// SCALE_BIAS: `a * factor + bias` (ggml's SCALE with a bias).
    ScaleBias {
        /// The factor.
        factor: f32,
        /// Added to the product.
        bias: f32,
    },
    /// CLAMP: `min(max(x, min), max)`.
    Clamp {
        /// Least result.
        min: f32,
        /// Largest result; at least `min`.
        max: f32,
    },
    /// SQR: `x * x`.
    Sqr,
    /// SQRT.
    Sqrt,
    /// LOG: the natural logarithm.
    Log,
    /// SIN.
    Sin,
    /// COS.
    Cos,
    /// SOFTCAP (not in ggml, which has three ops for it): `cap * tanh(x / cap)`.
    Softcap {
        /// Bound of the result's magnitude.
        cap: f32,
    },
    /// The UNARY family, each under its own name.
    Unary(Unary),
    /// The GLU family, each under its own name: `gate`, `up` of one shape to `f(gate) * up`; or one tensor `[.., 2 n]` to `[.., n]`,
    /// whose rows are both halves.
    Glu {
        /// The function `f`.
        kind: GluKind,
        /// In one tensor: the second half is the gate. Without, the first is.
        swapped: bool,
    },
    /// NORM: `x [.., d]` and optionally `weight [d]`, `bias [d]`: rows to mean 0 and variance 1, then `* weight + bias`.
    LayerNorm {
        /// Added to the variance.
        eps: f32,
    },
    /// RMS_NORM: `x [.., d]` and optionally `weight [d]`: rows divided by their root mean square, then `* weight`.
    RmsNorm {
        /// Added to the mean square.
        eps: f32,
    },
    /// L2_NORM: rows divided by `max(their 2-norm, eps)`.
    L2Norm {
        /// Least divisor.
        eps: f32,
    },
    /// SOFT_MAX: of each row of `x * scale + slope * mask`.
    SoftMax(SoftMax),
    /// DIAG_MASK_INF, DIAG_MASK_ZERO: in each matrix of `x [.., rows, cols]` the elements with `col > n_past + row` are replaced.
    DiagMask {
        /// Tokens before the first row.
        n_past: usize,
        /// By what.
        fill: DiagFill,
    },
    /// ROPE: `x [batch, seq, heads, head_dim]`, `positions [batch, seq]` or `[seq]`, and optionally `factors`, one for each pair, that
    /// divide the frequencies: rotary position embedding. With sections ([`crate::RopeStyle`]) positions are `[4, batch, seq]` or
    /// `[4, seq]`.
    Rope(Rope),
    /// FLASH_ATTN_EXT: `q [b, heads, n, hsk]`, `k [b', kv_heads, kv, hsk]`, `v [b', kv_heads, kv, hsv]` to f32 `[b, n, heads, hsv]`,
    /// with the optional operands of [`FlashAttnExt`]. `k` and `v` may be of any type of weights.
    FlashAttnExt(FlashAttnExt),
    /// ATTENTION (not in ggml: FLASH_ATTN_EXT with packed heads): `q [b, sq, heads*head_dim]`, `k`, `v [b, sk, kv_heads*head_dim]`
    /// (and a mask) to `[b, sq, heads*head_dim]`.
    Attention(Attention),
    /// PAGED_ATTENTION (not in ggml): `q [n, heads*head_dim]` of `n` tokens against a paged cache: `k`, `v [slots, kv_heads*head_dim]`
    /// in f32, f16, bf16 or q8_0, `block_table u32 [sequences, blocks]`, `sequence u32 [n]` (a token's row of the table),
    /// `positions u32 [n]`. The key at position `j` lies in slot `block_table[sequence][j / block_size] * block_size + j % block_size`;
    /// a token sees the keys up to its own position. With sinks, `sinks [heads]` come last.
    PagedAttention(PagedAttention),
    /// SSM_CONV: `state [slots, channels, taps - 1]`, `x [n, channels]` of `n` tokens, `weight [channels, taps]`, `sequence [n]`,
    /// `ids [sequences]` to f32 `[n, channels]` and the new states `[sequences, channels, taps - 1]`: each channel's convolution with the
    /// inputs before, oldest first; the state is the last of them. All operands but the indices are f32.
    ///
    /// As in the other recurrent ops, the state of sequence `s` begins as row `ids[s]` of `state`, token `t` changes the state of sequence
    /// `sequence[t]`, tokens are in their order, and a sequence without tokens keeps its state. ggml's form has as many tokens of each
    /// sequence.
    SsmConv,
    /// SSM_SCAN: `state [slots, heads, dim, n_state]`, `x [n, heads, dim]`, `dt [n, heads]`, `a [heads, 1 or n_state]`,
    /// `b`, `c [n, groups, n_state]`, `sequence`, `ids` (as in [`Op::SsmConv`]) to f32 `[n, heads, dim]` and the new states. With
    /// `d = softplus(dt)`: `state = state * exp(d a) + x d b`, the result is `state c`. Mamba 2 has one `a` for each head, Mamba 1 heads
    /// of one element.
    SsmScan,
    /// GATED_DELTA_NET: `state [slots, heads, dim_v, dim_k]`, `q`, `k [n, k_heads, dim_k]`, `v [n, heads, dim_v]`, `g [n, heads, 1 or
    /// dim_k]`, `beta [n, heads]`, `sequence`, `ids` (as in [`Op::SsmConv`]) to f32 `[n, heads, dim_v]` and the new states. The state is
    /// multiplied by `exp(g)` to S, then `beta (v - S k) k^T` is added; the result is `state q / sqrt(dim_k)`. Head `h` has
    /// the keys of head `h mod k_heads`.
    GatedDeltaNet,
    /// DELTA_NET_ROWS (not in ggml, where it is a dozen ops): [`Op::GatedDeltaNet`] from the rows of a convolution. `state [slots, heads, dim_v, dim_k]`,
    /// `x [n, 2 k_heads dim_k + heads dim_v]`: the queries and keys of `k_heads` heads, then the values of all, each before its SiLU; `beta`, `alpha [n, heads]`,
    /// `step`, `rate [heads]`, `sequence`, `ids` (as in [`Op::SsmConv`]) to f32 `[n, heads, dim_v]` and the new states. Queries and keys are divided by
    /// `sqrt(sum x^2 + eps)`; `g` is `softplus(alpha + step) rate`, and the factor of the correction `sigmoid(beta)`.
    DeltaNetRows {
        /// Added to the square of a length.
        eps: f32,
        /// The heads of one head of keys are neighbours; else they come in turn.
        neighbours: bool,
    },
    /// GROUP_NORM: `x [.., channels, h, w]`: groups of neighbouring channels to mean 0 and variance 1. The last group has fewer channels
    /// if their number is not a multiple.
    GroupNorm {
        /// Groups of each image; at most its channels.
        n_groups: usize,
        /// Added to the variance.
        eps: f32,
    },
    /// TRI: `x [.., n, n]`: a triangle of each matrix, zeros elsewhere.
    Tri {
        /// Which triangle.
        kind: TriKind,
    },
    /// SOLVE_TRI: `a [.., n, n]`, `b [.., n, k]` to the `x [.., n, k]` with `a x = b`, where of `a` the triangle below the diagonal and
    /// the diagonal are read.
    SolveTri,
    /// IM2COL: `kernel [oc, ic, kh, kw]`, of which only the shape is read, and `x [n, ic, h, w]` to `[n, oh, ow, ic * kh * kw]`: for each
    /// place of the kernel a row with the elements under it, zeros beyond the image. Vertical parameters come first.
    Im2col {
        /// Distances of the kernel's places.
        stride: [usize; 2],
        /// Zeros on each side.
        padding: [usize; 2],
        /// Distances of the elements under a kernel.
        dilation: [usize; 2],
    },
    /// CONV_2D: `kernel [oc, ic, kh, kw]`, `x [n, ic, h, w]` to `[n, oc, oh, ow]`: for each place of the kernel the sum of its products with the
    /// elements under it, zeros beyond the image. Parameters as in [`Op::Im2col`].
    Conv2d {
        /// Distances of the kernel's places.
        stride: [usize; 2],
        /// Zeros on each side.
        padding: [usize; 2],
        /// Distances of the elements under a kernel.
        dilation: [usize; 2],
    },
    /// POOL_1D: `x [.., w]` to `[.., ow]`: one element for each window. A mean is that of the elements under a window, 0 without any; one of
    /// [`Op::Pool2d`] counts places beyond the image, too.
    Pool1d {
        /// What a window becomes.
        kind: PoolKind,
        /// Size of a window.
        kernel: usize,
        /// Distance of the windows.
        stride: usize,
        /// Places beyond the row on each side.
        padding: usize,
    },
    /// POOL_2D: `x [.., h, w]` to `[.., oh, ow]`: one element for each window. Vertical parameters come first.
    Pool2d {
        /// What a window becomes.
        kind: PoolKind,
        /// Size of a window.
        kernel: [usize; 2],
        /// Distances of the windows.
        stride: [usize; 2],
        /// Places beyond the image on each side.
        padding: [usize; 2],
    },
    /// UPSCALE: `x [.., h, w]` to `[.., height, width]`.
    Upscale {
        /// How elements are found.
        mode: UpscaleMode,
        /// Rows of the result.
        height: usize,
        /// Columns of the result.
        width: usize,
    },
    /// DUP: the same elements, in row-major order.
    Dup,
    /// CONT: as [`Op::Dup`]; the name under which graphs make a view contiguous.
    Cont,
    /// CPY: the same elements in another type: plain numbers, or a block format that can be encoded. With a second input `dst` of as
    /// many elements, they go into `dst`'s memory in its type and shape, and the output is a view of `dst` ([`crate::Graph::cpy`]).
    Cpy {
        /// The output's type; `None`: the input's, or `dst`'s.
        to: Option<DType>,
    },
    /// CONCAT: `a`, `b`, which agree in all dimensions but `axis`, one after the other along it.
    Concat {
        /// The dimension, counted from the outermost.
        axis: usize,
    },
    /// REPEAT: the input, repeated to the output's shape, which is a multiple of it in each dimension ([`crate::Graph::repeat`]).
    Repeat,
    /// PAD: zeros before and after the elements, in each dimension (at most [`MAX_DIMS`]).
    Pad {
        /// Zeros before, outermost dimension first; 0 beyond the tensor's rank.
        left: [usize; MAX_DIMS],
        /// Zeros after.
        right: [usize; MAX_DIMS],
    },
    /// RESHAPE: the same elements in another shape.
    Reshape,
    /// VIEW: a part of another tensor's memory: offset, shape and strides are the output's.
    View,
    /// PERMUTE: the dimensions in another order (at most [`MAX_DIMS`]): output dimension `i` is input dimension `axes[i]`.
    Permute {
        /// A permutation; beyond the tensor's rank each is its own index.
        axes: [usize; MAX_DIMS],
    },
    /// TRANSPOSE: swaps the last two dimensions.
    Transpose,
    /// ARGMAX: `x [.., d]` to `u32 [..]`: index of the largest value of each row, the lowest on ties. NaN is never the largest.
    Argmax,
    /// ARGSORT: `x [.., d]` to `u32 [.., d]`: indices of each row in order, the lower index first on ties, NaN last.
    Argsort {
        /// Smallest or largest first.
        order: SortOrder,
    },
    /// TOP_K: `x [.., d]` to `u32 [.., k]`: indices of the `k` largest values of each row, largest first, the lower index first on ties.
    TopK {
        /// How many; at most `d`.
        k: usize,
    },
    /// ROUTE (not in ggml, where it is up to ten ops): `scores [n, experts]` and, if there is a second input, `bias [experts]`, which only
    /// chooses, to the chosen experts of each token, U32 `[n, k]`, and the factors of their results, `[n, k]`.
    Route(Route),
    /// SUM: all elements, to `[1]`.
    Sum,
    /// SUM_ROWS: `[.., d]` to `[.., 1]`.
    SumRows,
    /// MEAN: `[.., d]` to `[.., 1]`.
    Mean,
    /// CUMSUM: running sums along each row.
    Cumsum,
    /// MEAN_POOL (not in ggml): `x [b, s, d]`, `weight [b, s]` to `[b, d]`: the mean over `s`, weighted (1 for tokens, 0 for padding).
    /// Zeros where the weights sum to 0.
    MeanPool,
}

impl Op {
    /// Whether the op changes memory that exists outside its output: never removed, merged or moved. A CPY with a second input is recognised
    /// by its output, which is a view ([`crate::Graph::has_effect`]).
    #[must_use]
    pub const fn has_effect(&self) -> bool {
        matches!(self.facts().output, Output::Second | Output::SecondRead)
    }

    /// Whether a node of the op with so many inputs writes into its second input's memory, which its output is a view of.
    #[must_use]
    pub const fn writes_second_input(&self, inputs: usize) -> bool {
        self.has_effect() || (matches!(self.facts().output, Output::SecondIfAny) && inputs == 2)
    }

    /// Whether the op may produce its output by naming other memory, without computing anything.
    #[must_use]
    pub const fn may_alias(&self) -> bool {
        matches!(self.facts().output, Output::Alias)
    }
}
