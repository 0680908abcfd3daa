//! Malformed graphs: a corpus of them is refused with messages that name the fault, and random changes of valid graphs never panic.

mod corpus;
mod mutations;
