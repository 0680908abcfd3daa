//! Products of one row of activations with several packed matrices, in one launch.

use super::matvec_q8::{PackedWeights, RESIDENT};
use super::row_input::RowInput;
use crate::check::Check;
use crate::{GluKind, KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// One of several products of the same activations.
#[derive(Debug, Clone, Copy)]
pub struct JointProduct<'a> {
    /// The weights `[n, k]`.
    pub w: &'a PackedWeights,
    /// `[n]`.
    pub bias: Option<&'a HipBuffer<f32>>,
    /// The result, `[n]`.
    pub y: &'a HipBuffer<f32>,
}

impl Kernels {
    /// Whether [`matvec_q8_joint`](Self::matvec_q8_joint) takes these matrices together: two or three of one type and width, at most
    /// [`RowInput::MAX_COLUMNS`].
    pub fn are_joint(matrices: &[&PackedWeights]) -> bool {
        let same = |pair: &[&PackedWeights]| pair[0].ty() == pair[1].ty() && pair[0].k() == pair[1].k();
        let held = |w: &&PackedWeights| w.k() <= RowInput::MAX_COLUMNS;
        (2..=3).contains(&matrices.len()) && matrices.windows(2).all(same) && matrices.iter().all(held)
    }

    /// `y = x w^T (+ bias)` for two or three matrices of one type and one row of activations. Bit for bit what
    /// [`matvec_q8_row`](Self::matvec_q8_row) gives is not promised: a block's share of the rows is another one.
    ///
    /// # Errors
    ///
    /// Matrices that are not [joint](Self::are_joint), wrong lengths, overlap.
    pub fn matvec_q8_joint(
        &self,
        stream: &HipStream,
        x: RowInput<'_>,
        products: &[JointProduct<'_>],
    ) -> KernelResult<()> {
        let check = Check("matvec_q8_joint");
        let matrices: Vec<&PackedWeights> = products.iter().map(|product| product.w).collect();
        check.dim_to("matrices", products.len(), 3)?;
        let first = matrices[0];
        let rule = "two or three matrices must have one type and as many columns, at most 16384";
        check.holds(
            Self::are_joint(&matrices),
            rule,
            first.k(),
            matrices[products.len() - 1].k(),
        )?;
        x.check(check, first.k())?;
        for (index, product) in products.iter().enumerate() {
            check.len("y", product.y, &[product.w.n()])?;
            x.apart(check, "y", product.y)?;
            x.apart_from(check, "w", product.w.bytes())?;
            for (later, other) in products.iter().enumerate() {
                check.disjoint(("y", product.y), ("w", other.w.bytes()))?;
                if let Some(bias) = other.bias {
                    check.disjoint(("y", product.y), ("bias", bias))?;
                }
                if later > index {
                    check.disjoint(("y", product.y), ("another y", other.y))?;
                }
            }
            if let Some(bias) = product.bias {
                check.len("bias", bias, &[product.w.n()])?;
                x.apart_from(check, "bias", bias)?;
            }
        }
        let kernels = first.kernels(check)?;
        // What is not there has no rows, so the kernel never uses the pointers.
        let at = |index: usize| products.get(index);
        let count = |index: usize| at(index).map_or(0, |product| product.w.n() as u32);
        let groups = [0, 1, 2].map(|index| count(index).div_ceil(kernels.group));
        let mut args = x.args(LaunchArgs::new());
        for index in 0..3 {
            args = args.buffer_or_null(at(index).map(|product| product.w.bytes()));
        }
        for index in 0..3 {
            args = args.buffer_or_null(at(index).and_then(|product| product.bias));
        }
        for index in 0..3 {
            args = args.out_or_null(at(index).map(|product| product.y));
        }
        let all: u32 = groups.iter().sum();
        let blocks = self.packed_blocks(all);
        let args = args.values([count(0), count(1), count(2)]);
        let args = args.values([first.k() as u32 / 32, groups[0], groups[0] + groups[1]]);
        let args = args.values([all / blocks, all % blocks]);
        let config = geometry::config([blocks, 1, 1], 256);
        // SAFETY: matrices have their lengths and alignment since they were made, activations have as many columns, results and biases the lengths
        // of the matrices, no output overlaps another operand: checked above. All blocks together have every group once.
        unsafe { self.launch(stream, kernels.family, kernels.three, config, args) }
    }

    /// Whether [`matvec_q8_gated`](Self::matvec_q8_gated) takes these matrices and this function.
    pub fn are_gated(gate: &PackedWeights, up: &PackedWeights, f: GluKind) -> bool {
        gate.ty() == up.ty()
            && [gate.n(), gate.k()] == [up.n(), up.k()]
            && gate.k() <= RowInput::MAX_COLUMNS
            && matches!(f, GluKind::Swiglu | GluKind::Geglu)
    }

    /// `y = f(x gate^T) * (x up^T)` for one row of activations and two matrices `[n, k]` of one type, `y` `[n]`.
    ///
    /// # Errors
    ///
    /// Matrices or a function that are not [gated](Self::are_gated) by one kernel, wrong lengths, overlap.
    pub fn matvec_q8_gated(
        &self,
        stream: &HipStream,
        x: RowInput<'_>,
        [gate, up]: [&PackedWeights; 2],
        f: GluKind,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let check = Check("matvec_q8_gated");
        check.holds(
            Self::are_gated(gate, up, f),
            "gate and up must have one type and shape, at most 16384 columns, and a function that the kernel has",
            gate.k(),
            up.k(),
        )?;
        x.check(check, gate.k())?;
        check.len("y", y, &[gate.n()])?;
        x.apart(check, "y", y)?;
        for (name, w) in [("gate", gate.bytes()), ("up", up.bytes())] {
            check.disjoint(("y", y), (name, w))?;
            x.apart_from(check, name, w)?;
        }
        let kernels = gate.kernels(check)?;
        let groups = (gate.n() as u32).div_ceil(kernels.group / 2);
        let blocks = self.packed_blocks(groups);
        let args = x.args(LaunchArgs::new()).buffer(gate.bytes()).buffer(up.bytes());
        let args = args.out(y).values([gate.n() as u32, gate.k() as u32 / 32]);
        let args = args.values([f as u32, groups / blocks, groups % blocks]);
        let config = geometry::config([blocks, 1, 1], 256);
        // SAFETY: as above; the kernel has the function.
        unsafe { self.launch(stream, kernels.family, kernels.gated, config, args) }
    }

    /// Blocks of the grid for so many groups of rows.
    pub(super) fn packed_blocks(&self, groups: u32) -> u32 {
        groups.min(self.backend().device().multiprocessors.max(1) * RESIDENT)
    }
}
