//! Ops on matrices and images.

use rocmforge_ggml::{DType, Op, PoolKind, TensorId, TriKind, UpscaleMode};

use super::super::data::Data;
use super::{Generator, Maker};

pub(super) const MAKERS: [Maker; 8] = [group_norm, tri, solve_tri, im2col, conv, pool, pool_rows, upscale];

fn image(g: &mut Generator<'_>) -> Option<TensorId> {
    let shape = [
        g.one_of(&[1, 2]),
        g.one_of(&[2, 3]),
        g.one_of(&[3, 5]),
        g.one_of(&[4, 7]),
    ];
    let x = g.fit(&shape)?;
    g.any_float(x)
}

fn two(g: &mut Generator<'_>, of: &[usize]) -> [usize; 2] {
    [g.one_of(of), g.one_of(of)]
}

fn group_norm(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = image(g)?;
    let (n_groups, eps) = (g.one_of(&[1, 2]), g.one_of(&[1e-5, 0.1]));
    g.push(Op::GroupNorm { n_groups, eps }, &[x])
}

fn tri(g: &mut Generator<'_>) -> Option<TensorId> {
    let n = g.one_of(&[1, 3, 8]);
    let x = g.fit(&[2, n, n])?;
    let x = g.any_float(x)?;
    let kind = g.one_of(&[TriKind::UpperDiag, TriKind::Upper, TriKind::LowerDiag, TriKind::Lower]);
    g.push(Op::Tri { kind }, &[x])
}

fn solve_tri(g: &mut Generator<'_>) -> Option<TensorId> {
    let (n, cols) = (g.one_of(&[1, 3, 5]), g.one_of(&[1, 4]));
    let a = g.leaf(DType::F32, &[2, n, n], Data::Uniform { low: 0.5, high: 1.0 });
    let b = g.fit(&[2, n, cols])?;
    g.push(Op::SolveTri, &[a, b])
}

/// Kernel and image; stride, padding and dilation.
fn under_kernel(g: &mut Generator<'_>) -> Option<([TensorId; 2], [[usize; 2]; 3])> {
    let x = image(g)?;
    let channels = g.dims(x)[1];
    let [kh, kw] = two(g, &[1, 2, 3]);
    let kernel = g.leaf(
        DType::F32,
        &[2, channels, kh, kw],
        Data::Uniform { low: 0.0, high: 1.0 },
    );
    Some(([kernel, x], [(); 3].map(|()| two(g, &[1, 2]))))
}

fn im2col(g: &mut Generator<'_>) -> Option<TensorId> {
    let (inputs, [stride, padding, dilation]) = under_kernel(g)?;
    let op = Op::Im2col {
        stride,
        padding,
        dilation,
    };
    g.push(op, &inputs)
}

fn conv(g: &mut Generator<'_>) -> Option<TensorId> {
    let (inputs, [stride, padding, dilation]) = under_kernel(g)?;
    let op = Op::Conv2d {
        stride,
        padding,
        dilation,
    };
    g.push(op, &inputs)
}

fn pool_rows(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = image(g)?;
    let op = Op::Pool1d {
        kind: g.one_of(&[PoolKind::Max, PoolKind::Avg]),
        kernel: g.one_of(&[2, 3]),
        stride: g.one_of(&[1, 2]),
        padding: g.one_of(&[0, 1]),
    };
    g.push(op, &[x])
}

fn pool(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = image(g)?;
    let op = Op::Pool2d {
        kind: g.one_of(&[PoolKind::Max, PoolKind::Avg]),
        kernel: two(g, &[2, 3]),
        stride: two(g, &[1, 2]),
        padding: two(g, &[0, 1]),
    };
    g.push(op, &[x])
}

fn upscale(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = image(g)?;
    let op = Op::Upscale {
        mode: g.one_of(&[UpscaleMode::Nearest, UpscaleMode::Bilinear]),
        height: g.one_of(&[2, 6, 9]),
        width: g.one_of(&[4, 11]),
    };
    g.push(op, &[x])
}
