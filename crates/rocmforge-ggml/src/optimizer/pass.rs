//! Passes: what each is called, what it does, and how near its results are.

use std::fmt;

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

/// One kind of rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pass {
    /// Views, reshapes and copies that change nothing go.
    NoOps,
    /// Nodes that no output needs go.
    DeadCode,
    /// Of nodes that compute the same, one stays.
    CommonSubexpressions,
    /// Nodes that read only constants are computed once ([`super::Constants`]).
    ConstantFolding,
    /// Weights of products become column-major, as the kernels read them.
    Layout,
    /// Where only some rows of a result are read, only those are computed: the choice of rows moves before norms, products and
    /// elementwise ops.
    LastRows,
    /// MUL_MAT, SOFT_MAX, MUL_MAT become FLASH_ATTN_EXT: no matrix of scores.
    Attention,
    /// MUL after RMS_NORM or NORM becomes the norm's weight, ADD after NORM its bias.
    NormWeight,
    /// ADD after MUL_MAT becomes its bias.
    Bias,
    /// Two products of one input that meet in a gated unit (or in MUL, one of them after a unary op) are one launch.
    GateUp,
    /// MUL_MAT and a unary op after it are one launch.
    Activation,
    /// Several products of one input are one launch: query, key and value.
    Qkv,
    /// ADD and the RMS_NORM of the sum are one launch.
    AddNorm,
    /// ROPE and the SET_ROWS of what it gives are one launch.
    RopeSetRows,
}

impl Pass {
    /// Every pass, in the order in which they run.
    pub const ALL: [Self; 14] = [
        Self::NoOps,
        Self::DeadCode,
        Self::CommonSubexpressions,
        Self::ConstantFolding,
        Self::Layout,
        Self::LastRows,
        Self::Attention,
        Self::NormWeight,
        Self::Bias,
        Self::GateUp,
        Self::Activation,
        Self::Qkv,
        Self::AddNorm,
        Self::RopeSetRows,
    ];

    /// Its name, for tables and options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoOps => "no-ops",
            Self::DeadCode => "dead-code",
            Self::CommonSubexpressions => "common-subexpressions",
            Self::ConstantFolding => "constant-folding",
            Self::Layout => "layout",
            Self::LastRows => "last-rows",
            Self::Attention => "attention",
            Self::NormWeight => "norm-weight",
            Self::Bias => "bias",
            Self::GateUp => "gate-up",
            Self::Activation => "activation",
            Self::Qkv => "qkv",
            Self::AddNorm => "add-norm",
            Self::RopeSetRows => "rope-set-rows",
        }
    }

    /// What it rewrites, in one line.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::NoOps => "views, reshapes and copies that change nothing",
            Self::DeadCode => "nodes that no output needs",
            Self::CommonSubexpressions => "nodes that compute what another node computes",
            Self::ConstantFolding => "nodes that read only constants",
            Self::Layout => "row-major weights of products, to column-major",
            Self::LastRows => "a choice of rows after ops that work row by row, to before them",
            Self::Attention => "MUL_MAT + SOFT_MAX + MUL_MAT, to FLASH_ATTN_EXT",
            Self::NormWeight => "RMS_NORM + MUL and NORM + MUL + ADD, to one norm",
            Self::Bias => "MUL_MAT + ADD, to one product",
            Self::GateUp => "two MUL_MAT and the gated unit of both: one launch",
            Self::Activation => "MUL_MAT and a unary op: one launch",
            Self::Qkv => "several MUL_MAT of one input: one launch",
            Self::AddNorm => "ADD + RMS_NORM: one launch",
            Self::RopeSetRows => "ROPE + SET_ROWS: one launch",
        }
    }

    /// Whether it makes several nodes one launch and leaves the graph as it is.
    #[must_use]
    pub const fn is_fusion(self) -> bool {
        matches!(
            self,
            Self::GateUp | Self::Activation | Self::Qkv | Self::AddNorm | Self::RopeSetRows
        )
    }

    /// How near the results stay.
    #[must_use]
    pub const fn bound(self) -> Bound {
        match self {
            // Products of up to 4 rows, and of weights of another order, add up in another order.
            Self::LastRows | Self::Layout | Self::Attention => Bound::Reordered(1e-5),
            _ => Bound::Bits,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_list() {
        for (place, pass) in Pass::ALL.into_iter().enumerate() {
            assert_eq!(pass.index(), place, "{}", pass.name());
        }
    }
}
