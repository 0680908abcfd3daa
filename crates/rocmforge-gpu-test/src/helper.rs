//! Helper processes: this program once more, to ask a library that may crash or hang.

use std::process::Command;
use std::{env, io};

/// The first argument of a helper process.
const FLAG: &str = "--rocmforge-helper";

/// What a helper process asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    /// AMD's HIP library.
    Hip,
    /// NVIDIA's driver.
    Nvidia,
}

impl Helper {
    const ALL: [Self; 2] = [Self::Hip, Self::Nvidia];

    fn name(self) -> &'static str {
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

    /// What this process was started to ask, if it is a helper; an error if no helper has the name.
    pub(crate) fn of_this_process() -> io::Result<Option<Self>> {
        let mut arguments = env::args_os().skip(1);
        if arguments.next().is_none_or(|first| first != FLAG) {
            return Ok(None);
        }
        let name = arguments.next().unwrap_or_default();
        match Self::ALL.into_iter().find(|helper| name == helper.name()) {
            Some(helper) => Ok(Some(helper)),
            None => Err(io::Error::other(format!("no such helper: {}", name.display()))),
        }
    }
}
