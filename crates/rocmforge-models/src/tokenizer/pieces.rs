//! Pieces of a prompt: text of the program and text of users, tokenized together.

use super::{AddBos, Tokenizer, TokenizerError};

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Whether control tokens in it are control tokens. If not, they are text: a user cannot end their own turn by writing
    /// `<|im_end|>`.
    pub trusted: bool,
}

impl Tokenizer {
    /// The ids of the joined pieces, with what the model wants at the start.
    ///
    /// A control token is parsed only where all of its text is trusted; neighbouring trusted pieces count as one. Apart from
    /// that the borders of pieces change nothing: the joined text is split and merged as one. `bos` is added as the model
    /// wants, unless the text begins with it, and nothing is added at the end.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_pieces(&self, pieces: &[Piece]) -> Result<Vec<u32>, TokenizerError> {
        let add_bos = if self.add_bos() { AddBos::Yes } else { AddBos::No };
        self.encode_pieces_with(pieces, add_bos)
    }

    /// [`Self::encode_pieces`], with or without what the model wants at the start.
    pub(crate) fn encode_pieces_with(&self, pieces: &[Piece], add_bos: AddBos) -> Result<Vec<u32>, TokenizerError> {
        let mut text = String::new();
        let mut trusted: Vec<std::ops::Range<usize>> = Vec::new();
        for piece in pieces.iter().filter(|piece| !piece.text.is_empty()) {
            let start = text.len();
            text.push_str(&piece.text);
            if piece.trusted {
                match trusted.last_mut() {
                    Some(last) if last.end == start => last.end = text.len(),
                    _ => trusted.push(start..text.len()),
                }
            }
        }
        self.encode_spans(&text, &trusted, add_bos)
    }
}
