//! Options of a server: where it listens, who may ask, and how much.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::keys::Keys;
use crate::tls::Tls;

/// How a server is set up. The default listens on 127.0.0.1 and takes requests of this machine only.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who may ask. An address that other machines reach needs keys, unless `allow_without_keys` is set.
    pub keys: Keys,
    /// Keys that may do all that others may, and may also ask the routes for admins: `/slots` and `POST /admin/reload`.
    pub admin_keys: Keys,
    /// The certificate with which it speaks HTTPS only; `None`: HTTP only.
    pub tls: Option<Tls>,
    /// Serves other machines without keys.
    pub allow_without_keys: bool,
    /// Names in the `Host` header that are taken beside `localhost` and the addresses of this machine.
    pub hosts: Vec<String>,
    /// Origins of web pages elsewhere that may ask, such as `https://chat.example.org`.
    pub origins: Vec<String>,
    /// Most models that are loaded at a time; the one that was not used for the longest time goes first.
    pub max_models: usize,
    /// How long a model stays loaded after its last request; `None`: until another needs its place.
    pub keep_alive: Option<Duration>,
    /// Fields that requests have unless they say otherwise, such as `{"temperature": 0.2}`.
    pub defaults: Map<String, Value>,
    /// Shows `/metrics`: sums over all requests, to all who may ask.
    pub metrics: bool,
    /// Shows the page at `/`.
    pub page: bool,
    /// Shows `GET /props`: a model's template and the settings of requests that name none, to all who may ask.
    pub props: bool,
    /// Shows `/slots`: how many requests run. Where there are keys, an admin's is asked for.
    pub slots: bool,
    /// How much a request may ask for.
    pub limits: Limits,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            keys: Keys::default(),
            admin_keys: Keys::default(),
            tls: None,
            allow_without_keys: false,
            hosts: Vec::new(),
            origins: Vec::new(),
            max_models: 1,
            keep_alive: None,
            defaults: Map::new(),
            metrics: true,
            page: true,
            props: true,
            slots: false,
            limits: Limits::default(),
        }
    }
}

/// How much connections and requests may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// POSTs that are open at a time, from before their bodies are read until their answers have ended; owners of keys share them. Each answer of a
    /// request beyond the first counts as one more.
    pub requests: usize,
    /// Connections at a time. Further ones wait.
    pub connections: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of the bodies of all open requests together.
    pub all_body_bytes: usize,
    /// Time for the TLS handshake of a connection, which counts among the connections meanwhile.
    pub handshake_time: Duration,
    /// Time for the head of a request, and for its body.
    pub read_time: Duration,
    /// Time that a client may take to read the next part of its answer.
    pub write_time: Duration,
    /// Time that requests wait while one model is loaded. A load that takes longer goes on, and its requests get an error.
    pub load_time: Duration,
    /// Time for an answer, from when its model is loaded.
    pub answer_time: Duration,
    /// Answers to one request: its prompts, each with so many answers (`n`).
    pub choices: usize,
    /// Texts of one request for embeddings, and documents of one for scores.
    pub inputs: usize,
    /// Tokens of all of them together.
    pub input_tokens: usize,
    /// Most likely tokens that are reported with each (`top_logprobs`).
    pub logprobs: usize,
    /// Texts that end an answer.
    pub stops: usize,
    /// Bytes of each of them.
    pub stop_bytes: usize,
    /// Entries of `logit_bias`.
    pub biases: usize,
    /// Events of an answer that may wait for a client that reads slowly. If more wait, the answer ends with an error.
    pub waiting_events: usize,
    /// Time that running answers have when the server ends.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: 256,
            connections: 512,
            body_bytes: 16 << 20,
            all_body_bytes: 128 << 20,
            handshake_time: Duration::from_secs(10),
            read_time: Duration::from_secs(30),
            write_time: Duration::from_secs(60),
            load_time: Duration::from_secs(1800),
            answer_time: Duration::from_secs(3600),
            choices: 16,
            inputs: 2048,
            input_tokens: 300_000,
            logprobs: 20,
            stops: 16,
            stop_bytes: 1024,
            biases: 1024,
            waiting_events: 4096,
            drain_time: Duration::from_secs(60),
        }
    }
}
