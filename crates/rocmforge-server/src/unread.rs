//! Unread bodies: if a route answers before it has read the whole body, the rest is read and dropped. Otherwise the connection is closed while the
//! client sends, and the client's next request on it fails.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures_util::StreamExt;
use hyper::body::{Frame, SizeHint};

/// Most bytes that are read so.
const MOST: usize = 64 << 10;
/// Longest time for them.
const TIME: Duration = Duration::from_secs(1);

/// A request's body, whose rest can be read when its route has ended. Clones are the same body.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Body>>);

impl Shared {
    pub(crate) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Body) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the rest beside the answer, if it is not too long.
    pub(crate) fn read_rest(self) {
        if self.is_end_stream() {
            return;
        }
        tokio::spawn(tokio::time::timeout(TIME, async move {
            let mut frames = Body::new(self).into_data_stream();
            let mut left = MOST;
            while let Some(Ok(bytes)) = frames.next().await {
                match left.checked_sub(bytes.len()) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        }));
    }
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with(|body| Pin::new(body).poll_frame(context))
    }

    fn is_end_stream(&self) -> bool {
        self.with(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|body| body.size_hint())
    }
}
