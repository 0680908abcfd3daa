//! Every row of the behaviour table has a test in HIP 6 mode and one in HIP 7 mode, and every test belongs to a row.

use std::collections::BTreeSet;

/// One row a line: id, `core` or `rest`, the HIP function.
const TABLE: &str = include_str!("rows.txt");

/// The rows that tests are registered for. `rows!` makes the tests of both modes and this list from the same names.
fn registered() -> Vec<&'static str> {
    [
        crate::device::ROWS,
        crate::errors::ROWS,
        crate::events::ROWS,
        crate::graphs::ROWS,
        crate::host_memory::ROWS,
        crate::launches::ROWS,
        crate::memcpy::ROWS,
        crate::memory::ROWS,
        crate::memset::ROWS,
        crate::modules::ROWS,
        crate::pointers::ROWS,
        crate::pools::ROWS,
        crate::special_memory::ROWS,
        crate::streams::ROWS,
    ]
    .concat()
}

/// How a test's name starts for a row: `B-x12` is `b_x12_`.
fn prefix(id: &str) -> String {
    format!("{}_", id.to_lowercase().replace('-', "_"))
}

fn table() -> Vec<(String, bool)> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split(' ');
            let id = words.next().expect("a line has an id");
            (prefix(id), words.next() == Some("core"))
        })
        .collect()
}

#[test]
fn the_table_has_258_rows_of_which_212_are_core() {
    let rows = table();
    assert_eq!(rows.len(), 258);
    assert_eq!(rows.iter().filter(|(_, core)| *core).count(), 212);
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), 258, "ids are unique");
}

#[test]
fn every_row_has_its_tests_and_every_test_its_row() {
    let (rows, tests) = (table(), registered());
    let of = |prefix: &str| tests.iter().any(|test| test.starts_with(prefix));
    let untested: Vec<_> = rows.iter().filter(|(prefix, _)| !of(prefix)).collect();
    assert!(untested.is_empty(), "no test for {untested:?}");
    let strangers: Vec<_> = tests
        .iter()
        .filter(|test| !rows.iter().any(|(prefix, _)| test.starts_with(prefix.as_str())))
        .collect();
    assert!(strangers.is_empty(), "no row for {strangers:?}");
    assert_eq!(tests.iter().collect::<BTreeSet<_>>().len(), tests.len());
}
