//! Moves within a paged cache, and out of it: whole blocks, and rows of a sequence.

use crate::check::Check;
use crate::{Faults, KernelError, KernelResult, Kernels, KvType, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};
use rustc_hash::FxHashSet;

const FAMILY: &str = "kv_move";
/// Pairs of a launch: `RF_COPY_PAIRS` of the kernel.
const PAIRS: usize = 64;
/// Units that a block of threads copies: `RF_COPY_UNITS` of the kernel.
const UNITS: usize = 1024;

/// Size of a cache of keys or of values, `[blocks, block_size, width]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvShape {
    /// Blocks.
    pub blocks: usize,
    /// Tokens of a block.
    pub block_size: usize,
    /// Elements of a token: heads times elements of a head; whole blocks of the type.
    pub width: usize,
}

/// A block of the cache to be copied onto another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPair {
    /// The block that is read.
    pub from: u32,
    /// The block that is written.
    pub to: u32,
}

/// Rows of a sequence: `[first, first + rows)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvRows {
    /// The position of the first.
    pub first: usize,
    /// How many.
    pub rows: usize,
}

/// `CopyPairs` of kv_move.hip.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct CopyPairs {
    from: [u32; PAIRS],
    to: [u32; PAIRS],
}

impl Kernels {
    /// Block `to` of the keys and of the values becomes equal to block `from`, for each pair. All are copied at once, 64 pairs to a launch: several may
    /// have one source, but what is written is in no other pair. No pairs: nothing is launched.
    ///
    /// # Errors
    ///
    /// A block that the caches do not have ([`KernelError::NoBlock`]), one that is written by two pairs or both written and read
    /// ([`KernelError::BlockOrder`]: those copies need an order, in calls of their own), wrong lengths, a width that is not whole blocks of the type, an
    /// address that is no multiple of the type's alignment, caches that overlap, a dimension of 0.
    pub fn kv_copy_blocks(
        &self,
        stream: &HipStream,
        kv: KvType,
        caches: [&HipBuffer<u8>; 2],
        shape: KvShape,
        pairs: &[BlockPair],
    ) -> KernelResult<()> {
        let check = Check("kv_copy_blocks");
        let row = cache_row(check, kv, caches, shape)?;
        let mut read = FxHashSet::default();
        let mut written = FxHashSet::default();
        for pair in pairs {
            for block in [pair.from, pair.to] {
                if block as usize >= shape.blocks {
                    return Err(KernelError::NoBlock {
                        op: check.0,
                        block,
                        blocks: shape.blocks,
                    });
                }
            }
            read.insert(pair.from);
            if !written.insert(pair.to) {
                let block = pair.to;
                return Err(KernelError::BlockOrder { op: check.0, block });
            }
        }
        if let Some(&block) = pairs.iter().map(|pair| &pair.to).find(|block| read.contains(block)) {
            return Err(KernelError::BlockOrder { op: check.0, block });
        }
        let block_bytes = shape.block_size * row;
        let (name, unit) = match unit(block_bytes, &caches) {
            16 => ("kv_copy_blocks_b16", 16),
            _ => ("kv_copy_blocks_b2", 2),
        };
        let units = block_bytes / unit;
        let columns = check.dim("units of a block", units.div_ceil(UNITS))?;
        for some in pairs.chunks(PAIRS) {
            let mut list = CopyPairs::zeroed();
            for (index, pair) in some.iter().enumerate() {
                (list.from[index], list.to[index]) = (pair.from, pair.to);
            }
            let args = LaunchArgs::new().out(caches[0]).out(caches[1]);
            let args = args.value(units as u64).value(list);
            let config = geometry::config([columns, some.len() as u32, 2], 256);
            // SAFETY: the caches have the blocks of the shape in whole units, aligned, and are apart; every block of the list exists, and none that is
            // written is read or written by another pair: checked above.
            unsafe { self.launch(stream, FAMILY, name, config, args) }?;
        }
        Ok(())
    }

    /// Rows of one sequence, as they are stored, into memory without gaps: row i of `out` `[rows, width]` is that of key `first + i`, in slot
    /// `table[key / block_size] * block_size + key % block_size`. Keys, then values. `table` has the sequence's blocks in order.
    ///
    /// A block number of a wanted row that is not below `shape.blocks` is a fault at i, and its rows are not written.
    ///
    /// # Errors
    ///
    /// Rows beyond the table, wrong lengths, a width that is not whole blocks of the type, an address that is no multiple of the type's alignment,
    /// overlap, a dimension of 0, a tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn kv_gather(
        &self,
        stream: &HipStream,
        kv: KvType,
        caches: [&HipBuffer<u8>; 2],
        table: &HipBuffer<u32>,
        out: [&HipBuffer<u8>; 2],
        shape: KvShape,
        rows: KvRows,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let check = Check("kv_gather");
        let row = cache_row(check, kv, caches, shape)?;
        let count = check.dim("rows", rows.rows)?;
        let keys = check.rows("blocks of the table * block_size", &[table.len(), shape.block_size])?;
        let end = rows.first.saturating_add(rows.rows);
        check.holds(
            end <= keys as usize,
            "the rows must lie in the table",
            end,
            keys as usize,
        )?;
        let names = ["the gathered keys", "the gathered values"];
        for (name, to) in names.into_iter().zip(out) {
            check.len(name, to, &[rows.rows, row])?;
            check.aligned(name, to, kv.alignment())?;
            for (cache_name, cache) in ["k_cache", "v_cache"].into_iter().zip(caches) {
                check.disjoint((name, to), (cache_name, cache))?;
            }
            check.disjoint((name, to), ("table", table))?;
            check.disjoint((name, to), ("the fault word", faults.word))?;
        }
        check.disjoint((names[0], out[0]), (names[1], out[1]))?;
        let (name, unit) = match unit(row, &[caches[0], caches[1], out[0], out[1]]) {
            16 => ("kv_gather_b16", 16),
            _ => ("kv_gather_b2", 2),
        };
        let units = check.dim("units of a row", row / unit)?;
        let (blocks, block_size) = (shape.blocks as u32, shape.block_size as u32);
        let args = LaunchArgs::new().buffer(caches[0]).buffer(caches[1]).buffer(table);
        let args = args.out(out[0]).out(out[1]).values([rows.first as u32, count]);
        let args = faults.args(check, args.values([units, block_size, blocks]))?;
        let config = geometry::config([count.div_ceil(8), 2, 1], 256);
        // SAFETY: caches and results have the rows of their shapes in whole units, aligned, and are apart; the table has a block for each row, checked
        // above; the kernel compares each block number with its limit.
        unsafe { self.launch(stream, FAMILY, name, config, args) }
    }
}

/// Checks caches against their shape; bytes of a token's row in each.
fn cache_row(check: Check, kv: KvType, caches: [&HipBuffer<u8>; 2], shape: KvShape) -> KernelResult<usize> {
    for (name, size) in [
        ("blocks", shape.blocks),
        ("block_size", shape.block_size),
        ("width", shape.width),
    ] {
        check.dim(name, size)?;
    }
    let [parts, part_bytes] = check.kv_row(kv, "width must be whole blocks of the cache's type", shape.width)?;
    let dims = [shape.blocks, shape.block_size, parts, part_bytes];
    for (name, cache) in ["k_cache", "v_cache"].into_iter().zip(caches) {
        check.len(name, cache, &dims)?;
        check.aligned(name, cache, kv.alignment())?;
    }
    check.disjoint(("k_cache", caches[0]), ("v_cache", caches[1]))?;
    Ok(parts * part_bytes)
}

/// Bytes that are copied at once: 16 where rows or blocks of `bytes` and all addresses are multiples of it.
fn unit(bytes: usize, buffers: &[&HipBuffer<u8>]) -> usize {
    let wide = |buffer: &&HipBuffer<u8>| buffer.as_device_ptr().addr().is_multiple_of(16);
    if bytes.is_multiple_of(16) && buffers.iter().all(wide) {
        16
    } else {
        2
    }
}
