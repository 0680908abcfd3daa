//! Addresses that clients name in requests: the server fetches none of them.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};

use axum::http::StatusCode;
use rocmforge_server::ServerOptions;
use serde_json::{Value, json};

use crate::common::{app, post};

/// Requests that name an address wherever an API has a place for one.
fn requests(url: &str) -> Vec<(&'static str, Value)> {
    let user = |part: Value| json!([{"role": "user", "content": [part]}]);
    let mut requests = Vec::new();
    for part in [
        json!({"type": "image_url", "image_url": {"url": url}}),
        json!({"type": "image_url", "image_url": url}),
        json!({"type": "video_url", "video_url": {"url": url}}),
        json!({"type": "audio_url", "audio_url": {"url": url}}),
        json!({"type": "input_audio", "input_audio": {"data": url, "format": "wav"}}),
        json!({"type": "file", "file": {"file_id": url}}),
    ] {
        let body = json!({"model": "tiny", "messages": user(part), "max_tokens": 1});
        requests.push(("/v1/chat/completions", body.clone()));
        requests.push(("/apply-template", body));
    }
    for part in [
        json!({"type": "input_image", "image_url": url}),
        json!({"type": "input_file", "file_url": url}),
    ] {
        requests.push(("/v1/responses", json!({"model": "tiny", "input": user(part)})));
    }
    for kind in ["image", "document"] {
        let part = json!({"type": kind, "source": {"type": "url", "url": url}});
        let body = json!({"model": "tiny", "messages": user(part), "max_tokens": 1});
        requests.push(("/v1/messages", body));
    }
    let message = json!([{"role": "user", "content": "a", "images": [url]}]);
    requests.push(("/api/chat", json!({"model": "tiny", "messages": message})));
    requests.push((
        "/api/generate",
        json!({"model": "tiny", "prompt": "a", "images": [url]}),
    ));
    let prompt = json!({"prompt_string": "a", "multimodal_data": [url]});
    requests.push(("/completion", json!({"prompt": prompt})));
    requests.push((
        "/completion",
        json!({"prompt": "a", "image_data": [{"id": 1, "data": url}]}),
    ));
    requests
}

#[tokio::test]
async fn an_address_of_this_machine_in_a_request_is_not_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("bound");
    let app = app(ServerOptions::default());
    app.load("tiny").await.expect("it loads");
    let port = address.port();
    let mut asked = 0;
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        // Other spellings of the same address.
        format!("2130706433:{port}"),
        format!("0x7f.1:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        "169.254.169.254".to_owned(),
    ] {
        for (path, body) in requests(&format!("http://{host}/latest/meta-data/x.png")) {
            let (status, _, answer) = post(&app, path, body.clone()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path} {body}: {answer}");
            asked += 1;
        }
    }
    assert!(asked >= 100, "{asked}");
    let fetched = listener.accept().map(|(_, peer)| peer);
    assert_eq!(fetched.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    // The listener sees who comes.
    let client = TcpStream::connect(address).expect("it listens");
    let seen = listener.accept().expect("a client").1;
    assert_eq!(seen, client.local_addr().expect("connected"));
}
