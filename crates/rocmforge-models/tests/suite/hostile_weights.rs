//! Weights and settings that are hostile or damaged: a typed error before anything is computed.

use std::path::Path;

use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Gguf, Value, Writer};
use rocmforge_models::config::DecoderConfig;
use rocmforge_models::tokenizer::{Tokenizer, TokenizerError};
use rocmforge_models::weights::{SafetensorsWeights, WeightSource};
use rocmforge_models::{Engine, EngineOptions, FileError, Limit, Model, ModelError};
use serde_json::json;

/// A committed model with other metadata and, of one tensor, other values.
fn changed(file: &str, key: &str, value: Option<Value>, tensor: &str, values: &[f32]) -> Gguf {
    let gguf = Gguf::open(crate::reference::folder().join("tiny").join(file)).expect("a committed model");
    let mut writer = Writer::new();
    for (own_key, own) in gguf.metadata().iter().filter(|(own, _)| *own != key) {
        writer.metadata(own_key, own.clone()).expect("it was read");
    }
    if let Some(value) = value {
        writer.metadata(key, value).expect("it fits");
    }
    for own in gguf.tensors() {
        let data = match own.name == tensor {
            true => bytemuck::cast_slice(values).to_vec(),
            false => gguf.data(own).to_vec(),
        };
        writer
            .tensor(own.name.as_str(), &own.dims, own.ty, data)
            .expect("it was read");
    }
    Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written")
}

fn engine(gguf: Gguf) -> Result<(), ModelError> {
    let options = EngineOptions {
        max_context: Limit::Tokens(32),
        ..EngineOptions::default()
    };
    Engine::new(CpuBackend::with_threads(1), &Model::from_gguf(gguf)?, options).map(|_| ())
}

/// Each makes every logit NaN, with no word.
#[test]
fn divisors_of_rotary_frequencies_are_finite_and_not_0() {
    for bad in [0.0, -0.0, f32::NAN, f32::INFINITY] {
        let gguf = changed(
            "llama-gqa-freqs.gguf",
            "",
            None,
            "rope_freqs.weight",
            &[1.0, 2.0, bad, 1.0, 1.0, 1.0, 1.0, 1.0],
        );
        match engine(gguf) {
            Err(ModelError::RopeFactor { name, index: 2, .. }) => assert_eq!(name, "rope_freqs.weight"),
            other => panic!("{bad}: {other:?}"),
        }
    }
    engine(changed(
        "llama-gqa-freqs.gguf",
        "",
        None,
        "rope_freqs.weight",
        &[-1.0; 8],
    ))
    .expect("they are");
}

#[test]
fn rotary_embeddings_turn_something_and_slower_with_each_pair() {
    for (key, value) in [
        ("llama.rope.dimension_count", Value::U32(0)),
        ("llama.rope.freq_base", Value::F32(1e-44)),
        ("llama.rope.freq_base", Value::F32(0.5)),
    ] {
        let error = Model::from_gguf(changed("llama.gguf", key, Some(value), "", &[])).expect_err(key);
        assert!(matches!(error, ModelError::Hyperparameter { .. }), "{key}: {error}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.json");
    // A part below 0 has been the same as 0, and 0 turned nothing.
    for part in [-0.5, 0.0, 0.1] {
        let config = json!({
            "model_type": "llama", "num_hidden_layers": 1, "hidden_size": 32, "intermediate_size": 8, "num_attention_heads": 4,
            "vocab_size": 8, "max_position_embeddings": 8, "rms_norm_eps": 1e-5,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": part},
        });
        std::fs::write(&path, config.to_string()).expect("written");
        let error = DecoderConfig::from_config_json(&path).expect_err("refused");
        assert!(error.to_string().contains("partial_rotary_factor"), "{part}: {error}");
    }
}

/// A safetensors file with this header and so many bytes of zeros.
fn write(path: &Path, header: &str, data: usize) {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    std::fs::write(path, bytes).expect("written");
}

fn weights(folder: &Path) -> ModelError {
    let opened = SafetensorsWeights::open(folder);
    opened.map(|_| ()).expect_err("refused")
}

#[test]
fn files_of_a_model_have_each_tensor_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = |name: &str| json!({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).to_string();
    let index = json!({"weight_map": {"a": "1", "b": "2"}}).to_string();
    std::fs::write(folder.path().join("model.safetensors.index.json"), index).expect("written");
    write(&folder.path().join("1"), &one("a"), 4);
    write(&folder.path().join("2"), &one("b"), 4);
    let found = SafetensorsWeights::open(folder.path()).expect("each once");
    assert_eq!(found.names(), ["a", "b"]);
    write(&folder.path().join("2"), &one("a"), 4);
    let error = weights(folder.path());
    assert!(
        matches!(&error, ModelError::TensorTwice { name, path } if name == "a" && path.ends_with("2")),
        "{error}"
    );
}

#[test]
fn an_index_names_few_files_that_can_be_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let index = |map: serde_json::Value| {
        let text = json!({ "weight_map": map }).to_string();
        std::fs::write(folder.path().join("model.safetensors.index.json"), text).expect("written");
        weights(folder.path())
    };
    let many: serde_json::Map<_, _> = (0..5000).map(|n| (format!("t{n}"), json!(n.to_string()))).collect();
    let error = index(many.into());
    assert!(error.to_string().contains("more than 4096 files"), "{error}");
    for name in ["x\u{1b}[2J", "x\n", "x\0", "..", "", "a/b"] {
        let error = index(json!({ "a": name }));
        assert!(
            matches!(
                error,
                ModelError::Setting {
                    field: "weight_map",
                    ..
                }
            ),
            "{error}"
        );
        assert!(!error.to_string().contains(['\u{1b}', '\n', '\0']), "{error}");
    }
}

#[test]
fn a_header_is_small_and_its_names_can_be_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("model.safetensors");
    let empty = |name: &str| json!({name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}).to_string();
    write(&path, &format!("{}{}", empty("a"), " ".repeat(16 << 20)), 0);
    let error = weights(folder.path());
    assert!(
        matches!(
            error,
            ModelError::Setting {
                field: "length of the header",
                ..
            }
        ),
        "{error}"
    );
    for name in ["\u{1b}[2J".to_owned(), "e".repeat(1025)] {
        write(&path, &empty(&name), 0);
        let error = weights(folder.path());
        assert!(matches!(error, ModelError::Setting { field: "name", .. }), "{error}");
        let error = error.to_string();
        assert!(error.len() < 400 && !error.contains('\u{1b}'), "{error}");
    }
    // A length beyond the end of the file is a file that is cut.
    std::fs::write(&path, [0xff; 100]).expect("written");
    assert!(matches!(weights(folder.path()), ModelError::Weights { .. }));
}

/// Two megabytes of which each token begins and ends with all before it give two million merges of a kilobyte.
#[test]
fn merges_that_follow_from_scores_are_bounded() {
    let tokens: Vec<String> = (0..2000).map(|n| "a".repeat(n + 1)).collect();
    let count = tokens.len();
    let mut writer = Writer::new();
    writer.metadata("tokenizer.ggml.model", "llama").expect("fits");
    writer.metadata("tokenizer.ggml.tokens", tokens).expect("fits");
    writer
        .metadata("tokenizer.ggml.scores", vec![0.0_f32; count])
        .expect("fits");
    writer
        .metadata("tokenizer.ggml.token_type", vec![1_i32; count])
        .expect("fits");
    let gguf = Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written");
    let error = Tokenizer::from_gguf(gguf.metadata()).expect_err("too many");
    assert!(matches!(error, TokenizerError::TooManyMerges { .. }), "{error}");
}

#[test]
fn names_of_a_file_are_shown_in_short() {
    let hostile = || Some(Value::String(format!("\u{1b}[2J{}", "A".repeat(1_000_000))));
    let error =
        Model::from_gguf(changed("llama.gguf", "general.architecture", hostile(), "", &[])).expect_err("unknown");
    let mut errors = vec![error.to_string()];
    for key in ["tokenizer.ggml.model", "tokenizer.ggml.pre"] {
        let model = Model::from_gguf(changed("llama.gguf", key, hostile(), "", &[])).expect("its settings are whole");
        errors.push(model.tokenizer().expect_err(key).to_string());
    }
    for error in errors {
        assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error:.200}");
    }
}

#[test]
fn ids_that_end_a_text_are_few() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tokenizer.json");
    let model = json!({"type": "BPE", "vocab": {"a": 0}, "merges": []});
    std::fs::write(&path, json!({"model": model, "added_tokens": []}).to_string()).expect("written");
    let generation = folder.path().join("generation_config.json");
    std::fs::write(&generation, json!({"eos_token_id": vec![0; 40_000]}).to_string()).expect("written");
    let error = Tokenizer::from_file(&path).expect_err("too many");
    assert!(
        matches!(&error, TokenizerError::File(FileError::Json { path, .. }) if *path == generation),
        "{error}"
    );
    std::fs::write(&generation, json!({"eos_token_id": [0, -1, 7]}).to_string()).expect("written");
    assert!(
        Tokenizer::from_file(&path)
            .expect("a tokenizer")
            .is_end_of_generation(0)
    );
}
