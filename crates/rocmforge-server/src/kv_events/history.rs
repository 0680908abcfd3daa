//! History of messages, for subscribers that have missed some: the last of them, within bounds.

use std::collections::VecDeque;

use bytes::Bytes;

/// Most messages, as vLLM has.
const MESSAGES: usize = 10_000;
/// Most bytes of them together.
const BYTES: usize = 32 << 20;

/// Messages with their numbers, which have no gap.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: VecDeque<(u64, Bytes)>,
    bytes: usize,
    next: u64,
}

impl History {
    /// Adds a message, and gives its number.
    pub(super) fn push(&mut self, payload: Bytes) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes += payload.len();
        self.messages.push_back((number, payload));
        while self.messages.len() > MESSAGES || self.bytes > BYTES {
            let Some((_, oldest)) = self.messages.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
        number
    }

    /// Those that are left, from a number on.
    pub(super) fn since(&self, first: u64) -> Vec<(u64, Bytes)> {
        let kept = self.messages.iter().filter(|(number, _)| *number >= first);
        kept.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_bytes_are_bounded() {
        let mut history = History::default();
        for number in 0..MESSAGES as u64 + 5 {
            assert_eq!(history.push(Bytes::from_static(b"event")), number);
        }
        assert_eq!((history.since(0).len(), history.since(0)[0].0), (MESSAGES, 5));
        assert_eq!(history.since(MESSAGES as u64 + 3).len(), 2);
        history.push(vec![0; BYTES].into());
        assert_eq!(history.since(0).len(), 1);
        history.push(vec![0; BYTES + 1].into());
        assert!(history.since(0).is_empty() && history.bytes == 0);
    }
}
