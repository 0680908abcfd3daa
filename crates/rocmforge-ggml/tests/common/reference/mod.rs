//! Reference of every op in f64, written from the definition.
//!
//! [`run`] takes operands as lists of f64 in row-major order, with strides, views and types resolved, and gives the result unrounded.
//! Nothing here calls the backends; block formats are encoded and decoded by `rocmforge-gguf` ([`values`]).

mod attention;
pub(crate) mod elements;
mod moves;
mod planes;
mod products;
mod recurrent;
pub(crate) mod reductions;
mod rope;
mod route;
pub(crate) mod values;

use rocmforge_ggml::{DType, Op};

/// One operand or result: elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Values {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

impl Values {
    pub(crate) fn new(dtype: DType, shape: impl Into<Vec<usize>>, data: Vec<f64>) -> Self {
        let shape = shape.into();
        assert_eq!(shape.iter().product::<usize>(), data.len(), "{shape:?}");
        Self { dtype, shape, data }
    }

    /// Elements of the last dimension; 1 without dimensions.
    fn cols(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Each element through a function.
    fn map(&self, f: impl Fn(f64) -> f64) -> Vec<f64> {
        self.data.iter().map(|&x| f(x)).collect()
    }

    /// Each row through a function.
    fn rows(&self, f: impl FnMut(&[f64]) -> Vec<f64>) -> Vec<f64> {
        self.data.chunks(self.cols().max(1)).flat_map(f).collect()
    }

    /// An index that the elements hold.
    fn index(&self, at: usize) -> usize {
        self.data[at] as usize
    }
}

/// The elements of `op`'s result, of this shape, in row-major order and unrounded. An op that writes into its second operand gives all of
/// that operand afterwards, one with several results gives them one after the other.
pub(crate) fn run(op: &Op, x: &[Values], shape: &[usize]) -> Vec<f64> {
    if let Op::Arange { start, stop, step } = *op {
        let count = ((stop - start) / step).ceil() as usize;
        return (0..count)
            .map(|i| f64::from(start) + i as f64 * f64::from(step))
            .collect();
    }
    let a = &x[0];
    match *op {
        Op::Arange { .. } => Vec::new(),
        Op::Fill { value } => vec![f64::from(value); a.data.len()],
        Op::GetRows => moves::get_rows(a, &x[1]),
        Op::SetRows => moves::set_rows(a, &x[1], &x[2]),
        Op::MulMat => products::mul_mat(a, &x[1], x.get(2)),
        Op::MulMatId => products::mul_mat_id(a, &x[1], &x[2]),
        Op::AddId => products::add_id(a, &x[1], &x[2]),
        Op::Add => elements::broadcast(a, &x[1], |a, b| a + b),
        Op::Sub => elements::broadcast(a, &x[1], |a, b| a - b),
        Op::Mul => elements::broadcast(a, &x[1], |a, b| a * b),
        Op::Div => elements::broadcast(a, &x[1], |a, b| a / b),
        Op::Accumulate { offset } => {
            let mut out = x[1].data.clone();
            out[offset..].iter_mut().zip(&a.data).for_each(|(o, v)| *o += v);
            out
        }
        Op::Scale { factor } => a.map(|x| x * f64::from(factor)),
        Op::ScaleBias { factor, bias } => a.map(|x| x * f64::from(factor) + f64::from(bias)),
        Op::Clamp { min, max } => a.map(|x| x.max(f64::from(min)).min(f64::from(max))),
        Op::Sqr => a.map(|x| x * x),
        Op::Sqrt => a.map(f64::sqrt),
        Op::Log => a.map(f64::ln),
        Op::Sin => a.map(f64::sin),
        Op::Cos => a.map(f64::cos),
        Op::Softcap { cap } => a.map(|x| f64::from(cap) * (x / f64::from(cap)).tanh()),
        Op::Unary(kind) => a.map(|x| elements::unary(kind, x)),
        Op::Glu { kind, swapped } => elements::glu(x, kind, swapped),
        Op::LayerNorm { eps } => reductions::layer_norm(a, x.get(1), x.get(2), f64::from(eps)),
        Op::RmsNorm { eps } => reductions::rms_norm(a, x.get(1), f64::from(eps)),
        Op::L2Norm { eps } => reductions::l2_norm(a, f64::from(eps)),
        Op::SoftMax(s) => attention::soft_max(x, s),
        Op::DiagMask { n_past, fill } => attention::diag_mask(a, n_past, fill),
        Op::Rope(r) => rope::rope(a, &x[1], x.get(2), r),
        Op::FlashAttnExt(a) => attention::flash(x, a),
        Op::Attention(a) => attention::whole(x, a),
        Op::PagedAttention(a) => attention::paged(x, a),
        Op::SsmConv => recurrent::conv(x),
        Op::SsmScan => recurrent::scan(x),
        Op::GatedDeltaNet => recurrent::delta_net(x),
        Op::DeltaNetRows { eps, neighbours } => recurrent::delta_net_rows(x, f64::from(eps), neighbours),
        Op::Dup | Op::Cont | Op::Cpy { .. } | Op::Reshape | Op::View => a.data.clone(),
        Op::Concat { axis } => moves::concat(a, &x[1], axis),
        Op::Repeat => moves::repeat(a, shape),
        Op::Pad { left, .. } => moves::pad(a, left, shape),
        Op::Permute { axes } => moves::permute(a, &axes[..a.shape.len()]),
        Op::Transpose => {
            let mut axes: Vec<usize> = (0..a.shape.len()).collect();
            axes.swap(a.shape.len() - 1, a.shape.len() - 2);
            moves::permute(a, &axes)
        }
        Op::GroupNorm { n_groups, eps } => planes::group_norm(a, n_groups, f64::from(eps)),
        Op::Tri { kind } => planes::tri(a, kind),
        Op::SolveTri => planes::solve_tri(a, &x[1]),
        Op::Im2col {
            stride,
            padding,
            dilation,
        } => planes::im2col(a, &x[1], [stride, padding, dilation]),
        Op::Conv2d {
            stride,
            padding,
            dilation,
        } => planes::conv(a, &x[1], [stride, padding, dilation]),
        Op::Pool1d {
            kind,
            kernel,
            stride,
            padding,
        } => planes::pool_rows(a, kind, [kernel, stride, padding]),
        Op::Pool2d {
            kind,
            kernel,
            stride,
            padding,
        } => planes::pool(a, kind, [kernel, stride, padding]),
        Op::Upscale { mode, height, width } => planes::upscale(a, mode, [height, width]),
        Op::Argmax => reductions::order(a, true, 1),
        Op::Argsort { order } => {
            let largest = order == rocmforge_ggml::SortOrder::Descending;
            reductions::order(a, largest, a.cols())
        }
        Op::Route(how) => route::route(x, how),
        Op::TopK { k } => reductions::order(a, true, k),
        Op::Sum => vec![a.data.iter().sum()],
        Op::SumRows => a.rows(|row| vec![row.iter().sum()]),
        Op::Mean => a.rows(|row| vec![row.iter().sum::<f64>() / row.len() as f64]),
        Op::Cumsum => a.rows(|row| {
            let mut sum = 0.0;
            row.iter()
                .map(|v| {
                    sum += v;
                    sum
                })
                .collect()
        }),
        Op::MeanPool => reductions::mean_pool(a, &x[1]),
    }
}

/// The index of element `flat` of a row-major shape.
pub(crate) fn unravel(flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = flat;
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&d| {
            let i = rest % d;
            rest /= d;
            i
        })
        .collect();
    index.reverse();
    index
}

/// The flat place of an index in a row-major shape.
pub(crate) fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (&i, &d)| at * d + i)
}

/// The flat place in `part` of an element of a larger shape, both aligned at the last dimension: `part` repeats.
fn repeated(index: &[usize], part: &[usize]) -> usize {
    let own = &index[index.len() - part.len()..];
    own.iter().zip(part).fold(0, |at, (&i, &d)| at * d + i % d)
}
