//! Of `exec::vector`.

#[path = "../../../src/exec/vector/mode.rs"]
mod mode;
#[path = "../../../src/exec/vector/num.rs"]
pub(crate) mod num;
