//! Events of the cache over ZeroMQ, in the format of vLLM: a router in front of several servers sends a prompt to the one that has most of it.
//!
//! [`KvEvents::start`] opens a PUB socket, and a ROUTER socket for those who have missed messages. An engine's events come from
//! [`KvEvents::listener`]. The sockets are not encrypted and ask for no key, and events have the tokens of prompts: they are for an address that the
//! router alone reaches. Only requests without a key of their own are in them ([`CacheEvent`]).

mod history;
mod publisher;
mod wire;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rocmforge_models::CacheEvent;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Most blocks whose events wait for the sockets' thread; more are lost, and said to be.
const WAITING_BLOCKS: usize = 1 << 17;

/// Stack in bytes of the sockets' thread, whatever the environment (`RUST_MIN_STACK`) says.
const STACK: usize = 2 << 20;

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvEventOptions {
    /// Address of the PUB socket; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Address of the ROUTER socket that repeats messages. With `None` nothing repeats them.
    pub replay: Option<SocketAddr>,
    /// The first part of each message, by which subscribers choose.
    pub topic: String,
}

/// Why there are no events.
#[derive(Debug, thiserror::Error)]
#[error("events of the cache: {what}: {error}")]
pub struct KvEventError {
    what: String,
    error: std::io::Error,
}

/// What the sockets' thread gets. Engines have numbers.
enum Command {
    /// An engine begins: those before it have ended, or end soon.
    Begin(u64),
    Events(u64, Vec<CacheEvent>),
    End(u64),
}

/// The sockets of a process. Clones share them; they are closed when all of them, and all listeners, are gone.
#[derive(Clone, Debug)]
pub struct KvEvents {
    commands: UnboundedSender<Command>,
    waiting: Arc<AtomicUsize>,
    engines: Arc<AtomicU64>,
    listen: SocketAddr,
    replay: Option<SocketAddr>,
}

impl KvEvents {
    /// Opens the sockets.
    ///
    /// # Errors
    /// An address cannot be listened on, or the system gives no thread.
    pub fn start(options: &KvEventOptions) -> Result<Self, KvEventError> {
        let failed = |what: String| move |error| KvEventError { what, error };
        let bind = |address: SocketAddr| {
            let listener = TcpListener::bind(address).map_err(failed(format!("cannot listen on {address}")))?;
            let bound = listener.local_addr().map_err(failed(address.to_string()))?;
            Ok((listener, bound))
        };
        let (listener, listen) = bind(options.listen)?;
        let replay = options.replay.map(bind).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed("no runtime".to_owned()))?;
        let (commands, received) = unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (topic, counter) = (options.topic.clone(), Arc::clone(&waiting));
        let (replay, replays) = replay.unzip();
        let run = move || {
            let done = runtime.block_on(publisher::run(listener, replay, topic, received, &counter));
            if let Err(error) = done {
                tracing::error!(%error, "events of the cache are sent no more");
            }
        };
        let thread = std::thread::Builder::new()
            .name("kv-events".to_owned())
            .stack_size(STACK)
            .spawn(run);
        thread.map_err(failed("no thread".to_owned()))?;
        Ok(Self {
            commands,
            waiting,
            engines: Arc::default(),
            listen,
            replay: replays,
        })
    }

    /// Address of the PUB socket.
    #[must_use]
    pub const fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Address of the ROUTER socket.
    #[must_use]
    pub const fn replay(&self) -> Option<SocketAddr> {
        self.replay
    }

    /// What an engine tells its events to (`Engine::listen_to_cache`). Subscribers hear that all is cleared when it is made and when it is dropped. Events
    /// of engines before it are sent no more: the sockets are those of one model.
    pub fn listener(&self) -> impl FnMut(Vec<CacheEvent>) -> bool + Send + use<> {
        let engine = EngineEvents {
            events: self.clone(),
            number: self.engines.fetch_add(1, Ordering::SeqCst) + 1,
        };
        engine.send(Command::Begin(engine.number));
        move |events| engine.take(events)
    }
}

/// Blocks of events.
fn blocks(events: &[CacheEvent]) -> usize {
    let blocks = events.iter().map(|event| match event {
        CacheEvent::Stored { hashes, .. } | CacheEvent::Removed(hashes) => hashes.len(),
        CacheEvent::Cleared => 1,
    });
    blocks.sum()
}

/// The events of one engine.
struct EngineEvents {
    events: KvEvents,
    number: u64,
}

impl EngineEvents {
    fn send(&self, command: Command) {
        // The thread has ended only if its socket failed, which the log has.
        let _ = self.events.commands.send(command);
    }

    fn take(&self, events: Vec<CacheEvent>) -> bool {
        let blocks = blocks(&events);
        let waiting = self.events.waiting.fetch_add(blocks, Ordering::SeqCst);
        if waiting > 0 && waiting + blocks > WAITING_BLOCKS {
            self.events.waiting.fetch_sub(blocks, Ordering::SeqCst);
            return false;
        }
        self.send(Command::Events(self.number, events));
        true
    }
}

impl Drop for EngineEvents {
    fn drop(&mut self) {
        self.send(Command::End(self.number));
    }
}
