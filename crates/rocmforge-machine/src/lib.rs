//! Facts about a Linux machine: GPUs, memory, processes and device names, read from sysfs, KFD and `/proc`. No HIP.
//!
//! * [`sysfs`]: cards, displays, KFD's nodes, who may use them and who does, under an injectable root.
//! * [`process`]: processes with their state, parent and identity; ending one, and not its successor.
//! * [`limited`]: a child program with a time limit and a limit on its output, such as one that asks a driver.
//! * [`uevents`]: the kernel's events about devices.
//! * [`private`]: files that the processes of one user share and no other user may touch.
//! * [`DeviceName`]: which device a user wants, `hip:0` say; [`PciAddress`]: the name of a card.
//! * [`Bytes`], [`Elems`]: numbers of bytes and of elements as different types.
//!
//! Nothing here trusts what it reads: files are read up to a bound, and what does not parse is a typed error.
//!
//! ```
//! use rocmforge_machine::{DeviceName, process::Process, sysfs::Sysfs};
//!
//! let machine = Sysfs::host().machine();
//! for card in machine.amd_cards() {
//!     println!("{}: {} displays", card.name, card.displays());
//! }
//! let me = Process::read(std::process::id()).expect("this process is running");
//! assert!(!me.has_ended());
//! assert_eq!("hip:0000:0A:00.0".parse::<DeviceName>()?.to_string(), "hip:0000:0a:00.0");
//! # Ok::<(), rocmforge_machine::DeviceNameError>(())
//! ```
#![forbid(unsafe_code)]

mod device_name;
mod file;
pub mod limited;
mod pci;
pub mod private;
pub mod process;
pub mod sysfs;
pub mod uevents;
mod units;

pub use device_name::{CardName, DeviceName, DeviceNameError, SIMULATED};
pub use file::ReadError;
pub use pci::{PciAddress, PciAddressError};
pub use units::{Bytes, BytesError, Elems};
