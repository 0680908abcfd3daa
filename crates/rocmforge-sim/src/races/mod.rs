//! Races between launches, copies and the host: shadow memory, and what the host does to memory.

pub(crate) mod host_access;
pub(crate) mod race;
pub(crate) mod shadow;
pub(crate) mod watch;
