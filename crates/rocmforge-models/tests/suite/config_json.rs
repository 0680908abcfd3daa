//! config.json: the keys of real models' files, both spellings, keys that nothing knows, hostile numbers.

use std::path::Path;

use rocmforge_ggml::RopeScaling;
use rocmforge_models::ModelError;
use rocmforge_models::config::{DecoderConfig, LayerInputConfig, OutputMatrix, PerLayer, RopeFactors, StreamsConfig};
use serde_json::{Value, json};

use super::published_settings::{plain, real_files, with, with_shared_experts};

fn read_text(text: &str) -> Result<DecoderConfig, ModelError> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.json");
    std::fs::write(&path, text).expect("written");
    DecoderConfig::from_config_json(&path)
}

fn read(config: &Value) -> Result<DecoderConfig, ModelError> {
    read_text(&config.to_string())
}

#[test]
fn files_with_the_keys_of_published_models_are_read() {
    for (name, config) in real_files().into_iter().chain(with_shared_experts()) {
        let read = read(&config).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((read.layers, read.width, read.head_dim.of(0)), (4, 64, 16), "{name}");
    }
}

/// Python writes numbers that JSON lacks, as here into the files of Nemotron-H. In texts they are words.
#[test]
fn infinity_is_read_as_python_writes_it() {
    let nemotron = json!({
        "attention_bias": false, "attention_head_dim": 16, "chunk_size": 128, "conv_kernel": 4, "expand": 2, "hidden_act": null,
        "hybrid_override_pattern": "M-*-", "layer_norm_epsilon": 1e-5, "mamba_head_dim": 8, "mamba_hidden_act": "silu",
        "mamba_num_heads": 16, "mamba_proj_bias": false, "mlp_bias": false, "mlp_hidden_act": "relu2", "n_groups": 2,
        "_name_or_path": "Infinity and \\\"NaN\\\"", "num_logits_to_keep": 1, "rescale_prenorm_residual": true,
        "residual_in_fp32": false, "ssm_state_size": 16, "time_step_floor": 0.0001, "time_step_limit": [0.0, "BOUND"],
        "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 4, "use_bias": false, "use_conv_bias": true,
        "use_mamba_kernels": true
    });
    let text = with(&plain("nemotron_h"), nemotron).to_string();
    let of = |bound: &str| read_text(&text.replace("\"BOUND\"", bound)).map_err(|error| error.to_string());
    let read = of("Infinity").expect("as published");
    assert_eq!((read.layers, read.head_dim.of(2)), (4, 16));
    for (bound, said) in [
        ("-Infinity", "time_step_limit"),
        ("NaN", "time_step_limit"),
        ("Infinite", "config.json"),
    ] {
        let error = of(bound).expect_err(bound);
        assert!(error.contains(said), "{bound}: {error}");
    }
}

/// Settings of architectures whose directories are not read count for no other.
#[test]
fn a_setting_of_another_architecture_is_refused_by_name() {
    for (name, config) in real_files() {
        for key in [
            "attention_multiplier",
            "embedding_multiplier",
            "first_k_dense_replace",
            "logit_scale",
            "logits_scaling",
            "n_shared_experts",
            "num_nextn_predict_layers",
            "residual_multiplier",
            "routed_scaling_factor",
        ] {
            let error = read(&with(&config, json!({ key: 1 }))).expect_err(name);
            assert!(
                matches!(&error, ModelError::UnknownSetting { key: found, .. } if found == key),
                "{name}: {error}"
            );
        }
    }
}

/// Each key of each file counts, or is on a list: a key with one letter more is refused by its name.
#[test]
fn an_unknown_key_is_refused_by_name() {
    for (name, config) in real_files() {
        for key in config.as_object().expect("an object").keys() {
            let other = format!("{key}s");
            let error = read(&with(&config, json!({ other.clone(): 3 }))).expect_err(name);
            assert!(
                matches!(&error, ModelError::UnknownSetting { key, value, .. } if *key == other && value == "3"),
                "{name}: {error}"
            );
            assert!(error.to_string().contains("config.json"), "{error}");
        }
        // Without a value it asks for nothing.
        let nothing = format!(r#"{{"anything": null, {}"#, &config.to_string()[1..]);
        assert!(read_text(&nothing).is_ok(), "{name}");
    }
    let long = with(&plain("llama"), json!({ "x": "\u{1b}[31m".repeat(1000) }));
    let error = read(&long).expect_err("unknown").to_string();
    assert!(error.len() < 400 && !error.contains('\u{1b}'), "{error}");
}

#[test]
fn values_that_ask_for_something_else_are_refused_by_name() {
    for (model_type, key, value) in [
        ("llama", "hidden_act", json!("gelu")),
        ("llama", "attention_bias", json!(true)),
        ("llama", "mlp_bias", json!(true)),
        ("llama", "pretraining_tp", json!(2)),
        ("llama", "sliding_window", json!(64)),
        ("llama", "num_local_experts", json!(8)),
        ("llama", "quantization_config", json!({ "quant_method": "gptq" })),
        ("llama", "text_config", json!({ "hidden_size": 64 })),
        ("mistral", "use_sliding_window", json!(true)),
        ("qwen2", "use_mrope", json!(true)),
        (
            "qwen3",
            "layer_types",
            json!(["full_attention", "linear_attention", "full_attention", "full_attention"]),
        ),
        ("qwen3", "layer_types", json!(["full_attention"])),
        ("qwen3", "layer_types", json!(vec!["sliding_attention"; 4])),
        ("gemma3_text", "hidden_act", json!("silu")),
        ("gemma3_text", "hidden_activation", json!("gelu")),
        ("gemma3_text", "use_bidirectional_attention", json!("all")),
        ("gemma3n_text", "altup_active_idx", json!(1)),
        ("gemma3n_text", "altup_correct_scale", json!(false)),
        ("gemma3n_text", "altup_num_inputs", json!(1)),
        ("gemma3n_text", "altup_num_inputs", json!(17)),
        ("gemma3n_text", "laurel_rank", json!(0)),
        ("gemma3n_text", "hidden_size_per_layer_input", json!(0)),
        ("gemma3n_text", "vocab_size_per_layer_input", json!(0)),
        ("gemma3n_text", "num_kv_shared_layers", json!(4)),
        ("gemma3n_text", "activation_sparsity_pattern", json!([0.5])),
        (
            "gemma3n_text",
            "activation_sparsity_pattern",
            json!([0.5, 0.0, 0.0, 1.0]),
        ),
        (
            "gemma3n_text",
            "activation_sparsity_pattern",
            json!([0.5, 0.0, 0.0, "all"]),
        ),
        ("phi3", "lm_head_bias", json!(true)),
    ] {
        let base = match model_type {
            "gemma3n_text" => with(
                &plain(model_type),
                json!({ "hidden_act": null, "num_kv_shared_layers": 0 }),
            ),
            "gemma3_text" => with(&plain(model_type), json!({ "hidden_act": null, "head_dim": 16 })),
            _ => with(&plain(model_type), json!({ "head_dim": 16 })),
        };
        assert!(read(&base).is_ok(), "{model_type}");
        let error = read(&with(&base, json!({ key: value }))).expect_err(key);
        assert!(
            matches!(
                error,
                ModelError::Unsupported { .. } | ModelError::Feature { .. } | ModelError::Setting { .. }
            ),
            "{error}"
        );
        assert!(error.to_string().contains(key), "{error}");
    }
    let error = read(&with(&plain("llama"), json!({ "num_local_experts": 8 }))).expect_err("experts");
    assert!(
        error.to_string().contains("mixture of experts (num_local_experts = 8)"),
        "{error}"
    );
}

#[test]
fn unknown_models_are_refused_with_the_names_of_those_that_are_known() {
    let error = read(&plain("mamba")).expect_err("unknown").to_string();
    assert!(error.contains("mamba") && error.contains("gemma3_text"), "{error}");
    let mixture = with(&plain("dbrx"), json!({ "num_local_experts": 8 }));
    let error = read(&mixture).expect_err("unknown").to_string();
    assert!(
        error.starts_with("dbrx is a mixture of 8 experts") && error.contains("qwen3moe"),
        "{error}"
    );
    let error = read(&json!({ "hidden_size": 8 })).expect_err("no type").to_string();
    assert!(error.contains("model_type"), "{error}");
}

/// Of a multimodal model the text part counts; what is stated of the whole holds for it.
#[test]
fn the_text_part_of_a_multimodal_model_is_read() {
    let text = plain("qwen3");
    let whole =
        json!({ "model_type": "any_vl", "text_config": text, "vision_config": { "depth": 2 }, "image_token_id": 7 });
    assert_eq!(read(&whole).expect("a text part"), read(&text).expect("whole"));
    let tied = read(&with(&whole, json!({ "tie_word_embeddings": true }))).expect("a text part");
    assert_eq!(tied.output, OutputMatrix::Embedding);
    for (more, said) in [
        (
            json!({ "text_config": plain("any_text") }),
            "text_config.model_type = any_text",
        ),
        (
            json!({ "text_config": with(&text, json!({ "new": 1 })) }),
            "text_config.new",
        ),
        (
            json!({ "text_config": { "model_type": "qwen3" } }),
            "text_config.num_hidden_layers",
        ),
        (json!({ "text_config": [] }), "text_config"),
        (
            json!({ "quantization_config": { "quant_method": "gptq" } }),
            "a quantised checkpoint",
        ),
        (
            json!({
                "tie_word_embeddings": false,
                "text_config": with(&text, json!({ "tie_word_embeddings": true })),
            }),
            "tie_word_embeddings = true is not usable",
        ),
        (
            json!({ "text_config": with(&plain("any_moe"), json!({ "num_experts": 128 })) }),
            "any_moe is a mixture of 128 experts",
        ),
    ] {
        let error = read(&with(&whole, more)).expect_err(said).to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
    let null = whole
        .to_string()
        .replacen("\"text_config\":{", "\"text_config\":null,\"other\":{", 1);
    let error = read_text(&null).expect_err("no text part").to_string();
    assert!(error.contains("any_vl"), "{error}");
}

/// Defaults of transformers where the file leaves a key out.
#[test]
fn absent_keys_stand_for_the_defaults_of_their_model() {
    let llama = read(&plain("llama")).expect("whole");
    assert_eq!((llama.rope.get(0).theta, llama.output), (10_000.0, OutputMatrix::Own));
    assert_eq!(llama.rope.values().count(), 1);
    let gemma = with(
        &plain("gemma3_text"),
        json!({ "hidden_act": null, "num_hidden_layers": 7 }),
    );
    let gemma = read(&gemma).expect("whole");
    assert_eq!((gemma.rope.get(5).theta, gemma.output), (1e6, OutputMatrix::Embedding));
    assert_eq!((gemma.rope.get(4).theta, gemma.rope.get(6).theta), (1e4, 1e4));
    assert_eq!((gemma.head_dim.of(0), gemma.attention_scale), (256, Some(1.0 / 16.0)));
    let streams = with(
        &plain("gemma3n_text"),
        json!({ "hidden_act": null, "num_hidden_layers": 35, "num_key_value_heads": null }),
    );
    let streams = read(&streams).expect("whole");
    assert_eq!((streams.kv_heads.of(0), streams.head_dim.of(0)), (2, 256));
    assert_eq!(
        (streams.attention_scale, streams.logit_softcap),
        (Some(1.0), Some(30.0))
    );
    assert_eq!((streams.rope.get(4).theta, streams.rope.get(5).theta), (1e6, 1e4));
    assert_eq!((*streams.window.get(3), *streams.window.get(4)), (Some(512), None));
    assert_eq!(
        [18, 20, 23, 24, 34].map(|layer| *streams.cache_of.get(layer)),
        [None, Some(18), Some(18), Some(19), Some(19)]
    );
    assert_eq!(
        streams.streams,
        Some(StreamsConfig {
            count: 4,
            rank: Some(64)
        })
    );
    let (width, tokens) = (256, 262_144);
    assert_eq!(streams.layer_input, Some(LayerInputConfig { width, tokens }));
    // The first ten, of models that have more.
    let deviations = |config: &DecoderConfig, layer: usize| config.sparsity.get(layer).map(|rule| rule.deviations);
    let first = deviations(&streams, 9).expect("cut");
    assert!((first - 1.644_853_6).abs() < 1e-6, "{first}");
    assert_eq!(deviations(&streams, 10), None);
    let short = with(
        &plain("gemma3n_text"),
        json!({ "hidden_act": null, "num_hidden_layers": 10, "num_kv_shared_layers": 0 }),
    );
    assert_eq!(read(&short).expect("whole").sparsity, PerLayer::all(None));
    let unbound = short
        .to_string()
        .replacen('{', r#"{"final_logit_softcapping": null, "#, 1);
    assert_eq!(read_text(&unbound).expect("whole").logit_softcap, None);
    let (wide, all) = (Some(4096), None);
    assert_eq!(of_layers(&gemma.window, 7), [wide, wide, wide, wide, wide, all, wide]);
    assert_eq!(read(&plain("qwen3")).expect("whole").head_dim.of(0), 128);
    let mistral = with(&plain("mistral"), json!({ "max_position_embeddings": 32768 }));
    let windows = |config: &Value| {
        let read = read(config).expect("whole");
        of_layers(&read.window, read.layers)
    };
    assert_eq!(windows(&mistral), [Some(4096); 4]);
    // Null is no window, and a window that holds the whole context hides nothing.
    let text = mistral.to_string().replacen('{', r#"{"sliding_window": null, "#, 1);
    assert_eq!(read_text(&text).expect("whole").window, PerLayer::all(None));
    assert_eq!(windows(&plain("mistral")), [None; 4]);
    assert_eq!(
        windows(&with(&mistral, json!({ "sliding_window": 100 }))),
        [Some(100); 4]
    );
    assert_eq!(windows(&plain("phi3")), [None; 4]);
    let phi3 = with(&plain("phi3"), json!({ "sliding_window": 100 }));
    assert_eq!(windows(&phi3), [Some(100); 4]);
    let qwen = with(
        &plain("qwen2"),
        json!({ "sliding_window": 100, "max_window_layers": 3 }),
    );
    assert_eq!(windows(&qwen), [None; 4]);
    let qwen = with(&qwen, json!({ "use_sliding_window": true }));
    assert_eq!(windows(&qwen), [None, None, None, Some(100)]);
    let listed = json!([
        "full_attention",
        "sliding_attention",
        "full_attention",
        "full_attention"
    ]);
    let qwen = with(&qwen, json!({ "layer_types": listed }));
    assert_eq!(windows(&qwen), [None, Some(100), None, None]);
}

/// The value of each layer.
fn of_layers<T: Clone + PartialEq>(values: &PerLayer<T>, layers: usize) -> Vec<T> {
    (0..layers).map(|layer| values.get(layer).clone()).collect()
}

fn llama3(more: Value) -> Value {
    let rule = json!({ "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64 });
    with(&rule, more)
}

#[test]
fn both_names_of_a_rotary_rule_may_stand_if_they_agree() {
    let scaled = |rule: Value| with(&plain("llama"), json!({ "rope_scaling": rule }));
    let one = read(&scaled(llama3(json!({ "rope_type": "llama3" })))).expect("whole");
    assert!(matches!(&one.rope_factors, RopeFactors::Given(list) if list.len() == 8));
    let other = read(&scaled(llama3(json!({ "type": "llama3" })))).expect("whole");
    let both = read(&scaled(llama3(json!({ "type": "llama3", "rope_type": "llama3" })))).expect("whole");
    assert_eq!((&one, &one), (&other, &both));
    let error = read(&scaled(llama3(json!({ "type": "linear", "rope_type": "llama3" })))).expect_err("they differ");
    assert!(matches!(error, ModelError::Contradiction { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("rope_type = llama3") && text.contains(".type = linear"),
        "{text}"
    );
}

#[test]
fn what_is_stated_twice_must_agree() {
    let base = plain("llama");
    for (more, names) in [
        (
            json!({ "rope_theta": 1e4, "rope_parameters": { "rope_theta": 5e5 } }),
            ["rope_theta", "rope_parameters"],
        ),
        (
            json!({ "partial_rotary_factor": 0.5, "rope_parameters": { "partial_rotary_factor": 1.0 } }),
            ["partial_rotary_factor", "rope_parameters"],
        ),
        (
            json!({ "rope_scaling": { "type": "linear", "factor": 2.0 }, "rope_parameters": { "rope_type": "default" } }),
            ["rope_scaling", "rope_parameters"],
        ),
    ] {
        let error = read(&with(&base, more)).expect_err("they differ");
        assert!(matches!(error, ModelError::Contradiction { .. }), "{error}");
        assert!(names.iter().all(|name| error.to_string().contains(name)), "{error}");
    }
    let sliding = |theta: f64| json!({ "full_attention": {}, "sliding_attention": { "rope_theta": theta } });
    let both = json!({ "rope_scaling": sliding(1e3), "rope_parameters": sliding(2e3) });
    let error = read(&with(&base, both)).expect_err("they differ");
    assert!(matches!(error, ModelError::Contradiction { .. }), "{error}");
    let rule = json!({ "type": "linear", "factor": 2.0 });
    let agree = json!({ "rope_theta": 5e5, "rope_scaling": rule, "rope_parameters": with(&rule, json!({ "rope_theta": 5e5 })) });
    let read = read(&with(&base, agree)).expect("they agree");
    assert_eq!(
        (read.rope.get(0).theta, read.rope.get(0).scaling),
        (5e5, RopeScaling::Linear { factor: 2.0 })
    );
    let text = base.to_string().replacen('{', r#"{"vocab_size": 320, "#, 1);
    let error = read_text(&text).expect_err("twice").to_string();
    assert!(error.contains("vocab_size"), "{error}");
}

#[test]
fn rotary_keys_that_their_rule_does_not_have_are_refused() {
    for (rule, key) in [
        (json!({ "factor": 4.0 }), "rope_scaling.factor"),
        (json!({ "rope_type": "default", "factor": 4.0 }), "rope_scaling.factor"),
        (
            json!({ "rope_type": "linear", "factor": 4.0, "beta_fast": 8.0 }),
            "rope_scaling.beta_fast",
        ),
        (json!({ "rope_type": "linear" }), "rope_scaling.factor"),
        (json!({ "rope_type": "dynamic", "factor": 4.0 }), "dynamic"),
        (
            json!({ "rope_type": "linear", "factor": 4.0, "truncate": false }),
            "truncate",
        ),
        (json!({ "type": "mrope", "mrope_section": [1, 2, 3] }), "mrope"),
        (
            json!({ "rope_type": "longrope", "short_factor": [1.0] }),
            "rope_scaling.long_factor",
        ),
        (
            json!({ "rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0] }),
            "rope_scaling",
        ),
        (
            llama3(json!({ "rope_type": "llama3", "low_freq_factor": null })),
            "rope_scaling.low_freq_factor",
        ),
        (llama3(json!({ "rope_type": "llama3", "factor": 0.0 })), "llama3"),
        (json!({ "rope_type": "linear", "factor": -1.0 }), "factor"),
        (
            json!({ "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 0 }),
            "original_max_position",
        ),
        (
            json!({ "full_attention": {}, "other_attention": { "rope_theta": 1.0 } }),
            "rope_scaling.other_attention",
        ),
        (json!("linear"), "rope_scaling"),
    ] {
        let error = read(&with(&plain("llama"), json!({ "rope_scaling": rule }))).expect_err(key);
        assert!(error.to_string().contains(key), "{key}: {error}");
    }
    // Gemma has an object for each type of layer.
    let gemma = with(&plain("gemma3_text"), json!({ "hidden_act": null }));
    let error = read(&with(&gemma, json!({ "rope_parameters": { "rope_theta": 5.0 } }))).expect_err("flat");
    assert!(error.to_string().contains("rope_parameters.rope_theta"), "{error}");
    let sliding = json!({ "sliding_attention": llama3(json!({ "rope_type": "llama3" })) });
    let error = read(&with(&gemma, json!({ "rope_parameters": sliding }))).expect_err("divisors");
    assert!(error.to_string().contains("sliding_attention"), "{error}");
}

/// Layers of two types in a model without rotary settings of its own for windows.
#[test]
fn each_type_of_layer_has_its_rotary_settings() {
    let windows = json!({ "use_sliding_window": true, "sliding_window": 100, "max_window_layers": 2 });
    let qwen = with(&plain("qwen2"), windows);
    let of = |full: f64, sliding: f64| {
        let parts = json!({ "full_attention": { "rope_theta": full }, "sliding_attention": { "rope_theta": sliding } });
        read(&with(&qwen, json!({ "rope_parameters": parts }))).expect("whole")
    };
    let same = of(5e5, 5e5);
    assert_eq!((same.rope.get(0).theta, same.rope.values().count()), (5e5, 1));
    assert_eq!(same, read(&with(&qwen, json!({ "rope_theta": 5e5 }))).expect("whole"));
    let differ = of(5e5, 1e3);
    assert_eq!(
        [0, 1, 2, 3].map(|layer| differ.rope.get(layer).theta),
        [5e5, 5e5, 1e3, 1e3]
    );
}

#[test]
fn hostile_numbers_are_refused_by_the_key_of_the_file() {
    let huge = json!(1u64 << 40);
    for (key, value) in [
        ("num_hidden_layers", json!(1 << 30)),
        ("num_hidden_layers", json!(0)),
        ("hidden_size", huge.clone()),
        ("intermediate_size", huge.clone()),
        ("vocab_size", huge.clone()),
        ("max_position_embeddings", huge.clone()),
        ("num_attention_heads", json!(0)),
        ("num_attention_heads", huge.clone()),
        ("num_key_value_heads", json!(0)),
        ("num_key_value_heads", json!(3)),
        ("head_dim", huge.clone()),
        ("head_dim", json!(u64::MAX)),
        ("partial_rotary_factor", json!(1e30)),
        ("partial_rotary_factor", json!(0.2)),
        ("rope_theta", json!(0.0)),
        ("rope_theta", json!(-1.0)),
        ("rms_norm_eps", json!(-1.0)),
        ("rms_norm_eps", json!("1e-5")),
        ("hidden_size", json!(-1)),
        ("hidden_size", json!(1.5)),
    ] {
        for scaling in [Value::Null, llama3(json!({ "rope_type": "llama3" }))] {
            let config = with(&plain("llama"), json!({ key: value, "rope_scaling": scaling }));
            let error = read(&config).expect_err(key);
            assert!(error.to_string().contains("config.json"), "{key}: {error}");
            // The length of a head follows from two others.
            let named = [key, "head_dim"].iter().any(|name| error.to_string().contains(name));
            assert!(named, "{key}: {error}");
        }
    }
    let gemma = with(&plain("gemma3_text"), json!({ "hidden_act": null }));
    for (key, value) in [
        ("query_pre_attn_scalar", json!(0)),
        ("query_pre_attn_scalar", json!(-4)),
        ("sliding_window", json!(0)),
        ("final_logit_softcapping", json!(-1.0)),
        ("rope_local_base_freq", json!(0)),
    ] {
        let error = read(&with(&gemma, json!({ key: value }))).expect_err(key);
        assert!(matches!(error, ModelError::Setting { .. }), "{key}: {error}");
    }
}

#[test]
fn lists_for_layers_are_whole_and_each_entry_counts() {
    let base = with(&plain("llama"), json!({ "head_dim": 16 }));
    let lists = json!({ "num_attention_heads": [4, 2, 4, 4], "num_key_value_heads": [2, 1, 4, 1], "intermediate_size": [96, 8, 96, 1] });
    let read_lists = read(&with(&base, lists.clone())).expect("whole");
    let second = (read_lists.heads.of(1), read_lists.kv_heads.of(1), read_lists.ff.of(1));
    assert_eq!(second, (2, 1, 8));
    for (key, list, rule) in [
        ("num_attention_heads", json!([4, 2]), "one for each layer"),
        ("num_attention_heads", json!([4, 2, 4, 0]), "1 to 65536"),
        ("num_key_value_heads", json!([2, 1, 3, 1]), "divide the number of heads"),
        ("intermediate_size", json!([]), "one for each layer"),
    ] {
        let error = read(&with(&with(&base, lists.clone()), json!({ key: list }))).expect_err(key);
        let text = error.to_string();
        assert!(text.contains(key) && text.contains(rule), "{text}");
    }
    let error = read(&with(&plain("llama"), lists))
        .expect_err("heads of which length")
        .to_string();
    assert!(error.contains("head_dim"), "{error}");
}

fn bert() -> Value {
    json!({
        "_name_or_path": "somewhere", "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1, "classifier_dropout": null,
        "directionality": "bidi", "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 8,
        "id2label": { "0": "LABEL_0" }, "initializer_range": 0.02, "intermediate_size": 12, "label2id": { "LABEL_0": 0 },
        "layer_norm_eps": 1e-12, "max_position_embeddings": 16, "model_type": "bert", "num_attention_heads": 2, "num_hidden_layers": 2,
        "pad_token_id": 0, "pooler_fc_size": 8, "pooler_num_attention_heads": 2, "pooler_num_fc_layers": 3,
        "pooler_size_per_head": 4, "pooler_type": "first_token_transform", "position_embedding_type": "absolute",
        "transformers_version": "4.8.2", "type_vocab_size": 2, "use_cache": true, "vocab_size": 7,
    })
}

fn read_bert(config: &Value, path: &Path) -> Result<DecoderConfig, ModelError> {
    std::fs::write(path, config.to_string()).expect("written");
    DecoderConfig::from_config_json(path)
}

#[test]
fn an_encoder_knows_its_keys_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.json");
    assert!(read_bert(&bert(), &path).is_ok());
    for key in bert().as_object().expect("an object").keys() {
        let other = format!("{key}s");
        let error = read_bert(&with(&bert(), json!({ other.clone(): 3 })), &path).expect_err(key);
        assert!(
            matches!(&error, ModelError::UnknownSetting { key, architecture: "bert", .. } if *key == other),
            "{error}"
        );
    }
    for (key, value) in [
        ("is_decoder", json!(true)),
        ("position_embedding_type", json!("relative_key")),
        ("feed_forward_type", json!("geglu")),
        ("quantization_config", json!({ "bits": 4 })),
    ] {
        let error = read_bert(&with(&bert(), json!({ key: value })), &path).expect_err(key);
        assert!(error.to_string().contains(key), "{error}");
    }
}
