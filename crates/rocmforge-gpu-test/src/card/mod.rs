//! Cards of a machine, before a test opens one: which there are, and what speaks for and against using them.
//!
//! * which: `device` finds the one that a name means, `nvidia` lists NVIDIA's by files, `probe` by asking their driver;
//! * whether: `preflight` has the findings, `quarantine` remembers cards that a run gave up.

pub(crate) mod device;
pub(crate) mod files;
pub(crate) mod nvidia;
pub(crate) mod preflight;
pub(crate) mod probe;
pub(crate) mod quarantine;
