//! Every row of the behaviour table has a test in HIP 6 mode and one in HIP 7 mode, and every test belongs to a row. Every core
//! row is run on a card too, or is listed with the reason why not, and where a card answers otherwise, docs/abi.md says so.

use std::collections::BTreeSet;

/// One row a line: id, `core` or `rest`, the HIP function.
const TABLE: &str = include_str!("rows.txt");
/// One row a line: id, reason.
const SIMULATOR_ONLY: &str = include_str!("simulator-only.txt");
const DIFFERENCES: &str = include_str!("../../../../docs/abi.md");

/// The chapters that run on any device.
const BOTH: [&str; 11] = [
    include_str!("../both/device.rs"),
    include_str!("../both/errors.rs"),
    include_str!("../both/events.rs"),
    include_str!("../both/host_memory.rs"),
    include_str!("../both/launches.rs"),
    include_str!("../both/memcpy.rs"),
    include_str!("../both/memory.rs"),
    include_str!("../both/memset.rs"),
    include_str!("../both/modules.rs"),
    include_str!("../both/pointers.rs"),
    include_str!("../both/streams.rs"),
];

/// The rows that tests are registered for. `rows!` and `both!` make the tests of both modes and this list from the same names.
fn registered() -> Vec<&'static str> {
    let simulated = [
        super::device::ROWS,
        super::errors::ROWS,
        super::events::ROWS,
        super::graphs::ROWS,
        super::host_memory::ROWS,
        super::launches::ROWS,
        super::memcpy::ROWS,
        super::memory::ROWS,
        super::memset::ROWS,
        super::modules::ROWS,
        super::pointers::ROWS,
        super::pools::ROWS,
        super::special_memory::ROWS,
        super::streams::ROWS,
    ];
    [simulated.concat(), crate::both::rows()].concat()
}

/// How a test's name starts for a row: `B-x12` is `b_x12_`.
fn prefix(id: &str) -> String {
    format!("{}_", id.to_lowercase().replace('-', "_"))
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| line.split(' ').collect())
}

fn table() -> Vec<(String, bool)> {
    lines(TABLE)
        .map(|words| (prefix(words[0]), words[1] == "core"))
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

#[test]
fn every_core_row_runs_on_a_card_or_says_why_not() {
    let on_a_card = crate::both::rows();
    let only: Vec<_> = lines(SIMULATOR_ONLY).collect();
    for words in &only {
        let known = ["foreign", "stale", "no-card", "two-cards", "others", "packed"];
        assert!(
            words.len() == 2 && known.contains(&words[1]),
            "{words:?} gives no reason"
        );
    }
    let listed: BTreeSet<String> = only.iter().map(|words| prefix(words[0])).collect();
    assert_eq!(listed.len(), only.len(), "a row is listed twice");
    for (prefix, core) in table() {
        let runs = on_a_card.iter().any(|test| test.starts_with(&prefix));
        let listed = listed.contains(&prefix);
        assert_eq!(
            runs ^ listed,
            core,
            "{prefix}: runs {runs}, listed {listed}, core {core}"
        );
    }
}

/// The ids of the rows whose source asks which platform it runs on.
fn rows_that_differ() -> BTreeSet<String> {
    let functions = BOTH.iter().flat_map(|chapter| chapter.split("\nfn ").skip(1));
    let differing = functions.filter(|body| body.contains("by_platform(") || body.contains("is_nvidia("));
    differing
        .map(|body| {
            let name = body.split('(').next().unwrap_or_default();
            let ids = table().into_iter().map(|(prefix, _)| prefix);
            ids.filter(|prefix| name.starts_with(prefix.as_str()))
                .max_by_key(String::len)
                .unwrap_or_else(|| panic!("{name} is no row's"))
        })
        .collect()
}

#[test]
fn what_differs_on_a_card_is_in_the_manual_and_the_other_way_round() {
    let (_, section) = DIFFERENCES
        .split_once("### Rows that differ")
        .expect("docs/abi.md lists them");
    let section = section.split("\n## ").next().unwrap_or_default();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| "));
    let ids = cells.filter_map(|line| line.split(" |").next());
    let documented: BTreeSet<String> = ids
        .flat_map(|cell| cell.split(", "))
        .filter(|id| id.starts_with(|c: char| c.is_ascii_uppercase()) && id.len() <= 5)
        .map(prefix)
        .collect();
    assert_eq!(rows_that_differ(), documented);
}
