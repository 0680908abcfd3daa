//! Keys: what is shared within one, routes that an admin's is asked for, and routes that are switched off.

use axum::body::Body;
use axum::http::StatusCode;
use rocmforge_server::{App, ChangeError, Keys, ServerOptions, Source, StartError};
use serde_json::{Value, json};

use crate::common::{Tiny, app_of, get, post, request, send};

/// Of a user and of an admin; both are called `ada`.
const KEY: &str = "0123456789abcdef0123";
const OTHER_KEY: &str = "33221100998877665544";
const ADMIN: &str = "fedcba98765432100000";

fn keys(key: &str) -> Keys {
    Keys::parse(&format!("ada:{key}")).expect("a key")
}

/// A server with slots.
fn served(has_keys: bool, has_admins: bool) -> App {
    let some = |has: bool, key: &str| if has { keys(key) } else { Keys::default() };
    let options = ServerOptions {
        keys: some(has_keys, KEY),
        admin_keys: some(has_admins, ADMIN),
        slots: true,
        ..ServerOptions::default()
    };
    app_of(options, &["tiny"], &Tiny::default())
}

async fn ask(app: &App, method: &str, path: &str, key: Option<&str>) -> StatusCode {
    let mut asked = request(method, path);
    if let Some(key) = key {
        asked = asked.header("authorization", format!("Bearer {key}"));
    }
    send(app, asked.body(Body::empty()).expect("a request")).await.0
}

#[tokio::test]
async fn slots_and_reloads_are_for_admins() {
    let unknown = Some("00000000000000000000");
    let app = served(true, true);
    app.on_reload(|_| Ok(()));
    for (method, path) in [("GET", "/slots"), ("POST", "/admin/reload")] {
        for (key, status) in [
            (None, StatusCode::UNAUTHORIZED),
            (unknown, StatusCode::UNAUTHORIZED),
            (Some(KEY), StatusCode::FORBIDDEN),
            (Some(ADMIN), StatusCode::OK),
        ] {
            assert_eq!(ask(&app, method, path, key).await, status, "{path} {key:?}");
        }
    }
    // An admin may ask what others may.
    for path in ["/v1/models", "/metrics", "/props"] {
        for key in [KEY, ADMIN] {
            assert_eq!(ask(&app, "GET", path, Some(key)).await, StatusCode::OK, "{path}");
        }
        assert_eq!(ask(&app, "GET", path, None).await, StatusCode::UNAUTHORIZED, "{path}");
    }
    // Without keys everybody may ask what is not for admins, whatever key a client of OpenAI sends.
    let app = served(false, true);
    app.on_reload(|_| Ok(()));
    for key in [None, unknown, Some(KEY), Some(ADMIN)] {
        assert_eq!(ask(&app, "GET", "/v1/models", key).await, StatusCode::OK, "{key:?}");
        let (get, reload) = match key == Some(ADMIN) {
            true => (StatusCode::OK, StatusCode::OK),
            false => (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED),
        };
        assert_eq!(ask(&app, "GET", "/slots", key).await, get, "{key:?}");
        assert_eq!(ask(&app, "POST", "/admin/reload", key).await, reload, "{key:?}");
    }
    // Without any, whoever reaches the server may see its slots, and nobody may change it.
    let app = served(false, false);
    app.on_reload(|_| Ok(()));
    assert_eq!(ask(&app, "GET", "/slots", None).await, StatusCode::OK);
    assert_eq!(ask(&app, "POST", "/admin/reload", None).await, StatusCode::NOT_FOUND);
}

#[test]
fn slots_that_nobody_could_see_are_an_error_at_the_start() {
    let options = ServerOptions {
        keys: keys(KEY),
        slots: true,
        ..ServerOptions::default()
    };
    let sources = [("m".to_owned(), Box::new(Tiny::default()) as Box<dyn Source>)];
    assert!(matches!(App::new(options, sources), Err(StartError::NoAdmin)));
}

#[tokio::test]
async fn keys_of_admins_change_while_the_server_runs() {
    let app = served(true, true);
    let new = "00112233445566778899";
    app.set_admin_keys(keys(new)).expect("a key");
    assert_eq!(ask(&app, "GET", "/slots", Some(ADMIN)).await, StatusCode::UNAUTHORIZED);
    assert_eq!(ask(&app, "GET", "/slots", Some(new)).await, StatusCode::OK);
    assert_eq!(app.set_admin_keys(Keys::default()), Err(ChangeError::NoKeys));
    assert_eq!(ask(&app, "GET", "/slots", Some(new)).await, StatusCode::OK);
}

/// Tokens of a prompt that were in the cache, for this key and salt.
async fn cached(app: &App, key: Option<&str>, salt: Option<&str>) -> u64 {
    let prompt: Vec<u32> = (1..60).collect();
    let body = json!({"prompt": prompt, "max_tokens": 1, "cache_salt": salt}).to_string();
    let mut asked = request("POST", "/v1/completions").header("content-type", "application/json");
    if let Some(key) = key {
        asked = asked.header("x-api-key", key);
    }
    let (status, _, answer) = send(app, asked.body(Body::from(body)).expect("a request")).await;
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    assert_eq!(status, StatusCode::OK, "{answer}");
    let cached = &answer["usage"]["prompt_tokens_details"]["cached_tokens"];
    cached.as_u64().expect("a number")
}

#[tokio::test]
async fn beginnings_of_prompts_are_shared_within_a_key_only() {
    let options = ServerOptions {
        keys: Keys::parse(&format!("ada:{KEY}\nbob:{OTHER_KEY}")).expect("two keys"),
        ..ServerOptions::default()
    };
    let app = app_of(options, &["tiny"], &Tiny::default());
    assert_eq!(cached(&app, Some(KEY), None).await, 0);
    assert!(cached(&app, Some(KEY), None).await > 0, "its own");
    assert_eq!(cached(&app, Some(OTHER_KEY), None).await, 0, "another's");
}

#[tokio::test]
async fn an_admin_shares_the_cache_with_nobody_of_the_same_name() {
    let app = served(true, true);
    assert_eq!(cached(&app, Some(KEY), None).await, 0);
    assert_eq!(cached(&app, Some(ADMIN), None).await, 0, "another's");
    assert!(cached(&app, Some(ADMIN), None).await > 0, "its own");
}

#[tokio::test]
async fn a_salt_of_a_client_parts_the_cache() {
    let app = served(false, true);
    assert_eq!(cached(&app, None, None).await, 0);
    assert_eq!(
        cached(&app, None, Some("x")).await,
        0,
        "it was ignored, and the cache shared"
    );
    assert!(cached(&app, None, Some("x")).await > 0, "its own");
    assert_eq!(cached(&app, Some(ADMIN), Some("x")).await, 0, "an admin's");
    // No salt spells that of another: of an admin, of a request with log-probabilities of its prompt.
    for salt in ["", ":", "x\u{0}1", "\u{0}1", "admin:ada"] {
        assert_eq!(cached(&app, None, Some(salt)).await, 0, "{salt:?}");
    }
}

#[tokio::test]
async fn routes_are_switched_off_each_by_itself() {
    for switched in 0..8 {
        let [metrics, props, page] = [1, 2, 4].map(|bit| switched & bit != 0);
        let options = ServerOptions {
            metrics,
            props,
            page,
            ..ServerOptions::default()
        };
        let app = app_of(options, &["tiny"], &Tiny::default());
        let shown = |is_shown: bool, off: StatusCode| if is_shown { StatusCode::OK } else { off };
        let not_there = StatusCode::NOT_IMPLEMENTED;
        assert_eq!(get(&app, "/metrics").await.0, shown(metrics, not_there));
        assert_eq!(get(&app, "/props").await.0, shown(props, not_there));
        for path in ["/", "/page/page.js"] {
            assert_eq!(get(&app, path).await.0, shown(page, StatusCode::NOT_FOUND), "{path}");
        }
        // Others go on, and nothing writes settings.
        assert_eq!(get(&app, "/health").await.0, StatusCode::OK);
        let (status, ..) = post(&app, "/props", json!({})).await;
        assert_eq!(status, not_there);
    }
}
