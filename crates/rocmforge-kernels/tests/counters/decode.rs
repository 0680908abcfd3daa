//! Launches of the kernels of a decoding step: several packed matrices, a norm that is rounded, a cache in parts.

use super::launches::Device;
use rocmforge_kernels::{
    Faults, GluKind, JointProduct, KernelResult, Kernels, KvType, PagedOperands, PagedOptions, PagedShape,
    RopeKvOperands, RopePairs, RopeShape, RowInput, RowNorm, WeightType,
};

impl Device<'_> {
    pub(super) fn decode(&self) -> KernelResult<()> {
        self.packed_together()?;
        self.norms_of_sums()?;
        self.cache_at_once()?;
        self.keys_in_parts()
    }

    /// Query, key and value, gate and up, a prompt and rows of a table, of every type.
    fn packed_together(&self) -> KernelResult<()> {
        let (k, s) = (self.kernels, self.stream);
        let word = self.fault_word()?;
        for ty in WeightType::ALL.into_iter().filter(|ty| ty.is_packable()) {
            let (n, depth) = (128, 1024);
            let bytes = n * depth / ty.block_len() * ty.block_bytes();
            let w = k.pack_weight(s, ty, &self.bytes(bytes)?, self.bytes(bytes)?, [n, depth])?;
            let [x, weight, y] = [self.x(depth)?, self.x(depth)?, self.x(depth)?];
            let norm = Some(RowNorm {
                weight: &weight,
                eps: 1e-5,
                y: &y,
            });
            let input = RowInput { x: &x, norm };
            let [a, b, c] = [self.x(n)?, self.x(n)?, self.x(n)?];
            let product = |y| JointProduct { w: &w, bias: None, y };
            k.matvec_q8_joint(s, input, &[product(&a), product(&b), product(&c)])?;
            k.matvec_q8_gated(s, input, [&w, &w], GluKind::Swiglu, &a)?;
            k.matmul_packed(s, &w, &self.x(64 * depth)?, None, &self.x(64 * n)?, 64)?;
            let (ids, rows) = (self.ids(&[127, 0, 5, 64])?, self.x(4 * depth)?);
            k.get_rows_packed(s, &w, &ids, &rows, Faults { word: &word, tag: 0 })?;
        }
        Ok(())
    }

    fn norms_of_sums(&self) -> KernelResult<()> {
        let (k, s) = (self.kernels, self.stream);
        for (rows, cols) in [(8, 512), (8, 4096)] {
            let n = rows * cols;
            let [a, b, sum, y] = [self.x(n)?, self.x(n)?, self.x(n)?, self.x(n)?];
            let q8 = Some(self.bytes(n / 32 * 40)?);
            k.add_rms_norm(s, &a, Some([&b, &sum]), &self.x(cols)?, &y, q8, [rows, cols], 1e-5)?;
        }
        Ok(())
    }

    fn cache_at_once(&self) -> KernelResult<()> {
        let (k, s) = (self.kernels, self.stream);
        let word = self.fault_word()?;
        let (tokens, heads, kv_heads, head_dim, slots) = (4, 8, 2, 64, 16);
        let (q, key, v) = (
            self.x(tokens * heads * head_dim)?,
            self.x(tokens * kv_heads * head_dim)?,
            self.x(tokens * kv_heads * head_dim)?,
        );
        let tables = [self.x(8 * head_dim / 2)?, self.x(8 * head_dim / 2)?];
        let (positions, places) = (self.ids(&[0, 1, 2, 3])?, self.ids(&[5, 9, 0, 15])?);
        for kv in KvType::ALL {
            let bytes = kv.byte_len(slots * kv_heads * head_dim).unwrap_or(0);
            let caches = [self.bytes(bytes)?, self.bytes(bytes)?];
            for pairs in [RopePairs::Half, RopePairs::Interleaved] {
                let operands = RopeKvOperands {
                    q: &q,
                    k: &key,
                    v: &v,
                    tables: [&tables[0], &tables[1]],
                    positions: &positions,
                    slots: &places,
                    turned_q: &q,
                    turned_k: &key,
                    k_cache: &caches[0],
                    v_cache: &caches[1],
                };
                let shape = RopeShape {
                    tokens,
                    seq: tokens,
                    heads,
                    head_dim,
                    rotary_dim: head_dim,
                    start: 0,
                };
                k.rope_kv(
                    s,
                    pairs,
                    kv,
                    operands,
                    shape,
                    [kv_heads, slots],
                    Faults { word: &word, tag: 0 },
                    1,
                )?;
            }
        }
        Ok(())
    }

    /// A token at the end of 512 keys in eight parts.
    fn keys_in_parts(&self) -> KernelResult<()> {
        let (k, s) = (self.kernels, self.stream);
        let word = self.fault_word()?;
        let table = self.ids(&(0..32).map(|block| block * 7 % 32).collect::<Vec<_>>())?;
        let (seq_of, positions) = (self.ids(&[0])?, self.ids(&[511])?);
        let types = [KvType::F16, KvType::Bf16, KvType::Q8_0];
        for (kv, head_dim) in types.into_iter().flat_map(|kv| [64, 128, 256].map(|dim| (kv, dim))) {
            for heads in [2, 4, 8] {
                let shape = PagedShape {
                    tokens: 1,
                    heads,
                    kv_heads: 2,
                    head_dim,
                    block_size: 16,
                    blocks: 32,
                    sequences: 1,
                    max_blocks: 32,
                };
                let cache = self.bytes(kv.byte_len(512 * 2 * head_dim).unwrap_or(0))?;
                let (q, out) = (self.x(heads * head_dim)?, self.x(heads * head_dim)?);
                let operands = PagedOperands {
                    q: &q,
                    k_cache: &cache,
                    v_cache: &cache,
                    block_table: &table,
                    seq_of: &seq_of,
                    positions: &positions,
                    out: &out,
                };
                let partial = self.x(Kernels::paged_partial_len(shape, 8).unwrap_or(0))?;
                let q8 = Some(self.bytes(heads * head_dim / 32 * 40)?);
                let options = PagedOptions::new(head_dim);
                let faults = Faults { word: &word, tag: 0 };
                k.paged_attention_split(s, kv, operands, shape, options, 8, &partial, q8, faults)?;
            }
        }
        Ok(())
    }
}
