//! The desktop on a simulated card: what it holds, what happens to it when the card is over-committed, whether it lives.
//!
//! The driver for compute does not know what graphics holds, so an allocation succeeds where it does harm: graphics is
//! moved to system memory, frames are late. When graphics then needs its memory back, our queues are stopped and our
//! memory is moved away. If the hardware does not answer the request to stop, the driver resets it, and with the video
//! memory goes the session. All of this is pieced together from the Linux kernel's source and from bug reports; no card
//! has confirmed it, and its constants are guesses.

pub(crate) mod client;
pub(crate) mod config;
pub(crate) mod model;
pub(crate) mod status;
