//! Numbers: formats and floating-point modes, and arithmetic in them as the hardware does it.

pub(crate) mod mode;
pub(crate) mod num;
