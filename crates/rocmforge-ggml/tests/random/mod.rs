//! Random graphs on the CPU beside a reference in f64, their files, and the shrinking of those that fail.

mod cpu;
mod files;
mod planted;
