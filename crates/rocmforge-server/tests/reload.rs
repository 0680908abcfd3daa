//! Settings that change while a server runs: the answers that have begun go on.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use common::{Tiny, app_of, post, request, send};
use futures_util::StreamExt;
use rocmforge_server::{App, ChangeError, Keys, LoadError, Loaded, ServerOptions, Source};
use serde_json::json;
use tower::ServiceExt;

const OLD: &str = "0123456789abcdef";
const NEW: &str = "fedcba9876543210";
const ADMIN: &str = "00112233445566778899";
const NEW_ADMIN: &str = "99887766554433221100";

fn keys(key: &str) -> Keys {
    Keys::parse(key).expect("a key")
}

/// The small model, as the file of a version.
struct Versioned {
    tiny: Tiny,
    version: &'static str,
    unloads: Arc<AtomicUsize>,
}

impl Source for Versioned {
    fn load(&self) -> Result<Loaded, LoadError> {
        self.tiny.load()
    }

    fn identity(&self) -> String {
        self.version.to_owned()
    }

    fn unloaded(&self) {
        self.unloads.fetch_add(1, Ordering::SeqCst);
    }
}

/// A stream that has begun, and its rest as a text.
async fn begin(app: &App, asked: axum::http::request::Builder, model: &str) -> (String, impl Future<Output = String>) {
    let body = json!({"model": model, "prompt": "banana", "max_tokens": 64, "ignore_eos": true, "stream": true});
    let asked = asked.header("content-type", "application/json");
    let asked = asked.body(Body::from(body.to_string())).expect("a request");
    let response: Response = app.router().oneshot(asked).await.expect("the router never fails");
    assert_eq!(response.status(), StatusCode::OK);
    let mut frames = response.into_body().into_data_stream();
    let first = frames.next().await.expect("it begins").expect("a part");
    let rest = async move {
        let mut text = String::new();
        while let Some(frame) = frames.next().await {
            text += &String::from_utf8_lossy(&frame.expect("a part"));
        }
        text
    };
    (String::from_utf8_lossy(&first).into_owned(), rest)
}

#[tokio::test]
async fn keys_change_for_the_next_requests() {
    let options = ServerOptions {
        keys: keys(OLD),
        ..ServerOptions::default()
    };
    let app = app_of(options, &["tiny"], &Tiny::default());
    let ask = |key: &'static str| {
        let asked = request("GET", "/v1/models").header("x-api-key", key);
        send(&app, asked.body(Body::empty()).expect("a request"))
    };
    let asked = request("POST", "/v1/completions").header("x-api-key", OLD);
    let (_, rest) = begin(&app, asked, "tiny").await;
    app.set_keys(keys(NEW)).expect("keys");
    assert_eq!(ask(OLD).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(ask(NEW).await.0, StatusCode::OK);
    assert!(rest.await.contains("[DONE]"), "the answer goes on");
    assert_eq!(app.set_keys(Keys::default()), Err(ChangeError::NoKeys));
    assert_eq!(ask(NEW).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_are_as_before_stay_and_the_others_go_after_their_answers() {
    let source = |tiny: &Tiny, version, unloads: &Arc<AtomicUsize>| -> Box<dyn Source> {
        Box::new(Versioned {
            tiny: tiny.clone(),
            version,
            unloads: Arc::clone(unloads),
        })
    };
    let (kept, changed, new) = (Tiny::default(), Tiny::default(), Tiny::default());
    let unloads = Arc::<AtomicUsize>::default();
    let options = ServerOptions {
        max_models: 3,
        ..ServerOptions::default()
    };
    let models = [
        ("changed".to_owned(), source(&changed, "1", &unloads)),
        ("kept".to_owned(), source(&kept, "1", &unloads)),
    ];
    let app = App::new(options, models).expect("a server");
    let ask = async |name: &str| {
        let asked = json!({"model": name, "prompt": "banana", "max_tokens": 1});
        post(&app, "/v1/completions", asked).await.0
    };
    assert_eq!(ask("kept").await, StatusCode::OK);
    let (_, rest) = begin(&app, request("POST", "/v1/completions"), "changed").await;
    let models = [
        ("changed".to_owned(), source(&new, "2", &unloads)),
        ("kept".to_owned(), source(&kept, "1", &unloads)),
        ("more".to_owned(), source(&new, "1", &unloads)),
    ];
    app.set_models(models).expect("models");
    assert_eq!(unloads.load(Ordering::SeqCst), 0, "an answer runs on it");
    assert_eq!(ask("changed").await, StatusCode::OK);
    assert_eq!(new.loads.load(Ordering::SeqCst), 1);
    assert!(rest.await.contains("[DONE]"), "the answer goes on");
    while unloads.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask("kept").await, StatusCode::OK);
    assert_eq!(ask("more").await, StatusCode::OK);
    assert_eq!(kept.loads.load(Ordering::SeqCst), 1, "it stayed loaded");
    assert_eq!(changed.loads.load(Ordering::SeqCst), 1);
    // A model that nobody uses goes at once.
    app.set_models([("kept".to_owned(), source(&kept, "1", &unloads))])
        .expect("a model");
    while unloads.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(app.set_models([]), Err(ChangeError::NoModel));
    assert_eq!(ask("kept").await, StatusCode::OK);
}

#[tokio::test]
async fn the_route_that_reloads_needs_keys_of_admins() {
    let calls = Arc::<AtomicUsize>::default();
    for options in [
        ServerOptions::default(),
        ServerOptions {
            keys: keys(OLD),
            ..ServerOptions::default()
        },
        ServerOptions {
            keys: keys(OLD),
            admin_keys: keys(ADMIN),
            ..ServerOptions::default()
        },
    ] {
        let has_admins = !options.admin_keys.is_empty();
        let app = app_of(options, &["tiny"], &Tiny::default());
        let of_app = Arc::clone(&calls);
        app.on_reload(move |app| {
            if of_app.fetch_add(1, Ordering::SeqCst) > 0 {
                return Err("/srv/keys: no such file".to_owned());
            }
            app.set_keys(keys(NEW)).map_err(|error| error.to_string())?;
            app.set_admin_keys(keys(NEW_ADMIN)).map_err(|error| error.to_string())
        });
        let ask = |key: &'static str| {
            let asked = request("POST", "/admin/reload").header("x-api-key", key);
            send(&app, asked.body(Body::empty()).expect("a request"))
        };
        if !has_admins {
            assert_eq!(ask(OLD).await.0, StatusCode::NOT_FOUND);
            assert_eq!(calls.load(Ordering::SeqCst), 0);
            continue;
        }
        assert_eq!(ask(NEW_ADMIN).await.0, StatusCode::UNAUTHORIZED);
        assert_eq!(ask(OLD).await.0, StatusCode::FORBIDDEN, "no admin's");
        assert_eq!(calls.load(Ordering::SeqCst), 0);
        assert_eq!(ask(ADMIN).await.0, StatusCode::OK);
        assert_eq!(ask(ADMIN).await.0, StatusCode::UNAUTHORIZED, "the keys have changed");
        assert_eq!(ask(NEW).await.0, StatusCode::FORBIDDEN, "no admin's");
        let (status, _, body) = ask(NEW_ADMIN).await;
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!String::from_utf8_lossy(&body).contains("srv"), "no path");
    }
}
