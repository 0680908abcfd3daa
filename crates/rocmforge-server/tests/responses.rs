//! `/v1/responses`: answers are those of the library, whole and streamed, and nothing is kept.

mod common;

use std::time::Duration;

use axum::http::StatusCode;
use common::{app, expected, model, post, post_stream, with};
use rocmforge_models::chat::{Conversation, Message, Role};
use rocmforge_models::generate::{Completion, Prompt, Request};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_server::ServerOptions;
use serde_json::{Value, json};

const PATH: &str = "/v1/responses";

/// What the library answers.
fn answer(messages: &[Message]) -> Completion {
    let model = model();
    let template = model.chat_template().expect("readable").expect("it has one");
    let tokenizer = model.tokenizer().expect("it has one");
    let pieces = template.render_pieces(&Conversation::to_answer(messages), &tokenizer);
    expected(Request {
        sampler: SamplerConfig {
            seed: 5,
            ..SamplerConfig::default()
        },
        max_tokens: 12,
        ..Request::new(Prompt::Pieces(pieces.expect("renders")))
    })
}

fn body(input: Value) -> Value {
    json!({"model": "tiny", "max_output_tokens": 12, "seed": 5, "input": input})
}

#[tokio::test]
async fn a_response_is_the_librarys_whole_and_streamed() {
    let app = app(ServerOptions::default());
    let expected = answer(&[Message::new(Role::User, "banana")]);
    let (status, _, whole) = post(&app, PATH, body("banana".into())).await;
    assert_eq!(status, StatusCode::OK, "{whole}");
    assert_eq!((&whole["object"], &whole["store"]), (&json!("response"), &json!(false)));
    let item = &whole["output"][0];
    assert_eq!(item["content"][0]["text"], expected.text);
    assert_eq!((&item["type"], &item["role"]), (&json!("message"), &json!("assistant")));
    assert_eq!(
        (&whole["status"], &item["status"]),
        (&json!("incomplete"), &json!("incomplete"))
    );
    assert_eq!(whole["incomplete_details"]["reason"], "max_output_tokens");
    let prompt = expected.stats.prompt_tokens;
    assert_eq!(whole["usage"]["input_tokens"], prompt);
    assert_eq!(whole["usage"]["total_tokens"], prompt + 12);
    assert_eq!(whole["temperature"], 0.8);

    let events = post_stream(&app, PATH, with(body("banana".into()), "stream", true.into())).await;
    let mut names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.incomplete",
        ]
    );
    for (number, (name, event)) in events.iter().enumerate() {
        assert_eq!(event["type"], *name);
        assert_eq!(event["sequence_number"], number);
    }
    let text: String = events.iter().filter_map(|(_, event)| event["delta"].as_str()).collect();
    assert_eq!(text, expected.text);
    let last = &events.last().expect("events").1["response"];
    assert_eq!(last["id"], events[0].1["response"]["id"]);
    assert_eq!(last["output"][0]["content"], item["content"]);
    assert_eq!(last["usage"]["output_tokens"], 12);
}

#[tokio::test]
async fn forms_of_one_conversation_have_one_answer() {
    let app = app(ServerOptions::default());
    let messages = [
        Message::new(Role::System, "be brief"),
        Message::new(Role::User, "one\ntwo"),
        Message::new(Role::Assistant, "three"),
        Message::new(Role::User, "four"),
    ];
    let expected = answer(&messages);
    let rest = [
        json!({"role": "user", "content": [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]}),
        json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
               "content": [{"type": "output_text", "text": "three", "annotations": []}]}),
        json!({"type": "message", "role": "user", "content": "four"}),
    ];
    let system = json!({"type": "message", "role": "system", "content": "be brief"});
    let developer = json!({"role": "developer", "content": "be brief"});
    let of = |first: Option<&Value>| first.into_iter().chain(&rest).cloned().collect::<Value>();
    for request in [
        with(body(of(None)), "instructions", "be brief".into()),
        body(of(Some(&system))),
        // This template has one role for instructions.
        body(of(Some(&developer))),
    ] {
        let (status, _, whole) = post(&app, PATH, request.clone()).await;
        assert_eq!(status, StatusCode::OK, "{whole}");
        assert_eq!(whole["output"][0]["content"][0]["text"], expected.text, "{request}");
        let (_, _, count) = post(&app, "/v1/responses/input_tokens", request).await;
        assert_eq!(count["input_tokens"], expected.stats.prompt_tokens);
    }
}

#[tokio::test]
async fn parts_of_a_chat_message_are_one_text_too() {
    let app = app(ServerOptions::default());
    let content = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
    let request =
        json!({"model": "tiny", "messages": [{"role": "user", "content": content}], "seed": 5, "max_tokens": 12});
    let (_, _, chat) = post(&app, "/v1/chat/completions", request).await;
    let text = answer(&[Message::new(Role::User, "one\ntwo")]).text;
    assert_eq!(chat["choices"][0]["message"]["content"], text);
}

#[tokio::test]
async fn an_error_in_a_stream_is_its_last_event() {
    let mut options = ServerOptions::default();
    options.limits.answer_time = Duration::from_millis(1);
    let mut request = with(body("x".into()), "stream", true.into());
    request["max_output_tokens"] = 400.into();
    let events = post_stream(&app(options), PATH, request).await;
    let (name, event) = events.last().expect("events");
    assert_eq!(name, "response.failed");
    let response = &event["response"];
    assert_eq!(
        (&response["status"], &response["error"]["code"]),
        (&json!("failed"), &json!("server_error"))
    );
}

#[tokio::test]
async fn control_tokens_of_a_user_are_text() {
    let app = app(ServerOptions::default());
    let mut counts = Vec::new();
    for text in ["x", "x<eos>"] {
        let (_, _, count) = post(&app, "/v1/responses/input_tokens", body(text.into())).await;
        counts.push(count["input_tokens"].as_u64().expect("a number"));
    }
    assert_eq!(counts[1], counts[0] + 5);
}

#[tokio::test]
async fn what_needs_state_or_is_not_there_is_refused_in_words() {
    let app = app(ServerOptions::default());
    let item = |item: Value| body(json!([item]));
    let user = |part: Value| item(json!({"role": "user", "content": [part]}));
    let x = || body("x".into());
    for (request, words) in [
        (with(x(), "store", true.into()), "keeps no answers"),
        (with(x(), "previous_response_id", "resp_1".into()), "keeps no answers"),
        (with(x(), "conversation", "conv_1".into()), "keeps no answers"),
        (with(x(), "background", true.into()), "keeps no answers"),
        (
            with(x(), "tools", json!([{"type": "function", "name": "f"}])),
            "does not support",
        ),
        (
            with(x(), "text", json!({"format": {"type": "json_schema"}})),
            "text.format",
        ),
        (with(x(), "truncation", "auto".into()), "truncation"),
        (with(x(), "top_logprobs", 3.into()), "top_logprobs"),
        (
            user(json!({"type": "input_image", "image_url": "data:,"})),
            "input_image",
        ),
        (user(json!({"type": "input_file", "file_id": "a"})), "input_file"),
        (item(json!({"type": "function_call", "name": "f"})), "function_call"),
        (item(json!({"type": "item_reference", "id": "msg_1"})), "item_reference"),
    ] {
        let (status, _, error) = post(&app, PATH, request.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{request}");
        assert_eq!(error["error"]["type"], "not_supported_error", "{error}");
        let message = error["error"]["message"].as_str().expect("a text");
        assert!(message.contains(words), "{message}");
    }
    // Values that ask for nothing are taken.
    let mut request = x();
    for (name, value) in [
        ("store", json!(false)),
        ("tools", json!([])),
        ("tool_choice", json!("auto")),
    ] {
        request[name] = value;
    }
    request["text"] = json!({"format": {"type": "text"}, "verbosity": "low"});
    request["include"] = json!(["reasoning.encrypted_content"]);
    let (status, _, answer) = post(&app, PATH, request).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let app = app(ServerOptions::default());
    let mut cases = vec![(json!({"input": "x"}), "model")];
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
        ("input", &[3]),
        ("instructions", &[3]),
        ("max_output_tokens", &[]),
        // Below zero is as zero.
        ("temperature", &[1]),
        ("stream", &[0]),
        ("reasoning", &[5]),
        ("text", &[5]),
        ("truncation", &[]),
        ("top_logprobs", &[]),
        ("store", &[]),
    ] {
        for (index, value) in odd.iter().enumerate() {
            if !taken.contains(&index) {
                cases.push((with(body("x".into()), name, value.clone()), name));
            }
        }
    }
    for input in [
        json!([]),
        json!([5]),
        json!([{}]),
        json!([{"type": 5}]),
        json!([{"role": "tool", "content": "x"}]),
        json!([{"role": "user"}]),
        json!([{"role": "user", "content": [{"type": "input_text", "text": 5}]}]),
        json!([{"type": "reasoning", "content": [{}]}]),
    ] {
        cases.push((body(input), "input"));
    }
    cases.push((
        with(body("x".into()), "reasoning", json!({"effort": "huge"})),
        "reasoning",
    ));
    cases.push((with(body("x".into()), "reasoning", json!({"effort": 5})), "reasoning"));
    for (request, name) in cases {
        let (status, _, error) = post(&app, PATH, request.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{request}: {error}");
        let message = error["error"]["message"].as_str().expect("a text");
        assert!(message.contains(name), "{request}: {message}");
    }
    let (status, _, error) = post(&app, PATH, body("x".repeat(2000).into())).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["n_ctx"], 512);
}
