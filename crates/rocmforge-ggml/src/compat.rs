//! Compatibility: names of ops from before they were ggml's, as constants of [`Op`] where an op is one of ours, and as constructors of [`Graph`] where
//! it is several. New code uses ggml's.
#![allow(non_upper_case_globals)] // The names stand where a variant would.

use crate::{GgmlError, GgmlResult, GluKind, Graph, Layout, Op, SoftMax, TensorDesc, TensorId};

impl Op {
    /// [`Op::MulMat`].
    pub const MatMul: Self = Self::MulMat;
    /// [`Op::MulMat`], whose weight is a Q4_0 tensor.
    pub const MatMulQ4_0: Self = Self::MulMat;
    /// [`Op::MulMat`], whose weight is a Q8_0 tensor.
    pub const MatMulQ8_0: Self = Self::MulMat;
    /// [`Op::SoftMax`] without scale, mask and sinks.
    pub const Softmax: Self = Self::SoftMax(SoftMax::PLAIN);
    /// [`Op::Add`] of an additive mask (0 or -inf) to attention scores.
    pub const Mask: Self = Self::Add;
    /// [`Op::Cpy`] into a tensor of the same type.
    pub const Copy: Self = Self::Cpy { to: None };
    /// [`Op::Glu`] with SiLU: `silu(gate) * up`.
    pub const SwiGlu: Self = Self::Glu {
        kind: GluKind::Swiglu,
        swapped: false,
    };
}

impl Graph {
    /// The three parts of `qkv [.., q + 2 kv]`, whose rows hold a query, a key and a value: strided views of `qkv`'s memory, of widths
    /// `q`, `kv` and `kv`.
    ///
    /// # Errors
    /// [`GgmlError::InvalidShape`] if the widths are not the parts of a row, [`GgmlError::InvalidLayout`] for a part that is no view
    /// (of a block format, where a width is no whole number of blocks).
    pub fn split_qkv(&mut self, qkv: TensorId, q: usize, kv: usize) -> GgmlResult<[TensorId; 3]> {
        let desc = self.tensor(qkv).ok_or(GgmlError::UnknownTensor(qkv))?.clone();
        let row = desc.shape.last().copied().unwrap_or(0);
        let whole = kv.checked_mul(2).and_then(|kv| kv.checked_add(q));
        if desc.shape.is_empty() || whole != Some(row) {
            return Err(GgmlError::InvalidShape {
                node: self.nodes.len(),
                op: Op::View.name(),
                left: desc.shape,
                right: vec![q, kv, kv],
                rule: "a row must be a query, a key and a value",
            });
        }
        let last = desc.shape.len() - 1;
        let step = desc.strides.get(last).copied().unwrap_or(1);
        let mut part = |first: usize, width: usize| {
            let elements = first.saturating_mul(step) / desc.dtype.block_len();
            let mut view = TensorDesc::view_of(&desc, elements.saturating_mul(desc.dtype.block_bytes()));
            view.shape[last] = width;
            view.layout = Layout::Strided;
            self.view(qkv, view)
        };
        Ok([part(0, q)?, part(q, kv)?, part(q + kv, kv)?])
    }

    /// `(silu(x gate) * (x up)) down`: the feed-forward part of a Llama block. `gate` and `up` are `[d, inner]`, `down` is `[inner, d]`.
    ///
    /// # Errors
    /// The operands do not fit [`Op::MulMat`].
    pub fn mlp_swiglu(&mut self, x: TensorId, gate: TensorId, up: TensorId, down: TensorId) -> GgmlResult<TensorId> {
        let gate = self.push(Op::MulMat, &[x, gate])?;
        let up = self.push(Op::MulMat, &[x, up])?;
        let inner = self.push(Op::SwiGlu, &[gate, up])?;
        self.push(Op::MulMat, &[inner, down])
    }
}
