//! Errors of serving.

use std::sync::Arc;
use std::time::Duration;

use crate::ModelError;
use crate::generate::GenerateError;

/// Why a request is refused, or has ended without a last event.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The request makes no sense, or does not fit.
    #[error(transparent)]
    Refused(#[from] Arc<GenerateError>),
    /// The queue has as many requests as it may have.
    #[error("{open} requests are open, {limit} may be: try again later")]
    QueueFull {
        /// Requests that have not ended.
        open: usize,
        /// Most that may be.
        limit: usize,
    },
    /// Open requests have as many texts as they may have.
    #[error("{texts} texts are open, {limit} may be: try again later, or send fewer at a time")]
    TextsFull {
        /// Texts of open requests, with those of the one that is refused.
        texts: usize,
        /// Most that may be.
        limit: usize,
    },
    /// There is no text, or one without tokens.
    #[error("there is no text, or one without tokens")]
    EmptyText,
    /// A text is longer than the model takes.
    #[error("a text has {tokens} tokens, the model takes {most}: shorten it or split it")]
    TextTooLong {
        /// Its tokens.
        tokens: usize,
        /// Most that the model takes.
        most: usize,
    },
    /// No more requests are taken; those that were taken go on.
    #[error("the server takes no more requests: it ends when those that it has are done")]
    Draining,
    /// The step that the request took part in failed. Other requests go on.
    #[error("a step failed: {0}")]
    StepFailed(Arc<GenerateError>),
    /// A step took longer than its deadline. The server has stopped.
    #[error("a step took longer than {} s: the device does not answer, and the server has stopped", deadline.as_secs_f64())]
    StepDeadline {
        /// The deadline.
        deadline: Duration,
    },
    /// The server has stopped.
    #[error("the server has stopped")]
    Stopped,
    /// The engine could not be made.
    #[error(transparent)]
    Start(Arc<ModelError>),
    /// The system gives no thread.
    #[error("no thread: {0}")]
    Thread(Arc<std::io::Error>),
}
