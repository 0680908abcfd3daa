//! `rocmforge-sanitize` as a user runs it: one binary, with a module for each subject.

mod cli;
mod common;
mod launch_files;
mod options;
mod seeds;
mod signals;
mod steps;
