//! Streams, and which of their operations may run.

use crate::queues::op::{Op, OpKind};
use crate::queues::point::{Point, StreamId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One stream's operations.
pub(crate) struct Queue {
    pub(crate) card: usize,
    /// Whether it orders itself with the null stream.
    pub(crate) blocking: bool,
    /// The null stream of its card.
    pub(crate) legacy: bool,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    /// Operations enqueued so far; the position of the youngest.
    pub(crate) submitted: u64,
    /// Operations done so far.
    pub(crate) completed: u64,
    pub(crate) pending: VecDeque<Op>,
    /// Its front operation is a host function that runs now, without the lock.
    pub(crate) running: bool,
    /// Its front operation never ends.
    pub(crate) hung: bool,
    /// A test has stopped it.
    pub(crate) held: bool,
    /// Its handle has been destroyed; it goes when it is drained.
    pub(crate) destroyed: bool,
    /// Its front operation waits for a value in memory, which was not there when it was looked for last.
    pub(crate) stalled: bool,
    /// The compute units it was made for, if not all.
    pub(crate) cu_mask: Option<Vec<u32>>,
}

/// All streams of a host.
#[derive(Default)]
pub(crate) struct Queues {
    queues: BTreeMap<StreamId, Queue>,
    next: StreamId,
    serial: u64,
    /// Cards whose queues stand still.
    still: BTreeSet<usize>,
}

impl Queues {
    pub(crate) fn create(&mut self, card: usize, blocking: bool, flags: u32, priority: i32) -> StreamId {
        self.next += 1;
        let queue = Queue {
            card,
            blocking,
            legacy: false,
            flags,
            priority,
            submitted: 0,
            completed: 0,
            pending: VecDeque::new(),
            running: false,
            hung: false,
            held: false,
            destroyed: false,
            stalled: false,
            cu_mask: None,
        };
        self.queues.insert(self.next, queue);
        self.next
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&Queue> {
        self.queues.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Queue> {
        self.queues.get_mut(&id)
    }

    pub(crate) fn destroy(&mut self, id: StreamId) {
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.destroyed = true;
            // No handle is left to resume it by, and what is queued still completes.
            queue.held = false;
        }
        self.sweep(id);
    }

    fn sweep(&mut self, id: StreamId) {
        if self
            .queues
            .get(&id)
            .is_some_and(|queue| queue.destroyed && queue.pending.is_empty() && !queue.running)
        {
            self.queues.remove(&id);
        }
    }

    /// Where a stream stands now.
    pub(crate) fn tail(&self, stream: StreamId) -> Point {
        Point {
            stream,
            position: self.queues.get(&stream).map_or(0, |queue| queue.submitted),
        }
    }

    /// What an operation enqueued to `stream` now must come after by the legacy rules: the null stream waits for every
    /// blocking stream of its card, and they for it.
    fn legacy_edges(&self, stream: StreamId) -> Vec<Point> {
        let Some(queue) = self.queues.get(&stream) else {
            return Vec::new();
        };
        if !queue.legacy && !queue.blocking {
            return Vec::new();
        }
        let orders = |other: &Queue| {
            other.card == queue.card
                && other.completed < other.submitted
                && other.legacy != queue.legacy
                && other.blocking
        };
        let before = self.queues.iter().filter(|(_, other)| orders(other));
        before.map(|(id, _)| self.tail(*id)).collect()
    }

    /// Everything a wait for `stream` waits for.
    pub(crate) fn waited(&self, stream: StreamId) -> Vec<Point> {
        let mut points = self.legacy_edges(stream);
        if self.queues.get(&stream).is_some_and(|queue| !queue.legacy) {
            points.clear();
        }
        points.push(self.tail(stream));
        points
    }

    /// Everything on a card.
    pub(crate) fn all_of(&self, card: usize) -> Vec<Point> {
        let of_card = self.queues.iter().filter(|(_, queue)| queue.card == card);
        of_card.map(|(id, _)| self.tail(*id)).collect()
    }

    /// Appends an operation and gives its position.
    pub(crate) fn push(&mut self, stream: StreamId, mut op: Op) -> Point {
        op.after.extend(self.legacy_edges(stream));
        op.after.retain(|point| !self.is_done(*point));
        self.serial += 1;
        op.serial = self.serial;
        if let Some(queue) = self.queues.get_mut(&stream) {
            queue.submitted += 1;
            queue.pending.push_back(op);
        }
        self.tail(stream)
    }

    pub(crate) fn is_done(&self, point: Point) -> bool {
        self.queues
            .get(&point.stream)
            .is_none_or(|queue| queue.completed >= point.position)
    }

    /// The happens-before past of `points`, as a position per stream.
    pub(crate) fn past(&self, points: &[Point]) -> BTreeMap<StreamId, u64> {
        let mut past = BTreeMap::new();
        let mut todo: Vec<Point> = points.to_vec();
        while let Some(point) = todo.pop() {
            if self.is_done(point) {
                continue;
            }
            let Some(queue) = self.queues.get(&point.stream) else {
                continue;
            };
            let seen = past.get(&point.stream).copied().unwrap_or(queue.completed);
            if seen >= point.position {
                continue;
            }
            past.insert(point.stream, point.position);
            // The front of `pending` is one further when the operation before it has been taken and is not done.
            let front = queue.submitted - queue.pending.len() as u64;
            let (from, to) = (
                seen.saturating_sub(front) as usize,
                point.position.saturating_sub(front) as usize,
            );
            todo.extend(
                queue
                    .pending
                    .range(from..to.max(from))
                    .flat_map(|op| op.after.iter().copied()),
            );
        }
        past
    }

    /// Streams whose front operation may run now, within `past` if given; with the serial number of that operation.
    pub(crate) fn ready(&self, past: Option<&BTreeMap<StreamId, u64>>) -> Vec<(StreamId, u64)> {
        let may_run = |id: StreamId, queue: &Queue| {
            let stands = queue.running || queue.hung || queue.held || queue.stalled || self.still.contains(&queue.card);
            let front = queue.pending.front().filter(|_| !stands)?;
            let free = front.after.iter().all(|point| self.is_done(*point));
            free.then_some((id, front.serial))
        };
        match past {
            Some(past) => past
                .iter()
                .filter_map(|(id, position)| self.queues.get(id).map(|queue| (*id, *position, queue)))
                .filter(|(_, position, queue)| queue.completed < *position)
                .filter_map(|(id, _, queue)| may_run(id, queue))
                .collect(),
            None => self
                .queues
                .iter()
                .filter_map(|(id, queue)| may_run(*id, queue))
                .collect(),
        }
    }

    /// Every operation that is queued and has not been taken to run.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &Op> {
        self.queues.values().flat_map(|queue| &queue.pending)
    }

    /// The last host function of each stream that is queued and has not been taken to run.
    pub(crate) fn host_functions(&self) -> Vec<Point> {
        let last = |(stream, queue): (&StreamId, &Queue)| {
            let mut latest_first = queue.pending.iter().rev();
            let after = latest_first.position(|op| matches!(op.kind, OpKind::Host { .. }))?;
            Some(Point {
                stream: *stream,
                position: queue.submitted - after as u64,
            })
        };
        self.queues.iter().filter_map(last).collect()
    }

    /// Memory may have changed: whoever waits for a value there looks again.
    pub(crate) fn look_again(&mut self) {
        self.queues.values_mut().for_each(|queue| queue.stalled = false);
    }

    /// Whether a test has stopped one of these streams.
    pub(crate) fn any_held<'a>(&self, mut streams: impl Iterator<Item = &'a StreamId>) -> bool {
        streams.any(|id| self.queues.get(id).is_some_and(|queue| queue.held))
    }

    /// Whether one of these streams waits for a value in memory.
    pub(crate) fn any_stalled<'a>(&self, mut streams: impl Iterator<Item = &'a StreamId>) -> bool {
        streams.any(|id| self.queues.get(id).is_some_and(|queue| queue.stalled))
    }

    /// The operation that was taken could not run yet: it is the front one again.
    pub(crate) fn put_back(&mut self, stream: StreamId, op: Op) {
        if let Some(queue) = self.queues.get_mut(&stream) {
            queue.pending.push_front(op);
            queue.stalled = true;
        }
    }

    /// Whether anything was ever enqueued on a card.
    pub(crate) fn any_work_of(&self, card: usize) -> bool {
        self.queues
            .values()
            .any(|queue| queue.card == card && queue.submitted > 0)
    }

    /// Whether the queues of a card have been taken off it by the driver: nothing on them runs.
    pub(crate) fn stand_still(&mut self, card: usize, still: bool) {
        if still {
            self.still.insert(card);
        } else {
            self.still.remove(&card);
        }
    }

    /// Everything that waits on a stream now.
    pub(crate) fn pending_mut(&mut self, stream: StreamId) -> impl Iterator<Item = &mut Op> {
        let queue = self.queues.get_mut(&stream);
        queue.into_iter().flat_map(|queue| &mut queue.pending)
    }

    /// Takes the front operation of a stream to run it. [`Self::finish`] says that it is done.
    pub(crate) fn take(&mut self, stream: StreamId) -> Option<Op> {
        self.queues.get_mut(&stream)?.pending.pop_front()
    }

    /// The operation taken last is done.
    pub(crate) fn finish(&mut self, stream: StreamId) {
        if let Some(queue) = self.queues.get_mut(&stream) {
            // A fault while it ran has abandoned the queue already.
            queue.completed = (queue.completed + 1).min(queue.submitted);
            queue.running = false;
        }
        self.sweep(stream);
    }

    /// Forgets everything queued on a card, as a reset or a fault does.
    pub(crate) fn abandon(&mut self, card: usize) {
        let mut of_card = Vec::new();
        for (id, queue) in self.queues.iter_mut().filter(|(_, queue)| queue.card == card) {
            queue.pending.clear();
            // A host function that runs now ends by itself.
            queue.completed = queue.submitted - u64::from(queue.running);
            queue.hung = false;
            queue.stalled = false;
            of_card.push(*id);
        }
        of_card.into_iter().for_each(|id| self.sweep(id));
    }
}
