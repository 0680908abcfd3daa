//! Tests inside modules that need nothing else of this crate. They are compiled here with those modules alone: the crate
//! as a whole is not built a second time for them, which takes longer than all its other tests (`test = false` in
//! `Cargo.toml`).

#![allow(dead_code, unreachable_pub)]
// As in the crate.
#![allow(clippy::precedence, clippy::needless_range_loop)]

#[path = "../../src/byte_state.rs"]
mod byte_state;
#[path = "../../src/chunk.rs"]
mod chunk;
#[path = "../../src/claims.rs"]
mod claims;
#[path = "../../src/costs.rs"]
mod costs;
mod exec;
#[path = "../../src/gathered.rs"]
mod gathered;
#[path = "../../src/host_memory.rs"]
mod host_memory;
#[path = "../../src/kernarg.rs"]
mod kernarg;
#[path = "../../src/limits.rs"]
mod limits;
#[path = "../../src/map.rs"]
mod map;
#[path = "../../src/memory.rs"]
mod memory;
#[path = "../../src/shares.rs"]
mod shares;
mod shares_of_memory;
