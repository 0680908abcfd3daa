//! Self-test: tiny models computed on a device by every family of kernels, and compared with stored logits.
//!
//! The models' weights follow from a rule, so that nothing but the logits is stored: those of the CPU's exact path, in [`STORED`]. A family is a type of
//! weights or of the cache, or a shape ([`Family`]), with an activation, and a form: a prompt as one step, or token by token.

mod models;

use std::collections::BTreeMap;
use std::io::Write;

use models::{Change, Family, model};
use rocmforge::ggml::Activations;
use rocmforge::models::sampling::{Row, RowReason};
use rocmforge::models::{Chunk, Engine, EngineOptions, KvType, Limit, Model, Outputs, SequenceId};
use serde_json::json;

use crate::failure::Failure;
use crate::machine::{self, Machine, Program};
use crate::options::MachineOptions;
use crate::table;

/// Logits after the last of [`TOKENS`], by the family's weights and cache.
const STORED: &str = include_str!("logits.json");

/// More than a wave, and no multiple of one.
const TOKENS: usize = 39;

impl Family {
    /// The largest difference that passes, in parts of the largest logit: sums in another order, and activations in fewer bits.
    fn tolerance(self, activations: Activations) -> f32 {
        match (activations, self.kv) {
            (Activations::Int8, _) => 5e-2,
            (_, KvType::Q8_0) => 1e-2,
            _ => 3e-3,
        }
    }
}

/// How the tokens are given to the model.
const FORMS: [&str; 2] = ["prompt", "decode"];

/// Logits in both forms. Where the device searches the largest, the others are not read.
fn logits<M: Machine>(machine: M, model: &Model, family: Family) -> Result<[Vec<f32>; 2], Failure> {
    let options = EngineOptions {
        max_context: Limit::Tokens(64),
        max_sequences: 1,
        kv: family.kv,
        candidates: Some(family.candidates()),
        ..EngineOptions::default()
    };
    let mut engine = Engine::new(machine, model, options)?;
    let vocab = model.config().vocab;
    let ids: Vec<u32> = (0..TOKENS).map(|at| (at * 17 % vocab) as u32).collect();
    let sequence = engine.add_sequence(&[])?;
    let prompt = last(&mut engine, sequence, &ids)?;
    engine.remove(sequence)?;
    let sequence = engine.add_sequence(&[])?;
    let mut decode = Vec::new();
    for id in &ids {
        decode = last(&mut engine, sequence, std::slice::from_ref(id))?;
    }
    Ok([prompt, decode])
}

/// Logits after the last of these tokens: all, or those that the device found, the others being infinitely small.
fn last<M: Machine>(engine: &mut Engine<M>, sequence: SequenceId, ids: &[u32]) -> Result<Vec<f32>, Failure> {
    let vocab = engine.config().vocab;
    let chunk = Chunk {
        sequence,
        tokens: ids,
        outputs: Outputs::Last,
    };
    let rows = engine.step_top(&[chunk], |_| None::<RowReason>)?;
    Ok(match rows.rows().next() {
        None => Vec::new(),
        Some(Row::Whole(row)) => row.to_vec(),
        Some(Row::Top(top)) => {
            let mut row = vec![f32::NEG_INFINITY; vocab];
            for (id, logit) in top.ids.iter().zip(top.logits) {
                if let Some(place) = row.get_mut(*id as usize) {
                    *place = *logit;
                }
            }
            row
        }
    })
}

/// The expected row with no more than `count` of its largest logits, and with those that `found` has in their place where both are nearly equal: of two
/// logits that differ by rounding either may be among the largest. Empty where `found` has another number of them.
fn largest(expected: &[f32], found: &[f32], count: usize) -> Vec<f32> {
    if count == 0 {
        return expected.to_vec();
    }
    if found.iter().filter(|value| **value != f32::NEG_INFINITY).count() != count {
        return Vec::new();
    }
    let most = expected.iter().fold(0_f32, |most, value| most.max(value.abs()));
    let mut sorted = expected.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let least = sorted.get(count - 1).copied().unwrap_or(f32::NEG_INFINITY);
    let is_near = |value: f32| (value - least).abs() <= 5e-2 * most;
    let taken = expected.iter().zip(found).map(|(&value, &found)| {
        let is_found = found != f32::NEG_INFINITY;
        let is_wanted = match is_near(value) {
            true => is_found,
            false => value > least,
        };
        if is_wanted { value } else { f32::NEG_INFINITY }
    });
    taken.collect()
}

/// The largest difference, in parts of the largest expected number; infinite where one is no number. What is infinitely small in both is equal.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    let is_left_out = |value: f32| value == f32::NEG_INFINITY;
    let there = expected.iter().filter(|value| !is_left_out(**value));
    let largest = there.fold(0_f32, |most, value| most.max(value.abs()));
    if found.len() != expected.len() || largest == 0.0 {
        return f32::INFINITY;
    }
    let pairs = found.iter().zip(expected);
    let differences = pairs
        .filter(|(a, b)| !(is_left_out(**a) && is_left_out(**b)))
        .map(|(a, b)| (a - b).abs() / largest);
    differences.fold(
        0.0,
        |most, value| if value.is_nan() { f32::INFINITY } else { most.max(value) },
    )
}

/// A family's result.
struct Line {
    family: String,
    activations: &'static str,
    form: &'static str,
    difference: f32,
    tolerance: f32,
    /// The device refused.
    error: Option<String>,
}

impl Line {
    fn is_right(&self) -> bool {
        self.error.is_none() && self.difference <= self.tolerance
    }
}

struct Case<'a> {
    family: Family,
    model: &'a Model,
    found: &'a std::cell::RefCell<[Vec<f32>; 2]>,
}

impl Program for Case<'_> {
    fn run<M: Machine>(&self, machine: M, _device: &str) -> Result<(), Failure> {
        *self.found.borrow_mut() = logits(machine, self.model, self.family)?;
        Ok(())
    }
}

/// Computes every family on the device, with a change of the model of each.
fn lines(
    options: &MachineOptions,
    families: &[Family],
    change: impl Fn(Family) -> Change,
) -> Result<Vec<Line>, Failure> {
    let stored: BTreeMap<String, Vec<f32>> = serde_json::from_str(STORED)?;
    let mut lines = Vec::new();
    for &family in families {
        let model = model(family, change(family))?;
        let name = family.name();
        let expected = stored.get(&name).map_or(&[][..], Vec::as_slice);
        for (activations, word) in [(Activations::F32, "f32"), (Activations::Int8, "int8")] {
            // Activations stay as they are with weights that are no blocks.
            if activations == Activations::Int8 && family.weights.block_len() == 1 {
                continue;
            }
            let found = std::cell::RefCell::default();
            let case = Case {
                family,
                model: &model,
                found: &found,
            };
            let error = machine::run(&case, &options.with_activations(activations)).err();
            let found = found.into_inner();
            for (form, found) in FORMS.into_iter().zip(&found) {
                lines.push(Line {
                    family: name.clone(),
                    activations: word,
                    form,
                    difference: difference(found, &largest(expected, found, family.candidates())),
                    tolerance: family.tolerance(activations),
                    error: error.as_ref().map(ToString::to_string),
                });
            }
        }
    }
    Ok(lines)
}

/// Runs the test on the device that the options name.
pub(super) fn run(options: &MachineOptions, json: bool) -> Result<(), Failure> {
    let lines = lines(&options.named(), &Family::all(), |_| Change::NONE)?;
    let mut out = std::io::stdout().lock();
    if json {
        let lines = lines.iter().map(|line| {
            json!({
                "family": line.family, "activations": line.activations, "form": line.form, "difference": line.difference,
                "tolerance": line.tolerance, "right": line.is_right(), "error": line.error,
            })
        });
        writeln!(out, "{}", serde_json::to_string(&lines.collect::<Vec<_>>())?)?;
    } else {
        let rows: Vec<[String; 5]> = (lines.iter())
            .map(|line| {
                let verdict = match (&line.error, line.is_right()) {
                    (Some(error), _) => format!("refused: {error}"),
                    (None, true) => "right".to_owned(),
                    (None, false) => format!("WRONG: at most {:.1e} is right", line.tolerance),
                };
                let difference = format!("{:.1e}", line.difference);
                [
                    line.family.clone(),
                    line.activations.to_owned(),
                    line.form.to_owned(),
                    difference,
                    verdict,
                ]
            })
            .collect();
        table::plain(&mut out, &rows)?;
    }
    let wrong = lines.iter().filter(|line| !line.is_right());
    let wrong: Vec<String> = wrong
        .map(|line| format!("{} ({}, {})", line.family, line.activations, line.form))
        .collect();
    match wrong.as_slice() {
        [] => {
            eprintln!("all {} families are right", lines.len());
            Ok(())
        }
        wrong => Err(format!(
            "{} of {} families are wrong: {}",
            wrong.len(),
            lines.len(),
            wrong.join(", ")
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rocmforge::ggml::CpuBackend;
    use rocmforge::gguf::TensorType;

    use super::models::Shape;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        machine: MachineOptions,
    }

    fn options(device: &str) -> MachineOptions {
        Options::parse_from(["test", "--device", device]).machine
    }

    /// Logits of the whole row, whatever a device searches.
    fn whole(family: Family, change: Change) -> [Vec<f32>; 2] {
        let model = model(family, change).expect("a model");
        let whole = match family.shape {
            Shape::Candidates => Family {
                shape: Shape::Plain,
                ..family
            },
            _ => family,
        };
        logits(CpuBackend::with_threads(1), &model, whole).expect("computed")
    }

    /// The stored logits are those of the CPU. `ROCMFORGE_STORE_LOGITS=1` writes what they are now.
    #[test]
    fn the_stored_logits_are_those_of_the_cpu() {
        let mut computed = BTreeMap::new();
        for family in Family::all() {
            let [prompt, decode] = whole(family, Change::NONE);
            assert!(
                difference(&decode, &prompt) < family.tolerance(Activations::F32),
                "{}",
                family.name()
            );
            assert!(computed.insert(family.name(), prompt).is_none(), "{}", family.name());
        }
        if std::env::var_os("ROCMFORGE_STORE_LOGITS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctor/logits.json");
            std::fs::write(path, serde_json::to_string(&computed).expect("JSON") + "\n").expect("written");
            return;
        }
        let stored: BTreeMap<String, Vec<f32>> = serde_json::from_str(STORED).expect("JSON");
        assert_eq!(stored.keys().collect::<Vec<_>>(), computed.keys().collect::<Vec<_>>());
        for (name, stored) in &stored {
            let difference = difference(&computed[name], stored);
            assert!(difference < 1e-3, "{name}: {difference}");
        }
        // Each type rounds the weights to other numbers: a kernel of another type is found.
        for kind in ["weights q", "weights iq", "experts "] {
            let all: Vec<_> = stored.iter().filter(|(name, _)| name.starts_with(kind)).collect();
            assert!(all.len() > 1, "{kind}");
            for (index, (name, logits)) in all.iter().enumerate() {
                for (other, others) in &all[..index] {
                    assert!(difference(logits, others) > 3e-3, "{name} and {other}");
                }
            }
        }
    }

    /// What a shape has that others have not is seen in its logits: without it they differ by far more than passes.
    #[test]
    fn each_part_of_a_shape_is_seen_in_the_logits() {
        let wide = Change {
            window: 64,
            ..Change::NONE
        };
        let other = Change {
            factor: 1.5,
            ..Change::NONE
        };
        for shape in [Shape::Heads(128), Shape::Experts].into_iter().chain(Shape::OTHERS) {
            let family = Family::shaped(shape, TensorType::F16);
            let [expected, _] = whole(family, Change::NONE);
            let changes: &[Change] = match shape {
                // A norm behind the network takes the factor away.
                Shape::Gelu => &[wide],
                Shape::Sinks => &[wide, other],
                _ => &[other],
            };
            for &change in changes {
                let [found, _] = whole(family, change);
                let difference = difference(&found, &expected);
                assert!(difference > 2e-2, "{} with {change:?}: {difference}", family.name());
            }
        }
    }

    /// A matrix of one type whose blocks are read half as large again, as a wrong kernel would read them.
    #[test]
    fn a_planted_fault_is_found_in_its_family_alone() {
        let families = [TensorType::F16, TensorType::Q4_0, TensorType::Q4K, TensorType::Iq4Xs].map(Family::plain);
        let faulty = |family: Family| Change {
            factor: if family.weights == TensorType::Q4_0 { 1.5 } else { 1.0 },
            ..Change::NONE
        };
        for device in ["sim", "sim:gfx1201"] {
            let lines = lines(&options(device), &families, faulty).expect("computed");
            assert_eq!(lines.len(), 14);
            check(&lines, "weights q4_0");
        }
    }

    /// Lines of one family are wrong, all others right.
    #[track_caller]
    fn check(lines: &[Line], faulty: &str) {
        for line in lines {
            let (found, error) = (line.difference, &line.error);
            assert_eq!(
                line.is_right(),
                line.family != faulty,
                "{} {} {}: {found} {error:?}",
                line.family,
                line.activations,
                line.form
            );
        }
    }

    /// The same of shapes: another window is found.
    #[test]
    fn the_simulated_card_computes_each_shape() {
        let mut families = vec![
            Family::shaped(Shape::Heads(256), TensorType::F16),
            Family::shaped(Shape::Experts, TensorType::Mxfp4),
        ];
        families.extend(Shape::OTHERS.map(|shape| Family::shaped(shape, TensorType::F16)));
        let faulty = |family: Family| match family.shape {
            Shape::Gelu => Change {
                window: 64,
                ..Change::NONE
            },
            _ => Change::NONE,
        };
        let lines = lines(&options("sim"), &families, faulty).expect("computed");
        assert_eq!(lines.len(), 18);
        check(&lines, "GELU and window");
    }

    #[test]
    fn the_largest_logits_may_be_either_of_two_that_are_nearly_equal() {
        let expected = [4.0, 1.0, 2.0, 1.01, -3.0];
        let least = f32::NEG_INFINITY;
        let of = |found: &[f32]| difference(found, &largest(&expected, found, 3));
        assert_eq!(of(&[4.0, least, 2.0, 1.01, least]), 0.0);
        assert_eq!(of(&[4.0, 1.0, 2.0, least, least]), 0.0);
        // A small one in place of a large one, one that is missing, and one with another value.
        assert_eq!(of(&[4.0, least, least, 1.01, -3.0]), f32::INFINITY);
        assert_eq!(of(&[4.0, least, least, 1.01, least]), f32::INFINITY);
        assert_eq!(of(&[4.0, least, 3.0, 1.01, least]), 0.25);
    }

    #[test]
    fn what_is_no_number_is_wrong() {
        assert_eq!(difference(&[f32::NAN, 1.0], &[1.0, 1.0]), f32::INFINITY);
        assert_eq!(difference(&[1.0], &[1.0, 1.0]), f32::INFINITY);
        assert_eq!(difference(&[1.0, 1.5], &[1.0, 2.0]), 0.25);
    }
}
