//! Self-test: a tiny model computed on a device by every family of kernels, and compared with stored logits.
//!
//! The model's weights follow from a rule, so that nothing but the logits is stored: those of the CPU's exact path, in [`STORED`]. A family is a type of
//! weights or of the cache, an activation, and a form: a prompt as one step, or token by token.

use std::collections::BTreeMap;
use std::io::Write;

use rocmforge::ggml::{Activations, DType};
use rocmforge::gguf::{Gguf, TensorType, Writer, blocks};
use rocmforge::models::{Engine, EngineOptions, KvType, Limit, Model};
use serde_json::json;

use crate::failure::Failure;
use crate::machine::{self, Machine, Program};
use crate::options::MachineOptions;
use crate::table;

/// Logits after the last of [`TOKENS`], by the family's weights and cache.
const STORED: &str = include_str!("logits.json");

const WIDTH: usize = 256;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const VOCAB: usize = 64;
/// More than a wave, and no multiple of one.
const TOKENS: usize = 39;

/// A type of weights and one of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Family {
    weights: TensorType,
    kv: KvType,
}

impl Family {
    /// All types of weights that can be made here, and all types of the cache.
    fn all() -> Vec<Self> {
        let is_made =
            |ty: &TensorType| DType::of_tensor_type(*ty).is_some_and(|dtype| dtype.is_weight() && dtype.is_encodable());
        let weights = TensorType::ALL.iter().copied().filter(is_made);
        let caches = [KvType::F32, KvType::Bf16, KvType::Q8_0].map(|kv| Self {
            weights: TensorType::F16,
            kv,
        });
        let kv = KvType::F16;
        weights.map(|weights| Self { weights, kv }).chain(caches).collect()
    }

    fn name(self) -> String {
        match self.kv {
            KvType::F16 => format!("weights {}", self.weights.name()),
            kv => format!("cache {}", DType::from(kv)),
        }
    }

    /// The largest difference that passes, in parts of the largest logit: sums in another order, and activations in fewer bits.
    fn tolerance(self, activations: Activations) -> f32 {
        match (activations, self.kv) {
            (Activations::Int8, _) => 5e-2,
            (_, KvType::Q8_0) => 1e-2,
            _ => 3e-3,
        }
    }
}

/// Numbers between -1 and 1 that are the same on every machine.
fn values(name: &str, count: usize) -> Vec<f32> {
    let mut state = name.bytes().fold(0x2545_F491_4F6C_DD1D_u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The model with its matrices in this type; `factor` of one matrix is 1, but in a test.
fn model(ty: TensorType, factor: f32) -> Result<Model, Failure> {
    let mut writer = Writer::new();
    writer.metadata("general.architecture", "llama")?;
    writer.metadata("tokenizer.ggml.model", "no_vocab")?;
    for (key, value) in [
        ("block_count", 1),
        ("embedding_length", WIDTH),
        ("feed_forward_length", WIDTH),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
        ("context_length", 64),
        ("vocab_size", VOCAB),
    ] {
        writer.metadata(format!("llama.{key}"), u32::try_from(value)?)?;
    }
    writer.metadata("llama.attention.layer_norm_rms_epsilon", 1e-5_f32)?;
    let kv = WIDTH / HEADS * KV_HEADS;
    for (name, rows) in [
        ("token_embd", VOCAB),
        ("output", VOCAB),
        ("blk.0.attn_q", WIDTH),
        ("blk.0.attn_k", kv),
        ("blk.0.attn_v", kv),
        ("blk.0.attn_output", WIDTH),
        ("blk.0.ffn_gate", WIDTH),
        ("blk.0.ffn_up", WIDTH),
        ("blk.0.ffn_down", WIDTH),
    ] {
        let factor = if name == "blk.0.ffn_down" { factor } else { 1.0 };
        // A product's results are near 1.
        let values: Vec<f32> = values(name, rows * WIDTH)
            .iter()
            .map(|value| value * 0.125 * factor)
            .collect();
        let bytes = match ty {
            TensorType::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ty => blocks::quantize(ty, &values)?,
        };
        writer.tensor(format!("{name}.weight"), &[WIDTH, rows], ty, bytes)?;
    }
    let ones: Vec<u8> = [1_f32; WIDTH].iter().flat_map(|value| value.to_le_bytes()).collect();
    for name in ["output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"] {
        writer.tensor(format!("{name}.weight"), &[WIDTH], TensorType::F32, ones.clone())?;
    }
    Ok(Model::from_gguf(Gguf::from_bytes(writer.to_bytes()?)?)?)
}

/// How the tokens are given to the model.
const FORMS: [&str; 2] = ["prompt", "decode"];

/// Logits in both forms.
fn logits<M: Machine>(machine: M, model: &Model, family: Family) -> Result<[Vec<f32>; 2], Failure> {
    let options = EngineOptions {
        max_context: Limit::Tokens(64),
        max_sequences: 1,
        kv: family.kv,
        candidates: Some(0),
        ..EngineOptions::default()
    };
    let mut engine = Engine::new(machine, model, options)?;
    let ids: Vec<u32> = (0..TOKENS).map(|at| (at * 17 % VOCAB) as u32).collect();
    let sequence = engine.add_sequence(&[])?;
    let prompt = engine.prefill(sequence, &ids)?;
    engine.remove(sequence)?;
    let sequence = engine.add_sequence(&[])?;
    let mut decode = Vec::new();
    for &id in &ids {
        decode = engine.decode(sequence, id)?;
    }
    Ok([prompt, decode])
}

/// The largest difference, in parts of the largest expected number; infinite where one is no number.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    let largest = expected.iter().fold(0_f32, |most, value| most.max(value.abs()));
    if found.len() != expected.len() || largest == 0.0 {
        return f32::INFINITY;
    }
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / largest);
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

/// Computes every family on the device, with `factor` for the model of each.
fn lines(options: &MachineOptions, families: &[Family], factor: impl Fn(Family) -> f32) -> Result<Vec<Line>, Failure> {
    let stored: BTreeMap<String, Vec<f32>> = serde_json::from_str(STORED)?;
    let mut lines = Vec::new();
    for &family in families {
        let model = model(family.weights, factor(family))?;
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
                    difference: difference(found, expected),
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
    let lines = lines(&options.named(), &Family::all(), |_| 1.0)?;
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

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        machine: MachineOptions,
    }

    fn options(device: &str) -> MachineOptions {
        Options::parse_from(["test", "--device", device]).machine
    }

    /// The stored logits are those of the CPU. `ROCMFORGE_STORE_LOGITS=1` writes what they are now.
    #[test]
    fn the_stored_logits_are_those_of_the_cpu() {
        let mut computed = BTreeMap::new();
        for family in Family::all() {
            let model = model(family.weights, 1.0).expect("a model");
            let [prompt, decode] = logits(CpuBackend::with_threads(1), &model, family).expect("computed");
            assert!(
                difference(&decode, &prompt) < family.tolerance(Activations::F32),
                "{}",
                family.name()
            );
            computed.insert(family.name(), prompt);
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
        let all: Vec<_> = stored
            .iter()
            .filter(|(name, _)| name.starts_with("weights q"))
            .collect();
        for (index, (name, logits)) in all.iter().enumerate() {
            for (other, others) in &all[..index] {
                assert!(difference(logits, others) > 3e-3, "{name} and {other}");
            }
        }
    }

    /// A matrix of one type whose blocks are read half as large again, as a wrong kernel would read them.
    #[test]
    fn a_planted_fault_is_found_in_its_family_alone() {
        let kv = KvType::F16;
        let families = [TensorType::F16, TensorType::Q4_0, TensorType::Q4K].map(|weights| Family { weights, kv });
        let faulty = |family: Family| if family.weights == TensorType::Q4_0 { 1.5 } else { 1.0 };
        for device in ["sim", "sim:gfx1201"] {
            let lines = lines(&options(device), &families, faulty).expect("computed");
            assert_eq!(lines.len(), 10);
            for line in lines {
                let is_faulty = line.family == "weights q4_0";
                let found = line.difference;
                assert_eq!(
                    line.is_right(),
                    !is_faulty,
                    "{} {} {}: {found}",
                    line.family,
                    line.activations,
                    line.form
                );
            }
        }
    }

    #[test]
    fn what_is_no_number_is_wrong() {
        assert_eq!(difference(&[f32::NAN, 1.0], &[1.0, 1.0]), f32::INFINITY);
        assert_eq!(difference(&[1.0], &[1.0, 1.0]), f32::INFINITY);
        assert_eq!(difference(&[1.0, 1.5], &[1.0, 2.0]), 0.25);
    }
}
