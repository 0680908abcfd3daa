//! A good request to each route with a body, and the server that answers it.

use rocmforge_models::serve::ServeOptions;
use rocmforge_server::{App, ServerOptions, Source};
use serde_json::{Map, Value, json};

use crate::common::bert::Encoder;
use crate::common::{Tiny, get};

/// A server whose answers are short unless a request says otherwise.
pub(crate) fn server() -> App {
    let options = ServerOptions {
        defaults: short(),
        slots: true,
        ..ServerOptions::default()
    };
    let source = Tiny {
        serve: ServeOptions::default(),
        context: Some(32),
        ..Tiny::default()
    };
    let ranking = Encoder {
        ranks: true,
        ..Encoder::default()
    };
    let sources: [(&str, Box<dyn Source>); 3] = [
        ("tiny", Box::new(source)),
        ("embed", Box::new(Encoder::default())),
        ("rank", Box::new(ranking)),
    ];
    let sources = sources.map(|(name, source)| (name.to_owned(), source));
    App::new(options, sources).expect("the options make sense")
}

fn short() -> Map<String, Value> {
    let short = json!({"max_tokens": 2, "max_output_tokens": 2});
    short.as_object().expect("an object").clone()
}

/// The description that the server gives.
pub(crate) async fn description(app: &App) -> Value {
    let (_, headers, body) = get(app, "/openapi.json").await;
    assert_eq!(headers["content-type"], "application/json");
    serde_json::from_slice(&body).expect("JSON")
}

/// Good requests. They turn on what others depend on, so that every field is read.
pub(crate) fn good() -> Vec<(&'static str, Value)> {
    let messages = json!([{"role": "user", "content": "banana"}]);
    let mut requests = vec![];
    let sampler = json!({"dry_multiplier": 0.5, "mirostat": 2, "temperature": 0.5});
    let mut add = |path, own: Value, samples: bool| {
        let mut request = own.as_object().expect("an object").clone();
        if samples {
            request.extend(sampler.as_object().expect("an object").clone());
        }
        request.entry("model").or_insert("tiny".into());
        requests.push((path, Value::Object(request)));
    };
    for path in ["/v1/chat/completions", "/chat/completions"] {
        add(
            path,
            json!({"messages": messages, "logprobs": true, "top_logprobs": 1}),
            true,
        );
    }
    for path in [
        "/v1/chat/completions/input_tokens",
        "/chat/completions/input_tokens",
        "/apply-template",
        "/v1/messages/count_tokens",
    ] {
        add(path, json!({"messages": messages}), false);
    }
    add(
        "/v1/completions",
        json!({"prompt": "banana", "logprobs": 1, "echo": true}),
        true,
    );
    add(
        "/v1/responses",
        json!({"input": "banana", "metadata": {"a": "b"}}),
        true,
    );
    add("/v1/responses/input_tokens", json!({"input": "banana"}), false);
    add("/v1/messages", json!({"messages": messages, "max_tokens": 2}), true);
    add("/completion", json!({"prompt": "banana", "n_probs": 1}), true);
    add(
        "/completions",
        json!({"prompt": ["banana", "a"], "return_tokens": true}),
        true,
    );
    add("/tokenize", json!({"content": "banana", "with_pieces": true}), false);
    add("/detokenize", json!({"tokens": [1, 2]}), false);
    let options = json!({"num_predict": 2, "temperature": 0.5, "mirostat": 2});
    add(
        "/api/chat",
        json!({"messages": messages, "options": options, "stream": false}),
        false,
    );
    add(
        "/api/generate",
        json!({"prompt": "banana", "options": options, "stream": false}),
        false,
    );
    add("/api/show", json!({}), false);
    for path in ["/v1/embeddings", "/embedding", "/embeddings"] {
        add(path, json!({"model": "embed", "input": ["a river", "town"]}), false);
    }
    add("/api/embed", json!({"model": "embed", "input": "a river"}), false);
    add("/api/embeddings", json!({"model": "embed", "prompt": "a river"}), false);
    for path in ["/rerank", "/v1/rerank", "/reranking", "/v1/reranking"] {
        let request = json!({"model": "rank", "query": "a river", "documents": ["town", {"text": "x y"}]});
        add(path, request, false);
    }
    requests
}
