//! Memory plans: for the context that is asked for, whatever the file says that the model was made for.

use rocmforge_ggml::{CpuBackend, HipGgmlBackend, KvType};
use rocmforge_gguf::Value;
use rocmforge_models::{Engine, EngineOptions, Limit, MemoryPlan, Model, ModelError};
use rocmforge_testkit::gpu;

use crate::reference::Tiny;
use crate::suite::gguf_keys::changed;

/// A random model that says it was made for another context.
fn made_for(tiny: &Tiny, context: u32) -> Model {
    let gguf = tiny.gguf();
    let name = gguf
        .metadata()
        .string("general.architecture")
        .expect("there")
        .to_owned();
    let key = format!("{name}.context_length");
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
    let row = 4 * model.config().rope.n_dims;
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
    // 7 layers with 16 elements of key and of value in f32, and rotary tables of two bases with 16 floats each: 1024 bytes a token.
    let token = 7 * 2 * 16 * 4 + 2 * 16 * 4;
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
        other => panic!("275 GB: {:?}", other.map(|engine| *engine.memory())),
    }
}
