//! Steps of the streams: which operation runs next, and its run.

use crate::calls::call::Call;
use crate::machine::host::Host;
use crate::queues::clock::Clock;
use crate::queues::op::{OpKind, Ran};
use crate::queues::point::StreamId;
use crate::races::shadow::Actor;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Call<'_> {
    /// The adversary's chance at every call: what may run can run now, as far as the schedule wants.
    pub(super) fn adversary(&mut self) {
        for _ in 0..self.host.chooser.unforced() {
            if !self.step_unforced() {
                break;
            }
        }
    }

    /// The same behind a call, for schedules in which streams overtake the host.
    pub(super) fn overtake(&mut self) {
        let thread = self.thread;
        self.host.chooser.host_step(thread);
        if self.host.chooser.runs_everything() {
            while self.step_unforced() {}
        }
    }

    fn step_unforced(&mut self) -> bool {
        let (mut ready, thread) = (self.queues.ready(None), self.thread);
        self.host.chooser.overtaking(thread, &mut ready);
        self.run_one_of(&ready)
    }

    /// Runs one operation that may run, within `past` if given. False when there is none.
    pub(crate) fn step(&mut self, past: Option<&BTreeMap<StreamId, u64>>) -> bool {
        // What a stream waits for in memory, somebody else may have to write.
        let past = past.filter(|past| !self.host.chooser.runs_everything() && !self.queues.any_stalled(past.keys()));
        let ready = self.queues.ready(past);
        self.run_one_of(&ready)
    }

    fn run_one_of(&mut self, ready: &[(StreamId, u64)]) -> bool {
        let Some(stream) = self.host.chooser.stream(ready) else {
            return false;
        };
        self.run(stream);
        true
    }

    fn run(&mut self, stream: StreamId) {
        let Some(op) = self.queues.take(stream) else { return };
        if let OpKind::Await(wait) = &op.kind {
            let (wait, actor) = (*wait, op.actor.clone());
            if !self.host.has_come(&wait, &actor) {
                self.queues.put_back(stream, op);
                return;
            }
            self.saw_value(stream);
        }
        self.host.operations += 1;
        if let OpKind::Host { function, user } = op.kind {
            self.host.trace.number(op.serial);
            self.call_host_function(stream, op.actor, function, user);
            return;
        }
        if self.host.execute(op) == Ran::Hung {
            if let Some(queue) = self.queues.get_mut(stream) {
                queue.hung = true;
            }
            return;
        }
        self.host.queues.finish(stream);
        self.host.queues.look_again();
    }

    /// A stream goes on behind a value that it waited for.
    fn saw_value(&mut self, stream: StreamId) {
        let position = self.queues.get(stream).map_or(0, |queue| queue.completed + 1);
        let host: &mut Host = &mut self.host;
        let all = host.races.order.saw_value(stream, position);
        for op in host.queues.pending_mut(stream) {
            let mut clock = Clock::clone(&op.actor.clock);
            clock.join(&all);
            op.actor = Arc::new(Actor {
                clock: Arc::new(clock),
                ..Actor::clone(&op.actor)
            });
        }
    }
}
