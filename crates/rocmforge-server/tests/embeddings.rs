//! Embeddings and scores: values beside the forward pass in f64, forms of each API, kinds of models, limits and hostile requests.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::StatusCode;
use base64::Engine as _;
use common::bert::{CONTEXT, Encoder, Random, WIDTH, framed, id};
use common::card::check_memory_comes_back;
use common::{Tiny, get, post, request, send};
use rocmforge::backend::HipBackend;
use rocmforge::ggml::{CpuBackend, HipGgmlBackend};
use rocmforge_models::ModelError;
use rocmforge_models::bert::{Bert, Embedder, EmbedderOptions, TextIds};
use rocmforge_models::serve::{EmbeddingOptions, EmbeddingServer, ServeError, ServeOptions};
use rocmforge_server::source::{Engine, LoadError, Loaded};
use rocmforge_server::{App, Limits, ServerOptions, Source};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A server of an encoder `embed`, a model `rank` and a text model `tiny`.
fn app_with(options: ServerOptions, encoder: &Encoder, tiny: &Tiny) -> App {
    let ranking = Encoder {
        ranks: true,
        ..encoder.clone()
    };
    let sources: [(&str, Box<dyn Source>); 3] = [
        ("embed", Box::new(encoder.clone())),
        ("rank", Box::new(ranking)),
        ("tiny", Box::new(tiny.clone())),
    ];
    let sources = sources.map(|(name, source)| (name.to_owned(), source));
    App::new(options, sources).expect("the options make sense")
}

fn app() -> App {
    app_with(ServerOptions::default(), &Encoder::default(), &Tiny::default())
}

async fn ok(app: &App, path: &str, asked: Value) -> Value {
    let (status, _, answer) = post(app, path, asked.clone()).await;
    assert_eq!(status, StatusCode::OK, "{path} {asked} {answer}");
    answer
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("no list: {value}"));
    list.iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// Compares with what the forward pass in f64 gives.
fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let worst = worst.fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst });
    assert!(worst <= 1e-5, "{what}: {worst:e}");
}

const TEXTS: [&str; 4] = ["a river", "", "town town town b c", "x y"];

#[tokio::test]
async fn embeddings_are_those_of_the_forward_pass_in_every_form() {
    let (app, reference) = (app(), Random::new(false));
    let expected: Vec<Vec<f64>> = TEXTS.iter().map(|text| reference.embedding(&framed(text))).collect();
    let ids: Vec<Vec<u32>> = TEXTS.iter().map(|text| framed(text)).collect();
    let tokens: usize = ids.iter().map(Vec::len).sum();

    for input in [json!(TEXTS), json!(ids)] {
        let answer = ok(
            &app,
            "/v1/embeddings",
            json!({"model": "embed", "input": input, "dimensions": WIDTH}),
        )
        .await;
        assert_eq!(answer["object"], "list");
        assert_eq!(answer["model"], "embed");
        assert_eq!(
            answer["usage"],
            json!({"prompt_tokens": tokens, "total_tokens": tokens})
        );
        let data = answer["data"].as_array().expect("a list");
        assert_eq!(data.len(), TEXTS.len());
        for (index, (entry, expected)) in data.iter().zip(&expected).enumerate() {
            assert_eq!(entry["object"], "embedding");
            assert_eq!(entry["index"], index);
            assert_near(&numbers(&entry["embedding"]), expected, TEXTS[index]);
        }
    }
    // Ids of one input, and ids with a text among them, are no list of inputs.
    let asked = json!({"model": "embed", "input": [2, "a river", id("b"), 3]});
    let answer = ok(&app, "/v1/embeddings", asked).await;
    assert_eq!(answer["data"].as_array().expect("a list").len(), 1);
    let mixed = reference.embedding(&framed("a river b"));
    assert_near(&numbers(&answer["data"][0]["embedding"]), &mixed, "mixed");

    let asked = json!({"model": "embed", "input": TEXTS[0], "encoding_format": "base64"});
    let answer = ok(&app, "/v1/embeddings", asked).await;
    let bytes = answer["data"][0]["embedding"].as_str().expect("a text");
    let bytes = base64::engine::general_purpose::STANDARD.decode(bytes).expect("base64");
    let values = bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes(four.try_into().expect("four")));
    assert_near(&values.map(f64::from).collect::<Vec<_>>(), &expected[0], "base64");

    for path in ["/embedding", "/embeddings"] {
        let answer = ok(&app, path, json!({"model": "embed", "content": TEXTS})).await;
        for (index, expected) in expected.iter().enumerate() {
            assert_eq!(answer[index]["index"], index);
            assert_near(&numbers(&answer[index]["embedding"][0]), expected, path);
        }
    }
    let asked = json!({"model": "embed", "input": TEXTS[0], "embd_normalize": 1});
    let answer = ok(&app, "/embedding", asked).await;
    let sum: f64 = numbers(&answer[0]["embedding"][0])
        .iter()
        .map(|value| value.abs())
        .sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");

    let answer = ok(&app, "/api/embed", json!({"model": "embed:latest", "input": TEXTS})).await;
    assert_eq!(answer["prompt_eval_count"], tokens);
    for (index, expected) in expected.iter().enumerate() {
        assert_near(&numbers(&answer["embeddings"][index]), expected, "ollama");
    }
    let answer = ok(&app, "/api/embeddings", json!({"model": "embed", "prompt": TEXTS[2]})).await;
    assert_near(&numbers(&answer["embedding"]), &expected[2], "ollama, old");
    for (path, asked, empty) in [
        (
            "/api/embed",
            json!({"model": "embed"}),
            json!({"model": "embed", "embeddings": []}),
        ),
        (
            "/api/embeddings",
            json!({"model": "embed", "prompt": ""}),
            json!({"embedding": []}),
        ),
    ] {
        assert_eq!(ok(&app, path, asked).await, empty);
    }
}

#[tokio::test]
async fn ollama_cuts_long_texts_unless_it_is_asked_not_to() {
    let (app, reference) = (app(), Random::new(false));
    let long = "a ".repeat(3 * CONTEXT);
    let answer = ok(&app, "/api/embed", json!({"model": "embed", "input": long})).await;
    let cut = reference.embedding(&framed(&"a ".repeat(CONTEXT - 2)));
    assert_near(&numbers(&answer["embeddings"][0]), &cut, "cut");
    let asked = json!({"model": "embed", "input": long, "truncate": false});
    let (status, _, error) = post(&app, "/api/embed", asked).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        error["error"].as_str().expect("a text").contains("too large"),
        "{error}"
    );
    let (status, _, error) = post(&app, "/v1/embeddings", json!({"model": "embed", "input": long})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["n_ctx"], CONTEXT, "{error}");
    assert_eq!(error["error"]["n_prompt_tokens"], 3 * CONTEXT + 2);
}

#[tokio::test]
async fn documents_are_ranked_by_the_scores_of_the_forward_pass() {
    let (app, reference) = (app(), Random::new(true));
    let (query, documents) = ("a river", ["town", "b c x", "", "river y a"]);
    let scores: Vec<f64> = documents
        .iter()
        .map(|document| reference.score(query, document))
        .collect();
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let tokens: usize = documents
        .iter()
        .map(|text| framed(query).len() + framed(text).len() - 1)
        .sum();
    for path in ["/rerank", "/reranking", "/v1/rerank", "/v1/reranking"] {
        let asked = json!({"model": "rank", "query": query, "documents": documents, "return_documents": true});
        let answer = ok(&app, path, asked).await;
        assert_eq!(answer["usage"]["prompt_tokens"], tokens);
        let results = answer["results"].as_array().expect("a list");
        assert_eq!(results.len(), documents.len());
        for (result, &index) in results.iter().zip(&order) {
            assert_eq!(result["index"], index, "{answer} {scores:?}");
            assert_near(
                &[result["relevance_score"].as_f64().expect("a number")],
                &[scores[index]],
                path,
            );
            assert_eq!(result["document"]["text"], documents[index]);
        }
    }
    for (top, expected) in [(json!(null), 4), (json!(2), 2), (json!(0), 0), (json!(99), 4)] {
        let documents: Vec<Value> = documents.iter().map(|text| json!({"text": text})).collect();
        let asked = json!({"model": "rank", "query": query, "documents": documents, "top_n": top});
        let answer = ok(&app, "/rerank", asked).await;
        assert_eq!(answer["results"].as_array().expect("a list").len(), expected);
    }
    let asked = json!({"model": "rank", "query": query, "texts": documents, "return_text": true, "raw_scores": false});
    let answer = ok(&app, "/rerank", asked).await;
    let best = order[0];
    assert_eq!(answer[0]["index"], best);
    assert_eq!(answer[0]["text"], documents[best]);
    let sigmoid = 1.0 / (1.0 + (-scores[best]).exp());
    assert_near(&[answer[0]["score"].as_f64().expect("a number")], &[sigmoid], "sigmoid");
    // A document may be cut; a query may not.
    let long = "a ".repeat(2 * CONTEXT);
    for (query, document, truncate, status) in [
        ("b", long.as_str(), true, StatusCode::OK),
        ("b", long.as_str(), false, StatusCode::BAD_REQUEST),
        (long.as_str(), "b", true, StatusCode::BAD_REQUEST),
    ] {
        let asked = json!({"model": "rank", "query": query, "documents": [document], "truncate": truncate});
        assert_eq!(post(&app, "/rerank", asked).await.0, status);
    }
}

/// A decoder that ranks by the share of yes.
struct Reranker;

impl Reranker {
    fn open() -> Bert {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../rocmforge-models/tests/reference/tiny/qwen3-reranker.gguf"
        );
        Bert::open(file).expect("a committed model")
    }

    fn embedder() -> Result<Embedder<CpuBackend>, ModelError> {
        Embedder::new(Self::open(), CpuBackend::with_threads(1), EmbedderOptions::default())
    }
}

impl Source for Reranker {
    fn load(&self) -> Result<Loaded, LoadError> {
        Ok(Loaded::new(EmbeddingServer::start(
            EmbeddingOptions::default(),
            Self::embedder,
        )?))
    }
}

/// The prompt is the file's, and the share is the score in every form.
#[tokio::test]
async fn a_decoder_ranks_documents_by_the_share_of_yes() {
    let sources: [(String, Box<dyn Source>); 1] = [("rank".to_owned(), Box::new(Reranker))];
    let app = App::new(ServerOptions::default(), sources).expect("the options make sense");
    let (query, documents) = ("a river", ["town", "b c x<eos>", ""]);
    let mut embedder = Reranker::embedder().expect("it loads");
    let encoder = embedder.model().encoder().clone();
    let asked = encoder.query(query).expect("tokens");
    let pairs = documents.map(|text| encoder.ranked(&asked, text, false).expect("tokens"));
    let scores = embedder.embed_ids(&pairs).expect("runs").embeddings.data;
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    for asked in [
        json!({"query": query, "documents": documents}),
        json!({"query": query, "texts": documents, "raw_scores": false}),
        json!({"query": query, "texts": documents, "raw_scores": true}),
    ] {
        let is_tei = asked.get("texts").is_some();
        let answer = ok(&app, "/rerank", asked).await;
        let (results, score) = if is_tei {
            (&answer, "score")
        } else {
            (&answer["results"], "relevance_score")
        };
        let results = results.as_array().expect("a list");
        assert_eq!(results.len(), documents.len());
        for result in results {
            let index = result["index"].as_u64().expect("a number") as usize;
            let found = result[score].as_f64().expect("a number");
            assert_near(&[found], &[f64::from(scores[index])], documents[index]);
        }
        if !is_tei {
            let tokens: usize = pairs.iter().map(TextIds::len).sum();
            assert_eq!(answer["usage"]["prompt_tokens"], tokens);
        }
    }
}

#[tokio::test]
async fn a_model_is_asked_for_what_it_makes_and_nothing_is_loaded_for_other_requests() {
    let messages = json!([{"role": "user", "content": "hi"}]);
    for says_kind in [true, false] {
        let (tiny, encoder) = (
            Tiny::default(),
            Encoder {
                says_kind,
                ..Encoder::default()
            },
        );
        let app = app_with(ServerOptions::default(), &encoder, &tiny);
        for (model, path, asked, advice) in [
            (
                "embed",
                "/v1/chat/completions",
                json!({"messages": messages}),
                "/v1/embeddings",
            ),
            ("embed", "/v1/completions", json!({"prompt": "a"}), "/v1/embeddings"),
            ("embed", "/v1/responses", json!({"input": "a"}), "/v1/embeddings"),
            (
                "embed",
                "/v1/messages",
                json!({"messages": messages, "max_tokens": 1}),
                "/v1/embeddings",
            ),
            ("embed", "/api/chat", json!({"messages": messages}), "/v1/embeddings"),
            ("embed", "/completion", json!({"prompt": "a"}), "/v1/embeddings"),
            (
                "embed",
                "/apply-template",
                json!({"messages": messages}),
                "/v1/embeddings",
            ),
            ("embed", "/rerank", json!({"query": "a", "documents": ["b"]}), "ranking"),
            ("rank", "/v1/embeddings", json!({"input": "a"}), "rerank"),
            ("rank", "/embeddings", json!({"input": "a"}), "rerank"),
            (
                "rank",
                "/v1/chat/completions",
                json!({"messages": messages}),
                "/v1/rerank",
            ),
            ("tiny", "/v1/embeddings", json!({"input": "a"}), "bert"),
            ("tiny", "/embedding", json!({"content": "a"}), "bert"),
            ("tiny", "/api/embed", json!({"input": "a"}), "bert"),
            ("tiny", "/rerank", json!({"query": "a", "documents": ["b"]}), "ranking"),
        ] {
            let mut asked = asked;
            asked["model"] = model.into();
            let (status, _, error) = post(&app, path, asked).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{model} {path} {error}");
            assert!(error.to_string().contains(advice), "{model} {path} {error}");
        }
        let loads = encoder.loads.load(Ordering::SeqCst);
        assert_eq!(loads == 0, says_kind, "{loads} loads");
    }
}

#[tokio::test]
async fn lists_of_models_say_what_each_makes() {
    let encoder = Encoder {
        says_kind: true,
        ..Encoder::default()
    };
    let app = app_with(ServerOptions::default(), &encoder, &Tiny::default());
    let list = |body: Vec<u8>| -> Value { serde_json::from_slice(&body).expect("JSON") };
    let kinds = |list: &Value| -> Vec<Value> {
        let models = list["data"].as_array().expect("a list").iter();
        models.map(|model| model["kind"].clone()).collect()
    };
    let models = list(get(&app, "/v1/models").await.2);
    assert_eq!(kinds(&models), [json!("embedding"), json!("ranking"), json!(null)]);
    app.load("tiny").await.expect("loads");
    let models = list(get(&app, "/v1/models").await.2);
    assert_eq!(kinds(&models), [json!("embedding"), json!("ranking"), json!("text")]);
    for (name, can) in [("embed", "embedding"), ("tiny", "completion"), ("rank", "ranking")] {
        let shown = ok(&app, "/api/show", json!({"model": name})).await;
        assert_eq!(shown["capabilities"], json!([can]));
    }
    // Tokens of a text, by any model.
    let tokens = ok(
        &app,
        "/tokenize",
        json!({"model": "embed", "content": "a river", "add_special": true}),
    )
    .await;
    assert_eq!(tokens["tokens"], json!(framed("a river")));
    let text = ok(
        &app,
        "/detokenize",
        json!({"model": "embed", "tokens": [id("a"), id("river")]}),
    )
    .await;
    assert!(text["content"].as_str().expect("a text").contains("river"), "{text}");
    let props = list(get(&app, "/props?model=embed").await.2);
    assert_eq!(props["default_generation_settings"]["n_ctx"], CONTEXT);
}

#[tokio::test]
async fn encoders_and_text_models_share_the_places() {
    let (tiny, encoder) = (Tiny::default(), Encoder::default());
    let app = app_with(ServerOptions::default(), &encoder, &tiny);
    for round in 1..=2 {
        ok(&app, "/v1/embeddings", json!({"model": "embed", "input": "a"})).await;
        ok(
            &app,
            "/v1/completions",
            json!({"model": "tiny", "prompt": "banana", "max_tokens": 1}),
        )
        .await;
        let loads = (encoder.loads.load(Ordering::SeqCst), tiny.loads.load(Ordering::SeqCst));
        assert_eq!(loads, (round, round), "one at a time");
    }
    let text = String::from_utf8(get(&app, "/metrics").await.2).expect("UTF-8");
    assert!(
        text.contains("rocmforge_requests_total{model_name=\"embed\",end=\"embedded\"} 2"),
        "{text}"
    );
    assert!(
        text.contains("vllm:prompt_tokens_total{model_name=\"embed\"} 6"),
        "{text}"
    );
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_by_name() {
    let limits = Limits {
        inputs: 4,
        input_tokens: 40,
        ..Limits::default()
    };
    let app = app_with(
        ServerOptions {
            limits,
            ..ServerOptions::default()
        },
        &Encoder::default(),
        &Tiny::default(),
    );
    let long = "a ".repeat(CONTEXT - 2);
    for (path, asked, name) in [
        ("/v1/embeddings", json!({}), "input"),
        ("/v1/embeddings", json!({"input": []}), "input"),
        ("/v1/embeddings", json!({"input": [[]]}), "input"),
        ("/v1/embeddings", json!({"input": {"a": 1}}), "input"),
        ("/v1/embeddings", json!({"input": [-1]}), "input"),
        ("/v1/embeddings", json!({"input": [1e300]}), "input"),
        ("/v1/embeddings", json!({"input": [4_294_967_295_u32]}), "input"),
        ("/v1/embeddings", json!({"input": [[12]]}), "input"),
        ("/v1/embeddings", json!({"input": ["a", 1]}), ""),
        ("/v1/embeddings", json!({"input": ["a", "a", "a", "a", "a"]}), "input"),
        ("/v1/embeddings", json!({"input": [long, long]}), "input"),
        ("/v1/embeddings", json!({"input": vec![4; CONTEXT + 1]}), "input"),
        ("/v1/embeddings", json!({"input": "a", "dimensions": 4}), "dimensions"),
        ("/v1/embeddings", json!({"input": "a", "dimensions": 0}), "dimensions"),
        ("/v1/embeddings", json!({"input": "a", "dimensions": -8}), "dimensions"),
        ("/v1/embeddings", json!({"input": "a", "dimensions": "8"}), "dimensions"),
        (
            "/v1/embeddings",
            json!({"input": "a", "encoding_format": "int8"}),
            "encoding_format",
        ),
        (
            "/v1/embeddings",
            json!({"input": "a", "encoding_format": 1}),
            "encoding_format",
        ),
        (
            "/v1/embeddings",
            json!({"input": "a", "truncate_prompt_tokens": 3}),
            "truncate_prompt_tokens",
        ),
        (
            "/v1/embeddings",
            json!({"input": "a", "prompt_name": "query"}),
            "prompt_name",
        ),
        ("/embedding", json!({}), "content"),
        (
            "/embedding",
            json!({"content": "a", "embd_normalize": -1}),
            "embd_normalize",
        ),
        (
            "/embedding",
            json!({"content": "a", "embd_normalize": -2}),
            "embd_normalize",
        ),
        (
            "/embedding",
            json!({"content": "a", "embd_normalize": 4e9}),
            "embd_normalize",
        ),
        (
            "/embedding",
            json!({"content": "a", "encoding_format": "base64"}),
            "encoding_format",
        ),
        ("/api/embed", json!({"input": [1]}), "input"),
        ("/api/embed", json!({"input": ["a", "a", "a", "a", "a"]}), "input"),
        ("/api/embed", json!({"input": "a", "dimensions": 2}), "dimensions"),
        ("/api/embed", json!({"input": "a", "truncate": 1}), "truncate"),
        ("/api/embed", json!({"input": "a", "keep_alive": "soon"}), "keep_alive"),
        ("/api/embeddings", json!({"prompt": ["a"]}), "prompt"),
    ] {
        let mut asked = asked;
        asked["model"] = "embed".into();
        let (status, _, error) = post(&app, path, asked.clone()).await;
        if name.is_empty() {
            assert_eq!(status, StatusCode::OK, "{path} {asked} {error}");
            continue;
        }
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {asked} {error}");
        assert!(error.to_string().contains(name), "{path} {asked} {error}");
    }
    for (asked, name) in [
        (json!({"documents": ["a"]}), "query"),
        (json!({"query": 1, "documents": ["a"]}), "query"),
        (json!({"query": "a"}), "documents"),
        (json!({"query": "a", "documents": []}), "documents"),
        (json!({"query": "a", "documents": 123}), "documents"),
        (json!({"query": "a", "documents": [1, 2]}), "documents"),
        (json!({"query": "a", "documents": [{"title": "b"}]}), "documents"),
        (
            json!({"query": "a", "documents": ["b", "b", "b", "b", "b"]}),
            "documents",
        ),
        (json!({"query": "a", "texts": [null]}), "texts"),
        (json!({"query": "a", "documents": ["b"], "top_n": -1}), "top_n"),
        (json!({"query": "a", "documents": ["b"], "top_n": 0.5}), "top_n"),
        (
            json!({"query": "a", "documents": ["b"], "rank_fields": ["x"]}),
            "rank_fields",
        ),
        (json!({"query": long, "documents": ["b"]}), "too large"),
    ] {
        let mut asked = asked;
        asked["model"] = "rank".into();
        let (status, _, error) = post(&app, "/v1/rerank", asked.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{asked} {error}");
        assert!(error.to_string().contains(name), "{asked} {error}");
    }
    // What was refused has left no place behind.
    ok(&app, "/v1/embeddings", json!({"model": "embed", "input": "a"})).await;
}

#[tokio::test]
async fn open_texts_are_bounded_until_their_answer_is_read() {
    let options = EmbeddingOptions {
        serve: ServeOptions::default(),
        texts: 3,
    };
    let app = app_with(
        ServerOptions::default(),
        &Encoder {
            options,
            ..Encoder::default()
        },
        &Tiny::default(),
    );
    let asked = json!({"model": "embed", "input": ["a", "b"]});
    let ask = || {
        let request = request("POST", "/v1/embeddings").header("content-type", "application/json");
        let request = request.body(Body::from(asked.to_string())).expect("a request");
        app.router().oneshot(request)
    };
    let first = ask().await.expect("the router never fails");
    assert_eq!(first.status(), StatusCode::OK);
    let (status, headers, error) = post(&app, "/v1/embeddings", asked.clone()).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{error}");
    assert!(headers.contains_key("retry-after"));
    drop(first);
    ok(&app, "/v1/embeddings", asked.clone()).await;
}

#[tokio::test]
async fn a_client_that_goes_away_gives_its_place_back() {
    let limits = Limits {
        requests: 1,
        ..Limits::default()
    };
    let app = app_with(
        ServerOptions {
            limits,
            ..ServerOptions::default()
        },
        &Encoder::default(),
        &Tiny::default(),
    );
    app.load("embed").await.expect("loads");
    let asked = json!({"model": "embed", "input": vec!["a b c river town"; 2000]});
    for _ in 0..8 {
        let request = request("POST", "/v1/embeddings").header("content-type", "application/json");
        let request = request.body(Body::from(asked.to_string())).expect("a request");
        let mut answer = Box::pin(app.router().oneshot(request));
        // It is polled until it waits, and goes away.
        assert!(
            answer
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
        drop(answer);
    }
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "something stays open");
        let health: Value = serde_json::from_slice(&get(&app, "/health").await.2).expect("JSON");
        let (status, ..) = post(&app, "/v1/embeddings", json!({"model": "embed", "input": "a"})).await;
        if health["models"][0]["open_requests"] == 0 && status == StatusCode::OK {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let text = String::from_utf8(get(&app, "/metrics").await.2).expect("UTF-8");
    let cancelled = "rocmforge_requests_total{model_name=\"embed\",end=\"cancelled\"} ";
    assert!(text.contains(cancelled), "{text}");
}

/// The small encoder on a card.
fn on_card(card: &Arc<HipBackend>) -> Result<Engine, ServeError> {
    let card = Arc::clone(card);
    let model = Random::new(false).open();
    let options = EmbedderOptions {
        step_tokens: 64,
        ..EmbedderOptions::default()
    };
    let server = EmbeddingServer::start(EmbeddingOptions::default(), move || {
        Embedder::new(model, HipGgmlBackend::new(&card)?, options)
    })?;
    Ok(server.into())
}

#[tokio::test]
async fn unloading_an_encoder_gives_all_of_a_cards_memory_back() {
    let reference = Random::new(false);
    let answers = async |app: &App| {
        let answer = ok(app, "/v1/embeddings", json!({"input": "a river"})).await;
        let found = numbers(&answer["data"][0]["embedding"]);
        assert_near(&found, &reference.embedding(&framed("a river")), "on the card");
    };
    check_memory_comes_back(on_card, 20, answers).await;
}

#[tokio::test]
async fn get_is_no_way_to_ask_for_embeddings() {
    let app = app();
    for path in ["/v1/embeddings", "/embedding", "/rerank", "/api/embed"] {
        let request = request("GET", path).body(Body::empty()).expect("a request");
        assert_eq!(send(&app, request).await.0, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
}
