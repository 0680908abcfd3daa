//! Reader of compiled GPU kernels: their target, arguments and where these lie, LDS, scratch and registers.
//!
//! [`CodeObject::parse`] reads an AMD code object (an ELF file, versions 4, 5 and 6) or NVIDIA's PTX text. It needs no GPU,
//! no HIP and no compiler, and it accepts untrusted files: truncated, contradictory or hostile bytes give
//! a [`ParseError`], never a panic, and memory stays in proportion to the file.
//!
//! ```
//! use rocmforge_code_object::{ArgKind, CodeObject};
//!
//! let bytes = include_bytes!("../tests/fixtures/gfx1100-v5.co");
//! let object = CodeObject::parse(bytes)?;
//! assert_eq!(object.target.arch, "gfx1100");
//!
//! let scale = object.kernel("scale").expect("the fixture has it");
//! let sizes: Vec<u32> = scale.explicit_args().map(|arg| arg.size).collect();
//! assert_eq!(sizes, [8, 8, 4, 4]); // two pointers, a float, a count
//! assert_eq!(scale.args[0].kind, ArgKind::GlobalPointer);
//! assert_eq!(scale.max_workgroup_size, 256);
//! # Ok::<(), rocmforge_code_object::ParseError>(())
//! ```
//!
//! Files that hold code objects but are none are refused by name: see [`ParseError::Container`]. With the feature `bundle`, `Bundle`
//! unpacks clang's offload bundles; with `debug-info`, `DebugInfo` finds the source positions of instructions; with `pack`, `PackFile` reads and
//! writes the compressed files in which this project keeps its kernels.

mod arg;
#[cfg(feature = "bundle")]
mod bundle;
mod compute_unit;
mod container;
#[cfg(feature = "debug-info")]
mod debug_info;
mod descriptor;
mod elf;
mod error;
mod kernel;
mod metadata;
mod object;
#[cfg(feature = "pack")]
mod pack;
mod ptx;
mod target;

pub use arg::{ArgKind, ArgMeta, HiddenArg};
#[cfg(feature = "bundle")]
pub use bundle::{Bundle, BundleError, Entry as BundleEntry, Image, MAX_UNPACKED};
pub use compute_unit::{ComputeUnit, Limit, Occupancy};
pub use container::Container;
#[cfg(feature = "debug-info")]
pub use debug_info::{DebugInfo, Frame};
pub use descriptor::{KernelDescriptor, UserSgpr};
pub use error::ParseError;
pub use kernel::{KernelCode, KernelMeta};
pub use object::CodeObject;
#[cfg(feature = "pack")]
pub use pack::{Needed, PackError, PackFile};
pub use target::{FeatureSetting, Target};
