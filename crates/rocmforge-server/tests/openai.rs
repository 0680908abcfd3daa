//! The OpenAI API: answers are those of the library, whole and streamed; what is wrong in a request is named.

mod common;

use axum::http::StatusCode;
use common::{app, expected, get, model, post, post_stream};
use rocmforge_models::chat::{Conversation, Message, Role};
use rocmforge_models::generate::{Prompt, Request};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_server::ServerOptions;
use serde_json::{Value, json};

/// A sampler with a seed, and the same in JSON.
fn seeded(seed: u64) -> SamplerConfig {
    SamplerConfig {
        seed,
        ..SamplerConfig::default()
    }
}

/// What the model says to a user.
fn answer_to(text: &str, seed: u64, max_tokens: usize) -> String {
    let model = model();
    let template = model.chat_template().expect("readable").expect("it has one");
    let messages = [Message::new(Role::User, text)];
    let tokenizer = model.tokenizer().expect("it has one");
    let pieces = template
        .render_pieces(&Conversation::to_answer(&messages), &tokenizer)
        .expect("renders");
    expected(Request {
        sampler: seeded(seed),
        max_tokens,
        ..Request::new(Prompt::Pieces(pieces))
    })
    .text
}

#[tokio::test]
async fn a_chat_answers_as_the_library_does() {
    let app = app(ServerOptions::default());
    let request =
        json!({"model": "tiny", "messages": [{"role": "user", "content": "banana"}], "seed": 5, "max_tokens": 12});
    let (status, _, whole) = post(&app, "/v1/chat/completions", request.clone()).await;
    assert_eq!(status, StatusCode::OK, "{whole}");
    assert_eq!(whole["choices"][0]["message"]["content"], answer_to("banana", 5, 12));
    assert_eq!(whole["choices"][0]["message"]["role"], "assistant");
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["usage"]["completion_tokens"], 12);
    assert_eq!(whole["choices"][0]["finish_reason"], "length");

    let mut streamed = request;
    streamed["stream"] = true.into();
    streamed["stream_options"] = json!({"include_usage": true});
    let events = post_stream(&app, "/v1/chat/completions", streamed).await;
    let (last, events) = events.split_last().expect("events");
    assert_eq!(last.1, "[DONE]");
    let text: String = events
        .iter()
        .filter_map(|(_, event)| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(
        text,
        whole["choices"][0]["message"]["content"].as_str().expect("a text")
    );
    assert!(
        events
            .iter()
            .all(|(_, event)| event["id"] == events[0].1["id"] && event["object"] == "chat.completion.chunk")
    );
    assert_eq!(events[0].1["choices"][0]["delta"]["role"], "assistant");
    let finishes: Vec<&Value> = (events.iter().map(|(_, event)| &event["choices"][0]["finish_reason"]))
        .filter(|reason| !reason.is_null())
        .collect();
    assert_eq!(finishes, [&json!("length")]);
    let (_, usage) = events.last().expect("usage");
    assert_eq!(
        (&usage["choices"], &usage["usage"]["completion_tokens"]),
        (&json!([]), &json!(12))
    );
}

#[tokio::test]
async fn several_choices_differ_by_their_seeds_only() {
    let app = app(ServerOptions::default());
    let request = json!({"model": "tiny", "messages": [{"role": "user", "content": "banana"}], "seed": 9, "max_tokens": 8, "n": 3});
    let (_, _, answer) = post(&app, "/v1/chat/completions", request).await;
    let choices = answer["choices"].as_array().expect("choices");
    assert_eq!(choices.len(), 3);
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], index);
        assert_eq!(
            choice["message"]["content"],
            answer_to("banana", 9 + index as u64, 8),
            "choice {index}"
        );
    }
    // The prompt counts once.
    assert_eq!(answer["usage"]["completion_tokens"], 24);
}

#[tokio::test]
async fn a_completion_goes_on_with_texts_and_ids() {
    let app = app(ServerOptions::default());
    let of = |prompt: Prompt| {
        let request = Request {
            sampler: seeded(3),
            max_tokens: 6,
            ..Request::new(prompt)
        };
        expected(request).text
    };
    let ids = vec![5u32, 9, 40];
    let request = json!({"prompt": "banana", "max_tokens": 6, "seed": 3});
    let (status, _, answer) = post(&app, "/v1/completions", request).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["choices"][0]["text"], of("banana".into()));
    let request = json!({"prompt": ["banana", ids], "max_tokens": 6, "seed": 3});
    let (_, _, answer) = post(&app, "/v1/completions", request).await;
    assert_eq!(answer["choices"][0]["text"], of("banana".into()));
    assert_eq!(answer["choices"][1]["text"], of(ids.clone().into()));
    let request = json!({"prompt": ids, "max_tokens": 6, "seed": 3, "stream": true});
    let events = post_stream(&app, "/v1/completions", request).await;
    let text: String = events
        .iter()
        .filter_map(|(_, event)| event["choices"][0]["text"].as_str())
        .collect();
    assert_eq!(text, of(ids.into()));
    let request = json!({"prompt": "banana", "max_tokens": 6, "seed": 3, "echo": true});
    let (_, _, answer) = post(&app, "/v1/completions", request).await;
    assert_eq!(answer["choices"][0]["text"], format!("banana{}", of("banana".into())));
    // Without a number it draws the API's 16.
    let (_, _, answer) = post(&app, "/v1/completions", json!({"prompt": "banana", "ignore_eos": true})).await;
    assert_eq!(answer["usage"]["completion_tokens"], 16);
}

#[tokio::test]
async fn log_probabilities_are_those_of_the_library() {
    let app = app(ServerOptions::default());
    let completion = expected(Request {
        sampler: SamplerConfig {
            temperature: 0.0,
            ..seeded(1)
        },
        max_tokens: 5,
        logprobs: 3,
        ..Request::new("banana")
    });
    let request = json!({"prompt": "banana", "max_tokens": 5, "temperature": 0, "logprobs": 3});
    let (_, _, answer) = post(&app, "/v1/completions", request).await;
    let logprobs = &answer["choices"][0]["logprobs"];
    for (index, token) in completion.tokens.iter().enumerate() {
        assert_eq!(
            logprobs["token_logprobs"][index].as_f64(),
            Some(f64::from(token.logprob)),
            "token {index}"
        );
        // Tokens of one text are one entry.
        let top = logprobs["top_logprobs"][index].as_object().expect("the most likely");
        assert!((1..=3).contains(&top.len()));
    }
    assert_eq!(logprobs["text_offset"][0], 0);
    let request = json!({
        "model": "tiny", "messages": [{"role": "user", "content": "banana"}], "max_tokens": 4, "temperature": 0, "logprobs": true, "top_logprobs": 2,
    });
    let (_, _, answer) = post(&app, "/v1/chat/completions", request).await;
    let content = answer["choices"][0]["logprobs"]["content"].as_array().expect("entries");
    assert_eq!(content.len(), 4);
    for entry in content {
        assert_eq!(entry["top_logprobs"].as_array().map(Vec::len), Some(2));
        assert_eq!(
            entry["logprob"], entry["top_logprobs"][0]["logprob"],
            "greedy takes the most likely"
        );
        assert!(entry["bytes"].is_array());
    }
}

#[tokio::test]
async fn log_probabilities_of_a_prompt_are_those_of_the_library() {
    let app = app(ServerOptions::default());
    let ids: Vec<u32> = (5..25).collect();
    let completion = expected(Request {
        max_tokens: 1,
        prompt_logprobs: Some(2),
        logprobs: 2,
        ..Request::new(ids.clone())
    });
    assert_eq!(completion.scores.len(), ids.len() - 1);
    let request = json!({"prompt": ids, "max_tokens": 1, "temperature": 0, "logprobs": 2, "echo": true});
    let (_, _, answer) = post(&app, "/v1/completions", request.clone()).await;
    let logprobs = &answer["choices"][0]["logprobs"];
    assert_eq!(logprobs["token_logprobs"].as_array().map(Vec::len), Some(ids.len() + 1));
    assert!(logprobs["token_logprobs"][0].is_null() && logprobs["top_logprobs"][0].is_null());
    for (place, score) in completion.scores.iter().enumerate() {
        assert_eq!(score.id, ids[place + 1]);
        let logprob = logprobs["token_logprobs"][place + 1].as_f64();
        assert_eq!(logprob, Some(f64::from(score.logprob)), "token {}", place + 1);
    }
    let mut streamed = request;
    streamed["stream"] = true.into();
    let events = post_stream(&app, "/v1/completions", streamed).await;
    let first = &events[0].1["choices"][0];
    for (place, logprob) in first["logprobs"]["token_logprobs"]
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
    {
        assert_eq!(logprob, &logprobs["token_logprobs"][place]);
    }
}

#[tokio::test]
async fn log_probabilities_have_an_entry_for_the_token_that_ends_the_text() {
    let app = app(ServerOptions::default());
    let eos = model().tokenizer().expect("it has one").eos().expect("it has one");
    let request = |bias: f32| json!({"prompt": [5, 6, 7], "max_tokens": 1, "temperature": 0, "logprobs": 1, "echo": true, "logit_bias": {(eos.to_string()): bias}});
    // lm-eval takes the log-probabilities of a prompt from all entries but the last: a missing one changed its scores.
    let (_, _, goes_on) = post(&app, "/v1/completions", request(-1000.0)).await;
    let (_, _, ends) = post(&app, "/v1/completions", request(1000.0)).await;
    let list = |answer: &Value| {
        answer["choices"][0]["logprobs"]["token_logprobs"]
            .as_array()
            .cloned()
            .expect("a list")
    };
    assert_eq!(ends["choices"][0]["finish_reason"], "stop");
    assert_eq!(list(&ends).len(), 4, "{ends}");
    assert_eq!(list(&ends)[..3], list(&goes_on)[..3]);
    assert_eq!(ends["choices"][0]["logprobs"]["tokens"][3], "<eos>");
    assert_eq!(ends["usage"]["completion_tokens"], 1, "the end is drawn");
    let mut streamed = request(1000.0);
    streamed["stream"] = true.into();
    let events = post_stream(&app, "/v1/completions", streamed).await;
    let of_stream: Vec<Value> = (events.iter())
        .filter(|(_, value)| value["choices"][0]["logprobs"].is_object())
        .flat_map(|(_, value)| list(value))
        .collect();
    assert_eq!(of_stream, list(&ends));
}

#[tokio::test]
async fn stop_texts_end_an_answer_and_are_not_shown() {
    let app = app(ServerOptions::default());
    let whole = answer_to("banana", 5, 12);
    let stop: String = whole.chars().skip(3).take(2).collect();
    for stop in [json!(stop), json!([stop])] {
        let request = json!({"model": "tiny", "messages": [{"role": "user", "content": "banana"}], "seed": 5, "max_tokens": 12, "stop": stop});
        let (_, _, answer) = post(&app, "/v1/chat/completions", request).await;
        let text = answer["choices"][0]["message"]["content"].as_str().expect("a text");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
        assert!(
            whole.starts_with(text) && text.len() < whole.len(),
            "{text:?} of {whole:?}"
        );
    }
}

#[tokio::test]
async fn models_are_listed() {
    let app = app(ServerOptions::default());
    let (status, _, body) = get(&app, "/v1/models").await;
    let list: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((status, &list["data"][0]["id"]), (StatusCode::OK, &json!("tiny")));
    assert_eq!(get(&app, "/v1/models/tiny").await.0, StatusCode::OK);
    assert_eq!(get(&app, "/v1/models/other").await.0, StatusCode::NOT_FOUND);
}

/// Requests that are wrong in one field, and the field.
fn wrong_requests() -> Vec<(&'static str, Value)> {
    let huge = "x".repeat(2000);
    vec![
        ("messages", json!(null)),
        ("messages", json!([])),
        ("messages", json!("hi")),
        ("messages", json!([{"role": "wizard", "content": "hi"}])),
        ("messages", json!([{"role": "user", "content": 5}])),
        (
            "messages",
            json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]),
        ),
        ("n", json!(0)),
        ("n", json!(-1)),
        ("n", json!(1_000_000_000)),
        ("n", json!(1.5)),
        ("max_tokens", json!(-2)),
        ("max_tokens", json!("many")),
        ("temperature", json!("hot")),
        ("temperature", json!(1e300)),
        ("top_p", json!([1])),
        ("top_logprobs", json!(5)),
        ("stop", json!(5)),
        ("stop", json!([[]])),
        ("stop", json!(huge)),
        ("stop", json!(vec!["a"; 100])),
        ("logit_bias", json!({"999999999": 1})),
        ("logit_bias", json!({"5": "much"})),
        ("logit_bias", json!(7)),
        ("logit_bias", json!({("a b ".repeat(1000)): 1})),
        (
            "logit_bias",
            json!(
                (0..200)
                    .map(|i| (format!("a b c d e f g {i}"), 1))
                    .collect::<std::collections::BTreeMap<_, _>>()
            ),
        ),
        ("min_tokens", json!(5)),
        ("n_discard", json!(64)),
        ("n_discard", json!(-1)),
        ("n_discard", json!("many")),
        ("n_discard", json!(1e300)),
        ("best_of", json!(20)),
        ("best_of", json!(-1)),
        ("prompt_logprobs", json!(-1)),
        ("prompt_logprobs", json!(5)),
        ("skip_special_tokens", json!(false)),
        ("skip_special_tokens", json!(1)),
        ("include_stop_str_in_output", json!(true)),
        ("truncate_prompt_tokens", json!(-1)),
        ("use_beam_search", json!(true)),
        ("logits_processors", json!(["x"])),
        ("cache_salt", json!(5)),
        ("stop_token_ids", json!([5])),
        ("logit_bias", json!([[5]])),
        ("seed", json!("x")),
        ("stream", json!("yes")),
        ("mirostat", json!(1)),
        ("tools", json!([{"type": "function", "function": {"name": "f"}}])),
        ("response_format", json!({"type": "json_object"})),
        ("grammar", json!("root ::= \"a\"")),
        ("chat_template", json!("{{ messages }}")),
        ("chat_template_kwargs", json!({"bos_token": "x"})),
        ("reasoning_effort", json!("enormous")),
    ]
}

#[tokio::test]
async fn a_wrong_field_is_named() {
    let app = app(ServerOptions::default());
    for (field, value) in wrong_requests() {
        let mut request = json!({"model": "tiny", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2});
        request[field] = value.clone();
        let (status, _, answer) = post(&app, "/v1/chat/completions", request).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{field} = {value}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(field), "{field} = {value}: {message}");
        assert_eq!(answer["error"]["param"], field, "{message}");
    }
    for prompt in [
        json!(null),
        json!([]),
        json!([[]]),
        json!([1.5]),
        json!([[1], 5]),
        json!({"a": 1}),
        json!([u64::MAX]),
        json!([4_000_000_000u32]),
        json!(vec!["a"; 99]),
    ] {
        let (status, _, answer) = post(&app, "/v1/completions", json!({"prompt": prompt, "max_tokens": 2})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{prompt}: {answer}");
    }
    // Values out of range that the sampler looks at.
    for (field, value) in [
        ("top_p", json!(-1)),
        ("min_p", json!(2)),
        ("repeat_penalty", json!(0)),
        ("xtc_probability", json!(7)),
    ] {
        let (status, _, answer) = post(
            &app,
            "/v1/completions",
            json!({"prompt": "a", field: value, "max_tokens": 2}),
        )
        .await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{field}: {answer}");
    }
}

#[tokio::test]
async fn fields_that_nobody_knows_change_nothing() {
    let app = app(ServerOptions::default());
    let request =
        json!({"model": "tiny", "messages": [{"role": "user", "content": "banana"}], "seed": 5, "max_tokens": 4});
    let (_, _, plain) = post(&app, "/v1/chat/completions", request.clone()).await;
    let mut odd = request;
    for (field, value) in [
        ("store", json!(true)),
        ("metadata", json!({"a": "b"})),
        ("tools", json!([])),
        ("user", json!("ada")),
    ] {
        odd[field] = value;
    }
    odd["response_format"] = json!({"type": "text"});
    odd["messages"][0]["content"] = json!([{"type": "text", "text": "banana"}]);
    let (status, _, answer) = post(&app, "/v1/chat/completions", odd).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert!(plain["choices"][0]["message"]["content"].is_string());
}

#[tokio::test]
async fn a_prompt_beyond_the_context_is_an_error_with_figures() {
    let app = app(ServerOptions::default());
    let text = "banana ".repeat(2000);
    let (status, _, answer) = post(&app, "/v1/completions", json!({"prompt": text})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(answer["error"]["type"], "exceed_context_size_error");
    assert!(answer["error"]["n_prompt_tokens"].as_u64() > answer["error"]["n_ctx"].as_u64());
    // The prompt alone may fill the context; then nothing is drawn.
    let (status, _, answer) = post(&app, "/v1/completions", json!({"prompt": "banana", "max_tokens": 0})).await;
    assert_eq!(
        (status, &answer["usage"]["completion_tokens"]),
        (StatusCode::OK, &json!(0))
    );
}

#[tokio::test]
async fn control_tokens_in_a_message_stay_text() {
    let app = app(ServerOptions::default());
    let count = |content: &'static str| {
        let app = app.clone();
        async move {
            let request = json!({"model": "tiny", "messages": [{"role": "user", "content": content}], "max_tokens": 1});
            let (_, _, answer) = post(&app, "/v1/chat/completions", request).await;
            answer["usage"]["prompt_tokens"].as_u64().expect("a number")
        }
    };
    // As one token it would be shorter than five letters.
    assert!(count("<eos>").await >= count("e").await + 3);
}

#[tokio::test]
async fn no_token_is_counted_where_none_is_drawn() {
    let app = app(ServerOptions::default());
    let asked = json!({"prompt": "banana", "max_tokens": 0, "echo": true});
    let (status, _, answer) = post(&app, "/v1/completions", asked).await;
    assert_eq!(
        (status, &answer["choices"][0]["text"]),
        (StatusCode::OK, &json!("banana"))
    );
    assert_eq!(answer["usage"]["completion_tokens"], 0);
    assert_eq!(answer["timings"]["predicted_n"], 0);
    let (_, _, answer) = post(&app, "/completion", json!({"prompt": "banana", "n_predict": 0})).await;
    assert_eq!(answer["tokens_predicted"], 0);
    let asked =
        json!({"model": "tiny", "prompt": "banana", "raw": true, "stream": false, "options": {"num_predict": 0}});
    let (_, _, answer) = post(&app, "/api/generate", asked).await;
    assert_eq!((&answer["done"], &answer["eval_count"]), (&json!(true), &json!(0)));
    let (_, _, body) = get(&app, "/metrics").await;
    let figures = String::from_utf8(body).expect("UTF-8");
    for line in [
        "vllm:generation_tokens_total{model_name=\"tiny\"} 0",
        "llamacpp:tokens_predicted_total 0",
    ] {
        assert!(figures.lines().any(|found| found == line), "{line}: {figures}");
    }
}

#[tokio::test]
async fn offsets_of_tokens_are_places_in_the_text() {
    let app = app(ServerOptions::default());
    let prompt = "banana \u{1f642} é";
    let asked = json!({
        "prompt": prompt, "echo": true, "logprobs": 5, "max_tokens": 6, "temperature": 0, "ignore_eos": true,
    });
    let (status, _, answer) = post(&app, "/v1/completions", asked.clone()).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let choice = &answer["choices"][0];
    let text: Vec<char> = choice["text"].as_str().expect("a text").chars().collect();
    let (tokens, offsets) = (&choice["logprobs"]["tokens"], &choice["logprobs"]["text_offset"]);
    let (tokens, offsets) = (tokens.as_array().expect("a list"), offsets.as_array().expect("a list"));
    assert_eq!(offsets[0], 0, "{choice}");
    for (token, offset) in tokens.iter().zip(offsets) {
        let token = token.as_str().expect("a text");
        let offset = offset.as_u64().expect("a number") as usize;
        if !token.contains(char::REPLACEMENT_CHARACTER) && !token.starts_with('<') && !token.starts_with(' ') {
            let shown: String = text[offset..].iter().take(token.chars().count()).collect();
            assert_eq!(shown, token, "at {offset}: {choice}");
        }
    }
    let mut streamed = asked;
    streamed["stream"] = true.into();
    let values = post_stream(&app, "/v1/completions", streamed).await;
    let of_stream: Vec<&Value> = values
        .iter()
        .filter_map(|(_, value)| value["choices"][0]["logprobs"]["text_offset"].as_array())
        .flatten()
        .collect();
    assert_eq!(of_stream, offsets.iter().collect::<Vec<_>>());
    for top in choice["logprobs"]["top_logprobs"]
        .as_array()
        .expect("a list")
        .iter()
        .skip(1)
    {
        assert!(top.as_object().is_some_and(|top| !top.is_empty()), "{top}");
    }
}
