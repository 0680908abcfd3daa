//! Token bytes: the raw bytes that each token stands for.

use std::sync::LazyLock;

/// U+2581, which SentencePiece writes for a space.
pub(super) const SPACE_MARK: char = '\u{2581}';

/// The character that stands for each byte in byte-level BPE (GPT-2's table): printable Latin-1 characters stand for
/// themselves, the other 68 bytes for U+0100 and the following, in order.
fn byte_level_chars() -> [char; 256] {
    let mut next = 0x100_u32;
    std::array::from_fn(|byte| {
        let itself = char::from(byte as u8);
        match itself {
            '!'..='~' | '¡'..='¬' | '®'..='ÿ' => itself,
            _ => {
                let moved = char::from_u32(next).unwrap_or(itself);
                next += 1;
                moved
            }
        }
    })
}

/// Inverse of [`byte_level_chars`]: the byte of each character below U+0144.
static BYTE_OF_CHAR: LazyLock<Vec<Option<u8>>> = LazyLock::new(|| {
    let mut table = vec![None; 0x144];
    for (byte, stands) in byte_level_chars().into_iter().enumerate() {
        if let Some(slot) = table.get_mut(stands as usize) {
            *slot = Some(byte as u8);
        }
    }
    table
});

/// Bytes of a byte-level token. A character outside the table stands for its own UTF-8 bytes.
pub(super) fn byte_level(token: &str, out: &mut Vec<u8>) {
    for character in token.chars() {
        match BYTE_OF_CHAR.get(character as usize).copied().flatten() {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// Bytes of a SentencePiece token: the mark is a space.
pub(super) fn sentence_piece(token: &str, out: &mut Vec<u8>) {
    for (index, part) in token.split(SPACE_MARK).enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(part.as_bytes());
    }
}

/// The byte of a token of the form `<0xXX>`.
pub(super) fn byte_token(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let plain = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    plain.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

/// The bytes of all tokens, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct TokenBytes {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl TokenBytes {
    /// Adds the next token's bytes, which `write` appends.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// The bytes of token `id`.
    pub(super) fn get(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let end = *self.ends.get(id)?;
        let start = id
            .checked_sub(1)
            .map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.bytes.get(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_table_is_one_to_one_and_known_at_its_corners() {
        let table = byte_level_chars();
        let distinct: std::collections::HashSet<char> = table.into_iter().collect();
        assert_eq!(distinct.len(), 256);
        for (byte, stands) in [
            (0, 'Ā'),
            (b'\n', 'Ċ'),
            (b' ', 'Ġ'),
            (b'A', 'A'),
            (0xAD, 'Ń'),
            (0xFF, 'ÿ'),
        ] {
            assert_eq!(table[byte as usize], stands, "byte {byte}");
        }
        for byte in 0..=255_u8 {
            let mut out = Vec::new();
            byte_level(&table[byte as usize].to_string(), &mut out);
            assert_eq!(out, [byte]);
        }
    }

    #[test]
    fn byte_tokens_have_two_hexadecimal_digits() {
        assert_eq!(byte_token("<0x0A>"), Some(10));
        assert_eq!(byte_token("<0xff>"), Some(255));
        for other in ["<0x+1>", "<0x1>", "<0x100>", "0x10", "<0xGG>", "<0x>"] {
            assert_eq!(byte_token(other), None, "{other}");
        }
    }
}
