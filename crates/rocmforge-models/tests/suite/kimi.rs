//! Settings of Kimi Linear's config.json: the object of the published files, and those that transformers writes.

use rocmforge_ggml::CpuBackend;
use rocmforge_models::{Engine, EngineOptions, Model, ModelError};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::checkpoints_of_mixtures::MIXTURES;
use super::conversion::written;
use crate::reference::Tiny;

fn tiny() -> Tiny {
    let mut all = Tiny::all().into_iter();
    all.find(|tiny| tiny.file == "kimi-linear.gguf")
        .expect("a committed model")
}

/// The random model as a directory with other settings; null takes one out.
fn directory(over: &Value) -> TempDir {
    let checkpoint = MIXTURES
        .iter()
        .find(|of| of.model_type == "kimi_linear")
        .expect("a row");
    written(&tiny(), checkpoint, |config| {
        let config = config.as_object_mut().expect("an object");
        for (key, value) in over.as_object().expect("an object") {
            match value {
                Value::Null => config.remove(key),
                value => config.insert(key.clone(), value.clone()),
            };
        }
    })
}

#[test]
fn settings_one_by_one_equal_the_object() {
    let others = [
        json!({ "layer_types": ["linear_attention", "full_attention", "linear_attention"], "linear_head_dim": 10 }),
        json!({
            "linear_attn_config": null, "linear_head_dim": 10, "linear_num_heads": 3, "first_k_dense_replace": null,
            "layer_types": ["linear_attention", "full_attention", "linear_attention"], "mlp_layer_types": ["dense", "sparse", "sparse"],
        }),
        json!({ "max_position_embeddings": null, "model_max_length": 512, "mlp_layer_types": ["dense", "sparse", "sparse"] }),
    ];
    for over in others {
        let directory = directory(&over);
        let model = Model::open(directory.path()).unwrap_or_else(|error| panic!("{over}: {error}"));
        tiny().check_model(&model, CpuBackend::with_threads(2), 7);
    }
}

/// Query, key and value may be one matrix, which is not there either: the tensor that is there is named, with both shapes.
#[test]
fn heads_that_the_weights_do_not_have_are_refused_with_shapes() {
    let object = json!({
        "full_attn_layers": [2], "head_dim": 10, "kda_layers": [1, 3], "num_heads": 4, "short_conv_kernel_size": 4,
    });
    let directory = directory(&json!({ "linear_attn_config": object }));
    let model = Model::open(directory.path()).expect("its settings are supported");
    let error = Engine::new(CpuBackend::with_threads(1), &model, EngineOptions::default());
    let error = error.expect_err("other shapes");
    assert!(
        matches!(&error, ModelError::TensorShape { name, .. } if name == "model.layers.0.self_attn.q_proj.weight"),
        "{error}"
    );
}

#[test]
fn lists_that_are_not_whole_or_disagree_are_refused() {
    let lists = |attention: Value, delta: Value| {
        let mut object = json!({ "head_dim": 10, "num_heads": 3, "short_conv_kernel_size": 4 });
        object["full_attn_layers"] = attention;
        object["kda_layers"] = delta;
        json!({ "linear_attn_config": object })
    };
    let mut unknown = lists(json!([2]), json!([1, 3]));
    unknown["linear_attn_config"]["gate_lower_bound"] = json!(-5.0);
    let refused = [
        (lists(json!([1]), json!([0, 2])), "number 1"),
        (lists(json!([2]), json!([1, 2, 3])), "number 1"),
        (lists(json!([2, 4]), json!([1, 3])), "number 1"),
        (lists(json!([2]), json!([1])), "number 1"),
        (lists(json!([2]), Value::Null), "kda_layers"),
        (unknown, "linear_attn_config.gate_lower_bound"),
        (json!({ "linear_head_dim": 12 }), "linear_attn_config.head_dim = 10"),
        (
            json!({ "layer_types": ["full_attention", "linear_attention", "linear_attention"] }),
            "linear_attn_config.kda_layers = [1, 3]",
        ),
        (
            json!({ "mlp_layer_types": ["sparse", "sparse", "sparse"] }),
            "first_k_dense_replace",
        ),
        (json!({ "mlp_layer_types": ["dense", "moe", "sparse"] }), "moe"),
        (json!({ "mlp_layer_types": ["dense", "sparse"] }), "2 entries"),
        (json!({ "mla_use_nope": false }), "mla_use_nope"),
    ];
    for (over, said) in refused {
        let directory = directory(&over);
        let error = match Model::open(directory.path()) {
            Ok(_) => panic!("{over} is not refused"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(said), "{over}: {error}");
    }
}
