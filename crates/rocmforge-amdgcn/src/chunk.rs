//! Chunks: pieces of 4 KiB of a memory, whose state is kept as one while their bytes have one.

use std::ops::Range;

/// Bytes of a chunk.
pub(crate) const CHUNK: usize = 1 << CHUNK_BITS;
pub(crate) const CHUNK_BITS: usize = 12;

/// In the summary of a chunk: its bytes differ, look at the byte states. Without it, the rest of the summary is the state of all of them.
pub(crate) const MIXED: u8 = 0x80;
/// In the summary of a chunk that a share may read only. It has a summary of zero for those that it may not access.
pub(crate) const READ_ONLY: u8 = 4;

/// A copy of a chunk's bytes, or of their states.
pub(crate) type Copied = Box<[u8; CHUNK]>;

/// Copies a chunk.
pub(crate) fn copied(bytes: &[u8]) -> Copied {
    let mut copy = Box::new([0; CHUNK]);
    copy.copy_from_slice(bytes);
    copy
}

/// A range cut at the ends of chunks: each chunk with its part.
pub(crate) fn pieces(off: usize, len: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = off + len;
    (off >> CHUNK_BITS..end.div_ceil(CHUNK)).map(move |chunk| {
        let start = chunk << CHUNK_BITS;
        (chunk, off.max(start)..end.min(start + CHUNK))
    })
}
