//! Streams: their queues, what orders operations, and the choice of the next one.

pub(crate) mod callbacks;
pub(crate) mod capture;
pub(crate) mod clock;
pub(crate) mod event;
pub(crate) mod graphs;
pub(crate) mod launch;
pub(crate) mod op;
pub(crate) mod order;
pub(crate) mod point;
pub(crate) mod queue;
pub(crate) mod schedule;
pub(crate) mod timeline;
