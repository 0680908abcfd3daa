//! Actors of a call, as the race detector sees them: the calling thread with what it knows, and the operations that it queues.

use crate::calls::call::Call;
use crate::machine::host::Host;
use crate::queues::op::{OpKind, Place};
use crate::queues::point::{Point, StreamId};
use crate::races::shadow::{Actor, How};
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
        let kernel = match kind {
            OpKind::Kernel(launch) => Some((launch.module.clone(), launch.kernel)),
            _ => None,
        };
        let checked = match &kernel {
            Some((module, kernel)) => host.selector.take(&module.kernels[*kernel].name),
            None => true,
        };
        Arc::new(Actor {
            epoch,
            clock,
            api,
            call,
            stream: Some(stream),
            kernel,
            checked,
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
            checked: true,
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
}
