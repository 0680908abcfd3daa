//! Traces: a span of each request that a model computes, with the names of OpenTelemetry for generative AI. Texts of prompts and answers are not in it.
//!
//! The feature `otel` makes them; without it nothing is recorded. Spans go to the tracer provider of the process, which `otel::start` sets.

use axum::extract::Request;
use axum::http::StatusCode;
use rocmforge_models::generate::{FinishReason, Stats};

/// The span of a request. It ends when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    #[cfg(feature = "otel")]
    open: Option<std::sync::Mutex<recorded::Open>>,
}

#[cfg(not(feature = "otel"))]
impl Trace {
    pub(crate) fn begin(_: &Request) -> Self {
        Self::default()
    }

    pub(crate) fn status(&self, _: StatusCode) {}

    pub(crate) fn answer(&self, _: &str, _: &Stats, _: &FinishReason) {}

    pub(crate) fn embedded(&self, _: &str, _: usize) {}
}

#[cfg(feature = "otel")]
mod recorded {
    use std::sync::{Mutex, PoisonError};

    use opentelemetry::propagation::TextMapPropagator;
    use opentelemetry::trace::{Span, SpanKind, Status, Tracer};
    use opentelemetry::{Array, KeyValue, Value, global};
    use opentelemetry_http::HeaderExtractor;
    use opentelemetry_sdk::propagation::TraceContextPropagator;

    use super::{FinishReason, Request, Stats, StatusCode, Trace};

    /// Routes that models compute, with the names of their operations. OpenTelemetry has no name for ranking.
    const OPERATIONS: [(&str, &str); 18] = [
        ("/v1/chat/completions", "chat"),
        ("/chat/completions", "chat"),
        ("/v1/messages", "chat"),
        ("/v1/responses", "chat"),
        ("/api/chat", "chat"),
        ("/v1/completions", "text_completion"),
        ("/completions", "text_completion"),
        ("/completion", "text_completion"),
        ("/api/generate", "text_completion"),
        ("/v1/embeddings", "embeddings"),
        ("/api/embed", "embeddings"),
        ("/api/embeddings", "embeddings"),
        ("/embedding", "embeddings"),
        ("/embeddings", "embeddings"),
        ("/v1/rerank", "rerank"),
        ("/rerank", "rerank"),
        ("/v1/reranking", "rerank"),
        ("/reranking", "rerank"),
    ];

    /// A span and what is known of its request so far.
    #[derive(Debug)]
    pub(super) struct Open {
        span: global::BoxedSpan,
        operation: &'static str,
        model: Option<String>,
        status: Option<StatusCode>,
        input: usize,
        output: usize,
        reasons: Vec<&'static str>,
    }

    impl Trace {
        /// The span of a request, in the trace that its header `traceparent` names.
        pub(crate) fn begin(request: &Request) -> Self {
            let path = request.uri().path();
            let Some((_, operation)) = OPERATIONS.into_iter().find(|(route, _)| *route == path) else {
                return Self::default();
            };
            let parent = TraceContextPropagator::new().extract(&HeaderExtractor(request.headers()));
            let tracer = global::tracer("rocmforge-server");
            let span = tracer.span_builder(operation).with_kind(SpanKind::Server);
            let span = tracer.build_with_context(span, &parent);
            let open = Open {
                span,
                operation,
                model: None,
                status: None,
                input: 0,
                output: 0,
                reasons: Vec::new(),
            };
            Self {
                open: Some(Mutex::new(open)),
            }
        }

        fn with(&self, change: impl FnOnce(&mut Open)) {
            if let Some(open) = &self.open {
                change(&mut open.lock().unwrap_or_else(PoisonError::into_inner));
            }
        }

        /// Notes the status of the answer.
        pub(crate) fn status(&self, status: StatusCode) {
            self.with(|open| open.status = Some(status));
        }

        /// Notes the end of an answer of a model. Several answers have one prompt.
        pub(crate) fn answer(&self, model: &str, stats: &Stats, reason: &FinishReason) {
            self.with(|open| {
                open.model = Some(model.to_owned());
                open.input = open.input.max(stats.prompt_tokens);
                open.output += stats.drawn_tokens;
                open.reasons.push(reason.name());
            });
        }

        /// Notes that a model has computed embeddings or scores of texts with so many tokens.
        pub(crate) fn embedded(&self, model: &str, tokens: usize) {
            self.with(|open| {
                open.model = Some(model.to_owned());
                open.input += tokens;
            });
        }
    }

    impl Drop for Open {
        fn drop(&mut self) {
            let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
            let mut attributes = vec![
                KeyValue::new("gen_ai.operation.name", self.operation),
                KeyValue::new("gen_ai.provider.name", "rocmforge"),
            ];
            if let Some(model) = self.model.take() {
                self.span.update_name(format!("{} {model}", self.operation));
                attributes.extend([
                    KeyValue::new("gen_ai.request.model", model.clone()),
                    KeyValue::new("gen_ai.response.model", model),
                    KeyValue::new("gen_ai.usage.input_tokens", number(self.input)),
                ]);
            }
            if !self.reasons.is_empty() {
                let reasons = self.reasons.drain(..).map(Into::into).collect();
                attributes.extend([
                    KeyValue::new("gen_ai.usage.output_tokens", number(self.output)),
                    KeyValue::new("gen_ai.response.finish_reasons", Value::Array(Array::String(reasons))),
                ]);
            }
            if let Some(status) = self.status {
                attributes.push(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
                if status.is_client_error() || status.is_server_error() {
                    attributes.push(KeyValue::new("error.type", status.as_str().to_owned()));
                    if status.is_server_error() {
                        self.span.set_status(Status::error(""));
                    }
                }
            }
            self.span.set_attributes(attributes);
            self.span.end();
        }
    }
}
