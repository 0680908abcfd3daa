//! A drop-in `libamdhip64` over a simulated Radeon: compiled HIP programs run unmodified on a machine without an AMD GPU, and every
//! kernel they launch is checked.
//!
//! The crate is two things. As a `cdylib` it is the library that programs load: HIP's C interface over
//! [`rocmforge_sim`], with the registration of fat binaries, launches by host address and device symbols that only compiled
//! programs need. As an `rlib` it is what starts such programs: [`Settings`] says how the machine is simulated, [`Installation`]
//! writes the stub libraries (`libamdhip64.so.6` and so on) that a program finds, and [`Record`] is what a program leaves behind.
//!
//! `rocmforge-sanitize run -- PROGRAM` does all of that; see `docs/hip-programs.md`.
//!
//! ```text
//! program ── hipMalloc@hip_4.2 ──► libamdhip64.so.6   a stub library: sonames, version nodes, jumps
//!                                        │
//!                                 librocmforge_hip.so this crate: a table of functions
//!                                        │
//!                                  rocmforge-sim      the simulated machine
//! ```
//!
//! A function that the simulated machine does not have answers `hipErrorNotSupported` and is listed when the program ends. The libraries
//! `libhipblas` and `librocblas` are stub libraries as well; products of matrices are computed on the CPU.
//!
//! A program that starts others itself hands the settings over in an environment variable:
//!
//! ```
//! use rocmforge_hip::{Abi, Settings};
//!
//! let mut settings = Settings::default();
//! settings.cards = vec!["gfx1201".to_owned()];
//! settings.seed = 7;
//! let value = settings.to_variable(); // of ROCMFORGE_HIP_SETTINGS
//! assert_eq!(Settings::from_variable(&value)?, settings);
//! assert!(settings.machine(Abi::Hip6).is_ok());
//! # Ok::<(), rocmforge_hip::SettingsError>(())
//! ```

#![allow(non_upper_case_globals, non_snake_case)] // constants and functions have the names of the C interface

mod absent;
mod auditor;
mod blas;
mod call_stack;
mod companion;
mod entry_point;
mod error;
mod fat_binary;
mod findings;
mod forwarded;
mod function;
mod hip5;
mod host_memory;
mod install;
mod launch;
mod libraries;
mod library;
mod names;
mod per_thread;
mod process;
mod record;
mod registry;
mod rtc;
mod settings;
mod state;
pub mod stub_library;
mod symbol;
mod text;
mod trace;
mod value;

/// What this library says of itself to a program that loads HIP at run time (`rocmforge_hip_sys::HipLibrary::simulates`): its cards are
/// simulated, so no kernel driver knows of them.
#[unsafe(no_mangle)]
pub(crate) static rocmforge_hip_simulates: u32 = 1;

pub use install::{InstallError, Installation, LIBRARY};
pub use names::functions;
pub use record::Record;
pub use settings::{Abi, Settings, SettingsError};
