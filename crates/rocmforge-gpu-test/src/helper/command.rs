//! Command that starts a helper process, and what it is for.

use std::process::Command;

/// The first argument of a helper process.
pub(super) const FLAG: &str = "--rocmforge-helper";

/// What a helper process asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// AMD's HIP library.
    Hip,
    /// NVIDIA's driver.
    Nvidia,
}

impl Helper {
    pub(super) const ALL: [Self; 2] = [Self::Hip, Self::Nvidia];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hip => "hip",
            Self::Nvidia => "nvidia",
        }
    }

    /// The command that starts it.
    pub(crate) fn command(self) -> Command {
        // Not by our path: building the tests may have put another program there.
        let mut command = Command::new("/proc/self/exe");
        command.args([FLAG, self.name()]);
        command
    }
}
