//! Checks of a launch: races, values that nobody has written, and counts.

pub(crate) mod count;
pub(crate) mod init;
pub(crate) mod race;
