//! Products of many rows with rounded operands: both as f16, on the matrix unit.

use rocmforge_kernels::{HalfRows, WeightMatrix};
use rocmforge_runtime::HipBuffer;

use super::weights::FEW_ROWS;
use super::{HipGgmlBackend, failed};
use crate::{Activations, GgmlResult, Op, TensorId};

/// Where activations of 16 bits lie in scratch memory, and rows of weights as f16.
const HALVES: usize = 11;
const SLAB: usize = 12;

/// Activations of 16 bits in scratch memory, and the tensor that they are of.
#[derive(Debug, Clone)]
pub(super) struct Halves {
    of: TensorId,
    values: HalfRows,
}

impl HipGgmlBackend {
    /// Whether a product of `m` rows of activations with one matrix rounds both to 16 bits.
    pub(super) fn takes_halves(&self, m: usize) -> GgmlResult<bool> {
        if self.activations == Activations::F32 || m <= FEW_ROWS {
            return Ok(false);
        }
        self.kernels.multiplies_halves().map_err(failed("loading kernels"))
    }

    /// `m` rows `a` of tensor `of` times a matrix, both as f16.
    pub(super) fn halves_product(
        &mut self,
        op: &Op,
        (of, a, m): (TensorId, &HipBuffer<f32>, usize),
        w: WeightMatrix<'_>,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
    ) -> GgmlResult<()> {
        let [_, k] = w.shape();
        let x = self.halves_of(op, of, a, [m, k])?;
        let wanted = self.kernels.matmul_halves_scratch(w, m).map_err(failed(op.name()))?;
        let scratch = self.scratch(SLAB, wanted)?;
        let result = self.kernels.matmul_halves(self.stream(), w, &x, bias, y, &scratch);
        self.done(op, result)
    }

    /// Activations as f16: those of the launch before, if it was of the same.
    fn halves_of(&mut self, op: &Op, of: TensorId, a: &HipBuffer<f32>, [m, k]: [usize; 2]) -> GgmlResult<HalfRows> {
        if let Some(halves) = &self.halves
            && halves.of == of
            && [halves.values.rows(), halves.values.k()] == [m, k]
        {
            return Ok(halves.values.clone());
        }
        let bytes = HalfRows::byte_len(m, k).ok_or_else(|| self.cannot(op, of))?;
        let to = self.scratch(HALVES, bytes)?;
        let values = self.kernels.half_rows(self.stream(), a, &to, [m, k]);
        let values = values.map_err(failed(op.name()))?;
        self.halves = Some(Halves {
            of,
            values: values.clone(),
        });
        Ok(values)
    }
}
