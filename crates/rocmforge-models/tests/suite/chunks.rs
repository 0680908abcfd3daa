//! Layers whose tokens see a chunk of their sequence, and queries that grow with the position: caches, settings and what is refused.

use rocmforge_ggml::{CpuBackend, HipGgmlBackend};
use rocmforge_gguf::Value as Key;
use rocmforge_models::bert::{Bert, Embedder, EmbedderOptions, Pooling, PoolingMode};
use rocmforge_models::config::{QueryGrowth, WindowKind};
use rocmforge_models::{Engine, EngineOptions, Limit, Model, ModelError};
use rocmforge_testkit::gpu;
use serde_json::{Value, json};

use crate::suite::caches::{as_directory, check_windows};
use crate::suite::directory::Export;
use crate::suite::gguf_keys::{changed, tiny};

/// Llama 4 with chunks of 16, and settings over those of its config.json.
fn chunked(settings: Value) -> Model {
    let Value::Object(mut over) = json!({ "attention_chunk_size": 16, "attn_scale": 0.5, "floor_scale": 7 }) else {
        unreachable!("an object")
    };
    over.extend(settings.as_object().expect("an object").clone());
    as_directory(tiny("llama4.gguf").gguf(), over)
}

#[test]
fn far_beyond_a_chunk_logits_are_those_of_one_step() {
    check_windows(CpuBackend::with_threads(2), &chunked(json!({})), 2, 200);
    // Without a layer that sees all.
    let all = chunked(json!({ "no_rope_layers": [1, 1, 1, 1] }));
    check_windows(CpuBackend::with_threads(2), &all, 1, 104);
    let gpu = gpu();
    let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    check_windows(backend, &chunked(json!({})), 2, 60);
}

/// A chunk begins with a block of the cache, unless the context is not longer than one chunk.
#[test]
fn chunks_that_are_no_whole_blocks_are_refused_with_figures() {
    let model = chunked(json!({ "attention_chunk_size": 24 }));
    let engine = |block_size, context| {
        let options = EngineOptions {
            max_context: Limit::Tokens(context),
            block_size,
            ..EngineOptions::default()
        };
        Engine::new(CpuBackend::with_threads(1), &model, options)
    };
    for block_size in [16, 5, 48] {
        let error = engine(block_size, 64).expect_err("no whole blocks");
        let said = error.to_string();
        assert!(
            matches!(error, ModelError::Chunk { keys: 24, block_size: size } if size == block_size),
            "{said}"
        );
        assert!(said.contains("24") && said.contains(&block_size.to_string()), "{said}");
    }
    for (block_size, context) in [(8, 64), (12, 64), (24, 64), (16, 24), (5, 20)] {
        engine(block_size, context).expect("whole blocks, or one chunk");
    }
}

/// What a GGUF of Llama 4 states of windows: llama.cpp takes 8,192, unless it is 0.
#[test]
fn in_a_gguf_chunks_are_those_of_llama_cpp() {
    let (gguf, window) = (tiny("llama4.gguf").gguf(), "llama4.attention.sliding_window");
    let growth = QueryGrowth {
        scale: 0.1,
        length: 8192,
        offset: 1,
    };
    for more in [&[][..], &[(window, Key::U32(64))]] {
        let model = changed(&gguf, &[], more).expect("a model");
        let config = model.config();
        assert_eq!(config.window_kind, WindowKind::Chunk);
        for layer in 0..4 {
            let is_last = layer == 3;
            assert_eq!(*config.window.get(layer), (!is_last).then_some(8192));
            assert_eq!(*config.rotated.get(layer), !is_last);
            assert_eq!(*config.growth.get(layer), is_last.then_some(growth));
        }
        assert!(config.query_norm);
    }
    let model = changed(&gguf, &[], &[(window, Key::U32(0))]).expect("a model");
    let config = model.config();
    for layer in 0..4 {
        assert_eq!(*config.window.get(layer), None);
        assert!(*config.rotated.get(layer));
        assert_eq!(*config.growth.get(layer), None);
    }
    assert!(!tiny("llama4-unnormed.gguf").open().config().query_norm);
}

/// At the borders of the steps the factor is the next one, and before the first it is 1.
#[test]
fn queries_grow_at_the_borders_of_steps() {
    let growth = QueryGrowth {
        scale: 0.1,
        length: 8192,
        offset: 1,
    };
    let factor = |steps: f64| (1.0 + f64::from(0.1f32) * (1.0 + steps).ln()) as f32;
    for (position, steps) in [(0, 0.0), (8190, 0.0), (8191, 1.0), (16_382, 1.0), (16_383, 2.0)] {
        assert_eq!(growth.of(position), factor(steps), "{position}");
    }
    assert_eq!(growth.of(usize::MAX), factor((usize::MAX / 8192) as f64));
}

#[test]
fn what_is_missing_of_a_growth_is_refused_by_name() {
    let deepseek = tiny("deepseek2-growth.gguf").gguf();
    let length = "deepseek2.attention.temperature_length";
    for (without, more) in [(&[length][..], &[][..]), (&[], &[(length, Key::U32(0))])] {
        let error = changed(&deepseek, without, more).expect_err("no length").to_string();
        assert!(error.contains(length), "{error}");
    }
    let scale = "deepseek2.attention.temperature_scale";
    for bad in [f32::NAN, f32::INFINITY, -1.0] {
        let error = changed(&deepseek, &[], &[(scale, Key::F32(bad))]).expect_err("no scale");
        assert!(error.to_string().contains(scale), "{error}");
    }
    // Without a scale nothing grows.
    let model = changed(&deepseek, &[], &[(scale, Key::F32(0.0))]).expect("a model");
    assert_eq!(*model.config().growth.get(0), None);
    let model = changed(&deepseek, &[scale], &[]).expect("a model");
    assert_eq!(*model.config().growth.get(0), None);

    let mistral = tiny("mistral3.gguf").gguf();
    let context = "mistral3.rope.scaling.original_context_length";
    let error = changed(&mistral, &[], &[(context, Key::U32(0))]).expect_err("no context");
    assert!(error.to_string().contains(context), "{error}");
    // llama.cpp takes the context of the model where that of the training is not stated.
    let model = changed(&mistral, &[context], &[]).expect("a model");
    assert_eq!(model.config().growth.get(0).expect("it grows").length, 512);

    let export = Export::new(mistral).expect("a directory");
    let open = |change: &dyn Fn(&mut Value)| {
        let mut config = export.config();
        change(&mut config);
        let directory = tempfile::tempdir().expect("a directory");
        export.write(directory.path(), &config);
        Model::open(directory.path())
    };
    open(&|_| {}).expect("a model");
    for (change, said) in [
        (
            &(|config: &mut Value| config["rope_scaling"]["llama_4_scaling_beta"] = Value::Null) as &dyn Fn(&mut Value),
            "rope_scaling.llama_4_scaling_beta",
        ),
        (
            &|config| config["rope_scaling"]["llama_4_scaling_beta"] = json!("much"),
            "rope_scaling.llama_4_scaling_beta",
        ),
        (
            &|config| config["rope_scaling"]["original_max_position_embeddings"] = json!(0),
            "original_max_position_embeddings",
        ),
        (
            &|config| config["rope_scaling"] = Value::Null,
            "rope_parameters.llama_4_scaling_beta",
        ),
    ] {
        let error = open(change).expect_err(said).to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
}

/// Settings of Llama 4's config.json that say nothing, or contradict each other.
#[test]
fn settings_of_chunks_that_make_no_sense_are_refused() {
    let export = Export::new(tiny("llama4.gguf").gguf()).expect("a directory");
    let open = |over: &Value| {
        let mut config = export.config();
        let object = config.as_object_mut().expect("an object");
        object.extend(over.as_object().expect("an object").clone());
        let directory = tempfile::tempdir().expect("a directory");
        export.write(directory.path(), &config);
        Model::open(directory.path())
    };
    for (over, said) in [
        (json!({ "attention_chunk_size": 0 }), "sliding_window"),
        (json!({ "no_rope_layers": [1, 0] }), "no_rope_layers"),
        (json!({ "no_rope_layers": [1, 0, 2, 1] }), "no_rope_layers"),
        (json!({ "no_rope_layer_interval": 0 }), "no_rope_layer_interval"),
        (json!({ "floor_scale": 0 }), "floor_scale"),
        (json!({ "attn_scale": -0.1 }), "attn_scale"),
        (json!({ "attn_temperature_tuning": "on" }), "attn_temperature_tuning"),
        (
            json!({ "layer_types": ["sliding_attention", "full_attention", "full_attention", "full_attention"] }),
            "layer_types",
        ),
        (
            json!({ "layer_types": vec!["chunked_attention"; 4], "attention_chunk_size": null }),
            "sliding_window",
        ),
        (json!({ "attention_bias": true }), "attention_bias"),
        (json!({ "hidden_act": "gelu" }), "hidden_act"),
    ] {
        let error = open(&over).expect_err(said).to_string();
        assert!(error.contains(said), "{over}: {error}");
    }
    // No chunks at all; the last layer grows still.
    let model = open(&json!({ "attention_chunk_size": null })).expect("a model");
    let config = model.config();
    assert_eq!((*config.window.get(0), *config.rotated.get(3)), (None, false));
    assert!(config.growth.get(3).is_some() && config.growth.get(0).is_none());
}

/// Where no layer sees more than a chunk, the last token of a text gives what it gives in a text of that chunk alone.
#[test]
fn in_a_whole_text_a_token_sees_its_chunk() {
    let tiny = tiny("llama4.gguf");
    let export = Export::new(tiny.gguf()).expect("a directory");
    let directory = tempfile::tempdir().expect("a directory");
    let mut config = export.config();
    config["attention_chunk_size"] = json!(12);
    config["no_rope_layers"] = json!([1, 1, 1, 1]);
    export.write(directory.path(), &config);
    let vocabulary: serde_json::Map<String, Value> = (0..320).map(|id| (format!("t{id}"), json!(id))).collect();
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [], "pre_tokenizer": null,
        "model": { "type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": "t0" },
    });
    std::fs::write(directory.path().join("tokenizer.json"), tokenizer.to_string()).expect("written");
    let pooling = Pooling {
        mode: PoolingMode::Last,
        normalize: true,
    };
    let embed = |backend, texts: &[&[u32]]| {
        let model = Bert::open_with(directory.path(), Some(pooling)).expect("opens");
        let rows = texts
            .iter()
            .map(|text| model.encoder().whole(text.to_vec()).expect("its ids"));
        let rows: Vec<_> = rows.collect();
        let mut embedder = Embedder::new(model, backend, EmbedderOptions::default()).expect("it loads");
        let found = embedder.embed_ids(&rows).expect("runs").embeddings;
        (0..texts.len()).map(|row| found.row(row).to_vec()).collect::<Vec<_>>()
    };
    let ids = &tiny.ids;
    // The last token is the 36th, the 37th and the 40th: at the end of a chunk, alone in one, and in its middle.
    let found = embed(
        CpuBackend::with_threads(2),
        &[
            &ids[..36],
            &ids[24..36],
            &ids[..37],
            &ids[36..37],
            ids,
            &ids[36..],
            &ids[35..],
        ],
    );
    let apart = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    for pair in found[..6].chunks(2) {
        let difference = apart(&pair[0], &pair[1]);
        assert!(difference < 1e-5, "{difference}");
    }
    // One token more is another text.
    assert!(apart(&found[4], &found[6]) > 1e-3);
}
