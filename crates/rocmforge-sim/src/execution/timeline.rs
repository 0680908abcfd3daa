//! Time line: notes when an operation begins and has ended.

use crate::machine::host::Host;
use crate::queues::op::OpKind;
use crate::queues::timeline::Span;
use crate::races::shadow::Actor;
use std::time::Duration;

/// Spans kept; the first ones, so that a program that never ends does not fill the memory.
const KEPT: usize = 1 << 20;

/// What is known of an operation before it runs.
pub(crate) struct Started {
    name: String,
    bytes: u64,
    start: Duration,
    instructions: u64,
}

impl Host {
    /// Notes that an operation begins. None: it takes no time, or nobody wants a time line.
    pub(crate) fn span_begins(&self, kind: &OpKind) -> Option<Started> {
        if !self.config.timeline || self.timeline.len() >= KEPT {
            return None;
        }
        let (name, bytes) = match kind {
            OpKind::Copy { size, .. } => ("copy".to_owned(), *size as u64),
            OpKind::Fill { size, .. } => ("fill".to_owned(), *size as u64),
            OpKind::Kernel(launch) => (launch.module.kernels[launch.kernel].name.clone(), 0),
            _ => return None,
        };
        Some(Started {
            name,
            bytes,
            start: self.now(),
            instructions: self.instructions,
        })
    }

    /// Notes that it has ended.
    pub(crate) fn span_ends(&mut self, started: Option<Started>, actor: &Actor) {
        let Some(started) = started else { return };
        let span = Span {
            name: started.name,
            bytes: started.bytes,
            instructions: self.instructions - started.instructions,
            stream: actor.stream.unwrap_or_default(),
            call: actor.call,
            start: started.start,
            duration: self.now().saturating_sub(started.start),
        };
        self.timeline.push(span);
    }
}
