//! Units: numbers of bytes and numbers of elements, as different types.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
///
/// Arithmetic is checked or saturating by name; there is no `+`, so that no sum overflows unseen.
///
/// ```
/// use rocmforge_machine::Bytes;
/// assert_eq!(Bytes::gib(3).to_string(), "3.0 GiB (3221225472 B)");
/// assert_eq!(Bytes(7).to_string(), "7 B");
/// assert_eq!(Bytes(u64::MAX).checked_add(Bytes(1)), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// A number of elements of some type; never a number of bytes.
///
/// ```
/// use rocmforge_machine::{Bytes, Elems};
/// assert_eq!(Elems(10).bytes_of::<f32>(), Some(Bytes(40)));
/// assert_eq!(Elems(usize::MAX).bytes_of::<f32>(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Elems(pub usize);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// `n` KiB, saturating.
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(KIB))
    }

    /// `n` MiB, saturating.
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(MIB))
    }

    /// `n` GiB, saturating.
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(GIB))
    }

    /// The sum, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The difference, or `None` below zero.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(difference) => Some(Self(difference)),
            None => None,
        }
    }

    /// The sum, at most `u64::MAX`.
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The product, or `None` on overflow.
    pub const fn checked_mul(self, n: u64) -> Option<Self> {
        match self.0.checked_mul(n) {
            Some(product) => Some(Self(product)),
            None => None,
        }
    }

    /// `percent` hundredths of this, rounded down; `percent` above 100 counts as 100.
    pub const fn percent(self, percent: u8) -> Self {
        let percent = if percent > 100 { 100 } else { percent };
        // The product needs 71 bits at most.
        Self((self.0 as u128 * percent as u128 / 100) as u64)
    }

    /// The size of something in this process's memory.
    pub const fn from_usize(n: usize) -> Self {
        Self(n as u64)
    }

    /// The number as `usize`, or `None` where that type is narrower.
    pub fn to_usize(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }
}

impl Elems {
    /// The bytes that this many `T` occupy, or `None` on overflow.
    pub const fn bytes_of<T>(self) -> Option<Bytes> {
        match (self.0 as u64).checked_mul(size_of::<T>() as u64) {
            Some(bytes) => Some(Bytes(bytes)),
            None => None,
        }
    }

    /// The sum, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// The product, or `None` on overflow.
    pub const fn checked_mul(self, other: Self) -> Option<Self> {
        match self.0.checked_mul(other.0) {
            Some(product) => Some(Self(product)),
            None => None,
        }
    }
}

impl From<u64> for Bytes {
    fn from(bytes: u64) -> Self {
        Self(bytes)
    }
}

impl From<usize> for Bytes {
    fn from(bytes: usize) -> Self {
        Self(bytes as u64)
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::saturating_add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            n if n >= GIB => (GIB, "GiB"),
            n if n >= MIB => (MIB, "MiB"),
            n if n >= KIB => (KIB, "KiB"),
            n => return write!(f, "{n} B"),
        };
        // One decimal, rounded down: a figure shown never exceeds the figure meant.
        let tenths = self.0 as u128 * 10 / unit as u128;
        write!(f, "{}.{} {name} ({} B)", tenths / 10, tenths % 10, self.0)
    }
}

/// A text that is no number of bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no size: it is a whole number with B, KiB, MiB or GiB, such as 64MiB, and below 2^64 bytes")]
pub struct BytesError(String);

impl FromStr for Bytes {
    type Err = BytesError;

    /// `64MiB`, `2 GiB`, `4096`: a whole number of B (or nothing), KiB, MiB or GiB.
    fn from_str(text: &str) -> Result<Self, BytesError> {
        let error = || BytesError(text.to_owned());
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let unit = match unit.trim_start() {
            "" | "B" => 1,
            "KiB" => KIB,
            "MiB" => MIB,
            "GiB" => GIB,
            _ => return Err(error()),
        };
        let number: u64 = number.parse().map_err(|_| error())?;
        number.checked_mul(unit).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Elems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("64MiB", Bytes::mib(64)),
            ("2 GiB", Bytes::gib(2)),
            ("0", Bytes(0)),
            ("7B", Bytes(7)),
        ] {
            assert_eq!(text.parse(), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1",
            "1.5GiB",
            "64 MB",
            "64MiBx",
            "99999999999999999999",
            "18446744073709551615KiB",
            "é",
        ] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("64MiB"), "{error}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit_rounded_down_and_to_the_byte() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB (1024 B)"),
            (MIB - 1, "1023.9 KiB (1048575 B)"),
            (MIB, "1.0 MiB (1048576 B)"),
            (GIB - 1, "1023.9 MiB (1073741823 B)"),
            (3 * GIB / 2, "1.5 GiB (1610612736 B)"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(Elems(3).to_string(), "3 elements");
    }

    #[test]
    fn sums_and_products_that_do_not_fit_are_none_or_the_largest() {
        let (all, half) = (Bytes(u64::MAX), Bytes(1 << 63));
        assert_eq!(Bytes(5).checked_add(Bytes(2)), Some(Bytes(7)));
        assert_eq!((all.checked_add(Bytes(1)), half.saturating_add(half)), (None, all));
        assert_eq!((Bytes(5).checked_mul(2), half.checked_mul(2)), (Some(Bytes(10)), None));
        assert_eq!(Bytes(7).checked_sub(Bytes(5)), Some(Bytes(2)));
        assert_eq!(Bytes(5).checked_sub(Bytes(7)), None);
        assert_eq!(Bytes(5).saturating_sub(Bytes(7)), Bytes::ZERO);
        assert_eq!([Bytes(1), all].into_iter().sum::<Bytes>(), all);
        assert_eq!(
            (Elems(5).checked_add(Elems(2)), Elems(5).checked_mul(Elems(2))),
            (Some(Elems(7)), Some(Elems(10)))
        );
        let most = Elems(usize::MAX);
        assert_eq!((most.checked_add(Elems(1)), most.checked_mul(Elems(2))), (None, None));
        assert_eq!(
            (Elems(3).bytes_of::<u16>(), most.bytes_of::<u16>()),
            (Some(Bytes(6)), None)
        );
    }

    #[test]
    fn the_units_are_powers_of_1024() {
        assert_eq!(
            (Bytes::kib(3).0, Bytes::mib(3).0, Bytes::gib(3).0),
            (3 << 10, 3 << 20, 3 << 30)
        );
        assert_eq!(Bytes::gib(1 << 40), Bytes(u64::MAX));
        assert_eq!(
            (Bytes(199).percent(50), Bytes(u64::MAX).percent(101)),
            (Bytes(99), Bytes(u64::MAX))
        );
        assert_eq!(
            (Bytes::from(7_u64), Bytes::from(7_usize), Bytes(7).to_usize()),
            (Bytes(7), Bytes(7), Some(7))
        );
    }
}
