//! Chain of steps that give memory back, before a request is refused and when others take from the budget.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Weak};

use super::{Card, Reservation, Shared, State};
use crate::pressure::Pressure;
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::{Bytes, Class, DeviceKey, OutOfBudget, Site};

/// A way to give memory back, from what costs least to what costs most. They are taken in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Memory that is idle: free lists.
    TrimPool,
    /// Memory that can be computed or loaded again.
    DropCaches,
    /// Memory whose contents go elsewhere: to the host, within its own budget ([`HostBudget`](crate::HostBudget)).
    Spill,
}

impl Step {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::TrimPool, Self::DropCaches, Self::Spill];
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TrimPool => "trimming the pool",
            Self::DropCaches => "dropping caches",
            Self::Spill => "spilling",
        })
    }
}

/// What a step is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortage {
    /// The card.
    pub device: DeviceKey,
    /// The step.
    pub step: Step,
    /// How much is missing. Less is welcome too; more is given back for nothing.
    pub needed: Bytes,
    /// Who needs it: class and label of a request. `None` if others have taken from the budget.
    pub request: Option<(Class, String)>,
}

/// What the steps of one chain gave back, each as it said itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relief(pub Vec<(Step, Bytes)>);

impl Relief {
    /// All of it.
    pub fn freed(&self) -> Bytes {
        self.0.iter().map(|(_, bytes)| *bytes).sum()
    }
}

impl fmt::Display for Relief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (step, bytes)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{step} freed {bytes}")?;
        }
        Ok(())
    }
}

type Handler = Arc<dyn Fn(&Shortage) -> Bytes + Send + Sync>;

/// The registered steps of a card.
#[derive(Default)]
pub(crate) struct Chain {
    inner: Mutex<Inner>,
    /// A thread is giving back what is held beyond the budget.
    relieving: AtomicBool,
}

#[derive(Default)]
struct Inner {
    next: u64,
    handlers: Vec<(Step, u64, Handler)>,
    /// How often each step was taken, and what it said that it freed.
    taken: [(u64, Bytes); 3],
}

thread_local! {
    /// Whether this thread is in a handler: what it asks for must not start the chain again.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread as being in a handler, also while that panics.
struct Inside;

impl Inside {
    /// `None` if it is in one already.
    fn enter() -> Option<Self> {
        // Made only if it is handed out: one that is dropped unmarks the thread.
        (!INSIDE.replace(true)).then(|| Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Chain {
    /// Takes a step. `None` if nobody has registered for it.
    fn take(&self, shortage: &Shortage) -> Option<Bytes> {
        let ids: Vec<u64> = {
            let inner = self.inner.lock();
            let of_step = inner.handlers.iter().filter(|(step, ..)| *step == shortage.step);
            of_step.map(|(_, id, _)| *id).collect()
        };
        if ids.is_empty() {
            return None;
        }
        let mut freed = Bytes::ZERO;
        for id in ids {
            let handler = {
                let inner = self.inner.lock();
                let found = inner.handlers.iter().find(|(_, other, _)| *other == id);
                found.map(|(.., handler)| Arc::clone(handler))
            };
            // No lock is held, and one that a handler before has unregistered is not called any more.
            if let Some(handler) = handler {
                freed = freed.saturating_add(handler(shortage));
            }
        }
        let (times, bytes) = &mut self.inner.lock().taken[shortage.step as usize];
        *times += 1;
        *bytes = bytes.saturating_add(freed);
        Some(freed)
    }

    /// How often each step was taken and what it freed.
    pub(crate) fn taken(&self) -> [(Step, u64, Bytes); 3] {
        let taken = self.inner.lock().taken;
        Step::ALL.map(|step| (step, taken[step as usize].0, taken[step as usize].1))
    }
}

/// A registered step; dropped, it is registered no more. A call that is under way in another thread may still finish.
#[must_use = "dropping it ends the registration"]
pub struct Registration {
    chain: Weak<Chain>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(chain) = self.chain.upgrade() else { return };
        // The handler may own anything, so it is dropped with no lock held.
        let gone: Vec<_> = {
            let mut inner = chain.inner.lock();
            inner.handlers.extract_if(.., |(_, id, _)| *id == self.id).collect()
        };
        drop(gone);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl State {
    /// What would have to be given back for `bytes` more to fit. `None` if they would not fit an empty card.
    fn missing(&self, bytes: Bytes, class: Class) -> Option<u64> {
        let room = self.tracker.room(class);
        let wanted = self.usage().saturating_add(bytes.0);
        // The driver's overhead is there on an empty card too.
        let empty = room.saturating_sub(self.tracker.hidden());
        (bytes.0 <= empty).then(|| wanted.saturating_sub(room))
    }
}

impl Card {
    /// Registers a way to give memory back; `handler` says how many bytes it has freed.
    ///
    /// It is called by the thread that needs the memory, at most once for a request, with none of the card's locks held: it may
    /// reserve, free, look and register. What it reserves itself does not call handlers again. It must not wait for another
    /// thread that reserves.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use rocmforge_memory::{Bytes, Card, Class, DeviceKey, FixedReadings, Policy, Reading, Site, Step};
    ///
    /// let reading = Reading { total: Some(Bytes::gib(20)), used: Some(Bytes::gib(2)), ..Reading::default() };
    /// let card = Card::new(DeviceKey::new("sim:0"), Policy::desktop(), Box::new(FixedReadings(reading)));
    /// let cache = Arc::new(Mutex::new(vec![card.try_reserve(Bytes::gib(10), Class::Cache, "cache")?.commit()]));
    /// let registration = card.on_pressure(Step::DropCaches, {
    ///     let cache = Arc::clone(&cache);
    ///     move |_shortage| cache.lock().unwrap().drain(..).map(|entry| entry.bytes()).sum()
    /// });
    /// let weights = card.reserve(Bytes::gib(8), Class::Required, "weights")?;
    /// assert!(cache.lock().unwrap().is_empty());
    /// # drop((registration, weights));
    /// # Ok::<(), rocmforge_memory::OutOfBudget>(())
    /// ```
    pub fn on_pressure(
        &self,
        step: Step,
        handler: impl Fn(&Shortage) -> Bytes + Send + Sync + 'static,
    ) -> Registration {
        let chain = &self.ledger.shared.chain;
        let mut inner = chain.inner.lock();
        let id = inner.next;
        inner.next += 1;
        inner.handlers.push((step, id, Arc::new(handler)));
        Registration {
            chain: Arc::downgrade(chain),
            id,
        }
    }

    /// [`Card::try_reserve`], and before it is refused the registered steps, each at most once and only as far as needed.
    ///
    /// A request of [`Class::Cache`] takes no step, nor does one that would not fit if all were given back.
    ///
    /// # Errors
    /// [`OutOfBudget`] with every figure of the decision and what the steps freed; nothing is taken then.
    #[track_caller]
    pub fn reserve(self: &Arc<Self>, bytes: Bytes, class: Class, label: &str) -> Result<Reservation, OutOfBudget> {
        self.reserve_with(bytes, class, label, Site::caller(), || Ok(false))
    }

    /// [`Card::reserve`] for callers that captured the site themselves and keep memory back that is free but still in use:
    /// `free_deferred` waits for it, and says whether there was any. It is called before the first step and after each.
    ///
    /// # Errors
    /// [`OutOfBudget`] as for [`Card::reserve`], or what `free_deferred` said.
    pub fn reserve_with<E: From<OutOfBudget>>(
        self: &Arc<Self>,
        bytes: Bytes,
        class: Class,
        label: &str,
        site: Site,
        mut free_deferred: impl FnMut() -> Result<bool, E>,
    ) -> Result<Reservation, E> {
        let mut refused = match self.try_reserve_at(bytes, class, label, site) {
            Ok(reservation) => return Ok(reservation),
            Err(refused) => refused,
        };
        if free_deferred()? {
            refused = match self.try_reserve_at(bytes, class, label, site) {
                Ok(reservation) => return Ok(reservation),
                Err(refused) => refused,
            };
        }
        let Some(_inside) = Inside::enter().filter(|_| class != Class::Cache) else {
            return Err(refused.into());
        };
        let shared = &self.ledger.shared;
        let mut relief = Relief::default();
        for step in Step::ALL {
            let missing = shared.lock().missing(bytes, class);
            let Some(missing) = missing else { break };
            let shortage = Shortage {
                device: self.key.clone(),
                step,
                needed: Bytes(missing),
                request: Some((class, label.to_owned())),
            };
            let Some(freed) = shared.chain.take(&shortage) else {
                continue;
            };
            relief.0.push((step, freed));
            free_deferred()?;
            refused = match self.try_reserve_at(bytes, class, label, site) {
                Ok(reservation) => return Ok(reservation),
                Err(refused) => refused,
            };
        }
        Err(refused.after(relief).into())
    }

    /// Under [`Pressure::Red`] and worse, takes the registered steps until no more is held than the budget allows. Nothing
    /// otherwise, nor while another thread is at it. A program that was told of the pressure calls it, and the runtime does
    /// at each launch.
    pub fn relieve(&self) -> Relief {
        let nothing = || Ok::<_, std::convert::Infallible>(false);
        match self.relieve_with(nothing) {
            Ok(relief) => relief,
            Err(never) => match never {},
        }
    }

    /// [`Card::relieve`] with a way to wait for what is free but still in use, as in [`Card::reserve_with`].
    ///
    /// # Errors
    /// What `free_deferred` said.
    pub fn relieve_with<E>(&self, mut free_deferred: impl FnMut() -> Result<bool, E>) -> Result<Relief, E> {
        let mut relief = Relief::default();
        if self.look() < Pressure::Red {
            return Ok(relief);
        }
        let shared = &self.ledger.shared;
        let Some(_inside) = Inside::enter() else {
            return Ok(relief);
        };
        let Some(_relieving) = Relieving::begin(shared) else {
            return Ok(relief);
        };
        free_deferred()?;
        for step in Step::ALL {
            let excess = shared.lock().excess();
            if excess == 0 {
                break;
            }
            let shortage = Shortage {
                device: self.key.clone(),
                step,
                needed: Bytes(excess),
                request: None,
            };
            if let Some(freed) = shared.chain.take(&shortage) {
                relief.0.push((step, freed));
                free_deferred()?;
            }
        }
        shared.subscribers.tell();
        Ok(relief)
    }
}

/// One thread gives back what is too much; two would give back twice as much.
struct Relieving<'a>(&'a Shared);

impl<'a> Relieving<'a> {
    fn begin(shared: &'a Shared) -> Option<Self> {
        (!shared.chain.relieving.swap(true, Ordering::AcqRel)).then(|| Self(shared))
    }
}

impl Drop for Relieving<'_> {
    fn drop(&mut self) {
        self.0.chain.relieving.store(false, Ordering::Release);
    }
}
