//! A backend without memory or arithmetic, to test what a graph does to its backend.

use rocmforge_ggml::{GgmlBackend, GgmlError, GgmlResult, Graph, NodeList, Op, Strictness, TensorDesc, TensorId};
use std::collections::HashMap;

/// Where the pretended memory begins. Not 0, so that no buffer has the address of "none".
const BASE: usize = 16;

/// How often each operation of a [`DummyBackend`] was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DummyBackendStats {
    /// Tensors that were given memory.
    pub alloc_count: usize,
    /// Tensors that were given memory that existed.
    pub bind_count: usize,
    /// Tensors whose memory was taken away.
    pub free_count: usize,
    /// Operations executed.
    pub execute_op_count: usize,
    /// Bytes asked for, before alignment.
    pub total_allocated_bytes: usize,
}

/// Pretended addresses, no arithmetic. Checks graphs only loosely, so that a test can run a graph that no real backend would.
///
/// ```
/// use rocmforge_ggml::{GgmlBackend, TensorDesc, TensorId};
/// use rocmforge_testkit::DummyBackend;
///
/// let mut backend = DummyBackend::new();
/// backend.alloc(&TensorDesc::f32([4]))?;
/// assert_eq!(backend.allocated_total(), 16);
/// # Ok::<(), rocmforge_ggml::GgmlError>(())
/// ```
#[derive(Debug)]
pub struct DummyBackend {
    max_buffer_size: usize,
    alignment: usize,
    /// Bytes handed out so far, each buffer rounded up to the alignment.
    offset: usize,
    buffers: HashMap<TensorId, (TensorDesc, usize)>,
    views: HashMap<TensorId, TensorDesc>,
    stats: DummyBackendStats,
}

impl DummyBackend {
    /// A backend with the limits of ggml's own: buffers of at most 64 bytes, aligned to 8.
    pub fn new() -> Self {
        Self::with_config(64, 8)
    }

    /// A backend with other limits. A tensor larger than `max_buffer_size` gets a buffer of its own, as in ggml.
    ///
    /// # Panics
    ///
    /// If `alignment` is not a power of two.
    pub fn with_config(max_buffer_size: usize, alignment: usize) -> Self {
        assert!(
            alignment.is_power_of_two(),
            "an alignment of {alignment} is not a power of two"
        );
        Self {
            max_buffer_size,
            alignment,
            offset: 0,
            buffers: HashMap::new(),
            views: HashMap::new(),
            stats: DummyBackendStats::default(),
        }
    }

    /// The largest buffer this backend would make for several tensors.
    pub fn max_buffer_size(&self) -> usize {
        self.max_buffer_size
    }

    /// What was called how often.
    pub fn stats(&self) -> &DummyBackendStats {
        &self.stats
    }

    /// Bytes asked for, before alignment.
    pub fn allocated_total(&self) -> usize {
        self.stats.total_allocated_bytes
    }

    /// Bytes handed out, after alignment.
    pub fn current_offset(&self) -> usize {
        self.offset
    }

    /// Whether a tensor has memory.
    pub fn has_buffer(&self, id: TensorId) -> bool {
        self.buffers.contains_key(&id)
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::with_config(self.max_buffer_size, self.alignment);
    }
}

impl Default for DummyBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl GgmlBackend for DummyBackend {
    /// A pretended address.
    type Buffer = usize;
    type Program = NodeList;

    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        let bytes = desc.byte_size();
        self.buffers.insert(desc.id, (desc.clone(), BASE + self.offset));
        self.offset += bytes.next_multiple_of(self.alignment);
        self.stats.alloc_count += 1;
        self.stats.total_allocated_bytes += bytes;
        Ok(())
    }

    fn bind(&mut self, desc: &TensorDesc, buffer: usize) -> GgmlResult<()> {
        self.buffers.insert(desc.id, (desc.clone(), buffer));
        self.stats.bind_count += 1;
        Ok(())
    }

    fn free(&mut self, id: TensorId) -> GgmlResult<()> {
        self.buffers.remove(&id).ok_or(GgmlError::UnknownTensor(id))?;
        self.stats.free_count += 1;
        Ok(())
    }

    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc> {
        let own = self.buffers.get(&id).map(|(desc, _)| desc);
        own.or_else(|| self.views.get(&id))
    }

    fn buffer(&self, id: TensorId) -> Option<&usize> {
        self.buffers.get(&id).map(|(_, address)| address)
    }

    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut usize> {
        self.buffers.get_mut(&id).map(|(_, address)| address)
    }

    fn execute_op(&mut self, _op: &Op, _inputs: &[TensorId], _outputs: &[TensorId]) -> GgmlResult<()> {
        self.stats.execute_op_count += 1;
        Ok(())
    }

    fn compile(&mut self, graph: &Graph) -> GgmlResult<NodeList> {
        Ok(NodeList::of(graph))
    }

    fn enqueue(&mut self, program: &mut NodeList) -> GgmlResult<()> {
        self.stats.execute_op_count += program.nodes().len();
        Ok(())
    }

    fn synchronize(&mut self) -> GgmlResult<()> {
        Ok(())
    }

    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.views.insert(desc.id, desc.clone());
        Ok(())
    }

    fn strictness(&self) -> Strictness {
        Strictness::Lenient
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_ggml::{Graph, executor};

    fn tensor(id: usize, elements: usize) -> TensorDesc {
        TensorDesc {
            id: TensorId(id),
            ..TensorDesc::f32([elements])
        }
    }

    #[test]
    fn test_dummy_backend_alloc() {
        let mut backend = DummyBackend::new();
        backend.alloc(&tensor(0, 4)).unwrap();
        assert_eq!(backend.allocated_total(), 16);
        assert!(backend.has_buffer(TensorId(0)));
        assert_eq!(backend.buffer(TensorId(0)), Some(&16), "the first address is not 0");
    }

    #[test]
    fn test_dummy_backend_alignment() {
        let mut backend = DummyBackend::with_config(64, 8);
        backend.alloc(&tensor(0, 5)).unwrap();
        backend.alloc(&tensor(1, 4)).unwrap();
        assert_eq!(backend.current_offset(), 40);
        assert_eq!(backend.allocated_total(), 36);
    }

    #[test]
    fn test_dummy_backend_stats() {
        let mut backend = DummyBackend::new();
        assert_eq!(*backend.stats(), DummyBackendStats::default());
        backend.alloc(&tensor(0, 4)).unwrap();
        backend.bind(&tensor(1, 4), 1000).unwrap();
        let expected = DummyBackendStats {
            alloc_count: 1,
            bind_count: 1,
            total_allocated_bytes: 16,
            ..Default::default()
        };
        assert_eq!(*backend.stats(), expected);
    }

    #[test]
    fn test_dummy_backend_free() {
        let mut backend = DummyBackend::new();
        backend.alloc(&tensor(0, 4)).unwrap();
        backend.free(TensorId(0)).unwrap();
        assert!(!backend.has_buffer(TensorId(0)));
        assert_eq!(backend.stats().free_count, 1);
        assert!(backend.free(TensorId(0)).is_err(), "what is gone cannot be freed again");
    }

    #[test]
    fn test_dummy_backend_execute_op_noop() {
        let mut backend = DummyBackend::new();
        backend.execute_op(&Op::Add, &[], &[]).unwrap();
        backend.execute_op(&Op::Copy, &[], &[]).unwrap();
        assert_eq!(backend.stats().execute_op_count, 2);
    }

    #[test]
    fn test_dummy_backend_reset() {
        let mut backend = DummyBackend::new();
        backend.alloc(&tensor(0, 4)).unwrap();
        backend.reset();
        assert_eq!(*backend.stats(), DummyBackendStats::default());
        assert_eq!(backend.current_offset(), 0);
        assert!(!backend.has_buffer(TensorId(0)));
    }

    #[test]
    fn test_dummy_backend_with_graph() {
        let mut graph = Graph::new();
        let a = graph.add_tensor(TensorDesc::f32([4]));
        let b = graph.add_tensor(TensorDesc::f32([4]));
        graph.add_node(Op::Add, vec![a], vec![b]);
        let mut backend = DummyBackend::new();
        executor::execute_graph(&mut backend, &graph).unwrap();
        assert_eq!((backend.stats().alloc_count, backend.stats().execute_op_count), (2, 1));
    }
}
