//! Embedding lookup.

use crate::declared::{Again, Declared, kernel};
use crate::{geometry, reference};

pub(super) const DECLARED: &[Declared] = &[GET_ROWS];

kernel! {
    /// `y[r, :] = table[ids[r], :]` for a table `[table_rows, cols]` and as many rows as there are ids. An id that is not below
    /// `table_rows` reads nothing and gives a row of NaN: ids live on the device, so they cannot be checked here.
    GET_ROWS: get_rows in "get_rows"
    reads table [table_rows, cols] of -2.0..2.0;
    indices ids [rows] below table_rows;
    writes y [rows, cols] over [];
    dims table_rows, cols;
    derived rows = ids.len();
    launch ("get_rows", geometry::row_tile(rows, cols)), with [rows, cols, table_rows];
    gives |c| reference::get_rows(c.f32("table"), c.u32("ids"), cols).into_iter().map(f64::from).collect(), within 0.0;
    tested &[&[1, 1, 1], &[5, 31, 9], &[7, 33, 11], &[100, 64, 1], &[3, 1025, 17]];
    counted &[&[64, 2048, 64]]; moved &[&[64, 512, 64]], Again::No; timed &[&[65536, 4096, 65536]];
}
