//! Supervisor of GPU tests, for any workspace: library and `cargo gpu-test`.
//!
//! A test of code for a GPU can hang the card, and with it the desktop that the card draws. So each test runs in a process of its
//! own, under a deadline, on a card that one run at a time holds, and what it starts ends with it. Two sides:
//!
//! * what a test and its supervisor say to each other, always compiled: [`lock`], [`record`], [`heartbeat`], [`buffers`] with
//!   [`tolerance`], and the variables below. `rocmforge-testkit` is the test's side;
//! * the supervisor, with the feature `supervisor`: `supervisor` runs tests, `bundle` takes them to a machine without Rust,
//!   `doctor` shows what a machine has, `workspace` is what a workspace adds of its own, and `cli` is how the `main` of a
//!   program with these commands begins and ends.
//!
//! A test that must not run twice on a card at once asks for the card's lock:
//!
//! ```
//! use rocmforge_gpu_test::lock::{CardLock, LockError, is_held};
//! use std::time::Duration;
//!
//! let directory = tempfile::tempdir()?;
//! std::fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
//! let lock = CardLock::acquire(directory.path(), "0000:03:00.0", Duration::ZERO, |_| {})?;
//! assert!(is_held(directory.path(), "0000:03:00.0"));
//! let second = CardLock::acquire(directory.path(), "0000:03:00.0", Duration::ZERO, |_| {});
//! assert!(matches!(second, Err(LockError::Held { .. })));
//! drop(lock);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod buffers;
pub mod heartbeat;
pub mod lock;
pub mod record;
pub mod tolerance;

#[cfg(feature = "supervisor")]
#[macro_use]
pub mod print;

#[cfg(feature = "supervisor")]
mod beneath;
#[cfg(feature = "supervisor")]
pub mod bundle;
#[cfg(feature = "supervisor")]
mod card;
#[cfg(feature = "supervisor")]
pub mod cargo;
#[cfg(feature = "supervisor")]
pub mod cli;
#[cfg(feature = "supervisor")]
pub mod doctor;
#[cfg(feature = "supervisor")]
mod helper;
mod root;
#[cfg(feature = "supervisor")]
pub mod supervisor;
#[cfg(feature = "supervisor")]
mod test_binary;
#[cfg(feature = "supervisor")]
mod text;
#[cfg(feature = "supervisor")]
pub mod workspace;

pub use root::root_at_run_time;

#[cfg(feature = "supervisor")]
pub use rocmforge_machine::limited;

/// Names the device of a test process: `sim`, `hip:<PCI address>`, `nvidia:<PCI address>`.
pub const DEVICE_VARIABLE: &str = "ROCMFORGE_DEVICE";
/// Set by the supervisor where a test must be careful: on a card that drives a display, or whose driver cannot take a
/// kernel off it.
pub const CAREFUL_VARIABLE: &str = "ROCMFORGE_CAREFUL";
/// Names the folder of models, where it is not the workspace's own.
pub const MODELS_VARIABLE: &str = "ROCMFORGE_MODELS_DIR";

/// How a command ends: well, or with an error for the user.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;
