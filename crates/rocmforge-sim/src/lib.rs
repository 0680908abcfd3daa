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
//!
//! A debug build of your crate builds this one without optimisation, which is some 18 times slower; it says so, once, on stderr. In your
//! workspace's `Cargo.toml`:
//!
//! ```toml
//! [profile.dev.package.rocmforge-isa]
//! opt-level = 2
//! [profile.dev.package.rocmforge-amdgcn]
//! opt-level = 2
//! codegen-units = 1
//! [profile.dev.package.rocmforge-sim]
//! opt-level = 3
//! ```
//!
//! A whole program, as it would call AMD's library: memory, a copy, a launch, the result, and what the simulator says of
//! a launch for one element more than there is.
//!
//! ```
//! use rocmforge_hip_sys::*;
//! use rocmforge_sim::{ReportKind, SimConfig, SimHost, Tools};
//! use std::ffi::c_void;
//! use std::ptr::null_mut;
//!
//! // `hipcc --genco -gline-tables-only --offload-arch=gfx1100 steps.hip -o steps.co`
//! let object = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels/steps-gfx1100.co"))?;
//! // void add(const unsigned *a, const unsigned *b, unsigned *out, unsigned n)
//! let name = c"add";
//!
//! let hip = SimHost::new(SimConfig { tools: Tools::all(), ..SimConfig::default() });
//! let ok = |status: hipError_t| assert_eq!(status, hipSuccess, "{:#?}", hip.reports());
//! let (numbers, mut sums) = ([21u32; 64], [0u32; 64]);
//! let (mut module, mut add, mut a, mut out) = (null_mut(), null_mut(), null_mut(), null_mut());
//! // SAFETY: every pointer is valid for what HIP does with it, and the copies have ended before their arrays go.
//! unsafe {
//!     ok(hip.hipModuleLoadData(&raw mut module, object.as_ptr().cast()));
//!     ok(hip.hipModuleGetFunction(&raw mut add, module, name.as_ptr()));
//!     ok(hip.hipMalloc(&raw mut a, 256));
//!     ok(hip.hipMalloc(&raw mut out, 256));
//!     ok(hip.hipMemcpy(a, numbers.as_ptr().cast(), 256, hipMemcpyHostToDevice));
//!     let launch = |mut n: u32| {
//!         let mut args = [(&raw const a).cast_mut().cast(), (&raw const a).cast_mut().cast(),
//!             (&raw const out).cast_mut().cast(), (&raw mut n).cast::<c_void>()];
//!         hip.hipModuleLaunchKernel(add, 2, 1, 1, 64, 1, 1, 0, null_mut(), args.as_mut_ptr(), null_mut())
//!     };
//!     ok(launch(64));
//!     ok(hip.hipMemcpy(sums.as_mut_ptr().cast(), out, 256, hipMemcpyDeviceToHost));
//!     assert_eq!((sums, hip.reports().len()), ([42; 64], 0));
//!
//!     ok(launch(65));
//!     assert_eq!(hip.hipDeviceSynchronize(), hipErrorIllegalAddress);
//! }
//! for report in hip.take_reports() {
//!     println!("{report}");
//!     assert_eq!((report.kind, report.kernel.as_deref()), (ReportKind::OutOfBounds, Some("add")));
//!     assert_eq!(report.frames[0].line, 24);
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

#![allow(non_upper_case_globals)] // the C constants of HIP are matched by name

mod api;
mod calls;
mod config;
pub mod counters;
mod desktop;
mod execution;
mod faults;
mod hostcall;
#[cfg(feature = "serde")]
mod json;
mod machine;
pub mod program;
mod queues;
mod races;
mod report;
mod report_filter;
mod selection;
mod site;

pub use config::{CardConfig, FreedMemory, HipVersion, Poison, Schedule, SimConfig};

pub use calls::fork::ForkLock;
pub use calls::inspect::Counters;
pub use calls::lock::{LibraryCall, enter_library};
pub use calls::observer::ObservedCall;
pub use calls::readings::{SimHostReadings, SimReadings};
pub use calls::sim::{HostAddresses, SimHost};
pub use desktop::client::Client;
pub use desktop::config::DesktopConfig;
pub use desktop::status::{DesktopDeath, DesktopStatus};
pub use faults::plan::{Fault, FaultPlan, FigureFault, FiredFault, LaunchFault, When};
pub use hostcall::{DeviceOutput, OutputStream};
pub use machine::host::SimError;
pub use machine::module::ForeignCode;
#[doc(hidden)] // the same generator for the sanitizer and the test kit
pub use machine::trace::Rng;
pub use machine::vram::AllocationStats;
pub use queues::timeline::Span;
pub use report::{Access, AllocationInfo, AllocationState, Report, ReportKind, Side, Tool};
pub use report_filter::ReportFilter;
/// Which checks kernels run under.
pub use rocmforge_amdgcn::{Arch, Tools, UnknownArch};
pub use selection::{LaunchSelection, LaunchSelector, NameFilter};
pub use site::Site;
