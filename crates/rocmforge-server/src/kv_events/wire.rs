//! Wire format of vLLM's events: MessagePack, each event an array that begins with its name.

use std::time::SystemTime;

use bytes::Bytes;
use rocmforge_models::{BlockHash, CacheEvent};
use serde::{Serialize, Serializer};

/// Where blocks are, in the words of routers: the memory that the model computes with.
const MEDIUM: &str = "GPU";
/// Number of an engine among those that share requests (data parallel): there is one.
const RANK: u32 = 0;

fn names(hashes: &[BlockHash]) -> Vec<u64> {
    hashes.iter().map(|hash| hash.low_64()).collect()
}

struct Event<'a>(&'a CacheEvent);

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            CacheEvent::Stored { parent, hashes, tokens } => {
                let parent = parent.map(BlockHash::low_64);
                let block_size = tokens.len() / hashes.len().max(1);
                // The last two: number of an adapter, medium.
                let fields = (
                    "BlockStored",
                    names(hashes),
                    parent,
                    tokens,
                    block_size,
                    None::<u64>,
                    MEDIUM,
                );
                fields.serialize(serializer)
            }
            CacheEvent::Removed(hashes) => ("BlockRemoved", names(hashes), MEDIUM).serialize(serializer),
            CacheEvent::Cleared => ("AllBlocksCleared",).serialize(serializer),
        }
    }
}

/// A batch: time in seconds, events, rank.
pub(super) fn batch(events: &[CacheEvent]) -> Result<Bytes, rmp_serde::encode::Error> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seconds = now.map_or(0.0, |time| time.as_secs_f64());
    let events: Vec<Event<'_>> = events.iter().map(Event).collect();
    Ok(rmp_serde::to_vec(&(seconds, events, RANK))?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_bytes_of_vllm() {
        let stored = CacheEvent::Stored {
            parent: None,
            hashes: vec![BlockHash::new(None, &[1_u32, 2])],
            tokens: vec![1, 2],
        };
        let bytes = batch(&[stored, CacheEvent::Cleared]).expect("it is written");
        let name = BlockHash::new(None, &[1_u32, 2]).low_64();
        let mut expected = vec![0x93, 0xcb];
        // The time.
        expected.extend(&bytes[2..10]);
        expected.extend([0x92, 0x97, 0xab]);
        expected.extend(b"BlockStored");
        expected.extend([0x91, 0xcf]);
        expected.extend(name.to_be_bytes());
        expected.extend([0xc0, 0x92, 1, 2, 2, 0xc0, 0xa3]);
        expected.extend(b"GPU");
        expected.extend([0x91, 0xb0]);
        expected.extend(b"AllBlocksCleared");
        expected.push(0);
        assert_eq!(bytes, expected);
    }
}
