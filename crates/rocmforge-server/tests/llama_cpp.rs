//! Routes of llama.cpp's server: its own completions, what they say about themselves, and what is not there.

mod common;

use axum::http::StatusCode;
use common::{Tiny, app, app_of, expected, get, post, post_stream};
use rocmforge_models::generate::Request;
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_server::ServerOptions;
use serde_json::{Value, json};

fn greedy(prompt: &str, tokens: usize) -> String {
    expected(Request {
        sampler: SamplerConfig::greedy(),
        max_tokens: tokens,
        ..Request::new(prompt)
    })
    .text
}

#[tokio::test]
async fn tokens_of_a_prompt_are_those_of_a_content() {
    let app = app(ServerOptions::default());
    let tokens = |body: Value| {
        let app = app.clone();
        async move { post(&app, "/tokenize", body).await.2 }
    };
    for (with_bos, text) in [(false, "banana"), (true, "banana"), (false, "<eos>"), (false, "")] {
        let of_content = tokens(json!({"content": text, "add_special": with_bos})).await;
        // It was an empty list: `prompt`, the name that lm-eval and others use, was not looked at.
        let of_prompt = tokens(json!({"prompt": text, "add_special_tokens": with_bos})).await;
        assert_eq!(of_prompt["tokens"], of_content["tokens"], "{text:?}");
        assert_eq!(of_prompt["count"], of_content["tokens"].as_array().map_or(0, Vec::len));
        assert!(of_prompt["max_model_len"].as_u64() > Some(0) && of_content["count"].is_null());
        let (_, _, back) = post(&app, "/detokenize", json!({"tokens": of_content["tokens"]})).await;
        assert_eq!(back["prompt"], back["content"]);
    }
    let with_bos = tokens(json!({"prompt": "banana"})).await;
    assert_eq!(
        with_bos["tokens"],
        tokens(json!({"content": "banana", "add_special": true})).await["tokens"]
    );
    for body in [
        json!({"prompt": "a", "content": "b"}),
        json!({"messages": [{"role": "user", "content": "a"}]}),
        json!({"prompt": "a", "return_token_strs": true}),
        json!({"prompt": 7}),
    ] {
        assert_eq!(
            post(&app, "/tokenize", body.clone()).await.0,
            StatusCode::BAD_REQUEST,
            "{body}"
        );
    }
}

#[tokio::test]
async fn the_tokenizer_says_its_special_tokens() {
    let app = app(ServerOptions::default());
    let (status, _, _) = get(&app, "/tokenizer_info").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "it loads nothing");
    app.load("tiny").await.expect("it loads");
    let (_, _, body) = get(&app, "/tokenizer_info?model=tiny").await;
    let info: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        (&info["bos_token"], &info["eos_token"]),
        (&json!("<bos>"), &json!("<eos>"))
    );
    assert!(info["chat_template"].is_string());
}

#[tokio::test]
async fn a_text_goes_on_as_in_the_library() {
    let app = app(ServerOptions::default());
    let asked = json!({"prompt": "banana", "n_predict": 8, "temperature": 0, "return_tokens": true, "n_probs": 3});
    let (status, _, answer) = post(&app, "/completion", asked.clone()).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["content"], greedy("banana", 8));
    assert_eq!(answer["tokens"].as_array().map(Vec::len), Some(8));
    assert_eq!(answer["completion_probabilities"].as_array().map(Vec::len), Some(8));
    assert_eq!(
        answer["completion_probabilities"][0]["top_logprobs"]
            .as_array()
            .map(Vec::len),
        Some(3)
    );
    assert_eq!(
        (&answer["stop_type"], &answer["truncated"]),
        (&json!("limit"), &json!(false))
    );
    assert_eq!(
        (&answer["timings"]["predicted_n"], &answer["tokens_evaluated"]),
        (&json!(8), &json!(3))
    );
    assert_eq!(answer["generation_settings"]["n_predict"], 8);

    let mut streamed = asked;
    streamed["stream"] = true.into();
    let values = post_stream(&app, "/completions", streamed).await;
    let texts = values.iter().filter_map(|(_, value)| value["content"].as_str());
    assert_eq!(texts.collect::<String>(), greedy("banana", 8));
    let ends: Vec<bool> = values.iter().filter_map(|(_, value)| value["stop"].as_bool()).collect();
    assert_eq!(ends.iter().filter(|ends| **ends).count(), 1);
}

#[tokio::test]
async fn prompts_are_texts_tokens_and_both() {
    let app = app(ServerOptions::default());
    let complete = async |prompt: Value| {
        let asked = json!({"prompt": prompt, "n_predict": 4, "temperature": 0, "cache_prompt": false});
        post(&app, "/completion", asked).await.2
    };
    let (_, _, ids) = post(&app, "/tokenize", json!({"content": "banana"})).await;
    let ids = &ids["tokens"];
    let text = complete(json!("banana")).await["content"].clone();
    assert_eq!(complete(ids.clone()).await["content"], text);
    let several = complete(json!([ids, "banana", {"prompt_string": "banana"}])).await;
    assert_eq!(several.as_array().map(Vec::len), Some(3), "{several}");
    for (index, answer) in several.as_array().expect("a list").iter().enumerate() {
        assert_eq!((&answer["content"], &answer["index"]), (&text, &json!(index)));
    }
    let mixed = complete(json!([1, 2, "banana", 3])).await;
    assert_eq!(mixed["tokens_evaluated"], 6);
    // Control tokens of a whole prompt are tokens, unlike those in a message of a chat.
    assert_eq!(complete(json!("<bos>banana<eos>")).await["tokens_evaluated"], 5);
    for prompt in [
        json!([]),
        json!([[]]),
        json!(7),
        json!({"text": "a"}),
        json!([1, -1]),
        json!([1_000_000]),
        json!([1.5]),
    ] {
        let (status, _, error) = post(&app, "/completion", json!({ "prompt": prompt })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{prompt} {error}");
    }
}

#[tokio::test]
async fn an_answer_has_the_fields_that_are_named() {
    let app = app(ServerOptions::default());
    let named = json!(["content", "generation_settings/n_predict", "nothing/here"]);
    let asked = json!({"prompt": "banana", "n_predict": 2, "response_fields": named});
    let (_, _, answer) = post(&app, "/completion", asked).await;
    let object = answer.as_object().expect("an object");
    assert_eq!(object.len(), 2);
    assert_eq!(answer["generation_settings/n_predict"], 2);
}

#[tokio::test]
async fn defaults_stand_where_a_request_says_nothing() {
    let options = ServerOptions {
        defaults: serde_json::from_value(json!({"temperature": 0, "n_predict": 5, "seed": 42})).expect("an object"),
        ..ServerOptions::default()
    };
    let app = app(options);
    let (_, _, answer) = post(&app, "/completion", json!({"prompt": "banana"})).await;
    assert_eq!(answer["content"], greedy("banana", 5));
    let (_, _, answer) = post(&app, "/completion", json!({"prompt": "banana", "n_predict": 2})).await;
    assert_eq!(answer["content"], greedy("banana", 2));
    let props: Value = serde_json::from_slice(&get(&app, "/props").await.2).expect("JSON");
    assert_eq!(props["default_generation_settings"]["params"]["seed"], 42);
}

#[tokio::test]
async fn props_load_nothing_and_slots_are_for_admins() {
    let tiny = Tiny::default();
    let read = |body: Vec<u8>| -> Value { serde_json::from_slice(&body).expect("JSON") };
    let app = app_of(ServerOptions::default(), &["tiny"], &tiny);
    assert_eq!(read(get(&app, "/props").await.2)["is_sleeping"], true);
    assert_eq!(tiny.loads.load(std::sync::atomic::Ordering::SeqCst), 0);
    let (status, _, body) = get(&app, "/slots").await;
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
    assert_eq!(read(body)["error"]["type"], "not_supported_error");
    for path in ["/infill", "/lora-adapters", "/slots/0", "/props"] {
        let (status, _, error) = post(&app, path, json!({})).await;
        assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{path} {error}");
    }
    let options = ServerOptions {
        slots: true,
        metrics: false,
        ..ServerOptions::default()
    };
    let app = app_of(options, &["tiny"], &tiny);
    app.load("tiny").await.expect("loads");
    assert_eq!(get(&app, "/slots").await.0, StatusCode::OK);
    assert_eq!(get(&app, "/metrics").await.0, StatusCode::NOT_IMPLEMENTED);
}

#[tokio::test]
async fn metrics_are_sums_without_labels() {
    let app = app(ServerOptions::default());
    let mut computed = 0;
    for _ in 0..2 {
        let asked = json!({"prompt": "banana".repeat(20), "n_predict": 4});
        computed += post(&app, "/completion", asked).await.2["timings"]["prompt_n"]
            .as_u64()
            .expect("a number");
    }
    let (_, headers, text) = get(&app, "/metrics").await;
    assert!(headers.contains_key("process-start-time-unix"));
    let text = String::from_utf8(text).expect("UTF-8");
    let value = |name: &str| -> f64 {
        let mut lines = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        lines
            .next_back()
            .unwrap_or_else(|| panic!("{name}: {text}"))
            .parse()
            .expect("a number")
    };
    assert_eq!(value("llamacpp:prompt_tokens_total"), computed as f64);
    assert!(value("llamacpp:prompt_tokens_cached_total") > 0.0);
    assert_eq!(value("llamacpp:tokens_predicted_total"), 8.0);
    assert!(value("llamacpp:n_decode_total") > 0.0);
}

#[tokio::test]
async fn a_template_has_tools_and_may_end_without_an_answer() {
    let app = app(ServerOptions::default());
    let asked = json!({"messages": [{"role": "user", "content": "hi"}]});
    let (_, _, answer) = post(&app, "/apply-template", asked.clone()).await;
    assert_eq!(answer["prompt"], "<bos>user: hi<eos>\n<bos>assistant: ");
    let mut ends = asked.clone();
    ends["add_generation_prompt"] = false.into();
    assert_eq!(
        post(&app, "/apply-template", ends.clone()).await.2["prompt"],
        "<bos>user: hi<eos>\n"
    );
    let messages = ends["messages"].as_array_mut().expect("a list");
    messages.push(json!({"role": "assistant", "content": "so"}));
    ends["add_generation_prompt"] = true.into();
    ends["continue_final_message"] = true.into();
    assert_eq!(
        post(&app, "/v1/chat/completions", ends).await.0,
        StatusCode::BAD_REQUEST
    );
    let (_, _, count) = post(&app, "/v1/chat/completions/input_tokens", asked).await;
    assert!(
        count["input_tokens"].as_u64().is_some_and(|tokens| tokens > 5),
        "{count}"
    );
}

#[tokio::test]
async fn probabilities_after_the_sampler_are_those_of_what_could_be_drawn() {
    let app = app(ServerOptions::default());
    let mut asked = json!({"prompt": "banana", "n_predict": 4, "n_probs": 5, "post_sampling_probs": true, "seed": 3});
    asked["top_k"] = 3.into();
    asked["min_p"] = 0.into();
    asked["top_p"] = 1.into();
    let (status, _, answer) = post(&app, "/completion", asked.clone()).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["generation_settings"]["post_sampling_probs"], true);
    let tokens = answer["completion_probabilities"].as_array().expect("a list");
    assert_eq!(tokens.len(), 4);
    for token in tokens {
        let top = token["top_probs"].as_array().expect("a list");
        // No other could be drawn, so they are all.
        assert_eq!(top.len(), 3);
        let sum: f64 = top.iter().filter_map(|other| other["prob"].as_f64()).sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        assert!(
            top.iter()
                .any(|other| (&other["id"], &other["prob"]) == (&token["id"], &token["prob"]))
        );
        assert!(token["logprob"].is_null() && token["top_logprobs"].is_null() && token["bytes"].is_array());
    }
    // The token of a greedy choice is certain.
    asked["temperature"] = 0.into();
    let (_, _, answer) = post(&app, "/completion", asked.clone()).await;
    let token = &answer["completion_probabilities"][0];
    assert_eq!(
        (&token["prob"], token["top_probs"].as_array().map(Vec::len)),
        (&json!(1.0), Some(1))
    );
    // Without n_probs tokens have no probabilities.
    asked["n_probs"] = 0.into();
    let (_, _, answer) = post(&app, "/completion", asked).await;
    assert!(answer["completion_probabilities"].is_null(), "{answer}");
}

#[tokio::test]
async fn streams_say_how_far_the_prompt_is() {
    let app = app(ServerOptions::default());
    let text = "the quick brown fox ".repeat(3);
    let bodies = [
        ("/completion", json!({"prompt": text, "n_predict": 2})),
        ("/v1/completions", json!({"prompt": text, "max_tokens": 2})),
        (
            "/v1/chat/completions",
            json!({"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 2}),
        ),
    ];
    for (path, mut body) in bodies {
        body["stream"] = true.into();
        let reports = |values: Vec<(String, Value)>| -> Vec<[u64; 4]> {
            let values = values
                .into_iter()
                .filter(|(_, value)| value["prompt_progress"].is_object());
            let number = |value: &Value| value.as_u64().expect("a number");
            let numbers = values.map(|(_, value)| {
                let progress = &value["prompt_progress"];
                assert!(progress["time_ms"].as_f64() >= Some(0.0));
                let computed = number(&value["timings"]["prompt_n"]);
                let of = |name: &str| number(&progress[name]);
                [of("total"), of("cache"), of("processed"), computed]
            });
            numbers.collect()
        };
        assert_eq!(
            reports(post_stream(&app, path, body.clone()).await),
            [[0; 4]; 0],
            "{path}"
        );
        body["return_progress"] = true.into();
        let reports = reports(post_stream(&app, path, body).await);
        let [total, cached, ..] = reports[0];
        // The request before has left all but the last tokens in the cache.
        assert!(cached > 0 && cached < total, "{path}: {reports:?}");
        assert_eq!(reports[0], [total, cached, cached, 0], "{path}");
        assert_eq!(reports.last(), Some(&[total, cached, total, total - cached]), "{path}");
        assert!(reports.is_sorted_by(|a, b| a[2] < b[2]), "{path}: {reports:?}");
    }
}
