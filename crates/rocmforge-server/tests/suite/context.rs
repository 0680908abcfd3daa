//! Prompts and answers that fill the whole context, in each API.

use axum::http::StatusCode;
use rocmforge_server::{App, ServerOptions};
use serde_json::{Value, json};

use crate::common::{Tiny, app_of, post, post_stream, with};

/// Tokens of the longest sequence.
const CONTEXT: usize = 40;

fn app() -> App {
    let source = Tiny {
        context: Some(CONTEXT),
        ..Tiny::default()
    };
    app_of(ServerOptions::default(), &["tiny"], &source)
}

/// A text of each length in tokens: a request's prompt.
fn prompt_of(letters: usize) -> String {
    "z".repeat(letters)
}

/// The letters of a user's message whose whole prompt has so many tokens.
async fn letters_for(app: &App, tokens: usize) -> usize {
    for letters in 1..4 * CONTEXT {
        let asked =
            json!({"model": "tiny", "messages": [{"role": "user", "content": prompt_of(letters)}], "max_tokens": 1});
        let (_, _, counted) = post(app, "/v1/messages/count_tokens", asked).await;
        if counted["input_tokens"] == tokens {
            return letters;
        }
    }
    panic!("no text has a prompt of {tokens} tokens");
}

fn conversation(letters: usize, more: Value) -> Value {
    let mut asked = json!({"model": "tiny", "messages": [{"role": "user", "content": prompt_of(letters)}]});
    asked
        .as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    asked
}

#[tokio::test]
async fn openais_completions_fill_the_context() {
    let app = app();
    let ids = |tokens: usize| json!({"prompt": vec![7; tokens], "ignore_eos": true, "temperature": 0});
    for (prompt, drawn) in [(CONTEXT, 1), (CONTEXT - 1, 2), (CONTEXT - 9, 10)] {
        // Without a limit, with one beyond the context, and as a stream.
        for more in [json!(-1), json!(10 * CONTEXT)] {
            let asked = with(ids(prompt), "max_tokens", more);
            let (status, _, answer) = post(&app, "/v1/completions", asked.clone()).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
            assert_eq!(
                (&answer["usage"]["prompt_tokens"], &answer["usage"]["completion_tokens"]),
                (&json!(prompt), &json!(drawn))
            );
            let events = post_stream(&app, "/v1/completions", with(asked, "stream", json!(true))).await;
            let reasons = events
                .iter()
                .filter_map(|(_, event)| event["choices"][0]["finish_reason"].as_str());
            assert_eq!(reasons.collect::<Vec<_>>(), ["length"]);
            let texts = events
                .iter()
                .filter_map(|(_, event)| event["choices"][0]["text"].as_str());
            assert_eq!(
                texts.collect::<String>(),
                answer["choices"][0]["text"].as_str().expect("a text")
            );
        }
    }
    let (status, _, answer) = post(&app, "/v1/completions", ids(CONTEXT + 1)).await;
    let error = &answer["error"];
    assert_eq!(
        (status, &error["type"]),
        (StatusCode::BAD_REQUEST, &json!("exceed_context_size_error"))
    );
    assert_eq!(
        (&error["n_prompt_tokens"], &error["n_ctx"]),
        (&json!(CONTEXT + 1), &json!(CONTEXT))
    );
}

#[tokio::test]
async fn openais_chats_fill_the_context() {
    let app = app();
    let letters = letters_for(&app, CONTEXT).await;
    let asked = |letters| conversation(letters, json!({"ignore_eos": true, "temperature": 0}));
    let (status, _, answer) = post(&app, "/v1/chat/completions", asked(letters)).await;
    assert_eq!(
        (status, &answer["choices"][0]["finish_reason"]),
        (StatusCode::OK, &json!("length")),
        "{answer}"
    );
    assert_eq!(answer["usage"]["total_tokens"], CONTEXT + 1);
    let over = letters_for(&app, CONTEXT + 1).await;
    let (status, _, answer) = post(&app, "/v1/chat/completions", asked(over)).await;
    assert_eq!(
        (status, &answer["error"]["n_ctx"]),
        (StatusCode::BAD_REQUEST, &json!(CONTEXT)),
        "{answer}"
    );
}

#[tokio::test]
async fn anthropics_messages_fill_the_context() {
    let app = app();
    for (prompt, drawn) in [(CONTEXT, 1), (CONTEXT - 5, 6)] {
        let letters = letters_for(&app, prompt).await;
        let asked = conversation(letters, json!({"max_tokens": 10 * CONTEXT, "temperature": 0}));
        let (status, _, answer) = post(&app, "/v1/messages", asked.clone()).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert_eq!(answer["stop_reason"], "model_context_window_exceeded", "{answer}");
        let usage = |name: &str| answer["usage"][name].as_u64().expect("a number") as usize;
        assert_eq!(usage("input_tokens") + usage("cache_read_input_tokens"), prompt);
        assert_eq!(usage("output_tokens"), drawn);
        let events = post_stream(&app, "/v1/messages", with(asked.clone(), "stream", json!(true))).await;
        let end = events.iter().find(|(name, _)| name == "message_delta").expect("an end");
        assert_eq!(end.1["delta"]["stop_reason"], "model_context_window_exceeded");
        assert_eq!(events.last().expect("events").0, "message_stop");
        // A limit of its own that comes first has its own name.
        let (_, _, answer) = post(&app, "/v1/messages", with(asked, "max_tokens", json!(1))).await;
        assert_eq!(answer["stop_reason"], "max_tokens", "{answer}");
    }
    let over = letters_for(&app, CONTEXT + 1).await;
    let (status, _, answer) = post(&app, "/v1/messages", conversation(over, json!({"max_tokens": 1}))).await;
    assert_eq!(
        (status, &answer["error"]["type"]),
        (StatusCode::BAD_REQUEST, &json!("invalid_request_error"))
    );
    let text = answer["error"]["message"].as_str().expect("a text");
    assert!(
        text.contains(&(CONTEXT + 1).to_string()) && text.contains(&CONTEXT.to_string()),
        "{text}"
    );
}

/// A request of ollama's whose prompt leaves room for one token ends with that one.
async fn ollama_fills(app: &App, path: &str, body: Value) {
    let (status, _, answer) = post(app, path, body).await;
    let end = &answer["done_reason"];
    assert_eq!((status, end), (StatusCode::OK, &json!("length")), "{answer}");
    let counts = (&answer["prompt_eval_count"], &answer["eval_count"]);
    assert_eq!(counts, (&json!(CONTEXT), &json!(1)));
}

#[tokio::test]
async fn ollamas_chats_and_texts_fill_the_context() {
    let app = app();
    let letters = letters_for(&app, CONTEXT).await;
    let over = letters_for(&app, CONTEXT + 1).await;
    let more = json!({"stream": false, "options": {"num_predict": -1, "temperature": 0}});
    ollama_fills(&app, "/api/chat", conversation(letters, more.clone())).await;
    let (status, _, answer) = post(&app, "/api/chat", conversation(over, more.clone())).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    let text = answer["error"].as_str().expect("a text");
    assert!(
        text.contains(&(CONTEXT + 1).to_string()) && text.contains(&CONTEXT.to_string()),
        "{text}"
    );
    // The prompt of a raw text is its own.
    let counted = async |letters: usize| {
        let (_, _, answer) = post(
            &app,
            "/tokenize",
            json!({"content": prompt_of(letters), "add_special": true}),
        )
        .await;
        answer["tokens"].as_array().expect("a list").len()
    };
    let mut letters = 1;
    while counted(letters).await < CONTEXT {
        letters += 1;
    }
    assert_eq!(counted(letters).await, CONTEXT);
    let mut asked = json!({"model": "tiny", "raw": true, "prompt": prompt_of(letters)});
    asked
        .as_object_mut()
        .expect("an object")
        .extend(more.as_object().expect("an object").clone());
    ollama_fills(&app, "/api/generate", asked.clone()).await;
    while counted(letters).await <= CONTEXT {
        letters += 1;
    }
    let (status, ..) = post(&app, "/api/generate", with(asked, "prompt", json!(prompt_of(letters)))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
