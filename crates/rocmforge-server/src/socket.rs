//! Socket of a connection, whose end can be noticed beside what reads it: hyper does not read on while bytes of a next request wait, and so does not see
//! that a client has gone.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// How long the answer to the last request has after the client has closed its side: that of a quick one still comes.
const LAST_ANSWER: Duration = Duration::from_secs(1);

/// A socket that is read and written.
pub(crate) struct Socket {
    read: Arc<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl Socket {
    /// The socket, and what waits until its client has gone.
    pub(crate) fn new(stream: TcpStream) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (read, write) = stream.into_split();
        let read = Arc::new(read);
        let watched = Arc::clone(&read);
        let gone = async move {
            // Of this kind of readiness the system reports an end without a read. A byte out of band says nothing.
            match watched.ready(Interest::PRIORITY).await {
                Ok(ready) if !ready.is_read_closed() => std::future::pending().await,
                _ => tokio::time::sleep(LAST_ANSWER).await,
            }
        };
        (Self { read, write }, gone)
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = (*self.read).as_ref();
        loop {
            ready!(stream.poll_read_ready(context))?;
            match stream.try_read(to.initialize_unfilled()) {
                Ok(bytes) => {
                    to.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                // The next call waits.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.write).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}
