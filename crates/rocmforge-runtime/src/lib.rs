//! A safe HIP runtime: backend, streams, events, buffers, modules and checked launches over any HIP provider.

mod availability;
mod backend;
mod buffer;
mod copy;
mod core;
mod device;
mod driver;
mod error;
mod event;
mod launch;
mod module;
mod pinned;
mod provider;
mod readings;
mod root;
mod staging;
mod stream;
mod tensor;
mod tracker;

pub use availability::{Availability, Unavailable};
pub use backend::{BackendOptions, HipBackend};
pub use buffer::HipBuffer;
pub use device::{DeviceInfo, DeviceLimits};
pub use error::{HipError, HipResult, LaunchError};
pub use event::HipEvent;
pub use launch::{LaunchArgs, LaunchConfig, ceil_div_u64, safe_grid_dim, validate_launch_config};
pub use module::{HipKernel, HipModule};
pub use pinned::{Pending, PinnedBuffer};
pub use provider::{Cards, Provider};
pub use stream::HipStream;
pub use tensor::DeviceTensor;
// What the public types here are made of.
pub use bytemuck::Pod;
pub use rocmforge_memory::{Bytes, Card, DeviceKey, Elems, Policy};
