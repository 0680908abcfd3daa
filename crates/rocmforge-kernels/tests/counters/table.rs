//! Table of kernels in `kernels/README.md`: each kernel of the pack has a row, by hand or made from its declaration or its source.
//!
//! A declaration that the macro makes has its row. Any other kernel has the arguments, the block and the comment of its source, or a row by hand, behind the
//! rows that are made.

use crate::{CountersError, all_kernels, kernels};
use rocmforge_kernels::WeightType;
use rocmforge_kernels::declared::{Row, all};
use std::collections::BTreeSet;
use std::error::Error;

const BEGIN: &str = "<!-- made by `cargo xtask kernels counters --bless` -->\n";
const END: &str = "<!-- end -->\n";

/// The expressions of launches, and what the table of geometries calls them.
const GEOMETRIES: [(&str, &str); 5] = [
    ("geometry::flat(", "flat"),
    ("geometry::row_tile(", "row tile"),
    ("geometry::by_row(", "rows, block"),
    ("geometry::rows(", "rows"),
    ("geometry::gemm(", "gemm"),
];

/// Compares the table with the kernels. With `ROCMFORGE_COUNTERS_BLESS` it is written.
#[test]
fn the_table_has_a_row_of_every_kernel() -> Result<(), Box<dyn Error>> {
    let path = kernels().join("README.md");
    let text = std::fs::read_to_string(&path).map_err(CountersError::Io)?;
    let none = || CountersError::Table("the marks of the rows that are made are missing".to_owned());
    let (before, rest) = text.split_once(BEGIN).ok_or_else(none)?;
    let (committed, after) = rest.split_once(END).ok_or_else(none)?;
    let mut left: BTreeSet<(String, String)> = all_kernels()?.into_iter().collect();
    for pattern in by_hand(after) {
        let before = left.len();
        left.retain(|(_, kernel)| !matches(&pattern, kernel));
        // The others are kernels of other targets.
        if left.len() == before && !pattern.contains("hopper") {
            let what = format!("`{pattern}` is the name of no kernel, or has two rows");
            return Err(CountersError::Table(what).into());
        }
    }
    let mut rows = String::new();
    for row in all().filter_map(|declared| declared.row) {
        let names: Vec<&str> = row.launch.split('"').skip(1).step_by(2).collect();
        for name in &names {
            if !left.remove(&(row.family.to_owned(), (*name).to_owned())) {
                let what = format!("`{name}` is declared and has a row by hand, or its pack lacks it");
                return Err(CountersError::Table(what).into());
            }
        }
        rows += &of_declaration(&row, &names);
    }
    let mut without = Vec::new();
    for (family, kernel) in left {
        let source = std::fs::read_to_string(kernels().join(format!("{family}.hip")))?;
        match of_source(&source, &family, &kernel) {
            Some(row) => rows += &row,
            None => without.push(format!("{family}: {kernel}")),
        }
    }
    if !without.is_empty() {
        let what = "these have no row, and their sources do not state them as `RF_KERNEL(..) NAME(..)`";
        return Err(CountersError::Table(format!("{what}: {}", without.join(", "))).into());
    }
    if std::env::var_os("ROCMFORGE_COUNTERS_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{rows}{END}{after}")).map_err(CountersError::Io)?;
        return Ok(());
    }
    if rows != committed {
        let changed = rows.lines().find(|row| !committed.contains(row));
        let what = "is not what its declarations and sources give: run `cargo xtask kernels counters --bless`";
        return Err(CountersError::Table(format!("{what}; {}", changed.unwrap_or("a row is left over"))).into());
    }
    Ok(())
}

/// The names of kernels, of rows by hand: what stands between backticks in the first column.
fn by_hand(text: &str) -> Vec<String> {
    let cells = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

/// Whether a name is one of a pattern: `{a,b}` is one of these, `{type}` is a type of weights, `{..}` is anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('{') {
        None => pattern == name,
        Some((start, rest)) => {
            let (Some(name), Some((among, rest))) = (name.strip_prefix(start), rest.split_once('}')) else {
                return false;
            };
            let goes_on = |one: &str| name.strip_prefix(one).is_some_and(|name| matches(rest, name));
            match among {
                ".." => (1..=name.len()).any(|at| matches(rest, &name[at..])),
                "type" => WeightType::ALL.iter().any(|ty| goes_on(&ty.to_string())),
                among => among.split(',').any(goes_on),
            }
        }
    }
}

fn of_declaration(row: &Row, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let arguments = match row.long {
        "" => row.arguments.to_owned(),
        long => row.arguments.replace(&format!("u32 {long}"), &format!("u64 {long}")),
    };
    let named = GEOMETRIES
        .iter()
        .find(|(expression, _)| row.launch.contains(expression));
    let geometry = match named {
        Some((_, name)) => (*name).to_owned(),
        None => {
            let grid = row.launch.split(['[', ']']).nth(1).unwrap_or("?");
            let threads = row.launch.rsplit(", ").next().unwrap_or("?").trim_end_matches(')');
            format!(
                "block {threads}, grid ({})",
                grid.split_whitespace().collect::<Vec<_>>().join(" ")
            )
        }
    };
    line(row.family, &names.join(", "), &arguments, &geometry, row.computes)
}

fn of_source(source: &str, family: &str, kernel: &str) -> Option<String> {
    let at = source.find(&format!(") {kernel}("))?;
    let begin = source[..at].rfind("RF_KERNEL(")?;
    let block = &source[begin + "RF_KERNEL(".len()..at];
    let arguments = source[at..].split(['(', ')']).nth(2)?;
    let arguments: Vec<String> = arguments.split(',').map(argument).collect();
    // The comment above it, or that of the file.
    let above = source[..begin].lines().rev();
    let mut comment: Vec<&str> = above.map_while(|line| line.strip_prefix("//")).collect();
    comment.reverse();
    if comment.is_empty() {
        comment = source.lines().map_while(|line| line.strip_prefix("//")).collect();
    }
    let block = format!(
        "block {}",
        block
            .trim_start_matches("RF_")
            .trim_end_matches("_BLOCK")
            .to_lowercase()
    );
    let name = format!("`{kernel}`");
    Some(line(family, &name, &arguments.join(", "), &block, &comment.join("\n")))
}

/// `const float *x` is `x`, `const u32 *ids` is `u32* ids`, a number is as it stands.
fn argument(text: &str) -> String {
    let text = text.trim().trim_start_matches("const ").replace("__restrict__ ", "");
    match text.split_once(" *") {
        Some(("float", name)) => name.to_owned(),
        Some((ty, name)) => format!("{ty}* {name}"),
        None => text.replace("float ", "f32 "),
    }
}

/// A row; what a bar would end is behind a backslash, and links to Rust items are their names.
fn line(family: &str, names: &str, arguments: &str, geometry: &str, computes: &str) -> String {
    let computes = computes
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|");
    let computes = without_links(&computes);
    format!(
        "| {family} {names} | {arguments} | {geometry} | {} |\n",
        computes.trim_end_matches('.')
    )
}

/// The text with the names of links alone: `[name](path)` is `name`.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(open) = all.rfind('[') {
            all.remove(open);
        }
        all += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    all
}

#[test]
fn links_are_their_names() {
    let text = "Graphs copy by [`copy_strided`](crate::Kernels::copy_strided), [0, 1] or [`rope`](Self::rope).";
    assert_eq!(without_links(text), "Graphs copy by `copy_strided`, [0, 1] or `rope`.");
}

#[test]
fn names_match_their_pattern() {
    for (pattern, name, is) in [
        ("add", "add", true),
        ("add", "add_id", false),
        ("rope_{half,interleaved}", "rope_half", true),
        ("rope_{half,interleaved}", "rope_at_half", false),
        ("matvec_{type}_m{1,2}", "matvec_q4_0_m2", true),
        ("matvec_{type}_m{1,2}", "matvec_q4_0_m4", false),
        ("matvec_{type}_m{1,2}", "matvec_q8_q4_0_m2", false),
        ("x_{..}", "x_", false),
        ("x_{..}", "x_y_z", true),
    ] {
        assert_eq!(matches(pattern, name), is, "{pattern} {name}");
    }
}

#[test]
fn a_source_gives_a_row() {
    let source = "// All of them.\n\n// y = x + 1.\n// In place.\nRF_KERNEL(RF_FLAT_BLOCK) more(const float *x, float *y, const u32 *ids, u64 n, float by) {\n}\n";
    assert_eq!(
        of_source(source, "file", "more").as_deref(),
        Some("| file `more` | x, y, u32* ids, u64 n, f32 by | block flat | y = x + 1. In place |\n")
    );
    assert_eq!(of_source(source, "file", "less"), None);
}
