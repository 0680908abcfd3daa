//! Experts: layers with and without them in one model, and files whose experts contradict each other.

use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::Value as Key;
use rocmforge_models::{Engine, EngineOptions, Limit, Model, ModelError};
use safetensors::Dtype;
use serde_json::{Value, json};

use super::directory::{Export, Tensors, write};
use super::gguf_keys::{changed, tiny};

const FILE: &str = "qwen3moe.gguf";
/// Experts of a layer in this file.
const COUNT: usize = 6;

fn engine(model: &Model) -> Result<Engine<CpuBackend>, ModelError> {
    let options = EngineOptions {
        max_context: Limit::Tokens(64),
        ..EngineOptions::default()
    };
    Engine::new(CpuBackend::with_threads(2), model, options)
}

fn opened(config: &Value, tensors: &Tensors) -> Result<Engine<CpuBackend>, ModelError> {
    let directory = tempfile::tempdir().expect("a directory");
    write(directory.path(), config, tensors);
    engine(&Model::open(directory.path())?)
}

fn export() -> Export {
    Export::new(tiny(FILE).gguf()).expect("plain floats")
}

fn with(mut config: Value, key: &str, value: Value) -> Value {
    config[key] = value;
    config
}

fn name(layer: usize, expert: usize, kind: &str) -> String {
    format!("model.layers.{layer}.mlp.experts.{expert}.{kind}_proj.weight")
}

const KINDS: [&str; 3] = ["gate", "up", "down"];

/// Experts that are all the same compute what one network does, whichever are chosen.
#[test]
fn a_layer_of_equal_experts_equals_a_layer_without() {
    let (export, ids) = (export(), tiny(FILE).ids);
    for layer in [0, 1] {
        let mut equal = export.tensors();
        let mut dense = export.tensors();
        dense
            .remove(&format!("model.layers.{layer}.mlp.gate.weight"))
            .expect("a router");
        for kind in KINDS {
            let first = equal[&name(layer, 0, kind)].clone();
            for expert in 0..COUNT {
                equal.insert(name(layer, expert, kind), first.clone());
                dense.remove(&name(layer, expert, kind)).expect("an expert");
            }
            dense.insert(format!("model.layers.{layer}.mlp.{kind}_proj.weight"), first);
        }
        // The width of a layer without experts is another one in this file.
        let config = with(export.config(), "intermediate_size", json!(40));
        let logits = |config: &Value, tensors: &Tensors| {
            let mut engine = opened(config, tensors).expect("a model");
            let sequence = engine.add_sequence(&ids).expect("room");
            engine.prefill(sequence, &ids).expect("runs")
        };
        let expected = logits(&config, &equal);
        let mut settings = vec![with(config.clone(), "mlp_only_layers", json!([layer]))];
        if layer == 0 {
            settings.push(with(config.clone(), "decoder_sparse_step", json!(2)));
        }
        for config in settings {
            let found = logits(&config, &dense);
            let pairs = found.iter().zip(&expected);
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-4, "layer {layer}: {worst}");
        }
    }
}

/// Experts that a directory lacks are named as it would name them.
#[test]
fn an_expert_that_is_missing_is_named() {
    let export = export();
    for expert in [0, 3] {
        let mut tensors = export.tensors();
        let missing = name(1, expert, "gate");
        tensors.remove(&missing).expect("an expert");
        match opened(&export.config(), &tensors) {
            Err(ModelError::MissingTensor { name }) => assert_eq!(name, missing),
            other => panic!("{expert}: {other:?}"),
        }
    }
}

/// A directory has each expert in a tensor of its own: what the CPU computes with is a copy. A GGUF has them together.
#[test]
fn copies_of_experts_are_counted_in_the_plan() {
    let export = export();
    let tensors = export.tensors();
    let of_experts = tensors.iter().filter(|(name, _)| name.contains(".experts."));
    let bytes: usize = of_experts.map(|(_, (.., bytes))| bytes.len()).sum();
    let plan = *opened(&export.config(), &tensors).expect("a model").memory();
    assert_eq!((plan.copied, bytes > 0), (bytes, true));
    let of_gguf = *engine(&tiny(FILE).open()).expect("a model").memory();
    assert_eq!((of_gguf.copied, of_gguf.weights), (0, plan.weights));
}

#[test]
fn settings_of_experts_that_make_no_sense_are_refused_by_their_key() {
    let gguf = tiny(FILE).gguf();
    for (key, value, rule) in [
        ("expert_used_count", 7_u32, "1 to the number of experts"),
        ("expert_used_count", 0, "1 to the number of experts"),
        ("expert_count", 1 << 20, "1 to 65536"),
        ("expert_feed_forward_length", 1 << 29, "1 to 2^28"),
        ("expert_shared_count", 1, "a shared expert"),
        ("expert_group_count", 4, "divide the number of experts"),
        ("expert_gating_func", 2, "mixture of experts"),
    ] {
        let key = format!("qwen3moe.{key}");
        let error = changed(&gguf, &[], &[(&key, Key::U32(value))])
            .expect_err("refused")
            .to_string();
        let short = key.trim_start_matches("qwen3moe.");
        assert!(
            error.contains(short) && error.contains(rule),
            "{key} = {value}: {error}"
        );
    }
    let export = export();
    for (key, value) in [
        ("num_experts_per_tok", json!(7)),
        ("num_experts_per_tok", json!(0)),
        ("moe_intermediate_size", json!(0)),
        ("num_experts", json!(1 << 20)),
        ("num_experts", json!(-1)),
        ("mlp_only_layers", json!("all")),
        ("use_sliding_window", json!(true)),
        ("shared_expert_intermediate_size", json!(64)),
    ] {
        let config = with(export.config(), key, value.clone());
        let error = opened(&config, &export.tensors()).expect_err("refused").to_string();
        assert!(error.contains(key), "{key} = {value}: {error}");
    }
}

#[test]
fn tensors_of_experts_that_do_not_fit_are_refused_by_name() {
    let export = export();
    let config = export.config();
    let last = name(1, COUNT - 1, "down");
    let refusal = |change: &dyn Fn(&mut Tensors)| {
        let mut tensors = export.tensors();
        change(&mut tensors);
        opened(&config, &tensors).expect_err("refused")
    };
    let missing = refusal(&|tensors| drop(tensors.remove(&last)));
    assert!(
        matches!(&missing, ModelError::MissingTensor { name } if *name == last),
        "{missing}"
    );
    let shape = refusal(&|tensors| tensors.get_mut(&last).expect("there").1.reverse());
    assert!(
        matches!(&shape, ModelError::TensorShape { name, .. } if *name == last),
        "{shape}"
    );
    let halves = refusal(&|tensors| {
        let tensor = tensors.get_mut(&last).expect("there");
        tensor.2.truncate(tensor.2.len() / 2);
        tensor.0 = Dtype::F16;
    });
    assert!(
        matches!(&halves, ModelError::TensorDType { name, .. } if *name == last),
        "{halves}"
    );
    let more = name(1, COUNT, "down");
    let unused = refusal(&|tensors| {
        let last = tensors[&last].clone();
        tensors.insert(more.clone(), last);
    });
    assert!(
        matches!(&unused, ModelError::UnusedTensor { name, .. } if *name == more),
        "{unused}"
    );
}
