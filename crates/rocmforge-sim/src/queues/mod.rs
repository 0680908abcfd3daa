//! Streams: their queues, what orders operations, the choice of the next one, and what happens when it runs.

pub(crate) mod capture;
pub(crate) mod clock;
pub(crate) mod graphs;
pub(crate) mod launch;
pub(crate) mod order;
pub(crate) mod queue;
pub(crate) mod schedule;
pub(crate) mod timeline;
pub(crate) mod work;
