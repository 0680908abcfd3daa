//! Sums of values, as addresses are. A sum goes by the words that are added and a constant, in whatever order and by whatever instructions:
//! a base in scalar registers and an offset of the lane beside it are the same address as their sum of 64 bits.

use crate::exec::lower::values::Value;
use rocmforge_isa::Op;
use std::collections::HashMap;

/// Words of a sum at most. A longer one is a value of its own.
const WORDS: usize = 8;

/// Words that are added as the low and as the high ones of 64 bits, each in the order of their numbers, and a constant.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Sum {
    low: Vec<Value>,
    high: Vec<Value>,
    constant: u64,
}

/// The words of a sum without its constant, by number.
pub(super) type Terms = u32;

/// What is known of sums in a function.
#[derive(Default)]
pub(super) struct Sums {
    /// Constants by number.
    pub(super) known: HashMap<Value, u32>,
    /// Sums of 32 bits.
    words: HashMap<Value, Sum>,
    /// By carry: the low word of its sum, and what was added.
    carries: HashMap<Value, (Value, [Value; 2])>,
    /// Sums of 64 bits.
    pairs: HashMap<[Value; 2], Sum>,
    terms: HashMap<(Vec<Value>, Vec<Value>), Terms>,
    /// The same by number.
    words_of: Vec<(Vec<Value>, Vec<Value>)>,
}

impl Sum {
    /// Adds a word that is no constant, and no sum.
    pub(super) fn add(&mut self, word: Value) {
        let at = self.low.partition_point(|other| *other < word);
        self.low.insert(at, word);
    }
}

impl Sums {
    /// Nothing but the number of the constant 0.
    pub(super) fn new(zero: Value) -> Self {
        Self {
            known: HashMap::from([(zero, 0)]),
            ..Self::default()
        }
    }

    /// Notes a result, if it is a sum.
    pub(super) fn note(&mut self, op: Op, values: &[Value], results: &[Value]) {
        match (op, values, results) {
            (Op::VAddCoU32 | Op::SAddU32 | Op::SAddCoU32, &[a, b, ..], &[sum, carry, ..]) => {
                self.carries.insert(carry, (sum, [a, b]));
                self.note_word(sum, &[a, b]);
            }
            (Op::VAddNcU32 | Op::SAddI32 | Op::SAddCoI32, &[a, b, ..], &[sum, ..]) => self.note_word(sum, &[a, b]),
            (Op::VAdd3U32, &[a, b, c, ..], &[sum, ..]) => self.note_word(sum, &[a, b, c]),
            (Op::VAddCoCiU32 | Op::SAddcU32 | Op::SAddCoCiU32, &[a, b, carry, ..], &[high, ..]) => {
                if let Some(&(low, added)) = self.carries.get(&carry) {
                    self.note_pair([low, high], added, [a, b]);
                }
            }
            (Op::SAddNcU64, &[a, above, b, beyond, ..], &[low, high, ..]) => {
                self.note_pair([low, high], [a, b], [above, beyond]);
            }
            _ => {}
        }
    }

    fn note_word(&mut self, word: Value, added: &[Value]) {
        let sum = self.word(added, 0);
        if sum.low.len() <= WORDS {
            self.words.insert(word, sum);
        }
    }

    fn note_pair(&mut self, pair: [Value; 2], low: [Value; 2], high: [Value; 2]) {
        let mut sum = Sum::default();
        let mut above = high.to_vec();
        for low in low {
            // Which high word belongs to which low one does not matter to a sum of words, but to a sum of sums.
            let known = above.iter().position(|&high| self.pairs.contains_key(&[low, high]));
            if let Some(part) = known.and_then(|at| self.pairs.get(&[low, above.swap_remove(at)])) {
                sum.low.extend(&part.low);
                sum.high.extend(&part.high);
                sum.constant = sum.constant.wrapping_add(part.constant);
            } else {
                sum.low.push(low);
            }
        }
        sum.high.extend(above);
        self.fold(&mut sum);
        if sum.low.len() + sum.high.len() <= WORDS {
            self.pairs.insert(pair, sum);
        }
    }

    /// Moves constants into the constant.
    fn fold(&self, sum: &mut Sum) {
        let Sum { low, high, constant } = sum;
        for (words, shift) in [(low, 0), (high, 32)] {
            words.retain(|word| {
                let known = self.known.get(word);
                let added = known.map_or(0, |&bits| u64::from(bits) << shift);
                *constant = constant.wrapping_add(added);
                known.is_none()
            });
            words.sort_unstable();
        }
    }

    /// The sum of some words and a constant, of 32 bits.
    pub(super) fn word(&self, added: &[Value], constant: i64) -> Sum {
        let mut sum = Sum {
            constant: constant as u64,
            ..Sum::default()
        };
        for word in added {
            match self.words.get(word) {
                Some(part) => {
                    sum.low.extend(&part.low);
                    sum.constant = sum.constant.wrapping_add(part.constant);
                }
                None => sum.low.push(*word),
            }
        }
        self.fold(&mut sum);
        sum.constant = u64::from(sum.constant as u32);
        sum
    }

    /// The sum of a pair of words, a word and a constant, of 64 bits.
    pub(super) fn pair(&self, pair: [Value; 2], offset: Option<Value>, constant: i64) -> Sum {
        let mut sum = self.pairs.get(&pair).cloned().unwrap_or_else(|| Sum {
            low: vec![pair[0]],
            high: vec![pair[1]],
            constant: 0,
        });
        sum.low.extend(offset);
        sum.constant = sum.constant.wrapping_add(constant as u64);
        self.fold(&mut sum);
        sum
    }

    /// The number of the words of a sum, and its constant.
    pub(super) fn number(&mut self, sum: Sum) -> (Terms, i64) {
        let words = (sum.low, sum.high);
        let next = self.words_of.len() as Terms;
        let number = *self.terms.entry(words).or_insert_with_key(|words| {
            self.words_of.push(words.clone());
            next
        });
        (number, sum.constant as i64)
    }

    /// The same, if something has asked for the number of such words.
    pub(super) fn find(&self, sum: Sum) -> Option<(Terms, i64)> {
        let number = *self.terms.get(&(sum.low, sum.high))?;
        Some((number, sum.constant as i64))
    }

    /// The words, if they are one pair.
    pub(super) fn as_pair(&self, terms: Terms) -> Option<[Value; 2]> {
        match self
            .words_of
            .get(terms as usize)
            .map(|(low, high)| (&low[..], &high[..]))
        {
            Some((&[low], &[high])) => Some([low, high]),
            _ => None,
        }
    }
}
