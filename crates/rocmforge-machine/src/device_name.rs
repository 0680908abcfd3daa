//! Device names: which device a program is to use, as command lines and the environment name it.

use crate::PciAddress;
use std::fmt;
use std::str::FromStr;

/// Processors that the simulator has, by the compiler's names; `sim` alone is the first. The simulator's own tests hold this
/// list to what it executes.
pub const SIMULATED: [&str; 2] = ["gfx1100", "gfx1201"];

/// Characters of a wrong name that its error shows.
const SHOWN: usize = 80;

/// A device: `sim`, `sim:<processor>`, `hip:<card>` or `nvidia:<card>`, a card being its index or its PCI address.
///
/// ```
/// use rocmforge_machine::{CardName, DeviceName};
///
/// assert_eq!("hip:1".parse(), Ok(DeviceName::Hip(CardName::Index(1))));
/// let card: DeviceName = "nvidia:0000:0A:00.0".parse()?;
/// assert_eq!(card.to_string(), "nvidia:0000:0a:00.0");
/// let refused = "sim:gfx942".parse::<DeviceName>().unwrap_err();
/// assert!(refused.to_string().contains("gfx1201"));
/// # Ok::<(), rocmforge_machine::DeviceNameError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceName {
    /// A simulated card of this process, with one of the [`SIMULATED`] processors if one is named.
    Sim(Option<&'static str>),
    /// A card of AMD's library.
    Hip(CardName),
    /// A card of NVIDIA's driver.
    Nvidia(CardName),
}

/// One of the cards of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CardName {
    /// Its index in the library's order, at most [`i32::MAX`] when parsed. The environment can change that order.
    Index(u32),
    /// Its PCI address.
    Pci(PciAddress),
}

/// A text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceNameError {
    /// It has none of the forms.
    #[error("{0:?} names no device: use {FORMS}")]
    Form(String),
    /// It names a processor that is not simulated.
    #[error("{0:?} names no device: simulated processors are {known}; use {FORMS}", known = SIMULATED.join(" and "))]
    Processor(String),
    /// It names neither an index nor a PCI address.
    #[error("{0:?} names no device: after the colon stands an index or a PCI address; use {FORMS}")]
    Card(String),
}

/// The grammar, for those who have got it wrong.
const FORMS: &str = "\"sim\", \"sim:<processor>\", \"hip:<index>\" or \"nvidia:<index>\", or a PCI address in the place of the \
     index, as in \"hip:0000:03:00.0\"";

impl DeviceName {
    /// The PCI address of a card that is named by it.
    pub fn pci(&self) -> Option<PciAddress> {
        match self {
            Self::Hip(CardName::Pci(pci)) | Self::Nvidia(CardName::Pci(pci)) => Some(*pci),
            Self::Sim(_) | Self::Hip(CardName::Index(_)) | Self::Nvidia(CardName::Index(_)) => None,
        }
    }

    /// The processor of a simulated card, the usual one if none is named.
    pub fn simulated_processor(&self) -> Option<&'static str> {
        match self {
            Self::Sim(processor) => Some(processor.unwrap_or(SIMULATED[0])),
            Self::Hip(_) | Self::Nvidia(_) => None,
        }
    }
}

impl FromStr for DeviceName {
    type Err = DeviceNameError;

    fn from_str(name: &str) -> Result<Self, DeviceNameError> {
        let shown = || name.chars().take(SHOWN).collect::<String>();
        let card = |text| CardName::parse(text).ok_or_else(|| DeviceNameError::Card(shown()));
        match name.split_once(':') {
            None if name == "sim" => Ok(Self::Sim(None)),
            Some(("sim", wanted)) => {
                let processor = SIMULATED.into_iter().find(|known| *known == wanted);
                let processor = processor.ok_or_else(|| DeviceNameError::Processor(shown()))?;
                Ok(Self::Sim(Some(processor)))
            }
            Some(("hip", at)) => Ok(Self::Hip(card(at)?)),
            Some(("nvidia", at)) => Ok(Self::Nvidia(card(at)?)),
            _ => Err(DeviceNameError::Form(shown())),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim(None) => f.write_str("sim"),
            Self::Sim(Some(processor)) => write!(f, "sim:{processor}"),
            Self::Hip(card) => write!(f, "hip:{card}"),
            Self::Nvidia(card) => write!(f, "nvidia:{card}"),
        }
    }
}

impl CardName {
    fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            // Both libraries count in `int`.
            Ok(index) => i32::try_from(index).ok().map(|_| Self::Index(index)),
            Err(_) => text.parse().ok().map(Self::Pci),
        }
    }
}

impl fmt::Display for CardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => index.fmt(f),
            Self::Pci(pci) => pci.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pci(text: &str) -> CardName {
        CardName::Pci(text.parse().unwrap())
    }

    #[test]
    fn each_form_is_parsed_and_shown() {
        for (text, name, shown) in [
            ("sim", DeviceName::Sim(None), "sim"),
            ("sim:gfx1100", DeviceName::Sim(Some("gfx1100")), "sim:gfx1100"),
            ("sim:gfx1201", DeviceName::Sim(Some("gfx1201")), "sim:gfx1201"),
            ("hip:1", DeviceName::Hip(CardName::Index(1)), "hip:1"),
            ("hip:007", DeviceName::Hip(CardName::Index(7)), "hip:7"),
            ("nvidia:0", DeviceName::Nvidia(CardName::Index(0)), "nvidia:0"),
            (
                "hip:2147483647",
                DeviceName::Hip(CardName::Index(i32::MAX as u32)),
                "hip:2147483647",
            ),
            (
                "hip:0000:0A:00.0",
                DeviceName::Hip(pci("0000:0a:00.0")),
                "hip:0000:0a:00.0",
            ),
            (
                "nvidia:10000:e1:00.0",
                DeviceName::Nvidia(pci("10000:e1:00.0")),
                "nvidia:10000:e1:00.0",
            ),
        ] {
            assert_eq!(text.parse(), Ok(name));
            assert_eq!(name.to_string(), shown);
            assert_eq!(shown.parse(), Ok(name));
        }
    }

    #[test]
    fn wrong_names_are_refused_with_what_is_right() {
        for wrong in [
            "",
            "sim:",
            "sim:0",
            "sim:1",
            "sim:gfx942",
            "sim:gfx1150",
            "hip",
            "hip:",
            "hip:-1",
            "hip:x",
            "hip: 1",
            "hip:2147483648",
            "hip:99999999999",
            "hip:03:00.0",
            "hip:0000-03-00-0",
            "nvidia",
            "nvidia:",
            "nvidia:x",
            "cuda:0",
            "cpu",
            "radeon",
            "SIM",
            " sim",
        ] {
            let error = wrong.parse::<DeviceName>().unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with(&format!("{wrong:?} names no device")), "{text}");
            assert!(
                text.contains("\"sim\"") && text.contains("hip:<index>") && text.contains("0000:03:00.0"),
                "{text}"
            );
            let processor = wrong.starts_with("sim:");
            assert_eq!(matches!(error, DeviceNameError::Processor(_)), processor, "{wrong:?}");
            assert_eq!(SIMULATED.iter().all(|known| text.contains(known)), processor, "{text}");
        }
        let long = format!("hip:{}", "x".repeat(1 << 20))
            .parse::<DeviceName>()
            .unwrap_err();
        assert!(long.to_string().len() < 500);
    }

    #[test]
    fn a_name_says_address_and_processor() {
        let name = |text: &str| text.parse::<DeviceName>().unwrap();
        assert_eq!(name("nvidia:0000:0a:00.0").pci(), "0000:0a:00.0".parse().ok());
        assert_eq!((name("hip:0").pci(), name("sim").pci()), (None, None));
        assert_eq!(name("sim").simulated_processor(), Some("gfx1100"));
        assert_eq!(name("sim:gfx1201").simulated_processor(), Some("gfx1201"));
        assert_eq!(name("hip:0").simulated_processor(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_name_or_an_error(text in "(sim|hip|nvidia|)(:|)([0-9a-f:.+-]{0,14}|gfx[0-9]{3,4}|.{0,9})") {
            match text.parse::<DeviceName>() {
                Ok(name) => prop_assert_eq!(name.to_string().parse(), Ok(name)),
                Err(error) => prop_assert!(error.to_string().contains("hip:<index>")),
            }
        }
    }
}
