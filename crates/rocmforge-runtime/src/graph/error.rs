//! Errors of captures and graphs.

use crate::error::HipError;
use std::sync::Arc;

/// Why something cannot be captured, or a graph not be made, replayed or updated.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A capturing stream cannot do this: it runs nothing until the graph is replayed.
    #[error("cannot {what} on stream {stream:?} while it captures: do it before the capture, or on another stream")]
    Capturing {
        /// The stream.
        stream: String,
        /// What was asked of it.
        what: &'static str,
    },
    /// The stream belongs to no capture, or to another one.
    #[error("stream {stream:?} is not part of this capture: let it wait for an event that was recorded in the capture")]
    NotCapturing {
        /// The stream.
        stream: String,
    },
    /// Another thread gave the stream work, or began a capture on it, at the same moment.
    #[error("stream {stream:?} is used by another thread at the same time: a capture needs it alone")]
    Busy {
        /// The stream.
        stream: String,
    },
    /// The capture has ended.
    #[error("the capture that this belongs to has ended")]
    Ended,
    /// A stream of one capture was to wait for another one.
    #[error("stream {stream:?} is part of another capture: two captures cannot wait for each other")]
    OtherCapture {
        /// The stream.
        stream: String,
    },
    /// A capturing stream was to wait for an event that is not part of the capture.
    #[error(
        "stream {stream:?} captures and event {event:?} was not recorded in the capture: a graph cannot wait for it (its buffers are ordered at each replay)"
    )]
    OutsideEvent {
        /// The stream.
        stream: String,
        /// The event.
        event: String,
    },
    /// The host asked for an event that was recorded in a capture: nothing has run.
    #[error("event {event:?} was recorded in a capture: nothing runs before the graph is replayed")]
    CapturedEvent {
        /// The event.
        event: String,
    },
    /// Work of another stream is in the capture and nobody waits for it.
    #[error(
        "the capture has work of stream {stream:?} that its first stream does not wait for: record an event there and wait for it before the end"
    )]
    Unjoined {
        /// The stream.
        stream: String,
    },
    /// A call failed while it was captured, so the graph would be incomplete.
    #[error("nothing was captured: {}", explain(.cause))]
    Failed {
        /// The call's error, if it is known which.
        cause: Option<Arc<HipError>>,
    },
    /// A graph cannot take the place of another one: their operations, or the order of them, differ.
    #[error("the graph cannot be updated: operation {node} was {was} and is {is}; instantiate the new graph instead")]
    Topology {
        /// The first operation that differs, from 0 in the order of capture.
        node: usize,
        /// What it was.
        was: String,
        /// What it would be.
        is: String,
    },
    /// The driver refused an update whose operations are the same.
    #[error(
        "the driver refused the update (result {result}); this executable graph is unusable: instantiate the new graph instead"
    )]
    Refused {
        /// `hipGraphExecUpdateResult`.
        result: u32,
    },
    /// An update failed half-way, so nobody knows what the executable graph does.
    #[error("an earlier update of this executable graph failed: instantiate the graph again")]
    Broken,
}

fn explain(cause: &Option<Arc<HipError>>) -> String {
    match cause {
        Some(error) => error.to_string(),
        None => "the driver gave the capture up".to_owned(),
    }
}
