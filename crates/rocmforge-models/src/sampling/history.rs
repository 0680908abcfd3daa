//! History: the tokens seen so far, which penalties read.

use std::collections::HashMap;

/// The tokens of a sequence, and how often each of the last few occurs.
#[derive(Clone, Debug)]
pub(super) struct History {
    tokens: Vec<u32>,
    window: usize,
    counts: HashMap<u32, u32>,
}

impl History {
    /// No tokens; counts will be of the last `window`.
    pub(super) fn new(window: usize) -> Self {
        Self {
            tokens: Vec::new(),
            window,
            counts: HashMap::new(),
        }
    }

    pub(super) fn push(&mut self, token: u32) {
        self.tokens.push(token);
        *self.counts.entry(token).or_default() += 1;
        let Some(leaving) = self.tokens.len().checked_sub(self.window.saturating_add(1)) else {
            return;
        };
        if let Some(count) = self.counts.get_mut(&self.tokens[leaving]) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&self.tokens[leaving]);
            }
        }
    }

    /// All tokens, the oldest first.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// How often each of the last `window` tokens occurs among them.
    pub(super) fn counts(&self) -> &HashMap<u32, u32> {
        &self.counts
    }
}
