//! Parts that several test targets share: orders of drops, and backends over simulated machines.
#![allow(dead_code)] // each test target uses its own part

pub(crate) mod drop_orders;
pub(crate) mod machine;
