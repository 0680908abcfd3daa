//! Calls: the machine that a program calls, what every call of HIP goes through, and what a test asks of the machine.

pub(crate) mod actors;
pub(crate) mod call;
pub(crate) mod callbacks;
pub(crate) mod control;
pub(crate) mod enqueue;
pub(crate) mod entry;
pub(crate) mod fork;
pub(crate) mod host_access;
pub(crate) mod inspect;
pub(crate) mod leaks;
pub(crate) mod lock;
pub(crate) mod names;
pub(crate) mod observer;
pub(crate) mod readings;
pub(crate) mod sim;
pub(crate) mod steps;
pub(crate) mod unattended;
pub(crate) mod waits;
