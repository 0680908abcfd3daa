//! Folders of the user's files, as the XDG Base Directory Specification names them.

use std::path::PathBuf;

/// `rocmforge` among the user's data: in `$XDG_DATA_HOME`, else in `~/.local/share`; `None` where neither is known.
pub(crate) fn data() -> Option<PathBuf> {
    of_user("XDG_DATA_HOME", ".local/share")
}

/// `rocmforge` among the state of programs: in `$XDG_STATE_HOME`, else in `~/.local/state`; `None` where neither is known.
pub(crate) fn state() -> Option<PathBuf> {
    of_user("XDG_STATE_HOME", ".local/state")
}

fn of_user(variable: &str, usual: &str) -> Option<PathBuf> {
    // The specification says that a path which is not absolute is ignored.
    let absolute = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let folder = absolute(variable).or_else(|| Some(absolute("HOME")?.join(usual)))?;
    Some(folder.join("rocmforge"))
}
