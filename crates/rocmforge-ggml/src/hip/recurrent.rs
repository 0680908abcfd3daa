//! Recurrent ops: a state for each sequence, which its tokens change.

use rocmforge_kernels::{DeltaNet, DeltaNetRows, Kernels, Sequences, SsmConv, SsmScan, States};
use rocmforge_runtime::HipBuffer;

use super::HipGgmlBackend;
use super::faults::faults;
use super::takes::{BLOCKS, GRID, Takes, at_most, contiguous, float, index, some};
use crate::shape::key_heads;
use crate::{GgmlResult, Op, TensorDesc, TensorId};

/// What the operands have in common: a state first, the sequence of each token and the slot of each sequence last.
fn sequences(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    let [operands @ .., sequence, ids] = inputs else {
        return Err("no sequences".to_owned());
    };
    for operand in operands.iter().chain(outputs) {
        float(operand)?;
        contiguous(operand)?;
    }
    index(sequence)?;
    index(ids)?;
    let (tokens, count) = (sequence.element_count(), ids.element_count());
    some("tokens", tokens, GRID)?;
    some("sequences", count, GRID)?;
    at_most("tokens and sequences", tokens + count, GRID)
}

pub(super) fn conv(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    sequences(inputs, outputs)?;
    at_most("channels", inputs[0].shape[1], BLOCKS)
}

/// Rules over the rows of a state's matrices.
pub(super) fn rows(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    sequences(inputs, outputs)?;
    let state = &inputs[0].shape;
    at_most("columns of a state", state[3], Kernels::MAX_STATE_COLS)?;
    at_most("rows of a state", state[1].saturating_mul(state[2]), BLOCKS)
}

/// Operands in memory without gaps.
struct Operands {
    floats: Vec<HipBuffer<f32>>,
    of_tokens: HipBuffer<u32>,
    slots: HipBuffer<u32>,
    out: HipBuffer<f32>,
    after: HipBuffer<f32>,
    /// Of the state.
    shape: Vec<usize>,
}

impl Operands {
    fn sequences(&self) -> Sequences<'_> {
        Sequences {
            of_tokens: &self.of_tokens,
            slots: &self.slots,
            shape: [self.of_tokens.len(), self.slots.len(), self.shape[0]],
        }
    }

    fn states(&self) -> States<'_> {
        States {
            before: &self.floats[0],
            after: &self.after,
            shape: [self.shape[1], self.shape[2], self.shape[3]],
        }
    }
}

impl HipGgmlBackend {
    fn recurrent_operands(&self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<Operands> {
        let (operands, indices) = inputs.split_at(inputs.len() - 2);
        let floats = operands.iter().map(|&id| self.f32(op, id));
        Ok(Operands {
            floats: floats.collect::<GgmlResult<_>>()?,
            of_tokens: self.u32(op, indices[0])?,
            slots: self.u32(op, indices[1])?,
            out: self.f32(op, outputs[0])?,
            after: self.f32(op, outputs[1])?,
            shape: self.slots.desc(inputs[0])?.shape.to_vec(),
        })
    }

    /// Dimension `dim` of an operand.
    fn dim(&self, id: TensorId, dim: usize) -> GgmlResult<usize> {
        Ok(self.slots.desc(id)?.shape[dim])
    }

    pub(super) fn ssm_conv(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        let with = self.recurrent_operands(op, inputs, outputs)?;
        let site = self.fault_site(op, inputs)?;
        let operands = SsmConv {
            state: &with.floats[0],
            x: &with.floats[1],
            weight: &with.floats[2],
            out: &with.out,
            after: &with.after,
            shape: [with.shape[1], with.shape[2] + 1],
        };
        let launched = self
            .kernels
            .ssm_conv(self.stream(), operands, with.sequences(), faults(&site));
        self.done(op, launched)
    }

    pub(super) fn delta_net(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        let with = self.recurrent_operands(op, inputs, outputs)?;
        let shape = [self.dim(inputs[1], 1)?, self.dim(inputs[4], 2)?];
        let site = self.fault_site(op, inputs)?;
        let operands = DeltaNet {
            q: &with.floats[1],
            k: &with.floats[2],
            v: &with.floats[3],
            g: &with.floats[4],
            beta: &with.floats[5],
            out: &with.out,
            shape,
        };
        let scale = 1.0 / (with.shape[3] as f32).sqrt();
        let (kernels, stream) = (&self.kernels, self.stream());
        let launched = kernels.delta_net(stream, operands, with.states(), scale, with.sequences(), faults(&site));
        self.done(op, launched)
    }

    pub(super) fn delta_net_rows(
        &mut self,
        op: &Op,
        (eps, neighbours): (f32, bool),
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) -> GgmlResult<()> {
        let with = self.recurrent_operands(op, inputs, outputs)?;
        let states = with.states();
        let k_heads = key_heads(self.dim(inputs[1], 1)?, states.shape).ok_or_else(|| self.cannot(op, inputs[1]))?;
        let site = self.fault_site(op, inputs)?;
        let operands = DeltaNetRows {
            x: &with.floats[1],
            beta: &with.floats[2],
            alpha: &with.floats[3],
            step: &with.floats[4],
            rate: &with.floats[5],
            out: &with.out,
            k_heads,
            neighbours,
            eps,
        };
        let (kernels, stream) = (&self.kernels, self.stream());
        let launched = kernels.delta_net_rows(stream, operands, states, with.sequences(), faults(&site));
        self.done(op, launched)
    }

    pub(super) fn ssm_scan(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        let with = self.recurrent_operands(op, inputs, outputs)?;
        let shape = [self.dim(inputs[4], 1)?, self.dim(inputs[3], 1)?];
        let site = self.fault_site(op, inputs)?;
        let operands = SsmScan {
            x: &with.floats[1],
            dt: &with.floats[2],
            a: &with.floats[3],
            b: &with.floats[4],
            c: &with.floats[5],
            out: &with.out,
            shape,
        };
        let (kernels, stream) = (&self.kernels, self.stream());
        let launched = kernels.ssm_scan(stream, operands, with.states(), with.sequences(), faults(&site));
        self.done(op, launched)
    }
}
