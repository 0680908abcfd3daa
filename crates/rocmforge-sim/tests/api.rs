//! Calls of foreign programs beyond the behaviour table: by subject, right and wrong arguments.

#[allow(dead_code)] // most of it is for the behaviour rows
mod support;
mod api {
    mod arrays;
    mod devices;
    mod graphs;
    mod host_functions;
    mod values;
    mod various;
    mod virtual_memory;
}
