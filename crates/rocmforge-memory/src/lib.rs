//! A VRAM budget that is a promise: one ledger and one budget per card. No unsafe, no HIP.
//!
//! * [`Card`]: budget and ledger of one GPU under one mutex. [`Card::try_reserve`] is the only way to device memory.
//! * [`Reservation`] (bytes promised) becomes [`Allocation`] (bytes in the ledger); both give back when dropped.
//! * [`Card::reserve`] takes registered steps ([`Card::on_pressure`]) before it refuses; [`Card::subscribe`] tells of pressure.
//! * [`HostBudget`]: pinned and spilled memory of the machine, by the same rules.
//! * [`Ledger`], [`Epoch`], [`LeakReport`]: what is alive, exactly, with labels and call sites.
//! * [`Policy`]: how much may be taken; [`Readings`]: where the driver's figures come from.
//! * [`Allocator`]: one trait for whatever hands out blocks, and its layers; [`Pool`] keeps freed blocks for the next
//!   request. [`Uses`]: what a new owner of a block has to wait for.
//! * [`SysfsReadings`]: the figures of a card as Linux shows them, found without HIP.
//!
//! The budget, our own holdings included, is `min(Cap, T - Others - H, Own + K - slack)` within `[0, T - H]`: T the
//! card, Others what everybody else holds, H the headroom kept for the desktop, K what HIP reports free.
//!
//! ```
//! use rocmforge_memory::{Bytes, Card, Class, DeviceKey, FixedReadings, Policy, Reading};
//!
//! let reading = Reading {
//!     total: Some(Bytes::gib(20)),
//!     used: Some(Bytes::gib(2)),
//!     displays: 1,
//!     ..Reading::default()
//! };
//! let card = Card::new(DeviceKey::new("0000:03:00.0"), Policy::desktop(), Box::new(FixedReadings(reading)));
//! assert_eq!(card.budget().budget, Bytes::gib(18).percent(70));
//!
//! let epoch = card.ledger().epoch();
//! let reservation = card.try_reserve(Bytes::mib(512), Class::Required, "weights")?;
//! let allocation = reservation.commit(); // after hipMalloc has succeeded
//! assert_eq!(epoch.leaks().bytes, Bytes::mib(512));
//! drop(allocation);
//! assert!(epoch.leaks().is_clean());
//! # Ok::<(), rocmforge_memory::OutOfBudget>(())
//! ```
#![forbid(unsafe_code)]

mod allocator;
mod budget;
mod card;
mod entries;
mod error;
mod host;
mod ledger;
mod names;
mod peers;
mod policy;
mod pool;
mod pressure;
mod reading;
mod relief;
mod sync;
mod sysfs_readings;
mod uses;

pub use allocator::{
    Allocator, AllocatorError, AllocatorStatistics, Block, Budgeted, Counted, Logged, Named, Names, Request,
};
pub use budget::Warning;
pub use card::{Allocation, BudgetSnapshot, Card, Registration, Reservation, Statistics};
pub use entries::{Entry, EntryKind, HandleKind};
pub use error::{DisplayInUse, LaunchesStopped, Limit, OutOfBudget, Refusal};
pub use host::{HostAllocation, HostBudget, HostKind, HostLimit, HostReadings, HostReservation, OutOfHostBudget};
pub use ledger::{Epoch, HandleToken, LeakReport, Ledger};
pub use names::{DeviceKey, Site};
pub use peers::{Peer, PeerFigures, PeerLedger, PeersError};
pub use policy::{
    Cap, Class, DISPLAY_HEADROOM, HEADLESS_HEADROOM, HOST_HEADROOM, Headroom, OnDisplay, Policy, UnifiedMemory,
};
pub use pool::{Pool, PoolOptions, PoolStatistics};
pub use pressure::{Pressure, PressureChange, Subscription};
pub use reading::{FixedReadings, Reading, Readings, SharedMemory};
pub use relief::{Relief, Shortage, Step};
pub use sysfs_readings::SysfsReadings;
pub use uses::{Access, Queue, Use, Uses};

// What the public types here are made of.
pub use rocmforge_machine::sysfs::HostReading;
pub use rocmforge_machine::{Bytes, Elems};
