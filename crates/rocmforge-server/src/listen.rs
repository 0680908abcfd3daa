//! Listening: connections with bounds on their number and times, and an end that lets running answers finish.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::app::App;
use crate::in_time::InTime;
use crate::socket::Socket;
use crate::tls::Tls;

/// Most header lines of a request.
const HEADERS: usize = 100;
/// Most bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;
/// Time for the last bytes of answers, when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more connections to give.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection that has come.
struct Connection {
    builder: Builder,
    service: OfPeer,
    watcher: Watcher,
}

/// The routes, for requests of one client.
struct OfPeer {
    routes: TowerToHyperService<Router>,
    peer: SocketAddr,
}

impl Service<Request<Incoming>> for OfPeer {
    type Response = Response;
    type Error = Infallible;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(ConnectInfo(self.peer));
        self.routes.call(request)
    }
}

impl Connection {
    /// Answers its requests, after the handshake if there is TLS.
    async fn run(
        self,
        stream: InTime<Socket>,
        tls: Option<Tls>,
        handshake_time: Duration,
        mut ends: watch::Receiver<()>,
    ) {
        let Some(tls) = tls else {
            return self.answer(stream).await;
        };
        let stream = tokio::select! {
            stream = tls.accept(stream, handshake_time) => stream,
            // No answer is lost.
            _ = ends.changed() => None,
        };
        if let Some(stream) = stream {
            self.answer(stream).await;
        }
    }

    async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let connection = self.builder.serve_connection(TokioIo::new(stream), self.service);
        let _ = self.watcher.watch(connection).await;
    }
}

/// Serves connections until `end` comes, then those that are open until their answers have ended.
pub(crate) async fn run(app: &App, listener: TcpListener, end: impl Future<Output = ()> + Send) {
    let limits = app.options().limits;
    // HTTP/1 only: a client of HTTP/2 can hold many answers open that it does not read. Without a timer the times of hyper have no effect.
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        // Some clients compare names of headers letter by letter.
        .title_case_headers(true)
        .header_read_timeout(limits.read_time)
        .max_headers(HEADERS)
        .max_buf_size(HEAD_BYTES);
    let routes = TowerToHyperService::new(app.router());
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let (handshakes_end, ends) = watch::channel(());
    let mut accept = Box::pin(async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let Ok((stream, peer)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            let connection = Connection {
                builder: builder.clone(),
                service: OfPeer {
                    routes: routes.clone(),
                    peer,
                },
                watcher: graceful.watcher(),
            };
            let (socket, gone) = Socket::new(stream);
            let stream = InTime::new(socket, limits.write_time);
            let connection = connection.run(stream, app.tls(), limits.handshake_time, ends.clone());
            tokio::spawn(async move {
                // A client that breaks off is no error of ours.
                tokio::select! {
                    () = connection => {}
                    () = gone => {}
                }
                drop(place);
            });
        }
    });
    tokio::select! {
        () = &mut accept => {}
        () = end => {}
    }
    app.drain();
    tracing::info!("ends when the running answers have ended");
    // Meanwhile requests are answered: the server ends.
    tokio::select! {
        () = &mut accept => {}
        () = app.wait_for_requests() => {}
        () = tokio::time::sleep(limits.drain_time) => {
            let seconds = limits.drain_time.as_secs_f64();
            tracing::warn!("some answers had not ended after {seconds} s, and end with an error");
            app.registry().end_requests();
        }
    }
    drop(accept);
    handshakes_end.send_replace(());
    if tokio::time::timeout(LAST_WORDS, graceful.shutdown()).await.is_err() {
        tracing::warn!("some connections did not end");
    }
}
