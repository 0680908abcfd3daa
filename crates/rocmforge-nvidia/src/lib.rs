//! HIP's other platform: [`HipApi`](rocmforge_hip_sys::HipApi) over NVIDIA's driver library.
//!
//! HIP is defined on two platforms. This crate is the second one, so that the safe runtime, the kernels and the tests of
//! this project meet a real driver, and so that who has an NVIDIA card can work on them.
//!
//! * [`CudaDriver`] opens `libcuda.so.1` at run time (no CUDA to build with, nothing linked) and implements `HipApi` by
//!   one or two driver calls per function. It keeps no state but each thread's device and last error, and decides nothing.
//! * [`NvmlReadings`] reads what the budget needs to know of a card through `libnvidia-ml.so.1`.
//!
//! Drivers from CUDA 12 on are supported; an older one lacks a function and is refused by that function's name.
//!
//! What differs from AMD's library, because the driver below differs, is listed in `docs/abi.md`. Modules are PTX text
//! that ends with a NUL byte; the processor is called `sm_90`, major and minor version without a point.
//!
//! ```no_run
//! use rocmforge_hip_sys::HipApi;
//! use rocmforge_nvidia::CudaDriver;
//!
//! let hip = CudaDriver::load()?;
//! let mut devices = 0;
//! // SAFETY: takes no pointer.
//! assert!(unsafe { hip.hipInit(0) }.is_success());
//! // SAFETY: `devices` outlives the call, which writes one int.
//! assert!(unsafe { hip.hipGetDeviceCount(&mut devices) }.is_success());
//! # Ok::<(), rocmforge_nvidia::LoadError>(())
//! ```
#![allow(non_snake_case, non_upper_case_globals)]

pub mod abi;
mod api;
mod attributes;
mod copy;
mod cuda;
mod device;
mod driver;
mod early;
mod errors;
mod event;
mod graph;
mod library;
mod memory;
mod module;
mod nvml;
mod properties;
mod status;
mod stream;

pub use driver::CudaDriver;
pub use library::LoadError;
pub use nvml::NvmlReadings;
