//! Code objects that compilers made, and hostile bytes.

mod hostile;
mod real_objects;
