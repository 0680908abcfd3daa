//! Operations of streams: their kind, and what they touch.

use crate::core::Core;
use crate::core::stream_shared::Uses;
use crate::module::HipKernel;
use crate::pinned_range::PinnedRange;
use crate::root::Root;
use parking_lot::Mutex;
use std::sync::Arc;

/// Something whose uses are tracked.
#[derive(Clone, Copy)]
pub(crate) enum Touched<'a> {
    Memory(&'a Arc<Root>),
    Pinned(&'a Arc<PinnedRange>),
    /// An executable graph: its replays come one after the other.
    Exec(&'a ExecShared),
}

impl<'a> Touched<'a> {
    pub(crate) fn id(self) -> u64 {
        match self {
            Self::Memory(root) => root.id,
            Self::Pinned(range) => range.id,
            Self::Exec(exec) => exec.id,
        }
    }

    pub(crate) fn core(self) -> &'a Arc<Core> {
        match self {
            Self::Memory(root) => &root.core,
            Self::Pinned(range) => &range.core,
            Self::Exec(exec) => &exec.core,
        }
    }

    pub(crate) fn describe(self) -> String {
        match self {
            Self::Memory(root) => format!("buffer {:?}", root.label()),
            Self::Pinned(_) => "pinned memory".to_owned(),
            Self::Exec(exec) => format!("graph {:?}", exec.label),
        }
    }

    pub(crate) fn uses(self) -> &'a Mutex<Uses> {
        match self {
            Self::Memory(root) => &root.uses,
            Self::Pinned(range) => &range.uses,
            Self::Exec(exec) => &exec.uses,
        }
    }
}

/// What kind of work an operation is.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    Fill,
    /// On the device.
    Copy,
    /// From or to pinned memory that the operation gives back when it is done.
    AsyncCopy,
    /// From or to pinned memory that a graph owns.
    Upload,
    Download,
    /// From or to the backend's staging memory.
    SliceCopy,
    Kernel(&'a HipKernel),
    Replay,
}

/// An executable graph, as far as operations touch it.
pub(crate) struct ExecShared {
    pub(crate) id: u64,
    pub(crate) core: Arc<Core>,
    pub(crate) label: String,
    pub(crate) uses: Mutex<Uses>,
}
