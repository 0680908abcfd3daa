//! The table of a comparison, as Markdown and as JSON.

use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// One operation at one shape.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) op: String,
    pub(crate) shape: Vec<usize>,
    /// Bytes that must be moved, or operations that must be done.
    pub(crate) work: f64,
    pub(crate) is_bytes: bool,
    /// Ours.
    pub(crate) seconds: f64,
    pub(crate) peers: Vec<Peer>,
    /// The largest difference that counts as the same result.
    pub(crate) tolerance: f64,
}

/// PyTorch's way to the same.
#[derive(Serialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// Or why there is none.
    pub(crate) figure: Result<Figure, String>,
}

#[derive(Serialize)]
pub(crate) struct Figure {
    pub(crate) seconds: f64,
    /// From ours, in units of the largest value.
    pub(crate) difference: f64,
}

#[derive(Serialize)]
pub(crate) struct Report {
    /// What ours and PyTorch's side say of themselves.
    pub(crate) ours: Value,
    pub(crate) torch: Value,
    pub(crate) rounds: usize,
    /// Whether times mean anything: not on a simulated card.
    pub(crate) timed: bool,
    pub(crate) rows: Vec<Row>,
}

impl Row {
    fn shape_text(&self) -> String {
        let dims: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        dims.join(" x ")
    }
}

impl Report {
    /// Bytes per second of the driver's copy.
    fn copy(&self) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.op == "driver_copy")?;
        Some(row.work / row.seconds)
    }

    /// Rows whose results differ by more than rounding, in words.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for row in &self.rows {
            for peer in &row.peers {
                if let Ok(figure) = &peer.figure
                    && (figure.difference.is_nan() || figure.difference > row.tolerance)
                {
                    let (op, shape, name) = (&row.op, row.shape_text(), &peer.name);
                    let (found, allowed) = (figure.difference, row.tolerance);
                    wrong.push(format!(
                        "{op} {shape} and {name}: {found:.1e} apart, {allowed:.0e} allowed"
                    ));
                }
            }
        }
        wrong
    }

    pub(crate) fn markdown(&self) -> String {
        let (ours, torch) = (&self.ours, &self.torch);
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let mut out = format!(
            "{}; PyTorch {} (CUDA {}), TF32 off, f32; medians of {} rounds, turn by turn\n\n",
            text(&ours["device"]),
            text(&torch["torch"]),
            text(&torch["cuda"]),
            self.rounds
        );
        out += "| operation | shape | ours, us | rate | of the copy | PyTorch | its us | PyTorch's time / ours | difference |\n";
        out += "|---|---|---:|---:|---:|---|---:|---:|---:|\n";
        let time = |seconds: f64| match self.timed {
            true => format!("{:.1}", seconds * 1e6),
            false => "-".to_owned(),
        };
        for row in &self.rows {
            let rate = row.work / row.seconds;
            let (rate, share) = match (self.timed, row.is_bytes) {
                (false, _) => Default::default(),
                (true, true) => {
                    let share = self.copy().map(|copy| format!("{:.0} %", 100.0 * rate / copy));
                    (format!("{:.0} GB/s", rate / 1e9), share.unwrap_or_default())
                }
                (true, false) => (format!("{:.2} TFLOP/s", rate / 1e12), String::new()),
            };
            let mut mine = format!(
                "| {} | {} | {} | {rate} | {share} |",
                row.op,
                row.shape_text(),
                time(row.seconds)
            );
            for peer in &row.peers {
                // A string takes every write.
                let _ = match &peer.figure {
                    Ok(figure) => writeln!(
                        out,
                        "{mine} {} | {} | {} | {:.0e} |",
                        peer.name,
                        time(figure.seconds),
                        if self.timed {
                            format!("{:.2}", figure.seconds / row.seconds)
                        } else {
                            "-".to_owned()
                        },
                        figure.difference
                    ),
                    Err(why) => writeln!(out, "{mine} {} | no: {} | | |", peer.name, why.replace('|', "/")),
                };
                "| | | | | |".clone_into(&mut mine);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> Report {
        let row = |op: &str, seconds, peers| Row {
            op: op.to_owned(),
            shape: vec![4, 8],
            work: 4e9,
            is_bytes: true,
            seconds,
            peers,
            tolerance: 1e-5,
        };
        let peer = |name: &str, figure| Peer {
            name: name.to_owned(),
            figure,
        };
        let close = || {
            Ok(Figure {
                seconds: 3e-3,
                difference: 0.0,
            })
        };
        Report {
            ours: json!({ "device": "a card" }),
            torch: json!({ "torch": "2.11", "cuda": "13.0" }),
            rounds: 7,
            timed: true,
            rows: vec![
                row("driver_copy", 1e-3, vec![peer("copy_", close())]),
                row(
                    "softmax",
                    2e-3,
                    vec![
                        peer(
                            "softmax",
                            Ok(Figure {
                                seconds: 3e-3,
                                difference: 1e-3,
                            }),
                        ),
                        peer("flash", Err("no f32".to_owned())),
                    ],
                ),
            ],
        }
    }

    #[test]
    fn the_table_has_shares_ratios_and_reasons() {
        let text = report().markdown();
        assert!(
            text.starts_with("a card; PyTorch 2.11 (CUDA 13.0), TF32 off, f32; medians of 7 rounds"),
            "{text}"
        );
        let found = |line: &str| text.lines().any(|l| l == line);
        assert!(
            found("| driver_copy | 4 x 8 | 1000.0 | 4000 GB/s | 100 % | copy_ | 3000.0 | 3.00 | 0e0 |"),
            "{text}"
        );
        assert!(
            found("| softmax | 4 x 8 | 2000.0 | 2000 GB/s | 50 % | softmax | 3000.0 | 1.50 | 1e-3 |"),
            "{text}"
        );
        assert!(found("| | | | | | flash | no: no f32 | | |"), "{text}");
    }

    #[test]
    fn simulated_time_is_not_shown() {
        let text = Report {
            timed: false,
            ..report()
        }
        .markdown();
        assert!(
            text.contains("| softmax | 4 x 8 | - |  |  | softmax | - | - | 1e-3 |"),
            "{text}"
        );
    }

    #[test]
    fn what_differs_is_named() {
        assert_eq!(
            report().wrong(),
            ["softmax 4 x 8 and softmax: 1.0e-3 apart, 1e-5 allowed"]
        );
    }
}
