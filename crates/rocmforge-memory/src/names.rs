//! Names in the ledger: the key of a card, and the place in the source that asked.

use std::fmt;
use std::panic::Location;

/// The name of a card: its PCI address as Linux writes it (`0000:03:00.0`), or `sim:…` for a simulated one.
///
/// Never the HIP ordinal: `ROCR_VISIBLE_DEVICES` and `HIP_VISIBLE_DEVICES` renumber those.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey(pub String);

impl DeviceKey {
    /// Names a card.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where in the source something was asked for.
///
/// Captured at the public method and passed by value: `#[track_caller]` does not reach through closures and `dyn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    /// Source file, as the compiler names it.
    pub file: &'static str,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl Site {
    /// The caller of the function that calls this, if that function is `#[track_caller]`; else the call itself.
    #[track_caller]
    pub fn caller() -> Self {
        let place = Location::caller();
        Self {
            file: place.file(),
            line: place.line(),
            column: place.column(),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
