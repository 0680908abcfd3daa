//! Host accesses and waits, as the race detector sees them.

use crate::machine::host::Host;
use crate::machine::pinned::Pinned;
use crate::machine::sim::{Call, SimHost};
use crate::machine::thread::OsThread;
use crate::queues::op::{OpKind, Place};
use crate::queues::point::{Point, StreamId};
use crate::races::shadow::{Actor, How};
use crate::races::table::Region;
use crate::report::{Access, ReportKind};
use rocmforge_amdgcn::Frame;
use std::panic::Location;
use std::sync::Arc;

impl Call<'_> {
    /// The calling thread makes its next step.
    pub(crate) fn begin(&mut self) {
        let thread = self.thread;
        self.races.order.step(thread);
    }

    /// The calling thread, in this call.
    pub(crate) fn as_actor(&mut self) -> Arc<Actor> {
        let (thread, api, number) = (self.thread, self.api, self.number);
        self.host_actor(thread, api, number, None)
    }

    /// The operation that this call appends to a stream.
    pub(crate) fn stream_actor(&mut self, stream: StreamId, kind: &OpKind, after: &[Point]) -> Arc<Actor> {
        let (thread, api, call) = (self.thread, self.api, self.number);
        let host: &mut Host = self;
        let (epoch, clock) = match host.queues.get(stream) {
            Some(queue) => host.races.order.enqueue(thread, stream, queue, after),
            None => host.races.order.host(thread),
        };
        Arc::new(Actor {
            epoch,
            clock,
            api,
            call,
            stream: Some(stream),
            kernel: match kind {
                OpKind::Kernel(launch) => Some((launch.module.clone(), launch.kernel)),
                _ => None,
            },
            site: None,
        })
    }

    /// This call has waited for `points`, or found them done.
    pub(crate) fn knows(&mut self, points: &[Point]) {
        let thread = self.thread;
        self.races.order.learn(thread, points);
        self.end_watches(thread);
    }

    /// This call has waited for a stream.
    pub(crate) fn knows_stream(&mut self, stream: StreamId) {
        let thread = self.thread;
        self.races.order.learn_stream(thread, stream);
        self.end_watches(thread);
    }

    /// This call has waited for a card.
    pub(crate) fn knows_card(&mut self, card: usize) {
        let thread = self.thread;
        self.races.order.learn_card(thread, card);
        self.end_watches(thread);
    }

    /// A moment behind everything on a stream.
    pub(crate) fn end_of(&mut self, stream: StreamId) -> Option<Arc<Actor>> {
        let (thread, api, call) = (self.thread, self.api, self.number);
        let host: &mut Host = self;
        let queue = host.queues.get(stream)?;
        let (epoch, clock) = host.races.order.mark(thread, stream, queue);
        Some(Arc::new(Actor {
            epoch,
            clock,
            api,
            call,
            stream: Some(stream),
            kernel: None,
            site: None,
        }))
    }

    /// Fresh memory belongs to the stream it was allocated on.
    pub(crate) fn belongs_to_stream(&mut self, card: usize, address: u64, stream: StreamId) {
        let Some(allocation) = self.cards[card].vram.find(address).cloned() else {
            return;
        };
        let Some(actor) = self.end_of(stream) else { return };
        let (address, id) = (allocation.address, allocation.id);
        let place = Place::Device { card, address, id };
        self.touch(place, allocation.size as usize, How::Allocated, &actor);
    }

    /// Host memory becomes known to HIP, and kernels of every card may access it.
    ///
    /// # Safety
    /// Until it is unpinned its bytes stay readable and writable; their provenance is exposed.
    pub(crate) unsafe fn pin(&mut self, range: Pinned) {
        for card in &mut self.cards {
            // SAFETY: promised by the caller; `unpin` takes it away again. Rust code holds no references to what HIP knows.
            unsafe { card.vram.memory.map_host(range.address as u64, range.size as u64) };
        }
        self.pinned.insert(range);
    }

    /// Pinned memory goes.
    pub(crate) fn unpin(&mut self, address: usize) {
        if let Some(id) = self.pinned.at(address).map(|range| range.id) {
            let actor = self.as_actor();
            self.free_region(Region::Pinned { id }, &actor);
            self.races.watches.forget(id);
        }
        for card in &mut self.cards {
            card.vram.memory.unmap_host(address as u64);
        }
        let call = self.number;
        self.pinned.remove(address, call);
    }
}

impl SimHost {
    /// Tells the race detector that the program reads `size` bytes of host memory here. Without such words it knows the
    /// host's accesses only from copies; a test that reads a buffer a copy fills says so and finds a missing wait under
    /// every schedule. Inside a host function of a stream it counts as that function's.
    #[track_caller]
    pub fn host_reads<T>(&self, start: *const T, size: usize) {
        self.host_access(start.cast(), size, Access::Read, "host read", Location::caller());
    }

    /// The same for a write. The memory itself is not touched.
    #[track_caller]
    pub fn host_writes<T>(&self, start: *const T, size: usize) {
        self.host_access(start.cast(), size, Access::Write, "host write", Location::caller());
    }

    /// Tells the race detector that everything any host thread did so far happens before what the calling one does from
    /// now on, as after joining threads. Only [`SimConfig::separate_threads`](crate::SimConfig::separate_threads) needs
    /// it.
    pub fn joins_threads(&self) {
        self.with_host_mut(|host| {
            let thread = host.host_thread(OsThread::current());
            host.races.order.gather(thread);
        });
    }

    fn host_access(&self, start: *const u8, size: usize, access: Access, api: &'static str, site: &Location<'_>) {
        let os_thread = OsThread::current();
        let frame = Frame {
            function: String::new(),
            file: site.file().to_owned(),
            line: site.line(),
            column: site.column(),
        };
        self.with_host_mut(|host| {
            let address = start.expose_provenance();
            let call = host.calls;
            let actor = match host.callbacks.actor_on(os_thread) {
                Some(actor) => actor.clone(),
                None => {
                    let thread = host.host_thread(os_thread);
                    host.races.order.step(thread);
                    host.host_actor(thread, api, call, Some(frame))
                }
            };
            if host.card_of(address as u64).is_some() {
                let message = "the host cannot touch device memory: on a real card this may crash".to_owned();
                let report = crate::Report::of_call(ReportKind::OutOfBounds, api, call, message);
                host.report(report.at(Some(access), address as u64, size as u64, None));
                return;
            }
            let place = match host.pinned.find(address) {
                Some(range) => Place::Pinned { address, id: range.id },
                None => Place::Pageable { address },
            };
            if access == Access::Write {
                let start = address as u64;
                host.races.watches.taint(start, start.saturating_add(size as u64), None);
            }
            host.touch(place, size, How::Access(access), &actor);
        });
    }
}
