//! Events of the cache: a subscriber knows what the cache of the server has.
#![cfg(feature = "kv-events")]

mod common;

use std::collections::HashMap;
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use common::{model, post};
use rocmforge_ggml::CpuBackend;
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions, Limit};
use rocmforge_server::kv_events::{KvEventOptions, KvEvents};
use rocmforge_server::{App, Keys, LoadError, Loaded, ServerOptions, Source};
use serde::Deserialize;
use serde_json::json;
use zeromq::{DealerSocket, Socket, SocketRecv, SocketSend, SubSocket, ZmqMessage};

/// Longest wait for a message that must come.
const WAIT: Duration = Duration::from_secs(60);
const BLOCK: usize = 4;
/// Blocks of the cache.
const CACHE: usize = 16;
const TOPIC: &str = "kv@pod@tiny";

/// The small model, whose events go out.
#[derive(Clone)]
struct Followed(KvEvents);

impl Source for Followed {
    fn load(&self) -> Result<Loaded, LoadError> {
        let (model, events) = (model(), self.0.clone());
        let options = EngineOptions {
            block_size: BLOCK,
            cache_tokens: Limit::Tokens(CACHE * BLOCK),
            max_context: Limit::Tokens(CACHE * BLOCK),
            max_sequences: 1,
            ..EngineOptions::default()
        };
        let server = Server::start(ServeOptions::default(), move || {
            let mut engine = Engine::new(CpuBackend::with_threads(1), &model, options)?;
            engine.listen_to_cache(events.listener());
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        Ok(Loaded::new(server))
    }
}

fn events() -> KvEvents {
    let any = ([127, 0, 0, 1], 0).into();
    let options = KvEventOptions {
        listen: any,
        replay: Some(any),
        topic: TOPIC.to_owned(),
    };
    KvEvents::start(&options).expect("free ports")
}

fn app(events: &KvEvents, options: ServerOptions) -> App {
    let source: Box<dyn Source> = Box::new(Followed(events.clone()));
    App::new(options, [("tiny".to_owned(), source)]).expect("the options make sense")
}

/// An event as vLLM writes it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Event {
    Stored(String, Vec<u64>, Option<u64>, Vec<u32>, usize, Option<u64>, String),
    Removed(String, Vec<u64>, String),
    Cleared((String,)),
}

/// Blocks that a router believes to be there, with the tokens of their prefixes.
#[derive(Default)]
struct Router {
    prefixes: HashMap<u64, Vec<u32>>,
    removed: usize,
    cleared: usize,
}

impl Router {
    fn read(&mut self, payload: &[u8]) {
        let (seconds, events, rank): (f64, Vec<Event>, u32) = rmp_serde::from_slice(payload).expect("a batch");
        assert!(seconds > 1.7e9 && rank == 0 && !events.is_empty());
        for event in events {
            match event {
                Event::Stored(name, hashes, parent, tokens, size, None, medium) => {
                    assert_eq!((&name[..], &medium[..], size), ("BlockStored", "GPU", BLOCK));
                    assert_eq!(tokens.len(), hashes.len() * size);
                    let mut prefix = parent.map_or(Vec::new(), |parent| self.prefixes[&parent].clone());
                    for (hash, block) in hashes.into_iter().zip(tokens.chunks(size)) {
                        prefix.extend_from_slice(block);
                        assert_eq!(self.prefixes.insert(hash, prefix.clone()), None);
                    }
                }
                Event::Removed(name, hashes, medium) => {
                    assert_eq!((&name[..], &medium[..]), ("BlockRemoved", "GPU"));
                    for hash in hashes {
                        assert!(self.prefixes.remove(&hash).is_some());
                        self.removed += 1;
                    }
                }
                Event::Cleared((name,)) => {
                    assert_eq!(name, "AllBlocksCleared");
                    self.prefixes.clear();
                    self.cleared += 1;
                }
                event @ Event::Stored(..) => panic!("{event:?}"),
            }
        }
    }
}

async fn receive(socket: &mut impl SocketRecv) -> Vec<Bytes> {
    let message = tokio::time::timeout(WAIT, socket.recv()).await;
    message.expect("it comes").expect("the socket lives").into_vec()
}

/// All messages from a number on, by the socket that repeats them.
async fn replay(events: &KvEvents, first: u64) -> Vec<(u64, Bytes)> {
    let mut socket = DealerSocket::new();
    let address = events.replay().expect("it was asked for");
    socket.connect(&format!("tcp://{address}")).await.expect("it listens");
    let mut request = ZmqMessage::from(Bytes::new());
    request.push_back(Bytes::copy_from_slice(&first.to_be_bytes()));
    socket.send(request).await.expect("it takes it");
    let mut messages = Vec::new();
    loop {
        let [empty, number, payload] = <[Bytes; 3]>::try_from(receive(&mut socket).await).expect("three parts");
        assert!(empty.is_empty());
        let number = u64::from_be_bytes(number[..].try_into().expect("eight bytes"));
        if number == u64::MAX {
            assert!(payload.is_empty());
            return messages;
        }
        messages.push((number, payload));
    }
}

async fn complete(app: &App, prompt: &[u32]) {
    let body = json!({"model": "tiny", "prompt": prompt, "max_tokens": 1, "ignore_eos": true});
    let (status, _, answer) = post(app, "/v1/completions", body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

fn prompt(first: u32) -> Vec<u32> {
    (0..21).map(|place| 3 + (first + place * 7) % 200).collect()
}

#[tokio::test]
async fn a_subscriber_knows_the_cache() {
    let events = events();
    let app = app(&events, ServerOptions::default());
    let mut socket = SubSocket::new();
    let address = format!("tcp://{}", events.listen());
    socket.connect(&address).await.expect("it listens");
    socket.subscribe("kv@").await.expect("it takes it");
    // Who subscribes gets what comes from then on, so ask until something comes.
    let mut asked = 0;
    let first = loop {
        complete(&app, &prompt(asked)).await;
        asked += 1;
        assert!(asked < 100, "nothing comes");
        if let Ok(message) = tokio::time::timeout(Duration::from_millis(100), socket.recv()).await {
            break message.expect("the socket lives").into_vec();
        }
    };
    let [topic, number, payload] = <[Bytes; 3]>::try_from(first).expect("three parts");
    assert_eq!(topic, TOPIC);
    let number = u64::from_be_bytes(number[..].try_into().expect("eight bytes"));
    for more in 0..8 {
        complete(&app, &prompt(1000 + more)).await;
    }
    let last = prompt(1007);
    // What was missed is repeated, with the same numbers and bytes, from the first on.
    let messages = loop {
        let messages = replay(&events, 0).await;
        let mut router = Router::default();
        messages.iter().for_each(|(_, payload)| router.read(payload));
        if router
            .prefixes
            .values()
            .any(|prefix| last.starts_with(prefix) && prefix.len() == 20)
        {
            assert!(router.prefixes.len() <= CACHE && router.removed > 0 && router.cleared == 1);
            break messages;
        }
    };
    assert!(messages.iter().map(|(number, _)| *number).eq(0..messages.len() as u64));
    assert_eq!(messages[number as usize].1, payload);
    for (expected, payload) in &messages[number as usize + 1..] {
        let parts = receive(&mut socket).await;
        assert_eq!((&parts[1][..], &parts[2]), (&expected.to_be_bytes()[..], payload));
    }
    let since = replay(&events, 3).await;
    assert_eq!(since[..messages.len() - 3], messages[3..]);

    // The cache ends with the engine.
    drop(app);
    loop {
        let messages = replay(&events, 0).await;
        let mut router = Router::default();
        messages.iter().for_each(|(_, payload)| router.read(payload));
        if router.cleared == 2 {
            assert!(router.prefixes.is_empty());
            break;
        }
    }
}

#[tokio::test]
async fn what_the_owner_of_a_key_asks_is_not_published() {
    let events = events();
    let keys = Keys::parse("one:0123456789abcdef0123").expect("a key");
    let options = ServerOptions {
        keys,
        ..ServerOptions::default()
    };
    let app = app(&events, options);
    let body = json!({"model": "tiny", "prompt": prompt(1), "max_tokens": 1});
    let asked = common::request("POST", "/v1/completions").header("content-type", "application/json");
    let asked = asked.header("authorization", "Bearer 0123456789abcdef0123");
    let asked = asked.body(axum::body::Body::from(body.to_string())).expect("a request");
    assert_eq!(common::send(&app, asked).await.0, StatusCode::OK);
    drop(app);
    loop {
        let messages = replay(&events, 0).await;
        let mut router = Router::default();
        for (_, payload) in &messages {
            router.read(payload);
            assert!(router.prefixes.is_empty());
        }
        if router.cleared == 2 {
            break;
        }
    }
}

#[tokio::test]
async fn nonsense_does_not_stop_the_sockets() {
    let events = events();
    let address = events.replay().expect("it was asked for");
    let mut socket = DealerSocket::new();
    socket.connect(&format!("tcp://{address}")).await.expect("it listens");
    for parts in [
        vec![""],
        vec!["", "short"],
        vec!["", "12345678", "more"],
        vec!["a", "b", "c", "d"],
    ] {
        let parts: Vec<Bytes> = parts.into_iter().map(Bytes::from).collect();
        socket
            .send(parts.try_into().expect("not empty"))
            .await
            .expect("it takes it");
    }
    let mut raw = tokio::net::TcpStream::connect(address).await.expect("it listens");
    tokio::io::AsyncWriteExt::write_all(&mut raw, b"GET / HTTP/1.1\r\n\r\n")
        .await
        .expect("sent");
    drop(events.listener());
    let messages = replay(&events, 0).await;
    assert!(messages.len() <= 2, "{messages:?}");
    assert!(replay(&events, u64::MAX).await.is_empty());
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let options = KvEventOptions {
        listen: taken.local_addr().expect("bound"),
        replay: None,
        topic: String::new(),
    };
    let error = KvEvents::start(&options).expect_err("taken").to_string();
    assert!(error.contains("cannot listen on 127.0.0.1:"), "{error}");
}
