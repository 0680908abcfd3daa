//! Streams of server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use serde_json::Value;

use crate::error::{ApiError, Dialect};

/// How often a stream shows that it lives, where nothing else comes.
const ALIVE: Duration = Duration::from_secs(15);

fn keep_alive() -> KeepAlive {
    KeepAlive::new().interval(ALIVE)
}

/// A stream of JSON values, ended by `[DONE]` where the API has that. An error is the last value.
pub(crate) fn values(
    values: impl Stream<Item = Result<Value, ApiError>> + Send + 'static,
    says_done: bool,
) -> Response {
    let events = async_stream::stream! {
        let mut values = std::pin::pin!(values);
        while let Some(value) = values.next().await {
            let is_error = value.is_err();
            let value = value.unwrap_or_else(|error| Dialect::OpenAi.error(&error));
            yield Ok::<_, Infallible>(sse::Event::default().data(value.to_string()));
            if is_error {
                return;
            }
        }
        if says_done {
            yield Ok(sse::Event::default().data("[DONE]"));
        }
    };
    Sse::new(events).keep_alive(keep_alive()).into_response()
}

fn named(value: &Value) -> sse::Event {
    let name = value["type"].as_str().unwrap_or_default();
    sse::Event::default().event(name).data(value.to_string())
}

/// A stream of JSON values, each an event of its `type`. `alive` is the value that shows that the stream lives; without one it is a comment.
pub(crate) fn events(values: impl Stream<Item = Value> + Send + 'static, alive: Option<&Value>) -> Response {
    let keep_alive = match alive {
        Some(alive) => keep_alive().event(named(alive)),
        None => keep_alive(),
    };
    let events = values.map(|value| Ok::<_, Infallible>(named(&value)));
    Sse::new(events).keep_alive(keep_alive).into_response()
}
