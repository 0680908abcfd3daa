//! Attention over 16-bit floats on the matrix unit.

use super::matmul16::Half;
use crate::check::Check;
use crate::declared::{Call, Declared};
use crate::launch::Launch;
use crate::{KernelResult, Kernels, KvType, MAX_DIM, Operand, SequenceLengths, Strides, geometry, reference};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream};

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
        let (op, o, s) = (self.op("attention16"), operands, shape);
        let problem = problem(op.check(), operands, shape, options)?;
        let [heads, batch] = [problem.heads[0], s.batch as u32];
        let variant = variant(o.ty, problem.widths[0].max(problem.widths[1]));
        let hopper = match variant.hopper {
            Some(hopper) if options.plain() && self.has("attention16_hopper", hopper.name)? => Some(hopper),
            _ => None,
        };
        let (family, name, queries, lds) = match hopper {
            Some(hopper) => ("attention16_hopper", hopper.name, hopper.queries, hopper.lds),
            None if options.plain() => (family_of(o.ty, true), variant.plain, variant.queries, 0),
            None => (family_of(o.ty, false), variant.extra, variant.queries, 0),
        };
        let blocks = op.dim_to("blocks of queries", s.seq_q.div_ceil(queries as usize), MAX_BLOCKS)?;
        let op = (read(op, o, s)?.write_halves("out", o.out, s.out())?)
            .write_or_null("lse", o.lse, &[s.batch, s.heads, s.seq_q], &[])?
            .lengths(o.lengths);
        let op = match options.plain() {
            true => op,
            false => {
                let op = match options.mask {
                    Some(mask) => op.read_strided("mask", mask, [s.batch, s.heads, s.seq_q, s.seq_k])?,
                    None => op.null(),
                };
                op.read_or_null("slopes", options.slopes, &[s.heads])?.read_or_null(
                    "sinks",
                    options.sinks,
                    &[s.heads],
                )?
            }
        };
        let threads = self.kernel(family, name)?.meta().max_workgroup_size;
        let config = geometry::config([heads, batch, blocks], threads).with_dynamic_lds(lds);
        op.value(problem).run(stream, family, (name, config))
    }
}

impl Attention16Shape {
    /// Of the results.
    pub(super) fn out(self) -> [usize; 4] {
        [self.batch, self.heads, self.seq_q, self.width_v]
    }
}

/// Adds queries, keys and values.
pub(super) fn read<'k, 'a>(
    op: Launch<'k, 'a>,
    o: Attention16Operands<'a>,
    s: Attention16Shape,
) -> KernelResult<Launch<'k, 'a>> {
    op.read_halves("q", o.q, [s.batch, s.heads, s.seq_q, s.width_k])?
        .read_halves("k", o.k, [s.batch, s.kv_heads, s.seq_k, s.width_k])?
        .read_halves("v", o.v, [s.batch, s.kv_heads, s.seq_k, s.width_v])
}

/// What the kernels take besides buffers, of a call whose numbers are sound.
pub(super) fn problem(
    check: Check,
    o: Attention16Operands<'_>,
    s: Attention16Shape,
    options: Attention16Options<'_>,
) -> KernelResult<Problem> {
    check.dim_to("batch", s.batch, MAX_BLOCKS)?;
    let heads = check.dims([("heads", s.heads), ("kv_heads", s.kv_heads)])?;
    let seq = check.dims([("seq_q", s.seq_q), ("seq_k", s.seq_k)])?;
    let mut widths = [0; 2];
    for (to, (name, width)) in widths.iter_mut().zip([("width_k", s.width_k), ("width_v", s.width_v)]) {
        *to = check.dim_to(name, width, MAX_WIDTH)?;
        check.multiple("elements of a head must be a multiple of 8", width, 8)?;
    }
    check.heads(s.heads, s.kv_heads)?;
    if let Some(lengths) = o.lengths {
        lengths.fit(check, s.batch, [s.seq_q, s.seq_k])?;
    }
    check.value("scale", options.scale, |_| true, "finite")?;
    let softcap = check.softcap(options.softcap)?;
    let (causal, window) = match options.visible {
        Visible::All => (0, 0),
        Visible::Causal { window: None } => (1, 0),
        Visible::Causal { window: Some(window) } => (1, check.dim("window", window.min(MAX_DIM))?),
    };
    Ok(Problem {
        seq,
        heads,
        widths,
        causal,
        window,
        offset: crate::layout::causal_offset(check, seq[0], seq[1])?,
        scale: options.scale,
        softcap,
        none: 0,
        strides: [o.q.strides, o.k.strides, o.v.strides, o.out.strides],
        mask: options.mask.map_or(Strides::per_batch(0), |mask| mask.strides),
    })
}

/// Causal; without and with all that changes scores.
const PLAIN: Declared = Declared {
    name: "attention16",
    call: |c, dims| attention(c, dims, Half::F16, false),
    tested: &[
        &[1, 1, 1, 1, 33, 64, 64],
        &[1, 2, 1, 19, 35, 8, 8],
        &[2, 2, 2, 16, 32, 40, 96],
        &[1, 1, 1, 65, 64, 80, 80],
        &[1, 4, 2, 70, 100, 128, 128],
        &[1, 1, 1, 17, 129, 192, 128],
        &[1, 1, 1, 33, 31, 256, 256],
    ],
    counted: &[
        &[1, 4, 2, 128, 128, 64, 64],
        &[1, 4, 2, 128, 128, 128, 128],
        &[1, 4, 2, 128, 128, 256, 256],
    ],
    // The benchmark has operations of its own: `attention_f16` and its like.
    ..Declared::NEW
};

pub(super) const DECLARED: &[Declared] = &[
    PLAIN,
    Declared {
        call: |c, dims| attention(c, dims, Half::F16, true),
        ..PLAIN
    },
    Declared {
        call: |c, dims| attention(c, dims, Half::Bf16, false),
        ..PLAIN
    },
    Declared {
        call: |c, dims| attention(c, dims, Half::Bf16, true),
        ..PLAIN
    },
];

/// The operands of a declared call.
pub(super) struct Attention16Call {
    ty: Half,
    q: HipBuffer<u16>,
    k: HipBuffer<u16>,
    v: HipBuffer<u16>,
    /// Where there are parts.
    pub(super) partial: Option<HipBuffer<f32>>,
    out: HipBuffer<u16>,
    lse: HipBuffer<f32>,
    pub(super) shape: Attention16Shape,
}

impl Attention16Call {
    pub(super) fn new(c: &mut Call<'_>, ty: Half, dims: [usize; 7], parts: Option<usize>) -> KernelResult<Self> {
        let [batch, heads, kv_heads, seq_q, seq_k, width_k, width_v] = dims;
        let shape = Attention16Shape {
            batch,
            heads,
            kv_heads,
            seq_q,
            seq_k,
            width_k,
            width_v,
        };
        let (queries, keys) = (batch * heads * seq_q, batch * kv_heads * seq_k);
        Ok(Self {
            ty,
            q: c.cache("q", kv(ty), queries * width_k)?.cast()?,
            k: c.cache("k", kv(ty), keys * width_k)?.cast()?,
            v: c.cache("v", kv(ty), keys * width_v)?.cast()?,
            partial: match parts {
                // In bytes, so that it is aligned.
                Some(parts) => {
                    let len = Kernels::attention16_partial_len(shape, parts).unwrap_or(0);
                    Some(c.output_bytes("partial", 4 * len)?.cast()?)
                }
                None => None,
            },
            out: c.output_bytes("out", 2 * queries * width_v)?.cast()?,
            lse: c.output("lse", queries)?,
            shape,
        })
    }

    pub(super) fn operands(&self) -> Attention16Operands<'_> {
        let s = self.shape;
        let queries = |width| Strides::heads_first(s.heads, s.seq_q, width);
        let keys = |width| Strides::heads_first(s.kv_heads, s.seq_k, width);
        Attention16Operands {
            ty: self.ty,
            q: Operand::new(&self.q, queries(s.width_k)),
            k: Operand::new(&self.k, keys(s.width_k)),
            v: Operand::new(&self.v, keys(s.width_v)),
            out: Operand::new(&self.out, queries(s.width_v)),
            lse: Some(&self.lse),
            lengths: None,
        }
    }

    /// Where the mask, the slopes and the sinks are inputs, too.
    pub(super) fn expect(&self, c: &mut Call<'_>, options: Attention16Options<'_>) {
        let (ty, s) = (kv(self.ty), self.shape);
        let of = |c: &Call<'_>| {
            let mask = options.mask.map(|_| c.f32("mask"));
            let scores = reference::Attention16Scores {
                scale: f64::from(options.scale),
                softcap: options.softcap.map(f64::from),
                mask: &|_, _, i, j| mask.map_or(0.0, |mask| f64::from(mask[i * s.seq_k + j])),
                slopes: options.slopes.map(|_| c.f32("slopes")),
                sinks: options.sinks.map(|_| c.f32("sinks")),
                visible: options.visible,
            };
            let [q, k, v] = ["q", "k", "v"].map(|name| c.kv(name, ty));
            reference::attention16([&q, &k, &v], s, &vec![[s.seq_q, s.seq_k]; s.batch], &scores)
        };
        let within = match self.ty {
            Half::F16 => 1.5e-3,
            Half::Bf16 => 1.2e-2,
        };
        c.expect_typed("out", ty, within, |c| of(c).0);
        c.expect("lse", 2e-5, |c| of(c).1);
    }
}

fn kv(ty: Half) -> KvType {
    match ty {
        Half::F16 => KvType::F16,
        Half::Bf16 => KvType::Bf16,
    }
}

fn attention(c: &mut Call<'_>, dims: &[usize], ty: Half, extra: bool) -> KernelResult<()> {
    let Ok(dims) = dims.try_into() else { return Ok(()) };
    let call = Attention16Call::new(c, ty, dims, None)?;
    let s = call.shape;
    let extras = match extra {
        true => Some((
            c.input("mask", s.seq_q * s.seq_k, -2.0..2.0)?,
            c.input("slopes", s.heads, 0.01..0.3)?,
            c.input("sinks", s.heads, -1.0..1.0)?,
        )),
        false => None,
    };
    let mut options = Attention16Options::new(s.width_k.max(1), Visible::Causal { window: None });
    if let Some((mask, slopes, sinks)) = &extras {
        options.softcap = Some(30.0);
        options.mask = Some(Operand::new(mask, Strides::per_row(s.seq_k)));
        (options.slopes, options.sinks) = (Some(slopes), Some(sinks));
    }
    c.kernels.attention16(c.stream, call.operands(), s, options)?;
    call.expect(c, options);
    Ok(())
}
