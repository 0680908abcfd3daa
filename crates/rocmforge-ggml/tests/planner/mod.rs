//! The memory planner on real graphs, on random ones, and on the scenarios of ggml's own test.

mod arena;
mod files;
mod graphs;
mod order;
mod random;
mod scenarios;
