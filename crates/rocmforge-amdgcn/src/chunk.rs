//! Chunks: pieces of 4 KiB of a memory, whose state is kept as one while their bytes have one. Blocks: pieces of 256 B of a chunk.

use std::ops::Range;

/// Bytes of a chunk.
pub(crate) const CHUNK: usize = 1 << CHUNK_BITS;
pub(crate) const CHUNK_BITS: usize = 12;
/// Bytes of a block: allocations begin at multiples of it.
pub(crate) const BLOCK: usize = 1 << BLOCK_BITS;
pub(crate) const BLOCK_BITS: usize = 8;
/// Blocks of a chunk.
pub(crate) const BLOCKS: usize = CHUNK / BLOCK;

/// In the summary of a chunk: its bytes differ, look at the byte states. Without it, the rest of the summary is the state of all of them.
pub(crate) const MIXED: u8 = 0x80;
/// In the summary of a chunk that a share may read only. It has a summary of zero for those that it may not access.
/// Where it claims blocks, in the states of their bytes.
pub(crate) const READ_ONLY: u8 = 4;
/// In the summary of a chunk of which a share claims blocks, beside [`MIXED`].
pub(crate) const BY_BLOCKS: u8 = 8;

/// A copy of a chunk's bytes.
pub(crate) type Chunk = Box<[u8; CHUNK]>;
/// A copy of a block's bytes, or of their states.
pub(crate) type Block = [u8; BLOCK];

/// Copies a block.
pub(crate) fn block_of(bytes: &[u8]) -> Block {
    let mut copy = [0; BLOCK];
    copy.copy_from_slice(bytes);
    copy
}

/// The bytes of a block.
pub(crate) fn block_range(block: usize) -> Range<usize> {
    block << BLOCK_BITS..(block + 1) << BLOCK_BITS
}

/// A range cut at the ends of blocks: each block with its part.
pub(crate) fn pieces(off: usize, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = off + len;
    (off >> BLOCK_BITS..end.div_ceil(BLOCK)).map(move |block| {
        let range = block_range(block);
        (block, off.max(range.start)..end.min(range.end))
    })
}
