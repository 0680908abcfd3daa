//! A server of a small random model, and requests to it.
#![allow(dead_code)] // each test program uses a part

pub(crate) mod bert;
pub(crate) mod card;
pub(crate) mod gated;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Gguf, Writer};
use rocmforge_models::generate::{Completion, Generator, Request as Generate};
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions, Limit, Model};
use rocmforge_server::{App, Facts, LoadError, Loaded, ServerOptions, Source};
use serde_json::Value;
use tower::ServiceExt;

/// The template of the small model.
const TEMPLATE: &str = "{% for m in messages %}<bos>{{ m.role }}: {{ m.content }}<eos>\n{% endfor %}\
                        {% if add_generation_prompt %}<bos>assistant: {% endif %}";
/// The longest answer of a test.
const LONGEST_ANSWER: usize = 64 << 20;

/// The file of a random model.
pub(crate) fn tiny_gguf() -> &'static str {
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../rocmforge-models/tests/reference/tiny/llama.gguf"
    )
}

/// A random model of 160 KB, with a chat template.
pub(crate) fn model() -> Model {
    let gguf = Gguf::open(tiny_gguf()).expect("a committed model");
    let mut writer = Writer::new();
    for (key, value) in gguf.metadata().iter() {
        writer.metadata(key, value.clone()).expect("as it was");
    }
    writer.metadata("tokenizer.chat_template", TEMPLATE).expect("a new key");
    for tensor in gguf.tensors() {
        let data = gguf.data(tensor);
        writer
            .tensor(&tensor.name, &tensor.dims, tensor.ty, data)
            .expect("as it was");
    }
    let gguf = Gguf::from_bytes(writer.to_bytes().expect("a file")).expect("as it was written");
    Model::from_gguf(gguf).expect("a model")
}

/// The small model on the CPU; it counts how often it is loaded.
#[derive(Clone, Default)]
pub(crate) struct Tiny {
    pub(crate) loads: Arc<AtomicUsize>,
    pub(crate) serve: ServeOptions,
    /// The longest sequence, if it is shorter than the model's.
    pub(crate) context: Option<usize>,
}

impl Source for Tiny {
    fn load(&self) -> Result<Loaded, LoadError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let model = model();
        let template = model.chat_template()?;
        let context = self.context.unwrap_or(model.config().context);
        let options = EngineOptions {
            max_context: Limit::Tokens(context),
            ..EngineOptions::default()
        };
        let server = Server::start(self.serve, move || {
            let engine = Engine::new(CpuBackend::with_threads(1), &model, options)?;
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        Ok(Loaded {
            template,
            facts: Facts {
                context,
                ..Facts::default()
            },
            ..Loaded::new(server)
        })
    }
}

/// A server of one model, `tiny`.
pub(crate) fn app(options: ServerOptions) -> App {
    app_of(options, &["tiny"], &Tiny::default())
}

/// A server of the same model under several names.
pub(crate) fn app_of(options: ServerOptions, names: &[&str], source: &Tiny) -> App {
    let sources = names
        .iter()
        .map(|name| ((*name).to_owned(), Box::new(source.clone()) as Box<dyn Source>));
    App::new(options, sources).expect("the options make sense")
}

/// An answer to any request.
pub(crate) async fn send(app: &App, request: Request<Body>) -> (StatusCode, HeaderMap, Vec<u8>) {
    send_to(app.router(), request).await
}

/// The same of a router that is there already: to make one takes longer than most requests.
pub(crate) async fn send_to(router: Router, request: Request<Body>) -> (StatusCode, HeaderMap, Vec<u8>) {
    let response = router.oneshot(request).await.expect("the router never fails");
    let (status, headers) = (response.status(), response.headers().clone());
    let body = to_bytes(response.into_body(), LONGEST_ANSWER)
        .await
        .expect("a whole body");
    (status, headers, body.to_vec())
}

/// A request to this machine, without a body.
pub(crate) fn request(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost:8080")
}

/// The answer to GET.
pub(crate) async fn get(app: &App, path: &str) -> (StatusCode, HeaderMap, Vec<u8>) {
    send(app, request("GET", path).body(Body::empty()).expect("a request")).await
}

/// A body with one more field, or another value of one.
pub(crate) fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

fn with_json(path: &str, json: &Value) -> Request<Body> {
    let request = request("POST", path).header("content-type", "application/json");
    request.body(Body::from(json.to_string())).expect("a request")
}

/// The answer to POST of JSON.
pub(crate) async fn post(app: &App, path: &str, json: Value) -> (StatusCode, HeaderMap, Value) {
    let (status, headers, body) = send(app, with_json(path, &json)).await;
    let json = serde_json::from_slice(&body);
    (
        status,
        headers,
        json.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body))),
    )
}

/// The values of a stream of server-sent events, with their names; the text `[DONE]` is one, too.
pub(crate) async fn post_stream(app: &App, path: &str, json: Value) -> Vec<(String, Value)> {
    let (status, headers, body) = send(app, with_json(path, &json)).await;
    let body = String::from_utf8(body).expect("UTF-8");
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(headers["content-type"], "text/event-stream");
    let event = |event: &str| {
        let (mut name, mut data) = (String::new(), String::new());
        for line in event.lines() {
            match line.split_once(": ") {
                Some(("event", text)) => text.clone_into(&mut name),
                Some(("data", text)) => data.push_str(text),
                // A comment shows that the stream lives.
                _ => {}
            }
        }
        let value = serde_json::from_str(&data).unwrap_or_else(|_| data.as_str().into());
        (name, value)
    };
    let events = body.split("\n\n").filter(|event| event.contains("data: "));
    events.map(event).collect()
}

/// What the library gives for a request.
pub(crate) fn expected(request: Generate) -> Completion {
    let model = model();
    let engine = Engine::new(CpuBackend::with_threads(1), &model, EngineOptions::default()).expect("it loads");
    let mut generator = Generator::new(engine, model.tokenizer().expect("it has one"));
    generator.run(request).expect("runs")
}
