//! Device heap: the blocks that kernels have got from `malloc`, and those that they have given back.

use crate::report::{AllocationInfo, AllocationState};
use rocmforge_amdgcn::{ByteState, GlobalMemory, HeapBlock, WrongFree};
use rocmforge_code_object::Frame;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Blocks that were given back, kept for reports of their use.
const MOST_FREED: usize = 1 << 16;
/// Bytes behind a block that belong to no other one: the interpreter asks the library for as many more.
const BEHIND: u64 = 16;

/// A block.
struct Block {
    size: u64,
    /// Call of the launch that got it.
    call: u64,
    /// Call of the launch that gave it back.
    freed: Option<u64>,
    /// Where it was got.
    site: Arc<Site>,
}

/// A call of `malloc`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) kernel: String,
    pub(crate) frames: Vec<Frame>,
}

/// Blocks of a card by address.
#[derive(Default)]
pub(crate) struct Heap {
    blocks: BTreeMap<u64, Block>,
    freed: usize,
    sites: Vec<Arc<Site>>,
}

/// What all blocks of a launch have in common that one call of `malloc` has given and nobody has given back.
pub(crate) struct Leaked {
    pub(crate) site: Arc<Site>,
    pub(crate) call: u64,
    pub(crate) first: AllocationInfo,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

impl Heap {
    /// A kernel has got a block.
    pub(super) fn allocated(&mut self, memory: &mut GlobalMemory, block: &HeapBlock<'_>, kernel: &str, call: u64) {
        let &HeapBlock { address, size, frames } = block;
        let end = address.saturating_add(size);
        // What a larger block had here before.
        let within: Vec<u64> = self
            .blocks
            .range(address..end.max(address + 1))
            .map(|(at, _)| *at)
            .collect();
        for at in within {
            let before = self.blocks.remove(&at);
            self.freed -= usize::from(before.is_some_and(|before| before.freed.is_some()));
        }
        let next = self.blocks.range(end..).find(|(_, block)| block.freed.is_none());
        let behind = next.map_or(BEHIND, |(next, _)| BEHIND.min(next - end));
        memory.set_state(address, size, ByteState::Uninit);
        memory.set_state(end, behind, ByteState::Unmapped);
        let same = |site: &&Arc<Site>| site.kernel == kernel && site.frames == frames;
        let site = self.sites.iter().find(same).cloned().unwrap_or_else(|| {
            let site = Arc::new(Site {
                kernel: kernel.to_owned(),
                frames: frames.to_vec(),
            });
            self.sites.push(Arc::clone(&site));
            site
        });
        let freed = None;
        self.blocks.insert(
            address,
            Block {
                size,
                call,
                freed,
                site,
            },
        );
    }

    /// A kernel gives a block back.
    pub(super) fn released(&mut self, memory: &mut GlobalMemory, address: u64, call: u64) -> Result<(), WrongFree> {
        let block = self.blocks.get_mut(&address).ok_or(WrongFree::Unknown)?;
        if block.freed.is_some() {
            return Err(WrongFree::Twice);
        }
        block.freed = Some(call);
        memory.set_state(address, block.size, ByteState::Freed);
        self.freed += 1;
        if self.freed > MOST_FREED {
            self.blocks.retain(|_, block| block.freed.is_none());
            self.freed = 0;
        }
        Ok(())
    }

    /// The block that an address lies in, or behind which it lies.
    pub(crate) fn block_at(&self, address: u64) -> Option<AllocationInfo> {
        let (at, block) = self.blocks.range(..=address).next_back()?;
        let near = block.size.saturating_mul(2).max(1 << 12);
        (address - at < near).then(|| info(*at, block))
    }

    /// Blocks that nobody has given back.
    pub(crate) fn leaked(&self) -> Vec<Leaked> {
        let mut leaked: Vec<Leaked> = Vec::new();
        for (at, block) in self.blocks.iter().filter(|(_, block)| block.freed.is_none()) {
            let same = |leaked: &&mut Leaked| leaked.call == block.call && Arc::ptr_eq(&leaked.site, &block.site);
            if let Some(before) = leaked.iter_mut().find(same) {
                before.blocks += 1;
                before.bytes += block.size;
                continue;
            }
            leaked.push(Leaked {
                site: Arc::clone(&block.site),
                call: block.call,
                first: info(*at, block),
                blocks: 1,
                bytes: block.size,
            });
        }
        leaked
    }
}

fn info(address: u64, block: &Block) -> AllocationInfo {
    // The innermost line is that of a function around the library's, if there is one.
    let site = block.site.frames.last();
    AllocationInfo {
        label: Some("block of device malloc".into()),
        site: site.map(|frame| format!("{}:{}", frame.file, frame.line).into()),
        address,
        size: block.size,
        allocated_by: block.call,
        state: block.freed.map_or(AllocationState::Live, AllocationState::Freed),
    }
}
