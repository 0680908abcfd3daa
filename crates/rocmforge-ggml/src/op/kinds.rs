//! Members of op families, and the choices that ops have.

/// What stands above the diagonal after DIAG_MASK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiagFill {
    /// -inf.
    Inf,
    /// 0.
    Zero,
}

impl DiagFill {
    pub(crate) const ALL: [Self; 2] = [Self::Inf, Self::Zero];

    /// The name of the op that fills so.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Inf => "DIAG_MASK_INF",
            Self::Zero => "DIAG_MASK_ZERO",
        }
    }
}

/// Which value comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortOrder {
    /// The smallest.
    Ascending,
    /// The largest.
    Descending,
}

/// Which elements of a matrix TRI keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriKind {
    /// Those above the diagonal, and the diagonal.
    UpperDiag,
    /// Those above the diagonal.
    Upper,
    /// Those below the diagonal, and the diagonal.
    LowerDiag,
    /// Those below the diagonal.
    Lower,
}

impl TriKind {
    /// Whether an element is kept.
    #[must_use]
    pub const fn keeps(self, row: usize, col: usize) -> bool {
        match self {
            Self::UpperDiag => col >= row,
            Self::Upper => col > row,
            Self::LowerDiag => col <= row,
            Self::Lower => col < row,
        }
    }
}

/// What POOL_2D makes of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// Its largest element; the least f32 where all of it is padding.
    Max,
    /// The sum of its elements divided by all its places, padding too.
    Avg,
}

/// How UPSCALE finds the elements between others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpscaleMode {
    /// The element whose area has the new one's first corner.
    Nearest,
    /// The mean of the four elements around the new one's centre, weighted by their distances.
    Bilinear,
}
