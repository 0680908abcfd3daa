//! The seeds' example of a graph test without a GPU, through the facade's paths.

use rocmforge::ggml::{DType, DummyBackend, Graph, Layout, Op, TensorDesc, TensorId, executor};

#[test]
fn test_graph_optimization() {
    // Dummy backend - no GPU required
    let mut backend = DummyBackend::new();
    let mut graph = Graph::new();

    // Build graph...
    let input = graph.add_tensor(TensorDesc {
        id: TensorId(0),
        dtype: DType::F32,
        shape: vec![4],
        layout: Layout::RowMajor,
        strides: vec![1],
        byte_offset: 0,
        view_of: None,
    });
    let output = graph.add_tensor(TensorDesc {
        id: TensorId(0),
        dtype: DType::F32,
        shape: vec![4],
        layout: Layout::RowMajor,
        strides: vec![1],
        byte_offset: 0,
        view_of: None,
    });
    graph.add_node(Op::Add, vec![input], vec![output]);

    // Execute with dummy backend (no GPU)
    let result =
        executor::execute_graph_with_config(&mut backend, &mut graph, executor::ExecuteConfig::with_optimization());

    assert!(result.is_ok());
    assert_eq!(backend.stats().alloc_count, 2);
    assert_eq!(backend.stats().execute_op_count, 1);
}
