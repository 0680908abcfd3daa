//! Tests of the web page: its files, their headers, and the figures of memory that it draws.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::StatusCode;
use common::{Tiny, app, get, request, send};
use rocmforge_memory::Bytes;
use rocmforge_server::{App, CardMemory, Facts, Keys, LoadError, Loaded, ServerOptions, Source};
use serde_json::{Value, json};

const KEY: &str = "0123456789abcdef";

fn with_keys() -> ServerOptions {
    ServerOptions {
        keys: Keys::parse(KEY).expect("a key"),
        ..ServerOptions::default()
    }
}

/// Paths of files that the page's sources refer to.
fn referred(text: &str) -> impl Iterator<Item = String> {
    let page = text
        .split('"')
        .filter(|part| part.starts_with("page/"))
        .map(|part| format!("/{part}"));
    let imports = text.split('\'').filter(|part| part.starts_with("./"));
    page.chain(imports.map(|part| part.replacen("./", "/page/", 1)))
}

#[tokio::test]
async fn the_page_and_all_files_that_it_refers_to_are_served() {
    let app = app(with_keys());
    let (mut wanted, mut served) = (vec!["/".to_owned()], BTreeSet::new());
    while let Some(path) = wanted.pop() {
        if !served.insert(path.clone()) {
            continue;
        }
        // The page asks for the key, so it needs none itself.
        let (status, headers, body) = get(&app, &path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        let kind = match Path::new(&path).extension().and_then(|extension| extension.to_str()) {
            None => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some(other) => panic!("{path}: a type {other}"),
        };
        assert_eq!(headers["content-type"], kind, "{path}");
        assert_eq!(
            headers["content-security-policy"],
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
             frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        let text = String::from_utf8(body).expect("UTF-8");
        wanted.extend(referred(&text));
        for forbidden in [
            "://cdn",
            "innerHTML",
            "eval(",
            "<style",
            " style=",
            "onclick=",
            "<script>",
        ] {
            assert!(!text.contains(forbidden), "{path} has {forbidden}");
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
    let files = std::fs::read_dir(folder)
        .expect("the sources")
        .map(|file| file.expect("a file").file_name());
    let files = files.map(|name| name.into_string().expect("UTF-8"));
    let files = files
        .filter(|name| !name.ends_with(".rs"))
        .map(|name| match name.as_str() {
            "index.html" => "/".to_owned(),
            _ => format!("/page/{name}"),
        });
    assert_eq!(
        served,
        files.collect(),
        "a file is served and needed, or it is not there"
    );
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let app = app(ServerOptions::default());
    for path in ["/", "/page/page.js"] {
        let (_, of_get, whole) = get(&app, path).await;
        let head = request("HEAD", path).body(Body::empty()).expect("a request");
        let (status, headers, body) = send(&app, head).await;
        assert_eq!((status, body.len()), (StatusCode::OK, 0), "{path}");
        assert_eq!(headers["content-length"], whole.len().to_string(), "{path}");
        assert_eq!(headers["content-security-policy"], of_get["content-security-policy"]);
    }
}

#[tokio::test]
async fn no_other_file_is_there() {
    let app = app(ServerOptions::default());
    for path in [
        "/page",
        "/page/",
        "/page/index.html",
        "/page/mod.rs",
        "/page/../Cargo.toml",
        "/page/%2e%2e/mod.rs",
        "/page//page.js",
        "/index.html",
        "/favicon.ico",
    ] {
        let (status, _, body) = get(&app, path).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["error"]["type"], "not_found_error", "{path}");
    }
    let post = request("POST", "/").body(Body::empty()).expect("a request");
    assert_eq!(send(&app, post).await.0, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn the_memory_needs_the_key() {
    let app = app(with_keys());
    assert_eq!(get(&app, "/memory").await.0, StatusCode::UNAUTHORIZED);
    let with_key = request("GET", "/memory").header("authorization", format!("Bearer {KEY}"));
    let (status, headers, body) = send(&app, with_key.body(Body::empty()).expect("a request")).await;
    assert_eq!(
        (status, &headers["content-type"]),
        (StatusCode::OK, &"application/json".parse().expect("a value"))
    );
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        body,
        json!({"cards": [], "models": []}),
        "no model is loaded by looking"
    );
}

/// A model that says that it lies on these cards.
#[derive(Clone)]
struct OnCards {
    ids: &'static [&'static str],
    reads: Arc<AtomicUsize>,
}

impl Source for OnCards {
    fn load(&self) -> Result<Loaded, LoadError> {
        let OnCards { ids, reads } = self.clone();
        let card = move |id: &&str| CardMemory {
            id: (*id).to_owned(),
            name: "AMD Radeon RX 7900 XTX".to_owned(),
            total: Bytes::gib(24),
            budget: Bytes::gib(20),
            own: Bytes::gib(3),
            others: id.ends_with('1').then(|| Bytes::gib(2)),
            headroom: Bytes::gib(1),
        };
        Ok(Loaded {
            facts: Facts {
                weight_bytes: 1 << 30,
                cache_bytes: 1 << 29,
                cache_tokens: 4096,
                device: "two cards".to_owned(),
                ..Facts::default()
            },
            memory: Box::new(move || {
                reads.fetch_add(1, Ordering::SeqCst);
                ids.iter().map(&card).collect()
            }),
            ..Tiny::default().load()?
        })
    }
}

#[tokio::test]
async fn cards_are_listed_once_and_models_with_their_parts() {
    let reads = Arc::new(AtomicUsize::new(0));
    let sources = [
        ("on both", &["card:1", "card:0"][..]),
        ("on one", &["card:1"]),
        ("on none", &[]),
    ];
    let sources = sources.map(|(name, ids)| {
        let reads = Arc::clone(&reads);
        (name.to_owned(), Box::new(OnCards { ids, reads }) as Box<dyn Source>)
    });
    let options = ServerOptions {
        max_models: 3,
        ..ServerOptions::default()
    };
    let app = App::new(options, sources).expect("three models");
    for name in ["on both", "on one", "on none"] {
        app.load(name).await.expect("it loads");
    }
    assert_eq!(reads.load(Ordering::SeqCst), 0, "nobody has looked");
    let (status, _, body) = get(&app, "/memory").await;
    assert_eq!((status, reads.load(Ordering::SeqCst)), (StatusCode::OK, 3));
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    let card = |id: &str, others: Value| {
        json!({
            "id": id,
            "name": "AMD Radeon RX 7900 XTX",
            "total": 24_u64 << 30,
            "budget": 20_u64 << 30,
            "own": 3_u64 << 30,
            "others": others,
            "headroom": 1 << 30,
        })
    };
    assert_eq!(
        body["cards"],
        json!([card("card:0", Value::Null), card("card:1", (2_u64 << 30).into())])
    );
    let blocks = &body["models"][0]["cache_blocks"];
    assert!(blocks.as_u64().is_some_and(|blocks| blocks > 0), "{blocks}");
    let model = |name: &str, cards: &[&str]| {
        json!({
            "model": name,
            "device": "two cards",
            "cards": cards,
            "weight_bytes": 1 << 30,
            "cache_bytes": 1 << 29,
            "card_bytes": 3 << 29,
            "cache_tokens": 4096,
            "cache_blocks": blocks,
            "cache_blocks_used": 0,
            "cache_blocks_kept": 0,
        })
    };
    let models = [
        model("on both", &["card:1", "card:0"]),
        model("on none", &[]),
        model("on one", &["card:1"]),
    ];
    assert_eq!(body["models"], json!(models));
    assert!(
        app.unload("on both").await && app.unload("on one").await,
        "looking does not use a model"
    );
    let (_, _, body) = get(&app, "/memory").await;
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        (&body["cards"], body["models"].as_array().map(Vec::len)),
        (&json!([]), Some(1))
    );
}
