//! Answers in ollama's form: one JSON object, or one a line while they come.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::Stream;
use rocmforge_models::chat::{Thinking, ThinkingSplit};
use rocmforge_models::generate::{FinishReason, Prompt, Stats};
use serde_json::{Value, json};

use super::models::time;
use crate::answer::{self, Part};
use crate::app::{App, Asker};
use crate::error::{ApiError, Dialect};
use crate::generation::now;
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
    fn value(self, model: &str, split: ThinkingSplit, is_done: bool) -> Value {
        let ThinkingSplit { reasoning, content } = split;
        let mut value = json!({"model": model, "created_at": time(now()), "done": is_done});
        let of_thoughts = match self {
            Self::Chat => {
                value["message"] = json!({"role": "assistant", "content": content});
                &mut value["message"]
            }
            Self::Text => {
                value["response"] = content.into();
                &mut value
            }
        };
        if !reasoning.is_empty() {
            of_thoughts["thinking"] = reasoning.into();
        }
        value
    }

    /// The answer to a request without a text, which has loaded or unloaded the model.
    pub(super) fn without_text(self, model: &str, reason: &str, is_stream: bool) -> Response {
        let mut value = self.value(model, ThinkingSplit::default(), true);
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

    fn value(&self, split: ThinkingSplit, is_done: bool) -> Value {
        self.form.value(&self.common.model, split, is_done)
    }

    fn last(&self, split: ThinkingSplit, reason: &FinishReason, stats: &Stats) -> Value {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut value = self.value(split, true);
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
    pub(super) async fn start(
        self,
        app: &App,
        asker: &Asker,
        prompt: Prompt,
        thinking: Thinking,
    ) -> Result<Response, ApiError> {
        let mut request = self.common.request.clone();
        request.prompt = prompt;
        let answer = answer::Answer::start(app, asker, &self.common.lease, request, thinking).await?;
        if self.common.is_stream {
            return Ok(lines(self.stream(answer)));
        }
        let answer::Whole { split, end, .. } = answer.complete().await?;
        Ok(Json(self.last(split, &end.reason, &end.stats)).into_response())
    }

    fn stream(self, mut answer: answer::Answer) -> impl Stream<Item = Value> {
        async_stream::stream! {
            while let Some(part) = answer.next().await {
                let (split, end) = match part {
                    Err(error) => {
                        yield Dialect::Ollama.error(&error);
                        return;
                    }
                    Ok(Part::Prompt(_)) => continue,
                    Ok(Part::Token(split, _)) => (split, None),
                    Ok(Part::End(split, end)) => (split, Some(end)),
                };
                if !split.content.is_empty() || !split.reasoning.is_empty() {
                    yield self.value(split, false);
                }
                if let Some(end) = end {
                    yield self.last(ThinkingSplit::default(), &end.reason, &end.stats);
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
