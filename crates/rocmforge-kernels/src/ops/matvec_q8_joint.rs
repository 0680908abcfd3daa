//! Products of one row of 8-bit activations with several packed matrices, in one launch.

use super::matvec_q8::{PackedWeights, Q8Activations, RESIDENT};
use crate::check::Check;
use crate::weight_type::Packed;
use crate::{Gate, KernelError, KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// Columns whose activations a block holds at once: rows of gated products are not longer.
const HELD: usize = 512 * 32;

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
    /// Whether [`matvec_q8_joint`](Self::matvec_q8_joint) takes these matrices together: two or three of one type and width.
    pub fn are_joint(matrices: &[&PackedWeights]) -> bool {
        let same = |pair: &[&PackedWeights]| pair[0].ty() == pair[1].ty() && pair[0].k() == pair[1].k();
        (2..=3).contains(&matrices.len()) && matrices.windows(2).all(same)
    }

    /// `y = x w^T (+ bias)` for two or three matrices of one type and one row of activations. Bit for bit what
    /// [`matvec_q8`](Self::matvec_q8) gives is not promised: a block's share of the rows is another one.
    ///
    /// # Errors
    ///
    /// Matrices that are not [joint](Self::are_joint), more than one row of activations, wrong lengths, overlap.
    pub fn matvec_q8_joint(
        &self,
        stream: &HipStream,
        x: &Q8Activations,
        products: &[JointProduct<'_>],
    ) -> KernelResult<()> {
        let check = Check("matvec_q8_joint");
        let matrices: Vec<&PackedWeights> = products.iter().map(|product| product.w).collect();
        check.dim_to("matrices", products.len(), 3)?;
        check.dim_to("m", x.m(), 1)?;
        let first = matrices[0];
        if !Self::are_joint(&matrices) {
            let last = matrices[products.len() - 1];
            return Err(KernelError::Mismatch {
                op: check.0,
                what: "two or three matrices must have one type and as many columns",
                left: first.k(),
                right: last.k(),
            });
        }
        columns(check, first, x)?;
        for (index, product) in products.iter().enumerate() {
            check.len("y", product.y, &[product.w.n()])?;
            check.disjoint(("y", product.y), ("x", x.bytes()))?;
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
            }
        }
        let kernels = kernels_of(check, first)?;
        let rows = kernels.matvec[0].rows;
        // What is not there has no rows, so the kernel never uses the pointers.
        let at = |index: usize| products.get(index);
        let count = |index: usize| at(index).map_or(0, |product| product.w.n() as u32);
        let groups = [0, 1, 2].map(|index| count(index).div_ceil(rows));
        let mut args = LaunchArgs::new().buffer(x.bytes());
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
        let args = args.value(count(0)).value(count(1)).value(count(2));
        let args = args
            .value(first.k() as u32 / 32)
            .value(groups[0])
            .value(groups[0] + groups[1]);
        let args = args.value(all / blocks).value(all % blocks);
        let config = geometry::config([blocks, 1, 1], 256);
        // SAFETY: matrices and activations have their lengths and alignment since they were made, results and biases the lengths of the matrices,
        // no result overlaps another operand: checked above. All blocks together have every group once.
        unsafe { self.launch(stream, kernels.family, kernels.three, config, args) }
    }

    /// Whether [`matvec_q8_gated`](Self::matvec_q8_gated) takes these matrices and this function.
    pub fn are_gated(gate: &PackedWeights, up: &PackedWeights, f: Gate) -> bool {
        gate.ty() == up.ty()
            && [gate.n(), gate.k()] == [up.n(), up.k()]
            && gate.k() <= HELD
            && matches!(f, Gate::Silu | Gate::Gelu)
    }

    /// `y = f(x gate^T) * (x up^T)` for one row of activations and two matrices `[n, k]` of one type, `y` `[n]`.
    ///
    /// # Errors
    ///
    /// Matrices or a function that are not [gated](Self::are_gated) by one kernel, more than one row of activations, wrong lengths, overlap.
    pub fn matvec_q8_gated(
        &self,
        stream: &HipStream,
        x: &Q8Activations,
        [gate, up]: [&PackedWeights; 2],
        f: Gate,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let check = Check("matvec_q8_gated");
        check.dim_to("m", x.m(), 1)?;
        if !Self::are_gated(gate, up, f) {
            return Err(KernelError::Mismatch {
                op: check.0,
                what: "gate and up must have one type and shape, at most 16384 columns, and a function that the kernel has",
                left: gate.k(),
                right: up.k(),
            });
        }
        columns(check, gate, x)?;
        check.len("y", y, &[gate.n()])?;
        check.disjoint(("y", y), ("x", x.bytes()))?;
        check.disjoint(("y", y), ("gate", gate.bytes()))?;
        check.disjoint(("y", y), ("up", up.bytes()))?;
        let kernels = kernels_of(check, gate)?;
        let groups = (gate.n() as u32).div_ceil(kernels.matvec[0].rows / 2);
        let blocks = self.packed_blocks(groups);
        let args = LaunchArgs::new()
            .buffer(x.bytes())
            .buffer(gate.bytes())
            .buffer(up.bytes());
        let args = args.out(y).value(gate.n() as u32).value(gate.k() as u32 / 32);
        let args = args.value(f as u32).value(groups / blocks).value(groups % blocks);
        let config = geometry::config([blocks, 1, 1], 256);
        // SAFETY: as above; the kernel has the function.
        unsafe { self.launch(stream, kernels.family, kernels.gated, config, args) }
    }

    /// Blocks of the grid for so many groups of rows.
    pub(super) fn packed_blocks(&self, groups: u32) -> u32 {
        groups.min(self.backend().device().multiprocessors.max(1) * RESIDENT)
    }
}

fn kernels_of(check: Check, w: &PackedWeights) -> KernelResult<&'static Packed> {
    let unpackable = KernelError::NotPackable {
        op: check.0,
        ty: w.ty(),
    };
    w.ty().packed().ok_or(unpackable)
}

fn columns(check: Check, w: &PackedWeights, x: &Q8Activations) -> KernelResult<()> {
    if x.k() == w.k() {
        return Ok(());
    }
    Err(KernelError::Mismatch {
        op: check.0,
        what: "weights and activations must have as many columns",
        left: w.k(),
        right: x.k(),
    })
}
