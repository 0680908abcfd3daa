//! Attention over 16-bit floats on the matrix unit.

use super::matmul16::Half;
use crate::check::Check;
use crate::layout::{check_operand, check_output, check_rows_of_16_bytes};
use crate::{KernelResult, Kernels, MAX_DIM, Operand, SequenceLengths, Strides, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// The most elements of a query, a key or a value.
const MAX_WIDTH: usize = 256;
/// Blocks of a grid's second and third dimension.
pub(super) const MAX_BLOCKS: usize = 65_535;

/// The dimensions of attention over 16-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attention16Shape {
    /// Independent sequences: up to 65,535.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads: they divide `heads`, and query head h reads head h / (heads / kv_heads).
    pub kv_heads: usize,
    /// Queries of a sequence, or of the longest.
    pub seq_q: usize,
    /// Keys and values, likewise.
    pub seq_k: usize,
    /// Elements of a query and a key: a multiple of 8 up to 256.
    pub width_k: usize,
    /// Elements of a value: likewise.
    pub width_v: usize,
}

/// Which keys a query sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Visible {
    /// All.
    All,
    /// Query i sees key j where j <= i + seq_k - seq_q: the last query sees the last key. With a window, only where
    /// i + seq_k - seq_q - j < window.
    Causal {
        /// Keys that a query sees at most.
        window: Option<usize>,
    },
}

/// The operands of an attention.
#[derive(Debug, Clone, Copy)]
pub struct Attention16Operands<'a> {
    /// Type of `q`, `k`, `v` and `out`.
    pub ty: Half,
    /// `[batch, heads, seq_q, width_k]`. Rows of all four begin at multiples of 16 bytes.
    pub q: Operand<'a, u16>,
    /// `[batch, kv_heads, seq_k, width_k]`.
    pub k: Operand<'a, u16>,
    /// `[batch, kv_heads, seq_k, width_v]`.
    pub v: Operand<'a, u16>,
    /// `[batch, heads, seq_q, width_v]`.
    pub out: Operand<'a, u16>,
    /// `[batch, heads, seq_q]` without gaps: the logarithm of the sum of the scores' exponentials; -inf where a query sees nothing.
    pub lse: Option<&'a HipBuffer<f32>>,
    /// For sequences of different lengths, which begin at the places that strides give: each has so many queries and keys. The rows of `out` and
    /// `lse` behind them are not written, and the keys behind them are not read. In what is said of seq_q and seq_k these lengths take their place.
    pub lengths: Option<&'a SequenceLengths>,
}

/// What becomes of the scores `scale q . k`, in this order.
#[derive(Debug, Clone, Copy)]
pub struct Attention16Options<'a> {
    /// Factor of q . k.
    pub scale: f32,
    /// A score s becomes cap * tanh(s / cap).
    pub softcap: Option<f32>,
    /// `[batch, heads, seq_q, seq_k]`, added to the scores; strides of 0 repeat it.
    pub mask: Option<Operand<'a>>,
    /// ALiBi, `[heads]`: the score of query i and key j is lowered by slope (i + seq_k - seq_q - j).
    pub slopes: Option<&'a HipBuffer<f32>>,
    /// `[heads]`: one more score for each query, of a key whose value is 0.
    pub sinks: Option<&'a HipBuffer<f32>>,
    /// Keys that are not visible have no score.
    pub visible: Visible,
}

impl Attention16Options<'_> {
    /// 1 / sqrt(width_k), and nothing else.
    pub fn new(width_k: usize, visible: Visible) -> Self {
        Self {
            scale: 1.0 / (width_k as f32).sqrt(),
            softcap: None,
            mask: None,
            slopes: None,
            sinks: None,
            visible,
        }
    }

    /// Whether a score is only scaled, by a factor that keeps the scores' order and their differences finite: those kernels look for the largest
    /// product, and scale it afterwards.
    pub(super) fn plain(&self) -> bool {
        let unchanged = self.softcap.is_none() && self.mask.is_none() && self.slopes.is_none() && self.sinks.is_none();
        unchanged && (f32::MIN_POSITIVE..=1e20).contains(&self.scale)
    }
}

/// `Attention16` of attention16.h.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct Problem {
    pub(super) seq: [u32; 2],
    pub(super) heads: [u32; 2],
    pub(super) widths: [u32; 2],
    causal: u32,
    window: u32,
    offset: i32,
    scale: f32,
    softcap: f32,
    none: u32,
    strides: [Strides; 4],
    mask: Strides,
}

/// A compiled size: names of its kernels without and with what changes scores, queries of a block, and the same kernel for Hopper.
struct Variant {
    plain: &'static str,
    extra: &'static str,
    queries: u32,
    hopper: Option<Hopper>,
}

#[derive(Clone, Copy)]
struct Hopper {
    name: &'static str,
    queries: u32,
    lds: u32,
}

impl Hopper {
    /// Groups of 64 queries; heads of up to `width` elements. In LDS: the queries, two tiles of 128 keys and two of values, barriers, and what
    /// aligns them.
    const fn new(name: &'static str, groups: u32, width: u32) -> Self {
        let queries = 64 * groups;
        Self {
            name,
            queries,
            lds: (queries + 4 * 128) * width * 2 + 8 * (4 * 2 + 1) + 1024,
        }
    }
}

macro_rules! variant {
    ($ty:literal, $width:literal, $queries:literal) => {
        Variant {
            plain: concat!("attention16_", $ty, "_d", $width),
            extra: concat!("attention16_", $ty, "_extra_d", $width),
            queries: $queries,
            hopper: None,
        }
    };
    ($ty:literal, $width:literal, $queries:literal, hopper $groups:literal) => {
        Variant {
            hopper: Some(Hopper::new(
                concat!("attention16_hopper_", $ty, "_d", $width),
                $groups,
                $width,
            )),
            ..variant!($ty, $width, $queries)
        }
    };
}

fn variant(ty: Half, width: u32) -> Variant {
    match (ty, width) {
        (Half::F16, ..=64) => variant!("f16", 64, 64, hopper 3),
        (Half::F16, ..=128) => variant!("f16", 128, 64, hopper 2),
        (Half::F16, _) => variant!("f16", 256, 32),
        (Half::Bf16, ..=64) => variant!("bf16", 64, 64, hopper 3),
        (Half::Bf16, ..=128) => variant!("bf16", 128, 64, hopper 2),
        (Half::Bf16, _) => variant!("bf16", 256, 32),
    }
}

/// The family of the kernels of a type: those that only scale scores, or those with masks, caps, slopes and sinks.
const fn family_of(ty: Half, plain: bool) -> &'static str {
    match (ty, plain) {
        (Half::F16, true) => "attention16_f16",
        (Half::F16, false) => "attention16_f16_extra",
        (Half::Bf16, true) => "attention16_bf16",
        (Half::Bf16, false) => "attention16_bf16_extra",
    }
}

impl Kernels {
    /// `out[b, h, i] = sum_j softmax_j(score(b, h, i, j)) v[b, h', j]` over the visible keys j, with scores and sums in f32 on the matrix unit and
    /// weights rounded to the operands' type. A query that sees nothing gives zeros. Keys that no query sees are not read; of those beside
    /// visible ones, values must be finite.
    ///
    /// On Hopper by wgmma where a score is only scaled and heads have up to 128 elements.
    ///
    /// # Errors
    ///
    /// Strides that leave a buffer, rows that begin at no multiple of 16 bytes, widths that are no multiple of 8 or over 256, elements of `out` that
    /// share a place, lengths of another batch or over seq_q and seq_k, heads that `kv_heads` does not divide, wrong lengths, overlap of an output, a dimension of 0 or over its limit,
    /// a number that makes no sense; [`KernelError::NotForDevice`](crate::KernelError::NotForDevice) on NVIDIA cards before 8.0, and for widths over 128 in bf16 on gfx1030.
    pub fn attention16(
        &self,
        stream: &HipStream,
        operands: Attention16Operands<'_>,
        shape: Attention16Shape,
        options: Attention16Options<'_>,
    ) -> KernelResult<()> {
        let (check, o) = (Check("attention16"), operands);
        let Checked { problem, lengths } = checked(check, operands, shape, options)?;
        let [heads, batch] = [problem.heads[0], shape.batch as u32];
        let variant = variant(o.ty, problem.widths[0].max(problem.widths[1]));
        let args = LaunchArgs::new().buffer(o.q.buffer).buffer(o.k.buffer);
        let args = args.buffer(o.v.buffer).out(o.out.buffer).out_or_null(o.lse);
        let args = args.buffer_or_null(lengths);
        let hopper = match variant.hopper {
            Some(hopper) if options.plain() && self.has("attention16_hopper", hopper.name)? => Some(hopper),
            _ => None,
        };
        let (family, name, queries, lds) = match hopper {
            Some(hopper) => ("attention16_hopper", hopper.name, hopper.queries, hopper.lds),
            None if options.plain() => (family_of(o.ty, true), variant.plain, variant.queries, 0),
            None => (family_of(o.ty, false), variant.extra, variant.queries, 0),
        };
        let args = match options.plain() {
            true => args,
            false => args
                .buffer_or_null(options.mask.map(|mask| mask.buffer))
                .buffer_or_null(options.slopes)
                .buffer_or_null(options.sinks),
        };
        let args = args.value(problem);
        let blocks = check.dim_to("blocks of queries", shape.seq_q.div_ceil(queries as usize), MAX_BLOCKS)?;
        let threads = self.kernel(family, name)?.meta().max_workgroup_size;
        let config = geometry::config([heads, batch, blocks], threads).with_dynamic_lds(lds);
        // SAFETY: strides stay inside of their operands and rows begin at multiples of 16 bytes, widths are multiples of 8 up to the kernel's,
        // outputs overlap nothing and have no two elements in one place, vectors have a number for each head: checked above.
        unsafe { self.launch(stream, family, name, config, args) }
    }
}

/// What the kernels take of a call that is sound.
pub(super) struct Checked<'a> {
    pub(super) problem: Problem,
    pub(super) lengths: Option<&'a HipBuffer<u32>>,
}

/// Checks the operands of an attention.
pub(super) fn checked<'a>(
    check: Check,
    operands: Attention16Operands<'a>,
    shape: Attention16Shape,
    options: Attention16Options<'_>,
) -> KernelResult<Checked<'a>> {
    let (s, o) = (shape, operands);
    check.dim_to("batch", s.batch, MAX_BLOCKS)?;
    let heads = [check.dim("heads", s.heads)?, check.dim("kv_heads", s.kv_heads)?];
    let seq = [check.dim("seq_q", s.seq_q)?, check.dim("seq_k", s.seq_k)?];
    let widths = [("width_k", s.width_k), ("width_v", s.width_v)];
    let mut padded = [0; 2];
    for (to, (name, width)) in padded.iter_mut().zip(widths) {
        *to = check.dim_to(name, width, MAX_WIDTH)?;
        check.multiple("elements of a head must be a multiple of 8", width, 8)?;
    }
    check.heads(s.heads, s.kv_heads)?;
    let out_shape = [s.batch, s.heads, s.seq_q, s.width_v];
    check_rows_of_16_bytes(check, "q", o.q, [s.batch, s.heads, s.seq_q, s.width_k])?;
    check_rows_of_16_bytes(check, "k", o.k, [s.batch, s.kv_heads, s.seq_k, s.width_k])?;
    check_rows_of_16_bytes(check, "v", o.v, [s.batch, s.kv_heads, s.seq_k, s.width_v])?;
    check_rows_of_16_bytes(check, "out", o.out, out_shape)?;
    check_output(check, "out", o.out, out_shape)?;
    for (name, input) in [("q", o.q), ("k", o.k), ("v", o.v)] {
        check.disjoint(("out", o.out.buffer), (name, input.buffer))?;
    }
    let per_head = [("slopes", options.slopes), ("sinks", options.sinks)];
    for (name, buffer) in per_head.into_iter().filter_map(|(name, b)| Some((name, b?))) {
        check.len(name, buffer, &[s.heads])?;
        check.disjoint(("out", o.out.buffer), (name, buffer))?;
    }
    let mask = options.mask;
    if let Some(mask) = mask {
        check_operand(check, "mask", mask, [s.batch, s.heads, s.seq_q, s.seq_k])?;
        check.disjoint(("out", o.out.buffer), ("mask", mask.buffer))?;
    }
    if let Some(lse) = o.lse {
        check.len("lse", lse, &[s.batch, s.heads, s.seq_q])?;
        check.disjoint(("lse", lse), ("out", o.out.buffer))?;
        for (name, input) in [("q", o.q), ("k", o.k), ("v", o.v)] {
            check.disjoint(("lse", lse), (name, input.buffer))?;
        }
        for (name, buffer) in per_head.into_iter().chain([("mask", mask.map(|m| m.buffer))]) {
            if let Some(buffer) = buffer {
                check.disjoint(("lse", lse), (name, buffer))?;
            }
        }
    }
    let lengths = match o.lengths {
        Some(lengths) => Some(lengths.for_batch(check, s.batch, [s.seq_q, s.seq_k])?),
        None => None,
    };
    check.value("scale", options.scale, |_| true, "finite")?;
    // 0 stands for none on the device.
    let softcap = match options.softcap {
        Some(cap) => check.value("softcap", cap, |cap| cap >= f32::MIN_POSITIVE, "positive and normal")?,
        None => 0.0,
    };
    let (causal, window) = match options.visible {
        Visible::All => (0, 0),
        Visible::Causal { window: None } => (1, 0),
        Visible::Causal { window: Some(window) } => (1, check.dim("window", window.min(MAX_DIM))?),
    };
    let offset = crate::layout::causal_offset(check, seq[0], seq[1])?;
    let problem = Problem {
        seq,
        heads,
        widths: padded,
        causal,
        window,
        offset,
        scale: options.scale,
        softcap,
        none: 0,
        strides: [o.q.strides, o.k.strides, o.v.strides, o.out.strides],
        mask: mask.map_or(Strides::per_batch(0), |mask| mask.strides),
    };
    Ok(Checked { problem, lengths })
}
