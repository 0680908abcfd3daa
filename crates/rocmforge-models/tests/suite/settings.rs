//! Settings of config.json that change numbers, in both spellings, against the f64 forward.

use serde_json::{Map, Value, json};

use crate::reference::Tiny;
use crate::suite::directory::Export;
use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::{Gguf, TensorType, Writer};
use rocmforge_models::{Model, ModelError};

/// The model with settings over its own; null takes a setting out.
fn merged(mut config: Value, over: &Map<String, Value>) -> Value {
    let object = config.as_object_mut().expect("an object");
    for (key, value) in over {
        match value {
            Value::Null => object.remove(key),
            value => object.insert(key.clone(), value.clone()),
        };
    }
    config
}

/// The same settings as transformers 5 writes them.
fn of_transformers_5(mut config: Value) -> Value {
    let object = config.as_object_mut().expect("an object");
    let mut take = |key: &str| object.remove(key).filter(|value| !value.is_null());
    let (theta, part) = (take("rope_theta"), take("partial_rotary_factor"));
    let (scaling, local) = (take("rope_scaling"), take("rope_local_base_freq"));
    let mut rope = scaling.unwrap_or_else(|| json!({}));
    let rule = rope.as_object_mut().expect("an object");
    let kind = rule.remove("type").or(rule.remove("rope_type"));
    rule.insert("rope_type".to_owned(), kind.unwrap_or(json!("default")));
    rule.extend(theta.map(|theta| ("rope_theta".to_owned(), theta)));
    rule.extend(part.map(|part| ("partial_rotary_factor".to_owned(), part)));
    if ["gemma3_text", "gemma3n_text"].contains(&object["model_type"].as_str().unwrap_or_default()) {
        let mut sliding = json!({ "rope_type": "default" });
        if let Some(base) = local {
            sliding["rope_theta"] = base;
        }
        rope = json!({ "full_attention": rope, "sliding_attention": sliding });
    }
    object.insert("rope_parameters".to_owned(), rope);
    config
}

fn check(tiny: &Tiny, export: &Export, config: &Value) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    export.write(directory.path(), config);
    let model = Model::open(directory.path()).expect("a model");
    tiny.check_model(&model, CpuBackend::with_threads(2), 7)
}

#[test]
fn settings_in_both_spellings_equal_the_f64_forward() {
    let mut count = 0;
    for tiny in Tiny::all().into_iter().chain(Tiny::with_settings()) {
        let export = Export::new(tiny.gguf()).filter(|export| export.gives_the_same() || !tiny.config.is_empty());
        let Some(export) = export else { continue };
        let config = merged(export.config(), &tiny.config);
        let worst = [
            check(&tiny, &export, &config),
            check(&tiny, &export, &of_transformers_5(config)),
        ];
        println!(
            "{:24} {:?} {}",
            tiny.file,
            tiny.config,
            worst.map(|d| format!("{d:.1e}")).join(" ")
        );
        count += 1;
    }
    assert!(count >= 24, "{count} models");
}

/// The model with another output matrix in the file.
fn with_another_output(gguf: &Gguf) -> Gguf {
    let mut writer = Writer::new();
    for (key, value) in gguf.metadata().iter() {
        writer.metadata(key, value.clone()).expect("it was read");
    }
    for tensor in gguf.tensors() {
        let data = gguf.data(tensor);
        writer
            .tensor(tensor.name.as_str(), &tensor.dims, tensor.ty, data)
            .expect("it was read");
    }
    let embedding = gguf.tensor("token_embd.weight").expect("there");
    assert_eq!(embedding.ty, TensorType::F32);
    let ones: Vec<u8> = std::iter::repeat_n(1.0f32.to_le_bytes(), embedding.elements())
        .flatten()
        .collect();
    writer
        .tensor("output.weight", &embedding.dims, embedding.ty, ones)
        .expect("it fits");
    Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written")
}

/// Tied models give the same numbers whatever `lm_head.weight` holds. Gemma is tied where the file does not say so, the others are not.
#[test]
fn a_tied_model_takes_the_embedding_beside_another_matrix() {
    for tiny in Tiny::all() {
        if !["qwen2.gguf", "qwen3.gguf", "gemma3.gguf"].contains(&tiny.file.as_str()) {
            continue;
        }
        let export = Export::new(with_another_output(&tiny.gguf())).expect("plain tensors");
        let mut config = export.config();
        if tiny.file != "gemma3.gguf" {
            config["tie_word_embeddings"] = json!(true);
        }
        check(&tiny, &export, &config);
    }
}

#[test]
fn a_model_that_is_not_tied_needs_its_output_matrix() {
    let tiny = Tiny::all()
        .into_iter()
        .find(|tiny| tiny.file == "qwen2.gguf")
        .expect("there");
    let export = Export::new(tiny.gguf()).expect("plain tensors");
    for setting in [json!(false), Value::Null] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut config = export.config();
        config["tie_word_embeddings"] = setting;
        export.write(directory.path(), &config);
        let model = Model::open(directory.path()).expect("its settings are whole");
        let error = rocmforge_models::Engine::new(CpuBackend::with_threads(1), &model, Default::default());
        let error = error.expect_err("no matrix");
        assert!(
            matches!(&error, ModelError::MissingTensor { name } if name == "lm_head.weight"),
            "{error}"
        );
    }
}
