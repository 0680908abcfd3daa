//! Steps: how far apart the rows and slices of memory are.

/// How far apart rows are, and slices of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) row: usize,
    pub(crate) slice: usize,
}

impl Steps {
    /// Rows alone.
    pub(crate) fn rows(row: usize) -> Self {
        Self { row, slice: 0 }
    }

    /// Bytes from the first byte to the last. None if no memory has so many.
    pub(crate) fn span(self, [width, height, depth]: [usize; 3]) -> Option<usize> {
        let rows = self.row.checked_mul(height - 1)?;
        let slices = self.slice.checked_mul(depth - 1)?;
        rows.checked_add(slices)?.checked_add(width)
    }

    pub(crate) fn at(self, row: usize, slice: usize) -> usize {
        row * self.row + slice * self.slice
    }
}
