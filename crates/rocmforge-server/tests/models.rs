//! Several models in one server: loaded when asked for, unloaded when another needs the place or nobody asks.

mod common;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use common::{Tiny, app_of, get, model, post};
use rocmforge::ggml::{HipGgmlBackend, HybridBackend};
use rocmforge::memory::Bytes;
use rocmforge_ggml::CpuBackend;
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions};
use rocmforge_server::{App, LoadError, Loaded, ServerOptions, Source};
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

/// The small model on a simulated card.
struct OnCard(rocmforge::device::Device);

impl Source for OnCard {
    fn load(&self) -> Result<Loaded, LoadError> {
        let card = std::sync::Arc::clone(self.0.backend());
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
        Ok(Loaded::new(server))
    }

    fn unloaded(&self) {
        // What queued work uses goes when that is done.
        self.0.backend().synchronize().expect("it answers");
        self.0.backend().trim_memory(Bytes(0)).expect("a pool");
    }
}

#[tokio::test]
async fn unloading_gives_all_of_a_cards_memory_back() {
    let device = rocmforge::device::open("sim").expect("a simulated card");
    let card = std::sync::Arc::clone(device.backend());
    let app = App::new(
        ServerOptions::default(),
        [("a".to_owned(), Box::new(OnCard(device)) as Box<dyn Source>)],
    )
    .expect("a server");
    let committed = || card.card().budget().committed;
    let mut unloaded = None;
    for cycle in 0..100 {
        app.load("a").await.expect("it fits");
        assert!(
            committed() > unloaded.unwrap_or_default(),
            "a loaded model holds memory"
        );
        // The first cycles also compute, which fills the pool of temporaries.
        if cycle < 2 {
            assert_eq!(ask(&app, "a").await, StatusCode::OK);
        }
        assert!(app.unload("a").await, "nobody uses it");
        let left = committed();
        assert_eq!(*unloaded.get_or_insert(left), left, "cycle {cycle}");
    }
}
