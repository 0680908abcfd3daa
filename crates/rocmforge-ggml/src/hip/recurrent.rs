//! Recurrent ops: a state for each sequence, which its tokens change.

use rocmforge_kernels::{DeltaNet, DeltaNetRows, Kernels, Sequences, SsmConv, SsmScan, StateSlots, States};
use rocmforge_runtime::HipBuffer;

use super::faults::faults;
use super::takes::{BLOCKS, GRID, Takes, at_most, contiguous, float, index, some};
use super::{HipGgmlBackend, failed};
use crate::shape::key_heads;
use crate::{Activations, GgmlResult, Kernel, Launch, Op, TensorDesc, TensorId};

/// Tokens of a sequence, on average, from which they are taken 16 at a time.
const CHUNK_TOKENS: usize = 8;

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

    /// Whether one launch computes a recurrent op and writes its states into their slots: the two of a group that the optimizer has joined.
    pub(super) fn writes_states(&self, group: &[Launch]) -> GgmlResult<bool> {
        let [rule, set] = group else { return Ok(false) };
        if set.kernel != Kernel::Op(Op::SetRows) {
            return Ok(false);
        }
        let state = &self.slots.desc(rule.inputs[0])?.shape;
        Ok(match rule.kernel {
            Kernel::Op(Op::SsmConv) => true,
            Kernel::Op(Op::DeltaNetRows { .. }) => state[3] <= Kernels::MAX_IN_PLACE_COLS,
            _ => false,
        })
    }

    /// Both launches of such a group as one. The states after the step are in their slots, and the op's own result for them holds nothing of use.
    pub(super) fn recur_into(&mut self, rule: &Launch, set: &Launch) -> GgmlResult<()> {
        let Kernel::Op(op) = rule.kernel else {
            return Err(self.cannot(&Op::SetRows, set.inputs[0]));
        };
        Self::takes(
            &rule.kernel,
            &self.slots.descs(&rule.inputs)?,
            &self.slots.descs(&rule.outputs)?,
        )?;
        let (inputs, outputs, set) = (&rule.inputs, &rule.outputs, Some(&set.inputs[..]));
        match op {
            Op::SsmConv => self.ssm_conv(&op, inputs, outputs, set),
            Op::DeltaNetRows { eps, neighbours } => self.delta_net_rows(&op, (eps, neighbours), inputs, outputs, set),
            _ => Err(self.cannot(&op, inputs[0])),
        }
    }

    /// The slots of a SET_ROWS of states, with the tag of its faults.
    fn state_slots(&mut self, set: Option<&[TensorId]>) -> GgmlResult<Option<(HipBuffer<u32>, u32)>> {
        let Some(set) = set else { return Ok(None) };
        let (_, tag) = self.fault_site(&Op::SetRows, set)?;
        Ok(Some((self.u32(&Op::SetRows, set[2])?, tag)))
    }

    /// Whether the tokens of a rule are taken 16 at a time, with operands of products rounded to f16.
    fn in_chunks(&self, op: &Op, with: &Operands) -> GgmlResult<bool> {
        let (tokens, sequences) = (with.of_tokens.len(), with.slots.len());
        if self.activations == Activations::F32
            || tokens / CHUNK_TOKENS < sequences
            || with.shape[3] > Kernels::MAX_CHUNK_COLS
        {
            return Ok(false);
        }
        self.kernels.has_recurrent16().map_err(failed(op.name()))
    }

    /// Dimension `dim` of an operand.
    fn dim(&self, id: TensorId, dim: usize) -> GgmlResult<usize> {
        Ok(self.slots.desc(id)?.shape[dim])
    }

    /// With the operands of a SET_ROWS the states go to its slots.
    pub(super) fn ssm_conv(
        &mut self,
        op: &Op,
        inputs: &[TensorId],
        outputs: &[TensorId],
        set: Option<&[TensorId]>,
    ) -> GgmlResult<()> {
        let with = self.recurrent_operands(op, inputs, outputs)?;
        let site = self.fault_site(op, inputs)?;
        let into = self.state_slots(set)?;
        let operands = SsmConv {
            state: &with.floats[0],
            x: &with.floats[1],
            weight: &with.floats[2],
            out: &with.out,
            after: &with.after,
            into: into.as_ref().map(|(slots, tag)| StateSlots { slots, tag: *tag }),
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

    /// With the operands of a SET_ROWS the states go to its slots.
    pub(super) fn delta_net_rows(
        &mut self,
        op: &Op,
        (eps, neighbours): (f32, bool),
        inputs: &[TensorId],
        outputs: &[TensorId],
        set: Option<&[TensorId]>,
    ) -> GgmlResult<()> {
        let with = self.recurrent_operands(op, inputs, outputs)?;
        let states = with.states();
        let k_heads = key_heads(self.dim(inputs[1], 1)?, states.shape).ok_or_else(|| self.cannot(op, inputs[1]))?;
        let site = self.fault_site(op, inputs)?;
        let into = self.state_slots(set)?;
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
            into: into.as_ref().map(|(slots, tag)| StateSlots { slots, tag: *tag }),
        };
        let (kernels, stream) = (&self.kernels, self.stream());
        let launched = if self.in_chunks(op, &with)? {
            kernels.delta_net_rows16(stream, operands, states, with.sequences(), faults(&site))
        } else {
            kernels.delta_net_rows(stream, operands, states, with.sequences(), faults(&site))
        };
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
        let launched = if shape[1] == 1 && self.in_chunks(op, &with)? {
            kernels.ssm_scan16(stream, operands, with.states(), with.sequences(), faults(&site))
        } else {
            kernels.ssm_scan(stream, operands, with.states(), with.sequences(), faults(&site))
        };
        self.done(op, launched)
    }
}
