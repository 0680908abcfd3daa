//! A connection stays usable after a request whose body no route reads.

mod common;

use common::app;
use rocmforge_server::ServerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Reads an answer with a Content-Length.
async fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split_once("content-length: ").expect("a length").1;
            let length: usize = length.lines().next().expect("a line").parse().expect("a number");
            if body.len() >= length {
                return text;
            }
        }
        assert!(
            stream.read_buf(&mut bytes).await.expect("open") > 0,
            "closed after {text:?}"
        );
    }
}

#[tokio::test]
async fn a_body_that_no_route_reads_does_not_close_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = app(ServerOptions::default());
    tokio::spawn(async move { app.run_on(listener, std::future::pending()).await });
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    for (path, status) in [("/v1/none", "404"), ("/health", "405"), ("/v1/messages", "415")] {
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("open");
        // The answer does not wait for the body, which comes after it.
        let text = answer(&mut stream).await;
        assert!(text.starts_with(&format!("http/1.1 {status}")), "{text}");
        stream.write_all(&[b' '; 1000]).await.expect("open");
    }
    stream
        .write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .expect("open");
    assert!(answer(&mut stream).await.starts_with("http/1.1 200"));
}
