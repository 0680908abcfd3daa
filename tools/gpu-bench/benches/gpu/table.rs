//! The summary: every figure of a run beside the copy bandwidth of the same run.

use crate::card::Card;
use crate::timing::median;
use criterion::Bencher;
use std::fmt::Write;
use std::time::Duration;

/// Names the file to which the table is written too.
const TABLE_VARIABLE: &str = "ROCMFORGE_BENCH_TABLE";

/// The row whose rate is the measure of the others.
pub(crate) const REFERENCE: &str = "driver copy on the card";

/// What one operation has to do.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// The fewest bytes it can move through the card's memory.
    Bytes(u64),
    /// The floating-point operations of its definition.
    Flops(u64),
    /// Nothing that a rate would tell of.
    Calls,
}

struct Row {
    op: String,
    shape: String,
    work: Work,
    /// Iterations, and seconds of one.
    samples: Vec<(u64, f64)>,
}

impl Row {
    /// The median of those with enough iterations to tell: the first ones warm up.
    fn seconds(&self) -> f64 {
        let most = self.samples.iter().map(|sample| sample.0).max().unwrap_or(0);
        let enough = self.samples.iter().filter(|sample| sample.0 * 4 >= most);
        median(enough.map(|sample| sample.1).collect())
    }

    /// Bytes per second, of what moves bytes.
    fn rate(&self) -> Option<f64> {
        match self.work {
            Work::Bytes(bytes) => Some(bytes as f64 / self.seconds()),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    /// Targets and what became of them.
    notes: Vec<String>,
}

impl Table {
    /// Times `once(iterations)`, which returns the time of all, each time that criterion asks.
    pub(crate) fn time(
        &mut self,
        bencher: &mut Bencher<'_>,
        (op, shape): (&str, &str),
        work: Work,
        mut once: impl FnMut(u64) -> Duration,
    ) {
        let nth = self.rows.iter().position(|row| row.op == op && row.shape == shape);
        let nth = nth.unwrap_or_else(|| {
            self.rows.push(Row {
                op: op.to_owned(),
                shape: shape.to_owned(),
                work,
                samples: Vec::new(),
            });
            self.rows.len() - 1
        });
        let samples = &mut self.rows[nth].samples;
        bencher.iter_custom(|iterations| {
            let time = once(iterations);
            samples.push((iterations, time.as_secs_f64() / iterations as f64));
            time
        });
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Seconds of an operation that was measured.
    pub(crate) fn seconds(&self, op: &str, shape: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.op == op && row.shape == shape);
        row.map(Row::seconds)
    }

    /// The rate of an operation, of the rate of the copy that all others are held against.
    fn of_the_copy(&self, row: &Row) -> Option<f64> {
        let copy = self.rows.iter().find(|row| row.op == REFERENCE)?;
        Some(row.rate()? / copy.rate()?)
    }

    /// Those of `ops` whose rate is below `share` of the copy's, with their shares.
    pub(crate) fn below(&self, share: f64, ops: &[&str]) -> Vec<String> {
        let asked = self.rows.iter().filter(|row| ops.contains(&row.op.as_str()));
        asked
            .filter_map(|row| Some((row, self.of_the_copy(row)?)))
            .filter(|(_, reached)| *reached < share)
            .map(|(row, reached)| format!("{} {} ({:.0} %)", row.op, row.shape, 100.0 * reached))
            .collect()
    }

    pub(crate) fn print(&self, card: &Card) {
        let device = card.backend().device();
        let mut text = format!("{} ({}), medians\n\n", device.name, device.arch);
        text += "| operation | shape | time, us | rate | of the copy |\n|---|---|---:|---:|---:|\n";
        for row in &self.rows {
            let seconds = row.seconds();
            let rate = match row.work {
                Work::Bytes(bytes) => format!("{:.0} GB/s", bytes as f64 / seconds / 1e9),
                Work::Flops(flops) => format!("{:.2} TFLOP/s", flops as f64 / seconds / 1e12),
                Work::Calls => String::new(),
            };
            let share = self.of_the_copy(row).map(|share| format!("{:.0} %", 100.0 * share));
            let (op, shape, share) = (&row.op, &row.shape, share.unwrap_or_default());
            // A string takes every write.
            let _ = writeln!(text, "| {op} | {shape} | {:.2} | {rate} | {share} |", seconds * 1e6);
        }
        for note in &self.notes {
            text += &format!("\n* {note}");
        }
        println!("\n{text}");
        if let Some(path) = std::env::var_os(TABLE_VARIABLE) {
            std::fs::write(path, text).expect("the table's file can be written");
        }
    }
}
