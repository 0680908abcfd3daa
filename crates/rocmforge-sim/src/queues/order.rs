//! Happens-before, as HIP documents it: the clock of every operation and of the host.
//!
//! An operation's clock is complete when it is enqueued. It does not depend on when the operation runs, so what is
//! judged by clocks is judged the same under every schedule. The edges are
//!
//! * the order of a stream, and from the host's past to what it enqueues;
//! * from an event's record to a wait for it (the record that was the latest when the wait was called);
//! * between the legacy null stream and the blocking streams of its card, both ways;
//! * from what a call has waited for (or found done by asking) to what the host does next. In a strict simulation
//!   accidental waits do not happen, so they order nothing either.
//!
//! Nobody tells the simulator how host threads are ordered among themselves. Their HIP calls count as ordered in the
//! order in which they were made, unless [`SimConfig::separate_threads`](crate::SimConfig::separate_threads) asks for
//! only those edges that go through a stream or an event.

use crate::machine::thread::HostThread;
use crate::queues::clock::{Clock, Epoch, Party};
use crate::queues::point::{Point, StreamId};
use crate::queues::queue::Queue;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The clocks of one stream. They outlive it until the host knows all that it did: an event of it may be waited for.
struct Line {
    card: usize,
    /// The stream has been destroyed.
    ended: bool,
    blocking: bool,
    legacy: bool,
    /// Clock of everything so far.
    tail: Arc<Clock>,
    /// Clocks of its operations, from position `first` on.
    past: VecDeque<Arc<Clock>>,
    first: u64,
    /// Marks behind the latest operation, see [`Order::mark`].
    marks: u64,
}

/// A stream's time counts its operations in the upper bits, and below them the marks behind the latest.
const MARK_BITS: u32 = 24;

impl Line {
    fn last(&self) -> u64 {
        self.first + self.past.len() as u64 - 1
    }

    /// Clock of the operation at `position`, without the marks behind it. None if everybody knows it for long.
    fn at(&self, position: u64) -> Option<&Arc<Clock>> {
        self.past.get(position.checked_sub(self.first)? as usize)
    }
}

/// Clocks kept per stream before those are dropped that the host knows.
const KEPT: usize = 64;

/// All clocks of a host.
pub(crate) struct Order {
    lines: BTreeMap<StreamId, Line>,
    hosts: BTreeMap<HostThread, Clock>,
    separate_threads: bool,
}

/// All host threads, where they count as one.
pub(crate) const EVERY_THREAD: HostThread = HostThread::Logical(u32::MAX);

impl Order {
    pub(crate) fn new(separate_threads: bool) -> Self {
        Self {
            lines: BTreeMap::new(),
            hosts: BTreeMap::new(),
            separate_threads,
        }
    }

    fn who(&self, thread: HostThread) -> HostThread {
        if self.separate_threads { thread } else { EVERY_THREAD }
    }

    fn host_mut(&mut self, thread: HostThread) -> &mut Clock {
        let who = self.who(thread);
        self.hosts.entry(who).or_default()
    }

    /// Streams whose clocks are kept.
    pub(crate) fn streams(&self) -> usize {
        self.lines.len()
    }

    /// A host thread makes its next step.
    pub(crate) fn step(&mut self, thread: HostThread) {
        let party = Party::Host(self.who(thread));
        let clock = self.host_mut(thread);
        let time = clock.get(party) + 1;
        clock.reach(Epoch { party, time });
    }

    /// Where a host thread stands now.
    pub(crate) fn host(&mut self, thread: HostThread) -> (Epoch, Arc<Clock>) {
        let party = Party::Host(self.who(thread));
        let clock = self.host_mut(thread);
        let time = clock.get(party);
        (Epoch { party, time }, Arc::new(clock.clone()))
    }

    /// What every host thread knows. None if threads are separate: one that comes later knows nothing.
    pub(crate) fn known(&self) -> Option<&Clock> {
        if self.separate_threads {
            None
        } else {
            self.hosts.get(&EVERY_THREAD)
        }
    }

    /// A stream has been destroyed: nothing more is enqueued to it.
    pub(crate) fn end(&mut self, stream: StreamId) {
        if let Some(line) = self.lines.get_mut(&stream) {
            line.ended = true;
        }
        self.forget_ended();
    }

    /// Forgets destroyed streams of which the host knows everything: it is in the past of all that is enqueued from now on.
    fn forget_ended(&mut self) {
        if self.separate_threads {
            return;
        }
        let Some(known) = self.hosts.get(&EVERY_THREAD) else {
            return;
        };
        self.lines.retain(|&stream, line| {
            let party = Party::Stream(stream);
            let time = line.tail.get(party);
            !line.ended || !known.covers(Epoch { party, time })
        });
    }

    fn line_mut(&mut self, stream: StreamId, queue: &Queue) -> &mut Line {
        if !self.lines.contains_key(&stream) {
            // What was not known when a stream was destroyed may be by now.
            self.forget_ended();
        }
        self.lines.entry(stream).or_insert_with(|| Line {
            card: queue.card,
            ended: false,
            blocking: queue.blocking,
            legacy: queue.legacy,
            tail: Arc::default(),
            past: VecDeque::from([Arc::default()]),
            first: 0,
            marks: 0,
        })
    }

    /// The streams an operation of `stream` orders itself with by the legacy rule.
    fn legacy_partners(&self, stream: StreamId) -> Vec<Arc<Clock>> {
        let Some(line) = self.lines.get(&stream) else {
            return Vec::new();
        };
        if !line.legacy && !line.blocking {
            return Vec::new();
        }
        let partner = |other: &&Line| other.card == line.card && other.legacy != line.legacy && other.blocking;
        self.lines
            .values()
            .filter(partner)
            .map(|other| other.tail.clone())
            .collect()
    }

    /// The clock of the operation that `thread` enqueues to `stream` now, after `after`; and its moment.
    pub(crate) fn enqueue(
        &mut self,
        thread: HostThread,
        stream: StreamId,
        queue: &Queue,
        after: &[Point],
    ) -> (Epoch, Arc<Clock>) {
        let mut clock = Clock::clone(&self.line_mut(stream, queue).tail);
        for partner in self.legacy_partners(stream) {
            clock.join(&partner);
        }
        for point in after {
            if let Some(found) = self.lines.get(&point.stream).and_then(|line| line.at(point.position)) {
                clock.join(found);
            }
        }
        clock.join(self.host_mut(thread));
        let known = self.known().map(|clock| clock.get(Party::Stream(stream)) >> MARK_BITS);
        let line = self.line_mut(stream, queue);
        let epoch = Epoch {
            party: Party::Stream(stream),
            time: (line.last() + 1) << MARK_BITS,
        };
        clock.reach(epoch);
        line.marks = 0;
        let clock = Arc::new(clock);
        line.tail = clock.clone();
        line.past.push_back(clock.clone());
        if line.past.len() > KEPT {
            while known.is_some_and(|known| line.first < known) && line.past.len() > 1 {
                line.past.pop_front();
                line.first += 1;
            }
        }
        (epoch, clock)
    }

    /// A moment of a stream behind all it has, without an operation: what is enqueued later is behind it, an event that was
    /// recorded before is not.
    pub(crate) fn mark(&mut self, thread: HostThread, stream: StreamId, queue: &Queue) -> (Epoch, Arc<Clock>) {
        let mut clock = self.host_mut(thread).clone();
        let line = self.line_mut(stream, queue);
        clock.join(&line.tail);
        // Marks beyond the largest number that the bits hold are equal.
        line.marks = (line.marks + 1).min((1 << MARK_BITS) - 1);
        let epoch = Epoch {
            party: Party::Stream(stream),
            time: line.last() << MARK_BITS | line.marks,
        };
        clock.reach(epoch);
        line.tail = Arc::new(clock);
        (epoch, line.tail.clone())
    }

    /// A stream has seen a value in memory that it waited for, at `position`. Who wrote it is not known, so what the stream does from
    /// there on counts as behind everything there was.
    pub(crate) fn saw_value(&mut self, stream: StreamId, position: u64) -> Clock {
        let mut all = Clock::default();
        for line in self.lines.values() {
            all.join(&line.tail);
        }
        for host in self.hosts.values() {
            all.join(host);
        }
        let Some(line) = self.lines.get_mut(&stream) else {
            return all;
        };
        let first = line.first;
        let later = line.past.iter_mut().zip(first..).filter(|(_, at)| *at >= position);
        for clock in later.map(|(clock, _)| clock).chain([&mut line.tail]) {
            let mut joined = Clock::clone(clock);
            joined.join(&all);
            *clock = Arc::new(joined);
        }
        all
    }

    /// A host thread has waited for `points`.
    pub(crate) fn learn(&mut self, thread: HostThread, points: &[Point]) {
        for point in points {
            let found = self.lines.get(&point.stream).and_then(|line| line.at(point.position));
            if let Some(clock) = found.cloned() {
                self.host_mut(thread).join(&clock);
            }
        }
    }

    /// A host thread has waited for a stream; a wait for the null stream is one for all blocking streams of its card.
    pub(crate) fn learn_stream(&mut self, thread: HostThread, stream: StreamId) {
        let Some(line) = self.lines.get(&stream) else { return };
        let mut clocks = vec![line.tail.clone()];
        if line.legacy {
            clocks.extend(self.legacy_partners(stream));
        }
        for clock in clocks {
            self.host_mut(thread).join(&clock);
        }
    }

    /// A host thread has waited for everything of a card.
    pub(crate) fn learn_card(&mut self, thread: HostThread, card: usize) {
        let of_card = self.lines.values().filter(|line| line.card == card);
        let clocks: Vec<_> = of_card.map(|line| line.tail.clone()).collect();
        for clock in clocks {
            self.host_mut(thread).join(&clock);
        }
    }

    /// A host thread knows everything in `clock`.
    pub(crate) fn take_over(&mut self, thread: HostThread, clock: &Clock) {
        self.host_mut(thread).join(clock);
    }

    /// Everything that any host thread did before happens before what `thread` does next.
    pub(crate) fn gather(&mut self, thread: HostThread) {
        let all: Vec<Clock> = self.hosts.values().cloned().collect();
        let host = self.host_mut(thread);
        for clock in &all {
            host.join(clock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::queue::Queues;

    const THREAD: HostThread = HostThread::Os(0);

    /// A server loads and unloads models for days, and each has a stream.
    #[test]
    fn streams_that_ended_and_are_known_are_forgotten() {
        let (mut order, mut queues) = (Order::new(false), Queues::default());
        let queue = queues.create(0, true, 0, 0);
        let queue = queues.get(queue).expect("it was just made");
        for stream in 1..=300 {
            for _ in 0..100 {
                order.enqueue(THREAD, stream, queue, &[]);
            }
            match stream % 3 {
                0 => order.learn_stream(THREAD, stream),
                // Waited for after it was destroyed.
                1 => {
                    order.end(stream);
                    order.learn_stream(THREAD, stream);
                }
                _ => order.learn_card(THREAD, 0),
            }
            order.end(stream);
        }
        assert!(order.streams() <= 2, "{} streams are kept", order.streams());
    }

    #[test]
    fn what_the_host_does_not_know_of_an_ended_stream_is_kept() {
        let (mut order, mut queues) = (Order::new(false), Queues::default());
        let queue = queues.create(0, true, 0, 0);
        let queue = queues.get(queue).expect("it was just made");
        let (epoch, _) = order.enqueue(THREAD, 1, queue, &[]);
        order.end(1);
        let after = Point { stream: 1, position: 1 };
        let (_, clock) = order.enqueue(THREAD, 2, queue, &[after]);
        assert!(clock.covers(epoch), "an event of stream 1 orders stream 2");
        let (_, other) = order.enqueue(THREAD, 3, queue, &[]);
        assert!(!other.covers(epoch));
        order.learn(THREAD, &[after]);
        let (_, later) = order.enqueue(THREAD, 4, queue, &[]);
        assert!(later.covers(epoch), "the host has waited for the event");
        assert!(!order.lines.contains_key(&1));
    }
}
