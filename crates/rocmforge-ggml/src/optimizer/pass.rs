//! Passes: what each is called, what it does, and how near its results are.

use std::fmt;

use super::rewrite::Rewriter;
use super::{
    Constants, add_norm, attention, bias, cse, dce, experts, fold, gate_up, last_rows, layout, noop, norm_weight, qkv,
    rope_rows,
};
use crate::Graph;

/// What a pass does.
pub(super) enum Work {
    /// Changes nodes; how many changes it made.
    Rewrite(fn(&mut Graph, &mut Constants) -> usize),
    /// Finds nodes that it makes one launch.
    Fusion(fn(&Graph, &mut Rewriter)),
}

/// How near the results of a rewritten graph are to those of the graph as it was, on the CPU backend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The same bits.
    Bits,
    /// Every element of what the rewritten nodes compute differs by at most so much of the largest magnitude among the terms that are
    /// summed for it: sums are taken in another order.
    Reordered(f32),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits => f.write_str("bit-equal"),
            Self::Reordered(bound) => write!(f, "{bound:e} of the largest"),
        }
    }
}

/// Products of up to 4 rows, and of weights of another order, add up in another order.
const REORDERED: Bound = Bound::Reordered(1e-5);

/// A row is a pass with its name, for tables and options, how near the results stay, and what it rewrites, in one line.
macro_rules! passes {
    ($($(#[$doc:meta])* $pass:ident $name:literal $bound:expr, $summary:literal)*) => {
        /// One kind of rewrite.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Pass {
            $($(#[$doc])* $pass,)*
        }

        impl Pass {
            /// Every pass, in the order in which they run.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$pass),*];

            /// Its name, for tables and options.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$pass => $name,)*
                }
            }

            /// What it rewrites, in one line.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$pass => $summary,)*
                }
            }

            /// How near the results stay.
            #[must_use]
            pub const fn bound(self) -> Bound {
                match self {
                    $(Self::$pass => $bound,)*
                }
            }
        }
    };
}

passes! {
    /// Views, reshapes and copies that change nothing go.
    NoOps "no-ops" Bound::Bits, "views, reshapes and copies that change nothing"
    /// Nodes that no output needs go.
    DeadCode "dead-code" Bound::Bits, "nodes that no output needs"
    /// Of nodes that compute the same, one stays.
    CommonSubexpressions "common-subexpressions" Bound::Bits, "nodes that compute what another node computes"
    /// Nodes that read only constants are computed once ([`super::Constants`]).
    ConstantFolding "constant-folding" Bound::Bits, "nodes that read only constants"
    /// Weights of products become column-major, as the kernels read them.
    Layout "layout" REORDERED, "row-major weights of products, to column-major"
    /// Where only some rows of a result are read, only those are computed: the choice of rows moves before norms, products and
    /// elementwise ops.
    LastRows "last-rows" REORDERED, "a choice of rows after ops that work row by row, to before them"
    /// MUL_MAT, SOFT_MAX, MUL_MAT become FLASH_ATTN_EXT: no matrix of scores.
    Attention "attention" REORDERED, "MUL_MAT + SOFT_MAX + MUL_MAT, to FLASH_ATTN_EXT"
    /// MUL after RMS_NORM or NORM becomes the norm's weight, ADD after NORM its bias.
    NormWeight "norm-weight" Bound::Bits, "RMS_NORM + MUL and NORM + MUL + ADD, to one norm"
    /// ADD after MUL_MAT becomes its bias.
    Bias "bias" Bound::Bits, "MUL_MAT + ADD, to one product"
    /// Two products of one input that meet in a gated unit (or in MUL, one of them after a unary op) are one launch.
    GateUp "gate-up" Bound::Bits, "two MUL_MAT and the gated unit of both: one launch"
    /// MUL_MAT and a unary op after it are one launch.
    Activation "activation" Bound::Bits, "MUL_MAT and a unary op: one launch"
    /// Several products of one input are one launch: query, key and value.
    Qkv "qkv" Bound::Bits, "several MUL_MAT of one input: one launch"
    /// Gate and up of chosen experts are one launch, and so is their last product with the sum of its rows times factors.
    Experts "experts" Bound::Bits, "two MUL_MAT_ID and their gated unit, MUL_MAT_ID and a weighted sum of its rows: one launch each"
    /// ADD and the RMS_NORM of the sum are one launch.
    AddNorm "add-norm" Bound::Bits, "ADD + RMS_NORM: one launch"
    /// ROPE and the SET_ROWS of what it gives are one launch.
    RopeSetRows "rope-set-rows" Bound::Bits, "ROPE + SET_ROWS: one launch"
}

impl Pass {
    /// What it does to a graph.
    pub(super) const fn work(self) -> Work {
        match self {
            Self::NoOps => Work::Rewrite(|graph, _| noop::run(graph)),
            Self::DeadCode => Work::Rewrite(|graph, _| dce::run(graph)),
            Self::CommonSubexpressions => Work::Rewrite(|graph, _| cse::run(graph)),
            Self::ConstantFolding => Work::Rewrite(fold::run),
            Self::Layout => Work::Rewrite(|graph, constants| layout::run(graph, constants)),
            Self::LastRows => Work::Rewrite(|graph, _| last_rows::run(graph)),
            Self::Attention => Work::Rewrite(|graph, _| attention::run(graph)),
            Self::NormWeight => Work::Rewrite(|graph, _| norm_weight::run(graph)),
            Self::Bias => Work::Rewrite(|graph, _| bias::run(graph)),
            Self::GateUp => Work::Fusion(gate_up::run),
            Self::Activation => Work::Fusion(bias::activations),
            Self::Qkv => Work::Fusion(qkv::run),
            Self::Experts => Work::Fusion(experts::run),
            Self::AddNorm => Work::Fusion(add_norm::run),
            Self::RopeSetRows => Work::Fusion(rope_rows::run),
        }
    }

    /// Whether it makes several nodes one launch and leaves the graph as it is.
    #[must_use]
    pub const fn is_fusion(self) -> bool {
        matches!(self.work(), Work::Fusion(_))
    }

    /// Its place in [`Self::ALL`].
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// How often each pass did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassCounts([usize; Pass::ALL.len()]);

impl PassCounts {
    /// Rewrites of a pass: nodes removed, weights changed, groups of nodes that became one, rows chosen earlier.
    #[must_use]
    pub const fn of(&self, pass: Pass) -> usize {
        self.0[pass.index()]
    }

    /// Rewrites of all passes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.0.iter().sum()
    }

    pub(super) fn add(&mut self, pass: Pass, count: usize) {
        self.0[pass.index()] += count;
    }
}
