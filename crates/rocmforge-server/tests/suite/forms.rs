//! Forms of answers and requests that clients of each API rely on.

use axum::body::Body;
use axum::http::StatusCode;
use rocmforge_server::{Facts, Limits, LoadError, Loaded, ServerOptions, Source, StartError};
use serde_json::{Map, Value, json};

use crate::common::{Tiny, app, app_of, get, post, request, send};

fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(body)))
}

/// The small model, as if it were on a card.
struct OnCard(Tiny);

impl Source for OnCard {
    fn load(&self) -> Result<Loaded, LoadError> {
        let mut loaded = self.0.load()?;
        loaded.facts = Facts {
            weight_bytes: 1000,
            cache_bytes: 200,
            device: "hip:0".to_owned(),
            ..Facts::default()
        };
        Ok(loaded)
    }
}

#[tokio::test]
async fn ollamas_client_finds_a_digest_and_sizes() {
    let source = Box::new(OnCard(Tiny::default())) as Box<dyn Source>;
    let app = rocmforge_server::App::new(ServerOptions::default(), [("tiny".to_owned(), source)]).expect("a server");
    let tags = read(&get(&app, "/api/tags").await.2);
    let digest = tags["models"][0]["digest"].as_str().expect("a text").to_owned();
    assert!(
        digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{digest}"
    );
    app.load("tiny").await.expect("it loads");
    let running = read(&get(&app, "/api/ps").await.2)["models"][0].take();
    assert_eq!(running["digest"], digest.as_str());
    assert_eq!((&running["size"], &running["size_vram"]), (&json!(1200), &json!(1200)));
}

async fn stream(path: &str, asked: Value) -> String {
    let app = app(ServerOptions::default());
    let request = request("POST", path).header("content-type", "application/json");
    let request = request.body(Body::from(asked.to_string())).expect("a request");
    let (status, _, body) = send(&app, request).await;
    assert_eq!(status, StatusCode::OK);
    String::from_utf8(body).expect("UTF-8")
}

#[tokio::test]
async fn only_streams_of_openai_end_with_done() {
    let asked = json!({"prompt": "banana", "n_predict": 3, "max_tokens": 3, "stream": true});
    let text = stream("/completion", asked.clone()).await;
    let values = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let values: Vec<Value> = values.map(|value| read(value.as_bytes())).collect();
    assert_eq!(values.last().expect("values")["stop"], true);
    assert!(stream("/v1/completions", asked).await.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn more_answers_than_a_request_may_have_are_refused_for_good() {
    let app = app(ServerOptions::default());
    let asked = json!({"prompt": vec!["a"; 16], "n": 16, "n_predict": 1, "max_tokens": 1});
    for path in ["/v1/completions", "/completion"] {
        let (status, headers, answer) = post(&app, path, asked.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(!headers.contains_key("retry-after"));
        assert!(
            answer["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("256")),
            "{answer}"
        );
    }
    let asked = json!({"prompt": vec!["a"; 8], "n": 2, "max_tokens": 1});
    assert_eq!(post(&app, "/v1/completions", asked).await.0, StatusCode::OK);
    // What never fits into the queue is no matter of trying again.
    let options = ServerOptions {
        limits: Limits {
            requests: 8,
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let app = app_of(options, &["tiny"], &Tiny::default());
    let asked = json!({"model": "tiny", "messages": [{"role": "user", "content": "a"}], "n": 16, "max_tokens": 1});
    let (status, _, answer) = post(&app, "/v1/chat/completions", asked).await;
    assert_eq!(
        (status, &answer["error"]["param"]),
        (StatusCode::BAD_REQUEST, &json!("n"))
    );
}

#[tokio::test]
async fn names_of_models_in_queries_and_paths_are_decoded() {
    let app = app_of(
        ServerOptions::default(),
        &["hf:owner/repo:Q4_0", "b c"],
        &Tiny::default(),
    );
    for (query, name) in [
        ("hf%3Aowner%2Frepo%3AQ4_0", "hf:owner/repo:Q4_0"),
        ("b+c", "b c"),
        ("b%20c", "b c"),
    ] {
        let (status, _, body) = get(&app, &format!("/props?model={query}")).await;
        assert_eq!((status, &read(&body)["model_alias"]), (StatusCode::OK, &json!(name)));
    }
    for path in ["/props?model=%FF", "/v1/models/%FF"] {
        let (status, _, body) = get(&app, path).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        assert!(read(&body)["error"]["message"].is_string(), "{path}");
    }
}

#[tokio::test]
async fn a_seed_that_the_server_reports_can_be_sent_back() {
    let app = app(ServerOptions::default());
    for _ in 0..32 {
        let (_, _, answer) = post(&app, "/completion", json!({"prompt": "banana", "n_predict": 1})).await;
        let seed = answer["generation_settings"]["seed"].clone();
        assert!(seed.as_u64().is_some_and(|seed| seed <= u64::from(u32::MAX)), "{seed}");
        let (status, _, again) = post(
            &app,
            "/completion",
            json!({"prompt": "banana", "n_predict": 1, "seed": seed}),
        )
        .await;
        assert_eq!((status, &again["content"]), (StatusCode::OK, &answer["content"]));
    }
}

#[test]
fn a_host_name_with_a_port_is_refused() {
    let options = ServerOptions {
        hosts: vec!["chat.lan:8080".to_owned()],
        ..ServerOptions::default()
    };
    let source = Box::new(Tiny::default()) as Box<dyn Source>;
    let app = rocmforge_server::App::new(options, [("tiny".to_owned(), source)]);
    assert!(matches!(app, Err(StartError::Name(name, _)) if name == "chat.lan:8080"));
}

#[tokio::test]
async fn a_null_does_not_hide_a_default() {
    let defaults: Map<String, Value> = [("temperature".to_owned(), json!(0.25))].into_iter().collect();
    let options = ServerOptions {
        defaults,
        ..ServerOptions::default()
    };
    let app = app_of(options, &["tiny"], &Tiny::default());
    let asked = json!({"prompt": "banana", "n_predict": 1, "temperature": null});
    let (_, _, answer) = post(&app, "/completion", asked).await;
    assert_eq!(answer["generation_settings"]["temperature"], 0.25);
}
