//! Hugging Face directories against the f64 forward: the random models with the names, row orders and settings of their checkpoints.

use std::collections::BTreeMap;
use std::path::Path;

use super::checkpoints::COMMON;
use crate::reference::Tiny;
use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Gguf, TensorType, blocks};
use rocmforge_models::{Engine, EngineOptions, Model};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Map, Value, json};

/// Names as the checkpoints have them, apart from the product's table.
const WHOLE_NAMES: [(&str, &str); 10] = [
    ("token_embd.weight", "model.embed_tokens.weight"),
    ("output_norm.weight", "model.norm.weight"),
    ("output.weight", "lm_head.weight"),
    ("output.bias", "lm_head.bias"),
    ("per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"),
    ("per_layer_model_proj.weight", "model.per_layer_model_projection.weight"),
    ("per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"),
    ("rope_freqs.weight", ""),
    ("rope_factors_short.weight", ""),
    ("rope_factors_long.weight", ""),
];

/// The same for parts of names that few checkpoints have; those of [`COMMON`] follow.
const PARTS: [(&str, &str); 12] = [
    (".attn_qkv.", ".self_attn.qkv_proj."),
    (".altup_router_norm.", ".altup.router_norm."),
    (".altup_router.", ".altup.modality_router."),
    (".altup_predict_coef.", ".altup.prediction_coefs."),
    (".altup_correct_coef.", ".altup.correction_coefs."),
    (".altup_correct_scale.weight", ".altup.correct_output_scale"),
    (".laurel_l.", ".laurel.linear_left."),
    (".laurel_r.", ".laurel.linear_right."),
    (".laurel_post_norm.", ".laurel.post_laurel_norm."),
    (".inp_gate.", ".per_layer_input_gate."),
    (".proj.", ".per_layer_projection."),
    (".post_norm.", ".post_per_layer_input_norm."),
];

/// The checkpoint's name of a tensor; empty for what is a setting there.
fn checkpoint_name(architecture: &str, name: &str) -> String {
    if architecture.starts_with("gemma3") && name.contains(".ffn_norm.") {
        return name
            .replace("blk.", "model.layers.")
            .replace(".ffn_norm.", ".pre_feedforward_layernorm.");
    }
    if architecture == "phi3" && name.contains(".ffn_up.") {
        return name
            .replace("blk.", "model.layers.")
            .replace(".ffn_up.", ".mlp.gate_up_proj.");
    }
    if architecture == "llama" && name.contains(".ffn_gate_inp.") {
        return name
            .replace("blk.", "model.layers.")
            .replace(".ffn_gate_inp.", ".block_sparse_moe.gate.");
    }
    if let Some((_, whole)) = WHOLE_NAMES.iter().find(|(gguf, _)| *gguf == name) {
        return (*whole).to_owned();
    }
    let parts = PARTS.iter().chain(&COMMON);
    let name = parts.fold(name.to_owned(), |name, (gguf, checkpoint)| {
        name.replace(gguf, checkpoint)
    });
    match architecture {
        "llama4" => name
            .replace(".mlp.gate.", ".feed_forward.router.")
            .replace(".mlp.", ".feed_forward."),
        _ => name,
    }
}

/// Type, shape, bytes.
type Tensor = (Dtype, Vec<usize>, Vec<u8>);
/// Tensors by name.
pub(super) type Tensors = BTreeMap<String, Tensor>;

/// A random model that can be written as a directory.
pub(super) struct Export {
    gguf: Gguf,
    architecture: String,
}

impl Export {
    /// `None` for models with what checkpoints have not: blocks, or free divisors of Llama's frequencies, or its query, key and value in one matrix, or
    /// factors on products, or heads of layers with a window that differ; and of architectures whose checkpoints `checkpoints.rs` has.
    pub(super) fn new(gguf: Gguf) -> Option<Self> {
        let plain = |ty| matches!(ty, TensorType::F32 | TensorType::F16 | TensorType::Bf16);
        if !gguf.tensors().iter().all(|tensor| plain(tensor.ty)) || gguf.tensor("rope_freqs.weight").is_some() {
            return None;
        }
        if gguf.tensors().iter().any(|tensor| tensor.name.ends_with("scale")) {
            return None;
        }
        if gguf.metadata().get("gemma3.attention.key_length_swa").is_some() {
            return None;
        }
        let architecture = gguf.metadata().string("general.architecture");
        let architecture = architecture.expect("there").to_owned();
        if architecture == "llama" && gguf.tensor("blk.0.attn_qkv.weight").is_some() {
            return None;
        }
        let own = [
            "llama", "llama4", "mistral3", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "gemma3", "gemma3n", "phi3",
        ];
        if !own.contains(&architecture.as_str()) {
            return None;
        }
        Some(Self { gguf, architecture })
    }

    /// Whether the directory gives the numbers of the file. The deviation of gates that are cut is that of a sample in a GGUF, and of all gates in a
    /// directory.
    pub(super) fn gives_the_same(&self) -> bool {
        self.architecture != "gemma3n"
    }

    fn usize(&self, key: &str) -> Option<usize> {
        let key = format!("{}.{key}", self.architecture);
        self.gguf.metadata().opt_usize(&key).expect("a number")
    }

    fn f32(&self, key: &str) -> Option<f32> {
        let key = format!("{}.{key}", self.architecture);
        self.gguf.metadata().opt_f32(&key).expect("a number")
    }

    fn values(&self, name: &str) -> Option<Vec<f32>> {
        let tensor = self.gguf.tensor(name)?;
        let mut out = vec![0.0; tensor.elements()];
        blocks::dequantize(tensor.ty, self.gguf.data(tensor), &mut out).expect("whole blocks");
        Some(out)
    }

    /// A number, or one for each layer.
    fn numbers(&self, key: &str) -> Value {
        let whole = format!("{}.{key}", self.architecture);
        match self.gguf.metadata().get(&whole) {
            Some(rocmforge_gguf::Value::Array(_)) => json!(self.gguf.metadata().u32s(&whole).expect("numbers")),
            _ => json!(self.usize(key).expect("there")),
        }
    }

    /// Elements of a head, or those of each layer.
    fn head_dim(&self) -> Value {
        let number = |key| self.usize(key).expect("there");
        let key = format!("{}.attention.key_length", self.architecture);
        match self.gguf.metadata().get(&key) {
            Some(_) => self.numbers("attention.key_length"),
            None => json!(number("embedding_length") / number("attention.head_count")),
        }
    }

    /// Elements of a head of this layer, and how many of them are rotated.
    fn head(&self, layer: usize) -> [usize; 2] {
        [self.head_dim(), self.numbers("rope.dimension_count")].map(|all| {
            let of = all.get(layer).unwrap_or(&all);
            of.as_u64().expect("a number") as usize
        })
    }

    /// Settings of Gemma 3n. Gates are cut in the layers of the file, at their mean.
    fn of_streams(&self) -> Map<String, Value> {
        let number = |key| json!(self.usize(key).expect("there"));
        let pattern = self.gguf.metadata().get("gemma3n.attention.sliding_window_pattern");
        let Some(rocmforge_gguf::Value::Array(rocmforge_gguf::Array::Bool(windowed))) = pattern else {
            panic!("{pattern:?}");
        };
        let types = windowed.iter().map(|&windowed| match windowed {
            true => "sliding_attention",
            false => "full_attention",
        });
        let scales = self.gguf.metadata().get("gemma3n.activation_sparsity_scale");
        let Some(rocmforge_gguf::Value::Array(rocmforge_gguf::Array::F32(scales))) = scales else {
            panic!("{scales:?}");
        };
        let shares = scales.iter().map(|scale| if scale.is_finite() { 0.5 } else { 0.0 });
        let rank = self.gguf.tensor("blk.0.laurel_l.weight").expect("there").dims[1];
        let settings = json!({
            "model_type": "gemma3n_text",
            "activation_sparsity_pattern": shares.collect::<Vec<f64>>(),
            "altup_num_inputs": number("altup.num_inputs"),
            "final_logit_softcapping": self.f32("final_logit_softcapping"),
            "hidden_activation": "gelu_pytorch_tanh",
            "hidden_size_per_layer_input": number("embedding_length_per_layer_input"),
            "laurel_rank": rank,
            "layer_types": types.collect::<Vec<_>>(),
            "num_kv_shared_layers": number("attention.shared_kv_layers"),
            "query_pre_attn_scalar": 256,
            "rope_local_base_freq": self.f32("rope.freq_base_swa"),
            "sliding_window": number("attention.sliding_window"),
            "vocab_size_per_layer_input": number("vocab_size"),
        });
        settings.as_object().expect("an object").clone()
    }

    /// The model's config.json as transformers 4 writes it.
    pub(super) fn config(&self) -> Value {
        let number = |key| self.usize(key).expect("there");
        let head_dim = self.head_dim();
        let [length, rotated] = self.head(0);
        let mut config = json!({
            "model_type": match self.architecture.as_str() {
                "gemma3" => "gemma3_text",
                "llama" if self.usize("expert_count").is_some() => "mixtral",
                "llama4" => "llama4_text",
                "mistral3" => "ministral3",
                "qwen2moe" => "qwen2_moe",
                "qwen3moe" => "qwen3_moe",
                same => same,
            },
            "num_hidden_layers": number("block_count"),
            "hidden_size": number("embedding_length"),
            "intermediate_size": self.numbers("feed_forward_length"),
            "num_attention_heads": self.numbers("attention.head_count"),
            "num_key_value_heads": self.numbers("attention.head_count_kv"),
            "head_dim": head_dim,
            "vocab_size": number("vocab_size"),
            "max_position_embeddings": number("context_length"),
            "rms_norm_eps": self.f32("attention.layer_norm_rms_epsilon"),
            "rope_theta": self.f32("rope.freq_base").unwrap_or(10_000.0),
            "partial_rotary_factor": rotated as f32 / length as f32,
        });
        let extra: Map<String, Value> = match self.architecture.as_str() {
            "gemma3" => [
                ("sliding_window".to_owned(), json!(number("attention.sliding_window"))),
                ("sliding_window_pattern".to_owned(), json!(6)),
                ("query_pre_attn_scalar".to_owned(), json!(head_dim)),
                ("hidden_activation".to_owned(), json!("gelu_pytorch_tanh")),
                (
                    "rope_scaling".to_owned(),
                    json!(
                        self.f32("rope.scaling.factor")
                            .map(|factor| json!({ "rope_type": "linear", "factor": factor }))
                    ),
                ),
            ]
            .into_iter()
            .collect(),
            "gemma3n" => self.of_streams(),
            "llama" if self.usize("expert_count").is_some() => [
                ("num_local_experts".to_owned(), json!(number("expert_count"))),
                ("num_experts_per_tok".to_owned(), json!(number("expert_used_count"))),
            ]
            .into_iter()
            .collect(),
            "llama4" => [
                ("intermediate_size_mlp", json!(number("feed_forward_length"))),
                ("intermediate_size", json!(number("expert_feed_forward_length"))),
                ("num_local_experts", json!(number("expert_count"))),
                ("num_experts_per_tok", json!(number("expert_used_count"))),
                ("interleave_moe_layer_step", json!(number("interleave_moe_layer_step"))),
                ("use_qk_norm", json!(number("expert_count") != 128)),
            ]
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect(),
            "mistral3" => {
                let multiplier = self.f32("rope.scaling.yarn_log_multiplier");
                let rule = json!({
                    "rope_type": "yarn",
                    "factor": self.f32("rope.scaling.factor"),
                    "original_max_position_embeddings": number("rope.scaling.original_context_length"),
                    "mscale": 1.0,
                    "mscale_all_dim": multiplier,
                    "llama_4_scaling_beta": self.f32("attention.temperature_scale"),
                });
                [("rope_scaling".to_owned(), rule)].into_iter().collect()
            }
            "qwen2moe" | "qwen3moe" => [
                ("num_experts".to_owned(), json!(number("expert_count"))),
                ("num_experts_per_tok".to_owned(), json!(number("expert_used_count"))),
                (
                    "moe_intermediate_size".to_owned(),
                    json!(number("expert_feed_forward_length")),
                ),
                ("norm_topk_prob".to_owned(), json!(self.architecture == "qwen3moe")),
            ]
            .into_iter()
            .chain(
                self.usize("expert_shared_feed_forward_length")
                    .map(|inner| ("shared_expert_intermediate_size".to_owned(), json!(inner))),
            )
            .collect(),
            "phi3" => [
                (
                    "original_max_position_embeddings".to_owned(),
                    json!(number("rope.scaling.original_context_length")),
                ),
                (
                    "rope_scaling".to_owned(),
                    json!({
                        "type": "longrope",
                        "attention_factor": self.f32("rope.scaling.attn_factor"),
                        "short_factor": self.values("rope_factors_short.weight"),
                        "long_factor": self.values("rope_factors_long.weight"),
                    }),
                ),
            ]
            .into_iter()
            .collect(),
            _ => Map::new(),
        };
        let object = config.as_object_mut().expect("an object");
        object.extend(extra);
        // Gemma's is tied where the file does not say so.
        if !self.architecture.starts_with("gemma3") {
            let tied = self.gguf.tensor("output.weight").is_none();
            object.insert("tie_word_embeddings".to_owned(), json!(tied));
        }
        config
    }

    /// The bytes of a tensor in a checkpoint, in the type of the file where that is a plain one.
    fn bytes(&self, name: &str) -> (Dtype, Vec<u8>) {
        let tensor = self.gguf.tensor(name).expect("there");
        let (dtype, size) = match tensor.ty {
            TensorType::F16 => (Dtype::F16, 2),
            TensorType::Bf16 => (Dtype::BF16, 2),
            TensorType::F32 => (Dtype::F32, 4),
            other => panic!("{other:?} is no type of a checkpoint"),
        };
        let data = self.gguf.data(tensor);
        if self.architecture == "gemma3" && name.contains("norm") {
            // The file's weights have the 1 that the checkpoint's lack.
            let less: Vec<f32> = self.values(name).expect("there").iter().map(|w| w - 1.0).collect();
            return (dtype, bytemuck::cast_slice(&less).to_vec());
        }
        let reordered = ["llama", "mistral3"].contains(&self.architecture.as_str())
            && (name.contains(".attn_q.") || name.contains(".attn_k."));
        if !reordered {
            return (dtype, data.to_vec());
        }
        // A GGUF row 2 i + t of what is rotated of a head is the checkpoint's row t * half + i.
        let layer = name.split('.').nth(1).expect("a layer").parse().expect("its number");
        let cols = if name.ends_with(".bias") { 1 } else { tensor.dims[0] };
        let (row, [head_dim, rotated]) = (cols * size, self.head(layer));
        let mut out = vec![0; data.len()];
        for (index, bytes) in data.chunks(row).enumerate() {
            let (head, within) = (index / head_dim, index % head_dim);
            let moved = within % 2 * (rotated / 2) + within / 2;
            let at = head * head_dim + if within < rotated { moved } else { within };
            out[at * row..(at + 1) * row].copy_from_slice(bytes);
        }
        (dtype, out)
    }

    /// Experts as Llama 4's checkpoints have them: `[experts, inputs, results]`, and gate and up in one.
    fn turned_experts(&self, name: &str, dtype: Dtype) -> Option<(String, Tensor)> {
        let (layer, kind) = name.split_once(".ffn_").expect("a layer");
        let [columns, rows, count] = self.gguf.tensor(name).expect("there").dims[..] else {
            panic!("three dimensions")
        };
        let parts = match kind {
            "gate_exps.weight" => vec![name.to_owned(), name.replace("gate", "up")],
            "down_exps.weight" => vec![name.to_owned()],
            _ => return None,
        };
        let (shape, mut bytes) = (vec![count, columns, rows * parts.len()], Vec::new());
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| self.bytes(part).1).collect();
        let size = parts[0].len() / (count * rows * columns);
        for (expert, column) in (0..count).flat_map(|expert| (0..columns).map(move |column| (expert, column))) {
            for (part, row) in parts.iter().flat_map(|part| (0..rows).map(move |row| (part, row))) {
                let at = ((expert * rows + row) * columns + column) * size;
                bytes.extend_from_slice(&part[at..at + size]);
            }
        }
        let kind = if shape[2] == rows { "down_proj" } else { "gate_up_proj" };
        let name = format!("{}.feed_forward.experts.{kind}", layer.replace("blk.", "model.layers."));
        Some((name, (dtype, shape, bytes)))
    }

    /// Writes config.json and the weights.
    pub(super) fn write(&self, directory: &Path, config: &Value) {
        write(directory, config, &self.tensors_for(config));
    }

    /// The checkpoint's tensors with these settings: the table of layer inputs may have fewer rows than the file's.
    fn tensors_for(&self, config: &Value) -> Tensors {
        let mut tensors = self.tensors();
        if let (Some(rows), Some((_, shape, bytes))) = (
            config["vocab_size_per_layer_input"].as_u64(),
            tensors.get_mut("model.embed_tokens_per_layer.weight"),
        ) {
            bytes.truncate(bytes.len() / shape[0] * rows as usize);
            shape[0] = rows as usize;
        }
        tensors
    }

    /// The checkpoint's tensors.
    pub(super) fn tensors(&self) -> Tensors {
        self.gguf
            .tensors()
            .iter()
            .flat_map(|tensor| {
                let (dtype, bytes) = self.bytes(&tensor.name);
                let mut shape: Vec<usize> = tensor.dims.iter().rev().copied().collect();
                if let Some(part) = tensor.name.strip_prefix("altup_") {
                    let kind = match part {
                        "proj.weight" => "projections",
                        _ => "unembed_projections",
                    };
                    let parts = bytes.chunks(bytes.len() / shape[0]).enumerate();
                    let part = |(index, part): (usize, &[u8])| {
                        let name = format!("model.altup_{kind}.{index}.weight");
                        (name, (dtype, shape[1..].to_vec(), part.to_vec()))
                    };
                    return parts.map(part).collect();
                }
                if tensor.name.contains(".ffn_gate_inp_shexp.") {
                    shape.insert(0, 1);
                }
                if self.architecture == "llama4" && tensor.name.contains("_exps.") {
                    return self.turned_experts(&tensor.name, dtype).into_iter().collect();
                }
                let of_mixtral = self.architecture == "llama";
                if let Some((layer, rest)) = tensor
                    .name
                    .split_once(".ffn_")
                    .filter(|(_, rest)| rest.contains("_exps."))
                {
                    let layer = layer.replace("blk.", "model.layers.");
                    let experts = format!("{layer}.{}", if of_mixtral { "block_sparse_moe" } else { "mlp" });
                    let joined = self.gguf.tensor("blk.0.ffn_gate_up_exps.weight").is_some();
                    if joined {
                        let kind = rest.replace("_exps.weight", "_proj");
                        return vec![(format!("{experts}.experts.{kind}"), (dtype, shape, bytes))];
                    }
                    let kind = match rest {
                        "gate_exps.weight" if of_mixtral => "w1.weight".to_owned(),
                        "down_exps.weight" if of_mixtral => "w2.weight".to_owned(),
                        "up_exps.weight" if of_mixtral => "w3.weight".to_owned(),
                        other => other.replace("_exps.", "_proj."),
                    };
                    let parts = bytes.chunks(bytes.len() / shape[0]).enumerate();
                    let part = |(expert, part): (usize, &[u8])| {
                        let name = format!("{experts}.experts.{expert}.{kind}");
                        (name, (dtype, shape[1..].to_vec(), part.to_vec()))
                    };
                    return parts.map(part).collect();
                }
                vec![(checkpoint_name(&self.architecture, &tensor.name), (dtype, shape, bytes))]
            })
            .filter(|(name, _)| !name.is_empty())
            .collect()
    }
}

/// Writes config.json and tensors.
pub(super) fn write(directory: &Path, config: &Value, tensors: &Tensors) {
    std::fs::write(directory.join("config.json"), config.to_string()).expect("written");
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (
            name,
            TensorView::new(*dtype, shape.clone(), bytes).expect("the shape fits"),
        )
    });
    let file = directory.join("model.safetensors");
    safetensors::serialize_to_file(views, None, &file).expect("written");
}

#[test]
fn a_directory_of_every_architecture_equals_the_f64_forward() {
    let mut count = 0;
    for tiny in Tiny::all() {
        let Some(export) = Export::new(tiny.gguf()).filter(Export::gives_the_same) else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a directory");
        export.write(directory.path(), &export.config());
        let model = Model::open(directory.path()).expect("a model");
        let worst = tiny.check_model(&model, CpuBackend::with_threads(2), 7);
        println!("{:24} {worst:.1e}", tiny.file);
        count += 1;
    }
    assert!(count >= 10, "{count} models");
}

/// A Gemma 3n that transformers wrote, and the file that llama.cpp's converter made of it: `tests/reference/gemma3n.py` writes both, with the numbers of
/// transformers and of the f64 forward.
#[test]
fn a_model_that_transformers_wrote_equals_what_transformers_computes() {
    let folder = rocmforge_testkit::test_model_path("gemma3n-transformers");
    if !folder.is_dir() {
        rocmforge_testkit::skip!("no model of transformers: run tests/reference/gemma3n.py");
    }
    for (of, numbers) in [("directory", "directory.json"), ("model.gguf", "gguf.json")] {
        let text = std::fs::read(folder.join(numbers)).expect("it is beside the model");
        let tiny: Tiny = serde_json::from_slice(&text).expect("the fixture's format");
        let model = Model::open(folder.join(of)).expect("a model");
        let worst = [40, 7].map(|chunk| tiny.check_model(&model, CpuBackend::with_threads(2), chunk));
        println!("{of:24} {}", worst.map(|d| format!("{d:.1e}")).join(" "));
    }
}

/// The text part of a multimodal checkpoint is the text model, in each of the two spellings; the other parts are not loaded.
#[test]
fn the_text_part_of_a_multimodal_directory_equals_the_f64_forward() {
    let of_streams = Tiny::with_settings()
        .into_iter()
        .filter(|tiny| tiny.file == "gemma3n.gguf");
    let models: Vec<Tiny> = Tiny::all()
        .into_iter()
        .filter(|tiny| tiny.file == "gemma3.gguf")
        .chain(of_streams)
        .collect();
    assert_eq!(models.len(), 3);
    models.iter().for_each(check_text_part);
}

fn check_text_part(tiny: &Tiny) {
    let export = Export::new(tiny.gguf()).expect("a plain one");
    let mut text = export.config();
    text.as_object_mut().expect("an object").extend(tiny.config.clone());
    let own = export.tensors_for(&text);
    let config = json!({ "model_type": "gemma3", "text_config": text, "vision_config": { "depth": 2 } });
    let spellings: [fn(&str) -> String; 2] = [
        |name| format!("language_model.{name}"),
        |name| match name.strip_prefix("model.") {
            Some(rest) => format!("model.language_model.{rest}"),
            None => name.to_owned(),
        },
    ];
    for (spelling, other) in spellings
        .iter()
        .zip(["vision_tower.x.weight", "model.vision_tower.x.weight"])
    {
        let mut tensors: Tensors = own
            .iter()
            .map(|(name, tensor)| (spelling(name), tensor.clone()))
            .collect();
        tensors.insert(other.to_owned(), (Dtype::F32, vec![1], vec![0; 4]));
        tensors.insert("multi_modal_projector.x".to_owned(), (Dtype::F32, vec![1], vec![0; 4]));
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), &config, &tensors);
        let model = Model::open(directory.path()).expect("a text part");
        tiny.check_model(&model, CpuBackend::with_threads(2), 7);
        // A tensor of no known part may belong to the text model.
        tensors.insert(
            "language_model.model.other.weight".to_owned(),
            (Dtype::F32, vec![1], vec![0; 4]),
        );
        write(directory.path(), &config, &tensors);
        let model = Model::open(directory.path()).expect("a text part");
        let error = Engine::new(CpuBackend::with_threads(1), &model, EngineOptions::default());
        let error = error.expect_err("a tensor without a place").to_string();
        assert!(error.contains("model.other.weight"), "{error}");
        // Which of two is meant is not known.
        tensors.insert("model.norm.weight".to_owned(), (Dtype::F32, vec![1], vec![0; 4]));
        write(directory.path(), &config, &tensors);
        let error = Model::open(directory.path()).expect_err("a tensor twice").to_string();
        assert!(error.contains("model.norm.weight"), "{error}");
    }
}
