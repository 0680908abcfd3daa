//! Several models in one server: loaded when asked for, unloaded when another needs the place or nobody asks.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use common::card::{app_on_card, check_memory_comes_back};
use common::{Tiny, app_of, get, model, post};
use rocmforge::backend::{BackendOptions, HipBackend, PoolOptions};
use rocmforge::ggml::{HipGgmlBackend, HybridBackend};
use rocmforge::memory::{Bytes, Policy};
use rocmforge_ggml::CpuBackend;
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeError, ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions};
use rocmforge_server::{App, Facts, ServerOptions};
use serde_json::{Value, json};

async fn ask(app: &App, model: &str) -> StatusCode {
    let (status, _, answer) = post(
        app,
        "/v1/completions",
        json!({"model": model, "prompt": "banana", "max_tokens": 2}),
    )
    .await;
    assert!(status == StatusCode::OK || answer["error"].is_object(), "{answer}");
    status
}

async fn loaded(app: &App) -> Vec<String> {
    let (_, _, body) = get(app, "/health").await;
    let health: Value = serde_json::from_slice(&body).expect("JSON");
    let models = health["models"].as_array().expect("a list").iter();
    models
        .map(|model| model["model"].as_str().expect("a name").to_owned())
        .collect()
}

#[tokio::test]
async fn the_model_that_was_not_used_for_the_longest_time_goes_first() {
    let source = Tiny::default();
    let app = app_of(
        ServerOptions {
            max_models: 2,
            ..ServerOptions::default()
        },
        &["a", "b", "c"],
        &source,
    );
    assert!(
        loaded(&app).await.is_empty(),
        "nothing is loaded before it is asked for"
    );
    for (name, expected) in [
        ("a", vec!["a"]),
        ("b", vec!["a", "b"]),
        ("a", vec!["a", "b"]),
        ("c", vec!["a", "c"]),
    ] {
        assert_eq!(ask(&app, name).await, StatusCode::OK);
        assert_eq!(loaded(&app).await, expected, "after {name}");
    }
    assert_eq!(source.loads.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn many_requests_for_a_model_load_it_once() {
    let source = Tiny::default();
    let app = app_of(ServerOptions::default(), &["a"], &source);
    let asks = (0..8).map(|_| ask(&app, "a"));
    assert!(
        futures_util::future::join_all(asks)
            .await
            .iter()
            .all(|status| *status == StatusCode::OK)
    );
    assert_eq!(source.loads.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_model_is_unloaded_after_its_time() {
    let source = Tiny::default();
    let keep_alive = Some(Duration::from_millis(50));
    let app = app_of(
        ServerOptions {
            keep_alive,
            ..ServerOptions::default()
        },
        &["a"],
        &source,
    );
    assert_eq!(ask(&app, "a").await, StatusCode::OK);
    let begun = Instant::now();
    while !loaded(&app).await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it stays loaded");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ask(&app, "a").await, StatusCode::OK);
    assert_eq!(source.loads.load(Ordering::SeqCst), 2);
}

/// The small model on a card, and on the CPU where the card has no room.
fn on_card(card: &Arc<HipBackend>) -> Result<rocmforge_server::source::Engine, ServeError> {
    let card = Arc::clone(card);
    let server = Server::start(ServeOptions::default(), move || {
        let machine = HybridBackend::new(HipGgmlBackend::new(&card)?, CpuBackend::with_threads(1));
        let model = model();
        let options = EngineOptions {
            max_sequences: 2,
            ..EngineOptions::default()
        };
        let engine = Engine::new(machine, &model, options)?;
        Ok(Generator::new(engine, model.tokenizer()?))
    })?;
    Ok(server.into())
}

#[tokio::test]
async fn unloading_gives_all_of_a_cards_memory_back() {
    let answers = async |app: &App| assert_eq!(ask(app, "a").await, StatusCode::OK);
    check_memory_comes_back(on_card, 100, answers).await;
}

/// A figure of `/metrics` about the model `a`.
async fn figure(app: &App, name: &str) -> u64 {
    let (_, _, text) = get(app, "/metrics").await;
    let text = String::from_utf8(text).expect("UTF-8");
    let line = format!("{name}{{model_name=\"a\"}} ");
    let found = text.lines().find_map(|found| found.strip_prefix(&line));
    found
        .unwrap_or_else(|| panic!("{name}: {text}"))
        .parse()
        .expect("a number")
}

#[tokio::test]
async fn what_lies_on_the_cpu_is_not_counted_as_the_cards() {
    let gguf = model();
    let options = EngineOptions {
        max_sequences: 2,
        ..EngineOptions::default()
    };
    let plan = *Engine::new(CpuBackend::with_threads(1), &gguf, options)
        .expect("it loads")
        .memory();
    let facts = Facts {
        weight_bytes: plan.weights as u64,
        cache_bytes: plan.cache as u64,
        device: "sim".to_owned(),
        ..Facts::default()
    };
    let (all, scratch) = (facts.weight_bytes + facts.cache_bytes, plan.scratch as u64);
    for (vram, least, most) in [
        (2 * all + scratch, all, all),
        (all / 2 + scratch, 1, all - 1),
        (0, 0, 0),
    ] {
        let options = BackendOptions {
            pool: PoolOptions::ON,
            policy: Policy::fixed(Bytes(vram)),
            ..BackendOptions::default()
        };
        let device = rocmforge::device::open_with(&"sim".parse().expect("a name"), options).expect("a simulated card");
        let card = Arc::clone(device.backend());
        let app = app_on_card(device, on_card, facts.clone());
        assert_eq!(ask(&app, "a").await, StatusCode::OK);
        let (_, _, body) = get(&app, "/api/ps").await;
        let running: Value = serde_json::from_slice(&body).expect("JSON");
        let running = &running["models"][0];
        assert_eq!(running["size"], all, "{running}");
        let on_card = running["size_vram"].as_u64().expect("a number");
        assert!((least..=most).contains(&on_card), "{vram} B: {running}");
        assert!(
            on_card <= card.card().budget().own.0,
            "{vram} B: the card holds less than {running}"
        );
        let (_, _, body) = get(&app, "/memory").await;
        let memory: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(memory["models"][0]["card_bytes"], on_card);
        assert_eq!(figure(&app, "rocmforge_model_card_bytes").await, on_card);
        assert_eq!(figure(&app, "rocmforge_model_bytes").await, all);
    }
}
