//! Answers in ollama's form: one JSON object, or one a line while they come.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::Stream;
use rocmforge_models::generate::{Event, FinishReason, Prompt, Stats};
use serde_json::{Value, json};

use super::models::time;
use crate::app::{App, Asker};
use crate::error::{ApiError, Dialect};
use crate::generation::{Generation, now};
use crate::openai::Common;

/// Where the text of an answer stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `message`.
    Chat,
    /// `response`.
    Text,
}

impl Form {
    fn value(self, model: &str, text: &str, is_done: bool) -> Value {
        let mut value = json!({"model": model, "created_at": time(now()), "done": is_done});
        match self {
            Self::Chat => value["message"] = json!({"role": "assistant", "content": text}),
            Self::Text => value["response"] = text.into(),
        }
        value
    }

    /// The answer to a request without a text, which has loaded or unloaded the model.
    pub(super) fn without_text(self, model: &str, reason: &str, is_stream: bool) -> Response {
        let mut value = self.value(model, "", true);
        value["done_reason"] = reason.into();
        match is_stream {
            true => lines(futures_util::stream::iter([value])),
            false => Json(value).into_response(),
        }
    }
}

/// An answer that is to come.
pub(super) struct Answer {
    form: Form,
    pub(super) common: Common,
    load: Duration,
    begun: Instant,
}

impl Answer {
    /// `load` is how long the model took to be there.
    pub(super) fn new(form: Form, common: Common, load: Duration) -> Self {
        Self {
            form,
            common,
            load,
            begun: Instant::now(),
        }
    }

    fn value(&self, text: &str, is_done: bool) -> Value {
        self.form.value(&self.common.model, text, is_done)
    }

    fn last(&self, text: &str, reason: &FinishReason, stats: &Stats) -> Value {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut value = self.value(text, true);
        value["done_reason"] = match reason {
            FinishReason::MaxTokens | FinishReason::ContextFull => "length",
            _ => "stop",
        }
        .into();
        value["total_duration"] = nanoseconds(self.load + self.begun.elapsed()).into();
        value["load_duration"] = nanoseconds(self.load).into();
        value["prompt_eval_count"] = stats.prompt_tokens.into();
        value["prompt_eval_duration"] = nanoseconds(stats.prompt_time).into();
        value["eval_count"] = stats.drawn_tokens.into();
        value["eval_duration"] = nanoseconds(stats.decode_time).into();
        value
    }

    /// Begins to answer.
    pub(super) async fn start(self, app: &App, asker: &Asker, prompt: Prompt) -> Result<Response, ApiError> {
        let mut request = self.common.request.clone();
        request.prompt = prompt;
        let generation = Generation::start(app, asker, &self.common.lease, request).await?;
        if self.common.is_stream {
            return Ok(lines(self.stream(generation)));
        }
        let completion = generation.complete().await?;
        Ok(Json(self.last(&completion.text, &completion.reason, &completion.stats)).into_response())
    }

    fn stream(self, mut generation: Generation) -> impl Stream<Item = Value> {
        async_stream::stream! {
            while let Some(event) = generation.next().await {
                match event {
                    Err(error) => {
                        yield Dialect::Ollama.error(&error);
                        return;
                    }
                    Ok(Event::Token { token, .. }) if !token.text.is_empty() => yield self.value(&token.text, false),
                    Ok(Event::Prompt { .. } | Event::Token { .. }) => {}
                    Ok(Event::Finished { reason, text, stats, .. }) => {
                        if !text.is_empty() {
                            yield self.value(&text, false);
                        }
                        yield self.last("", &reason, &stats);
                    }
                }
            }
        }
    }
}

/// Values, one a line.
fn lines(values: impl Stream<Item = Value> + Send + 'static) -> Response {
    let lines = futures_util::StreamExt::map(values, |value| Ok::<_, Infallible>(Bytes::from(format!("{value}\n"))));
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, Body::from_stream(lines)).into_response()
}
