//! The API of ollama: answers are those of the library, one JSON value a line; routes that change models are refused.

mod common;

use axum::body::Body;
use axum::http::StatusCode;
use common::{Tiny, app, app_of, expected, get, post, request, send};
use rocmforge_models::generate::Request;
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_server::{App, ServerOptions};
use serde_json::{Value, json};

async fn lines(app: &App, path: &str, json: Value) -> Vec<Value> {
    let asked = request("POST", path).header("content-type", "application/json");
    let (status, headers, body) = send(app, asked.body(Body::from(json.to_string())).expect("a request")).await;
    let body = String::from_utf8(body).expect("UTF-8");
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(headers["content-type"], "application/x-ndjson");
    let lines = body.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

#[tokio::test]
async fn a_raw_text_goes_on_as_in_the_library() {
    let app = app(ServerOptions::default());
    let asked = json!({
        "model": "tiny:latest", "prompt": "banana", "raw": true,
        "options": {"seed": 3, "num_predict": 9, "temperature": 0.7, "num_ctx": 4096},
    });
    let sampler = SamplerConfig {
        seed: 3,
        temperature: 0.7,
        ..SamplerConfig::default()
    };
    let text = expected(Request {
        sampler,
        max_tokens: 9,
        ..Request::new("banana")
    })
    .text;

    let values = lines(&app, "/api/generate", asked.clone()).await;
    let (last, first) = values.split_last().expect("values");
    let streamed: String = values.iter().filter_map(|value| value["response"].as_str()).collect();
    assert_eq!(streamed, text);
    assert!(
        first
            .iter()
            .all(|value| value["done"] == false && value["model"] == "tiny:latest")
    );
    assert_eq!((&last["done"], &last["done_reason"]), (&json!(true), &json!("length")));
    assert_eq!(
        (&last["prompt_eval_count"], &last["eval_count"]),
        (&json!(3), &json!(9))
    );
    for name in [
        "total_duration",
        "load_duration",
        "prompt_eval_duration",
        "eval_duration",
    ] {
        assert!(last[name].as_u64().is_some_and(|time| time > 0), "{name}: {last}");
    }

    let mut whole = asked;
    whole["stream"] = false.into();
    let (status, _, whole) = post(&app, "/api/generate", whole).await;
    assert_eq!((status, &whole["response"]), (StatusCode::OK, &json!(text)));
}

#[tokio::test]
async fn a_chat_ends_at_a_stop_text() {
    let app = app(ServerOptions::default());
    let asked = json!({
        "model": "tiny", "messages": [{"role": "user", "content": "banana"}],
        "options": {"seed": 3, "num_predict": 12, "temperature": 0},
    });
    let text = |values: &[Value]| -> String {
        let texts = values.iter().filter_map(|value| value["message"]["content"].as_str());
        texts.collect()
    };
    let all = text(&lines(&app, "/api/chat", asked.clone()).await);
    let stop: String = all.chars().skip(3).take(3).collect();
    let mut stopped = asked;
    stopped["options"]["stop"] = json!([stop]);
    let values = lines(&app, "/api/chat", stopped).await;
    assert_eq!(text(&values), all.split(&stop).next().expect("a part"));
    assert_eq!(values.last().expect("values")["done_reason"], "stop");
}

#[tokio::test]
async fn models_are_loaded_listed_and_unloaded() {
    let app = app_of(
        ServerOptions {
            max_models: 2,
            ..ServerOptions::default()
        },
        &["one", "two"],
        &Tiny::default(),
    );
    let read = |body: Vec<u8>| -> Value { serde_json::from_slice(&body).expect("JSON") };
    let names = |list: &Value| -> Vec<String> {
        let models = list["models"].as_array().expect("a list");
        models
            .iter()
            .map(|model| model["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names(&read(get(&app, "/api/tags").await.2)), ["one", "two"]);
    assert!(
        names(&read(get(&app, "/api/ps").await.2)).is_empty(),
        "listing loads nothing"
    );
    let load = json!({"model": "one", "stream": false, "keep_alive": "5m"});
    let (_, _, loaded) = post(&app, "/api/generate", load).await;
    assert_eq!(loaded["done_reason"], "load");
    let running = read(get(&app, "/api/ps").await.2);
    assert_eq!(names(&running), ["one"]);
    let (_, _, shown) = post(&app, "/api/show", json!({"model": "one"})).await;
    assert_eq!(shown["capabilities"], json!(["completion"]));
    let unload = json!({"model": "one", "stream": false, "keep_alive": 0});
    let (_, _, unloaded) = post(&app, "/api/generate", unload).await;
    assert_eq!(unloaded["done_reason"], "unload");
    for _ in 0..100 {
        if names(&read(get(&app, "/api/ps").await.2)).is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the model stays loaded");
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_words() {
    let app = app(ServerOptions::default());
    let user = json!([{"role": "user", "content": "hi"}]);
    for (path, asked, status) in [
        (
            "/api/chat",
            json!({"model": "other", "messages": user}),
            StatusCode::NOT_FOUND,
        ),
        ("/api/chat", json!({"messages": user}), StatusCode::BAD_REQUEST),
        (
            "/api/chat",
            json!({"model": "tiny", "messages": user, "format": "json"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            "/api/chat",
            json!({"model": "tiny", "messages": user, "tools": [{"type": "function"}]}),
            StatusCode::BAD_REQUEST,
        ),
        (
            "/api/chat",
            json!({"model": "tiny", "messages": [{"role": "user", "content": "hi", "images": ["aGk="]}]}),
            StatusCode::BAD_REQUEST,
        ),
        (
            "/api/chat",
            json!({"model": "tiny", "messages": user, "keep_alive": "soon"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            "/api/chat",
            json!({"model": "tiny", "messages": user, "options": {"seed": 0.5}}),
            StatusCode::BAD_REQUEST,
        ),
        (
            "/api/generate",
            json!({"model": "tiny", "prompt": "a", "images": ["aGk="]}),
            StatusCode::BAD_REQUEST,
        ),
        (
            "/api/generate",
            json!({"model": "tiny", "prompt": "a", "suffix": "b"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            "/api/generate",
            json!({"model": "tiny", "prompt": "x".repeat(5000), "stream": false}),
            StatusCode::BAD_REQUEST,
        ),
        (
            "/api/embed",
            json!({"model": "tiny", "input": "a"}),
            StatusCode::BAD_REQUEST,
        ),
        ("/api/pull", json!({"model": "/etc/passwd"}), StatusCode::FORBIDDEN),
        (
            "/api/create",
            json!({"model": "x", "from": "/etc/passwd"}),
            StatusCode::FORBIDDEN,
        ),
        (
            "/api/copy",
            json!({"source": "tiny", "destination": "x"}),
            StatusCode::FORBIDDEN,
        ),
        ("/api/push", json!({"model": "tiny"}), StatusCode::FORBIDDEN),
        ("/api/blobs/sha256:00", json!({}), StatusCode::FORBIDDEN),
        ("/api/nothing", json!({}), StatusCode::NOT_FOUND),
    ] {
        let (got, _, error) = post(&app, path, asked.clone()).await;
        assert_eq!(got, status, "{path} {asked} {error}");
        assert!(
            error["error"].as_str().is_some_and(|text| !text.is_empty()),
            "{path}: {error}"
        );
    }
}

#[tokio::test]
async fn unloading_a_model_that_is_not_loaded_does_not_load_it() {
    let source = Tiny::default();
    let app = app_of(ServerOptions::default(), &["one"], &source);
    for (path, asked) in [
        (
            "/api/generate",
            json!({"model": "one", "stream": false, "keep_alive": 0}),
        ),
        (
            "/api/chat",
            json!({"model": "one", "stream": false, "keep_alive": "0s", "messages": []}),
        ),
    ] {
        let (status, _, answer) = post(&app, path, asked).await;
        assert_eq!(
            (status, &answer["done_reason"]),
            (StatusCode::OK, &json!("unload")),
            "{path}"
        );
        assert_eq!(answer["done"], true);
    }
    assert_eq!(source.loads.load(std::sync::atomic::Ordering::SeqCst), 0);
    let other = json!({"model": "other", "keep_alive": 0});
    assert_eq!(post(&app, "/api/generate", other).await.0, StatusCode::NOT_FOUND);
}
