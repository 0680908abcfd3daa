//! The machine's own memory: what may be pinned, and what may be spilled to it.
//!
//! Spilling moves the pressure from the card to the machine, where it ends worse: the kernel's out-of-memory killer takes
//! whatever it likes. So pinned memory and spilled memory have a budget of their own, by the same rules: check and take are
//! one step, and what is granted is given back when its token is dropped.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::sync::Mutex;
use crate::{Bytes, HostReading, Site};
use rocmforge_machine::sysfs::Sysfs;

/// What may be used where the machine does not say how much memory it has.
const HOST_FALLBACK: Bytes = Bytes::gib(1);

/// Where the machine's figures come from.
pub trait HostReadings: Send + Sync {
    /// Reads them now. Called with the budget's mutex held; must not call back into it.
    fn read(&self) -> HostReading;
}

impl HostReadings for Sysfs {
    fn read(&self) -> HostReading {
        self.memory()
    }
}

impl HostReadings for HostReading {
    fn read(&self) -> HostReading {
        *self
    }
}

/// What host memory is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostKind {
    /// Page-locked, for the device to reach: TTM grants 3/8 of the machine's memory in all.
    Pinned,
    /// Ordinary memory that holds what does not fit the card.
    Pageable,
}

/// What stood in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostLimit {
    /// 3/8 of the machine's memory, which is what TTM lets a GPU's driver pin.
    Pinned,
    /// 15/16 of the machine's memory, which is where KFD stops.
    Total,
    /// What is available now, less the sixteenth that is kept for everybody else.
    Available,
    /// The machine does not say how much memory it has.
    Unreadable,
}

impl fmt::Display for HostLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pinned => "the 3/8 of the machine's memory that may be pinned",
            Self::Total => "15/16 of the machine's memory",
            Self::Available => "what other programs leave, less a sixteenth of the machine's memory kept free",
            Self::Unreadable => "the fallback for a machine whose /proc/meminfo cannot be read",
        })
    }
}

/// A request that does not fit the machine's memory. Nothing was taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{label}` ({kind:?}, {site}) asked for {requested} of host memory, but only {room} of {total} are to be had: we hold {held} \
     and {available} are available; limited by {limit}. Free pinned buffers, close programs, or spill less"
)]
pub struct OutOfHostBudget {
    /// What was asked for.
    pub requested: Bytes,
    /// What could have been had.
    pub room: Bytes,
    /// The machine's memory, or 0 if unknown.
    pub total: Bytes,
    /// What programs can still have, or 0 if unknown.
    pub available: Bytes,
    /// What we hold, reservations included.
    pub held: Bytes,
    /// What it was wanted for.
    pub kind: HostKind,
    /// What the request was for.
    pub label: String,
    /// Who asked.
    pub site: Site,
    /// What stood in the way.
    pub limit: HostLimit,
}

/// The budget of host memory that devices use. One for the process, shared by all cards.
pub struct HostBudget {
    readings: Box<dyn HostReadings>,
    held: Mutex<Held>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    pinned: u64,
    pageable: u64,
    /// Of both, what the system may not count as used yet.
    pending: u64,
}

impl Held {
    fn of(&mut self, kind: HostKind) -> &mut u64 {
        match kind {
            HostKind::Pinned => &mut self.pinned,
            HostKind::Pageable => &mut self.pageable,
        }
    }

    fn all(self) -> u64 {
        self.pinned.saturating_add(self.pageable)
    }

    /// What a request can have, and what stands in the way of more.
    fn room(self, kind: HostKind, reading: HostReading) -> (u64, HostLimit) {
        let Some(Bytes(total)) = reading.total.filter(|total| total.0 > 0) else {
            return (HOST_FALLBACK.0.saturating_sub(self.all()), HostLimit::Unreadable);
        };
        let part = |parts: u64, of: u64| (u128::from(total) * u128::from(parts) / u128::from(of)) as u64;
        let available = reading.available.map_or(total, |available| available.0.min(total));
        let mut limits = vec![
            (part(15, 16).saturating_sub(self.all()), HostLimit::Total),
            (
                available.saturating_sub(part(1, 16)).saturating_sub(self.pending),
                HostLimit::Available,
            ),
        ];
        if kind == HostKind::Pinned {
            limits.push((part(3, 8).saturating_sub(self.pinned), HostLimit::Pinned));
        }
        let least = limits.into_iter().min_by_key(|(bytes, _)| *bytes);
        least.unwrap_or((0, HostLimit::Total))
    }
}

impl HostBudget {
    /// A budget over these figures.
    pub fn new(readings: impl HostReadings + 'static) -> Arc<Self> {
        Arc::new(Self {
            readings: Box::new(readings),
            held: Mutex::new(Held::default()),
        })
    }

    /// The one of this machine, by `/proc/meminfo`.
    pub fn of_this_machine() -> Arc<Self> {
        static MACHINE: LazyLock<Arc<HostBudget>> = LazyLock::new(|| HostBudget::new(Sysfs::host()));
        Arc::clone(&MACHINE)
    }

    /// Takes `bytes`, or refuses; check and take are one step, on figures read in this call.
    ///
    /// ```
    /// use rocmforge_memory::{Bytes, HostBudget, HostKind, HostLimit, HostReading};
    ///
    /// let machine = HostReading { total: Some(Bytes::gib(32)), available: Some(Bytes::gib(24)) };
    /// let host = HostBudget::new(machine);
    /// let pinned = host.try_reserve(Bytes::gib(10), HostKind::Pinned, "pages")?.commit();
    /// let refused = host.try_reserve(Bytes::gib(4), HostKind::Pinned, "more pages").unwrap_err();
    /// assert_eq!((refused.room, refused.limit), (Bytes::gib(2), HostLimit::Pinned));
    /// drop(pinned);
    /// # Ok::<(), rocmforge_memory::OutOfHostBudget>(())
    /// ```
    ///
    /// # Errors
    /// [`OutOfHostBudget`] with every figure; nothing is taken then.
    #[track_caller]
    pub fn try_reserve(
        self: &Arc<Self>,
        bytes: Bytes,
        kind: HostKind,
        label: &str,
    ) -> Result<HostReservation, OutOfHostBudget> {
        self.try_reserve_at(bytes, kind, label, Site::caller())
    }

    /// [`HostBudget::try_reserve`] for callers that captured the site themselves.
    ///
    /// # Errors
    /// [`OutOfHostBudget`] with every figure; nothing is taken then.
    pub fn try_reserve_at(
        self: &Arc<Self>,
        bytes: Bytes,
        kind: HostKind,
        label: &str,
        site: Site,
    ) -> Result<HostReservation, OutOfHostBudget> {
        let mut held = self.held.lock();
        let reading = self.readings.read();
        let (room, limit) = held.room(kind, reading);
        if bytes.0 > room {
            return Err(OutOfHostBudget {
                requested: bytes,
                room: Bytes(room),
                total: reading.total.unwrap_or_default(),
                available: reading.available.unwrap_or_default(),
                held: Bytes(held.all()),
                kind,
                label: label.to_owned(),
                site,
                limit,
            });
        }
        *held.of(kind) += bytes.0;
        held.pending += bytes.0;
        drop(held);
        Ok(HostReservation(HostAllocation {
            budget: Arc::clone(self),
            bytes,
            kind,
            pending: true,
        }))
    }

    /// What a request could have now.
    pub fn room(&self, kind: HostKind) -> Bytes {
        let held = self.held.lock();
        Bytes(held.room(kind, self.readings.read()).0)
    }

    /// What is held now, reservations included.
    pub fn held(&self, kind: HostKind) -> Bytes {
        Bytes(*self.held.lock().of(kind))
    }
}

impl fmt::Debug for HostBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostBudget").field(&*self.held.lock()).finish()
    }
}

/// Host memory that is granted and not yet there. Dropping it gives it back.
#[must_use = "dropping a reservation gives it back"]
#[derive(Debug)]
pub struct HostReservation(HostAllocation);

impl HostReservation {
    /// Call it once the memory is there: the system counts it from then on.
    pub fn commit(mut self) -> HostAllocation {
        self.0.end_pending();
        self.0
    }
}

/// Host memory that counts against the budget until this is dropped.
#[must_use = "dropping it gives the bytes back to the budget"]
#[derive(Debug)]
pub struct HostAllocation {
    budget: Arc<HostBudget>,
    bytes: Bytes,
    kind: HostKind,
    pending: bool,
}

impl HostAllocation {
    /// How much it stands for.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// The system counts the bytes by itself from now on, or they are given back.
    fn end_pending(&mut self) {
        if std::mem::take(&mut self.pending) {
            self.budget.held.lock().pending -= self.bytes.0;
        }
    }
}

impl Drop for HostAllocation {
    fn drop(&mut self) {
        self.end_pending();
        *self.budget.held.lock().of(self.kind) -= self.bytes.0;
    }
}
