//! MXFP4 of a checkpoint: codes and scales in two tensors, which are put together to ggml's blocks.

/// Bytes of the codes of a block, of two elements each.
pub(super) const CODES: usize = 16;
/// Elements of a block.
pub(super) const ELEMENTS: usize = 2 * CODES;

/// Blocks of 17 bytes: the scale, then codes. A byte of a checkpoint has two neighbours; one of a block has elements `i` and `i + 16`.
pub(super) fn blocks(codes: &[u8], scales: &[u8]) -> Vec<u8> {
    let code = |codes: &[u8; CODES], element: usize| codes[element / 2] >> (element % 2 * 4) & 15;
    let mut out = Vec::with_capacity(scales.len() * (CODES + 1));
    for (codes, &scale) in codes.as_chunks::<CODES>().0.iter().zip(scales) {
        out.push(scale);
        out.extend((0..CODES).map(|index| code(codes, index) | code(codes, index + CODES) << 4));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_neighbours_are_put_half_a_block_apart() {
        // Elements 0, 1, 2, ... have the codes 0, 1, ... 15, 0, 1, ...
        let codes: Vec<u8> = (0..16)
            .map(|byte: u8| ((2 * byte) % 16) | (((2 * byte + 1) % 16) << 4))
            .collect();
        let expected: Vec<u8> = std::iter::once(127)
            .chain((0..16).map(|code| code | (code << 4)))
            .collect();
        assert_eq!(blocks(&codes, &[127]), expected);
    }
}
