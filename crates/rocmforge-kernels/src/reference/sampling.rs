//! Largest values of rows.

use std::cmp::Ordering;

/// The columns of a row in falling order of their values, equal ones (0 and -0 are) in rising order, NaN last: the first `k`.
pub fn top_k(row: &[f32], k: usize) -> Vec<u32> {
    let mut columns: Vec<u32> = (0..row.len() as u32).collect();
    // A stable sort: equal ones keep their order.
    columns.sort_by(|&a, &b| {
        let (a, b) = (row[a as usize], row[b as usize]);
        match (a.is_nan(), b.is_nan()) {
            (false, false) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
            (a, b) => a.cmp(&b),
        }
    });
    columns.truncate(k);
    columns
}

/// The column of the largest value, the lowest of equal ones. NaN is below everything.
pub fn arg_max(row: &[f32]) -> u32 {
    let largest = row
        .iter()
        .copied()
        .filter(|v| !v.is_nan())
        .fold(f32::NEG_INFINITY, f32::max);
    let first = row.iter().position(|&v| v == largest);
    first.unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_definition() {
        let row = [f32::NAN, 1.0, -0.0, 0.0, f32::NEG_INFINITY, 1.0];
        assert_eq!(top_k(&row, 6), [1, 5, 2, 3, 4, 0]);
        assert_eq!((arg_max(&row), arg_max(&[f32::NAN; 3])), (1, 0));
        assert_eq!(arg_max(&[f32::NAN, f32::NEG_INFINITY]), 1);
    }
}
