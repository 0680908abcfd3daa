//! The supervisor against tests that misbehave on purpose: real processes, through the real command.
//!
//! This binary is both: the tests in [`campaign`] start `xtask test-gpu --binary` with this binary again, whose tests in
//! [`faults`] do nothing in an ordinary run.

mod against;
mod attacks;
mod building;
mod bundled;
mod campaign;
mod card;
mod command;
mod contained;
mod disk;
mod expected;
mod faults;
mod interrupt;
mod limits;
mod lock;
mod reports;
mod supervisor;
