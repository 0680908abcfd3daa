//! All routes: their description is that of the server, and nothing that a client sends is an error of the server.
#![allow(clippy::print_stdout)] // seeds and counts, shown when a test fails or with --nocapture

mod common;
mod routes {
    mod described;
    mod mutations;
    pub(crate) mod requests;
    pub(crate) mod schema;
}
