//! Call of the command: its options, the checks before a card is used, and the kinds of runs that it asks for.
//!
//! * [`args`], and [`supervisor`], what all runs of a call share;
//! * before: [`check`] with [`examine`], [`waiting`] for the lock;
//! * runs: [`device_run`], [`two_devices`], [`faults`], and [`phases`], which is all of them.

pub(crate) mod args;
pub(crate) mod check;
pub(crate) mod device_run;
pub(crate) mod examine;
pub(crate) mod faults;
pub(crate) mod phases;
pub(crate) mod supervisor;
pub(crate) mod two_devices;
pub(crate) mod waiting;
