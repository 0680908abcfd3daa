//! Products with matrices of floats that have few rows, such as a router's.

use crate::check::MAX_COLUMNS;
use crate::declared::{Call, Declared};
use crate::weight_type::{Format, Products};
use crate::{KernelResult, Kernels, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[F32, F16, BF16];

/// The most rows of activations.
const MOST: usize = 8;

/// A matrix of a product with few rows of weights.
#[derive(Debug, Clone, Copy)]
pub struct BlockProduct<'a> {
    /// `[n, k]`.
    pub w: &'a HipBuffer<u8>,
    /// `[n]`.
    pub bias: Option<&'a HipBuffer<f32>>,
    /// `[m, n]`.
    pub y: &'a HipBuffer<f32>,
    /// Rows of weights.
    pub n: usize,
}

impl Kernels {
    /// Whether matrices of floats have so few rows, `n` together, that for `m` rows of activations [`matmul_weight`](Self::matmul_weight)'s other kernels would leave
    /// three of four multiprocessors without work. Other types have no such kernel.
    pub fn takes_block(&self, ty: WeightType, m: usize, n: usize) -> bool {
        let Format {
            block: Some(_),
            products: Products::Each { matvec, .. },
            ..
        } = ty.format()
        else {
            return false;
        };
        let usual = matvec.iter().find(|matvec| m <= matvec.most);
        let units = self.backend().device().multiprocessors as usize;
        usual.is_some_and(|usual| m <= MOST && n.div_ceil(8 * usual.rows as usize) <= units / 4)
    }

    /// `y = x w^T (+ bias)` for one matrix or two, of one type of floats: `x` `[m, k]`. A block has an element of a result.
    ///
    /// # Errors
    ///
    /// No matrix, or more than two; a type that is not of floats, more than 8 rows of activations, and what [`matmul_weight`](Self::matmul_weight) refuses.
    pub fn matvec_block(
        &self,
        stream: &HipStream,
        ty: WeightType,
        x: &HipBuffer<f32>,
        [m, k]: [usize; 2],
        products: &[BlockProduct<'_>],
    ) -> KernelResult<()> {
        let op = self.op("matvec_block");
        let (rows, depth) = (op.dim_to("m", m, MOST)?, op.dim_to("k", k, MAX_COLUMNS)?);
        op.dim_to("matrices", products.len(), 2)?;
        let name = ty.format().block;
        op.holds(name.is_some(), "weights must be floats", ty.block_len(), 1)?;
        let (mut op, mut counts) = (op.read("x", x, &[m, k])?, [0; 2]);
        for ((product, [w, bias, y]), count) in products.iter().zip(NAMES).zip(&mut counts) {
            *count = op.dim_to("n", product.n, MAX_COLUMNS)?;
            op = (op.weights(w, ty, product.w, [product.n, k])?)
                .read_or_null(bias, product.bias, &[product.n])?
                .write(y, product.y, &[m, product.n], &[])?;
        }
        if products.len() == 1 {
            op = op.null().null().null();
        }
        let [n, n2] = counts;
        let launch = (name.unwrap_or_default(), geometry::config([n + n2, rows, 1], 256));
        op.values([n, n2, depth]).run(stream, "matvec_block", launch)
    }
}

/// Operands of both matrices.
const NAMES: [[&str; 3]; 2] = [["w", "bias", "y"], ["second w", "second bias", "second y"]];

/// Rows of activations, rows of both matrices, columns; with biases where a matrix has an odd number of rows.
fn product(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, n2, k] = dims else { return Ok(()) };
    let x = c.input("x", m * k, -1.0..1.0)?;
    let mut operands = Vec::new();
    for (n, [w, bias, y]) in [n, n2].into_iter().zip(NAMES) {
        let weights = c.weights(w, ty, n * k)?;
        let biases = (n % 2 == 1).then(|| c.input(bias, n, -1.0..1.0)).transpose()?;
        operands.push((weights, biases, c.output(y, m * n)?, n));
    }
    let of = |(w, bias, y, n)| BlockProduct { w, bias, y, n };
    let products = operands.iter().map(|(w, bias, y, n)| of((w, bias.as_ref(), y, *n)));
    let products: Vec<BlockProduct<'_>> = products.collect();
    c.kernels.matvec_block(c.stream, ty, &x, [m, k], &products)?;
    for [w, bias, y] in NAMES {
        c.expect(y, 2e-5, |c| {
            let bias = Some(c.f32(bias)).filter(|bias| !bias.is_empty());
            reference::matmul_weight(ty, c.u8(w), c.f32("x"), bias, k)
        });
    }
    Ok(())
}

const F32: Declared = Declared {
    name: "matvec_block",
    call: |c, dims| product(c, dims, WeightType::F32),
    tested: &[&[1, 1, 1, 1], &[3, 5, 2, 7], &[8, 33, 1, 1030], &[1, 7, 64, 5003]],
    ..Declared::NEW
};
const F16: Declared = Declared {
    call: |c, dims| product(c, dims, WeightType::F16),
    ..F32
};
const BF16: Declared = Declared {
    call: |c, dims| product(c, dims, WeightType::Bf16),
    ..F32
};
