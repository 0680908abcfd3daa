//! Known cards: names and memory of Radeons that people have.

use rocmforge::memory::Bytes;

/// A kind of card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownCard {
    /// Its name without "AMD Radeon".
    pub(crate) name: &'static str,
    /// Its memory in GiB.
    gib: u64,
    /// The compiler's name of its processor.
    pub(crate) target: &'static str,
}

const fn card(name: &'static str, gib: u64, target: &'static str) -> KnownCard {
    KnownCard { name, gib, target }
}

/// All of them, the newest first.
pub(crate) const CARDS: &[KnownCard] = &[
    card("AI PRO R9700", 32, "gfx1201"),
    card("RX 9070 XT", 16, "gfx1201"),
    card("RX 9070", 16, "gfx1201"),
    card("RX 9070 GRE", 12, "gfx1201"),
    card("RX 9060 XT 16GB", 16, "gfx1200"),
    card("RX 9060 XT 8GB", 8, "gfx1200"),
    card("RX 9060", 8, "gfx1200"),
    card("PRO W7900", 48, "gfx1100"),
    card("PRO W7800 48GB", 48, "gfx1100"),
    card("PRO W7800", 32, "gfx1100"),
    card("PRO W7700", 16, "gfx1101"),
    card("PRO W7600", 8, "gfx1102"),
    card("PRO W7500", 8, "gfx1102"),
    card("RX 7900 XTX", 24, "gfx1100"),
    card("RX 7900 XT", 20, "gfx1100"),
    card("RX 7900 GRE", 16, "gfx1100"),
    card("RX 7800 XT", 16, "gfx1101"),
    card("RX 7700 XT", 12, "gfx1101"),
    card("RX 7600 XT", 16, "gfx1102"),
    card("RX 7600", 8, "gfx1102"),
    card("PRO W6800", 32, "gfx1030"),
    card("RX 6950 XT", 16, "gfx1030"),
    card("RX 6900 XT", 16, "gfx1030"),
    card("RX 6800 XT", 16, "gfx1030"),
    card("RX 6800", 16, "gfx1030"),
    card("RX 6750 XT", 12, "gfx1031"),
    card("RX 6700 XT", 12, "gfx1031"),
    card("RX 6700", 10, "gfx1031"),
    card("RX 6650 XT", 8, "gfx1032"),
    card("RX 6600 XT", 8, "gfx1032"),
    card("RX 6600", 8, "gfx1032"),
];

/// A name in small letters without spaces and what every card is called.
fn plain(name: &str) -> String {
    let mut name = name.to_lowercase();
    name.retain(|letter| letter.is_alphanumeric());
    ["amd", "radeon"].iter().fold(name, |name, word| name.replace(word, ""))
}

impl KnownCard {
    /// Its memory.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes::gib(self.gib)
    }

    /// The card of this name, in any spelling.
    ///
    /// # Errors
    /// It is not known; the message has the names that begin alike.
    pub(crate) fn of(name: &str) -> Result<&'static Self, String> {
        let wanted = plain(name);
        if let Some(card) = CARDS.iter().find(|card| plain(card.name) == wanted) {
            return Ok(card);
        }
        let is_like = |card: &&Self| !wanted.is_empty() && plain(card.name).contains(&wanted);
        let like: Vec<&str> = CARDS.iter().filter(is_like).map(|card| card.name).collect();
        let names = match like.as_slice() {
            [] => CARDS.iter().map(|card| card.name).collect(),
            _ => like,
        };
        Err(format!(
            "no card is known as {name:?}; there are {}; --vram takes any size",
            names.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_found_in_any_spelling() {
        for name in ["RX 7900 XTX", "rx7900xtx", "AMD Radeon RX 7900 XTX", "rx-7900-xtx"] {
            assert_eq!(KnownCard::of(name).map(KnownCard::memory), Ok(Bytes::gib(24)), "{name}");
        }
        let error = KnownCard::of("RX 9060 XT").expect_err("two");
        assert!(error.contains("RX 9060 XT 16GB, RX 9060 XT 8GB;"), "{error}");
        assert!(KnownCard::of("").expect_err("none").contains("RX 6600"));
    }

    #[test]
    fn no_name_is_there_twice() {
        for (index, card) in CARDS.iter().enumerate() {
            assert!(
                CARDS[..index].iter().all(|other| plain(other.name) != plain(card.name)),
                "{}",
                card.name
            );
        }
    }
}
