//! Rotary embedding: tables of cosines and sines, kept on the device.

use rocmforge_kernels::RopeShape;
use rocmforge_runtime::HipBuffer;

use super::copies::packed;
use super::faults::faults;
use super::{HipGgmlBackend, failed};
use crate::{GgmlResult, Op, Rope, TensorId};

/// Where repeated positions lie in scratch memory: the place of the operand.
const POSITIONS: usize = 1;

/// The op's parameters, and the tensor with the frequencies' divisors.
type TableKey = (Rope, Option<TensorId>);

/// Tables `[max_position, n_dims / 2]` of cosines and of sines.
#[derive(Debug, Default)]
pub(super) struct RopeTables(Vec<(TableKey, [HipBuffer<f32>; 2])>);

impl RopeTables {
    /// Drops the tables made with a tensor whose content changes. Whether there were any.
    pub(super) fn forget(&mut self, factors: TensorId) -> bool {
        let before = self.0.len();
        self.0.retain(|((_, id), _)| *id != Some(factors));
        self.0.len() < before
    }
}

impl HipGgmlBackend {
    pub(super) fn rope(&mut self, op: &Op, rope: Rope, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        if rope.n_dims == 0 {
            return self.move_elements(op, inputs[0], output);
        }
        let y = self.result(op, output)?;
        self.rope_into(op, rope, inputs, &y)?;
        self.store(op, output, &y)
    }

    /// The rotated operand, of at least a pair in each head, as f32 without gaps.
    pub(super) fn rope_into(&mut self, op: &Op, rope: Rope, inputs: &[TensorId], y: &HipBuffer<f32>) -> GgmlResult<()> {
        let &[batch, seq, heads, head_dim] = self.slots.desc(inputs[0])?.shape.as_slice() else {
            return Err(self.cannot(op, inputs[0]));
        };
        let x = self.input(op, inputs[0], 0)?;
        let tokens = batch * seq;
        let mut positions = self.u32(op, inputs[1])?;
        if positions.len() != tokens {
            positions = self.repeated_positions(op, inputs[1], [batch, seq])?;
        }
        let [cos, sin] = self.rope_tables(op, rope, inputs.get(2).copied())?;
        let site = self.fault_site(op, inputs)?;
        let pairs = rope.style.pairs();
        let shape = RopeShape {
            rotary_dim: rope.n_dims,
            ..RopeShape::sequence(tokens, heads, head_dim)
        };
        let tables = [&cos, &sin];
        let result = self
            .kernels
            .rope_at(self.stream(), pairs, &x, tables, &positions, y, shape, faults(&site));
        self.done(op, result)
    }

    /// One list for all of a batch, repeated for each sequence: a copy on the device, so that it is part of a captured graph.
    fn repeated_positions(&mut self, op: &Op, list: TensorId, [batch, seq]: [usize; 2]) -> GgmlResult<HipBuffer<u32>> {
        let (dtype, x) = (self.slots.desc(list)?.dtype, self.bytes(list)?);
        let (one, all) = (packed(&[1, seq], dtype), packed(&[batch, seq], dtype));
        let y = self.scratch(POSITIONS, all.byte_size())?;
        self.copy(op, (&one, &x), (&all, &y), true)?;
        self.packings += 1;
        y.cast().map_err(failed(op.name()))
    }

    pub(super) fn rope_tables(
        &mut self,
        op: &Op,
        rope: Rope,
        factors: Option<TensorId>,
    ) -> GgmlResult<[HipBuffer<f32>; 2]> {
        let key = (rope, factors);
        if let Some((_, tables)) = self.rope_tables.0.iter().find(|(own, _)| *own == key) {
            return Ok(tables.clone());
        }
        let divisors = match factors {
            Some(id) => Some(self.f32(op, id)?.to_vec(self.stream()).map_err(failed(op.name()))?),
            None => None,
        };
        let frequencies = rope.frequencies(divisors.as_deref());
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for position in 0..rope.max_position as u32 {
            for &frequency in &frequencies {
                let turn = rope.turn(frequency, position);
                cos.push(turn.0 as f32);
                sin.push(turn.1 as f32);
            }
        }
        let table = |values: &[f32], label: &str| {
            HipBuffer::from_slice(self.stream(), values, label).map_err(failed("allocating rotary tables"))
        };
        let tables = [table(&cos, "ggml rope cos")?, table(&sin, "ggml rope sin")?];
        self.rope_tables.0.push((key, tables.clone()));
        Ok(tables)
    }
}
