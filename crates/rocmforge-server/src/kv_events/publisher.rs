//! Publisher: the sockets' thread. Numbers the messages, sends them, and repeats those that somebody asks for.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rocmforge_models::CacheEvent;
use tokio::sync::mpsc::UnboundedReceiver;
use zeromq::{PubSocket, RouterSocket, Socket, SocketRecv, SocketSend, ZmqMessage, ZmqResult};

use super::history::History;
use super::{Command, blocks, wire};

/// The number of the message that ends a repetition: -1.
const END: [u8; 8] = [0xff; 8];
/// Time for one repetition. Others wait for it.
const REPLAY_TIME: Duration = Duration::from_secs(10);

type Shared = Arc<Mutex<History>>;

/// Sends events until nobody can give any.
pub(super) async fn run(
    listener: TcpListener,
    replay: Option<TcpListener>,
    topic: String,
    mut commands: UnboundedReceiver<Command>,
    waiting: &AtomicUsize,
) -> ZmqResult<()> {
    let mut socket = PubSocket::new();
    socket.bind_listener(listener).await?;
    let history = Shared::default();
    let mut replays = None;
    if let Some(replay) = replay {
        let mut socket = RouterSocket::new();
        socket.bind_listener(replay).await?;
        replays = Some(tokio::spawn(repeat(socket, Arc::clone(&history))));
    }
    let topic = Bytes::from(topic);
    let mut current = 0;
    while let Some(command) = commands.recv().await {
        let events = match command {
            Command::Begin(engine) => {
                // Two may begin at the same time, in any order.
                current = engine.max(current);
                vec![CacheEvent::Cleared]
            }
            Command::Events(engine, events) => {
                waiting.fetch_sub(blocks(&events), Ordering::SeqCst);
                if engine != current {
                    continue;
                }
                events
            }
            Command::End(engine) if engine == current => vec![CacheEvent::Cleared],
            Command::End(_) => continue,
        };
        match wire::batch(&events) {
            Ok(payload) => {
                let number = history
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(payload.clone());
                socket
                    .send(message(topic.clone(), [number_bytes(number), payload]))
                    .await?;
            }
            Err(error) => tracing::error!(%error, "events of the cache cannot be written"),
        }
    }
    if let Some(replays) = replays {
        replays.abort();
    }
    Ok(())
}

fn number_bytes(number: u64) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

fn message<const N: usize>(first: Bytes, rest: [Bytes; N]) -> ZmqMessage {
    let mut message = ZmqMessage::from(first);
    rest.into_iter().for_each(|part| message.push_back(part));
    message
}

/// Answers requests: `[empty, number of the first message that is wanted]`.
async fn repeat(mut socket: RouterSocket, history: Shared) {
    loop {
        let request = match socket.recv().await {
            Ok(request) => request.into_vec(),
            Err(error) => {
                tracing::error!(%error, "events of the cache are repeated no more");
                return;
            }
        };
        let [peer, empty, first] = &request[..] else {
            continue;
        };
        let Ok(first) = <[u8; 8]>::try_from(&first[..]) else {
            continue;
        };
        let messages = history
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .since(u64::from_be_bytes(first));
        let answer = async {
            for (number, payload) in messages {
                socket
                    .send(message(peer.clone(), [empty.clone(), number_bytes(number), payload]))
                    .await?;
            }
            let end = Bytes::from_static(&END);
            socket
                .send(message(peer.clone(), [empty.clone(), end, Bytes::new()]))
                .await
        };
        // Who reads slowly, or is gone, asks again.
        if !matches!(tokio::time::timeout(REPLAY_TIME, answer).await, Ok(Ok(()))) {
            tracing::warn!("events of the cache were not repeated whole: nobody reads them");
        }
    }
}
