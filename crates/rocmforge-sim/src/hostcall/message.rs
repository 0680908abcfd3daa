//! Messages of several packets.

use std::collections::BTreeMap;

/// Unfinished messages by their numbers.
#[derive(Default)]
pub(crate) struct Messages {
    open: BTreeMap<u64, Vec<u64>>,
}

/// Bits of the descriptor, the first word of a packet: it begins, it ends a message; then how many words follow, and from bit 8 on the
/// message's number.
const BEGIN: u64 = 1;
const END: u64 = 2;
/// Words of an unfinished message, at most.
const MOST: usize = 1 << 20;

impl Messages {
    /// Takes a packet; gives the whole message with its last one. The answer to the others is the descriptor with the message's number.
    pub(crate) fn take(&mut self, data: &mut [u64; 8]) -> Option<Vec<u64>> {
        let descriptor = data[0];
        let mut number = descriptor >> 8;
        if descriptor & BEGIN != 0 {
            number = (0..).find(|n| !self.open.contains_key(n))?;
            self.open.insert(number, Vec::new());
            data[0] = descriptor & 0xFF & !BEGIN | number << 8;
        }
        let count = (descriptor >> 5 & 7) as usize;
        let words = self.open.get_mut(&number)?;
        if words.len() < MOST {
            words.extend(&data[1..=count]);
        }
        if descriptor & END == 0 {
            return None;
        }
        self.open.remove(&number)
    }
}
