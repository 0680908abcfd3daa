//! The memory planner on real graphs, on random ones, and on the scenarios of ggml's own test.

mod graphs;
mod random;
mod scenarios;
