//! A simulated Radeon: HIP on top of an interpreter of real gfx1100 and gfx1201 machine code, for tests that need no GPU and find
//! what a GPU would hide.
//!
//! [`SimHost`] is a machine with simulated cards. It implements [`HipApi`](rocmforge_hip_sys::HipApi), so the same code
//! runs on it and on AMD's library. It differs from a card in three ways:
//!
//! * **It defers.** Nothing runs when it is enqueued. A wait runs what it must, in an order that a [`Schedule`] picks
//!   among the legal ones; copies touch host memory when they run, not when they are queued.
//! * **It checks.** Every access of every kernel and copy is checked to the byte: out of bounds, freed, never written.
//!   So are frees, handles and launches. What is wrong becomes a [`Report`], whatever the call returned.
//! * **It repeats.** The same seed and the same calls give the same run, see [`SimHost::trace_hash`].
//!
//! ```
//! use rocmforge_hip_sys::*;
//! use rocmforge_sim::{ReportKind, SimConfig, SimHost};
//!
//! let sim = SimHost::new(SimConfig::default());
//! let api = sim.api();
//! let mut ptr = std::ptr::null_mut();
//! // SAFETY: the pointer given to hipMalloc is valid; hipFree takes any value.
//! unsafe {
//!     assert_eq!(api.hipMalloc(&raw mut ptr, 1024), hipSuccess);
//!     assert_eq!(api.hipFree(ptr), hipSuccess);
//!     assert_eq!(api.hipFree(ptr), hipErrorInvalidValue);
//! }
//! assert_eq!(sim.take_reports()[0].kind, ReportKind::DoubleFree);
//! ```

#![allow(non_upper_case_globals)] // the C constants of HIP are matched by name

mod api;
mod clock;
mod config;
pub mod counters;
mod desktop;
mod faults;
mod handle;
mod host;
mod host_access;
#[cfg(feature = "serde")]
mod json;
mod launch;
mod leaks;
mod module;
mod order;
mod pinned;
mod pools;
pub mod program;
mod queue;
mod race;
mod readings;
mod report;
mod schedule;
mod shadow;
mod sim;
mod trace;
mod vram;
mod watch;
mod work;

pub use config::{CardConfig, HipVersion, Poison, Schedule, SimConfig};

pub use desktop::{Client, DesktopConfig, DesktopDeath, DesktopStatus};
pub use faults::{Fault, FaultPlan, FigureFault, FiredFault, LaunchFault, When};
pub use readings::SimReadings;
pub use report::{Access, AllocationInfo, AllocationState, Report, ReportKind, Side, Tool};
/// Which checks kernels run under.
pub use rocmforge_amdgcn::{Arch, Tools};
pub use sim::{Counters, SimError, SimHost};
pub use vram::AllocationStats;
