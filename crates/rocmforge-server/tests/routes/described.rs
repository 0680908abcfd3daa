//! The description at `/openapi.json` has every route, every field that a route reads and every property of its answers, and no others.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::requests::{description, good, server};
use super::schema::fault;
use crate::common::{get, post, request, send};

/// Paths of the description.
fn paths(description: &Value) -> &serde_json::Map<String, Value> {
    description["paths"].as_object().expect("paths")
}

/// The schema of a route's answers in JSON, by its method and status.
fn answers<'a>(description: &'a Value, path: &str, method: &str, status: &str) -> Option<&'a Value> {
    let response = &paths(description)[path][method]["responses"].get(status)?;
    let response = match response.get("$ref") {
        Some(place) => description.pointer(place.as_str()?.trim_start_matches('#'))?,
        None => response,
    };
    response["content"]["application/json"].get("schema")
}

#[tokio::test]
async fn it_has_every_route_with_its_methods() {
    let app = server();
    let description = description(&app).await;
    assert_eq!(description["openapi"], "3.1.0");
    // axum lists routes for debugging only.
    let shown = format!("{:?}", app.router());
    let is_path = |rest: &&str| rest.starts_with("): \"/");
    let routed: BTreeSet<String> = shown
        .split("RouteId(")
        .filter_map(|part| part.find("): \"").map(|at| &part[at..]))
        .filter(is_path)
        .filter_map(|rest| rest.split('"').nth(1))
        .filter(|path| !path.contains("__private"))
        .map(|path| path.replace("{*", "{"))
        .collect();
    assert!(routed.len() > 40, "the routes are no longer found in {shown}");
    let described: BTreeSet<String> = paths(&description).keys().cloned().collect();
    assert_eq!(routed, described, "`described` in the module of the route has its row");
    for (path, item) in paths(&description) {
        let asked = path
            .replace("{name}", "tiny")
            .replace("{id}", "1")
            .replace("{digest}", "x");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let request = request(method, &asked).body(Body::empty()).expect("a request");
            let (status, _, _) = send(&app, request).await;
            let has = status != StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(item.get(method.to_lowercase()).is_some(), has, "{method} {path}");
        }
    }
}

/// A value that the schema does not allow.
fn wrong_value(description: &Value, schema: &Value) -> Option<Value> {
    let values = [json!(true), json!("\u{1}"), json!(0.5), json!([[]]), json!({"a": [[]]})];
    values
        .into_iter()
        .find(|value| fault(description, schema, value, "").is_some())
}

/// The reverse, that a field which is read is described, is an assertion in the reader itself.
#[tokio::test]
async fn each_field_of_a_request_is_read() {
    let app = server();
    let description = description(&app).await;
    let mut tried = 0;
    for (path, good) in good() {
        let schema = &paths(&description)[path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(fault(&description, schema, &good, path), None);
        let (status, _, answer) = post(&app, path, good.clone()).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        for (name, property) in schema["properties"].as_object().expect("properties") {
            let Some(value) = wrong_value(&description, property) else {
                panic!("{path}: any value is right for {name}");
            };
            let mut request = good.clone();
            request[name] = value.clone();
            // Of these only the first that is there is read.
            if name == "name" || name == "n_predict" {
                for first in ["model", "max_tokens", "max_completion_tokens"] {
                    if first != "model" || name == "name" {
                        request[first] = Value::Null;
                    }
                }
            }
            let (status, _, answer) = post(&app, path, request).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {name} = {value}: {answer}");
            let words = answer.to_string();
            assert!(words.contains(name.as_str()), "{path}: {name}: {words}");
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried} fields");
}

#[tokio::test]
async fn answers_are_as_described() {
    let app = server();
    let description = description(&app).await;
    for (path, good) in good() {
        let (status, _, answer) = post(&app, path, good).await;
        let schema = answers(&description, path, "post", status.as_str()).expect("a schema");
        assert_eq!(fault(&description, schema, &answer, path), None);
        let (status, _, error) = post(&app, path, json!({"model": 1})).await;
        let schema = answers(&description, path, "post", status.as_str()).expect("a schema");
        assert_eq!(fault(&description, schema, &error, path), None);
    }
    for (path, item) in paths(&description) {
        if item.get("get").is_none() {
            continue;
        }
        let asked = path.replace("{name}", "tiny").replace("{id}", "1");
        let (status, headers, body) = get(&app, &asked).await;
        if headers["content-type"] == "application/json" {
            let answer: Value = serde_json::from_slice(&body).expect("JSON");
            let schema = answers(&description, path, "get", status.as_str()).expect("a schema");
            assert_eq!(fault(&description, schema, &answer, path), None);
        } else {
            let kind = headers["content-type"].to_str().expect("a text").split(';').next();
            let content = &item["get"]["responses"]["200"]["content"];
            assert!(content.get(kind.expect("a type")).is_some(), "{path}: {kind:?}");
        }
    }
}

/// These were taken for a text, and for no format.
#[tokio::test]
async fn types_inside_of_fields_are_looked_at() {
    let app = server();
    let parts = json!([{"type": {}, "text": "banana"}]);
    let messages = json!([{"role": "user", "content": parts}]);
    for (path, request, field) in [
        (
            "/v1/chat/completions",
            json!({"model": "tiny", "messages": messages}),
            "messages",
        ),
        (
            "/v1/messages",
            json!({"model": "tiny", "messages": messages, "max_tokens": 1}),
            "messages",
        ),
        (
            "/v1/messages",
            json!({"model": "tiny", "system": parts, "messages": [], "max_tokens": 1}),
            "system",
        ),
        ("/v1/responses", json!({"model": "tiny", "input": messages}), "input"),
        (
            "/v1/responses",
            json!({"model": "tiny", "input": [{"type": "reasoning", "content": 1}]}),
            "input",
        ),
        (
            "/v1/responses",
            json!({"model": "tiny", "input": "banana", "text": {"format": [null]}}),
            "text.format",
        ),
        (
            "/completion",
            json!({"model": "tiny", "prompt": "banana", "cache_prompt": "x"}),
            "cache_prompt",
        ),
        (
            "/v1/completions",
            json!({"model": "tiny", "prompt": "banana", "stream_options": {"include_usage": 1}}),
            "stream_options",
        ),
    ] {
        let (status, _, answer) = post(&app, path, request).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {answer}");
        assert!(answer.to_string().contains(field), "{path}: {answer}");
    }
}
