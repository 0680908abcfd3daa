//! Run on one device: tests in parallel, each supervised from its start to its verdict.
//!
//! [`plan`] is what does not change meanwhile, [`runner`] takes test after test, [`supervise`] is the way of one test, and
//! [`running`] the part of it in which its process lives.

pub(crate) mod plan;
pub(crate) mod runner;
pub(crate) mod running;
pub(crate) mod supervise;
