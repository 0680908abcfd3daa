//! Figures: counts of one answer agree everywhere, and the metrics count all tokens and never fall.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::StatusCode;
use rocmforge_server::{App, ServerOptions};
use serde_json::{Value, json};

use crate::common::{Tiny, app, app_of, expected, get, post, request};

/// A figure of `/metrics`.
async fn figure(app: &App, name: &str) -> f64 {
    let (_, _, text) = get(app, "/metrics").await;
    let text = String::from_utf8(text).expect("UTF-8");
    let mut found = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let found = found.next_back().unwrap_or_else(|| panic!("{name}: {text}"));
    found.parse().expect("a number")
}

fn of_tiny(name: &str) -> String {
    format!("{name}{{model_name=\"tiny\"}}")
}

/// The seed of an answer of the small model that ends by itself.
fn ending() -> (u64, usize) {
    let ended = (0..400).find_map(|seed| {
        let completion = expected(rocmforge_models::generate::Request {
            sampler: rocmforge_models::sampling::SamplerConfig {
                seed,
                ..Default::default()
            },
            max_tokens: 40,
            ..rocmforge_models::generate::Request::new("banana")
        });
        let reason = completion.reason.name();
        (reason == "end_of_text").then_some((seed, completion.tokens.len()))
    });
    ended.expect("one of 400 ends")
}

#[tokio::test]
async fn the_token_that_ends_a_text_is_in_every_count() {
    let (seed, tokens) = ending();
    let app = app(ServerOptions::default());
    let asked = json!({"model": "tiny", "prompt": "banana", "max_tokens": 40, "seed": seed});
    let (_, _, answer) = post(&app, "/v1/completions", asked.clone()).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["completion_tokens"], tokens + 1);
    assert_eq!(answer["timings"]["predicted_n"], tokens + 1);
    let (_, _, answer) = post(&app, "/completion", asked).await;
    assert_eq!(answer["tokens_predicted"], tokens + 1);
    assert_eq!(
        figure(&app, "llamacpp:tokens_predicted_total").await as usize,
        2 * (tokens + 1)
    );
}

#[tokio::test]
async fn tokens_of_a_request_that_is_cancelled_are_counted_too() {
    let app = app(ServerOptions::default());
    let body = json!({"model": "tiny", "prompt": "banana", "ignore_eos": true, "max_tokens": 90, "stream": true});
    let request = request("POST", "/v1/completions").header("content-type", "application/json");
    let request = request.body(Body::from(body.to_string())).expect("a request");
    let response = tower::ServiceExt::oneshot(app.router(), request)
        .await
        .expect("the router never fails");
    assert_eq!(response.status(), StatusCode::OK);
    let cancelled = "rocmforge_requests_total{model_name=\"tiny\",end=\"cancelled\"}";
    let ended = "rocmforge_requests_total{model_name=\"tiny\",end=\"max_tokens\"}";
    let begun = Instant::now();
    while figure(&app, &of_tiny("vllm:generation_tokens_total")).await == 0.0 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no token is counted before the end"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(response);
    while figure(&app, cancelled).await + figure(&app, ended).await == 0.0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the request does not end");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(figure(&app, &of_tiny("vllm:prompt_tokens_total")).await, 3.0);
    assert!(figure(&app, &of_tiny("vllm:generation_tokens_total")).await > 0.0);
}

#[tokio::test]
async fn refused_requests_are_counted_and_are_no_success() {
    let app = app(ServerOptions::default());
    let long = json!({"prompt": "banana ".repeat(2000), "max_tokens": 2, "n": 2});
    assert_eq!(post(&app, "/v1/completions", long).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(
        figure(&app, "rocmforge_requests_total{model_name=\"tiny\",end=\"refused\"}").await,
        1.0,
        "its prompt became tokens once"
    );
    for reason in ["stop", "length", "abort"] {
        let name = format!("vllm:request_success_total{{model_name=\"tiny\",finished_reason=\"{reason}\"}}");
        assert_eq!(figure(&app, &name).await, 0.0);
    }
    assert_eq!(
        figure(&app, &of_tiny("vllm:e2e_request_latency_seconds_count")).await,
        0.0
    );
}

#[tokio::test]
async fn counts_do_not_fall_when_a_model_is_unloaded() {
    let app = app_of(ServerOptions::default(), &["tiny"], &Tiny::default());
    let ask = async || {
        let asked = json!({"prompt": "banana", "max_tokens": 8, "ignore_eos": true});
        assert_eq!(post(&app, "/v1/completions", asked).await.0, StatusCode::OK);
    };
    for name in ["llamacpp:n_decode_total", &of_tiny("vllm:prefix_cache_queries_total")] {
        ask().await;
        let before = figure(&app, name).await;
        assert!(before > 0.0, "{name}");
        assert!(app.unload("tiny").await);
        assert_eq!(figure(&app, name).await, before, "{name}");
        ask().await;
        assert!(figure(&app, name).await > before, "{name}");
        let per_step = figure(&app, "llamacpp:n_busy_slots_per_decode").await;
        assert!(per_step <= 1.0, "{per_step}");
    }
}

#[tokio::test]
async fn a_prompt_of_many_answers_is_counted_as_each_answer_reports_it() {
    let app = app(ServerOptions::default());
    let asked = json!({"prompt": "banana", "max_tokens": 2, "n": 3, "ignore_eos": true});
    let (_, _, answer): (_, _, Value) = post(&app, "/v1/completions", asked).await;
    assert_eq!(answer["usage"]["completion_tokens"], 6);
    assert_eq!(figure(&app, &of_tiny("vllm:prompt_tokens_total")).await, 9.0);
}
