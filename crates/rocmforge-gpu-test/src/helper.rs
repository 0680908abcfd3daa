//! Helper processes: this program once more, to ask a library that may crash or hang.

mod command;

pub(crate) use command::Helper;

use crate::{doctor, supervisor};
use command::FLAG;
use std::{env, io};

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
