//! Devices that do not answer, clients that leave, and models that are unloaded while requests come.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use rocmforge_models::serve::ServeOptions;
use rocmforge_server::{App, Limits, ServerOptions, Source};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::common::gated::Behind;
use crate::common::{Tiny, app_of, get, post};

const PATIENCE: Duration = Duration::from_secs(60);

async fn wait_until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn gated(source: &Behind, options: ServerOptions, names: &[&str]) -> App {
    let sources = names
        .iter()
        .map(|name| ((*name).to_owned(), Box::new(source.clone()) as Box<dyn Source>));
    App::new(options, sources).expect("the options make sense")
}

async fn health(app: &App) -> (StatusCode, Value) {
    let (status, _, body) = get(app, "/health").await;
    (status, serde_json::from_slice(&body).expect("JSON"))
}

fn asked(model: &str) -> Value {
    json!({"model": model, "prompt": "banana", "max_tokens": 2})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_device_does_not_answer_stays_and_is_not_loaded_again() {
    let serve = ServeOptions {
        step_deadline: Duration::from_millis(50),
        ..ServeOptions::default()
    };
    let source = Behind {
        serve,
        ..Behind::default()
    };
    // Idle models would be unloaded at once.
    let options = ServerOptions {
        keep_alive: Some(Duration::ZERO),
        ..ServerOptions::default()
    };
    let app = gated(&source, options, &["a", "b"]);
    let (status, _, answer) = post(&app, "/v1/completions", asked("a")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{answer}");
    let is_known = async || {
        let (status, health) = health(&app).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{health}");
        assert_eq!(health["models"][0]["state"], "stopped");
        assert!(health["models"][0]["in_step_seconds"].as_f64().is_some(), "{health}");
    };
    is_known().await;
    assert!(!app.unload("a").await, "its memory cannot be given back");
    is_known().await;
    let unload = json!({"model": "a", "keep_alive": 0, "stream": false});
    post(&app, "/api/generate", unload).await;
    is_known().await;
    // Another model needs its place.
    let (status, _, answer) = post(&app, "/v1/completions", asked("b")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    is_known().await;
    assert_eq!(
        post(&app, "/v1/completions", asked("a")).await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(source.loads.load(Ordering::SeqCst), 1);

    // The device answers after all: the engine ends, and its successor has the memory.
    source.gate.set(true);
    wait_until("the end of the step", async || {
        health(&app).await.1["models"][0]["in_step_seconds"].is_null()
    })
    .await;
    let (status, _, answer) = post(&app, "/v1/completions", asked("a")).await;
    assert!(
        matches!(status, StatusCode::OK | StatusCode::INTERNAL_SERVER_ERROR),
        "{answer}"
    );
    assert_eq!(source.loads.load(Ordering::SeqCst), 2);
}

/// A byte after the request keeps the connection's reader from seeing its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_is_noticed_whatever_it_sent_last() {
    let source = Behind::default();
    let limits = Limits {
        requests: 1,
        ..Limits::default()
    };
    let options = ServerOptions {
        limits,
        ..ServerOptions::default()
    };
    let app = gated(&source, options, &["a"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let served = app.clone();
    tokio::spawn(async move { served.run_on(listener, std::future::pending()).await });
    let body = asked("a").to_string();
    let (head, length) = ("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n", body.len());
    let request = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}\r");
    let mut client = TcpStream::connect(address).await.expect("it listens");
    client.write_all(request.as_bytes()).await.expect("open");
    wait_until("the request", async || {
        health(&app).await.1["models"][0]["open_requests"] == 1
    })
    .await;
    let (status, ..) = post(&app, "/tokenize", json!({"content": "a"})).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    // The device does not answer, and nobody waits for it any more.
    drop(client);
    let is_free = async || post(&app, "/tokenize", json!({"content": "a"})).await.0 == StatusCode::OK;
    wait_until("the end of the request", is_free).await;
    source.gate.set(true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_come_while_models_are_unloaded() {
    let source = Tiny::default();
    let options = ServerOptions {
        keep_alive: Some(Duration::ZERO),
        ..ServerOptions::default()
    };
    // One model has a place at a time: each request for another takes it away.
    let app = app_of(options, &["a", "b", "c"], &source);
    let ask = async |model: &str| {
        let (status, _, answer) = post(&app, "/v1/completions", asked(model)).await;
        match status {
            StatusCode::OK => assert_eq!(answer["usage"]["completion_tokens"], 2),
            // All places are in use.
            StatusCode::TOO_MANY_REQUESTS => {}
            status => panic!("{status}: {answer}"),
        }
        status == StatusCode::OK
    };
    let ask = &ask;
    let clients = ["a", "b", "c", "a", "b", "c"].map(|model| async move {
        let mut answered = 0;
        for _ in 0..8 {
            answered += usize::from(ask(model).await);
        }
        answered
    });
    let unloads = async {
        for _ in 0..20 {
            for model in ["a", "b", "c"] {
                app.unload(model).await;
            }
            tokio::task::yield_now().await;
        }
    };
    let (answered, ()) = futures_util::future::join(futures_util::future::join_all(clients), unloads).await;
    assert!(answered.into_iter().sum::<usize>() > 0);
    assert_eq!(health(&app).await.0, StatusCode::OK);
}
