//! Memory plans: for the context that is asked for, whatever the file says that the model was made for.

use rocmforge_ggml::{CpuBackend, DType, HipGgmlBackend, KvType};
use rocmforge_gguf::Value;
use rocmforge_models::{Engine, EngineOptions, Limit, MemoryPlan, Model, ModelError};
use rocmforge_testkit::gpu;

use crate::reference::Tiny;
use crate::suite::directory::Export;
use crate::suite::gguf_keys::{changed, own_key};

/// A random model that says it was made for another context.
fn made_for(tiny: &Tiny, context: u32) -> Model {
    let gguf = tiny.gguf();
    let key = own_key(&gguf, "context_length");
    changed(&gguf, &[], &[(key.as_str(), Value::U32(context))]).expect("a model")
}

fn plan(model: &Model, max_context: Limit) -> MemoryPlan {
    let options = EngineOptions {
        max_context,
        max_sequences: 1,
        kv: KvType::F16,
        ..EngineOptions::default()
    };
    let engine = Engine::new(CpuBackend::with_threads(1), model, options).expect("it fits");
    MemoryPlan {
        available: None,
        ..*engine.memory()
    }
}

#[test]
fn a_plan_depends_on_the_context_that_is_asked_for_alone() {
    for tiny in Tiny::all() {
        // The two lists of Phi-3 are as long as each other.
        let short = plan(&made_for(&tiny, 512), Limit::Tokens(32));
        let long = plan(&made_for(&tiny, 1 << 28), Limit::Tokens(32));
        assert_eq!(short, long, "{}", tiny.file);
        assert!(long.scratch < 2 << 20, "{}: {} bytes", tiny.file, long.scratch);
    }
}

/// By the definition: cosines and sines of a position are as many floats as a head has rotated elements.
#[test]
fn rotary_tables_are_planned_for_each_token_of_the_context() {
    let tiny = &Tiny::all()[0];
    let model = made_for(tiny, 1 << 20);
    let row = 4 * model.config().rope.get(0).n_dims;
    let [small, large] = [1 << 10, 1 << 14].map(|tokens| plan(&model, Limit::Tokens(tokens)).scratch);
    // The table of blocks grows, too: 4 bytes for 16 tokens.
    let tables = row * ((1 << 14) - (1 << 10));
    assert!(
        (tables..tables + tables / 8).contains(&(large - small)),
        "{small}, {large}"
    );
}

/// Whatever a file claims, the largest context is what the card has room for.
#[test]
fn the_largest_context_is_what_fits() {
    let gpu = gpu();
    let gemma = Tiny::all().into_iter().find(|tiny| tiny.file == "gemma3.gguf");
    let model = made_for(&gemma.expect("a committed model"), 1 << 28);
    let options = EngineOptions {
        max_context: Limit::Tokens(1 << 28),
        max_sequences: 1,
        kv: KvType::F32,
        ..EngineOptions::default()
    };
    // One of 7 layers keeps all tokens, with 16 elements of key and of value in f32; rotary tables of two bases with 16 floats each: 256 bytes.
    let token = 2 * 16 * 4 + 2 * 16 * 4;
    let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    match Engine::new(backend, &model, options) {
        Err(ModelError::ContextTooLarge {
            asked,
            needed,
            available,
            largest,
        }) => {
            assert_eq!(asked, 1 << 28);
            // The step takes some, among it 4 bytes for every 16 tokens.
            let all = token << 28;
            assert!((all..all + all / 16).contains(&needed), "{needed}");
            assert!(largest.is_multiple_of(16), "{largest}");
            let rest = available - largest * token;
            assert!(
                largest * token <= available && rest < 1 << 28,
                "{largest} tokens leave {rest} of {available}"
            );
        }
        other => panic!("69 GB: {:?}", other.map(|engine| *engine.memory())),
    }
}

/// By the definition: the layer that sees everything has a row for each token, the six others for their window of 16, a chunk and two
/// blocks; and each has an eighth of a chunk of padding.
#[test]
fn a_layer_with_a_window_costs_its_window() {
    let gemma = Tiny::all().into_iter().find(|tiny| tiny.file == "gemma3.gguf");
    let model = made_for(&gemma.expect("a committed model"), 1 << 20);
    let options = |context, sequences| EngineOptions {
        max_context: Limit::Tokens(context),
        cache_tokens: Limit::Tokens(context),
        max_sequences: sequences,
        kv: KvType::F16,
        chunk: 128,
        ..EngineOptions::default()
    };
    let cache = |context, sequences| {
        let engine = Engine::new(CpuBackend::with_threads(1), &model, options(context, sequences));
        engine.expect("it fits").memory().cache
    };
    // Keys and values of 16 elements in f16.
    let row = 2 * 16 * 2;
    let window = (16 + 128 + 2 * 16) + 16;
    assert_eq!(cache(4096, 1), row * ((4096 + 16) + 6 * window));
    assert_eq!(cache(4096, 3), row * ((4096 + 16) + 6 * (3 * (window - 16) + 16)));
    // No more than all tokens.
    assert_eq!(cache(64, 3), row * 7 * (64 + 16));
    // At a long context it is that of one layer of seven, nearly.
    let all = row * 7 * (65_536 + 16);
    assert!(cache(65_536, 1) * 100 < all * 15, "{} of {all}", cache(65_536, 1));
}

/// A forecast is the engine's own plan, and its kinds of caches are all of the cache.
#[test]
fn a_forecast_is_what_the_engine_takes() {
    let gpu = gpu();
    let options = EngineOptions {
        max_context: Limit::Tokens(96),
        max_sequences: 1,
        ..EngineOptions::default()
    };
    for tiny in Tiny::all() {
        let model = tiny.open();
        let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let forecast = Engine::forecast(&backend, &model, options, None).expect("it fits");
        let engine = Engine::new(backend, &model, options).expect("it fits");
        let without_limit = MemoryPlan {
            available: None,
            ..*engine.memory()
        };
        assert_eq!(forecast.memory, without_limit, "{}", tiny.file);
        let sum = |list: &[(String, usize)]| list.iter().map(|(_, bytes)| bytes).sum::<usize>();
        assert_eq!(sum(&forecast.caches), forecast.memory.cache, "{}", tiny.file);
        let parts = forecast.memory.cache + forecast.memory.weights;
        // Divisors of rotary frequencies belong to several layers, and to no part.
        let found = forecast.parts.iter().map(|part| part.bytes).sum::<usize>();
        assert!(
            (parts - 1024..=parts).contains(&found),
            "{}: {found} of {parts}",
            tiny.file
        );
    }
}

/// A config.json alone gives the plan of the checkpoint, and a type in place of another that of a file in this type.
#[test]
fn an_outline_has_the_plan_of_the_model() {
    let options = EngineOptions {
        max_context: Limit::Tokens(96),
        max_sequences: 1,
        ..EngineOptions::default()
    };
    let forecast =
        |model: &Model| Engine::forecast(&CpuBackend::with_threads(1), model, options, None).expect("it fits");
    let mut compared = 0;
    for tiny in Tiny::all() {
        let model = tiny.open();
        let Some(export) = Export::new(tiny.gguf()) else {
            continue;
        };
        // A config.json does not say that a file has these.
        if tiny.gguf().tensor("blk.0.attn_output.bias").is_some() {
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let config = directory.path().join("config.json");
        std::fs::write(&config, export.config().to_string()).expect("written");
        let outline = Model::outline(&config, DType::F16).expect("an outline");
        let (outline, whole) = (forecast(&outline), forecast(&model.outline_in(DType::F16)));
        assert_eq!(outline.caches, whole.caches, "{}", tiny.file);
        assert_eq!(outline.memory.scratch, whole.memory.scratch, "{}", tiny.file);
        assert_eq!(outline.memory.weights, whole.memory.weights, "{}", tiny.file);
        compared += 1;
    }
    assert!(compared > 4);
    let weights = |file: &str, dtype: Option<DType>| {
        let tiny = Tiny::all()
            .into_iter()
            .find(|tiny| tiny.file == file)
            .expect("a committed model");
        let model = tiny.open();
        forecast(&dtype.map_or_else(|| model.clone(), |dtype| model.outline_in(dtype)))
            .memory
            .weights
    };
    assert_eq!(
        weights("llama-f16.gguf", Some(DType::Bf16)),
        weights("llama-bf16.gguf", None)
    );
    // Rows of 16 elements are no whole blocks.
    let (f16, q8_0) = (
        weights("llama.gguf", Some(DType::F16)),
        weights("llama.gguf", Some(DType::Q8_0)),
    );
    assert!(q8_0 <= f16, "{q8_0} of {f16}");
}

/// Numbers of a config.json that no model has are refused, or planned at once.
#[test]
fn hostile_numbers_of_an_outline_end_at_once() {
    let tiny = &Tiny::all()[0];
    let config = Export::new(tiny.gguf()).expect("plain").config();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.json");
    let start = std::time::Instant::now();
    for key in [
        "num_hidden_layers",
        "hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
        "max_position_embeddings",
    ] {
        for huge in [1_u64 << 20, 1 << 31, 1 << 40, 1 << 62] {
            let mut config = config.clone();
            config[key] = serde_json::json!(huge);
            std::fs::write(&path, config.to_string()).expect("written");
            let forecast = Model::outline(&path, DType::F16).and_then(|model| {
                Engine::forecast(
                    &CpuBackend::with_threads(1),
                    &model,
                    EngineOptions::default(),
                    Some(1 << 34),
                )
            });
            if let Err(error) = forecast {
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
