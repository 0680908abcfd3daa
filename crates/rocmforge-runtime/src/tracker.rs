//! Last-use lists over this runtime's streams: [`rocmforge_memory::Uses`] says what they are.
//!
//! An event is made only when another stream must wait, so a program with one stream makes none.

use crate::stream::StreamShared;
pub(crate) use rocmforge_memory::Access;
use rocmforge_memory::Queue;
use std::sync::Arc;

pub(crate) type Use = rocmforge_memory::Use<Arc<StreamShared>>;
pub(crate) type Uses = rocmforge_memory::Uses<Arc<StreamShared>>;

impl Queue for StreamShared {
    fn id(&self) -> u64 {
        StreamShared::id(self)
    }

    fn completed(&self) -> u64 {
        StreamShared::completed(self)
    }
}
