//! Request ids and the log of requests: method, route, status, time. Prompts, keys and query strings are not in it.

use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use crate::generation::id;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id of a client's that is taken.
const LONGEST_ID: usize = 64;

/// The client's id if it is a short name, else a new one.
fn request_id(request: &Request) -> String {
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_name = |id: &&str| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(is_name)
    };
    given.filter(is_name).map_or_else(|| id("req-"), str::to_owned)
}

/// Gives a request an id, which its answer has too, and logs the head of the answer.
pub(crate) async fn log(request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let begun = Instant::now();
    let mut response = next.run(request).await;
    let milliseconds = begun.elapsed().as_millis() as u64;
    let status = response.status().as_u16();
    tracing::info!(%id, %method, ?path, status, milliseconds, "request");
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use axum::body::Body;
    use axum::routing::get;
    use axum::{Router, middleware};
    use tower::ServiceExt;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use crate::error::{self, ApiError, Kind};

    /// A log in memory.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Log {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    /// Ends of lines, an escape sequence with 7 bits and with 8, a null, a text that runs from right to left, and a line as the log has them.
    const HOSTILE: &str = "a\n2026 INFO request\r\u{1b}[2J\u{9b}31m\0\u{7f}\u{202e}\u{2028}\"b";

    #[tokio::test]
    async fn what_a_client_sends_is_escaped_in_both_forms_of_the_log() {
        let fails = || async { ApiError::new(Kind::Internal, format!("there is no model {HOSTILE}")) };
        let router = Router::new()
            .fallback(get(fails))
            .layer(middleware::from_fn(error::write))
            .layer(middleware::from_fn(log));
        for is_json in [false, true] {
            let lines = Log::default();
            let subscriber = tracing_subscriber::fmt()
                .with_ansi(false)
                .with_max_level(tracing::Level::TRACE)
                .with_writer(lines.clone());
            let _guard: tracing::subscriber::DefaultGuard = match is_json {
                true => tracing::subscriber::set_default(subscriber.json().finish()),
                false => tracing::subscriber::set_default(subscriber.finish()),
            };
            // What a path may be made of: its letters need not be ASCII.
            for path in ["/\u{9b}31m", "/\u{202e}", "/%0A%1b", "/\u{2028}"] {
                let request = Request::get(path).header("x-request-id", "a\tb");
                let request = request.body(Body::empty()).expect("a path");
                let response = router.clone().oneshot(request).await.expect("the router never fails");
                assert_eq!(response.status(), 500);
            }
            let lines = lines.0.lock().expect("no panic").clone();
            let lines = String::from_utf8(lines).expect("UTF-8");
            assert_eq!(lines.lines().count(), 8, "two events for each request: {lines}");
            let shown = |c: char| c == '\n' || !(c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2028}'));
            let raw = lines.chars().find(|c| !shown(*c));
            assert_eq!(raw, None, "{lines:?}");
            assert!(
                lines.contains("there is no model") && lines.contains("%0A%1b"),
                "{lines}"
            );
            if is_json {
                for line in lines.lines() {
                    serde_json::from_str::<serde_json::Value>(line).expect("an object");
                }
            }
        }
    }
}
