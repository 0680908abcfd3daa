//! Writes to a client in time: one that does not read its answer holds a model and a place, so the connection ends after a time without progress.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A connection on which each write must make progress within a time.
pub(crate) struct InTime<S> {
    stream: S,
    time: Duration,
    /// When the write that waits must have made progress.
    until: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S: Unpin> InTime<S> {
    pub(crate) fn new(stream: S, time: Duration) -> Self {
        Self {
            stream,
            time,
            until: Box::pin(tokio::time::sleep(time)),
            waits: false,
        }
    }

    /// A write, or an error if it has waited for too long.
    fn write<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = write(Pin::new(&mut self.stream), context) {
            self.waits = false;
            return Poll::Ready(result);
        }
        if !self.waits {
            self.waits = true;
            self.until.as_mut().reset(Instant::now() + self.time);
        }
        match self.until.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InTime<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InTime<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(context, |stream, context| stream.poll_shutdown(context))
    }
}
