//! One allocation of device memory. Buffers, clones and views share it; it is given back once, when the last of them goes.

use crate::core::Core;
use crate::core::memory::DeviceBlock;
use crate::core::stream_shared::{StreamShared, Uses};
use crate::error::HipResult;
use crate::hip::unique_id;
use parking_lot::Mutex;
use rocmforge_memory::{Bytes, Class, Request, Site};
use std::ffi::c_void;
use std::sync::Arc;

pub(crate) struct Root {
    pub(crate) id: u64,
    pub(crate) core: Arc<Core>,
    /// A block of the pool comes with what its last owner enqueued: the first operations here wait for that too.
    pub(crate) uses: Mutex<Uses>,
    bytes: Bytes,
    label: String,
    /// `None` if there are no bytes, and after the drop. Its own list of uses is empty: they are above.
    block: Option<DeviceBlock>,
}

impl Root {
    /// `bytes` of memory that `stream` will use first.
    #[track_caller]
    pub(crate) fn new(core: &Arc<Core>, stream: &Arc<StreamShared>, bytes: Bytes, label: &str) -> HipResult<Arc<Self>> {
        core.driver.enter()?;
        stream.not_capturing("allocate")?;
        core.deferred.free_done();
        let mut block = None;
        if bytes > Bytes::ZERO {
            block = Some(core.memory.allocate(&Request {
                bytes,
                class: Class::Required,
                label,
                site: Site::caller(),
                stream,
            })?);
        }
        let uses = block.as_mut().map(|block| std::mem::take(&mut block.uses));
        Ok(Arc::new(Self {
            id: unique_id(),
            core: Arc::clone(core),
            uses: Mutex::new(uses.unwrap_or_default()),
            bytes,
            label: label.to_owned(),
            block,
        }))
    }

    pub(crate) fn ptr(&self) -> *mut c_void {
        self.block
            .as_ref()
            .map_or(std::ptr::null_mut(), |block| block.memory.address())
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            let uses = std::mem::take(self.uses.get_mut());
            self.core.memory.free(DeviceBlock { uses, ..block });
        }
    }
}
