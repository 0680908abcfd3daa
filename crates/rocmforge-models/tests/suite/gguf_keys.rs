//! GGUF metadata that change numbers: scaling in every spelling, keys that nothing knows, features that are not computed.

use crate::reference::Tiny;
use rocmforge_ggml::{CpuBackend, RopeScaling};
use rocmforge_gguf::{Gguf, Value, Writer};
use rocmforge_models::config::{PerLayer, SparsityConfig};
use rocmforge_models::{Engine, EngineOptions, Model, ModelError};

pub(super) fn tiny(file: &str) -> Tiny {
    let mut all = Tiny::all().into_iter();
    all.find(|tiny| tiny.file == file).expect("a committed model")
}

/// A key of the file's architecture.
pub(super) fn own_key(gguf: &Gguf, key: &str) -> String {
    let name = gguf.metadata().string("general.architecture").expect("there");
    format!("{name}.{key}")
}

/// The file without some metadata, and with more.
pub(super) fn changed(gguf: &Gguf, without: &[&str], more: &[(&str, Value)]) -> Result<Model, ModelError> {
    let mut writer = Writer::new();
    let kept = |key: &str| !without.contains(&key) && more.iter().all(|(new, _)| *new != key);
    for (key, value) in gguf.metadata().iter().filter(|(key, _)| kept(key)) {
        writer.metadata(key, value.clone()).expect("it was read");
    }
    for (key, value) in more {
        writer.metadata(*key, value.clone()).expect("a new key");
    }
    for tensor in gguf.tensors() {
        let data = gguf.data(tensor);
        writer
            .tensor(tensor.name.as_str(), &tensor.dims, tensor.ty, data)
            .expect("it was read");
    }
    let bytes = writer.to_bytes().expect("memory");
    Model::from_gguf(Gguf::from_bytes(bytes).expect("what was written"))
}

/// As llama.cpp reads them: a factor needs no type, and has an early name, which counts where the later one is absent.
#[test]
fn linear_scaling_in_every_spelling_equals_the_f64_forward() {
    let tiny = tiny("gemma3-linear.gguf");
    let gguf = tiny.gguf();
    let (factor, kind, early) = (
        "gemma3.rope.scaling.factor",
        "gemma3.rope.scaling.type",
        "gemma3.rope.scale_linear",
    );
    let models = [
        changed(&gguf, &[], &[]),
        changed(&gguf, &[kind], &[]),
        changed(&gguf, &[kind, factor], &[(early, Value::F32(8.0))]),
        changed(&gguf, &[factor], &[(early, Value::F32(8.0))]),
        changed(&gguf, &[kind], &[(early, Value::F32(3.0))]),
    ];
    for model in models {
        tiny.check_model(&model.expect("a model"), CpuBackend::with_threads(2), 7);
    }
    // Layer 5 has no window.
    let scaling = |more: &[(&str, Value)]| changed(&gguf, &[], more).expect("a model").config().rope.get(5).scaling;
    assert_eq!(scaling(&[(factor, Value::F32(0.0))]), RopeScaling::None);
    assert_eq!(scaling(&[(kind, Value::from("none"))]), RopeScaling::None);
    // llama.cpp scales by a factor beside divisors of Phi-3's kind, too.
    assert_eq!(
        scaling(&[(kind, Value::from("longrope"))]),
        RopeScaling::Linear { factor: 8.0 }
    );
    for bad in [f32::NAN, -4.0, f32::INFINITY] {
        let error = changed(&gguf, &[], &[(factor, Value::F32(bad))]).expect_err("no factor");
        assert!(error.to_string().contains("rope.scaling.factor"), "{error}");
    }
}

/// The settings of YaRN, against their definition: `1 + 0.1 ln 4` is 1.138629436.
#[test]
fn magnitudes_of_yarn() {
    let gguf = tiny("qwen2.gguf").gguf();
    let magnitude = |more: &[(&'static str, f32)]| {
        let mut keys = vec![
            ("qwen2.rope.scaling.type", Value::from("yarn")),
            ("qwen2.rope.scaling.factor", Value::F32(4.0)),
        ];
        keys.extend(more.iter().map(|&(key, value)| (key, Value::F32(value))));
        changed(&gguf, &[], &keys)
            .expect("a model")
            .config()
            .rope
            .get(0)
            .magnitude
    };
    let near = |found: f32, expected: f32| assert!((found - expected).abs() < 1e-6, "{found}, {expected}");
    let plain = 1.138_629_4;
    near(magnitude(&[]), plain);
    near(magnitude(&[("qwen2.rope.scaling.attn_factor", 0.5)]), 0.5 * plain);
    near(magnitude(&[("qwen2.rope.scaling.yarn_attn_factor", 0.5)]), plain);
    near(magnitude(&[("qwen2.rope.scaling.yarn_log_multiplier", 1.0)]), 1.0);
    near(
        magnitude(&[("qwen2.rope.scaling.yarn_log_multiplier", 0.5)]),
        plain / 1.069_314_7,
    );
    near(magnitude(&[("qwen2.rope.scaling.yarn_ext_factor", 0.0)]), 1.0);
}

#[test]
fn an_unknown_key_of_the_architecture_is_refused_by_name() {
    for tiny in Tiny::all() {
        let gguf = tiny.gguf();
        let key = own_key(&gguf, "attention.some_factor");
        let error = changed(&gguf, &[], &[(&key, Value::F32(2.0))]).expect_err("unknown");
        assert!(
            matches!(&error, ModelError::UnknownKey { key: found, value, .. } if *found == key && value == "2"),
            "{error}"
        );
        // Under other names it says nothing about what is computed.
        let others = [
            ("general.anything", Value::U32(3)),
            ("quantize.imatrix.file", Value::from("x")),
            ("other.attention.some_factor", Value::F32(2.0)),
        ];
        assert!(changed(&gguf, &[], &others).is_ok(), "{}", tiny.file);
    }
}

#[test]
fn keys_that_are_off_are_read_and_features_are_refused_by_name() {
    let gguf = tiny("llama.gguf").gguf();
    let off = [
        ("llama.expert_count", Value::U32(0)),
        ("llama.expert_used_count", Value::U32(0)),
        ("llama.logit_scale", Value::F32(0.0)),
        ("llama.expert_weights_norm", Value::Bool(false)),
        ("llama.attention.sliding_window", Value::U32(0)),
        ("llama.attention.recurrent_layers", Value::from(vec![0_u32, 0])),
        ("llama.attention.causal", Value::Bool(true)),
        ("llama.attention.scale", Value::F32(0.0)),
        ("llama.rope.scaling.yarn_ext_factor", Value::F32(-1.0)),
        ("llama.rope.scaling.yarn_beta_fast", Value::F32(32.0)),
        ("llama.vocab_size", Value::U32(320)),
    ];
    assert!(changed(&gguf, &[], &off).is_ok());
    for (key, value, said) in [
        (
            "llama.expert_shared_count",
            Value::U32(1),
            "a shared expert (expert_shared_count = 1)",
        ),
        ("llama.logit_scale", Value::F32(8.0), "logit_scale"),
        ("llama.residual_scale", Value::F32(0.5), "residual_scale"),
        (
            "llama.attention.sliding_window",
            Value::U32(64),
            "attention.sliding_window",
        ),
        (
            "llama.attention.recurrent_layers",
            Value::from(vec![0_u32, 1]),
            "attention.recurrent_layers",
        ),
        (
            "llama.rope.dimension_sections",
            Value::from(vec![1_i32, 1, 2, 0]),
            "rope.dimension_sections",
        ),
    ] {
        let error = changed(&gguf, &[], &[(key, value)]).expect_err(key);
        assert!(matches!(error, ModelError::Feature { .. }), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
    for (key, value) in [
        ("llama.attention.causal", Value::Bool(false)),
        ("llama.rope.scaling.yarn_ext_factor", Value::F32(1.0)),
        ("llama.rope.scaling.yarn_attn_factor", Value::F32(0.5)),
        ("general.type", Value::from("other")),
    ] {
        let error = changed(&gguf, &[], &[(key, value)]).expect_err(key);
        assert!(
            matches!(&error, ModelError::UnsupportedKey { key: found, .. } if found == key),
            "{error}"
        );
    }
}

/// A mixture of experts is named before a tensor is looked for.
#[test]
fn a_mixture_of_experts_is_refused_by_its_name() {
    let mut writer = Writer::new();
    writer.metadata("general.architecture", "qwen2").expect("a string");
    writer.metadata("qwen2.expert_count", 8_u32).expect("a number");
    let gguf = Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written");
    let error = Model::from_gguf(gguf).expect_err("experts").to_string();
    assert!(error.starts_with("mixture of experts (expert_count = 8)"), "{error}");
}

#[test]
fn layers_with_a_window_may_have_lengths_of_their_own() {
    let tiny = tiny("gemma3.gguf");
    let gguf = tiny.gguf();
    let more = |key, value: u32| changed(&gguf, &[], &[(key, Value::U32(value))]);
    assert!(more("gemma3.attention.key_length_swa", 16).is_ok());
    let model = more("gemma3.attention.value_length_swa", 8).expect("its settings are whole");
    assert_eq!([4, 5, 6].map(|layer| model.config().value_dim.of(layer)), [8, 16, 8]);
    let model = more("gemma3.rope.dimension_count_swa", 8).expect("a model");
    assert_eq!([4, 5, 6].map(|layer| model.config().rope.get(layer).n_dims), [8, 16, 8]);
    for (key, value, rule) in [
        ("gemma3.attention.key_length_swa", 0, "key_length_swa = 0"),
        ("gemma3.rope.dimension_count_swa", 18, "at most the head's length"),
        ("gemma3.rope.dimension_count_swa", 7, "even"),
    ] {
        let error = more(key, value).expect_err(key);
        assert!(error.to_string().contains(rule), "{key} = {value}: {error}");
    }
    // llama.cpp saves which layers have the window as a list of 0 and 1.
    let pattern = "gemma3.attention.sliding_window_pattern";
    let list = Value::from(vec![1_u32, 1, 1, 1, 1, 0, 1]);
    let model = changed(&gguf, &[], &[(pattern, list)]).expect("a model");
    tiny.check_model(&model, CpuBackend::with_threads(2), 7);
    let error = changed(&gguf, &[], &[(pattern, Value::from(vec![1_u32, 2, 0, 0, 0, 0, 0]))]).expect_err("2");
    assert!(error.to_string().contains(pattern), "{error}");
    let error = changed(&gguf, &[], &[(pattern, Value::from(vec![1_u32; 8]))]).expect_err("7 layers");
    assert!(error.to_string().contains("a list of 8 entries"), "{error}");
    // 0 is no window.
    let none = more("gemma3.attention.sliding_window", 0).expect("a model");
    assert_eq!(none.config().window, PerLayer::all(None));
}

/// The file has one list of divisors.
#[test]
fn layers_with_divisors_rotate_equally_many_elements() {
    let gguf = tiny("llama-gqa-freqs.gguf").gguf();
    let lengths = Value::from(vec![16_u32, 8]);
    let model = changed(&gguf, &[], &[("llama.rope.dimension_count", lengths)]).expect("its settings are whole");
    let error = Engine::new(CpuBackend::with_threads(1), &model, EngineOptions::default()).expect_err("one list");
    assert!(error.to_string().contains("16 and 8"), "{error}");
}

/// Heads and widths of each layer: as many as there are layers, each as it must be, and with the length of a head beside them.
#[test]
fn lists_for_layers_are_whole_and_each_entry_counts() {
    let gguf = tiny("llama-layers.gguf").gguf();
    let list = |values: &[u32]| Value::from(values.to_vec());
    for (key, values, rule) in [
        ("attention.head_count", &[4, 2][..], "one for each layer"),
        ("attention.head_count", &[4, 2, 0], "1 to 65536"),
        ("attention.head_count_kv", &[2, 2, 4], "divide the number of heads"),
        ("attention.head_count_kv", &[2, 0, 1], "divide the number of heads"),
        ("attention.key_length", &[8, 0, 8], "1 to 640"),
        ("attention.key_length", &[8, 8], "one for each layer"),
        ("rope.dimension_count", &[8, 6, 10], "at most the head's length"),
        ("rope.dimension_count", &[8, 7, 8], "even"),
        ("rope.dimension_count", &[8, 8], "one for each layer"),
        ("feed_forward_length", &[48, 24, 0], "1 to 2^28"),
        ("feed_forward_length", &[], "one for each layer"),
    ] {
        let key = format!("llama.{key}");
        let error = changed(&gguf, &[], &[(&key, list(values))])
            .expect_err("refused")
            .to_string();
        assert!(error.contains(rule), "{key} = {values:?}: {error}");
    }
    let error = changed(
        &gguf,
        &["llama.attention.key_length", "llama.attention.value_length"],
        &[],
    );
    let error = error.expect_err("no length").to_string();
    assert!(error.contains("llama.attention.key_length"), "{error}");
}

/// The last layers read what earlier ones keep: of the same window, heads and lengths.
#[test]
fn layers_that_share_keys_and_values_find_some_of_their_kind() {
    let gguf = tiny("gemma4.gguf").gguf();
    let changed = |key: &str, value| changed(&gguf, &[], &[(&format!("gemma4.{key}"), value)]);
    let sharing = |layers: u32| changed("attention.shared_kv_layers", Value::U32(layers));
    let sources = |model: &Model| -> Vec<Option<usize>> {
        let sources = &model.config().cache_of;
        (0..6).map(|layer| *sources.get(layer)).collect()
    };
    let model = changed("attention.causal", Value::Bool(true)).expect("a model");
    assert_eq!(sources(&model), [None, None, None, None, Some(2), Some(3)]);
    assert_eq!(sources(&sharing(0).expect("a model")), [None; 6]);
    // Three layers with a window are left, and none without.
    for layers in [3, 6, 7, u32::MAX] {
        let error = sharing(layers).expect_err("no layer without a window").to_string();
        assert!(error.contains("gemma4.attention.shared_kv_layers"), "{layers}: {error}");
    }
    let heads = Value::from(vec![1_u32, 1, 1, 2, 1, 1]);
    let error = changed("attention.head_count_kv", heads)
        .expect_err("other heads")
        .to_string();
    assert!(error.contains("the same window, heads and lengths"), "{error}");
}

/// What llama.cpp has fixed stands for absent keys; a file that states something else is heard.
#[test]
fn a_model_of_several_streams_states_them_or_has_the_usual_ones() {
    let gguf = tiny("gemma3n.gguf").gguf();
    let without = |key: &str| changed(&gguf, &[&format!("gemma3n.{key}")], &[]).expect("a model");
    let with = |key: &str, value| changed(&gguf, &[], &[(&format!("gemma3n.{key}"), value)]);
    let count = |model: &Model| model.config().streams.map(|streams| streams.count);
    assert_eq!(count(&without("altup.active_idx")), Some(3));
    assert_eq!(count(&without("altup.num_inputs")), Some(4));
    let input = without("embedding_length_per_layer_input").config().layer_input;
    assert_eq!(input.map(|input| (input.width, input.tokens)), Some((256, 320)));
    assert_eq!(*without("attention.shared_kv_layers").config().cache_of.get(5), None);
    assert_eq!(without("final_logit_softcapping").config().logit_softcap, Some(30.0));
    let unbound = with("final_logit_softcapping", Value::F32(0.0)).expect("a model");
    assert_eq!(unbound.config().logit_softcap, None);
    let deviations = |model: &Model| -> Vec<Option<f32>> {
        let of = |layer| {
            model
                .config()
                .sparsity
                .get(layer)
                .map(|rule: SparsityConfig| rule.deviations)
        };
        (0..6).map(of).collect()
    };
    let stated = with("attention.causal", Value::Bool(true)).expect("a model");
    let expected = [Some(1.25), Some(0.5), None, Some(0.75), None, Some(-0.375)];
    assert_eq!(deviations(&stated), expected);
    let usual = deviations(&without("activation_sparsity_scale"));
    let near = |deviations: &Option<f32>| deviations.is_some_and(|found| (found - 1.644_853_6).abs() < 1e-6);
    assert!(usual.iter().all(near), "{usual:?}");
    let scales = |values: &[f32]| Value::from(values.to_vec());
    for (key, value) in [
        ("altup.active_idx", Value::U32(1)),
        ("altup.num_inputs", Value::U32(1)),
        ("altup.num_inputs", Value::U32(u32::MAX)),
        ("activation_sparsity_scale", scales(&[1.0; 5])),
        ("activation_sparsity_scale", scales(&[f32::NAN; 6])),
        ("activation_sparsity_scale", scales(&[f32::INFINITY; 6])),
        ("activation_sparsity_scale", Value::F32(1.0)),
        ("embedding_length_per_layer_input", Value::U32(0)),
        ("attention.shared_kv_layers", Value::U32(4)),
    ] {
        let error = with(key, value).expect_err(key).to_string();
        assert!(error.contains(&format!("gemma3n.{key}")), "{error}");
    }
}

/// Converters state of a model without attention that it has no heads, and nothing more of them.
#[test]
fn a_model_of_scans_needs_no_keys_of_attention() {
    let tiny = tiny("mamba2.gguf");
    let keys = [
        "attention.head_count_kv",
        "attention.key_length",
        "attention.value_length",
        "rope.dimension_count",
    ];
    let without = keys.map(|key| format!("mamba2.{key}"));
    let heads = ("mamba2.attention.head_count", Value::U32(0));
    let width = ("mamba2.feed_forward_length", Value::U32(0));
    let model = changed(&tiny.gguf(), &without.each_ref().map(String::as_str), &[heads, width]).expect("a model");
    tiny.check_model(&model, CpuBackend::with_threads(2), 7);
}
