//! Random GGUF models as checkpoints of other architectures than Llama's: what conversion to GGUF changed is changed back.

use std::collections::BTreeMap;

use super::changes::Change;
use super::checkpoints::{CHECKPOINTS, COMMON, Checkpoint, SETTINGS};
use super::checkpoints_of_mixtures::MIXTURES;
use super::directory::{self, Tensors};
use crate::reference::{Tiny, engine};
use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Array, Gguf, TensorType, Value as Stated};
use rocmforge_models::{Chunk, Model, Outputs};
use safetensors::Dtype;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Type, shape and bytes.
pub(super) type Tensor = (Dtype, Vec<usize>, Vec<u8>);

/// A model to be written as a checkpoint.
pub(super) struct Source<'a> {
    gguf: &'a Gguf,
    architecture: String,
    pub(super) tensors: BTreeMap<String, Tensor>,
}

impl<'a> Source<'a> {
    fn new(gguf: &'a Gguf) -> Self {
        let tensors = gguf.tensors().iter().map(|tensor| {
            let dtype = match tensor.ty {
                TensorType::F16 => Dtype::F16,
                TensorType::F32 => Dtype::F32,
                other => panic!("{other:?} is no type of these models"),
            };
            let shape = tensor.dims.iter().rev().copied().collect();
            (tensor.name.clone(), (dtype, shape, gguf.data(tensor).to_vec()))
        });
        let architecture = gguf.metadata().string("general.architecture").expect("there");
        Self {
            gguf,
            architecture: architecture.to_owned(),
            tensors: tensors.collect(),
        }
    }

    fn stated(&self, key: &str) -> Option<Value> {
        let value = self.gguf.metadata().get(&format!("{}.{key}", self.architecture))?;
        Some(match value {
            Stated::Bool(value) => json!(value),
            Stated::F32(value) => json!(value),
            Stated::Array(Array::Bool(values)) => json!(values),
            Stated::Array(array) => json!(array.integers().expect("numbers")),
            other => json!(i64::try_from(other.integer().expect("a number")).expect("small")),
        })
    }

    pub(super) fn number(&self, key: &str) -> usize {
        self.stated(key).and_then(|value| value.as_u64()).unwrap_or(0) as usize
    }

    /// Elements of a head.
    pub(super) fn head_dim(&self) -> usize {
        match self.number("attention.key_length") {
            0 => self.number("embedding_length") / self.number("attention.head_count").max(1),
            stated => stated,
        }
    }

    /// Names of the types of layers, by their heads of keys and their networks.
    fn layer_types(&self) -> Value {
        let list = |key| self.stated(key).and_then(|value| value.as_array().cloned());
        let heads = list("attention.head_count_kv").expect("a list");
        let networks = list("feed_forward_length");
        let experts = self.number("expert_count") > 0;
        let of_layer = |(layer, heads): (usize, &Value)| match &networks {
            Some(networks) if networks[layer] != json!(0) => {
                if experts {
                    "moe"
                } else {
                    "mlp"
                }
            }
            _ if *heads == json!(0) => "linear_attention",
            _ => "full_attention",
        };
        heads.iter().enumerate().map(of_layer).collect()
    }

    fn config(&self, checkpoint: &Checkpoint) -> Value {
        let mut config = Map::new();
        let settings = SETTINGS.iter().chain(checkpoint.settings);
        config.extend(settings.filter_map(|(name, key)| Some(((*name).to_owned(), self.stated(key)?))));
        let layers = self.number("block_count") - self.number("nextn_predict_layers");
        let part = self.number("rope.dimension_count") as f32 / self.head_dim().max(1) as f32;
        let others = json!({
            "model_type": checkpoint.model_type,
            "num_hidden_layers": layers,
            "head_dim": self.head_dim(),
            "rms_norm_eps": self.stated("attention.layer_norm_rms_epsilon"),
            "rope_theta": self.stated("rope.freq_base").unwrap_or(json!(10_000.0)),
            "partial_rotary_factor": part,
            "tie_word_embeddings": self.gguf.tensor("output.weight").is_none(),
        });
        config.extend(others.as_object().expect("an object").clone());
        let fixed: Map<String, Value> = serde_json::from_str(checkpoint.fixed).expect("an object");
        for (name, value) in fixed {
            match value {
                Value::String(rule) if rule == "by heads of keys" => config.insert(name, self.layer_types()),
                // Null may mean something else than an absent key.
                value => config.insert(name, value),
            };
        }
        Value::Object(config)
    }

    /// The tensors by the checkpoint's names.
    fn named(self, checkpoint: &Checkpoint) -> Tensors {
        let own = |part: &str| checkpoint.names.iter().any(|(gguf, _)| *gguf == part);
        let common = COMMON.iter().filter(|(part, _)| !own(part));
        let parts: Vec<_> = checkpoint.names.iter().chain(common).collect();
        let name_of = |name: String| {
            parts.iter().fold(name, |name, (gguf, own)| match *gguf {
                "output.weight" if name != "output.weight" => name,
                gguf => name.replace(gguf, own),
            })
        };
        self.tensors
            .into_iter()
            .map(|(name, tensor)| (name_of(name), tensor))
            .collect()
    }
}

/// The model as a checkpoint, whose settings are changed before they are written.
pub(super) fn written(tiny: &Tiny, checkpoint: &Checkpoint, change: impl FnOnce(&mut Value)) -> TempDir {
    let gguf = tiny.gguf();
    let mut source = Source::new(&gguf);
    let mut config = source.config(checkpoint);
    change(&mut config);
    for &change in checkpoint.changes {
        source.change(change);
    }
    let directory = tempfile::tempdir().expect("a directory");
    directory::write(directory.path(), &config, &source.named(checkpoint));
    directory
}

/// The largest difference from the f64 forward.
fn check(tiny: &Tiny, checkpoint: &Checkpoint) -> f64 {
    let directory = written(tiny, checkpoint, |_| ());
    let model = Model::open(directory.path()).unwrap_or_else(|error| panic!("{}: {error}", tiny.file));
    tiny.check_model(&model, CpuBackend::with_threads(2), 7)
}

#[test]
fn checkpoints_of_other_architectures_equal_the_f64_forward() {
    let all = Tiny::all();
    for checkpoint in CHECKPOINTS.iter().chain(MIXTURES) {
        for file in checkpoint.files {
            let tiny = all.iter().find(|tiny| tiny.file == format!("{file}.gguf"));
            let worst = check(tiny.expect("a committed model"), checkpoint);
            println!("{file:24} {:18} {worst:.1e}", checkpoint.model_type);
        }
    }
}

/// Codes and scales of MXFP4 for floats `[count, cols, rows]`, whose matrices are transposed, and the floats that they stand for.
fn mxfp4((_, shape, bytes): &Tensor) -> [Tensor; 3] {
    const VALUES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let (count, cols, rows) = (shape[0], shape[1], shape[2]);
    let blocks = cols / 32;
    let (mut codes, mut scales) = (vec![0u8; count * rows * cols / 2], vec![0u8; count * rows * blocks]);
    let mut floats = vec![0.0f32; count * cols * rows];
    for index in 0..count * rows * cols {
        let (matrix, row, col) = (index / (rows * cols), index / cols % rows, index % cols);
        let at = (matrix * cols + col) * rows + row;
        // The sign and some bits of the element: any codes will do.
        let code = bytes[2 * at] & 7 | (bytes[2 * at + 1] >> 4) & 8;
        let block = index / 32;
        scales[block] = 122 + (block % 3) as u8;
        codes[index / 2] |= code << (4 * (index % 2));
        let sign = if code < 8 { 1.0 } else { -1.0 };
        floats[at] = sign * VALUES[usize::from(code & 7)] * 2.0f32.powi(i32::from(scales[block]) - 127);
    }
    [
        (Dtype::U8, vec![count, rows, blocks, 16], codes),
        (Dtype::U8, vec![count, rows, blocks], scales),
        (Dtype::F32, shape.clone(), bytemuck::cast_slice(&floats).to_vec()),
    ]
}

/// gpt-oss is published with experts of MXFP4: the same numbers as from the floats that these stand for.
#[test]
fn experts_of_mxfp4_equal_their_floats() {
    let checkpoint = MIXTURES.iter().find(|of| of.model_type == "gpt_oss").expect("a row");
    let tiny = Tiny::all()
        .into_iter()
        .find(|tiny| tiny.file == "gpt-oss.gguf")
        .expect("a model");
    let gguf = tiny.gguf();
    let mut source = Source::new(&gguf);
    let mut config = source.config(checkpoint);
    source.change(Change::ExpertsTransposed);
    let floats = source.named(checkpoint);
    let (mut coded, mut decoded) = (floats.clone(), floats);
    let names: Vec<String> = coded
        .keys()
        .filter(|name| name.ends_with("gate_up_proj"))
        .cloned()
        .collect();
    assert!(!names.is_empty());
    for name in names {
        let whole = coded.remove(&name).expect("there");
        let [codes, scales, values] = mxfp4(&whole);
        coded.insert(format!("{name}_blocks"), codes);
        coded.insert(format!("{name}_scales"), scales);
        decoded.insert(name, values);
    }
    let rows = |tensors: &Tensors, config: &Value| {
        let directory = tempfile::tempdir().expect("a directory");
        directory::write(directory.path(), config, tensors);
        let model = Model::open(directory.path()).expect("a model");
        let mut engine = engine(CpuBackend::with_threads(1), &model, 64);
        let sequence = engine.add_sequence(&tiny.ids[..1]).expect("room");
        let chunk = Chunk {
            sequence,
            tokens: &tiny.ids[..12],
            outputs: Outputs::All,
        };
        let step = engine.step(&[chunk]).expect("runs");
        step.rows().flat_map(<[f32]>::to_vec).collect::<Vec<f32>>()
    };
    let expected = rows(&decoded, &config);
    config["quantization_config"] = json!({ "quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"] });
    let found = rows(&coded, &config);
    let differences = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
    let worst = differences.fold(0.0, f32::max);
    assert!(worst < 1e-4, "{worst}");
    config["quantization_config"] = json!({ "quant_method": "awq" });
    let directory = tempfile::tempdir().expect("a directory");
    directory::write(directory.path(), &config, &coded);
    let error = Model::open(directory.path()).expect_err("another method").to_string();
    assert!(
        error.contains("quantization_config") && error.contains("mxfp4"),
        "{error}"
    );
}
