//! Random graphs on the CPU beside a reference in f64, their files, and the shrinking of those that fail.

mod cpu;
mod files;
mod planted;
#[path = "../common/random_graph/mod.rs"]
mod random_graph;
#[path = "../common/reference/mod.rs"]
mod reference;
#[path = "../common/weights.rs"]
mod weights;
