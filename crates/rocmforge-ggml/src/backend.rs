//! What a backend must be able to do.

use std::sync::Arc;

use crate::error::Operands;
use crate::{DType, GgmlError, GgmlResult, Op, SharedBytes, TensorDesc, TensorId};

/// How closely a graph is checked before it runs on a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Structure, numbers of operands, shapes and types: for every backend that computes.
    #[default]
    Strict,
    /// Structure only (tensors exist, nodes are in order, views lie inside their buffers): for backends that count
    /// and do not compute, such as the testkit's `DummyBackend`.
    Lenient,
}

/// Holds tensors' memory and runs operations on it.
///
/// A backend keys its state by [`TensorId`]: use one backend per graph.
pub trait GgmlBackend {
    /// The memory of one tensor.
    type Buffer;

    /// Gives a tensor memory. Replaces what it had.
    ///
    /// # Errors
    /// No memory: over budget, or the device refuses.
    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()>;

    /// Gives a tensor memory that exists.
    ///
    /// # Errors
    /// [`GgmlError::BufferSize`].
    fn bind(&mut self, desc: &TensorDesc, buffer: Self::Buffer) -> GgmlResult<()>;

    /// Takes a tensor's memory away.
    ///
    /// # Errors
    /// [`GgmlError::UnknownTensor`].
    fn free(&mut self, id: TensorId) -> GgmlResult<()>;

    /// The descriptor under which a tensor was allocated, bound, or bound as a view.
    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc>;

    /// A tensor's memory; `None` for views.
    fn buffer(&self, id: TensorId) -> Option<&Self::Buffer>;

    /// A tensor's memory, for changes.
    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut Self::Buffer>;

    /// Runs one operation, or enqueues it.
    ///
    /// # Errors
    /// The operation is not possible here, or failed.
    fn execute_op(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()>;

    /// Waits until everything enqueued is done.
    ///
    /// # Errors
    /// The wait failed or took too long.
    fn synchronize(&mut self) -> GgmlResult<()>;

    /// Tells the backend of a tensor that shares another's memory. A backend that computes must remember it.
    ///
    /// # Errors
    /// The view's base is unknown here.
    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        let _ = desc;
        Ok(())
    }

    /// How closely graphs are checked before they run here.
    fn strictness(&self) -> Strictness {
        Strictness::Strict
    }
}

/// A backend whose tensors the host can fill and read.
pub trait HostAccess: GgmlBackend {
    /// Fills a tensor that has memory of its own, byte for byte in its own layout.
    ///
    /// # Errors
    /// [`GgmlError::UnknownTensor`], [`GgmlError::BufferSize`], or the copy failed.
    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()>;

    /// All bytes of a tensor, from its first to its last element. Waits for what is enqueued.
    ///
    /// # Errors
    /// [`GgmlError::UnknownTensor`], or the copy failed.
    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>>;

    /// Bytes that tensors can still be given; `None` if the backend knows no limit.
    fn available_bytes(&self) -> Option<usize> {
        None
    }

    /// Gives a tensor memory that holds `bytes`. A backend on the host may keep the shared bytes instead of a copy.
    ///
    /// # Errors
    /// As [`GgmlBackend::alloc`] and [`Self::write`].
    fn load(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        self.alloc(desc)?;
        self.write(desc.id, bytes.bytes())
    }

    /// [`Self::write`] of f32.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn write_f32(&mut self, id: TensorId, values: &[f32]) -> GgmlResult<()> {
        self.write(id, bytemuck::cast_slice(values))
    }

    /// [`Self::write`] of u32.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn write_u32(&mut self, id: TensorId, values: &[u32]) -> GgmlResult<()> {
        self.write(id, bytemuck::cast_slice(values))
    }

    /// [`Self::read`] of an f32 tensor, in memory order.
    ///
    /// # Errors
    /// As [`Self::read`]; also if the tensor is not f32.
    fn read_f32(&mut self, id: TensorId) -> GgmlResult<Vec<f32>> {
        let dtype = self.tensor_desc(id).ok_or(GgmlError::UnknownTensor(id))?.dtype;
        if dtype != DType::F32 {
            return Err(GgmlError::InvalidDType {
                node: 0,
                op: "read",
                operand: 0,
                expected: "F32",
                found: dtype,
                operands: Operands::default(),
            });
        }
        Ok(bytemuck::allocation::pod_collect_to_vec(&self.read(id)?))
    }
}
