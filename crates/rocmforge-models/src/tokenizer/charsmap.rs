//! Charsmap of a `Precompiled` normalizer: SentencePiece's rewriting rules, walked whole before the library reads them.
//!
//! The bytes are the length of a trie in bytes, the trie as a double array of 32-bit units, and the replacements, each with a zero byte after it.
//! The library follows offsets of the trie without a check.

use std::collections::VecDeque;

/// A unit of the double array, as the library `darts-clone` lays it out.
#[derive(Clone, Copy, Debug)]
struct Unit(u32);

impl Unit {
    /// The byte that leads to this unit, or a number that is not a byte where it holds a value.
    fn label(self) -> u32 {
        self.0 & (1 << 31 | 0xff)
    }

    /// What is combined with the position to give that of the children.
    fn offset(self) -> usize {
        ((self.0 >> 10) as usize) << ((self.0 & (1 << 9)) >> 6)
    }

    fn has_value(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    fn value(self) -> usize {
        (self.0 & !(1 << 31)) as usize
    }
}

/// Most bytes of a text that a rule looks at. Rules in use have up to 30; a trie with a cycle would have no end.
const MAX_KEY: usize = 256;

/// How many times its own length a key of `key_bytes` becomes, rounded up; at least 1.
pub(super) fn times(bytes: usize, key_bytes: usize) -> usize {
    bytes.div_ceil(key_bytes.max(1)).max(1)
}

/// A charsmap as SentencePiece applies it. The library's `Precompiled` takes the first rule that fits where this one takes the longest, and
/// loses what follows it in a character of several code points.
#[derive(Debug)]
pub(super) struct Charsmap {
    units: Vec<Unit>,
    replacements: String,
}

impl Charsmap {
    /// Reads and checks the bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, &'static str> {
        let (units, replacements) = parts(bytes)?;
        growth_of(&units, replacements)?;
        let replacements = replacements.to_owned();
        Ok(Self { units, replacements })
    }

    /// The text with the longest rule at each place applied, or `None` if that has more than `limit` bytes.
    pub(super) fn apply(&self, text: &str, limit: usize) -> Option<String> {
        let mut applied = String::with_capacity(text.len().min(limit));
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match self.longest(rest) {
                Some((bytes, replacement)) => {
                    applied.push_str(replacement);
                    rest = rest.get(bytes..).unwrap_or_default();
                }
                None => {
                    applied.push(first);
                    rest = rest.get(first.len_utf8()..).unwrap_or_default();
                }
            }
            if applied.len() > limit {
                return None;
            }
        }
        Some(applied)
    }

    /// Bytes and replacement of the longest rule that the text begins with.
    fn longest(&self, text: &str) -> Option<(usize, &str)> {
        let mut position = self.units.first()?.offset();
        let mut found = None;
        for (at, byte) in text.bytes().enumerate().take(MAX_KEY) {
            position ^= usize::from(byte);
            let Some(unit) = self
                .units
                .get(position)
                .filter(|unit| unit.label() == u32::from(byte) && byte != 0)
            else {
                break;
            };
            position ^= unit.offset();
            // A key that ends within a character is no text.
            if unit.has_value() && text.is_char_boundary(at + 1) {
                found = self.units.get(position).map(|unit| (at + 1, unit.value()));
            }
        }
        let (bytes, value) = found?;
        let replacement = self.replacements.get(value..)?;
        Some((bytes, replacement.split('\0').next().unwrap_or_default()))
    }
}

/// The units of the trie, and the replacements.
fn parts(charsmap: &[u8]) -> Result<(Vec<Unit>, &str), &'static str> {
    let (size, rest) = charsmap
        .split_first_chunk()
        .ok_or("the charsmap has no length of its trie")?;
    // The library takes whole units, and the replacements from behind the last one.
    let size = u32::from_le_bytes(*size) as usize & !3;
    let (trie, replacements) = rest
        .split_at_checked(size)
        .ok_or("the trie of the charsmap is longer than the charsmap")?;
    let replacements =
        std::str::from_utf8(replacements).map_err(|_| "the replacements of the charsmap are not UTF-8")?;
    let units = trie.as_chunks().0.iter();
    Ok((
        units.map(|unit| Unit(u32::from_le_bytes(*unit))).collect(),
        replacements,
    ))
}

/// Checks the charsmap, and gives the most bytes that a rule makes of one byte.
///
/// # Errors
/// What is wrong with it.
pub(super) fn growth(charsmap: &[u8]) -> Result<usize, &'static str> {
    let (units, replacements) = parts(charsmap)?;
    growth_of(&units, replacements)
}

/// [`growth`] of what the charsmap consists of.
fn growth_of(units: &[Unit], replacements: &str) -> Result<usize, &'static str> {
    let root = units.first().ok_or("the trie of the charsmap is empty")?;

    let mut most = 1;
    // Breadth first: a node is met first by its shortest key, which a replacement makes grow most.
    let mut seen = vec![false; units.len()];
    let mut nodes = VecDeque::from([(root.offset(), 1)]);
    while let Some((base, key_bytes)) = nodes.pop_front() {
        match seen.get_mut(base) {
            Some(seen) if *seen => continue,
            Some(seen) => *seen = true,
            None => return Err("a node of the charsmap's trie lies outside it"),
        }
        for byte in 1..=u32::from(u8::MAX) {
            let position = base ^ byte as usize;
            let unit = *units
                .get(position)
                .ok_or("a node of the charsmap's trie lies outside it")?;
            if unit.label() != byte {
                continue;
            }
            let child = position ^ unit.offset();
            if unit.has_value() {
                let value = units
                    .get(child)
                    .ok_or("a value of the charsmap's trie lies outside it")?
                    .value();
                let replacement = replacements
                    .get(value..)
                    .ok_or("a rule of the charsmap leads behind the last replacement")?;
                let bytes = replacement.find('\0').unwrap_or(replacement.len());
                most = most.max(times(bytes, key_bytes));
            }
            nodes.push_back((child, key_bytes + 1));
        }
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A charsmap of these units and replacements.
    fn charsmap(units: &[u32], replacements: &[u8]) -> Vec<u8> {
        let trie = units.iter().flat_map(|unit| unit.to_le_bytes());
        let size = (4 * units.len() as u32).to_le_bytes();
        size.into_iter()
            .chain(trie)
            .chain(replacements.iter().copied())
            .collect()
    }

    /// A trie of 512 units with one rule: "a" becomes what stands at `value`. The root's children are at 256 and above, the value of "a" is at 2.
    fn one_rule(value: u32) -> Vec<u32> {
        let a = 256 ^ u32::from(b'a');
        let mut units = vec![0; 512];
        units[0] = 256 << 10;
        units[a as usize] = (a ^ 2) << 10 | 1 << 8 | u32::from(b'a');
        units[2] = 1 << 31 | value;
        units
    }

    #[test]
    fn growth_is_that_of_the_longest_replacement() {
        assert_eq!(growth(&charsmap(&one_rule(0), b"xyz\0")), Ok(3));
        assert_eq!(growth(&charsmap(&one_rule(2), b"xyz\0")), Ok(1));
        assert_eq!(
            growth(&charsmap(&one_rule(4), b"xyz\0")),
            Ok(1),
            "an empty one at the end"
        );
    }

    #[test]
    fn the_longest_rule_is_applied_within_a_limit() {
        let rules = Charsmap::new(&charsmap(&one_rule(0), b"xyz\0")).expect("rules");
        assert_eq!(rules.apply("bab\0aé", 100).as_deref(), Some("bxyzb\0xyzé"));
        assert_eq!(rules.apply("aaa", 9).as_deref(), Some("xyzxyzxyz"));
        assert_eq!(rules.apply("aaa", 8), None);
        // "a" becomes x, "ab" becomes y: the node of "a" has its children at 300.
        let mut units = one_rule(0);
        let a = (256 ^ u32::from(b'a')) as usize;
        let children = a ^ 300;
        units[a] = (children as u32) << 10 | 1 << 8 | u32::from(b'a');
        units[300] = 1 << 31;
        let b = 300 ^ usize::from(b'b');
        units[b] = ((b ^ 310) as u32) << 10 | 1 << 8 | u32::from(b'b');
        units[310] = 1 << 31 | 2;
        let rules = Charsmap::new(&charsmap(&units, b"x\0y\0")).expect("rules");
        assert_eq!(rules.apply("aabab", 100).as_deref(), Some("xyy"));
    }

    #[test]
    fn what_leads_outside_is_refused() {
        let refused = |bytes: &[u8]| growth(bytes).expect_err("refused");
        refused(&[]);
        refused(&[0; 4]);
        refused(&[0xff; 4]);
        refused(&[4, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        refused(&charsmap(&one_rule(5), b"xyz\0"));
        refused(&charsmap(&one_rule(1), "é\0".as_bytes()));
        refused(&charsmap(&one_rule(0), b"\xff\0"));
        // Children beyond the trie.
        refused(&charsmap(&one_rule(0)[..300], b"xyz\0"));
    }
}
