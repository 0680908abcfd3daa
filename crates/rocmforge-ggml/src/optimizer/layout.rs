//! Stores matrix weights the way the matmul kernels read them.

use super::{Constants, DependencyInfo};
use crate::{Graph, Layout, Op, TensorDesc, TensorId};

/// Turns row-major weights of `MulMat` column-major. Only descriptors of tensors that no node writes, that nothing else
/// reads, that no view shares and that are no constants: their data is still to come ([`crate::executor`] keeps what is already bound).
pub(super) fn run(graph: &mut Graph, constants: &Constants) -> usize {
    let info = DependencyInfo::from_graph(graph);
    let eligible = |id: TensorId, desc: &TensorDesc| {
        desc.shape.len() == 2
            && desc.layout == Layout::RowMajor
            && !desc.dtype.is_quantized()
            && !desc.is_view()
            && !constants.contains(id)
            && !graph.is_output(id)
            && info.producer(id).is_none()
            && !info.consumers(id).is_empty()
            && info.consumers(id).iter().all(|&n| {
                let node = &graph.nodes[n];
                node.op == Op::MulMat && node.inputs.iter().position(|&i| i == id) == Some(1)
            })
            && !graph.tensors().any(|d| d.view_of == Some(id))
    };
    let weights: Vec<TensorId> = graph.tensors().filter(|d| eligible(d.id, d)).map(|d| d.id).collect();
    for &id in &weights {
        if let Some(desc) = graph.tensor_mut(id) {
            desc.layout = Layout::ColMajor;
            desc.set_shape(desc.shape.clone());
        }
    }
    weights.len()
}
