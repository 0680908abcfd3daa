//! Of `exec::waves`.

#[path = "../../../src/exec/waves/group_order.rs"]
mod group_order;
