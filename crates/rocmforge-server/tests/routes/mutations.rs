//! Mutations of good requests: whatever is in a body, the server answers without an error of its own, and answers a good request after it.
//!
//! `ROCMFORGE_MUTATIONS` is the number of them for each route, `ROCMFORGE_SEED` the first seed.

use std::env::var;

use axum::body::Body;
use axum::http::StatusCode;
use rocmforge_server::App;
use rocmforge_test_support::Random;
use serde_json::{Value, json};

use super::requests::{description, good, server};
use crate::common::{post, request, send_to};

/// Values that readers get wrong.
fn hostile(random: &mut Random) -> Value {
    let numbers = [
        0.0,
        -0.0,
        0.5,
        -1.0,
        1e15,
        -1e15,
        9.1e15,
        1e300,
        -1e300,
        5e-324,
        3.5e38,
        2_147_483_648.0,
        1.8446744073709552e19,
    ];
    let texts = [
        "",
        "\0",
        "NaN",
        "Infinity",
        "-1",
        "1e999",
        "null",
        "<bos>",
        "\u{feff}",
        "e\u{301}\u{200d}\u{202e}",
        "🦙",
        "../../etc/passwd",
        "{{ x }}{% for",
        "\u{10ffff}",
    ];
    match random.index(12) {
        0 => Value::Null,
        1 => random.one_in(2).into(),
        2 => json!(numbers[random.index(numbers.len())]),
        3 => random.next().into(),
        4 => (random.next() as i64).into(),
        5 => json!(random.below(4)),
        6 => texts[random.index(texts.len())].into(),
        7 => texts[random.index(texts.len())].repeat(random.index(300)).into(),
        8 => json!([]),
        9 => json!({}),
        10 => {
            let (depth, is_list) = (random.index(100), random.one_in(2));
            (0..depth).fold(json!(1), |inner, _| match is_list {
                true => json!([inner]),
                false => json!({ "type": inner }),
            })
        }
        _ => (0..random.index(40))
            .map(|_| json!(texts[random.index(texts.len())]))
            .collect(),
    }
}

/// A value in place of another, of the same type as often as not: readers take more of them.
fn instead(old: &Value, random: &mut Random) -> Value {
    let kind = |value: &Value| std::mem::discriminant(value);
    let mut value = hostile(random);
    for _ in 0..random.index(2) * 16 {
        if kind(&value) == kind(old) {
            break;
        }
        value = hostile(random);
    }
    value
}

/// Changes a value somewhere.
fn mutate(value: &mut Value, random: &mut Random) {
    let inner = match value {
        Value::Object(object) if !object.is_empty() && !random.one_in(6) => {
            let key = object.keys().nth(random.index(object.len())).cloned();
            let key = key.expect("there is one");
            if random.one_in(8) {
                object.remove(&key);
                return;
            }
            object.get_mut(&key)
        }
        Value::Array(list) if !list.is_empty() && !random.one_in(6) => {
            let index = random.index(list.len());
            if random.one_in(8) {
                let same = list[index].clone();
                list.extend(std::iter::repeat_n(same, random.index(40)));
                return;
            }
            list.get_mut(index)
        }
        _ => None,
    };
    match inner {
        Some(inner) if !random.one_in(3) => mutate(inner, random),
        Some(inner) => *inner = instead(inner, random),
        None => *value = instead(value, random),
    }
}

/// The bytes of a body, which may be no JSON.
fn bytes(value: &Value, random: &mut Random) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    let at = random.index(bytes.len());
    match random.index(24) {
        0 => bytes.truncate(at),
        1 => bytes[at] = random.next() as u8,
        2 => bytes.insert(at, random.next() as u8),
        3 => bytes.splice(0..0, std::iter::repeat_n(b'[', 5000)).for_each(drop),
        4 => {
            let text = String::from_utf8_lossy(&bytes).replacen(
                "0.5",
                ["NaN", "1e999", "-Infinity", "0x1"][random.index(4)],
                1,
            );
            bytes = text.into_bytes();
        }
        5 => bytes.extend_from_slice(b"{}"),
        _ => {}
    }
    bytes
}

/// Sends mutations to routes.
async fn check(paths: &[&str]) {
    let number = |name: &str, absent: u64| var(name).map_or(absent, |text| text.parse().expect("a number"));
    let (count, first) = (number("ROCMFORGE_MUTATIONS", 2000), number("ROCMFORGE_SEED", 1));
    println!("ROCMFORGE_SEED={first}");
    let app = server();
    let router = app.router();
    let description = description(&app).await;
    for (path, good) in good().into_iter().filter(|(path, _)| paths.contains(path)) {
        let schema = &description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        let fields: Vec<&String> = schema["properties"].as_object().expect("properties").keys().collect();
        let mut taken = 0;
        for seed in first..first + count {
            let mut random = Random(seed);
            let mut asked = good.clone();
            for _ in 0..1 + random.index(4) / 2 {
                match random.one_in(3) {
                    true => asked[fields[random.index(fields.len())].as_str()] = hostile(&mut random),
                    false => mutate(&mut asked, &mut random),
                }
                if !asked.is_object() {
                    break;
                }
            }
            let body = bytes(&asked, &mut random);
            let shown = String::from_utf8_lossy(&body).into_owned();
            let request = request("POST", path).header("content-type", "application/json");
            let (status, _, answer) = send_to(router.clone(), request.body(Body::from(body)).expect("a request")).await;
            let answer = String::from_utf8_lossy(&answer);
            assert!(
                !status.is_server_error(),
                "{path}, seed {seed}: {status} {answer}\n{shown}"
            );
            assert!(
                !answer.contains("server_error"),
                "{path}, seed {seed}: {answer}\n{shown}"
            );
            taken += usize::from(status == StatusCode::OK);
        }
        check_good(&app, path, good).await;
        println!("{path}: {taken} of {count} were taken");
        // Many mutations name a model that is not there.
        assert!(taken as u64 * 50 > count, "{path}: only {taken} of {count} were taken");
    }
}

async fn check_good(app: &App, path: &str, good: Value) {
    let (status, _, answer) = post(app, path, good).await;
    assert_eq!(status, StatusCode::OK, "{path}: {answer}");
}

#[tokio::test]
async fn of_chats() {
    check(&[
        "/v1/chat/completions",
        "/chat/completions/input_tokens",
        "/apply-template",
    ])
    .await;
}

#[tokio::test]
async fn of_completions() {
    check(&["/v1/completions", "/completion"]).await;
}

#[tokio::test]
async fn of_responses() {
    check(&["/v1/responses", "/v1/responses/input_tokens"]).await;
}

#[tokio::test]
async fn of_messages() {
    check(&["/v1/messages", "/v1/messages/count_tokens"]).await;
}

#[tokio::test]
async fn of_ollama() {
    check(&["/api/chat", "/api/generate", "/api/show"]).await;
}

#[tokio::test]
async fn of_tokens() {
    check(&["/tokenize", "/detokenize"]).await;
}
