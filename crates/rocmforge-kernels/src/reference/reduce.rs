//! Sums of rows and running sums in f64.

use super::wide;

/// `factor` times the sum of each row of `cols`, of the last one as many as there are.
pub fn sum_rows(x: &[f32], cols: usize, factor: f32) -> Vec<f64> {
    let sum = |row: &[f32]| wide(row).iter().sum::<f64>() * f64::from(factor);
    x.chunks(cols).map(sum).collect()
}

/// Running sums of each row of `cols`.
pub fn cumsum(x: &[f32], cols: usize) -> Vec<f64> {
    let sums = |row: &[f32]| {
        (1..=row.len())
            .map(|n| wide(&row[..n]).iter().sum())
            .collect::<Vec<f64>>()
    };
    x.chunks(cols).flat_map(sums).collect()
}

/// `a[r, :] + b[ids[r], :]`; NaN for an id beyond `b`.
pub fn add_id(a: &[f32], b: &[f32], ids: &[u32], cols: usize) -> Vec<f64> {
    let rows = a.chunks(cols).zip(ids);
    let sum = |(a, &id): (&[f32], &u32)| match b.chunks(cols).nth(id as usize) {
        Some(b) => super::add(a, b),
        None => vec![f64::NAN; cols],
    };
    rows.flat_map(sum).collect()
}

/// Columns of each row in order, of equal numbers the lower one first, NaN last.
pub fn argsort(x: &[f32], cols: usize, descending: bool) -> Vec<u32> {
    let sorted = |row: &[f32]| {
        let mut columns: Vec<u32> = (0..cols as u32).collect();
        // A stable sort keeps the lower of equal ones first.
        columns.sort_by(|&a, &b| {
            let (a, b) = (row[a as usize], row[b as usize]);
            let values = a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal);
            let values = if descending { values.reverse() } else { values };
            a.is_nan().cmp(&b.is_nan()).then(values)
        });
        columns
    };
    x.chunks(cols).flat_map(sorted).collect()
}
