//! Test kit for GPU code. A dev-dependency only.
//!
//! * [`gpu`] gives a test its device: a simulated Radeon of its own, or the real card that the supervisor
//!   (`cargo xtask test-gpu`) holds the lock of. The lease checks, when it ends, that nothing leaked, no error went unseen
//!   and the simulator has nothing to report.
//! * [`GpuTest`] is a whole test: what it needs of the device, where it is known to fail, seeds, deadlines, and its body.
//! * [`compare`] holds an output to its reference and names the worst element; [`data`] makes seeded inputs and poison.
//! * [`DummyBackend`] runs graphs without memory or arithmetic, to test their logic.
//! * [`HookedBackend`] computes on the CPU, and plants faults and waits. These two need the feature `graphs`, which is on by default.
//! * [`on_every_card`] runs the tests of a binary once more on the other simulated card.
//! * [`skip!`] ends a test that cannot run, visibly.
//! * [`test_model_path`] says where a model lies that was fetched.
//!
//! ```
//! use rocmforge_runtime::DeviceTensor;
//! use rocmforge_testkit::compare::{Tolerance, assert_close};
//! use rocmforge_testkit::data::{rng, widen};
//! use rocmforge_testkit::gpu;
//!
//! let gpu = gpu();
//! let host = rng(1).vec(33);
//! let x = DeviceTensor::from_host(gpu.backend(), &host, &[3, 11])?;
//! assert_close(&x.to_host()?, &widen(&host), &[3, 11], Tolerance::Exact);
//! # Ok::<(), rocmforge_runtime::HipError>(())
//! ```

mod again;
pub mod careful;
pub mod compare;
pub mod data;
pub mod device;
mod driver;
#[cfg(feature = "graphs")]
mod dummy;
mod fixture;
mod gpu_test;
mod heartbeat;
#[cfg(feature = "graphs")]
mod hooked;
mod lease;
mod models;
mod needs;
mod options;
mod recording;
mod skip;
mod watchdog;

pub use again::on_every_card;
#[cfg(feature = "graphs")]
pub use dummy::{DummyBackend, DummyBackendStats};
pub use fixture::{GPU_FIXTURE, GpuTestFixture};
pub use gpu_test::{GpuTest, Verdict};
#[cfg(feature = "graphs")]
pub use hooked::{Hook, HookedBackend};
pub use lease::{GpuLease, LeaseFailure, LeaseFault, gpu, gpu_with};
pub use models::{MODELS_VARIABLE, test_model_path};
pub use needs::{Feature, On};
pub use options::LeaseOptions;
#[doc(hidden)] // for `skip!`
pub use rocmforge_gpu_test::record;
pub use rocmforge_memory::Bytes;
pub use rocmforge_sim::Arch;
