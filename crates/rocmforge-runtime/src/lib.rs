//! A safe HIP runtime: backend, streams, events, buffers, modules and checked launches over any HIP provider.
//!
//! ```
//! use rocmforge_runtime::{BackendOptions, Elems, HipBackend, HipBuffer, Policy, Provider};
//! use rocmforge_sim::{SimConfig, SimHost};
//!
//! // A simulated card; `HipBackend::new_checked()` opens a real one.
//! let sim = SimHost::new(SimConfig::default());
//! let provider = Provider::new(sim.api()).with_clock(sim.clock()).with_readings(Box::new(sim.readings(0)));
//! let backend = HipBackend::open(provider, BackendOptions { policy: Policy::tests(), ..Default::default() })?;
//! assert_eq!(backend.device().arch, "gfx1100");
//!
//! let stream = backend.stream();
//! let x = HipBuffer::from_slice(stream, &[1.0f32, 2.0, 3.0], "x")?;
//! let y = HipBuffer::<f32>::zeroed(stream, Elems(3), "y")?;
//! y.copy_from_buffer(stream, &x)?;
//! assert_eq!(y.view(1..3)?.to_vec(stream)?, [2.0, 3.0]);
//! # Ok::<(), rocmforge_runtime::HipError>(())
//! ```
//!
//! * **Memory.** Every buffer is a reservation of the card's budget first ([`Card`]); there is no other way to one.
//!   [`HipBuffer::clone`] and [`HipBuffer::view`] share the allocation, which is freed once, after the work that uses it.
//! * **Order.** Each allocation knows its last write and last reads, so work on several streams orders itself. An event is
//!   made only when another stream must wait.
//! * **Time.** Every wait polls against a deadline. At the deadline the backend is *poisoned*: it makes no HIP call any
//!   more, and each of its methods says so. What blocks inside of the driver (`hipFree`, `hipHostFree`) cannot be bounded
//!   from here; the supervisor `cargo xtask test-gpu` bounds it.
//! * **Launches.** Geometry and arguments are compared with the code object's own metadata before anything is enqueued.
//! * **Graphs.** [`HipStream::capture`] turns work into a graph that owns what it touches and is replayed as one operation.
//! * **Errors.** [`HipError`] has the figures and says what to do. An error in a `Drop` comes out at the next fallible call.

/// `Debug` of a type that has more to it than the fields named here: `debug_fields!(Type, |it| name: value)`.
macro_rules! debug_fields {
    ($(<$param:ident: $bound:path>)? $name:ident $(<$arg:tt>)?, |$this:ident| $($field:ident: $value:expr),+) => {
        impl$(<$param: $bound>)? std::fmt::Debug for $name$(<$arg>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &$value))+.finish_non_exhaustive()
            }
        }
    };
}

mod availability;
mod backend;
mod buffer;
mod capturing;
pub mod compat;
mod copy;
mod core;
mod device;
mod error;
mod event;
mod graph;
mod hip;
mod launch;
mod launch_log;
mod module;
mod pinned;
mod pinned_range;
mod provider;
mod readings;
mod root;
mod stream;
mod tensor;
mod touched;

pub use crate::core::memory::MemoryStatistics;
pub use availability::Availability;
pub use backend::{BackendOptions, HipBackend, StreamLease};
pub use buffer::HipBuffer;
pub use compat::{ceil_div_u64, safe_grid_dim};
pub use device::{DeviceInfo, DeviceLimits};
pub use error::{GraphError, HipError, HipResult, LaunchError, Unavailable};
pub use event::HipEvent;
pub use graph::{Capture, GraphPinned, HipGraph, HipGraphExec};
pub use launch::{LaunchArgs, LaunchConfig, validate_launch_config};
pub use launch_log::LaunchRecord;

pub use module::{HipKernel, HipModule};
pub use pinned::{Pending, PinnedBuffer};
pub use provider::{Cards, Provider, SharedLedger};
pub use stream::HipStream;
pub use tensor::DeviceTensor;
// What the public types here are made of.
pub use bytemuck::Pod;
pub use rocmforge_memory::{
    Bytes, Card, DeviceKey, Elems, PeerFigures, PeersError, Policy, PoolOptions, PoolStatistics,
};
