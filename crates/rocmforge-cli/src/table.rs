//! Tables on stdout: columns as wide as their widest cell.

use std::io::{self, Write};

use rocmforge::memory::Bytes;

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A size in one unit, without the bytes.
pub(crate) fn short(bytes: u64) -> String {
    let text = Bytes(bytes).to_string();
    text.split(" (").next().unwrap_or(&text).to_owned()
}

/// The widest column without lines around it: a long cell moves the rest of its own row only.
const WIDEST: usize = 40;

/// Prints rows with nothing but spaces between the cells, all to the left.
pub(crate) fn plain<const N: usize>(out: &mut impl Write, rows: &[[String; N]]) -> io::Result<()> {
    let widths = widths(rows.iter());
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| pad(cell, width.min(WIDEST), Align::Left))
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// Prints a table in Markdown.
pub(crate) fn markdown<const N: usize>(
    out: &mut impl Write,
    columns: [(&str, Align); N],
    rows: &[[String; N]],
) -> io::Result<()> {
    let names = columns.map(|(name, _)| name.to_owned());
    let widths = widths(rows.iter().chain([&names]));
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).zip(columns);
        let cells: Vec<String> = cells
            .map(|((cell, width), (_, align))| pad(cell, width, align))
            .collect();
        format!("| {} |", cells.join(" | "))
    };
    writeln!(out, "{}", line(&names))?;
    let rules = columns.iter().zip(widths).map(|((_, align), width)| match align {
        Align::Left => format!(" {} ", "-".repeat(width)),
        Align::Right => format!(" {}: ", "-".repeat(width.saturating_sub(1))),
    });
    writeln!(out, "|{}|", rules.collect::<Vec<_>>().join("|"))?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
}

fn widths<'a, const N: usize>(rows: impl Iterator<Item = &'a [String; N]>) -> [usize; N] {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

fn pad(cell: &str, width: usize, align: Align) -> String {
    match align {
        Align::Left => format!("{cell:<width$}"),
        Align::Right => format!("{cell:>width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            ["a".to_owned(), "12.5 ± 1".to_owned()],
            ["bcd".to_owned(), "1".to_owned()],
        ];
        let mut out = Vec::new();
        markdown(&mut out, [("n", Align::Left), ("t/s", Align::Right)], &rows).expect("memory");
        let text = "| n   |      t/s |\n| --- | -------: |\n| a   | 12.5 ± 1 |\n| bcd |        1 |\n";
        assert_eq!(String::from_utf8(out).expect("UTF-8"), text);
        let mut out = Vec::new();
        plain(&mut out, &rows).expect("memory");
        assert_eq!(out, "a    12.5 ± 1\nbcd  1\n".as_bytes());
    }
}
