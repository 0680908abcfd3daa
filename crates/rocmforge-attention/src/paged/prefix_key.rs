//! Keys of prefixes, tokens, and hashes of blocks: what decides the content of a sequence's blocks.

use sha2::{Digest, Sha256};

/// What stands at a place of a sequence: the id of a token, or what a caller puts in place of one.
pub trait Token: Clone {
    /// Adds bytes that no other value has, and that do not begin with those of another.
    fn update(&self, sha: &mut Sha256);

    /// The id, if it is one.
    fn id(&self) -> Option<u32>;
}

impl Token for u32 {
    fn update(&self, sha: &mut Sha256) {
        sha.update(self.to_le_bytes());
    }

    fn id(&self) -> Option<u32> {
        Some(*self)
    }
}

/// Hash of a full block and of all blocks before it in its sequence.
///
/// SHA-256, because two prefixes with one hash would make a sequence read another one's K and V.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockHash(pub(super) [u8; 32]);

impl BlockHash {
    /// The hash of a block that holds `tokens` and follows the block of hash `parent`; a sequence's first block has none.
    pub fn new<T: Token>(parent: Option<Self>, tokens: &[T]) -> Self {
        let mut sha = Sha256::new();
        sha.update(parent.map_or([0; 32], |hash| hash.0));
        tokens.iter().for_each(|token| token.update(&mut sha));
        Self(sha.finalize().into())
    }

    /// Its last 64 bits, a name of the block for other programs.
    pub fn low_64(self) -> u64 {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// What decides the content of a sequence's blocks beside its tokens. Sequences with different keys never share a block or a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PrefixKey {
    /// The adapter whose weights change K and V; empty for none.
    pub adapter: String,
    /// A text of the tenant's: without it, the time that a prompt takes would tell one tenant how the prompts of another begin.
    pub salt: String,
}

impl PrefixKey {
    /// What stands for the block before the first; `None` for the default key.
    pub(super) fn root(&self) -> Option<BlockHash> {
        if *self == Self::default() {
            return None;
        }
        let mut sha = Sha256::new();
        // No hash of a block begins so: it begins with that of another block, or with zeros.
        sha.update([0xff; 32]);
        for part in [&self.adapter, &self.salt] {
            sha.update((part.len() as u64).to_le_bytes());
            sha.update(part);
        }
        Some(BlockHash(sha.finalize().into()))
    }
}
