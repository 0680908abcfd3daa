//! Check of our cache events by another program's router: dynamo-kv-router decodes the events of a running server, and must know from them alone
//! how much of a prompt the server has.
//!
//! `kv-events-check EVENTS SERVER MODEL`, such as `tcp://127.0.0.1:5557 127.0.0.1:8080 smollm2`.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use dynamo_kv_router::RadixTree;
use dynamo_kv_router::protocols::{BlockHashOptions, WorkerWithDpRank, compute_block_hash_for_seq};
use dynamo_kv_router::zmq_wire::{RawKvEvent, ZmqEventNormalizer, decode_event_batch};
use zeromq::{Socket, SocketRecv, SubSocket};

/// Tokens of a block of `rocmforge serve`.
const BLOCK: usize = 16;
const WORKER: u64 = 7;

/// Asks for one token after a prompt.
fn complete(server: &str, model: &str, prompt: &[u32]) -> Result<(), Box<dyn Error>> {
    let body = serde_json::json!({"model": model, "prompt": prompt, "max_tokens": 1, "ignore_eos": true}).to_string();
    let mut stream = TcpStream::connect(server)?;
    write!(
        stream,
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200") {
        true => Ok(()),
        false => Err(answer.into()),
    }
}

fn prompt(first: u32, length: usize) -> Vec<u32> {
    (0..length as u32)
        .map(|place| 20 + (first * 31 + place * 7) % 200)
        .collect()
}

/// The router: the events that it has read, and how much of a prompt it believes to be there.
struct Router {
    tree: RadixTree,
    normalizer: ZmqEventNormalizer,
    counts: [usize; 3],
}

impl Router {
    fn read(&mut self, number: u64, payload: &[u8]) -> Result<(), Box<dyn Error>> {
        let batch = decode_event_batch(payload)?;
        if batch.data_parallel_rank != Some(0) {
            return Err("another rank".into());
        }
        for event in batch.events {
            let (kind, cleared) = match &event {
                RawKvEvent::BlockStored { .. } => (0, false),
                RawKvEvent::BlockRemoved { .. } => (1, false),
                RawKvEvent::AllBlocksCleared { .. } => (2, true),
                RawKvEvent::Ignored => return Err("an event is ignored".into()),
            };
            self.counts[kind] += 1;
            let placed = self
                .normalizer
                .normalize(event, number, WorkerWithDpRank::new(WORKER, 0));
            let event = placed.and_then(|placed| placed.into_router_event());
            let event = event.ok_or("the router takes an event for none of its worker's")?;
            // A worker that has nothing need not be known.
            if let Err(error) = self.tree.apply_event(event)
                && !cleared
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn blocks_of(&self, prompt: &[u32]) -> u32 {
        let hashes = compute_block_hash_for_seq(prompt, BLOCK as u32, BlockHashOptions::default());
        let scores = self.tree.find_matches(hashes, false).scores;
        scores.get(&WorkerWithDpRank::new(WORKER, 0)).copied().unwrap_or(0)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [events, server, model] = &args[..] else {
        return Err("usage: kv-events-check EVENTS SERVER MODEL".into());
    };
    let mut socket = SubSocket::new();
    socket.connect(events).await?;
    socket.subscribe("kv@").await?;
    let mut router = Router {
        tree: RadixTree::new(),
        normalizer: ZmqEventNormalizer::new(BLOCK as u32),
        counts: [0; 3],
    };
    // Messages from before the subscription are not sent: ask until something comes.
    let mut asked = 0;
    let mut next = None;
    let mut receive = async |router: &mut Router, patience: Duration| -> Result<bool, Box<dyn Error>> {
        let Ok(message) = tokio::time::timeout(patience, socket.recv()).await else {
            return Ok(false);
        };
        let message = message?.into_vec();
        let [_, number, payload] = &message[..] else {
            return Err("a message has three parts".into());
        };
        let number = u64::from_be_bytes(number[..].try_into()?);
        if next.is_some_and(|next| next != number) {
            return Err(format!("message {number} is not the next").into());
        }
        next = Some(number + 1);
        router.read(number, payload)?;
        Ok(true)
    };
    loop {
        asked += 1;
        complete(server, model, &prompt(asked, 100))?;
        if receive(&mut router, Duration::from_millis(500)).await? {
            break;
        }
        if asked == 40 {
            return Err("no event comes".into());
        }
    }
    // From here on each prompt is known when its last event has come.
    for number in 100..130 {
        let prompt = prompt(number, 100 + number as usize);
        complete(server, model, &prompt)?;
        let whole = (prompt.len() / BLOCK) as u32;
        while router.blocks_of(&prompt) < whole {
            if !receive(&mut router, Duration::from_secs(20)).await? {
                return Err(format!("the router knows {} of {whole} blocks", router.blocks_of(&prompt)).into());
            }
        }
        let mut other = prompt.clone();
        other[BLOCK * 3] += 1;
        if router.blocks_of(&other) != 3 {
            return Err("the router sends another prompt here, too".into());
        }
    }
    let [stored, removed, cleared] = router.counts;
    println!(
        "30 prompts passed: the router knew the blocks of each; {stored} stored, {removed} removed, {cleared} cleared"
    );
    if removed == 0 {
        println!("the cache was too large for a removal: start the server with a smaller one");
    }
    Ok(())
}
