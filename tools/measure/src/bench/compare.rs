//! Comparison of our kernels with PyTorch's, in turns on one card.

use super::cases::Case;
use super::side::{Side, SideError};
use super::table::{Figure, Peer, Row};
use serde_json::{Value, json};

/// Bytes that the buffers of one case have together, at least: many times the largest cache of a card.
const ROTATED: u64 = 1 << 30;
/// What one turn should take, in seconds.
const TURN: f64 = 0.01;
/// Elements that are compared: so many runs of so many.
const SAMPLE: (usize, usize) = (512, 32);

#[derive(Debug, thiserror::Error)]
pub(crate) enum CompareError {
    #[error(transparent)]
    Side(#[from] SideError),
    #[error(
        "PyTorch's side does not work: {0}. Install PyTorch for this card (https://pytorch.org/get-started, for instance \
         `pip install torch`), or name the interpreter that has it: `--python FILE`"
    )]
    NoTorch(String),
    #[error("{name} answered without {field}")]
    Incomplete { name: String, field: &'static str },
}

pub(crate) struct Compare<'a> {
    pub(crate) ours: Side,
    pub(crate) torch: Side,
    pub(crate) rounds: usize,
    /// Called before each case.
    pub(crate) progress: &'a dyn Fn(&Case),
}

fn number(side: &Side, answer: &Value, field: &'static str) -> Result<f64, CompareError> {
    answer[field].as_f64().ok_or_else(|| CompareError::Incomplete {
        name: side.name().to_owned(),
        field,
    })
}

/// One variant of one side, as it is timed.
struct Turn {
    variant: Option<String>,
    iterations: u64,
    seconds: Vec<f64>,
}

impl Turn {
    fn time(side: &mut Side, variant: Option<&str>, iterations: u64) -> Result<f64, CompareError> {
        let answer = side.ask(&json!({ "do": "time", "variant": variant, "iterations": iterations }))?;
        number(side, &answer, "seconds")
    }

    /// Warms up and finds out how many make a turn.
    fn new(side: &mut Side, variant: Option<&str>) -> Result<Self, CompareError> {
        Self::time(side, variant, 2)?;
        let one = Self::time(side, variant, 3)?;
        Ok(Self {
            variant: variant.map(str::to_owned),
            iterations: (TURN / one.max(1e-9)).ceil().clamp(1.0, 2000.0) as u64,
            seconds: Vec::new(),
        })
    }

    fn again(&mut self, side: &mut Side) -> Result<(), CompareError> {
        let seconds = Self::time(side, self.variant.as_deref(), self.iterations)?;
        self.seconds.push(seconds);
        Ok(())
    }

    fn median(&self) -> f64 {
        median(&self.seconds)
    }
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n => (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
    }
}

/// The turns of a variant and how far its results are from ours, or why it cannot do this.
type Timed = Result<(Turn, f64), String>;

/// Some elements of an output, as the bits of floats.
fn sample(side: &mut Side, variant: Option<&str>) -> Result<Vec<f32>, CompareError> {
    let (runs, length) = SAMPLE;
    let answer = side.ask(&json!({ "do": "sample", "variant": variant, "runs": runs, "length": length }))?;
    let bits = answer["bits"].as_array().ok_or_else(|| CompareError::Incomplete {
        name: side.name().to_owned(),
        field: "bits",
    })?;
    let word = |bits: &Value| bits.as_u64().and_then(|bits| u32::try_from(bits).ok());
    Ok(bits
        .iter()
        .map(|bits| f32::from_bits(word(bits).unwrap_or(u32::MAX)))
        .collect())
}

/// The largest difference, in units of the largest value of `b`; infinite where one of them is not a number, or they are
/// not as many.
fn difference(a: &[f32], b: &[f32]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let largest = b.iter().map(|&b| f64::from(b).abs()).fold(0.0, f64::max);
    let apart = |(&a, &b): (&f32, &f32)| match (f64::from(a) - f64::from(b)).abs() {
        _ if a == b => 0.0,
        apart if apart.is_nan() => f64::INFINITY,
        apart => apart,
    };
    let apart = a.iter().zip(b).map(apart).fold(0.0, f64::max);
    if apart == 0.0 { 0.0 } else { apart / largest }
}

impl Compare<'_> {
    /// What both say of themselves.
    pub(crate) fn hello(&mut self) -> Result<(Value, Value), CompareError> {
        let ours = self.ours.ask(&json!({ "do": "hello" }))?;
        let torch = self.torch.ask(&json!({ "do": "hello" }));
        let torch = torch.map_err(|error| CompareError::NoTorch(error.to_string()))?;
        Ok((ours, torch))
    }

    pub(crate) fn run<'c>(&mut self, cases: impl Iterator<Item = &'c Case>) -> Result<Vec<Row>, CompareError> {
        let mut rows = Vec::new();
        for case in cases {
            (self.progress)(case);
            rows.push(self.one(case)?);
        }
        Ok(rows)
    }

    fn one(&mut self, case: &Case) -> Result<Row, CompareError> {
        let sets = ROTATED.div_ceil(case.bytes.max(1)).clamp(1, 16);
        let prepare = json!({ "do": "prepare", "op": case.op, "shape": case.shape, "sets": sets });
        let prepared = self.ours.ask(&prepare)?;
        let work = number(&self.ours, &prepared, "work")?;
        let is_bytes = prepared["unit"] == "bytes";
        let mut row = Row {
            op: case.op.to_owned(),
            shape: case.shape.to_vec(),
            work,
            is_bytes,
            seconds: f64::NAN,
            peers: Vec::new(),
            tolerance: case.tolerance,
        };
        let variants: Vec<String> = match self.torch.ask(&prepare) {
            Ok(prepared) => prepared["variants"]
                .as_array()
                .map(|variants| variants.iter().filter_map(Value::as_str).map(str::to_owned).collect())
                .unwrap_or_default(),
            Err(SideError::Refused(why)) => {
                row.peers.push(Peer {
                    name: "-".to_owned(),
                    figure: Err(why),
                });
                Vec::new()
            }
            Err(error) => return Err(error.into()),
        };

        let mine = sample(&mut self.ours, None)?;
        let mut ours = Turn::new(&mut self.ours, None)?;
        // A variant that cannot do this keeps its reason; the others go on.
        let mut theirs: Vec<(String, Timed)> = Vec::new();
        for variant in variants {
            let turn = sample(&mut self.torch, Some(&variant))
                .and_then(|theirs| Ok((Turn::new(&mut self.torch, Some(&variant))?, difference(&mine, &theirs))));
            theirs.push(match turn {
                Ok(turn) => (variant, Ok(turn)),
                Err(CompareError::Side(SideError::Refused(why))) => (variant, Err(why)),
                Err(error) => return Err(error),
            });
        }
        for _ in 0..self.rounds {
            ours.again(&mut self.ours)?;
            for (turn, _) in theirs.iter_mut().filter_map(|(_, turn)| turn.as_mut().ok()) {
                turn.again(&mut self.torch)?;
            }
        }
        row.seconds = ours.median();
        for (name, turn) in theirs {
            let figure = turn.map(|(turn, difference)| Figure {
                seconds: turn.median(),
                difference,
            });
            row.peers.push(Peer { name, figure });
        }
        self.ours.ask(&json!({ "do": "drop" }))?;
        self.torch.ask(&json!({ "do": "drop" }))?;
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_kernel_is_never_close() {
        assert_eq!(difference(&[1.0, f32::NEG_INFINITY], &[1.0, f32::NEG_INFINITY]), 0.0);
        assert_eq!(difference(&[1.0, 2.0], &[1.0, 2.5]), 0.2);
        for wrong in [&[1.0][..], &[f32::NAN, 2.0], &[f32::INFINITY, 2.0]] {
            assert_eq!(difference(wrong, &[1.0, 2.0]), f64::INFINITY);
        }
        assert_eq!(difference(&[1.0, 2.0], &[1.0, f32::NAN]), f64::INFINITY);
        assert!(difference(&[0.5], &[0.0]) > 1.0, "a reference of zeros");
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
