//! Watchers of a running test: of what it says, of its beats, of the user and of the card; and the signals that end it.
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
