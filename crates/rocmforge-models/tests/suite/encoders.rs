//! Encoders of all architectures against the f64 forward, and what their files state.

use std::path::Path;

use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::Gguf;
use rocmforge_models::arch::Architecture;
use rocmforge_models::bert::{Batch, Bert, PoolingMode};
use rocmforge_models::{Model, ModelError};
use safetensors::Dtype;
use serde_json::{Value, json};

use super::bert::NAMES;
use super::directory::{Tensors, write};
use crate::reference::encoders::TinyEncoder;
use crate::reference::folder;

fn cpu() -> CpuBackend {
    CpuBackend::with_threads(2)
}

fn tiny(file: &str) -> TinyEncoder {
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
    for name in ["bert", "nomic-bert", "jina-bert-v2", "modern-bert", "gemma-embedding"] {
        assert!(Architecture::of_gguf(name).expect("a row").is_encoder(), "{name}");
        let found = all.iter().any(|tiny| tiny.open().architecture().name() == name);
        assert!(found, "{name} has no file");
    }
}

/// Names of ModernBERT's checkpoints, and of GGUF, in the order in which they are replaced.
const MODERN: [(&str, &str); 10] = [
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
];

/// A committed GGUF as a directory of this config.json, with names in the order of the table; tables of positions have `before` rows more.
fn to_directory(directory: &Path, file: &str, names: &[(&str, &str)], config: &Value, before: usize) {
    let gguf = Gguf::open(folder().join("tiny").join(file)).expect("a committed model");
    let mut tensors = Tensors::new();
    for tensor in gguf.tensors() {
        let parts: Vec<String> = (tensor.name.split('.'))
            .map(|part| match names.iter().find(|(_, of_gguf)| *of_gguf == part) {
                Some((own, _)) => (*own).to_owned(),
                None => part.to_owned(),
            })
            .collect();
        let mut shape: Vec<usize> = tensor.dims.iter().rev().copied().collect();
        let mut bytes = gguf.data(tensor).to_vec();
        if tensor.name.starts_with("position_embd") {
            let row = bytes.len() / shape[0];
            shape[0] += before;
            bytes.splice(0..0, vec![0; before * row]);
        }
        let dtype = match tensor.ty {
            rocmforge_gguf::TensorType::F16 => Dtype::F16,
            _ => Dtype::F32,
        };
        tensors.insert(parts.join("."), (dtype, shape, bytes));
    }
    write(directory, config, &tensors);
    let metadata = gguf.metadata();
    let Some(rocmforge_gguf::Value::Array(rocmforge_gguf::Array::String(tokens))) =
        metadata.get("tokenizer.ggml.tokens")
    else {
        panic!("no tokens");
    };
    let vocabulary: Vec<(&String, f64)> = tokens.iter().map(|token| (token, -2.0)).collect();
    let added = (0..4).map(|id| {
        json!({ "id": id, "content": tokens[id], "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false })
    });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(), "normalizer": null,
        "pre_tokenizer": { "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true },
        "post_processor": { "type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": true },
        "decoder": { "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true },
        "model": { "type": "Unigram", "unk_id": 3, "vocab": vocabulary },
    });
    std::fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).expect("written");
    std::fs::create_dir_all(directory.join("1_Pooling")).expect("made");
    let pooling = json!({ "pooling_mode_cls_token": true }).to_string();
    std::fs::write(directory.join("1_Pooling/config.json"), pooling).expect("written");
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
        "intermediate_size": 24, "vocab_size": 57, "max_position_embeddings": 64, "norm_eps": 1e-5, "hidden_activation": "gelu",
        "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "local_attention": 12, "global_attn_every_n_layers": 3,
        "attention_bias": false, "mlp_bias": false, "norm_bias": false, "classifier_pooling": "mean", "pad_token_id": 1,
    });
    let directory = tempfile::tempdir().expect("a directory");
    to_directory(directory.path(), "modern-bert.gguf", &MODERN, &config, 0);
    let model = Bert::open(directory.path()).expect("opens");
    tiny("modern-bert.gguf").check(model, cpu(), 64);
    for (key, value) in [
        ("hidden_activation", json!("relu")),
        ("norm_bias", json!(true)),
        ("some_factor", json!(2)),
    ] {
        let mut other = config.clone();
        other[key] = value;
        std::fs::write(directory.path().join("config.json"), other.to_string()).expect("written");
        let error = Bert::open(directory.path()).expect_err(key).to_string();
        assert!(error.contains(key), "{key}: {error}");
    }
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
    for file in ["qwen35.gguf", "deepseek2.gguf"] {
        let error = Bert::open_with(folder().join("tiny").join(file), Some(pooling)).expect_err(file);
        assert!(matches!(error, ModelError::IsDecoder { .. }), "{error}");
    }
}
