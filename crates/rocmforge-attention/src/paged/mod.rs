//! Paged KV cache: the host's bookkeeping of a cache that is cut into blocks of equal size.
//!
//! The keys and values of all sequences lie in pools of `blocks * block_size` slots: a pool for all layers that keep the same tokens. A slot
//! holds the K and V of one token, in each of these layers. A sequence owns no contiguous memory: its block table in a pool names its blocks
//! in order, and its token at position `i` lies in slot `table[i / block_size] * block_size + i % block_size`. This module says which slot a
//! token goes to; it never sees K or V.
//!
//! * [`BlockAllocator`] counts the references to each block, and finds blocks again by the hash of what they hold.
//! * [`BlockTable`] is one sequence in one pool: its blocks, and its length.
//! * [`PagedKv`] is the pools with their sequences: add, append, fork, truncate, remove, defragment. Their [`Token`]s are ids, or what a caller
//!   puts in place of them.
//!
//! ```
//! use rocmforge_attention::paged::{Keep, PagedKv, PagedKvConfig, PoolConfig, PrefixKey};
//!
//! let all = PoolConfig { blocks: 4, keep: Keep::All };
//! let mut kv = PagedKv::new(PagedKvConfig { block_size: 2, pools: vec![all], states: None })?;
//! let (key, prompt) = (PrefixKey::default(), [10, 11, 12, 13, 14]);
//! let first = kv.add_sequence(&key, &prompt)?;
//! assert_eq!(first.cached_tokens, 0);
//! assert_eq!(kv.append(first.id, &prompt)?[0].slots, [0, 1, 2, 3, 4]);
//! kv.mark_written(first.id)?; // the forward pass that fills the slots has been enqueued
//! kv.remove(first.id)?;
//!
//! // The same prompt again: two full blocks are still there, so only the last token is computed.
//! let second = kv.add_sequence(&key, &prompt)?;
//! assert_eq!(second.cached_tokens, 4);
//! assert_eq!(kv.append(second.id, &prompt[second.cached_tokens..])?[0].slots.len(), 1);
//! # Ok::<(), rocmforge_attention::paged::PagedKvError>(())
//! ```
//!
//! # Order of the device's work
//!
//! Slots are reused as soon as they are released, so the device must see the work in the order of the calls: one stream, or one stream
//! waiting for the other. For one append that means its copies, then the writes to its slots. Within one step, the copies of several
//! appends may go first, all in order, and then all writes, as long as no fork, truncate or remove lies between those appends.
//!
//! # Windows
//!
//! Layers whose tokens see a window keep the blocks that later tokens see ([`Keep::Window`]), in a pool of their own; so do those whose tokens see
//! the tokens of a chunk ([`Keep::Chunk`]). Blocks before those are released when a step has been written. They stay findable like others; a prefix counts as cached if every pool has what the token after it sees.
//! A sequence can be truncated to any length of which each pool has that, or else becomes shorter: as long as the longest prefix that is cached.
//!
//! # States
//!
//! Recurrent layers keep one state for a sequence, in a slot of a pool of slots ([`StateSlots`]). A step reads one slot and writes another, which is the
//! sequence's from [`PagedKv::mark_written`] on. States at ends of blocks are checkpoints, found like blocks: a prefix counts as cached if it ends at
//! one, and a truncated sequence goes back to one.
//!
//! # A smaller cache
//!
//! Attention reads a block at a time, so it does not matter which blocks a sequence has. To give memory back, [`PagedKv::defragment`] names moves that
//! leave the highest blocks free, and [`PagedKv::shrink`] takes those from the pool:
//!
//! ```
//! # use rocmforge_attention::paged::{BlockCopy, Keep, PagedKv, PagedKvConfig, PoolConfig, PrefixKey};
//! # let key = PrefixKey::default();
//! # let all = PoolConfig { blocks: 4, keep: Keep::All };
//! # let mut kv = PagedKv::new(PagedKvConfig { block_size: 2, pools: vec![all], states: None })?;
//! let [first, second] = [kv.add_sequence(&key, &[1, 2])?, kv.add_sequence(&key, &[3, 4])?];
//! kv.append(first.id, &[1, 2])?;
//! kv.append(second.id, &[3, 4])?;
//! kv.remove(first.id)?;
//! let plan = &kv.defragment()[0];
//! assert_eq!(plan.moves, [BlockCopy { from: 1, to: 0 }]); // the caller's to make
//! kv.shrink(0, plan.end)?;
//! assert_eq!((kv.tables(second.id)?[0].blocks(), kv.counts().blocks), (&[0][..], 1));
//! # Ok::<(), rocmforge_attention::paged::PagedKvError>(())
//! ```
//!
//! # Prefix cache
//!
//! A full block whose K and V have been written can be shared by any later sequence that begins with the same tokens. It is found by
//! `SHA-256(hash of the block before it, its tokens)`, so the hash stands for the whole prefix. Before the first block stands the sequence's
//! [`PrefixKey`]: adapter, and salt of a tenant. After its last release a block keeps
//! its content and its hash until the pool needs it for something else; the block released longest ago goes first, and of one sequence
//! the last block, because a block is of no use without those before it.
//!
//! # Events
//!
//! [`PagedKv::record_events`] notes which blocks can be found, with their tokens ([`CacheEvent`]): a router in front of several servers sends a prompt to
//! the one that has most of it.

mod allocator;
mod defragment;
mod error;
mod events;
mod kv;
mod pool;
mod prefix_key;
mod sequence_id;
mod states;
mod table;

pub use allocator::BlockAllocator;
pub use defragment::Defragmented;
pub use error::PagedKvError;
pub use events::CacheEvent;
pub use kv::{Added, Appended, BlockCopy, CacheCounts, PagedKv, PagedKvConfig};
pub use pool::{BlockCounts, Keep, PoolConfig};
pub use prefix_key::{BlockHash, PrefixKey, Token};
pub use sequence_id::SequenceId;
pub use states::StateSlots;
pub use table::{BlockTable, blocks_for};
