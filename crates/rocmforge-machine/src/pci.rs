//! PCI addresses: the name of a card that stays the same however libraries number their devices.

use std::fmt;
use std::str::FromStr;

/// A PCI address, written as Linux writes it: `0000:03:00.0`.
///
/// Parsing takes either case and a domain of 4 to 8 digits.
///
/// ```
/// use rocmforge_machine::PciAddress;
/// let address: PciAddress = "0000:0A:00.0".parse()?;
/// assert_eq!(address.to_string(), "0000:0a:00.0");
/// assert!("0a:00.0".parse::<PciAddress>().is_err());
/// # Ok::<(), rocmforge_machine::PciAddressError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// A text that is no PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no PCI address: one is written as domain, bus, device and function in hexadecimal digits, as in \"0000:03:00.0\""
)]
pub struct PciAddressError(String);

/// Characters of a wrong address that its error shows.
const SHOWN: usize = 40;

impl PciAddress {
    /// The address in KFD's `location_id`, which is `bus << 8 | device << 3 | function`.
    pub(crate) fn of_location(domain: u32, location: u32) -> Self {
        let [function_and_device, bus, ..] = location.to_le_bytes();
        Self {
            domain,
            bus,
            device: function_and_device >> 3,
            function: function_and_device & 7,
        }
    }
}

impl FromStr for PciAddress {
    type Err = PciAddressError;

    fn from_str(text: &str) -> Result<Self, PciAddressError> {
        parse(text).ok_or_else(|| PciAddressError(text.chars().take(SHOWN).collect()))
    }
}

fn parse(text: &str) -> Option<PciAddress> {
    let hex = |part: &str, digits: std::ops::RangeInclusive<usize>| {
        let good = digits.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        good.then(|| u32::from_str_radix(part, 16).ok()).flatten()
    };
    let byte = |part: &str, digits: usize| u8::try_from(hex(part, digits..=digits)?).ok();
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    Some(PciAddress {
        domain: hex(domain, 4..=8)?,
        bus: byte(bus, 2)?,
        device: byte(device, 2)?,
        function: byte(function, 1)?,
    })
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_of_other_shapes_are_refused() {
        for wrong in [
            "",
            "03:00.0",
            "0000:03:00",
            "0000:03:00.",
            "0000:03:00.00",
            "000:03:00.0",
            "000000000:03:00.0",
            "0000:3:00.0",
            "0000:03:00.0/..",
            "0000:03:00.0 ",
            "+000:03:00.0",
            "0000:é3:00.0",
            "0000-03-00-0",
        ] {
            assert_eq!(wrong.parse::<PciAddress>(), Err(PciAddressError(wrong.to_owned())));
        }
        let long = "é".repeat(10_000).parse::<PciAddress>().unwrap_err();
        assert!(long.to_string().len() < 250 && long.to_string().contains("0000:03:00.0"));
    }

    #[test]
    fn a_large_domain_is_written_as_the_kernel_writes_it() {
        for (text, shown) in [
            ("10000:E1:00.0", "10000:e1:00.0"),
            ("00000000:03:00.0", "0000:03:00.0"),
            ("ffffffff:ff:ff.f", "ffffffff:ff:ff.f"),
        ] {
            assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), shown);
        }
        assert_eq!(PciAddress::of_location(0, 0x4321).to_string(), "0000:43:04.1");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_parsed(domain: u32, bus: u8, device: u8, function in 0_u8..16) {
            let address = PciAddress { domain, bus, device, function };
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn any_text_is_an_address_or_an_error(text in "[0-9a-fA-F:.]{0,14}|.{0,20}") {
            if let Ok(address) = text.parse::<PciAddress>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
