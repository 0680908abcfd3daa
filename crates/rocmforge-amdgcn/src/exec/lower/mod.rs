//! Lowering: from decoded instructions to lowered ones, and the choice of their handlers.

mod decoded;
mod dropped;
mod fenced;
pub(crate) mod functions;
pub(crate) mod halves;
mod idioms;
mod instruction;
pub(crate) mod library;
mod paths;
mod polls;
mod private;
mod unused;
mod updates;
mod values;
mod variables;
#[cfg(test)]
mod words;
