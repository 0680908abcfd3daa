//! Calls of foreign programs beyond the behaviour table: by subject, right and wrong arguments.

mod arrays;
mod devices;
mod graphs;
mod host_functions;
mod textures;
mod values;
mod various;
mod virtual_memory;
