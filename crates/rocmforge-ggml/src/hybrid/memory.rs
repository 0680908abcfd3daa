//! Memory of both sides: bytes of one root on the host and on the device, and copies between them.

use std::ops::Range;

use rocmforge_runtime::HipError;

use super::{HybridBackend, TensorLocation};
use crate::{GgmlBackend, GgmlError, GgmlResult, TensorId};

/// Whether an error says that the device has no memory for something.
pub(super) fn is_out_of_memory(error: &GgmlError) -> bool {
    hip_error(error).is_some_and(HipError::is_out_of_memory)
}

/// Whether an error says that nothing may be launched until memory has been given back.
pub(super) fn is_stopped(error: &GgmlError) -> bool {
    matches!(hip_error(error), Some(HipError::LaunchesStopped(_)))
}

/// The runtime's error that an error of a backend was made of.
fn hip_error(error: &GgmlError) -> Option<&HipError> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(hip) = error.downcast_ref::<HipError>() {
            return Some(hip);
        }
        cause = error.source();
    }
    None
}

impl HybridBackend {
    /// A tensor's bytes in its root's memory, from its first element to its last.
    pub(super) fn span(&self, id: TensorId) -> GgmlResult<Range<usize>> {
        Ok(self.descs.desc(id)?.span())
    }

    /// Parts of a root that `side` gets from the other side before it reads `span`.
    pub(super) fn missing(&self, root: TensorId, span: &Range<usize>, side: TensorLocation) -> Vec<Range<usize>> {
        self.spans
            .get(&root)
            .map_or_else(Vec::new, |spans| spans.to_copy(span, side))
    }

    /// Copies bytes of a root from the other side to `to`.
    pub(super) fn copy(&mut self, root: TensorId, span: &Range<usize>, to: TensorLocation) -> GgmlResult<()> {
        self.copy_bytes(root, span, to)?;
        self.spans.entry(root).or_default().copied(span);
        Ok(())
    }

    /// [`Self::copy`] without a note of it.
    pub(super) fn copy_bytes(&mut self, root: TensorId, span: &Range<usize>, to: TensorLocation) -> GgmlResult<()> {
        let bytes = span.len() as u64;
        match to {
            TensorLocation::Gpu => {
                self.ensure_on_gpu(root)?;
                self.gpu
                    .write_bytes(root, span.clone(), self.cpu.root_bytes(root, span.clone())?)?;
                self.statistics.to_gpu_bytes += bytes;
            }
            TensorLocation::Cpu => {
                let target = self.cpu.root_bytes_mut(root, span.clone())?;
                self.gpu.read_bytes(root, span.clone(), target)?;
                self.statistics.to_cpu_bytes += bytes;
            }
        }
        Ok(())
    }

    /// Gives a root memory on the device, if it has none there.
    pub(super) fn ensure_on_gpu(&mut self, root: TensorId) -> GgmlResult<()> {
        if self.gpu.tensor_desc(root).is_some() {
            return Ok(());
        }
        let desc = self.descs.desc(root)?.clone();
        self.gpu.alloc(&desc)
    }

    /// Drops what both sides have of a tensor.
    pub(super) fn forget(&mut self, id: TensorId) {
        // Either side may know nothing of it.
        let _ = (self.gpu.free(id), self.cpu.free(id));
        let _ = self.descs.remove(id);
        self.spans.remove(&id);
        self.weights.remove(&id);
    }

    /// Drops the device's part of everything that is in no group.
    pub(super) fn leave_gpu(&mut self) -> GgmlResult<()> {
        let roots: Vec<TensorId> = self.spans.keys().copied().collect();
        for root in roots {
            if self.gpu.tensor_desc(root).is_none() {
                continue;
            }
            let all = self.span(root)?;
            for part in self.missing(root, &all, TensorLocation::Cpu) {
                self.copy(root, &part, TensorLocation::Cpu)?;
            }
            self.spans.entry(root).or_default().write(&all, TensorLocation::Cpu);
            self.gpu.free(root)?;
        }
        Ok(())
    }
}
