//! Attention as graphs of ggml have it: keys and values in f32 or f16 with strides, masks, slopes, sinks, a soft cap.

use super::softmax::{SINGLE_OR_HALF, check_mask};
use crate::check::Check;
use crate::{KernelResult, Kernels, KvType, Strides, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

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
        let check = Check("flash_attn_ext");
        check.kv_type(kv, SINGLE_OR_HALF)?;
        let (s, o) = (shape, operands);
        let batch = check.dim_to("batch", s.batch, MAX_GRID)?;
        let heads = check.dim_to("heads", s.heads, MAX_GRID)?;
        let queries = check.dim("queries", s.queries)?;
        let keys = check.dim("keys", s.keys)?;
        let dim_k = check.dim_to("dim_k", s.dim_k, MAX_HEAD_DIM)?;
        let dim_v = check.dim_to("dim_v", s.dim_v, MAX_HEAD_DIM)?;
        for (name, part, whole) in [("kv_batch", s.kv_batch, s.batch), ("kv_heads", s.kv_heads, s.heads)] {
            check.dim(name, part)?;
            check.divides("keys' batches and heads must divide the queries'", part, whole)?;
        }
        for dim in [s.dim_k, s.dim_v] {
            check.multiple("a head must have a multiple of 4 elements", dim, 4)?;
        }
        let kv_of = |dim| [s.kv_batch, s.kv_heads, s.keys, dim];
        for (name, operand, size, shape) in [
            (
                "q",
                o.q,
                KvType::F32.block_bytes(),
                [s.batch, s.heads, s.queries, s.dim_k],
            ),
            ("k", o.k, kv.block_bytes(), kv_of(s.dim_k)),
            ("v", o.v, kv.block_bytes(), kv_of(s.dim_v)),
        ] {
            let Strides { batch, head, row } = operand.strides;
            check.reach(name, (operand.buffer, size), &shape, &[batch, head, row, 1])?;
            check.aligned(name, operand.buffer, size)?;
            check.disjoint(("out", o.out), (name, operand.buffer))?;
        }
        check.len("out", o.out, &[s.batch, s.queries, s.heads, s.dim_v])?;
        check.value("scale", options.scale, |_| true, "finite")?;
        check.value("max_bias", options.max_bias, |b| b >= 0.0, "0 or more")?;
        // 0 stands for none on the device.
        let softcap = match options.softcap {
            Some(cap) => check.value("softcap", cap, |cap| cap >= f32::MIN_POSITIVE, "positive and normal")?,
            None => 0.0,
        };
        let mut parts = [1, 1, queries];
        let mut mask_half = 0;
        if let Some(mask) = o.mask {
            parts = check_mask(check, mask, [s.batch, s.heads, s.queries, s.keys])?;
            check.disjoint(("out", o.out), ("mask", mask.1))?;
            mask_half = u32::from(mask.0 == KvType::F16);
        }
        if let Some(sinks) = o.sinks {
            check.input("sinks", sinks, &[s.heads], ("out", o.out))?;
        }
        let args = LaunchArgs::new().buffer(o.q.buffer).buffer(o.k.buffer);
        let args = args.buffer(o.v.buffer).buffer_or_null(o.mask.map(|mask| mask.1));
        let args = args.buffer_or_null(o.sinks);
        let [mask_outer, mask_heads, mask_rows] = parts;
        let args = args.out(o.out).value(Ext {
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
            mask_half,
            power: 1 << heads.ilog2(),
            q: o.q.strides,
            k: o.k.strides,
            v: o.v.strides,
            scale: options.scale,
            softcap,
            max_bias: options.max_bias,
            none: 0,
        });
        let name = match (kv, dim_k.max(dim_v)) {
            (KvType::F32, ..=64) => "flash_attn_ext_f32_d64",
            (KvType::F32, ..=128) => "flash_attn_ext_f32_d128",
            (KvType::F32, _) => "flash_attn_ext_f32_d256",
            (_, ..=64) => "flash_attn_ext_f16_d64",
            (_, ..=128) => "flash_attn_ext_f16_d128",
            _ => "flash_attn_ext_f16_d256",
        };
        let config = geometry::config([queries, heads, batch], 256);
        // SAFETY: strides stay inside of their operands, elements are aligned, the mask's dimensions divide the
        // scores', out is apart from all operands: checked above.
        unsafe { self.launch(stream, "flash_attn_ext", name, config, args) }
    }
}
