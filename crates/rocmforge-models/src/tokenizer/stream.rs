//! Streaming decoder: turns tokens into text as they come, without cutting a character.

use std::borrow::Borrow;
use std::sync::Arc;

use super::Tokenizer;

/// Decodes one token at a time.
///
/// A character may be spread over several tokens. Its bytes are held back (at most three) until it is complete; bytes that
/// can never become one are U+FFFD. The texts of all calls together are what [`Tokenizer::decode`] gives.
///
/// `T` is what holds the tokenizer: a reference, or an [`Arc`] where the stream outlives its maker.
#[derive(Clone, Debug)]
pub struct DecodeStream<T = Arc<Tokenizer>> {
    tokenizer: T,
    tail: Vec<u8>,
    drop_space: bool,
    show_control: bool,
}

impl<T: Borrow<Tokenizer>> DecodeStream<T> {
    /// A decoder of tokens that continue `prompt`. A space at its start is kept where the prompt ends with text: it stands
    /// between the prompt and what follows.
    pub fn after(tokenizer: T, prompt: &[u32]) -> Self {
        let known: &Tokenizer = tokenizer.borrow();
        let after_text = prompt.last().is_some_and(|&last| !known.is_control(last));
        let drop_space = known.space_prefix && !after_text;
        Self::new(tokenizer, drop_space, false)
    }

    pub(super) fn new(tokenizer: T, drop_space: bool, show_control: bool) -> Self {
        Self {
            tokenizer,
            tail: Vec::new(),
            drop_space,
            show_control,
        }
    }

    /// Adds a token and returns the text that is complete with it, which may be empty. An id outside the vocabulary is
    /// U+FFFD.
    pub fn push(&mut self, id: u32) -> String {
        let tokenizer: &Tokenizer = self.tokenizer.borrow();
        if !self.show_control && tokenizer.is_control(id) {
            return String::new();
        }
        let mut bytes = tokenizer.token_bytes(id).unwrap_or("\u{FFFD}".as_bytes());
        if !bytes.is_empty() {
            if self.drop_space && !tokenizer.is_control(id) {
                bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
            }
            self.drop_space = false;
        }
        self.tail.extend_from_slice(bytes);
        self.take(false)
    }

    /// Ends the text: the bytes that are still held back, as U+FFFD.
    pub fn finish(&mut self) -> String {
        self.take(true)
    }

    /// Takes the complete characters, or with `all` everything.
    fn take(&mut self, all: bool) -> String {
        let mut text = String::new();
        let mut rest = self.tail.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, invalid) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    rest = invalid;
                    match error.error_len() {
                        Some(bad) => rest = &rest[bad..],
                        None if all => rest = &[],
                        None => break,
                    }
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        let held = rest.len();
        self.tail.drain(..self.tail.len() - held);
        text
    }
}
