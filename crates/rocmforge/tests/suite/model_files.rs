//! Model directories, good and hostile: a tiny BERT made here, then broken in every way that a download can be.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rocmforge::ggml::CpuBackend;
use rocmforge::models::bert::{Bert, Embedded, Embedder, EmbedderOptions, PoolingMode};
use rocmforge::models::tokenizer::TokenizerError;
use rocmforge::models::{FileError, ModelError};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};
use tempfile::TempDir;

const HIDDEN: usize = 8;
const INNER: usize = 12;
const VOCAB: usize = 7;

type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": INNER, "vocab_size": VOCAB, "max_position_embeddings": 6, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "hidden_act": "gelu", "position_embedding_type": "absolute",
    })
}

fn tokenizer() -> Value {
    json!({
        "version": "1.0", "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "padding": null, "added_tokens": [],
        "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}, "decoder": null,
        "model": {"type": "WordLevel", "unk_token": "[UNK]",
            "vocab": {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "a": 4, "b": 5, "c": 6}},
    })
}

fn tensors(prefix: &str, dtype: Dtype) -> Tensors {
    let mut all = Tensors::new();
    let mut add = |name: String, shape: &[usize]| {
        let n: usize = shape.iter().product();
        let seed = all.len();
        let values = (0..n).map(|i| ((i * 37 + seed * 11) as f32).sin() * 0.5);
        // Halves are exact in f16, so that both types hold the same model.
        let values = values.map(|v| half::f16::from_f32(v).to_f32());
        let bytes = match dtype {
            Dtype::F16 => values.flat_map(|v| half::f16::from_f32(v).to_le_bytes()).collect(),
            _ => values.flat_map(f32::to_le_bytes).collect(),
        };
        all.insert(format!("{prefix}{name}"), (dtype, shape.to_vec(), bytes));
    };
    add("embeddings.word_embeddings.weight".into(), &[VOCAB, HIDDEN]);
    add("embeddings.position_embeddings.weight".into(), &[6, HIDDEN]);
    add("embeddings.token_type_embeddings.weight".into(), &[2, HIDDEN]);
    add("embeddings.LayerNorm.weight".into(), &[HIDDEN]);
    add("embeddings.LayerNorm.bias".into(), &[HIDDEN]);
    for layer in 0..2 {
        let mut dense = |part: &str, out, input| {
            add(format!("encoder.layer.{layer}.{part}.weight"), &[out, input]);
            add(format!("encoder.layer.{layer}.{part}.bias"), &[out]);
        };
        for part in [
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        ] {
            dense(part, HIDDEN, HIDDEN);
        }
        dense("intermediate.dense", INNER, HIDDEN);
        dense("output.dense", HIDDEN, INNER);
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            add(format!("encoder.layer.{layer}.{part}.weight"), &[HIDDEN]);
            add(format!("encoder.layer.{layer}.{part}.bias"), &[HIDDEN]);
        }
    }
    all
}

fn safetensors_bytes(tensors: &Tensors) -> Vec<u8> {
    let views = tensors.iter().map(|(name, (dtype, shape, bytes))| {
        (
            name.clone(),
            TensorView::new(*dtype, shape.clone(), bytes).expect("sizes agree"),
        )
    });
    safetensors::serialize(views, None).expect("serialised")
}

fn write(directory: &Path, config: &Value, tensors: &Tensors) {
    fs::write(directory.join("config.json"), config.to_string()).expect("written");
    fs::write(directory.join("tokenizer.json"), tokenizer().to_string()).expect("written");
    fs::write(directory.join("model.safetensors"), safetensors_bytes(tensors)).expect("written");
}

fn model_with(config: &Value, tensors: &Tensors) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), config, tensors);
    directory
}

fn good() -> TempDir {
    model_with(&config(), &tensors("", Dtype::F32))
}

fn embeddings(directory: &Path, texts: &[&str]) -> Vec<f32> {
    let model = Bert::open(directory).expect("opens");
    embed(model, texts).expect("encoded").embeddings.data
}

fn embed(model: Bert, texts: &[&str]) -> Result<Embedded, ModelError> {
    let options = EmbedderOptions {
        hidden: true,
        ..EmbedderOptions::default()
    };
    Embedder::new(model, CpuBackend::new(), options)?.embed(texts)
}

fn refused(directory: &Path) -> ModelError {
    Bert::open(directory).expect_err("this directory is broken")
}

fn refused_config(change: impl FnOnce(&mut Value)) -> ModelError {
    let mut config = config();
    change(&mut config);
    refused(model_with(&config, &tensors("", Dtype::F32)).path())
}

#[test]
fn a_tiny_model_runs_and_padding_changes_nothing() {
    let directory = good();
    let together = embeddings(directory.path(), &["a b c", "a", "C b"]);
    for (index, text) in ["a b c", "a", "C b"].iter().enumerate() {
        let alone = embeddings(directory.path(), &[text]);
        let part = &together[index * HIDDEN..(index + 1) * HIDDEN];
        let worst = part.iter().zip(&alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-6, "{worst:e}");
        let norm: f32 = alone.iter().map(|v| v * v).sum();
        assert!((norm - 1.0).abs() < 1e-5, "normalised, as without modules.json: {norm}");
    }
}

#[test]
fn prefixes_and_element_types_make_no_difference() {
    let expected = embeddings(good().path(), &["a c"]);
    let prefixed = model_with(&config(), &tensors("bert.", Dtype::F32));
    assert_eq!(embeddings(prefixed.path(), &["a c"]), expected);
    let halves = model_with(&config(), &tensors("", Dtype::F16));
    assert_eq!(embeddings(halves.path(), &["a c"]), expected);
    let mut old = Tensors::new();
    for (name, tensor) in tensors("", Dtype::F32) {
        old.insert(
            name.replace("LayerNorm.weight", "LayerNorm.gamma")
                .replace("LayerNorm.bias", "LayerNorm.beta"),
            tensor,
        );
    }
    assert_eq!(embeddings(model_with(&config(), &old).path(), &["a c"]), expected);
}

#[test]
fn truncation_is_the_directorys_own() {
    let directory = good();
    let long = "a b c ".repeat(10);
    // tokenizer.json says 4; without sentence_bert_config.json the position table decides.
    let model = Bert::open(directory.path()).expect("opens");
    assert_eq!(
        (model.max_tokens(), model.tokenize(&[&long]).expect("cut").seq()),
        (6, 6)
    );
    fs::write(
        directory.path().join("sentence_bert_config.json"),
        r#"{"max_seq_length": 5}"#,
    )
    .expect("written");
    let model = Bert::open(directory.path()).expect("opens");
    assert_eq!(model.tokenize(&[&long]).expect("cut").ids(), [1, 4, 5, 6, 2]);
    fs::write(
        directory.path().join("sentence_bert_config.json"),
        r#"{"max_seq_length": 1}"#,
    )
    .expect("written");
    assert!(matches!(
        refused(directory.path()),
        ModelError::Setting {
            field: "max_seq_length",
            ..
        }
    ));
    // Another text than the tokenizer is given here.
    fs::write(
        directory.path().join("sentence_bert_config.json"),
        r#"{"max_seq_length": 5, "do_lower_case": true}"#,
    )
    .expect("written");
    assert!(matches!(
        refused(directory.path()),
        ModelError::Unsupported {
            field: "do_lower_case",
            ..
        }
    ));
}

#[test]
fn pooling_is_the_directorys_own() {
    let directory = good();
    fs::create_dir(directory.path().join("1_Pooling")).expect("made");
    let pooling = directory.path().join("1_Pooling/config.json");
    fs::write(&pooling, r#"{"pooling_mode_cls_token": true}"#).expect("written");
    let modules = r#"[{"type": "sentence_transformers.models.Transformer", "path": ""},
        {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]"#;
    fs::write(directory.path().join("modules.json"), modules).expect("written");
    let model = Bert::open(directory.path()).expect("opens");
    assert_eq!(
        (model.pooling().mode, model.pooling().normalize),
        (PoolingMode::Cls, false)
    );
    let run = embed(model, &["a b"]).expect("encoded");
    assert_eq!(
        run.embeddings.row(0),
        &run.hidden[0][2][..HIDDEN],
        "the first token's hidden state"
    );
    fs::write(&pooling, r#"{"pooling_mode_max_tokens": true}"#).expect("written");
    assert!(matches!(
        refused(directory.path()),
        ModelError::Unsupported {
            field: "pooling_mode",
            ..
        }
    ));
    fs::write(
        directory.path().join("modules.json"),
        r#"[{"type": "x.LSTM", "path": "2_LSTM"}]"#,
    )
    .expect("written");
    assert!(refused(directory.path()).to_string().contains("x.LSTM"));
}

#[test]
fn every_truncation_of_the_weights_is_refused() {
    let directory = good();
    let path = directory.path().join("model.safetensors");
    let whole = fs::read(&path).expect("read");
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().expect("8 bytes")) as usize;
    for length in [0, 1, 7, 8, 9, header - 1, header, header + 1, whole.len() - 1] {
        fs::write(&path, &whole[..length]).expect("written");
        let error = refused(directory.path());
        assert!(
            matches!(error, ModelError::Weights { .. } | ModelError::File { .. }),
            "{length}: {error}"
        );
        assert!(error.to_string().contains("model.safetensors"), "{error}");
    }
}

#[test]
fn absurd_headers_are_refused() {
    let directory = good();
    let path = directory.path().join("model.safetensors");
    let whole = fs::read(&path).expect("read");
    for size in [u64::MAX, u64::MAX / 2, 1 << 40, 100_000_001, 0] {
        let mut bytes = whole.clone();
        bytes[..8].copy_from_slice(&size.to_le_bytes());
        fs::write(&path, bytes).expect("written");
        assert!(
            matches!(refused(directory.path()), ModelError::Weights { .. }),
            "header of {size}"
        );
    }
    for header in [
        r#"{"x":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,4]}}"#,
        r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}"#,
        r#"{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}}"#,
        r#"{"x":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}"#,
        "not json",
    ] {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend([0; 4]);
        fs::write(&path, bytes).expect("written");
        assert!(
            matches!(refused(directory.path()), ModelError::Weights { .. }),
            "{header}"
        );
    }
}

#[test]
fn wrong_missing_and_damaged_tensors_are_named() {
    let name = "encoder.layer.1.intermediate.dense.weight";
    let mut missing = tensors("", Dtype::F32);
    missing.remove(name);
    let error = refused(model_with(&config(), &missing).path());
    assert!(
        matches!(&error, ModelError::MissingTensor { name: n } if n == name),
        "{error}"
    );

    let mut turned = tensors("", Dtype::F32);
    turned.get_mut(name).expect("there").1 = vec![HIDDEN, INNER];
    let error = refused(model_with(&config(), &turned).path());
    assert_eq!(
        error.to_string(),
        format!("tensor {name} has shape [8, 12], the configuration asks for [12, 8]")
    );

    let mut integer = tensors("", Dtype::F32);
    integer.get_mut(name).expect("there").0 = Dtype::I32;
    assert!(matches!(
        refused(model_with(&config(), &integer).path()),
        ModelError::TensorDType { .. }
    ));

    let mut nan = tensors("", Dtype::F32);
    nan.get_mut(name).expect("there").2[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
    let directory = model_with(&config(), &nan);
    let model = Bert::open(directory.path()).expect("values are looked at when they are loaded");
    let error = embed(model, &["a"]).expect_err("NaN");
    assert!(
        matches!(&error, ModelError::NotFinite { name: n, index: 2, .. } if n == name),
        "{error}"
    );
}

#[test]
fn hostile_settings_are_refused() {
    for (field, value) in [
        ("hidden_size", json!(0)),
        ("hidden_size", json!(u64::MAX)),
        ("num_attention_heads", json!(0)),
        ("num_attention_heads", json!(3)),
        ("num_hidden_layers", json!(1_000_000_000)),
        ("vocab_size", json!(1u64 << 60)),
        ("layer_norm_eps", json!(-1.0)),
    ] {
        let error = refused_config(|c| c[field] = value.clone());
        assert!(
            matches!(&error, ModelError::Setting { field: f, .. } if *f == field),
            "{field} = {value}: {error}"
        );
    }
    for (field, value) in [
        ("model_type", "mpnet"),
        ("hidden_act", "swish"),
        ("position_embedding_type", "relative_key"),
    ] {
        let error = refused_config(|c| c[field] = json!(value));
        assert!(
            error.to_string().contains(value) && error.to_string().contains(field),
            "{error}"
        );
    }
    for (field, value) in [
        ("hidden_size", json!("8")),
        ("hidden_size", json!(-8)),
        ("hidden_size", Value::Null),
        ("layer_norm_eps", json!(1e300)),
    ] {
        assert!(matches!(
            refused_config(|c| c[field] = value),
            ModelError::File(FileError::Json { .. })
        ));
    }
    let directory = good();
    // Python's json writes NaN as a bare word.
    let text = config().to_string().replace("1e-12", "NaN");
    fs::write(directory.path().join("config.json"), text).expect("written");
    assert!(matches!(
        refused(directory.path()),
        ModelError::File(FileError::Json { .. })
    ));
    // More layers than there are weights for.
    let error = refused_config(|c| c["num_hidden_layers"] = json!(3));
    assert!(matches!(error, ModelError::MissingTensor { .. }), "{error}");
}

#[test]
fn missing_and_foreign_files_are_named() {
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        let directory = good();
        fs::remove_file(directory.path().join(file)).expect("removed");
        let error = refused(directory.path());
        assert!(
            matches!(
                error,
                ModelError::File(_) | ModelError::NoModel { .. } | ModelError::Vocabulary(TokenizerError::File(_))
            ) && error.to_string().contains(file),
            "{error}"
        );
    }
    let directory = good();
    fs::write(directory.path().join("tokenizer.json"), "{}").expect("written");
    assert!(matches!(refused(directory.path()), ModelError::Vocabulary(_)));
    // A tokenizer of another model.
    let directory = good();
    fs::write(
        directory.path().join("tokenizer.json"),
        tokenizer().to_string().replace("\"c\":6", "\"c\":600"),
    )
    .expect("written");
    let model = Bert::open(directory.path()).expect("opens");
    let error = model.tokenize(&["a c"]).expect_err("id 600 of 7");
    assert!(
        matches!(error, ModelError::TokenOutOfRange { id: 600, vocab: VOCAB }),
        "{error}"
    );
    let none: [&str; 0] = [];
    assert!(matches!(model.tokenize(&none), Err(ModelError::NoTexts)));
}
