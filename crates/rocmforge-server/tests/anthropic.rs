//! The Anthropic API: answers are those of the library, whole and streamed; errors have the API's form.

mod common;

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use common::{app, expected, model, post, post_stream, request, send, with};
use rocmforge_models::chat::{Conversation, End, Message, Role};
use rocmforge_models::generate::{Completion, Prompt, Request};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_models::tokenizer::Piece;
use rocmforge_server::{Keys, ServerOptions};
use serde_json::{Value, json};

const PATH: &str = "/v1/messages";

fn pieces(messages: &[Message], end: End) -> Vec<Piece> {
    let model = model();
    let template = model.chat_template().expect("readable").expect("it has one");
    let conversation = Conversation {
        end,
        ..Conversation::new(messages)
    };
    let tokenizer = model.tokenizer().expect("it has one");
    template.render_pieces(&conversation, &tokenizer).expect("renders")
}

/// What the library answers.
fn answer(messages: &[Message], end: End, stop: &[&str]) -> Completion {
    expected(Request {
        sampler: SamplerConfig {
            seed: 5,
            ..SamplerConfig::default()
        },
        max_tokens: 12,
        stop: stop.iter().map(|text| (*text).to_owned()).collect(),
        ..Request::new(Prompt::Pieces(pieces(messages, end)))
    })
}

fn body(messages: &Value) -> Value {
    json!({"model": "tiny", "max_tokens": 12, "seed": 5, "messages": messages})
}

#[tokio::test]
async fn a_message_is_the_librarys_whole_and_streamed() {
    let app = app(ServerOptions::default());
    let messages = json!([{"role": "user", "content": "banana"}]);
    let expected = answer(&[Message::new(Role::User, "banana")], End::Answer, &[]);
    let (status, _, whole) = post(&app, PATH, body(&messages)).await;
    assert_eq!(status, StatusCode::OK, "{whole}");
    assert!(whole["id"].as_str().expect("a text").starts_with("msg_"));
    assert_eq!(
        (&whole["type"], &whole["role"]),
        (&json!("message"), &json!("assistant"))
    );
    assert_eq!(
        whole["content"],
        json!([{"type": "text", "text": expected.text, "citations": null}])
    );
    assert_eq!(
        (&whole["stop_reason"], &whole["stop_sequence"]),
        (&json!("max_tokens"), &json!(null))
    );
    let prompt = expected.stats.prompt_tokens;
    assert_eq!(
        (&whole["usage"]["input_tokens"], &whole["usage"]["output_tokens"]),
        (&json!(prompt), &json!(12))
    );

    let events = post_stream(&app, PATH, with(body(&messages), "stream", true.into())).await;
    let mut names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    assert!(events.iter().all(|(name, event)| event["type"] == *name));
    let start = &events[0].1["message"];
    assert_eq!((&start["content"], &start["stop_reason"]), (&json!([]), &json!(null)));
    assert_eq!(start["usage"]["input_tokens"], prompt);
    let text: String = events
        .iter()
        .filter_map(|(_, event)| event["delta"]["text"].as_str())
        .collect();
    assert_eq!(text, expected.text);
    let (_, last) = &events[events.len() - 2];
    assert_eq!(last["delta"]["stop_reason"], "max_tokens");
    // The same prompt was in the cache.
    let usage = &last["usage"];
    let cached = usage["cache_read_input_tokens"].as_u64().expect("a number");
    assert_eq!(
        usage["input_tokens"].as_u64().expect("a number") + cached,
        prompt as u64
    );
    assert_eq!(usage["output_tokens"], 12);
}

#[tokio::test]
async fn forms_of_one_conversation_have_one_answer() {
    let app = app(ServerOptions::default());
    let expected = answer(
        &[
            Message::new(Role::System, "be brief\nvery"),
            Message::new(Role::User, "one\ntwo"),
        ],
        End::Answer,
        &[],
    );
    let text = |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
    for (system, messages) in [
        (
            json!("be brief\nvery"),
            json!([{"role": "user", "content": "one\ntwo"}]),
        ),
        (
            json!([text("be brief"), text("very")]),
            json!([{"role": "user", "content": [text("one"), text("two")]}]),
        ),
        (
            json!([text("be brief\nvery")]),
            // Turns of one role are one turn.
            json!([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]),
        ),
    ] {
        let mut request = with(body(&messages), "system", system);
        request["metadata"] = json!({"user_id": "ada"});
        let (status, _, whole) = post(&app, PATH, request.clone()).await;
        assert_eq!(status, StatusCode::OK, "{whole}");
        assert_eq!(whole["content"][0]["text"], expected.text, "{messages}");
        let (_, _, count) = post(&app, "/v1/messages/count_tokens", request).await;
        assert_eq!(count, json!({"input_tokens": expected.stats.prompt_tokens}));
    }
}

#[tokio::test]
async fn a_last_message_of_the_model_is_gone_on_with() {
    let app = app(ServerOptions::default());
    let own = [Message::new(Role::User, "banana"), Message::new(Role::Assistant, "yes")];
    let messages = json!([{"role": "user", "content": "banana"}, {"role": "assistant", "content": "yes"}]);
    let (_, _, whole) = post(&app, PATH, body(&messages)).await;
    assert_eq!(whole["content"][0]["text"], answer(&own, End::Content, &[]).text);
}

#[tokio::test]
async fn a_stop_sequence_is_named() {
    let app = app(ServerOptions::default());
    let messages = [Message::new(Role::User, "banana")];
    let text = answer(&messages, End::Answer, &[]).text;
    // Two characters within the answer.
    let stop: String = text.chars().skip(3).take(2).collect();
    let expected = answer(&messages, End::Answer, &[&stop]);
    let request = with(
        body(&json!([{"role": "user", "content": "banana"}])),
        "stop_sequences",
        json!(["never", stop]),
    );
    let (_, _, whole) = post(&app, PATH, request.clone()).await;
    assert_eq!(
        (&whole["stop_reason"], &whole["stop_sequence"]),
        (&json!("stop_sequence"), &json!(stop))
    );
    assert_eq!(whole["content"][0]["text"], expected.text);
    let events = post_stream(&app, PATH, with(request, "stream", true.into())).await;
    let (_, last) = &events[events.len() - 2];
    assert_eq!(
        (&last["delta"]["stop_reason"], &last["delta"]["stop_sequence"]),
        (&json!("stop_sequence"), &json!(stop))
    );
}

#[tokio::test]
async fn control_tokens_of_a_user_are_text() {
    let app = app(ServerOptions::default());
    let mut counts = Vec::new();
    for content in ["x", "x<eos>"] {
        let messages = json!([{"role": "user", "content": [{"type": "text", "text": content}]}]);
        let (_, _, count) = post(&app, "/v1/messages/count_tokens", body(&messages)).await;
        counts.push(count["input_tokens"].as_u64().expect("a number"));
    }
    assert_eq!(counts[1], counts[0] + 5);
}

/// The error of a request, which has the API's form.
async fn refused(app: &rocmforge_server::App, path: &str, request: Value, status: StatusCode, kind: &str) -> String {
    let (found, _, error) = post(app, path, request.clone()).await;
    assert_eq!(found, status, "{request}: {error}");
    assert_eq!(
        (&error["type"], &error["error"]["type"]),
        (&json!("error"), &json!(kind)),
        "{error}"
    );
    assert!(
        error["request_id"].as_str().is_some_and(|id| id.starts_with("req_")),
        "{error}"
    );
    error["error"]["message"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn what_is_not_there_is_refused_in_words() {
    let app = app(ServerOptions::default());
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let content = |block: Value| json!([{"role": "user", "content": [block]}]);
    let user = json!([{"role": "user", "content": "x"}]);
    for (request, word) in [
        (body(&content(image)), "image"),
        (body(&content(json!({"type": "document"}))), "document"),
        (
            body(&content(json!({"type": "tool_result", "tool_use_id": "a"}))),
            "tool_result",
        ),
        (
            with(body(&user), "tools", json!([{"name": "f", "input_schema": {}}])),
            "tools",
        ),
        (with(body(&user), "mcp_servers", json!([{}])), "mcp_servers"),
        (
            with(body(&user), "output_config", json!({"format": {"type": "json_schema"}})),
            "format",
        ),
    ] {
        let message = refused(&app, PATH, request, StatusCode::BAD_REQUEST, "invalid_request_error").await;
        assert!(message.contains(word) && message.contains("support"), "{message}");
    }
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let app = app(ServerOptions::default());
    let user = json!([{"role": "user", "content": "x"}]);
    let mut cases = vec![
        (json!({"model": "tiny", "messages": user}), "max_tokens".to_owned()),
        (json!({"max_tokens": 1, "messages": user}), "model".to_owned()),
    ];
    // No field takes all of these.
    let odd = [
        json!(true),
        json!(-7),
        json!(1e300),
        json!("x"),
        json!([[]]),
        json!({"a": 1}),
        json!([5]),
    ];
    for (name, taken) in [
        ("model", &[3][..]),
        ("messages", &[]),
        ("system", &[3]),
        ("max_tokens", &[]),
        ("stop_sequences", &[3]),
        // Below zero is as zero.
        ("temperature", &[1]),
        ("top_p", &[]),
        ("top_k", &[1]),
        ("stream", &[0]),
        ("thinking", &[]),
    ] {
        for (index, value) in odd.iter().enumerate() {
            if !taken.contains(&index) {
                cases.push((with(body(&user), name, value.clone()), name.to_owned()));
            }
        }
    }
    for messages in [
        json!([]),
        json!([{}]),
        json!([{"role": "user"}]),
        json!([{"role": "root", "content": "x"}]),
        json!([{"role": "system", "content": "x"}]),
        json!([{"role": ["user"], "content": "x"}]),
        json!([{"role": "user", "content": 5}]),
        json!([{"role": "user", "content": [5]}]),
        json!([{"role": "user", "content": [{"type": "text"}]}]),
        json!([{"role": "user", "content": [{"type": "text", "text": {}}]}]),
        json!([{"role": "assistant", "content": [{"type": "thinking", "thinking": 5}]}]),
    ] {
        cases.push((body(&messages), "messages".to_owned()));
    }
    cases.push((
        with(
            body(&user),
            "thinking",
            json!({"type": "enabled", "budget_tokens": "x"}),
        ),
        "thinking".into(),
    ));
    for (request, name) in cases {
        let message = refused(
            &app,
            PATH,
            request.clone(),
            StatusCode::BAD_REQUEST,
            "invalid_request_error",
        )
        .await;
        let is_named = message.contains(&name) || name.starts_with("te") || name.starts_with("top");
        assert!(is_named, "{request}: {message}");
    }
    let long = json!([{"role": "user", "content": "x".repeat(2000)}]);
    let message = refused(
        &app,
        PATH,
        body(&long),
        StatusCode::BAD_REQUEST,
        "invalid_request_error",
    )
    .await;
    assert!(message.contains("512"), "{message}");
}

#[tokio::test]
async fn an_error_in_a_stream_is_its_last_event() {
    let mut options = ServerOptions::default();
    options.limits.answer_time = Duration::from_millis(1);
    let mut request = with(body(&json!([{"role": "user", "content": "x"}])), "stream", true.into());
    request["max_tokens"] = 400.into();
    let events = post_stream(&app(options), PATH, request).await;
    let (name, error) = events.last().expect("events");
    assert_eq!(
        (name.as_str(), &error["type"], &error["error"]["type"]),
        ("error", &json!("error"), &json!("api_error"))
    );
}

#[tokio::test]
async fn errors_before_the_route_have_the_apis_form() {
    let keys = Keys::parse("0123456789abcdef").expect("a key");
    let app = app(ServerOptions {
        keys,
        ..ServerOptions::default()
    });
    let json = "application/json";
    for (method, path, headers, status, kind) in [
        ("POST", PATH, vec![("content-type", json)], 401, "authentication_error"),
        (
            "POST",
            PATH,
            vec![("content-type", json), ("origin", "http://evil.example")],
            403,
            "permission_error",
        ),
        (
            "GET",
            PATH,
            vec![("x-api-key", "0123456789abcdef")],
            405,
            "invalid_request_error",
        ),
        (
            "POST",
            PATH,
            vec![("x-api-key", "0123456789abcdef")],
            415,
            "invalid_request_error",
        ),
        (
            "POST",
            "/v1/messages/batches",
            vec![("x-api-key", "0123456789abcdef")],
            404,
            "not_found_error",
        ),
    ] {
        let mut request = request(method, path);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let (found, _, body) = send(&app, request.body(Body::from("{}")).expect("a request")).await;
        let error: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(
            (found.as_u16(), &error["error"]["type"]),
            (status, &json!(kind)),
            "{error}"
        );
        assert_eq!(error["type"], "error");
    }
    // Other routes have other forms.
    for (path, form) in [("/v1/messages2", "/error/code"), ("/api/none", "/error")] {
        let request = request("GET", path).header("x-api-key", "0123456789abcdef");
        let (_, _, body) = send(&app, request.body(Body::empty()).expect("a request")).await;
        let error: Value = serde_json::from_slice(&body).expect("JSON");
        let value = error.pointer(form).expect("the form");
        assert!(value == 404 || value.is_string(), "{error}");
    }
}
