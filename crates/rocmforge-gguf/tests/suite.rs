//! Tests of the whole crate but the memory that reading takes: one binary, with a module for each subject.

mod common;
mod suite {
    mod blocks;
    mod getters;
    mod hashes;
    mod malformed;
    mod properties;
    mod roundtrip;
    mod vectors;
}
