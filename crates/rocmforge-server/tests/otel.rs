//! Spans of requests: names of OpenTelemetry for generative AI, and no texts.
#![cfg(feature = "otel")]

mod common;

use axum::body::Body;
use axum::http::StatusCode;
use common::bert::Encoder;
use common::{Tiny, get, request, send};
use opentelemetry::Value as Attribute;
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use rocmforge_server::{App, Limits, ServerOptions, Source};
use serde_json::{Value, json};
use tower::ServiceExt;

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| match &attribute.value {
        Attribute::String(text) => text.as_str().to_owned(),
        value => value.to_string(),
    })
}

/// One test: the provider is the process's.
#[tokio::test]
async fn a_request_that_generates_has_a_span() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    opentelemetry::global::set_tracer_provider(provider);
    let take = || {
        let spans = exporter.get_finished_spans().expect("spans");
        exporter.reset();
        spans
    };
    let limits = Limits {
        requests: 2,
        ..Limits::default()
    };
    let options = ServerOptions {
        limits,
        max_models: 3,
        ..ServerOptions::default()
    };
    let ranking = Encoder {
        ranks: true,
        ..Encoder::default()
    };
    let sources: [(&str, Box<dyn Source>); 3] = [
        ("tiny", Box::new(Tiny::default())),
        ("embed", Box::new(Encoder::default())),
        ("rank", Box::new(ranking)),
    ];
    let app = App::new(options, sources.map(|(name, source)| (name.to_owned(), source))).expect("a server");
    let post = async |path: &str, body: Value| {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let asked = request("POST", path).header("content-type", "application/json");
        let asked = asked.header("traceparent", trace).body(Body::from(body.to_string()));
        send(&app, asked.expect("a request")).await.0
    };

    let user = json!([{"role": "user", "content": "banana-secret"}]);
    for is_stream in [false, true] {
        let body = json!({"model": "tiny", "messages": user, "max_tokens": 3, "n": 2, "ignore_eos": true, "stream": is_stream});
        assert_eq!(post("/v1/chat/completions", body).await, StatusCode::OK);
        let spans = take();
        assert_eq!(spans.len(), 1, "{spans:?}");
        let span = &spans[0];
        assert_eq!((span.name.as_ref(), &span.span_kind), ("chat tiny", &SpanKind::Server));
        assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
        assert_eq!(
            span.span_context.trace_id().to_string(),
            "0af7651916cd43dd8448eb211c80319c"
        );
        for (name, value) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "rocmforge"),
            ("gen_ai.request.model", "tiny"),
            ("gen_ai.response.model", "tiny"),
            ("gen_ai.usage.output_tokens", "6"),
            ("http.response.status_code", "200"),
        ] {
            assert_eq!(attribute(span, name).as_deref(), Some(value), "{name}");
        }
        let reasons = attribute(span, "gen_ai.response.finish_reasons").expect("reasons");
        assert_eq!(reasons.matches("max_tokens").count(), 2, "{reasons}");
        let input = attribute(span, "gen_ai.usage.input_tokens").expect("a number");
        assert!(input.parse::<usize>().is_ok_and(|tokens| tokens > 3), "{input}");
        assert!(!format!("{span:?}").contains("secret"), "{span:?}");
    }

    // Texts of an encoder have a token before and after them.
    let embed = json!({"model": "embed", "input": ["a river", "secret"], "prompt": "secret"});
    let rank = json!({"model": "rank", "query": "secret", "documents": ["a", "b"]});
    for (path, operation, asked) in [
        ("/v1/embeddings", "embeddings", &embed),
        ("/embedding", "embeddings", &embed),
        ("/embeddings", "embeddings", &embed),
        ("/api/embed", "embeddings", &embed),
        ("/api/embeddings", "embeddings", &embed),
        ("/v1/rerank", "rerank", &rank),
        ("/rerank", "rerank", &rank),
        ("/v1/reranking", "rerank", &rank),
        ("/reranking", "rerank", &rank),
    ] {
        assert_eq!(post(path, asked.clone()).await, StatusCode::OK, "{path}");
        let spans = take();
        assert_eq!(spans.len(), 1, "{path}: {spans:?}");
        let (span, model) = (&spans[0], asked["model"].as_str().expect("a name"));
        assert_eq!(span.name, format!("{operation} {model}"), "{path}");
        assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
        for (name, value) in [
            ("gen_ai.operation.name", operation),
            ("gen_ai.request.model", model),
            ("gen_ai.response.model", model),
            ("http.response.status_code", "200"),
        ] {
            assert_eq!(attribute(span, name).as_deref(), Some(value), "{path}: {name}");
        }
        let input = attribute(span, "gen_ai.usage.input_tokens").expect("a number");
        assert!(input.parse::<usize>().is_ok_and(|tokens| tokens > 2), "{path}: {input}");
        for name in ["gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons"] {
            assert_eq!(attribute(span, name), None, "{path}: {name}");
        }
        assert!(!format!("{span:?}").contains("secret"), "{span:?}");
    }
    let refused = json!({"model": "embed", "input": [], "documents": ["a"]});
    for path in ["/v1/embeddings", "/rerank"] {
        assert_eq!(post(path, refused.clone()).await, StatusCode::BAD_REQUEST, "{path}");
        let errors: Vec<_> = take().iter().map(|span| attribute(span, "error.type")).collect();
        assert_eq!(errors, [Some("400".to_owned())], "{path}");
    }

    let wrong = json!({"model": "tiny", "prompt": "banana", "max_tokens": "many"});
    assert_eq!(post("/v1/completions", wrong).await, StatusCode::BAD_REQUEST);
    // An answer that nobody reads has one of the two places.
    let held = json!({"model": "tiny", "prompt": "banana", "max_tokens": 1, "stream": true}).to_string();
    let held = request("POST", "/v1/completions")
        .header("content-type", "application/json")
        .body(Body::from(held));
    let held = app.router().oneshot(held.expect("a request")).await;
    let busy = json!({"model": "tiny", "prompt": "banana", "n": 2, "max_tokens": 1});
    assert_eq!(post("/v1/completions", busy).await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(get(&app, "/health").await.0, StatusCode::OK);
    // Answers that had begun end with the request, on other threads.
    let mut spans = take();
    while spans.len() < 2 {
        tokio::task::yield_now().await;
        spans.extend(take());
    }
    let errors: Vec<_> = spans.iter().map(|span| attribute(span, "error.type")).collect();
    assert_eq!(errors, [Some("400".to_owned()), Some("429".to_owned())]);
    assert!(spans.iter().all(|span| span.name.starts_with("text_completion")));
    assert!(spans.iter().all(|span| span.status == Status::Unset));
    assert_eq!(held.expect("the router never fails").status(), StatusCode::OK);
}
