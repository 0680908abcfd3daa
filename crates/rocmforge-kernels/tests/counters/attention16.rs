//! Counters of attention over 16-bit floats: products on the matrix unit, keys and values once for each block of queries.

use crate::counted_on;
use crate::launches::Device;
use rocmforge_kernels::{
    Attention16Operands, Attention16Options, Attention16Shape, Faults, Half, KernelResult, Kernels, KvType, Operand,
    PagedOperands, PagedOptions, PagedShape, Strides, Visible,
};
use rocmforge_runtime::HipBuffer;
use rocmforge_sim::Arch;
use rocmforge_sim::counters::Class;
use std::error::Error;

const CAUSAL: Visible = Visible::Causal { window: None };

impl Device<'_> {
    /// A decoding step with its keys in parts.
    fn split(&self, ty: Half, s: Attention16Shape, parts: usize) -> KernelResult<()> {
        let halves = |n: usize| HipBuffer::from_slice(self.stream, &vec![0x3535u16; n], "halves");
        let q = halves(s.heads * s.seq_q * s.width_k)?;
        let k = halves(s.kv_heads * s.seq_k * s.width_k)?;
        let (v, out) = (halves(k.len())?, halves(q.len())?);
        let partial = self.x(Kernels::attention16_partial_len(s, parts).unwrap_or(0))?;
        let operands = operands(ty, s, [&q, &k, &v, &out]);
        let options = Attention16Options::new(s.width_k, CAUSAL);
        let launch = &self.kernels;
        launch.attention16_split(self.stream, operands, s, options, parts, &partial)
    }

    /// The last 128 of 256 tokens of a sequence.
    fn paged16(&self, [heads, kv_heads, head_dim]: [usize; 3]) -> KernelResult<()> {
        let (tokens, keys) = (128, 256);
        let word = self.fault_word()?;
        let table = self.ids(&(0..16).map(|block| block * 5 % 16).collect::<Vec<_>>())?;
        let (seq_of, positions) = (self.ids(&[0; 128])?, self.ids(&(128..256).collect::<Vec<_>>())?);
        let cache = self.bytes(keys * kv_heads * head_dim * 2)?;
        let (q, out) = (self.x(tokens * heads * head_dim)?, self.x(tokens * heads * head_dim)?);
        let operands = PagedOperands {
            q: &q,
            k_cache: &cache,
            v_cache: &cache,
            block_table: &table,
            seq_of: &seq_of,
            positions: &positions,
            sinks: None,
            out: &out,
        };
        let shape = PagedShape {
            tokens,
            heads,
            kv_heads,
            head_dim,
            block_size: 16,
            blocks: 16,
            sequences: 1,
            max_blocks: 16,
        };
        let options = PagedOptions::new(head_dim);
        let faults = Faults { word: &word, tag: 0 };
        self.kernels
            .paged_attention16(self.stream, KvType::F16, operands, shape, options, faults)
    }

    fn attention16(&self, ty: Half, s: Attention16Shape) -> KernelResult<()> {
        let halves = |n: usize| HipBuffer::from_slice(self.stream, &vec![0x3535u16; n], "halves");
        let q = halves(s.heads * s.seq_q * s.width_k)?;
        let k = halves(s.kv_heads * s.seq_k * s.width_k)?;
        let (v, out) = (halves(k.len())?, halves(q.len())?);
        let lse = self.x(s.heads * s.seq_q)?;
        let operands = Attention16Operands {
            lse: Some(&lse),
            ..operands(ty, s, [&q, &k, &v, &out])
        };
        let options = Attention16Options::new(s.width_k, Visible::All);
        self.kernels.attention16(self.stream, operands, s, options)
    }
}

/// Queries, keys, values and results, head by head.
fn operands(ty: Half, s: Attention16Shape, [q, k, v, out]: [&HipBuffer<u16>; 4]) -> Attention16Operands<'_> {
    let of_queries = Strides::heads_first(s.heads, s.seq_q, s.width_k);
    let of_keys = Strides::heads_first(s.kv_heads, s.seq_k, s.width_k);
    Attention16Operands {
        ty,
        q: Operand::new(q, of_queries),
        k: Operand::new(k, of_keys),
        v: Operand::new(v, of_keys),
        out: Operand::new(out, of_queries),
        lse: None,
        lengths: None,
    }
}

fn shape([heads, kv_heads]: [usize; 2], [seq_q, seq_k]: [usize; 2], width: usize) -> Attention16Shape {
    Attention16Shape {
        batch: 1,
        heads,
        kv_heads,
        seq_q,
        seq_k,
        width_k: width,
        width_v: width,
    }
}

#[test]
fn products_are_on_the_matrix_unit_and_bytes_are_read_once_a_block() -> Result<(), Box<dyn Error>> {
    for arch in [Arch::Gfx1100, Arch::Gfx1201] {
        for ty in [Half::F16, Half::Bf16] {
            for width in [64, 128, 256] {
                let s = shape([2, 1], [128, 256], width);
                let launches = counted_on(arch, |device| device.attention16(ty, s))?;
                let launch = launches.last().ok_or("no launch")?;
                let (c, what) = (&launch.counters, format!("{arch}: {}", launch.kernel));
                // Scores and sums, 16 x 16 x 16 at a time.
                let products = 2 * s.heads * (s.seq_q / 16) * (s.seq_k / 16) * (width / 16);
                assert_eq!(c.of(Class::Wmma), products as u64, "{what}");
                let blocks = c.workgroups as usize;
                let read = s.heads * s.seq_q * width * 2 + blocks * 2 * s.seq_k * width * 2;
                assert_eq!(c.loads.bytes, read as u64, "{what}");
                let written = s.heads * s.seq_q * (width * 2 + 4);
                assert_eq!(c.stores.bytes, written as u64, "{what}");
                assert_eq!((c.scratch_bytes, c.of(Class::Flat)), (0, 0), "{what}");
            }
        }
    }
    Ok(())
}

#[test]
fn pages_are_read_once_a_block_and_multiplied_on_the_matrix_unit() -> Result<(), Box<dyn Error>> {
    for arch in [Arch::Gfx1100, Arch::Gfx1201] {
        for (width, rows, tile) in [(64, 64, 32), (128, 64, 32), (256, 32, 16)] {
            let launches = counted_on(arch, |device| device.paged16([4, 2, width]))?;
            let launch = launches.last().ok_or("no launch")?;
            let (c, what) = (&launch.counters, format!("{arch}: {}", launch.kernel));
            // Keys that a block of `rows` tokens sees, in whole tiles: those up to its last token.
            let ends = (128..256)
                .step_by(rows)
                .map(|first: usize| (first + rows).next_multiple_of(tile));
            let keys: usize = ends.sum();
            let heads = 4;
            assert_eq!(
                c.of(Class::Wmma),
                (2 * heads * (rows / 16) * (keys / 16) * (width / 16)) as u64,
                "{what}"
            );
            // Tables, sequences and positions beside queries, keys and values.
            let read = (heads * (128 * width * 4 + 2 * keys * width * 2)) as u64;
            assert!(
                (read..read + read / 8).contains(&c.loads.bytes),
                "{what}: {} of {read}",
                c.loads.bytes
            );
            assert_eq!(c.stores.bytes, (heads * 128 * width * 4) as u64, "{what}");
            let share = if width == 256 { 2 } else { 4 };
            assert!(c.lds.conflicts * share <= c.lds.cycles, "{what}: {:?}", c.lds);
            assert_eq!((c.scratch_bytes, c.of(Class::Flat)), (0, 0), "{what}");
        }
    }
    Ok(())
}

/// Heads of 576 elements that are keys and values in one, as latent attention has them: read once for 32 rows of tokens and heads.
#[test]
fn long_heads_are_read_once_for_many_heads() -> Result<(), Box<dyn Error>> {
    for arch in [Arch::Gfx1100, Arch::Gfx1201] {
        let (heads, width) = (8, 576);
        let launches = counted_on(arch, |device| device.paged16([heads, 1, width]))?;
        let launch = launches.last().ok_or("no launch")?;
        let (c, what) = (&launch.counters, format!("{arch}: {}", launch.kernel));
        let tokens = 32 / heads;
        let ends = (128..256).step_by(tokens).map(|first: usize| first + tokens);
        let keys: usize = ends.clone().sum();
        let tiles: usize = ends.map(|end| end.div_ceil(16)).sum();
        assert_eq!(c.of(Class::Wmma), (2 * 2 * tiles * (width / 16)) as u64, "{what}");
        // Queries, and tables, sequences and positions beside the keys.
        let read = (heads * 128 * width * 4 + keys * width * 2) as u64;
        assert!(
            (read..read + read / 8).contains(&c.loads.bytes),
            "{what}: {} of {read}",
            c.loads.bytes
        );
        assert_eq!(c.stores.bytes, (heads * 128 * width * 4) as u64, "{what}");
        assert!(c.lds.conflicts * 2 <= c.lds.cycles, "{what}: {:?}", c.lds);
        assert_eq!((c.scratch_bytes, c.of(Class::Flat)), (0, 0), "{what}");
    }
    Ok(())
}

#[test]
fn a_decoding_step_reads_keys_and_values_once_for_the_heads_that_share_them() -> Result<(), Box<dyn Error>> {
    for arch in [Arch::Gfx1100, Arch::Gfx1201] {
        for width in [64, 128] {
            let (s, parts) = (shape([8, 2], [1, 512], width), 4);
            let launches = counted_on(arch, |device| device.split(Half::F16, s, parts))?;
            let [split, combine] = launches.as_slice() else {
                return Err("two launches".into());
            };
            let c = &split.counters;
            // One of a block's waves multiplies, 16 rows of which four are queries.
            let products = 2 * s.kv_heads * (s.seq_k / 16) * (width / 16);
            assert_eq!(c.of(Class::Wmma), products as u64, "{arch}: {}", split.kernel);
            // Each part reads the queries too.
            let read = 2 * s.kv_heads * s.seq_k * width * 2 + parts * s.heads * width * 2;
            assert_eq!(c.loads.bytes, read as u64, "{arch}: {}", split.kernel);
            assert_eq!(c.stores.bytes, (s.heads * parts * (width + 1) * 4) as u64, "{arch}");
            assert_eq!((c.scratch_bytes, c.of(Class::Flat)), (0, 0), "{arch}");
            assert_eq!(combine.counters.stores.bytes, (s.heads * width * 2) as u64, "{arch}");
        }
    }
    Ok(())
}

/// What conflicts there are come from the outputs on their way out: as many for twice the keys.
#[test]
fn the_loop_over_keys_has_no_bank_conflicts() -> Result<(), Box<dyn Error>> {
    for arch in [Arch::Gfx1100, Arch::Gfx1201] {
        for width in [64, 128, 256] {
            let conflicts = |keys| -> Result<u64, Box<dyn Error>> {
                let s = shape([1, 1], [64, keys], width);
                let launches = counted_on(arch, |device| device.attention16(Half::F16, s))?;
                Ok(launches.last().ok_or("no launch")?.counters.lds.conflicts)
            };
            assert_eq!(conflicts(64)?, conflicts(128)?, "{arch}, {width}");
        }
    }
    Ok(())
}
