//! Columns of a row-major matrix: parts that several threads write at the same time.

use std::marker::PhantomData;

/// Some columns of all rows of a matrix.
pub(super) struct ColumnsMut<'a> {
    /// The first row's first column here.
    start: *mut f32,
    stride: usize,
    width: usize,
    height: usize,
    matrix: PhantomData<&'a mut [f32]>,
}

// SAFETY: only this value reaches the columns as long as the matrix is borrowed, like a `&mut [f32]`, which is `Send`.
unsafe impl Send for ColumnsMut<'_> {}

impl<'a> ColumnsMut<'a> {
    /// Parts of `width` columns (the last may have fewer) of a matrix whose rows have `stride`, each with the index of its first column.
    pub(super) fn split(
        matrix: &'a mut [f32],
        stride: usize,
        width: usize,
    ) -> impl Iterator<Item = (usize, ColumnsMut<'a>)> + Send {
        let height = matrix.len().checked_div(stride).unwrap_or(0);
        // The columns of the first row: each is the start of a part's rows.
        let all = Self {
            start: matrix.as_mut_ptr(),
            stride,
            width: stride,
            height,
            matrix: PhantomData,
        };
        (0..stride).step_by(width.max(1)).map(move |first| {
            let all = &all;
            let part = ColumnsMut {
                // `first` is below the stride: within the first row, or at the end of an empty matrix, which has no row to reach.
                start: all.start.wrapping_add(first),
                stride: all.stride,
                width: width.min(all.width - first),
                height: all.height,
                matrix: PhantomData,
            };
            (first, part)
        })
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// Row `row`'s part.
    ///
    /// # Panics
    /// If there is no such row.
    pub(super) fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.height, "row {row} of {}", self.height);
        // SAFETY: `split` took `height` whole rows of `stride` from the matrix, and the row is one of them by the check above.
        let start = unsafe { self.start.add(row * self.stride) };
        // SAFETY: `width` columns from the part's first lie within the row, and `split` gave them to this part alone.
        unsafe { std::slice::from_raw_parts_mut(start, self.width) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_in_one_part() {
        for (height, stride, width) in [(3, 7, 3), (1, 4, 4), (5, 6, 100), (0, 3, 2), (2, 0, 1)] {
            let mut matrix = vec![0.0; height * stride];
            let parts: Vec<_> = ColumnsMut::split(&mut matrix, stride, width).collect();
            for (first, mut part) in parts {
                for row in 0..part.height() {
                    for (column, value) in part.row(row).iter_mut().enumerate() {
                        *value += (row * stride + first + column) as f32 + 1.0;
                    }
                }
            }
            assert!(
                matrix.iter().enumerate().all(|(i, &v)| v == i as f32 + 1.0),
                "{height} {stride} {width}"
            );
        }
    }
}
