//! Known cards: names and memory of Radeons that people have, and of the graphics in processors.
//!
//! Names and processors: LLVM's table of processors (AMDGPUUsage) and libdrm's `amdgpu.ids`; memory of cards: AMD's data sheets.

use rocmforge::memory::Bytes;

/// A kind of card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownCard {
    /// Its name without "AMD Radeon".
    pub(crate) name: &'static str,
    /// Its memory in GiB; of the graphics in a processor the machine's.
    gib: u64,
    /// The compiler's name of its processor.
    pub(crate) target: &'static str,
    /// Whether it is the graphics of a processor (an APU), which shares the machine's memory.
    pub(crate) is_shared: bool,
}

const fn card(name: &'static str, gib: u64, target: &'static str) -> KnownCard {
    KnownCard {
        name,
        gib,
        target,
        is_shared: false,
    }
}

/// The graphics of a processor, in a machine with this much memory. No table knows how much that is, so its name says it.
const fn apu(name: &'static str, gib: u64, target: &'static str) -> KnownCard {
    KnownCard {
        is_shared: true,
        ..card(name, gib, target)
    }
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
    // Ryzen AI Max (Strix Halo): 40, 32 and 16 compute units, up to 128 GB of LPDDR5X.
    apu("8060S 128GB", 128, "gfx1151"),
    apu("8060S 96GB", 96, "gfx1151"),
    apu("8060S 64GB", 64, "gfx1151"),
    apu("8050S 128GB", 128, "gfx1151"),
    apu("8050S 64GB", 64, "gfx1151"),
    apu("8050S 32GB", 32, "gfx1151"),
    apu("8040S 64GB", 64, "gfx1151"),
    apu("8040S 32GB", 32, "gfx1151"),
    // Ryzen AI 9 (Strix Point): 16 and 12 compute units.
    apu("890M 64GB", 64, "gfx1150"),
    apu("890M 32GB", 32, "gfx1150"),
    apu("880M 32GB", 32, "gfx1150"),
    apu("880M 16GB", 16, "gfx1150"),
    // Ryzen AI 7 and 5 (Krackan Point): 8 and 4 compute units. No kernels here.
    apu("860M 32GB", 32, "gfx1152"),
    apu("840M 16GB", 16, "gfx1152"),
    // Ryzen 7040 and 8040 (Phoenix, Hawk Point): 12 and 8 compute units. No kernels here.
    apu("780M 64GB", 64, "gfx1103"),
    apu("780M 32GB", 32, "gfx1103"),
    apu("760M 16GB", 16, "gfx1103"),
];

/// Whether this program has kernels for a processor.
pub(crate) fn has_kernels(target: &str) -> bool {
    rocmforge::kernels::Pack::for_processor(target).is_some()
}

/// AMD's processors that this program has kernels for, as a list for people.
pub(crate) fn with_kernels() -> String {
    let of_amd = rocmforge::kernels::Pack::embedded_archs().filter(|arch| arch.starts_with("gfx"));
    of_amd.collect::<Vec<_>>().join(", ")
}

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

    /// Whether this program has kernels for it.
    #[cfg(test)]
    fn has_kernels(&self) -> bool {
        has_kernels(self.target)
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

    /// Each AMD pack is for a card or an APU in the table, and those of data centres are not in it.
    #[test]
    fn every_pack_has_a_card() {
        for arch in rocmforge::kernels::Pack::embedded_archs() {
            let is_of_people = arch.starts_with("gfx1");
            let is_known = CARDS.iter().any(|card| card.target == arch);
            assert_eq!(is_known, is_of_people, "{arch}");
        }
        let without = CARDS.iter().filter(|card| !card.has_kernels());
        let mut without: Vec<&str> = without.map(|card| card.target).collect();
        without.dedup();
        assert_eq!(without, ["gfx1031", "gfx1032", "gfx1152", "gfx1103"]);
    }

    #[test]
    fn the_graphics_of_a_processor_is_named_with_the_memory_of_its_machine() {
        let card = KnownCard::of("AMD Radeon 8060S 128GB").expect("known");
        assert_eq!(
            (card.memory(), card.is_shared, card.target),
            (Bytes::gib(128), true, "gfx1151")
        );
        let error = KnownCard::of("Radeon 890M").expect_err("two");
        assert!(error.contains("890M 64GB, 890M 32GB;"), "{error}");
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
