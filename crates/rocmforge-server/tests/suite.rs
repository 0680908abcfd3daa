//! Faults and panics in the middle, keys, addresses in requests, figures, and forms of answers.

mod common;

mod suite {
    mod context;
    mod ends;
    mod faults;
    mod fetches;
    mod figures;
    mod forms;
    mod keys;
    mod panics;
}
