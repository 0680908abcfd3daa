//! Matrix products with weights of every type, rows by index, caches.

use rocmforge_ggml::{DType, GluKind, Layout, Op, Route, RouteGate, TensorId, Unary};

use super::super::data::Data;
use super::{Generator, Maker};

pub(super) const MAKERS: [Maker; 11] = [
    mul_mat,
    mul_mat,
    mul_mat_unary,
    mul_mat_glu,
    mul_mat_many,
    mul_mat_of_two,
    mul_mat_id,
    add_id,
    get_rows,
    set_rows,
    set_rows,
];

/// Data of a matrix with `k` rows, whose products stay as large as what it is multiplied by.
fn matrix(k: usize) -> Data {
    let high = 1.7 / (k as f32).sqrt();
    Data::Uniform { low: -high, high }
}

/// An inner dimension; 256 fits the blocks of every type.
fn inner(g: &mut Generator<'_>) -> usize {
    g.one_of(&[1, 8, 33, 32, 64, 256, 256])
}

fn mul_mat(g: &mut Generator<'_>) -> Option<TensorId> {
    let k = inner(g);
    let (m, n) = (g.one_of(&[1, 3, 8, 9]), g.one_of(&[1, 5, 16, 33]));
    let dtype = g.weight_type(k);
    let lead: &[usize] = g.one_of(&[&[] as &[usize], &[], &[2], &[2, 2]]);
    let a = g.fit(&[lead, &[m, k]].concat())?;
    // The last dimension of the batch may be the weight's, too.
    let batch = if lead.is_empty() || g.one_in(2) {
        &[]
    } else {
        &lead[lead.len() - 1..]
    };
    let layout = match dtype.is_plain_float() && g.one_in(3) {
        true => Layout::RowMajor,
        false => Layout::ColMajor,
    };
    let b = g.weight(dtype, &[batch, &[k, n]].concat(), layout, matrix(k));
    let mut inputs = vec![a, b];
    if g.one_in(3) {
        inputs.push(bias_of(g, n));
    }
    g.push(Op::MulMat, &inputs)
}

/// Rows to multiply, mostly few, and how many they are wide.
fn few_rows(g: &mut Generator<'_>) -> Option<(TensorId, usize)> {
    let k = inner(g);
    let m = g.one_of(&[1, 3, 4, 9]);
    let lead: &[usize] = g.one_of(&[&[] as &[usize], &[], &[2]]);
    Some((g.fit(&[lead, &[m, k]].concat())?, k))
}

/// A weight `[k, n]` of any type.
fn weight_of(g: &mut Generator<'_>, k: usize, n: usize) -> TensorId {
    let dtype = g.weight_type(k);
    g.weight(dtype, &[k, n], Layout::ColMajor, matrix(k))
}

fn bias_of(g: &mut Generator<'_>, n: usize) -> TensorId {
    g.weight(
        DType::F32,
        &[n],
        Layout::RowMajor,
        Data::Uniform { low: -1.0, high: 1.0 },
    )
}

/// With a function that does not jump: the product, where it would, is no tensor.
fn mul_mat_unary(g: &mut Generator<'_>) -> Option<TensorId> {
    let kind = g.one_of(&[Unary::Silu, Unary::Gelu, Unary::Relu, Unary::GeluErf, Unary::Tanh]);
    let n = g.one_of(&[1, 5, 16, 33]);
    let (x, k) = few_rows(g)?;
    let mut inputs = vec![x, weight_of(g, k, n)];
    if g.one_in(2) {
        inputs.push(bias_of(g, n));
    }
    let product = g.push(Op::MulMat, &inputs)?;
    g.push(Op::Unary(kind), &[product])
}

fn mul_mat_glu(g: &mut Generator<'_>) -> Option<TensorId> {
    let kind = g.one_of(&GluKind::ALL);
    let n = g.one_of(&[1, 5, 16, 33]);
    let (x, k) = few_rows(g)?;
    let weights = [weight_of(g, k, n), weight_of(g, k, n)];
    let [gate, up] = weights.map(|weight| g.push(Op::MulMat, &[x, weight]));
    g.push(Op::Glu { kind, swapped: false }, &[gate?, up?])
}

fn mul_mat_many(g: &mut Generator<'_>) -> Option<TensorId> {
    let (x, k) = few_rows(g)?;
    let widths: Vec<usize> = (0..1 + g.random.below(3)).map(|_| g.one_of(&[1, 5, 16, 33])).collect();
    let biases = g.one_in(2);
    let mut last = None;
    for n in widths {
        let mut inputs = vec![x, weight_of(g, k, n)];
        if biases {
            inputs.push(bias_of(g, n));
        }
        last = Some(g.push(Op::MulMat, &inputs)?);
        last.iter().for_each(|&made| g.keep(made));
    }
    last
}

/// Two results: queries and keys of grouped heads.
fn mul_mat_of_two(g: &mut Generator<'_>) -> Option<TensorId> {
    let (kv_heads, group) = (g.one_of(&[1, 2]), g.one_of(&[1, 2]));
    let (m, n, k) = (g.one_of(&[1, 4]), g.one_of(&[3, 7]), g.one_of(&[8, 32]));
    let a = g.fit(&[kv_heads * group, m, k])?;
    let b = g.fit(&[kv_heads, n, k])?;
    let b = g.any_float(b)?;
    let keys = g.case.graph.transpose(b).expect("two dimensions");
    let keys = g.added(keys)?;
    g.push(Op::MulMat, &[a, keys])
}

/// Expert indices `[tokens, used]`.
fn experts_of(g: &mut Generator<'_>, tokens: usize, used: usize, experts: usize) -> Option<TensorId> {
    if g.one_in(2) {
        return Some(g.index_leaf(&[tokens, used], experts));
    }
    let scores = g.fit(&[tokens, experts])?;
    let ids = if g.one_in(2) {
        // Without a bias and groups, which make an order that is not that of the scores.
        let how = Route {
            k: used,
            gate: RouteGate::SoftMaxOfChosen,
            factor: 0.5,
            ..Route::PLAIN
        };
        g.push(Op::Route(how), &[scores])?
    } else {
        g.push(Op::TopK { k: used }, &[scores])?
    };
    g.indices.push(ids);
    Some(ids)
}

fn mul_mat_id(g: &mut Generator<'_>) -> Option<TensorId> {
    let (tokens, used, experts) = (g.one_of(&[1, 3, 5]), g.one_of(&[1, 2]), g.one_of(&[2, 4, 8]));
    let k = g.one_of(&[32, 64, 256]);
    let n = g.one_of(&[3, 8]);
    let dtype = g.weight_type(k);
    let own = if g.one_in(2) { used } else { 1 };
    let x = g.fit(&[tokens, own, k])?;
    let ids = experts_of(g, tokens, used, experts)?;
    let weight = g.weight(dtype, &[experts, k, n], Layout::ColMajor, matrix(k));
    g.push(Op::MulMatId, &[x, weight, ids])
}

fn add_id(g: &mut Generator<'_>) -> Option<TensorId> {
    let (tokens, used, experts) = (g.one_of(&[1, 3, 5]), g.one_of(&[1, 2]), g.one_of(&[2, 4, 8]));
    let n = g.one_of(&[3, 8, 33]);
    let a = g.fit(&[tokens, used, n])?;
    let a = g.any_float(a)?;
    let ids = experts_of(g, tokens, used, experts)?;
    let b = g.weight(
        DType::F32,
        &[experts, n],
        Layout::RowMajor,
        Data::Uniform { low: -1.0, high: 1.0 },
    );
    g.push(Op::AddId, &[a, b, ids])
}

fn get_rows(g: &mut Generator<'_>) -> Option<TensorId> {
    let (rows, d) = (g.one_of(&[1, 5, 9]), g.one_of(&[8, 32, 256]));
    let batch: &[usize] = g.one_of(&[&[] as &[usize], &[], &[2], &[2, 3]]);
    let shape = [batch, &[rows, d]].concat();
    let table = if g.one_in(2) {
        let dtype = g.weight_type(d);
        g.weight(dtype, &shape, Layout::RowMajor, Data::Uniform { low: -1.0, high: 1.0 })
    } else {
        let table = g.fit(&shape)?;
        g.any_float(table)?
    };
    let wanted = g.one_of(&[1, 4, 7]);
    let ids = g.index_leaf(&[batch, &[wanted]].concat(), rows);
    g.push(Op::GetRows, &[table, ids])
}

/// A write into a cache of any type that can be encoded, and a read of all of it or of some rows.
fn set_rows(g: &mut Generator<'_>) -> Option<TensorId> {
    let d = g.one_of(&[8, 32, 64, 256]);
    let rows = g.one_of(&[4, 7]);
    let lead: &[usize] = g.one_of(&[&[] as &[usize], &[], &[3]]);
    let count = 1 + g.random.below(rows);
    let cache = cache(g, &[lead, &[rows, d]].concat());
    let src = g.fit(&[lead, &[count, d]].concat())?;
    let src = g.any_float(src)?;
    let lists: &[usize] = if g.one_in(2) && !lead.is_empty() { &[1] } else { lead };
    let id_type = g.one_of(&[DType::U32, DType::I32, DType::I64]);
    let ids = g.leaf(id_type, &[lists, &[count]].concat(), Data::Distinct { below: rows });
    let written = write_rows(g, src, cache, ids)?;
    read_rows(g, written, rows, lead)
}

/// All of a cache, or some rows.
pub(super) fn read_rows(g: &mut Generator<'_>, written: TensorId, rows: usize, lead: &[usize]) -> Option<TensorId> {
    if g.one_in(2) || !lead.is_empty() {
        return g.cast(written, DType::F32);
    }
    let ids = g.index_leaf(&[3], rows);
    g.push(Op::GetRows, &[written, ids])
}

/// A leaf that rows are written into.
pub(super) fn cache(g: &mut Generator<'_>, shape: &[usize]) -> TensorId {
    let dtype = loop {
        let dtype = g.weight_type(shape[shape.len() - 1]);
        if dtype.is_encodable() {
            break dtype;
        }
    };
    g.leaf(dtype, shape, Data::Uniform { low: -1.0, high: 1.0 })
}

pub(super) fn write_rows(g: &mut Generator<'_>, src: TensorId, dst: TensorId, ids: TensorId) -> Option<TensorId> {
    let written = g.case.graph.set_rows(src, dst, ids).expect("fits");
    g.added(written)
}
