//! Jumps: ops whose result changes by much where an operand changes by little.
//!
//! The operands here are elements in each memory, the exact one first.

use rocmforge_ggml::{Op, Route, SortOrder, TensorDesc, Unary};

use super::super::super::reference::Values;
use super::super::super::reference::elements::unary;
use super::super::super::reference::reductions::order;
use super::distance;

/// How many times its own noise an operand must be away from a jump.
const MARGIN: f64 = 16.0;

/// Of each element: how near a jump is too near. An element without noise may be as near as it likes.
fn margins(values: &[Vec<f64>]) -> Vec<f64> {
    let mut noise = vec![0.0f64; values[0].len()];
    for noisy in &values[1..] {
        for (most, (n, e)) in noise.iter_mut().zip(noisy.iter().zip(&values[0])) {
            *most = most.max(distance(*n, *e));
        }
    }
    let finite = || noise.iter().filter(|n| n.is_finite());
    let mean = (finite().map(|n| n * n).sum::<f64>() / finite().count().max(1) as f64).sqrt();
    let own = |n: &f64| if *n == 0.0 { 0.0 } else { MARGIN * n.max(mean) };
    noise.iter().map(own).collect()
}

/// How far each element of a function jumps that jumps near its operand. 0 where the noisy memories show the jump already: whatever is
/// added there would grow from node to node.
pub(super) fn steps(values: &[Vec<f64>], function: impl Fn(Vec<f64>) -> Vec<f64>) -> Vec<f64> {
    let results: Vec<Vec<f64>> = values.iter().map(|values| function(values.clone())).collect();
    let (exact, noisy) = (&results[0], &results[1..]);
    let mut steps = vec![0.0; exact.len()];
    let margins = margins(values);
    if margins.iter().all(|margin| *margin == 0.0) {
        return steps;
    }
    // From near to far: the nearest jump counts.
    for share in [-0.0625, 0.0625, -0.125, 0.125, -0.25, 0.25, -0.5, 0.5, -1.0, 1.0] {
        let moved = values[0].iter().zip(&margins).map(|(v, margin)| v + share * margin);
        for (at, moved) in function(moved.collect()).into_iter().enumerate() {
            if steps[at] == 0.0 && noisy.iter().all(|noisy| noisy[at] == exact[at]) {
                steps[at] = distance(moved, exact[at]);
            }
        }
    }
    steps
}

/// How far each element of the result may jump, of an op of one element that jumps.
pub(super) fn of_elements(op: &Op, values: &[Vec<f64>]) -> Option<Vec<f64>> {
    match *op {
        Op::Unary(kind @ (Unary::Sgn | Unary::Step | Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::Round)) => {
            Some(steps(values, |values| {
                values.into_iter().map(|v| unary(kind, v)).collect()
            }))
        }
        _ => None,
    }
}

/// Whether two neighbours in the order of a row, of which the result names one, might change places.
pub(super) fn in_order(op: &Op, desc: &TensorDesc, values: &[Vec<f64>]) -> bool {
    let cols = desc.shape.last().copied().unwrap_or(1);
    let (largest, named) = match *op {
        Op::Argsort { order } => (order == SortOrder::Descending, cols),
        Op::TopK { k } | Op::Route(Route { k, .. }) => (true, k),
        Op::Argmax => (true, 1),
        _ => return false,
    };
    let noise = margins(values);
    let exact = Values::new(desc.dtype, desc.shape.clone(), values[0].clone());
    let places = order(&exact, largest, cols);
    let mut rows = places.chunks(cols).enumerate();
    rows.any(|(row, places)| {
        let at = |i: usize| row * cols + places[i] as usize;
        (1..cols.min(named + 1)).any(|i| {
            let (a, b) = (at(i - 1), at(i));
            (exact.data[a] - exact.data[b]).abs() < noise[a] + noise[b]
        })
    })
}
