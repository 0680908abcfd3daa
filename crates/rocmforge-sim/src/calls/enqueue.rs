//! Queueing of operations.

use crate::calls::call::Call;
use crate::config::Schedule;
use crate::queues::graphs::Work;
use crate::queues::op::{Op, OpKind};
use crate::queues::point::{Point, StreamId};
use crate::races::shadow::Actor;
use crate::report::Access;
use std::sync::Arc;

impl Call<'_> {
    /// Queues an operation. It does not run here, unless the schedule is eager. On a capturing stream it becomes a node of
    /// the graph instead, and the point is the stream's end as it was.
    pub(crate) fn enqueue(&mut self, stream: StreamId, kind: OpKind, after: Vec<Point>) -> Point {
        if self.captures.of(stream).is_some() {
            self.capture_operation(stream, kind);
            return self.queues.tail(stream);
        }
        let actor = self.stream_actor(stream, &kind, &after);
        if self.api.ends_with("Async") || self.api == "hipGraphLaunch" {
            self.watch_copies(&actor, &kind);
        }
        let op = Op {
            kind,
            after,
            serial: 0,
            actor,
        };
        let point = self.host.queues.push(stream, op);
        self.host.trace.number(point.stream);
        self.host.trace.number(point.position);
        self.host.poll_streak = 0;
        self.leave_unattended();
        if self.config.schedule == Schedule::Eager {
            while self.step(None) {}
        }
        point
    }

    /// The host must leave alone what the copies of an operation use until they are known to be done.
    fn watch_copies(&mut self, actor: &Arc<Actor>, kind: &OpKind) {
        match kind {
            OpKind::Copy { to, from, size } => {
                self.host.watch(actor, *to, *size, Access::Write);
                self.host.watch(actor, *from, *size, Access::Read);
            }
            OpKind::Many(parts) => parts.iter().for_each(|part| self.watch_copies(actor, part)),
            _ => {}
        }
    }

    /// An operation of a capturing stream becomes a node.
    fn capture_operation(&mut self, stream: StreamId, kind: OpKind) {
        let Some(work) = Work::captured(kind) else { return };
        let Some((_, of)) = self.captures.of(stream) else {
            return;
        };
        let (graph, after) = (of.graph, of.tail(stream).to_vec());
        let call = self.number;
        let node = self.insert_node(graph, work, after, call);
        if let Some((_, of)) = self.captures.of_mut(stream) {
            of.push(stream, node);
        }
    }
}
