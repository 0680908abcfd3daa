//! Members of the op family DIAG_MASK, and the orders of ARGSORT.

/// What stands above the diagonal after DIAG_MASK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiagFill {
    /// -inf.
    Inf,
    /// 0.
    Zero,
}

/// Which value comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortOrder {
    /// The smallest.
    Ascending,
    /// The largest.
    Descending,
}
