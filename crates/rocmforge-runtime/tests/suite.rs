//! Tests of the whole crate but generated programs and those of a device: one binary, with a module for each subject.

mod common;
mod desktop;
mod logic;
mod sim;
