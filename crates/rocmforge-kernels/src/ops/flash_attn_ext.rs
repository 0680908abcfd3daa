//! Attention as graphs of ggml have it: keys and values in f32 or f16 with strides, masks, slopes, sinks, a soft cap.

use super::softmax::{SINGLE_OR_HALF, check_mask};
use crate::declared::{Call, Declared};
use crate::kv_type::by_kv;
use crate::{KernelResult, Kernels, KvType, Strides, geometry, reference};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream};

/// The most elements of a head.
const MAX_HEAD_DIM: usize = 256;
/// Blocks of a grid's second and third dimension.
const MAX_GRID: usize = 65_535;

/// Dimensions of an attention. Query heads and batches are whole multiples of the keys', which each serve a run of
/// neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtShape {
    /// Batches of queries.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Queries.
    pub queries: usize,
    /// Batches of keys and values.
    pub kv_batch: usize,
    /// Heads of keys and values.
    pub kv_heads: usize,
    /// Keys and values.
    pub keys: usize,
    /// Elements of a query and of a key: a multiple of 4 up to 256.
    pub dim_k: usize,
    /// Elements of a value: a multiple of 4 up to 256.
    pub dim_v: usize,
}

/// A buffer of bytes, and how `[batch, heads, rows, elements]` lies in it.
#[derive(Debug, Clone, Copy)]
pub struct ExtOperand<'a> {
    /// The elements.
    pub buffer: &'a HipBuffer<u8>,
    /// Distances in elements.
    pub strides: Strides,
}

/// A mask's type, elements and dimensions `[outer, inner, rows, keys]`, as in [`crate::SoftmaxBias`].
pub type ExtMask<'a> = (KvType, &'a HipBuffer<u8>, [usize; 4]);

/// The operands of an attention.
#[derive(Debug, Clone, Copy)]
pub struct ExtOperands<'a> {
    /// Queries in f32.
    pub q: ExtOperand<'a>,
    /// Keys.
    pub k: ExtOperand<'a>,
    /// Values, of the keys' type.
    pub v: ExtOperand<'a>,
    /// Added to the scores.
    pub mask: Option<ExtMask<'a>>,
    /// One more logit for each head.
    pub sinks: Option<&'a HipBuffer<f32>>,
    /// `[batch, queries, heads, dim_v]` without gaps.
    pub out: &'a HipBuffer<f32>,
}

/// What changes the scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExtOptions {
    /// Factor of q . k.
    pub scale: f32,
    /// The bound of the scores; `None`: none.
    pub softcap: Option<f32>,
    /// ALiBi's largest bias, as in [`crate::SoftmaxBias`].
    pub max_bias: f32,
}

/// `Ext` of flash_attn_ext.hip.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Ext {
    queries: u32,
    heads: u32,
    keys: u32,
    dim_k: u32,
    dim_v: u32,
    batch_share: u32,
    head_share: u32,
    mask_outer: u32,
    mask_heads: u32,
    mask_rows: u32,
    mask_half: u32,
    power: u32,
    q: Strides,
    k: Strides,
    v: Strides,
    scale: f32,
    softcap: f32,
    max_bias: f32,
    none: u32,
}

impl Kernels {
    /// `out[b, i, h] = softmax(cap(scale q[b, h, i] . k[j]) + slope(h) mask[i, j]) v[j]`, over the keys of the batch
    /// and head that b and h share. Keys and values whose mask is -inf are not read; a query without any gives zeros. A
    /// prompt reads its keys once for each query.
    ///
    /// # Errors
    ///
    /// Strides that lead outside of an operand, a wrong length, heads or batches that do not divide, a head that is no
    /// multiple of 4 or over 256, a type other than f32 and f16, a mask that does not fit, an address that is no multiple of its element, overlap, a
    /// number that makes no sense.
    pub fn flash_attn_ext(
        &self,
        stream: &HipStream,
        kv: KvType,
        operands: ExtOperands<'_>,
        shape: ExtShape,
        options: ExtOptions,
    ) -> KernelResult<()> {
        let op = self.op("flash_attn_ext");
        op.kv_type(kv, SINGLE_OR_HALF)?;
        let (s, o) = (shape, operands);
        let batch = op.dim_to("batch", s.batch, MAX_GRID)?;
        let heads = op.dim_to("heads", s.heads, MAX_GRID)?;
        let [queries, keys] = op.dims([("queries", s.queries), ("keys", s.keys)])?;
        let dim_k = op.dim_to("dim_k", s.dim_k, MAX_HEAD_DIM)?;
        let dim_v = op.dim_to("dim_v", s.dim_v, MAX_HEAD_DIM)?;
        for (name, part, whole) in [("kv_batch", s.kv_batch, s.batch), ("kv_heads", s.kv_heads, s.heads)] {
            op.dim(name, part)?;
            op.divides("keys' batches and heads must divide the queries'", part, whole)?;
        }
        for dim in [s.dim_k, s.dim_v] {
            op.multiple("a head must have a multiple of 4 elements", dim, 4)?;
        }
        let (scale, max_bias) = (options.scale, options.max_bias);
        op.value_of("scale", scale, scale.is_finite(), "finite")?;
        op.value_of(
            "max_bias",
            max_bias,
            max_bias >= 0.0 && max_bias.is_finite(),
            "0 or more",
        )?;
        let softcap = op.softcap(options.softcap)?;
        let [mask_outer, mask_heads, mask_rows] = match o.mask {
            Some(mask) => check_mask(op.check(), mask, [s.batch, s.heads, s.queries, s.keys])?,
            None => [1, 1, queries],
        };
        let kv_of = |dim| [s.kv_batch, s.kv_heads, s.keys, dim];
        let mut op = op;
        for (name, operand, ty, shape) in [
            ("q", o.q, KvType::F32, [s.batch, s.heads, s.queries, s.dim_k]),
            ("k", o.k, kv, kv_of(s.dim_k)),
            ("v", o.v, kv, kv_of(s.dim_v)),
        ] {
            let Strides { batch, head, row } = operand.strides;
            op = op.read_elements(name, (operand.buffer, ty.block_bytes()), [batch, head, row, 1], shape)?;
        }
        let op = match o.mask {
            Some((ty, mask, [a, b, c, d])) => op.read("mask", mask, &[a, b, c, d, ty.block_bytes()])?,
            None => op.null(),
        };
        let op = (op.read_or_null("sinks", o.sinks, &[s.heads])?)
            .write("out", o.out, &[s.batch, s.queries, s.heads, s.dim_v], &[])?
            .value(Ext {
                queries,
                heads,
                keys,
                dim_k,
                dim_v,
                batch_share: batch / s.kv_batch as u32,
                head_share: heads / s.kv_heads as u32,
                mask_outer,
                mask_heads,
                mask_rows,
                mask_half: u32::from(o.mask.is_some_and(|mask| mask.0 == KvType::F16)),
                power: 1 << heads.ilog2(),
                q: o.q.strides,
                k: o.k.strides,
                v: o.v.strides,
                scale,
                softcap,
                max_bias,
                none: 0,
            });
        let name = match dim_k.max(dim_v) {
            0..=64 => by_kv!(kv, "flash_attn_ext_", "_d64"),
            65..=128 => by_kv!(kv, "flash_attn_ext_", "_d128"),
            _ => by_kv!(kv, "flash_attn_ext_", "_d256"),
        };
        let config = geometry::config([queries, heads, batch], 256);
        op.run(stream, "flash_attn_ext", (name, config))
    }
}

/// Without a mask, at every size of heads.
const EXT: Declared = Declared {
    name: "flash_attn_ext",
    call: |c, dims| ext(c, dims, KvType::F32, None, false),
    tested: &[
        &[1, 2, 1, 2, 33, 4, 4],
        &[1, 2, 1, 2, 33, 64, 64],
        &[1, 2, 1, 2, 33, 80, 80],
        &[1, 2, 1, 2, 33, 128, 36],
        &[1, 2, 1, 2, 33, 96, 192],
        &[1, 2, 1, 2, 33, 256, 256],
        &[2, 4, 2, 3, 1, 32, 32],
        &[2, 4, 2, 3, 31, 32, 32],
        &[2, 4, 2, 3, 32, 32, 32],
        &[2, 4, 2, 3, 65, 32, 32],
        &[2, 4, 2, 3, 129, 32, 32],
        &[2, 4, 2, 3, 300, 32, 32],
    ],
    ..Declared::NEW
};
/// One mask in f16 for all heads.
const MASKED: Declared = Declared {
    call: |c, dims| ext(c, dims, KvType::F32, Some(KvType::F16), false),
    tested: &[&[2, 6, 3, 3, 70, 40, 48]],
    counted: &[
        &[1, 4, 2, 2, 128, 64, 64],
        &[1, 4, 2, 2, 128, 128, 128],
        &[1, 4, 2, 2, 128, 256, 256],
    ],
    ..EXT
};

pub(super) const DECLARED: &[Declared] = &[
    EXT,
    MASKED,
    Declared {
        call: |c, dims| ext(c, dims, KvType::F16, None, false),
        ..EXT
    },
    Declared {
        call: |c, dims| ext(c, dims, KvType::F16, Some(KvType::F16), false),
        ..MASKED
    },
    // With all that changes scores.
    Declared {
        call: |c, dims| ext(c, dims, KvType::F16, Some(KvType::F32), true),
        tested: &[&[2, 6, 3, 3, 70, 40, 48], &[1, 3, 1, 2, 129, 136, 8]],
        ..EXT
    },
];

fn ext(c: &mut Call<'_>, dims: &[usize], kv: KvType, mask: Option<KvType>, all: bool) -> KernelResult<()> {
    let &[batch, heads, kv_heads, queries, keys, dim_k, dim_v] = dims else {
        return Ok(());
    };
    let shape = ExtShape {
        batch,
        heads,
        queries,
        kv_batch: batch,
        kv_heads,
        keys,
        dim_k,
        dim_v,
    };
    let q = c.cache("q", KvType::F32, batch * heads * queries * dim_k)?;
    let k = c.cache("k", kv, batch * kv_heads * keys * dim_k)?;
    let v = c.cache("v", kv, batch * kv_heads * keys * dim_v)?;
    let mask = match mask {
        Some(ty) => Some((ty, c.cache("mask", ty, queries * keys)?)),
        None => None,
    };
    let sinks = match all {
        true => Some(c.input("sinks", heads, -1.0..1.0)?),
        false => None,
    };
    let out = c.output("out", batch * queries * heads * dim_v)?;
    let operand = |buffer, heads, rows, dim| ExtOperand {
        buffer,
        strides: Strides::heads_first(heads, rows, dim),
    };
    let operands = ExtOperands {
        q: operand(&q, heads, queries, dim_k),
        k: operand(&k, kv_heads, keys, dim_k),
        v: operand(&v, kv_heads, keys, dim_v),
        mask: (mask.as_ref()).map(|(ty, mask)| (*ty, mask, [1, 1, queries, keys])),
        sinks: sinks.as_ref(),
        out: &out,
    };
    let options = ExtOptions {
        scale: 0.1,
        softcap: all.then_some(0.5),
        max_bias: if all { 8.0 } else { 0.0 },
    };
    c.kernels.flash_attn_ext(c.stream, kv, operands, shape, options)?;
    c.expect("out", 1e-5, |c| {
        let mask = mask.as_ref().map(|&(ty, _)| c.kv("mask", ty));
        let scores = reference::ExtScores {
            scale: f64::from(options.scale),
            softcap: options.softcap.map(f64::from),
            max_bias: f64::from(options.max_bias),
            mask: &|_, _, i, j| mask.as_ref().map_or(0.0, |mask| mask[i * keys + j]),
            sinks: all.then(|| c.f32("sinks")),
        };
        let (q, k, v) = (c.kv("q", KvType::F32), c.kv("k", kv), c.kv("v", kv));
        reference::flash_attn_ext(&q, &k, &v, shape, &scores)
    });
    Ok(())
}
