//! Panics in every part of the work on a request: they end that request, and the next one on the same server is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::StatusCode;
use rocmforge_ggml::{GgmlError, GgmlResult, TensorId};
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions};
use rocmforge_server::{App, Keys, LoadError, Loaded, ServerOptions, Source};
use rocmforge_testkit::{Hook, HookedBackend};
use serde_json::{Value, json};

use crate::common::{get, model, post, request, send};

const ADMIN: &str = "fedcba98765432100000";

/// What is to happen once, or again and again, in one place.
#[derive(Clone, Default)]
struct Planted(Arc<AtomicBool>);

impl Planted {
    fn plant(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Panics once.
    fn panics(&self, place: &str) {
        assert!(!self.0.swap(false, Ordering::SeqCst), "planted in {place}");
    }
}

#[derive(Clone, Default)]
struct Faulty {
    load: Planted,
    step: Planted,
    memory: Planted,
    unloaded: Planted,
    /// Steps fail.
    fails: Arc<AtomicBool>,
}

impl Hook for Faulty {
    fn enqueue(&mut self) -> GgmlResult<()> {
        self.step.panics("a step");
        match self.fails.load(Ordering::SeqCst) {
            true => Err(GgmlError::UnknownTensor(TensorId(0))),
            false => Ok(()),
        }
    }
}

impl Source for Faulty {
    fn load(&self) -> Result<Loaded, LoadError> {
        self.load.panics("loading");
        let (model, hook) = (model(), self.clone());
        let template = model.chat_template()?;
        let server = Server::start(ServeOptions::default(), move || {
            let engine = Engine::new(HookedBackend::new(hook), &model, EngineOptions::default())?;
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        let memory = self.memory.clone();
        Ok(Loaded {
            template,
            memory: Box::new(move || {
                memory.panics("the memory");
                Vec::new()
            }),
            ..Loaded::new(server)
        })
    }

    fn unloaded(&self) {
        self.unloaded.panics("the end of a model");
    }
}

fn served(faulty: &Faulty) -> App {
    let options = ServerOptions {
        admin_keys: Keys::parse(ADMIN).expect("a key"),
        ..ServerOptions::default()
    };
    let sources = ["a", "b"].map(|name| (name.to_owned(), Box::new(faulty.clone()) as Box<dyn Source>));
    App::new(options, sources).expect("the options make sense")
}

async fn complete(app: &App, model: &str) -> (StatusCode, Value) {
    let (status, _, answer) = post(
        app,
        "/v1/completions",
        json!({"model": model, "prompt": "banana", "max_tokens": 2}),
    )
    .await;
    (status, answer)
}

/// Every kind of request is answered.
async fn check_well(app: &App, after: &str) {
    for model in ["a", "b", "a"] {
        let (status, answer) = complete(app, model).await;
        assert_eq!(status, StatusCode::OK, "after {after}: {answer}");
    }
    let chat = json!({"model": "a", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2});
    assert_eq!(
        post(app, "/v1/chat/completions", chat).await.0,
        StatusCode::OK,
        "{after}"
    );
    for path in ["/health", "/memory", "/metrics", "/ready", "/api/ps", "/props?model=a"] {
        assert_eq!(get(app, path).await.0, StatusCode::OK, "after {after}: {path}");
    }
    let reload = request("POST", "/admin/reload").header("x-api-key", ADMIN);
    let (status, ..) = send(app, reload.body(Body::empty()).expect("a request")).await;
    assert_eq!(status, StatusCode::OK, "after {after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_after_one_that_panicked_is_answered() {
    let faulty = Faulty::default();
    let app = served(&faulty);
    let reload = Planted::default();
    let of_app = reload.clone();
    app.on_reload(move |_| {
        of_app.panics("a reload");
        Ok(())
    });
    check_well(&app, "nothing").await;

    faulty.step.plant();
    let (status, answer) = complete(&app, "a").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    check_well(&app, "a step").await;

    faulty.memory.plant();
    let (status, _, body) = get(&app, "/memory").await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    serde_json::from_slice::<Value>(&body).expect("an error in JSON");
    check_well(&app, "the memory").await;

    reload.plant();
    let asked = request("POST", "/admin/reload").header("x-api-key", ADMIN);
    let (status, ..) = send(&app, asked.body(Body::empty()).expect("a request")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    check_well(&app, "a reload").await;

    // `a` goes for `b`, and its source panics when its memory is given back.
    faulty.unloaded.plant();
    assert_eq!(complete(&app, "b").await.0, StatusCode::OK);
    assert!(!faulty.unloaded.0.load(Ordering::SeqCst), "it was called");
    check_well(&app, "an unloading").await;

    assert!(app.unload("a").await, "nobody uses it");
    faulty.load.plant();
    let (status, answer) = complete(&app, "a").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    check_well(&app, "loading").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_bad_after_three_failed_steps_and_good_after_one_that_does_not_fail() {
    let faulty = Faulty::default();
    let app = served(&faulty);
    assert_eq!(complete(&app, "a").await.0, StatusCode::OK);
    faulty.fails.store(true, Ordering::SeqCst);
    for failed in 1..=4 {
        let (status, answer) = complete(&app, "a").await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "{answer}");
        let (status, _, body) = get(&app, "/health").await;
        let health: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(health["models"][0]["failed_steps_in_a_row"], failed, "{health}");
        let (expected, word) = match failed {
            1 | 2 => (StatusCode::OK, "ok"),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "error"),
        };
        assert_eq!((status, &health["status"]), (expected, &json!(word)), "{health}");
        // Requests are taken meanwhile: the device may answer again.
        assert_eq!(get(&app, "/ready").await.0, StatusCode::OK);
    }
    faulty.fails.store(false, Ordering::SeqCst);
    assert_eq!(complete(&app, "a").await.0, StatusCode::OK);
    let (status, _, body) = get(&app, "/health").await;
    let health: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(status, StatusCode::OK, "{health}");
    assert_eq!(health["models"][0]["failed_steps_in_a_row"], 0, "{health}");
}
