//! Tests without a device: the paged cache, validation, and choice of a kernel.

mod paged;
mod paged_events;
mod paged_random;
mod validation;
