//! Views, copies, conversions, writes in place.

use rocmforge_ggml::{DType, Layout, Op, TensorDesc, TensorId};

use super::super::data::Data;
use super::{Generator, Maker};

pub(super) const MAKERS: [Maker; 12] = [
    copy,
    convert,
    convert,
    whole_numbers,
    copy_into,
    concat,
    repeat,
    pad,
    turn,
    turn,
    view,
    accumulate,
];

fn copy(g: &mut Generator<'_>) -> Option<TensorId> {
    let op = g.one_of(&[Op::Dup, Op::Cont, Op::Cpy { to: None }]);
    let x = g.pick();
    g.push(op, &[x])
}

/// To another type and back.
fn convert(g: &mut Generator<'_>) -> Option<TensorId> {
    let cols = g.one_of(&[32, 64]);
    let rows = g.one_of(&[1, 4]);
    let x = g.fit(&[rows, cols])?;
    let to = loop {
        let to = g.weight_type(cols);
        if to.is_encodable() && to != DType::F32 {
            break to;
        }
    };
    let to = if g.one_in(8) { DType::F64 } else { to };
    let other = g.cast(x, to)?;
    let other = if g.one_in(3) {
        g.push(Op::Cont, &[other])?
    } else {
        other
    };
    g.cast(other, DType::F32)
}

fn whole_numbers(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = g.pick();
    let large = g.push(Op::Scale { factor: 17.3 }, &[x])?;
    let to = g.one_of(&[DType::I8, DType::I16, DType::I32, DType::I64, DType::U32]);
    let large = if to == DType::U32 {
        g.push(Op::Sqr, &[large])?
    } else {
        large
    };
    let whole = g.cast(large, to)?;
    let whole = if g.one_in(2) { g.push(Op::Dup, &[whole])? } else { whole };
    g.cast(whole, DType::F32)
}

/// Into memory of another shape and type.
fn copy_into(g: &mut Generator<'_>) -> Option<TensorId> {
    let src = g.fit(&[4, 2, 32])?;
    let dst = super::products::cache(g, &[2, 4, 32]);
    let written = g.case.graph.cpy(src, dst).expect("as many elements");
    let written = g.added(written)?;
    g.cast(written, DType::F32)
}

fn concat(g: &mut Generator<'_>) -> Option<TensorId> {
    let a = g.pick();
    let mut shape = g.dims(a);
    let axis = g.random.below(shape.len());
    shape[axis] = 1 + g.random.below(5);
    let b = g.fit(&shape)?;
    let a = g.any_float(a)?;
    let b = g.cast_like(b, a)?;
    let pair = if g.one_in(2) { [a, b] } else { [b, a] };
    g.push(Op::Concat { axis }, &pair)
}

fn repeat(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = g.pick();
    let mut shape = g.dims(x);
    let at = g.random.below(shape.len());
    shape[at] *= 2;
    let repeated = g.case.graph.repeat(x, shape).expect("a multiple");
    g.added(repeated)
}

fn pad(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = g.pick();
    let rank = g.dims(x).len();
    let (mut left, mut right) = ([0; 4], [0; 4]);
    for d in 0..rank {
        left[d] = g.random.below(2);
        right[d] = g.random.below(3);
    }
    g.push(Op::Pad { left, right }, &[x])
}

/// The dimensions in another order, as a view that is read as it is or made contiguous.
fn turn(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = g.pick();
    let rank = g.dims(x).len();
    let turned = if rank >= 2 && g.one_in(2) {
        g.case.graph.transpose(x).expect("two dimensions")
    } else {
        let mut axes: Vec<usize> = (0..rank).collect();
        for i in 1..rank {
            axes.swap(i, g.random.below(i + 1));
        }
        g.case.graph.permute(x, &axes).expect("a permutation")
    };
    let turned = g.added(turned)?;
    if g.one_in(2) {
        g.push(Op::Cont, &[turned])
    } else {
        Some(turned)
    }
}

/// Some of the elements along one dimension, with a step.
fn view(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = g.pick();
    let desc = g.desc(x).clone();
    let at = g.random.below(desc.shape.len());
    let n = desc.shape[at];
    let (start, step) = (g.random.below(n), 1 + g.random.below(2));
    let mut view = TensorDesc::view_of(&desc, start * desc.strides[at] * 4);
    view.shape[at] = (n - start).div_ceil(step);
    view.strides[at] *= step;
    view.layout = Layout::Strided;
    let view = g.case.graph.view(x, view).expect("a part");
    g.added(view)
}

/// Added in place to a copy.
fn accumulate(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = g.pick();
    let dst = match g.one_in(2) {
        true => g.push(Op::Dup, &[x])?,
        false => {
            let shape = g.dims(x);
            g.leaf(DType::F32, &shape, Data::Uniform { low: -1.0, high: 1.0 })
        }
    };
    let size = g.desc(dst).element_count();
    let count = 1 + g.random.below(size);
    let src = g.fit(&[count])?;
    let offset = g.random.below(size - count + 1);
    let view = TensorDesc::view_of(g.desc(dst), 0);
    let output = g.case.graph.add_tensor(view);
    g.case
        .graph
        .add_node(Op::Accumulate { offset }, vec![src, dst], vec![output]);
    g.added(output)
}
