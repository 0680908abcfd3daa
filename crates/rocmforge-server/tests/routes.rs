//! All routes: their description is that of the server.

mod common;
mod routes {
    mod described;
    pub(crate) mod requests;
    pub(crate) mod schema;
}
