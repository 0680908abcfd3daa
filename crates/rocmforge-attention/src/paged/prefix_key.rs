//! Keys of prefixes, and tokens: what decides the content of a sequence's blocks.

use sha2::{Digest, Sha256};

use super::BlockHash;

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
