//! Memory that opening and planning take: by what is in the files, not by what their numbers claim.

use std::path::{Path, PathBuf};

use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Gguf, Value, Writer};
use rocmforge_models::chat::ChatTemplate;
use rocmforge_models::config::DecoderConfig;
use rocmforge_models::sampling::{Dry, Sampler, SamplerConfig};
use rocmforge_models::tokenizer::{Encode, Tokenizer};
use rocmforge_models::{Engine, EngineOptions, FileError, Limit, Model, ModelError};
use rocmforge_test_support::allocator::{Counting, asked, left};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;

fn write(directory: &Path, config: &serde_json::Value) -> PathBuf {
    let path = directory.join("config.json");
    std::fs::write(&path, config.to_string()).expect("written");
    path
}

#[test]
fn numbers_of_a_config_json_take_no_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let rules = [
        serde_json::json!(null),
        serde_json::json!({ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0 }),
        serde_json::json!({ "rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0] }),
    ];
    let numbers = [
        "num_hidden_layers",
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
        "max_position_embeddings",
        "type_vocab_size",
    ];
    for model_type in ["llama", "mistral", "qwen2", "qwen3", "gemma3_text", "phi3", "bert"] {
        for rule in &rules {
            for huge in [1_u64 << 28, 1 << 40, u64::MAX] {
                for number in numbers {
                    let mut config = serde_json::json!({ "model_type": model_type, "rms_norm_eps": 1e-5 });
                    for name in numbers {
                        config[name] = serde_json::json!(8);
                    }
                    if model_type == "bert" {
                        config.as_object_mut().expect("an object").remove("rms_norm_eps");
                    }
                    config[number] = serde_json::json!(huge);
                    config["rope_scaling"] = rule.clone();
                    let path = write(directory.path(), &config);
                    let (size, _) = asked(|| DecoderConfig::from_config_json(&path).map(|_| ()));
                    assert!(size < MIB, "{model_type}, {number} = {huge}: {size} bytes");
                }
            }
        }
    }
}

/// Values that nothing reads are not made into trees: these would take fifty times the file's 4 MiB.
#[test]
fn large_values_take_what_their_text_takes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.json");
    let base = r#""model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1,
                  "num_key_value_heads": 1, "vocab_size": 8, "max_position_embeddings": 8, "rms_norm_eps": 1e-5"#;
    let large = vec!["0"; 2 * MIB].join(",");
    for key in [
        "id2label",
        "hidden_act",
        "quantization_config",
        "unknown",
        "layer_types",
    ] {
        let text = format!(r#"{{{base}, "{key}": [{large}]}}"#);
        std::fs::write(&path, &text).expect("written");
        let (size, result) = asked(|| DecoderConfig::from_config_json(&path));
        assert_eq!(result.is_ok(), key == "id2label", "{key}");
        // The file, as it grows while it is read, and each value.
        assert!(size < 6 * text.len(), "{key}: {size} bytes for {}", text.len());
    }
    std::fs::write(&path, vec![b' '; 9 * MIB]).expect("written");
    let (size, result) = asked(|| DecoderConfig::from_config_json(&path));
    assert!(
        matches!(result, Err(ModelError::File(FileError::TooLarge { .. }))),
        "{result:?}"
    );
    assert!(size < MIB, "{size} bytes");
}

/// The same of special tokens, which two readers ask for.
#[test]
fn special_tokens_take_what_their_text_takes() {
    let directory = tempfile::tempdir().expect("a directory");
    let tokenizer = directory.path().join("tokenizer.json");
    let model = serde_json::json!({ "type": "BPE", "vocab": { "a": 0 }, "merges": [] });
    let file = serde_json::json!({ "model": model, "added_tokens": [] });
    std::fs::write(&tokenizer, file.to_string()).expect("written");
    let text = format!(
        r#"{{"bos_token": [{}], "eos_token": "a"}}"#,
        vec!["0"; 2 * MIB].join(",")
    );
    std::fs::write(directory.path().join("tokenizer_config.json"), &text).expect("written");
    let (size, read) = asked(|| Tokenizer::from_file(&tokenizer));
    assert_eq!(read.expect("a tokenizer").eos(), Some(0));
    assert!(size < 6 * text.len(), "{size} bytes for {}", text.len());
    let (size, _) = asked(|| ChatTemplate::from_directory(directory.path()));
    assert!(size < 6 * text.len(), "{size} bytes for {}", text.len());
}

/// A server loads and unloads models for weeks, and its threads live as long as it.
#[test]
fn a_tokenizer_that_is_dropped_leaves_nothing_on_the_threads_that_used_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tokenizer.json");
    let words = |tokenizer: &Tokenizer| {
        for number in 0..200 {
            let text = format!("{number:b}").replace('0', "a").replace('1', "b");
            let ids = tokenizer.encode(&text, Encode::default()).expect("ids");
            assert!(!ids.is_empty());
        }
    };
    // Files of 2019 do not name the type.
    for kind in [Some("BPE"), None] {
        let mut model = serde_json::json!({ "vocab": { "a": 0, "b": 1, "ab": 2 }, "merges": ["a b"] });
        if let Some(kind) = kind {
            model["type"] = kind.into();
        }
        let file = serde_json::json!({ "model": model, "added_tokens": [] });
        std::fs::write(&path, file.to_string()).expect("written");
        let cycle = || words(&Tokenizer::from_file(&path).expect("a tokenizer"));
        // What threads keep once for all.
        cycle();
        assert_eq!(left(|| (0..10).for_each(|_| cycle())), 0, "{kind:?}");
    }
    let gguf = tiny("qwen2.gguf");
    let model = Model::from_gguf(gguf).expect("a model");
    let cycle = || words(&model.tokenizer().expect("a tokenizer"));
    cycle();
    assert_eq!(left(|| (0..10).for_each(|_| cycle())), 0);
}

fn tiny(file: &str) -> Gguf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/reference/tiny")
        .join(file);
    Gguf::open(path).expect("a committed model")
}

/// The file with one number changed.
fn changed(gguf: &Gguf, changed: &str, value: u32) -> Gguf {
    let mut writer = Writer::new();
    for (key, own) in gguf.metadata().iter() {
        let value = if key == changed { Value::U32(value) } else { own.clone() };
        writer.metadata(key, value).expect("it was read");
    }
    for tensor in gguf.tensors() {
        let data = gguf.data(tensor);
        writer
            .tensor(tensor.name.as_str(), &tensor.dims, tensor.ty, data)
            .expect("it was read");
    }
    Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written")
}

fn engine(model: &Model) -> Result<(), ModelError> {
    let options = EngineOptions {
        max_context: Limit::Tokens(32),
        ..EngineOptions::default()
    };
    Engine::new(CpuBackend::with_threads(1), model, options).map(|_| ())
}

/// Each number of a GGUF's metadata, made huge: refused, or planned for what is asked for.
#[test]
fn numbers_of_gguf_metadata_take_no_memory() {
    for file in ["llama.gguf", "gemma3.gguf", "phi3.gguf"] {
        let gguf = tiny(file);
        let (own, result) = asked(|| Model::from_gguf(tiny(file)).and_then(|model| engine(&model)));
        result.expect("as it is");
        let numbers = gguf
            .metadata()
            .iter()
            .filter(|(_, value)| matches!(value, Value::U32(_)));
        for (key, _) in numbers {
            for huge in [1 << 28, u32::MAX] {
                let hostile = changed(&gguf, key, huge);
                let (size, _) = asked(|| Model::from_gguf(hostile).and_then(|model| engine(&model)));
                assert!(size < own + MIB, "{file}: {key} = {huge}: {size} bytes, {own} as it is");
            }
        }
    }
}

#[test]
fn a_draw_takes_no_memory_for_breakers() {
    let vocabulary = 100_000;
    let dry = Dry {
        multiplier: 0.1,
        breakers: (1..vocabulary).collect(),
        ..Dry::default()
    };
    let config = SamplerConfig {
        dry,
        ..SamplerConfig::default()
    };
    let mut sampler = Sampler::new(config, 0).expect("parameters");
    sampler.accept(0);
    let logits = vec![0.0; vocabulary as usize];
    let (size, drawn) = asked(|| sampler.sample(&logits));
    drawn.expect("a token");
    // A candidate is an id and a logit. A set of the breakers would take more than all candidates.
    assert!(size < 8 * vocabulary as usize + MIB / 4, "{size} bytes");
}
