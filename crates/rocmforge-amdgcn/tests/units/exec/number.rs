//! Of `exec::number`.

#[path = "../../../src/exec/number/mode.rs"]
mod mode;
#[path = "../../../src/exec/number/num.rs"]
pub(crate) mod num;
