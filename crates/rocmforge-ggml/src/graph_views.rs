//! Graph constructors of ops whose output is a view, or has a shape that the caller chooses.

use crate::op::MAX_DIMS;
use crate::{GgmlError, GgmlResult, Graph, Op, TensorDesc, TensorId, shape};

impl Graph {
    fn desc(&self, id: TensorId) -> GgmlResult<&TensorDesc> {
        self.tensor(id).ok_or(GgmlError::UnknownTensor(id))
    }

    /// Adds `view`, a part of `source`'s memory ([`TensorDesc::view_of`] with another shape, strides, offset).
    ///
    /// # Errors
    /// The descriptor contradicts itself, or is of another type or tensor than `source`. Whether it lies inside the memory is checked
    /// with the graph.
    pub fn view(&mut self, source: TensorId, mut view: TensorDesc) -> GgmlResult<TensorId> {
        let desc = self.desc(source)?;
        if view.dtype != desc.dtype {
            return Err(GgmlError::InvalidDType {
                node: self.nodes.len(),
                op: Op::View.name(),
                operand: 1,
                expected: "of the type of the tensor that it views",
                found: view.dtype,
                operands: [desc].into_iter().collect(),
            });
        }
        view.view_of = Some(source);
        view.check()?;
        Ok(self.add_node_of(Op::View, &[source], view))
    }

    /// Adds a view of `source` whose dimension `i` is `source`'s dimension `axes[i]`.
    ///
    /// # Errors
    /// `axes` is no permutation, or the tensor has more than [`MAX_DIMS`] dimensions.
    pub fn permute(&mut self, source: TensorId, axes: &[usize]) -> GgmlResult<TensorId> {
        let mut all = [0, 1, 2, 3];
        let rank = self.desc(source)?.shape.len();
        if axes.len() != rank || rank > MAX_DIMS {
            return Err(GgmlError::InvalidShape {
                node: self.nodes.len(),
                op: "PERMUTE",
                left: self.desc(source)?.shape.clone(),
                right: axes.to_vec(),
                rule: "there must be one axis per dimension, at most 4",
            });
        }
        all[..rank].copy_from_slice(axes);
        self.renamed(Op::Permute { axes: all }, source)
    }

    /// Adds a view of `source` with its last two dimensions swapped.
    ///
    /// # Errors
    /// The tensor has fewer than 2 dimensions.
    pub fn transpose(&mut self, source: TensorId) -> GgmlResult<TensorId> {
        self.renamed(Op::Transpose, source)
    }

    fn renamed(&mut self, op: Op, source: TensorId) -> GgmlResult<TensorId> {
        let desc = self.desc(source)?;
        shape::infer(self.nodes.len(), &op, &[desc])?;
        let view = shape::permuted(&op, desc);
        view.check()?;
        Ok(self.add_node_of(op, &[source], view))
    }

    /// Adds a copy of `src`'s elements into `dst`'s memory, in its type and shape, and returns the view of `dst` that has them. A node
    /// that reads the view runs after the copy: that input is the edge between them.
    ///
    /// # Errors
    /// The operands do not fit [`Op::Cpy`].
    pub fn cpy(&mut self, src: TensorId, dst: TensorId) -> GgmlResult<TensorId> {
        let op = Op::Cpy { to: None };
        let target = self.desc(dst)?;
        shape::infer(self.nodes.len(), &op, &[self.desc(src)?, target])?;
        let view = TensorDesc::view_of(target, 0);
        Ok(self.add_node_of(op, &[src, dst], view))
    }

    /// Adds a node that repeats `source` to `shape`.
    ///
    /// # Errors
    /// `shape` is no multiple of `source`'s.
    pub fn repeat(&mut self, source: TensorId, shape: impl Into<Vec<usize>>) -> GgmlResult<TensorId> {
        let desc = self.desc(source)?;
        let output = TensorDesc::new(shape, desc.dtype, crate::Layout::RowMajor);
        shape::infer(self.nodes.len(), &Op::Repeat, &[desc])?.check_output(
            self.nodes.len(),
            &Op::Repeat,
            &[desc],
            &output,
            false,
        )?;
        Ok(self.add_node_of(Op::Repeat, &[source], output))
    }
}
