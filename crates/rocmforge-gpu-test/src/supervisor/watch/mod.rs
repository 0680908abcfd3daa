//! What is watched while a test runs: what it says, how it beats, the user, the card, and how it is ended.
//!
//! * of the test: [`output`], [`taken`] (any other pipe), [`heartbeat`] with [`silence`];
//! * of the user: [`interrupt`];
//! * of a card: [`breaker`] with [`kernel_log`], and [`kfd`];
//! * signals in order, until it has ended: [`escalation`].

pub(crate) mod breaker;
pub(crate) mod escalation;
pub(crate) mod heartbeat;
pub(crate) mod interrupt;
pub(crate) mod kernel_log;
pub(crate) mod kfd;
pub(crate) mod output;
pub(crate) mod silence;
pub(crate) mod taken;
