//! Helper processes: this program once more, to ask a library that may crash or hang.

use crate::{doctor, supervisor};
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
}

/// Does a helper's work, if this process was started for that. To be called first by every program that uses this library: it answers
/// whether the program is done.
///
/// # Errors
///
/// The helper is not one of ours.
pub fn run_if_asked() -> io::Result<bool> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != FLAG) {
        return Ok(false);
    }
    let name = arguments.next().unwrap_or_default();
    let helper = Helper::ALL.into_iter().find(|helper| name == helper.name());
    match helper {
        Some(Helper::Hip) => doctor::answer(),
        Some(Helper::Nvidia) => supervisor::answer(),
        None => return Err(io::Error::other(format!("no such helper: {}", name.display()))),
    }
    Ok(true)
}
