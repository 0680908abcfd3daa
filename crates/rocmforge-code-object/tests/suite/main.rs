//! Code objects that compilers made, and hostile bytes.

#[cfg(feature = "debug-info")]
mod debug_info;
mod hostile;
mod real_objects;
