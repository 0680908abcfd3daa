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
