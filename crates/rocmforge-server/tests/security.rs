//! Attacks that servers of this kind fell to, one test each. Those on connections use plain sockets.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use common::{Tiny, app, app_of, get, post, request, send};
use futures_util::FutureExt;
use rocmforge_models::serve::ServeOptions;
use rocmforge_server::{App, Keys, Limits, ServerOptions, Source, StartError};
use serde_json::{Value, json};

const KEY: &str = "0123456789abcdef0123";
const OTHER_KEY: &str = "fedcba98765432100000";
/// No test waits longer for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn limited(limits: Limits) -> Running {
    Running::start(ServerOptions {
        limits,
        ..ServerOptions::default()
    })
}

fn with_keys() -> ServerOptions {
    ServerOptions {
        keys: Keys::parse(&format!("ada:{KEY}\nbob:{OTHER_KEY}")).expect("two keys"),
        ..ServerOptions::default()
    }
}

/// A server on a free port, in a thread of its own, until it is dropped.
struct Running {
    address: SocketAddr,
    end: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    fn start(options: ServerOptions) -> Self {
        Self::with_queue(options, ServeOptions::default().queue)
    }

    /// A server whose engine takes so many requests.
    fn with_queue(options: ServerOptions, queue: usize) -> Self {
        let serve = ServeOptions {
            queue,
            ..ServeOptions::default()
        };
        let source = Tiny {
            serve,
            ..Tiny::default()
        };
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (address, its_address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .expect("threads");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                address
                    .send(listener.local_addr().expect("bound"))
                    .expect("somebody waits");
                let app = app_of(options, &["tiny"], &source);
                let ran = app.run_on(listener, async { drop(ended.await) }).await;
                ran.expect("it may listen there");
            });
        });
        Self {
            address: its_address.recv().expect("it listens"),
            end: Some(end),
            thread: Some(thread),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream
    }

    /// What comes after these bytes, until the server closes the connection.
    fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // A server that answers early may close before it has read all.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str) -> String {
        self.exchange(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())
    }

    /// Requests that have not ended.
    fn open_requests(&self) -> u64 {
        let answer = self.get("/health");
        let body = answer.split("\r\n\r\n").nth(1).expect("a body");
        let health: Value = serde_json::from_str(body).expect("JSON");
        health["models"][0]["open_requests"].as_u64().unwrap_or(0)
    }

    fn end(&mut self) {
        drop(self.end.take());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
        self.thread.take().expect("it runs").join().expect("no panic");
    }
}

fn completion(extra: &str) -> String {
    let body = format!("{{\"prompt\": \"banana\", \"ignore_eos\": true{extra}}}");
    let length = body.len();
    format!(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn other_machines_need_a_key() {
    let open = |keys: Keys, allow_without_keys| {
        let options = ServerOptions {
            listen: ([0, 0, 0, 0], 8080).into(),
            keys,
            allow_without_keys,
            ..ServerOptions::default()
        };
        App::new(
            options,
            [("m".to_owned(), Box::new(Tiny::default()) as Box<dyn Source>)],
        )
        .map(drop)
    };
    assert!(matches!(open(Keys::default(), false), Err(StartError::NoKeys(_))));
    open(Keys::default(), true).expect("it was allowed");
    open(Keys::parse(KEY).expect("a key"), false).expect("there is a key");
}

#[tokio::test]
async fn every_route_needs_a_key_but_those_for_supervisors() {
    let app = app(with_keys());
    for path in ["/health", "/ready"] {
        assert_eq!(get(&app, path).await.0, StatusCode::OK, "{path}");
    }
    for path in [
        "/v1/models",
        "/metrics",
        "/nothing",
        "/health/",
        "//health",
        "/health/../v1/models",
    ] {
        assert_eq!(get(&app, path).await.0, StatusCode::UNAUTHORIZED, "{path}");
    }
    let with = |name: &'static str, value: String| {
        let request = request("GET", "/v1/models").header(name, value);
        send(&app, request.body(Body::empty()).expect("a request"))
    };
    assert_eq!(with("authorization", format!("Bearer {KEY}")).await.0, StatusCode::OK);
    assert_eq!(with("x-api-key", OTHER_KEY.to_owned()).await.0, StatusCode::OK);
    for value in [
        "Bearer ".to_owned(),
        format!("Basic {KEY}"),
        format!("Bearer {KEY}x"),
        KEY.to_owned(),
        format!("Bearer {}", &KEY[1..]),
    ] {
        let (status, headers, _) = with("authorization", value.clone()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{value}");
        assert!(headers.contains_key("www-authenticate"));
    }
}

#[tokio::test]
async fn names_of_other_machines_are_refused() {
    let named = ServerOptions {
        hosts: vec!["radeon.lan".to_owned()],
        ..ServerOptions::default()
    };
    let app = app(named);
    let ask = |host: &'static str| {
        let request = axum::http::Request::builder().uri("/v1/models").header("host", host);
        send(&app, request.body(Body::empty()).expect("a request"))
    };
    for host in [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1:8080",
        "[::1]:8080",
        "127.1.2.3",
        "radeon.lan:80",
    ] {
        assert_eq!(ask(host).await.0, StatusCode::OK, "{host}");
    }
    // The last is an address of another machine, which this one does not listen on.
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "",
        "10.0.0.1",
    ] {
        assert_eq!(ask(host).await.0, StatusCode::FORBIDDEN, "{host}");
    }
    let none = axum::http::Request::builder()
        .uri("/v1/models")
        .body(Body::empty())
        .expect("a request");
    assert_eq!(send(&app, none).await.0, StatusCode::BAD_REQUEST);
    let two = request("GET", "/v1/models").header("host", "evil.example");
    assert_eq!(
        send(&app, two.body(Body::empty()).expect("a request")).await.0,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn pages_of_other_origins_may_not_ask() {
    let allowed = ServerOptions {
        origins: vec!["https://chat.example".to_owned()],
        ..ServerOptions::default()
    };
    let app = app(allowed);
    let ask = |method: &'static str, origin: &'static str| {
        let mut request = request(method, "/v1/models").header("origin", origin);
        if method == "OPTIONS" {
            request = request.header("access-control-request-method", "GET");
        }
        send(&app, request.body(Body::empty()).expect("a request"))
    };
    let allows = |headers: &HeaderMap| headers.get("access-control-allow-origin").cloned();
    for method in ["GET", "OPTIONS"] {
        let (status, headers, _) = ask(method, "https://chat.example").await;
        assert!(status.is_success(), "{method}: {status}");
        assert_eq!(allows(&headers).expect("allowed"), "https://chat.example");
        assert!(!headers.contains_key("access-control-allow-credentials"));
        for origin in [
            "https://evil.example",
            "http://chat.example",
            "https://chat.example.evil",
            "null",
            "*",
            "http://localhost:9999",
        ] {
            let (status, headers, _) = ask(method, origin).await;
            assert_eq!(
                (status, allows(&headers)),
                (StatusCode::FORBIDDEN, None),
                "{method} {origin}"
            );
        }
    }
    // The server's own page.
    let (status, headers, _) = ask("GET", "http://localhost:8080").await;
    assert_eq!((status, allows(&headers)), (StatusCode::OK, None));
}

#[tokio::test]
async fn a_form_of_another_page_is_no_request() {
    let app = app(ServerOptions::default());
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
        "application/jsonp",
    ] {
        let request = request("POST", "/v1/completions").header("content-type", kind);
        let request = request.body(Body::from("{\"prompt\": \"a\"}")).expect("a request");
        assert_eq!(
            send(&app, request).await.0,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "{kind}"
        );
    }
}

#[tokio::test]
async fn clients_of_ollama_need_not_say_that_they_send_json() {
    let app = app(ServerOptions::default());
    let ask = |path: &'static str, kind: Option<&'static str>, origin: Option<&'static str>| {
        let mut request = request("POST", path);
        let headers = [("content-type", kind), ("origin", origin)];
        for (name, value) in headers.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            request = request.header(name, value);
        }
        let body = "{\"model\": \"tiny\", \"prompt\": \"a\", \"stream\": false, \"options\": {\"num_predict\": 1}}";
        let request = request.body(Body::from(body)).expect("a request");
        let app = app.clone();
        async move { send(&app, request).await.0 }
    };
    // litellm sends no type, and ollama's own examples are `curl -d`.
    let form = Some("application/x-www-form-urlencoded");
    for kind in [None, form, Some("application/json; charset=utf-8")] {
        assert_eq!(ask("/api/generate", kind, None).await, StatusCode::OK, "{kind:?}");
        let origin = Some("https://elsewhere.example");
        assert_eq!(
            ask("/api/generate", kind, origin).await,
            StatusCode::FORBIDDEN,
            "{kind:?}"
        );
    }
    for kind in [Some("text/plain"), Some("multipart/form-data"), Some("")] {
        assert_eq!(
            ask("/api/generate", kind, None).await,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "{kind:?}"
        );
    }
    assert_eq!(
        ask("/v1/completions", None, None).await,
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
}

/// What a page elsewhere can send without asking first: forms, and `fetch` or beacons of these types or of none. Each POST of a browser has an `Origin`.
#[tokio::test]
async fn what_a_page_elsewhere_sends_reaches_no_route_of_ollama() {
    let source = Tiny::default();
    let app = app_of(ServerOptions::default(), &["tiny"], &source);
    let ask = async |path: &str, host: &str, origin: &str, kind: Option<&str>, body: &str| {
        let mut request = axum::http::Request::post(path)
            .header("host", host)
            .header("origin", origin);
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        let (status, headers, answer) = send(&app, request).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path} {host} {origin} {kind:?}");
        assert!(!headers.contains_key("access-control-allow-origin"));
        answer
    };
    let form = "application/x-www-form-urlencoded";
    let json = "{\"model\": \"tiny\", \"prompt\": \"a\", \"messages\": [], \"input\": \"a\", \"stream\": false}";
    let of_form = "model=tiny&prompt=a&%7B%22model%22%3A+%22tiny%22%7D=";
    let routes = [
        "/api/generate",
        "/api/chat",
        "/api/show",
        "/api/embed",
        "/api/embeddings",
        "/api/pull",
    ];
    for path in routes {
        for body in [json, of_form] {
            for kind in [
                None,
                Some(form),
                Some("text/plain"),
                Some("multipart/form-data; boundary=a"),
            ] {
                // The last two are a page without an origin, and another server of this machine.
                for origin in ["https://evil.example", "null", "http://localhost:9999"] {
                    ask(path, "localhost:8080", origin, kind, body).await;
                }
                // A name of the page's own that means this machine.
                ask(path, "evil.example:8080", "http://evil.example:8080", kind, body).await;
            }
        }
    }
    assert_eq!(source.loads.load(std::sync::atomic::Ordering::SeqCst), 0);
    // A form's own words are no JSON, whoever sends them.
    let request = request("POST", "/api/generate").header("content-type", form);
    let request = request.body(Body::from(of_form)).expect("a request");
    assert_eq!(send(&app, request).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn names_of_models_are_no_paths() {
    let source = Tiny::default();
    let app = app_of(ServerOptions::default(), &["a", "b"], &source);
    for name in [
        "../../../etc/passwd",
        "/etc/passwd",
        "file:///etc/passwd",
        "http://127.0.0.1/",
        "a/../b",
        "a\0",
        "",
    ] {
        let (status, _, answer) = post(&app, "/v1/completions", json!({"model": name, "prompt": "x"})).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{name:?}: {answer}");
    }
    assert_eq!(source.loads.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn bodies_are_bounded_in_bytes_and_depth() {
    let small = ServerOptions {
        limits: Limits {
            body_bytes: 1000,
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let app = app(small);
    let (status, ..) = post(&app, "/v1/completions", json!({"prompt": "x".repeat(2000)})).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    for body in [
        "[".repeat(400),
        format!("{{\"prompt\": {}1{}}}", "[".repeat(200), "]".repeat(200)),
        "{".to_owned(),
        "\u{0}".to_owned(),
        "5".to_owned(),
    ] {
        let request = request("POST", "/v1/completions").header("content-type", "application/json");
        let (status, ..) = send(&app, request.body(Body::from(body.clone())).expect("a request")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    }
}

#[tokio::test]
async fn compressed_bodies_are_refused() {
    let app = app(ServerOptions::default());
    let ask = async |path: &str, encodings: &[&'static [u8]]| {
        let mut asked = request("POST", path).header("content-type", "application/json");
        for encoding in encodings {
            asked = asked.header("content-encoding", *encoding);
        }
        let body = "{\"model\": \"tiny\", \"prompt\": \"a\", \"max_tokens\": 1, \"stream\": false}";
        let asked = asked.body(Body::from(body)).expect("a request");
        let (status, _, answer) = send(&app, asked).await;
        (status, String::from_utf8(answer).expect("UTF-8"))
    };
    for path in ["/v1/completions", "/api/generate"] {
        for encodings in [
            &[&b"gzip"[..]][..],
            &[b"GZIP"],
            &[b"deflate"],
            &[b"br"],
            &[b"zstd"],
            &[b"identity, gzip"],
            &[b"identity", b"gzip"],
            &[b"gzip, gzip, gzip"],
            &[b"\xff"],
            &[b""],
        ] {
            let (status, answer) = ask(path, encodings).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{encodings:?}: {answer}");
            assert!(answer.contains("Content-Encoding"), "{answer}");
        }
        for encodings in [&[][..], &[&b"identity"[..]]] {
            let (status, answer) = ask(path, encodings).await;
            assert_eq!(status, StatusCode::OK, "{encodings:?}: {answer}");
        }
    }
}

#[tokio::test]
async fn an_answer_has_an_id_that_no_client_can_break() {
    let app = app(ServerOptions::default());
    let ask = |id: &'static [u8]| {
        let id = axum::http::HeaderValue::from_bytes(id).expect("a value");
        send(
            &app,
            request("GET", "/health")
                .header("x-request-id", id)
                .body(Body::empty())
                .expect("a request"),
        )
    };
    let (_, headers, _) = ask(b"job-7.a").await;
    assert_eq!(headers["x-request-id"], "job-7.a");
    for id in [&b""[..], b"a b", b"a\"b", b"\xff", &[b'a'; 100]] {
        let (_, headers, _) = ask(id).await;
        let own = headers["x-request-id"].to_str().expect("a text");
        assert!(own.starts_with("req-") && own.len() == 36, "{own}");
    }
}

#[test]
fn slow_and_huge_heads_are_cut() {
    let server = limited(Limits {
        read_time: Duration::from_millis(300),
        ..Limits::default()
    });
    // Each ends because the server closes it.
    let slow = server.exchange(b"GET /health HTTP/1.1\r\nHost: loc");
    assert!(!slow.contains("200 OK"), "{slow}");
    let body = server.exchange(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
    assert!(body.starts_with("HTTP/1.1 408"), "{body}");
    let many = "X: y\r\n".repeat(500);
    let many = server.exchange(format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{many}\r\n").as_bytes());
    assert!(many.starts_with("HTTP/1.1 431"), "{many}");
    let long = server.exchange(
        format!(
            "GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
            "y".repeat(1 << 20)
        )
        .as_bytes(),
    );
    assert!(!long.contains("200 OK"), "{long}");
}

#[test]
fn two_lengths_of_a_body_are_refused() {
    let server = Running::start(ServerOptions::default());
    for framing in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Content-Length: 4\r\nContent-Length: 5",
        "Transfer-Encoding: identity",
    ] {
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n{framing}\r\n\r\n"
        );
        let answer = server.exchange(format!("{head}0\r\n\r\n").as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400"), "{framing}: {answer}");
    }
}

#[test]
fn a_client_that_goes_away_ends_its_request() {
    let server = Running::start(ServerOptions::default());
    for stream in ["", ", \"stream\": true"] {
        let connections: Vec<TcpStream> = (0..4)
            .map(|_| {
                let mut connection = server.connect();
                connection
                    .write_all(completion(&format!(", \"max_tokens\": -1, \"n\": 4{stream}")).as_bytes())
                    .expect("sent");
                connection
            })
            .collect();
        wait_until("a request", || server.open_requests() > 0);
        drop(connections);
        wait_until("the end of all requests", || server.open_requests() == 0);
    }
}

#[test]
fn requests_that_are_refused_in_part_leave_none_behind() {
    let server = Running::with_queue(ServerOptions::default(), 2);
    // The model's random weights would draw tokens for minutes.
    for _ in 0..3 {
        let request = completion(", \"n\": 8, \"max_tokens\": -1");
        let request = request.replace("Host: localhost", "Host: localhost\r\nConnection: close");
        let answer = server.exchange(request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    }
    wait_until("the end of what had begun", || server.open_requests() == 0);
    let steps = |server: &Running| {
        let answer = server.get("/health");
        let health: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
        health["models"][0]["steps"].as_u64()
    };
    let before = steps(&server);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(steps(&server), before, "an idle engine computes nothing");
}

#[test]
fn silent_connections_give_their_place_back() {
    let server = limited(Limits {
        connections: 2,
        read_time: Duration::from_millis(200),
        ..Limits::default()
    });
    let mut half = server.connect();
    half.write_all(b"PRI * HT").expect("sent");
    let silent = server.connect();
    assert!(server.get("/health").starts_with("HTTP/1.1 200"));
    drop((half, silent));
}

#[test]
fn a_client_that_does_not_read_loses_its_connection() {
    let server = limited(Limits {
        write_time: Duration::from_millis(200),
        ..Limits::default()
    });
    // Answers of megabytes, which fill all buffers on the way.
    let mut connection = server.connect();
    for _ in 0..200 {
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20);
        if connection.write_all(request.as_bytes()).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    wait_until("the end of the connection", || connection.write_all(b"GET").is_err());
}

#[tokio::test]
async fn a_client_that_reads_too_slowly_gets_an_error_and_no_end() {
    let limits = Limits {
        waiting_events: 2,
        ..Limits::default()
    };
    let app = app(ServerOptions {
        limits,
        ..ServerOptions::default()
    });
    let body = json!({"prompt": "banana", "max_tokens": 100, "ignore_eos": true, "stream": true}).to_string();
    let request = request("POST", "/v1/completions").header("content-type", "application/json");
    let request = request.body(Body::from(body)).expect("a request");
    let response = tower::ServiceExt::oneshot(app.router(), request)
        .await
        .expect("the router never fails");
    // The engine draws all of its tokens meanwhile.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let text = axum::body::to_bytes(response.into_body(), 1 << 20)
        .await
        .expect("a body");
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("too slowly") && !text.contains("[DONE]"), "{text}");
}

#[tokio::test]
async fn a_listener_that_others_reach_needs_keys_too() {
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let ran = app(ServerOptions::default())
        .run_on(listener, std::future::pending())
        .await;
    assert!(matches!(ran, Err(StartError::NoKeys(_))));
}

#[test]
fn a_full_queue_says_when_to_try_again() {
    let server = Running::with_queue(ServerOptions::default(), 2);
    let answer = server.exchange(
        completion(", \"n\": 8, \"max_tokens\": 64")
            .replace("Host: localhost", "Host: localhost\r\nConnection: close")
            .as_bytes(),
    );
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    assert!(answer.to_lowercase().contains("retry-after: 1"), "{answer}");
    wait_until("the end of what had begun", || server.open_requests() == 0);
}

#[tokio::test]
async fn one_key_does_not_take_all_places() {
    let limits = Limits {
        requests: 4,
        ..Limits::default()
    };
    let app = app(ServerOptions { limits, ..with_keys() });
    let ask = |key: &'static str, n: usize| {
        let body = json!({"prompt": "banana", "n": n, "max_tokens": 8, "ignore_eos": true}).to_string();
        let request = request("POST", "/v1/completions").header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {key}"));
        send(&app, request.body(Body::from(body)).expect("a request"))
    };
    assert_eq!(ask(KEY, 3).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(ask(KEY, 2).await.0, StatusCode::OK);
    assert_eq!(ask(OTHER_KEY, 2).await.0, StatusCode::OK);
}

#[test]
fn an_ending_server_finishes_its_answers_and_takes_no_more() {
    let mut server = Running::start(ServerOptions::default());
    let mut connection = server.connect();
    connection
        .write_all(completion(", \"max_tokens\": 100, \"stream\": true").as_bytes())
        .expect("sent");
    let mut first = [0; 16];
    connection.read_exact(&mut first).expect("the answer begins");
    let mut kept = server.connect();
    server.end();
    let mut answer = String::new();
    // While the answer runs, the server says that it ends.
    wait_until("the end of readiness", || {
        let ready = TcpStream::connect(server.address).ok().map(|_| server.get("/ready"));
        !ready.is_some_and(|ready| ready.starts_with("HTTP/1.1 200"))
    });
    let _ = kept.write_all(completion(", \"max_tokens\": 1").as_bytes());
    let mut refused = [0; 12];
    if kept.read_exact(&mut refused).is_ok() {
        assert_eq!(&refused, b"HTTP/1.1 503");
    }
    connection.read_to_string(&mut answer).expect("the whole answer");
    assert!(answer.contains("[DONE]"), "{answer}");
}

#[tokio::test]
async fn errors_hold_no_paths_and_no_long_quotes() {
    struct Broken;
    impl Source for Broken {
        fn load(&self) -> Result<rocmforge_server::Loaded, rocmforge_server::LoadError> {
            Err(rocmforge_server::LoadError::Failed(
                "/srv/ada/secret.gguf: no such file".into(),
            ))
        }
    }
    let app = App::new(
        ServerOptions::default(),
        [("m".to_owned(), Box::new(Broken) as Box<dyn Source>)],
    )
    .expect("a server");
    let (status, _, answer) = post(&app, "/v1/completions", json!({"prompt": "x"})).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!answer.to_string().contains("ada"), "{answer}");
    let app = app_of(ServerOptions::default(), &["a", "b"], &Tiny::default());
    let (_, _, answer) = post(
        &app,
        "/v1/completions",
        json!({"prompt": "x", "model": "y".repeat(100_000)}),
    )
    .await;
    assert!(answer.to_string().len() < 2000);
}

/// A POST whose body has begun and does not end before the sender is dropped.
fn unfinished(bytes: Vec<u8>) -> (tokio::sync::mpsc::UnboundedSender<Vec<u8>>, axum::http::Request<Body>) {
    let (sender, received) = tokio::sync::mpsc::unbounded_channel();
    sender.send(bytes).expect("it is there");
    let body = futures_util::stream::unfold(received, |mut received| async {
        let bytes = received.recv().await?;
        Some((Ok::<_, std::io::Error>(bytes), received))
    });
    let body = Body::from_stream(body);
    let request = request("POST", "/v1/completions").header("content-type", "application/json");
    (sender, request.body(body).expect("a request"))
}

#[tokio::test]
async fn a_request_has_a_place_before_its_body_is_read() {
    let limits = Limits {
        requests: 1,
        ..Limits::default()
    };
    let app = app(ServerOptions {
        limits,
        ..ServerOptions::default()
    });
    let (sender, first) = unfinished(b"{".to_vec());
    let mut first = std::pin::pin!(send(&app, first));
    assert!(first.as_mut().now_or_never().is_none(), "its body has not ended");
    for path in ["/v1/completions", "/v1/messages/count_tokens", "/apply-template"] {
        let (status, headers, _) = post(&app, path, json!({"prompt": "banana", "max_tokens": 1})).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{path}");
        assert_eq!(headers["retry-after"], "1");
    }
    assert_eq!(get(&app, "/health").await.0, StatusCode::OK);
    drop(sender);
    assert_eq!(first.await.0, StatusCode::BAD_REQUEST);
    let (status, ..) = post(&app, "/v1/completions", json!({"prompt": "banana", "max_tokens": 1})).await;
    assert_eq!(status, StatusCode::OK, "the place is given back");
}

#[tokio::test]
async fn bodies_are_bounded_in_sum() {
    let limits = Limits {
        all_body_bytes: 1000,
        ..Limits::default()
    };
    let app = app(ServerOptions {
        limits,
        ..ServerOptions::default()
    });
    let (sender, first) = unfinished(vec![b' '; 700]);
    let mut first = Box::pin(send(&app, first));
    assert!(first.as_mut().now_or_never().is_none(), "its body has not ended");
    let ask = |length: usize| {
        post(
            &app,
            "/v1/completions",
            json!({"prompt": "x".repeat(length), "max_tokens": 1}),
        )
    };
    assert_eq!(ask(10).await.0, StatusCode::OK);
    let (status, headers, answer) = ask(400).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{answer}");
    assert_eq!(headers["retry-after"], "1");
    drop((first, sender));
    assert_eq!(ask(400).await.0, StatusCode::OK, "the bytes are given back");
}
