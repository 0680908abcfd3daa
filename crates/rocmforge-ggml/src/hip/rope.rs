//! ROPE: tables of cosines and sines, kept on the device.

use rocmforge_kernels::{MAX_DIM, RopeShape};
use rocmforge_runtime::HipBuffer;

use super::copies::packed;
use super::faults::faults;
use super::indexed::into_rows;
use super::operands::rows_and_cols;
use super::takes::{TEAM_ROWS, Takes, at_most, contiguous, float, index, rows_of, some, tiles};
use super::{HipGgmlBackend, failed};
use crate::{GgmlResult, Op, Rope, TensorDesc, TensorId};

/// Where repeated positions lie in scratch memory: the place of the operand.
const POSITIONS: usize = 1;

/// The op's parameters, and the tensor with the frequencies' divisors.
type TableKey = (Rope, Option<TensorId>);

/// Cosines and sines, `[max_position, pairs]`; where a token has four positions, which of them turns each pair.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) turns: [HipBuffer<f32>; 2],
    axes: Option<HipBuffer<u32>>,
}

/// The tables that are kept.
#[derive(Debug, Default)]
pub(super) struct RopeTables(Vec<(TableKey, Tables)>);

impl RopeTables {
    /// Drops the tables made with a tensor whose content changes. Whether there were any.
    pub(super) fn forget(&mut self, factors: TensorId) -> bool {
        let before = self.0.len();
        self.0.retain(|((_, id), _)| *id != Some(factors));
        self.0.len() < before
    }
}

pub(super) fn rope(rope: Rope, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    turned(rope, inputs[0], &inputs[1..])?;
    float(outputs[0])
}

/// Heads that are turned and written to a cache at once: the heads, the cache, its slots, and what ROPE has beside the heads.
pub(super) fn and_set_rows(rope: Rope, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    turned(rope, inputs[0], &inputs[3..])?;
    into_rows(inputs, outputs[0])?;
    rows_of(inputs[1])?;
    tiles(rows_and_cols(&outputs[0].shape))
}

/// Heads, and the positions and divisors by which they are turned.
fn turned(rope: Rope, x: &TensorDesc, by: &[&TensorDesc]) -> Takes {
    float(x)?;
    index(by[0])?;
    by.get(1).map_or(Ok(()), |factors| contiguous(factors))?;
    at_most("heads", rows_and_cols(&x.shape)[0], TEAM_ROWS)?;
    if rope.n_dims == 0 {
        return Ok(());
    }
    some("positions", rope.max_position, MAX_DIM)
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
        let axes = rope.style.axes();
        if positions.len() != axes * tokens {
            positions = self.repeated_positions(op, inputs[1], [axes, batch, seq])?;
        }
        let Tables {
            turns: [cos, sin],
            axes,
        } = self.rope_tables(op, rope, inputs.get(2).copied())?;
        let site = self.fault_site(op, inputs)?;
        let shape = RopeShape {
            rotary_dim: 2 * rope.pairs(),
            ..RopeShape::sequence(tokens, heads, head_dim)
        };
        let (kernels, stream, tables, faults) = (&self.kernels, self.stream(), [&cos, &sin], faults(&site));
        let result = match &axes {
            None => kernels.rope_at(stream, rope.style.pairs(), &x, tables, &positions, y, shape, faults),
            Some(axes) => kernels.rope_sections(stream, &x, tables, (&positions, axes), y, shape, faults),
        };
        self.done(op, result)
    }

    /// One list for all of a batch, repeated for each sequence: a copy on the device, so that it is part of a captured graph.
    fn repeated_positions(
        &mut self,
        op: &Op,
        list: TensorId,
        [axes, batch, seq]: [usize; 3],
    ) -> GgmlResult<HipBuffer<u32>> {
        let (dtype, x) = (self.slots.desc(list)?.dtype, self.bytes(list)?);
        let (one, all) = (packed(&[axes, 1, seq], dtype), packed(&[axes, batch, seq], dtype));
        let y = self.scratch(POSITIONS, all.byte_size())?;
        self.copy(op, (&one, &x), (&all, &y), true)?;
        self.packings += 1;
        y.cast().map_err(failed(op.name()))
    }

    pub(super) fn rope_tables(&mut self, op: &Op, rope: Rope, factors: Option<TensorId>) -> GgmlResult<Tables> {
        let key = (rope, factors);
        if let Some((_, tables)) = self.rope_tables.0.iter().find(|(own, _)| *own == key) {
            return Ok(tables.clone());
        }
        let divisors = factors.map(|id| self.f32(op, id)?.to_vec(self.stream()).map_err(failed(op.name())));
        let divisors = divisors.transpose()?;
        let frequencies = rope.frequencies(divisors.as_deref());
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for position in 0..rope.max_position as u32 {
            for &frequency in &frequencies {
                let turn = rope.turn(frequency, position);
                cos.push(turn.0 as f32);
                sin.push(turn.1 as f32);
            }
        }
        let no_room = || failed("allocating rotary tables");
        let table =
            |values: &[f32], label: &str| HipBuffer::from_slice(self.stream(), values, label).map_err(no_room());
        let axes = rope.style.sections().map(|_| {
            let axes: Vec<u32> = (0..rope.pairs()).map(|pair| rope.section(pair).0 as u32).collect();
            HipBuffer::from_slice(self.stream(), &axes, "ggml rope axes").map_err(no_room())
        });
        let tables = Tables {
            turns: [table(&cos, "ggml rope cos")?, table(&sin, "ggml rope sin")?],
            axes: axes.transpose()?,
        };
        self.rope_tables.0.push((key, tables.clone()));
        Ok(tables)
    }
}
