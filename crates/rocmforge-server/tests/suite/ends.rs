//! Ends of waiting: a load that hangs, and a server that is to end while a device does not answer.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use axum::http::StatusCode;
use rocmforge_server::{App, Limits, LoadError, Loaded, ServerOptions, Source};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::common::gated::Behind;
use crate::common::{Tiny, get, post};

/// The small model, from a file that gives no byte until it is released.
struct Hangs {
    released: Mutex<mpsc::Receiver<()>>,
    asked: mpsc::Sender<()>,
}

impl Hangs {
    /// It, what releases it, and what says that it is being loaded.
    fn new() -> (Self, mpsc::Sender<()>, mpsc::Receiver<()>) {
        let (release, released) = mpsc::channel();
        let (asked, is_asked) = mpsc::channel();
        let released = Mutex::new(released);
        (Self { released, asked }, release, is_asked)
    }
}

impl Source for Hangs {
    fn load(&self) -> Result<Loaded, LoadError> {
        let _ = self.asked.send(());
        let _ = self.released.lock().expect("one at a time").recv();
        Tiny::default().load()
    }
}

fn app(sources: Vec<(&str, Box<dyn Source>)>, limits: Limits) -> App {
    let options = ServerOptions {
        max_models: 2,
        limits,
        ..ServerOptions::default()
    };
    let sources = sources.into_iter().map(|(name, source)| (name.to_owned(), source));
    App::new(options, sources).expect("the options make sense")
}

fn asked(model: &str) -> Value {
    json!({"model": model, "prompt": "banana", "max_tokens": 2})
}

async fn health(app: &App) -> (StatusCode, Value) {
    let (status, _, body) = get(app, "/health").await;
    (status, serde_json::from_slice(&body).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_hangs_holds_no_request_for_ever() {
    let (hangs, release, _asked) = Hangs::new();
    let sources: Vec<(&str, Box<dyn Source>)> = vec![
        ("hangs", Box::new(hangs)),
        ("here", Box::new(Tiny::default())),
        ("other", Box::new(Tiny::default())),
    ];
    let limits = Limits {
        load_time: Duration::from_secs(1),
        ..Limits::default()
    };
    let app = app(sources, limits);
    app.load("here").await.expect("it loads");
    // Those of the model that hangs, and of one that cannot be loaded meanwhile.
    for model in ["hangs", "hangs", "other"] {
        let (status, _, answer) = post(&app, "/v1/completions", asked(model)).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
        let text = answer["error"]["message"].as_str().expect("a text");
        assert!(
            text.contains("the model hangs has been loading") && text.contains("may take 1 s"),
            "{text}"
        );
        assert!(text.contains("restart the server"), "{text}");
    }
    let (status, figures) = health(&app).await;
    assert_eq!(
        (status, &figures["loading"]["model"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("hangs"))
    );
    // The one that is loaded goes on.
    assert_eq!(post(&app, "/v1/completions", asked("here")).await.0, StatusCode::OK);
    // The file answers after all: the model is there, as if it had come in time.
    release.send(()).expect("it waits");
    while health(&app).await.0 != StatusCode::OK {
        tokio::task::yield_now().await;
    }
    assert_eq!(post(&app, "/v1/completions", asked("hangs")).await.0, StatusCode::OK);
}

/// Sends a request for a stream, and returns the connection.
async fn open(address: std::net::SocketAddr, model: &str) -> TcpStream {
    let mut body = asked(model);
    body["stream"] = true.into();
    let (body, mut stream) = (body.to_string(), TcpStream::connect(address).await.expect("it listens"));
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

/// A step that does not come back, and a load that does not: both hold requests when the end comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_ends_in_its_time_while_nothing_answers() {
    let stuck = Behind::default();
    let (hangs, release, is_asked) = Hangs::new();
    let limits = Limits {
        drain_time: Duration::from_millis(50),
        ..Limits::default()
    };
    let app = app(
        vec![("hangs", Box::new(hangs)), ("stuck", Box::new(stuck.clone()))],
        limits,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (end, ended) = oneshot::channel::<()>();
    let served = app.clone();
    let server = tokio::spawn(async move { served.run_on(listener, async { drop(ended.await) }).await });
    let mut running = open(address, "stuck").await;
    while health(&app).await.1["models"][0]["in_step_seconds"].is_null() {
        tokio::task::yield_now().await;
    }
    let mut waiting = open(address, "hangs").await;
    tokio::task::spawn_blocking(move || is_asked.recv())
        .await
        .expect("no panic")
        .expect("it loads");
    end.send(()).expect("it runs");
    server.await.expect("no panic").expect("it ends");
    let mut answer = String::new();
    running.read_to_string(&mut answer).await.expect("an answer");
    // The stream has begun, and ends with an error.
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("the server has stopped"),
        "{answer}"
    );
    assert!(!answer.contains("[DONE]"), "{answer}");
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).await.expect("an answer");
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("the server ends"),
        "{answer}"
    );
    stuck.gate.set(true);
    release.send(()).expect("it waits");
}
