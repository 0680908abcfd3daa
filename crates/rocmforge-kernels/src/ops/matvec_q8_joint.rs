//! Products of one row of activations with several packed matrices, in one launch.

use super::matvec_q8::{EPS, PackedWeights, activations, input, norm, packed, rounding};
use super::row_input::{RowInput, RowNorm};
use crate::declared::{Again, Call, Declared, by_weight_type};
use crate::{GluKind, KernelResult, Kernels, WeightType, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const JOINT: &[Declared] = by_weight_type!(joint, joint_of, packable);
pub(super) const GATED: &[Declared] = by_weight_type!(gated, gated_of, packable);

/// The matrices in errors, each behind the blocks that a declaration makes it of.
pub(super) const MATRICES: [[&str; 2]; 3] = [
    ["blocks of w", "w"],
    ["blocks of another w", "another w"],
    ["blocks of the third w", "the third w"],
];

/// The results in errors.
pub(super) const OUTPUTS: [&str; 3] = ["y", "another y", "the third y"];

/// One of several products of the same activations.
#[derive(Debug, Clone, Copy)]
pub struct JointProduct<'a> {
    /// The weights `[n, k]`.
    pub w: &'a PackedWeights,
    /// `[n]`.
    pub bias: Option<&'a HipBuffer<f32>>,
    /// The result, `[n]`, or `[m, n]` for `m` rows of activations.
    pub y: &'a HipBuffer<f32>,
}

/// Whether these are two or three matrices of one type and width, of so many columns at most.
pub(super) fn are_alike(matrices: &[&PackedWeights], most: usize) -> bool {
    let same = |pair: &[&PackedWeights]| pair[0].ty() == pair[1].ty() && pair[0].k() == pair[1].k();
    (2..=3).contains(&matrices.len()) && matrices.windows(2).all(same) && matrices.iter().all(|w| w.k() <= most)
}

impl Kernels {
    /// Whether [`matvec_q8_joint`](Self::matvec_q8_joint) takes these matrices together: two or three of one type and width, at most
    /// [`RowInput::MAX_COLUMNS`].
    pub fn are_joint(matrices: &[&PackedWeights]) -> bool {
        are_alike(matrices, RowInput::MAX_COLUMNS)
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
        let op = self.op("matvec_q8_joint");
        op.dim_to("matrices", products.len(), 3)?;
        let matrices: Vec<&PackedWeights> = products.iter().map(|product| product.w).collect();
        let (first, last) = (matrices[0], matrices[products.len() - 1]);
        let rule = "two or three matrices must have one type and as many columns, at most 16384";
        op.holds(Self::are_joint(&matrices), rule, first.k(), last.k())?;
        let kernels = first.kernels(op.check())?;
        // What is not there has no rows, so the kernel never uses the pointers.
        let at = |index: usize| products.get(index);
        let rows = [0, 1, 2].map(|index| at(index).map_or(0, |product| product.w.n()));
        let mut op = x.read(op, first.k())?;
        for (index, [_, name]) in MATRICES.into_iter().enumerate() {
            op = match at(index) {
                Some(product) => op.reads(name, product.w.bytes()),
                None => op.null(),
            };
        }
        for (index, n) in rows.into_iter().enumerate() {
            op = op.read_or_null("bias", at(index).and_then(|product| product.bias), &[n])?;
        }
        for (index, n) in rows.into_iter().enumerate() {
            op = op.write_or_null(OUTPUTS[index], at(index).map(|product| product.y), &[n], &[])?;
        }
        let rows = rows.map(|n| n as u32);
        let groups = rows.map(|n| n.div_ceil(kernels.group));
        let (share, config) = self.shares(groups.iter().sum(), (kernels.family, kernels.three))?;
        (op.values(rows))
            .values([first.k() as u32 / 32, groups[0], groups[0] + groups[1]])
            .values(share)
            .run(stream, kernels.family, (kernels.three, config))
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
        let op = self.op("matvec_q8_gated");
        op.holds(
            Self::are_gated(gate, up, f),
            "gate and up must have one type and shape, at most 16384 columns, and a function that the kernel has",
            gate.k(),
            up.k(),
        )?;
        let kernels = gate.kernels(op.check())?;
        let (n, k) = (gate.n(), gate.k());
        let (share, config) = self.shares((n as u32).div_ceil(kernels.group / 2), (kernels.family, kernels.gated))?;
        (x.read(op, k)?.reads("gate", gate.bytes()).reads("up", up.bytes()))
            .write("y", y, &[n], &[])?
            .values([n as u32, k as u32 / 32, f as u32])
            .values(share)
            .run(stream, kernels.family, (kernels.gated, config))
    }
}

/// Rows of two or three matrices, and their columns. A bias is added to the first, and the activations are normed, where its rows are odd.
fn joint(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let (rows, k) = match *dims {
        [a, b, k] => (vec![a, b], k),
        [a, b, d, k] => (vec![a, b, d], k),
        _ => return Ok(()),
    };
    let odd = rows[0] % 2 == 1;
    let x = c.floats("x", activations(k))?;
    let norm = if odd { Some(norm(c, k)?) } else { None };
    let (mut matrices, mut outs) = (Vec::new(), Vec::new());
    for (names, &n) in MATRICES.into_iter().zip(&rows) {
        matrices.push(packed(c, names, ty, [n, k])?);
    }
    let bias = c.input_bias(odd, rows[0])?;
    for (name, &n) in OUTPUTS.into_iter().zip(&rows) {
        outs.push(c.output(name, n)?);
    }
    let products: Vec<_> = (0..rows.len())
        .map(|i| JointProduct {
            w: &matrices[i],
            bias: bias.as_ref().filter(|_| i == 0),
            y: &outs[i],
        })
        .collect();
    let norm = norm.as_ref().map(|[weight, y]| RowNorm { weight, eps: EPS, y });
    c.kernels
        .matvec_q8_joint(c.stream, RowInput { x: &x, norm }, &products)?;
    for (i, (name, [blocks, _])) in OUTPUTS.into_iter().zip(MATRICES).enumerate().take(rows.len()) {
        let bias = odd && i == 0;
        c.expect_within(name, |c| {
            let (w, x) = (c.u8(blocks), input(c));
            let largest = x.iter().fold(1.0, |a: f64, x| a.max(x.abs()));
            let values = reference::matvec_q8(ty, w, &x, bias.then(|| c.f32("bias")), None, k);
            (largest * rounding(ty, w, k), values)
        });
    }
    if norm.is_some() {
        c.expect("the norm", 2e-6, input);
    }
    Ok(())
}

/// Odd rows, and fewer than a group.
const fn joint_of(ty: WeightType) -> Declared {
    Declared {
        name: "matvec_q8_joint",
        tested: match ty.block_len() {
            32 => &[&[5, 68, 96], &[6, 1, 10, 4384], &[33, 1, 70, 96]],
            _ => &[&[5, 68, 768], &[6, 1, 34, 1280], &[33, 1, 70, 256]],
        },
        // Not counted here: `counters` has several products with the same packed matrix.
        again: Again::Activations,
        ..Declared::NEW
    }
}

/// Rows and columns of both matrices.
fn gated(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[n, k] = dims else { return Ok(()) };
    let f = if n.is_multiple_of(2) {
        GluKind::Swiglu
    } else {
        GluKind::Geglu
    };
    let x = c.floats("x", activations(k))?;
    let gate = packed(c, ["blocks of the gate", "gate"], ty, [n, k])?;
    let up = packed(c, ["blocks of up", "up"], ty, [n, k])?;
    let y = c.output("y", n)?;
    c.kernels.matvec_q8_gated(c.stream, (&x).into(), [&gate, &up], f, &y)?;
    c.expect_within("y", |c| {
        let product = |blocks| -> Vec<f32> {
            let y = reference::matvec_q8(ty, c.u8(blocks), &input(c), None, None, k);
            y.iter().map(|&y| y as f32).collect()
        };
        let values = reference::glu(f, &product("blocks of the gate"), &product("blocks of up"));
        (1e-5 * values.iter().fold(1.0, |a: f64, b| a.max(b.abs())), values)
    });
    Ok(())
}

const fn gated_of(ty: WeightType) -> Declared {
    Declared {
        name: "matvec_q8_gated",
        tested: match ty.block_len() {
            32 => &[&[1, 32], &[67, 64], &[130, 96]],
            _ => &[&[1, 256], &[67, 512], &[130, 768]],
        },
        ..joint_of(ty)
    }
}
