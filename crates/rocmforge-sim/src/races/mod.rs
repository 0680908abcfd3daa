//! Races between launches, copies and the host: what the detector knows.

pub(crate) mod shadow;
pub(crate) mod table;
pub(crate) mod watch;
