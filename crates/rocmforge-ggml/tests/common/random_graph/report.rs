//! Seeds to run, reports of failures, and what many graphs must have covered.

use std::collections::BTreeMap;
use std::mem::discriminant;

use super::Case;
use super::check::{Compared, Failure};
use super::file::{from_json, to_json};
use super::shrink::shrink;

/// One seed instead of all.
const SEED: &str = "ROCMFORGE_GRAPH_SEED";
/// How many seeds.
const COUNT: &str = "ROCMFORGE_GRAPHS";
/// A graph file that is run.
const FILE: &str = "ROCMFORGE_GRAPH_FILE";

/// The seeds of a run.
#[derive(Clone, Debug)]
pub(crate) struct Seeds {
    seeds: std::ops::Range<u64>,
    all: bool,
}

impl Seeds {
    /// So many seeds from 0 on, unless the environment wants more, fewer or one.
    pub(crate) fn of(count: u64) -> Self {
        let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
        match (number(SEED), number(COUNT)) {
            (Some(seed), _) => Self {
                seeds: seed..seed + 1,
                all: false,
            },
            (None, wanted) => Self {
                seeds: 0..wanted.unwrap_or(count),
                all: wanted.is_none_or(|wanted| wanted >= count),
            },
        }
    }

    /// Whether enough graphs run for what holds of many.
    pub(crate) const fn is_all(&self) -> bool {
        self.all
    }
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.seeds.next()
    }
}

/// Prints figures, for those who run a test with `--nocapture`.
#[allow(clippy::print_stdout)]
pub(crate) fn say(figures: &str) {
    println!("{figures}");
}

/// The case of the file that the environment names.
pub(crate) fn file() -> Option<Case> {
    let path = std::env::var(FILE).ok()?;
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Some(from_json(&text))
}

/// The smallest case that fails in the same way, and how.
pub(crate) fn smallest(
    case: &Case,
    failure: Failure,
    check: &mut dyn FnMut(&Case) -> Result<Compared, Failure>,
) -> (Case, Failure) {
    let kind = |failure: &Failure| match failure {
        Failure::Error { error, .. } => (discriminant(failure), Some(discriminant(&**error))),
        _ => (discriminant(failure), None),
    };
    let first = kind(&failure);
    let mut last = failure;
    let small = shrink(case.clone(), &mut |case| match check(case) {
        Err(failure) if kind(&failure) == first => {
            last = failure;
            true
        }
        _ => false,
    });
    (small, last)
}

/// What was compared in a case that passes.
///
/// # Panics
/// It fails: with the seed, the smallest part that fails as a graph file, and how to repeat either.
pub(crate) fn assert_passes(
    case: &Case,
    backend: &str,
    check: &mut dyn FnMut(&Case) -> Result<Compared, Failure>,
) -> Compared {
    let failure = match check(case) {
        Ok(compared) => return compared,
        Err(failure) => failure,
    };
    let first = failure.to_string();
    let (small, failure) = smallest(case, failure, check);
    panic!(
        "{backend}: a random graph fails: {first}\n\
         The graph of {} nodes again: {SEED}={} with this test\n\
         Its smallest part that fails has {} nodes: {failure}\n\
         To run it: save this line as FILE, and {FILE}=FILE with the filter `a_graph_file_is_replayed`\n{}",
        case.graph.nodes().len(),
        case.seed,
        small.graph.nodes().len(),
        to_json(&small)
    );
}

/// Every op of the graph's IR, by name.
fn names() -> Vec<&'static str> {
    let unary = rocmforge_ggml::Unary::ALL.map(rocmforge_ggml::Unary::name);
    let glu = rocmforge_ggml::GluKind::ALL.map(rocmforge_ggml::GluKind::name);
    let others = [
        "GET_ROWS",
        "SET_ROWS",
        "MUL_MAT",
        "MUL_MAT_ID",
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "ADD_ID",
        "ACC",
        "SCALE",
        "SCALE_BIAS",
        "CLAMP",
        "SQR",
        "SQRT",
        "LOG",
        "SIN",
        "COS",
        "SOFTCAP",
        "NORM",
        "RMS_NORM",
        "L2_NORM",
        "SOFT_MAX",
        "DIAG_MASK_INF",
        "DIAG_MASK_ZERO",
        "ROPE",
        "FLASH_ATTN_EXT",
        "ATTENTION",
        "PAGED_ATTENTION",
        "GROUP_NORM",
        "TRI",
        "SOLVE_TRI",
        "IM2COL",
        "CONV_2D",
        "POOL_1D",
        "POOL_2D",
        "ARANGE",
        "FILL",
        "UPSCALE",
        "SSM_CONV",
        "SSM_SCAN",
        "GATED_DELTA_NET",
        "DELTA_NET_ROWS",
        "DUP",
        "CONT",
        "CPY",
        "CONCAT",
        "REPEAT",
        "PAD",
        "RESHAPE",
        "VIEW",
        "PERMUTE",
        "TRANSPOSE",
        "ARGMAX",
        "ARGSORT",
        "TOP_K",
        "ROUTE",
        "SUM",
        "SUM_ROWS",
        "MEAN",
        "CUMSUM",
        "MEAN_POOL",
    ];
    [unary.as_slice(), &glu, &others].concat()
}

/// Each op is in the graphs so often.
pub(crate) fn assert_every_op(ops: &BTreeMap<&'static str, usize>, least: usize) {
    for name in names() {
        let count = ops.get(name).copied().unwrap_or(0);
        assert!(count >= least, "{name}: {count} times, {least} wanted: {ops:?}");
    }
    let known = names();
    let unknown: Vec<_> = ops.keys().filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "`names` in {} lacks {unknown:?}", file!());
}

/// Nearly all tensors were compared, and most of them sharply.
pub(crate) fn assert_sharp(compared: Compared) {
    assert!(compared.near * 100 >= compared.total() * 85, "{compared:?}");
    assert!(compared.sharp * 100 >= compared.near * 90, "{compared:?}");
}
