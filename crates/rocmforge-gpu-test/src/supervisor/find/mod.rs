//! Tests to run: those that cargo builds and that binaries list, or one command.

pub(crate) mod command;
pub(crate) mod discover;
pub(crate) mod narrow;
