//! Encoders of all architectures against the f64 forward, and what their files state.

use std::path::Path;

use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Array, Gguf, TensorType, Value as Meta};
use rocmforge_models::arch::Architecture;
use rocmforge_models::bert::{Batch, Bert, PoolingMode};
use rocmforge_models::{Model, ModelError};
use safetensors::Dtype;
use serde_json::{Value, json};

use super::bert::NAMES;
use super::directory::{Export, Tensors, write};
use crate::reference::encoders::TinyEncoder;
use crate::reference::folder;

fn cpu() -> CpuBackend {
    CpuBackend::with_threads(2)
}

pub(super) fn tiny(file: &str) -> TinyEncoder {
    let mut all = TinyEncoder::all().into_iter();
    all.find(|tiny| tiny.file == file).expect("a committed model")
}

#[test]
fn encoders_equal_the_f64_forward() {
    let all = TinyEncoder::all();
    for tiny in &all {
        // Each text alone, two together with padding, and all.
        let worst = [1, 64, 512].map(|step| tiny.check(tiny.open(), cpu(), step));
        println!("{:24} {}", tiny.file, worst.map(|d| format!("{d:.1e}")).join(" "));
    }
    let names = [
        "bert",
        "nomic-bert",
        "nomic-bert-moe",
        "jina-bert-v2",
        "jina-bert-v3",
        "modern-bert",
        "neo-bert",
        "eurobert",
        "gemma-embedding",
    ];
    for name in names {
        assert!(Architecture::of_gguf(name).expect("a row").is_encoder(), "{name}");
        let found = all.iter().any(|tiny| tiny.open().architecture().name() == name);
        assert!(found, "{name} has no file");
    }
}

/// Names of ModernBERT's checkpoints, and of GGUF, in the order in which they are replaced.
const MODERN: [(&str, &str); 13] = [
    ("embeddings.tok_embeddings", "token_embd"),
    ("embeddings.norm", "token_embd_norm"),
    ("final_norm", "output_norm"),
    ("layers", "blk"),
    ("attn_norm", "attn_norm"),
    ("attn.Wqkv", "attn_qkv"),
    ("attn.Wo", "attn_output"),
    ("mlp_norm", "ffn_norm"),
    ("mlp.Wi", "ffn_up"),
    ("mlp.Wo", "ffn_down"),
    // As parts of a classifier's names.
    ("head.dense", "cls"),
    ("head.norm", "cls.norm"),
    ("classifier", "cls.output"),
];

const NOMIC: [(&str, &str); 11] = [
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("emb_ln", "token_embd_norm"),
    ("encoder.layers", "blk"),
    ("attn.Wqkv", "attn_qkv"),
    ("attn.out_proj", "attn_output"),
    ("norm1", "attn_output_norm"),
    ("norm2", "layer_output_norm"),
    ("mlp.fc11", "ffn_up"),
    ("mlp.fc12", "ffn_gate"),
    ("mlp.fc2", "ffn_down"),
];
const JINA: [(&str, &str); 12] = [
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("embeddings.LayerNorm", "token_embd_norm"),
    ("encoder.layer", "blk"),
    ("attention.self.query", "attn_q"),
    ("attention.self.key", "attn_k"),
    ("attention.self.value", "attn_v"),
    ("attention.output.dense", "attn_output"),
    ("attention.output.LayerNorm", "attn_output_norm"),
    ("mlp.gated_layers", "ffn_up"),
    ("mlp.wo", "ffn_down"),
    ("mlp.layernorm", "layer_output_norm"),
];
const GEMMA: [(&str, &str); 16] = [
    ("embed_tokens", "token_embd"),
    ("norm", "output_norm"),
    ("layers", "blk"),
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.o_proj", "attn_output"),
    ("post_attention_layernorm", "post_attention_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

/// Names with those of GGUF: the checkpoint's own, then those of a relative for the others.
type Names = Vec<(&'static str, &'static str)>;

fn own_and(own: &[(&'static str, &'static str)], relative: &[(&'static str, &'static str)]) -> Names {
    let is_other = |(_, name): &&(_, &str)| !own.iter().any(|(_, other)| other == name);
    own.iter().chain(relative.iter().filter(is_other)).copied().collect()
}

/// The names of Qwen 3.
pub(super) fn qwen3() -> Names {
    own_and(&[("post_attention_layernorm", "ffn_norm")], &GEMMA)
}

/// A committed GGUF as a directory of this config.json, with names of the table; tables of positions have `before` rows more.
pub(super) fn to_directory(directory: &Path, file: &str, names: &[(&str, &str)], config: &Value, before: usize) {
    let gguf = Gguf::open(folder().join("tiny").join(file)).expect("a committed model");
    let mut tensors = Tensors::new();
    let mut modules = vec!["Transformer", "Pooling"];
    for tensor in gguf.tensors() {
        // A name of two parts begins a tensor's.
        let longer = names.iter().find_map(|(own, of_gguf)| {
            let rest = tensor.name.strip_prefix(of_gguf).filter(|_| of_gguf.contains('.'))?;
            Some((own, rest.trim_start_matches('.')))
        });
        let parts = (tensor.name.split('.')).map(|part| {
            let found = names.iter().find(|(_, of_gguf)| *of_gguf == part);
            found.map_or(part, |(own, _)| own)
        });
        let parts: Vec<&str> = match longer {
            Some((own, rest)) => vec![own, rest],
            None => parts.collect(),
        };
        let mut shape: Vec<usize> = tensor.dims.iter().rev().copied().collect();
        let mut bytes = gguf.data(tensor).to_vec();
        if tensor.name.starts_with("position_embd") {
            let row = bytes.len() / shape[0];
            shape[0] += before;
            bytes.splice(0..0, vec![0; before * row]);
        }
        if file.starts_with("gemma") && tensor.name.ends_with("norm.weight") {
            // Checkpoints lack the 1.
            for four in bytes.chunks_exact_mut(4) {
                let value = f32::from_le_bytes(four.try_into().expect("four")) - 1.0;
                four.copy_from_slice(&value.to_le_bytes());
            }
        }
        let dtype = match tensor.ty {
            TensorType::F16 => Dtype::F16,
            _ => Dtype::F32,
        };
        if let Some(number) = tensor.name.strip_prefix("dense_") {
            let folder = directory.join(format!("{}_Dense", &number[..1]));
            std::fs::create_dir_all(&folder).expect("made");
            let config = json!({ "bias": false, "activation_function": "torch.nn.modules.linear.Identity" });
            let tensors = Tensors::from([("linear.weight".to_owned(), (dtype, shape, bytes))]);
            write(&folder, &config, &tensors);
            modules.push("Dense");
            continue;
        }
        tensors.insert(parts.join("."), (dtype, shape, bytes));
    }
    write(directory, config, &tensors);
    let metadata = gguf.metadata();
    let Some(Meta::Array(Array::String(tokens))) = metadata.get("tokenizer.ggml.tokens") else {
        panic!("no tokens");
    };
    let vocabulary: Vec<(&String, f64)> = tokens.iter().map(|token| (token, -2.0)).collect();
    let added = (0..4).map(|id| {
        json!({ "id": id, "content": tokens[id], "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false })
    });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": { "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true },
        "post_processor": { "type": "RobertaProcessing", "sep": [tokens[2], 2], "cls": [tokens[0], 0], "trim_offsets": true, "add_prefix_space": true },
        "decoder": { "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true },
        "model": { "type": "Unigram", "unk_id": 3, "vocab": vocabulary },
    });
    std::fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).expect("written");
    modules.push("Normalize");
    let modules = modules.iter().enumerate();
    let modules = modules.map(|(index, kind)| json!({ "type": format!("sentence_transformers.models.{kind}"), "path": format!("{index}_{kind}") }));
    std::fs::write(directory.join("modules.json"), Value::from_iter(modules).to_string()).expect("written");
    std::fs::create_dir_all(directory.join("1_Pooling")).expect("made");
    let architecture = metadata.string("general.architecture").expect("a name");
    let mode = metadata
        .opt_usize(&format!("{architecture}.pooling_type"))
        .expect("a number");
    if mode == Some(4) {
        // Modules say nothing of a classifier, where there are any.
        std::fs::remove_file(directory.join("modules.json")).expect("it was there");
    }
    let pooling = json!({ "pooling_mode_mean_tokens": mode == Some(1), "pooling_mode_cls_token": mode == Some(2) });
    std::fs::write(directory.join("1_Pooling/config.json"), pooling.to_string()).expect("written");
}

/// A directory gives what the f64 forward gives for its GGUF. A setting with another value is refused by its name.
fn check_directory(file: &str, names: &[(&str, &str)], config: &Value, refused: &[(&str, Value)]) {
    let directory = tempfile::tempdir().expect("a directory");
    to_directory(directory.path(), file, names, config, 0);
    let model = Bert::open(directory.path()).unwrap_or_else(|error| panic!("{file}: {error}"));
    let worst = tiny(file).check(model, cpu(), 64);
    println!("{file:24} {worst:.1e}");
    for (key, value) in refused {
        let mut other = config.clone();
        other[key] = value.clone();
        std::fs::write(directory.path().join("config.json"), other.to_string()).expect("written");
        let error = Bert::open(directory.path()).expect_err(key).to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
}

#[test]
fn a_directory_of_nomic_equals_the_f64_forward() {
    let config = json!({
        "model_type": "nomic_bert", "architectures": ["NomicBertModel"], "n_embd": 32, "n_layer": 2, "n_head": 4, "n_inner": 48, "vocab_size": 56,
        "n_positions": 8192, "max_trained_positions": 64, "type_vocab_size": 2, "layer_norm_epsilon": 1e-5, "activation_function": "swiglu",
        "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": false, "rotary_emb_scale_base": null,
        "rotary_scaling_factor": null, "causal": false, "prenorm": false, "qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false,
        "parallel_block": false, "use_rms_norm": false, "scale_attn_weights": true, "summary_type": "cls_index",
    });
    let refused = [
        ("prenorm", json!(true)),
        ("rotary_emb_fraction", json!(0.5)),
        ("rotary_scaling_factor", json!(2)),
        ("moe_every_n_layers", json!(2)),
    ];
    check_directory("nomic-bert.gguf", &NOMIC, &config, &refused);
    // Of two names nobody knows which counts.
    let mut both = config;
    both["hidden_size"] = json!(16);
    let directory = tempfile::tempdir().expect("a directory");
    to_directory(directory.path(), "nomic-bert.gguf", &NOMIC, &both, 0);
    let error = Bert::open(directory.path()).expect_err("two widths").to_string();
    assert!(error.contains("n_embd") || error.contains("hidden_size"), "{error}");
}

#[test]
fn a_directory_of_jina_equals_the_f64_forward() {
    let config = json!({
        "model_type": "bert", "architectures": ["JinaBertForMaskedLM"], "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 40, "vocab_size": 56, "max_position_embeddings": 64, "type_vocab_size": 2, "layer_norm_eps": 1e-5,
        "hidden_act": "gelu", "position_embedding_type": "alibi", "feed_forward_type": "geglu", "emb_pooler": "mean",
    });
    let refused = [("feed_forward_type", json!("reglu"))];
    check_directory("jina-bert-v2.gguf", &JINA, &config, &refused);
}

/// The maps behind the mean lie in directories of their own.
#[test]
fn a_directory_of_embedding_gemma_equals_the_f64_forward() {
    let config = json!({
        "model_type": "gemma3_text", "architectures": ["Gemma3TextModel"], "hidden_size": 24, "num_hidden_layers": 7, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 16, "intermediate_size": 24, "vocab_size": 57, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "sliding_window": 10, "_sliding_window_pattern": 6, "query_pre_attn_scalar": 16,
        "hidden_activation": "gelu_pytorch_tanh", "use_bidirectional_attention": true, "attn_logit_softcapping": null,
    });
    let refused = [
        ("attn_logit_softcapping", json!(3.0)),
        ("use_bidirectional_attention", json!("some")),
    ];
    check_directory("gemma-embedding.gguf", &GEMMA, &config, &refused);
    for (key, value) in [
        ("bias", json!(true)),
        ("activation_function", json!("torch.nn.modules.activation.Tanh")),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        to_directory(directory.path(), "gemma-embedding.gguf", &GEMMA, &config, 0);
        let mut module = json!({ "bias": false, "activation_function": "torch.nn.modules.linear.Identity" });
        module[key] = value;
        std::fs::write(directory.path().join("2_Dense/config.json"), module.to_string()).expect("written");
        let error = Bert::open(directory.path()).expect_err(key).to_string();
        assert!(error.contains(key), "{error}");
    }
}

/// Positions of RoBERTa begin behind the padding token's, in a directory; its names may have a prefix.
#[test]
fn a_directory_of_xlm_roberta_equals_the_f64_forward() {
    let config = json!({
        "model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"], "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "vocab_size": 57, "max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1,
        "layer_norm_eps": 1e-5, "hidden_act": "gelu", "position_embedding_type": "absolute",
    });
    let directory = tempfile::tempdir().expect("a directory");
    to_directory(directory.path(), "xlm-roberta.gguf", &NAMES, &config, 2);
    let model = Bert::open(directory.path()).expect("opens");
    assert_eq!((model.config().context, model.pooling().mode), (64, PoolingMode::Cls));
    tiny("xlm-roberta.gguf").check(model, cpu(), 64);
    // A wrong place is not a small difference.
    let mut other = config.clone();
    other["pad_token_id"] = json!(0);
    other["max_position_embeddings"] = json!(66);
    std::fs::write(directory.path().join("config.json"), other.to_string()).expect("written");
    assert_eq!(Bert::open(directory.path()).expect("opens").config().context, 65);
}

#[test]
fn a_directory_of_modern_bert_equals_the_f64_forward() {
    let config = json!({
        "model_type": "modernbert", "architectures": ["ModernBertModel"], "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 16, "vocab_size": 57, "max_position_embeddings": 64, "norm_eps": 1e-5, "hidden_activation": "gelu",
        "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "local_attention": 12, "global_attn_every_n_layers": 3,
        "attention_bias": false, "mlp_bias": false, "norm_bias": false, "classifier_pooling": "mean", "pad_token_id": 1,
    });
    let refused = [
        ("hidden_activation", json!("relu")),
        ("norm_bias", json!(true)),
        ("some_factor", json!(2)),
    ];
    check_directory("modern-bert.gguf", &MODERN, &config, &refused);
}

/// The mean of all states counts, or the first, which is what transformers takes where nothing is stated.
#[test]
fn a_directory_of_modern_bert_with_a_classifier_equals_the_f64_forward() {
    let config = json!({
        "model_type": "modernbert", "architectures": ["ModernBertForSequenceClassification"], "hidden_size": 32, "num_hidden_layers": 4,
        "num_attention_heads": 4, "intermediate_size": 16, "vocab_size": 57, "max_position_embeddings": 64, "norm_eps": 1e-5,
        "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "local_attention": 12, "global_attn_every_n_layers": 3,
        "classifier_activation": "gelu", "classifier_bias": false, "classifier_pooling": "mean", "pad_token_id": 1,
    });
    let refused = [
        ("classifier_activation", json!("tanh")),
        ("classifier_bias", json!(true)),
        ("classifier_pooling", json!("late")),
    ];
    check_directory("modern-bert-ranks.gguf", &MODERN, &config, &refused);
    let mut first = config;
    first["classifier_pooling"] = json!("cls");
    check_directory("modern-bert-ranks-first.gguf", &MODERN, &first, &[]);
    first.as_object_mut().expect("an object").remove("classifier_pooling");
    check_directory("modern-bert-ranks-first.gguf", &MODERN, &first, &[]);
    // Modules of a model that ranks do not pool.
    let directory = tempfile::tempdir().expect("a directory");
    to_directory(directory.path(), "modern-bert-ranks-first.gguf", &MODERN, &first, 0);
    let modules = json!([{ "type": "sentence_transformers.base.modules.transformer.Transformer", "path": "" }]);
    std::fs::write(directory.path().join("modules.json"), modules.to_string()).expect("written");
    let model = Bert::open(directory.path()).expect("opens");
    assert_eq!((model.pooling().mode, model.gives_shares()), (PoolingMode::Rank, false));
    tiny("modern-bert-ranks-first.gguf").check(model, cpu(), 64);
}

#[test]
fn a_directory_of_xlm_roberta_with_a_classifier_equals_the_f64_forward() {
    let config = json!({
        "model_type": "xlm-roberta", "architectures": ["XLMRobertaForSequenceClassification"], "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 57, "max_position_embeddings": 66, "type_vocab_size": 1,
        "pad_token_id": 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu", "id2label": { "0": "LABEL_0" },
    });
    let head = [("classifier.dense", "cls"), ("classifier.out_proj", "cls.output")];
    let names: Vec<(&str, &str)> = NAMES.into_iter().chain(head).collect();
    let directory = tempfile::tempdir().expect("a directory");
    to_directory(directory.path(), "xlm-roberta-ranks.gguf", &names, &config, 2);
    let model = Bert::open(directory.path()).expect("opens");
    assert_eq!(model.pooling().mode, PoolingMode::Rank);
    tiny("xlm-roberta-ranks.gguf").check(model, cpu(), 64);
}

#[test]
fn a_directory_of_eurobert_equals_the_f64_forward() {
    let config = json!({
        "model_type": "eurobert", "architectures": ["EuroBertModel"], "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 24, "vocab_size": 57, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
        "hidden_act": "silu", "rope_parameters": { "rope_theta": 250000.0, "rope_type": "default" }, "classifier_pooling": "late",
        "attention_bias": false, "mlp_bias": false, "pretraining_tp": 1, "mask_token_id": 3, "pad_token_id": 1, "tie_word_embeddings": false,
    });
    let refused = [
        ("architectures", json!(["EuroBertForSequenceClassification"])),
        ("attention_bias", json!(true)),
        ("some_factor", json!(2)),
    ];
    let names: Vec<(&str, &str)> = GEMMA.into_iter().filter(|(_, name)| *name != "ffn_norm").collect();
    let names: Vec<(&str, &str)> = names
        .into_iter()
        .chain([("post_attention_layernorm", "ffn_norm")])
        .collect();
    check_directory("eurobert.gguf", &names, &config, &refused);
}

#[test]
fn a_directory_of_jina_3_equals_the_f64_forward() {
    let config = json!({
        "model_type": "jina_embeddings_v3", "architectures": ["JinaEmbeddingsV3Model"], "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 57, "max_position_embeddings": 64, "type_vocab_size": 1,
        "layer_norm_eps": 1e-5, "hidden_act": "gelu", "pad_token_id": 1, "tie_word_embeddings": true,
        "rope_parameters": { "rope_theta": 20000.0, "rope_type": "default" },
    });
    let refused = [
        ("lora_adaptations", json!(["retrieval.query"])),
        ("hidden_act", json!("relu")),
    ];
    let own = [
        ("mixer.Wqkv", "attn_qkv"),
        ("mixer.out_proj", "attn_output"),
        ("mlp.fc1", "ffn_up"),
        ("mlp.fc2", "ffn_down"),
    ];
    check_directory("jina-bert-v3.gguf", &own_and(&own, &NOMIC), &config, &refused);
}

/// As Qwen3-Embedding: its names lack `model.`, and modules say that the last token counts.
#[test]
fn a_directory_of_a_decoder_with_pooling_equals_the_f64_forward() {
    let file = "qwen3.gguf";
    let gguf = Gguf::open(folder().join("tiny").join(file)).expect("a committed model");
    let config = Export::new(gguf).expect("a plain one").config();
    let directory = tempfile::tempdir().expect("a directory");
    to_directory(directory.path(), file, &qwen3(), &config, 0);
    let pooling = json!({ "pooling_mode_lasttoken": true }).to_string();
    std::fs::write(directory.path().join("1_Pooling/config.json"), pooling).expect("written");
    assert!(Model::open(directory.path()).expect("opens").states_pooling());
    let model = Bert::open(directory.path()).expect("opens");
    assert_eq!(model.pooling().mode, PoolingMode::Last);
    tiny(file).check(model, cpu(), 64);

    // Two maps after the pooling: one changes the sign, and one changes nothing.
    let width = Model::open(directory.path()).expect("opens").config().width;
    for (number, factor) in [(2, -1.0_f32), (3, 1.0)] {
        let folder = directory.path().join(format!("{number}_Dense"));
        std::fs::create_dir_all(&folder).expect("made");
        let config = json!({ "bias": false, "activation_function": "torch.nn.modules.linear.Identity" });
        let of_diagonal = |place: usize| if place.is_multiple_of(width + 1) { factor } else { 0.0 };
        let bytes = (0..width * width).flat_map(|place| of_diagonal(place).to_le_bytes());
        let map = (Dtype::F32, vec![width, width], bytes.collect());
        write(&folder, &config, &Tensors::from([("linear.weight".to_owned(), map)]));
    }
    let module = |kind: &str, path: &str| json!({ "type": kind, "path": path });
    let modules = json!([
        module("sentence_transformers.models.Transformer", ""),
        module("sentence_transformers.models.Pooling", "1_Pooling"),
        module("Dense", "2_Dense"),
        module("sentence_transformers.models.Dense", "3_Dense"),
        module("sentence_transformers.models.Normalize", "4_Normalize"),
    ]);
    std::fs::write(directory.path().join("modules.json"), modules.to_string()).expect("written");
    let model = Bert::open(directory.path()).expect("opens");
    tiny(file).negated().check(model, cpu(), 64);

    // No pooling is guessed where one is stated and its file is not there.
    let config = directory.path().join("1_Pooling/config.json");
    std::fs::remove_file(&config).expect("it was there");
    let error = Bert::open(directory.path()).expect_err("no mode").to_string();
    assert!(error.contains(&config.display().to_string()), "{error}");
}

/// Between the texts of a pair RoBERTa has the end of the first, and one more mark.
#[test]
fn a_pair_has_the_marks_of_its_model_between_the_texts() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = json!({
        "model_type": "xlm-roberta", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
        "vocab_size": 57, "max_position_embeddings": 66, "type_vocab_size": 1, "layer_norm_eps": 1e-5,
    });
    to_directory(directory.path(), "xlm-roberta.gguf", &NAMES, &config, 2);
    for model in [
        tiny("xlm-roberta.gguf").open(),
        Bert::open(directory.path()).expect("opens"),
    ] {
        let encoder = model.encoder();
        let [first, second] = ["a b", "c"].map(|text| encoder.plain(text).expect("tokens"));
        let pair = encoder.pair(&first, &second, false);
        let expected = [&[0][..], &first, &[2, 2], &second, &[2]].concat();
        assert_eq!(pair.ids(), expected);
        assert!(Batch::from_texts(&[pair]).types().iter().all(|&kind| kind == 0));
    }
}

/// A decoder is one of embeddings if its file or the caller says how states are pooled.
#[test]
fn a_decoder_without_pooling_makes_text_only() {
    let path = folder().join("tiny/qwen3.gguf");
    assert!(!Model::open(&path).expect("opens").states_pooling());
    let error = Bert::open(&path).expect_err("no pooling");
    assert!(
        matches!(error, ModelError::IsDecoder { architecture: "qwen3" }),
        "{error}"
    );
    let pooling = tiny("qwen3.gguf").open().pooling();
    // Recurrent layers, latent attention, and layers that share keys and values need a cache.
    for file in ["qwen35.gguf", "deepseek2.gguf", "gemma4.gguf"] {
        let error = Bert::open_with(folder().join("tiny").join(file), Some(pooling)).expect_err(file);
        assert!(matches!(error, ModelError::IsDecoder { .. }), "{error}");
    }
}
