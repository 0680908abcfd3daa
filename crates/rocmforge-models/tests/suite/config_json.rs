//! config.json: the keys of real models' files, both spellings, keys that nothing knows, hostile numbers.

use std::path::Path;

use rocmforge_ggml::RopeScaling;
use rocmforge_models::ModelError;
use rocmforge_models::config::{DecoderConfig, LayerInputConfig, OutputMatrix, PerLayer, RopeFactors, StreamsConfig};
use serde_json::{Value, json};

fn read_text(text: &str) -> Result<DecoderConfig, ModelError> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.json");
    std::fs::write(&path, text).expect("written");
    DecoderConfig::from_config_json(&path)
}

fn read(config: &Value) -> Result<DecoderConfig, ModelError> {
    read_text(&config.to_string())
}

/// An object with further keys, and without those that are null in `more`.
fn with(base: &Value, more: Value) -> Value {
    let mut config = base.clone();
    let object = config.as_object_mut().expect("an object");
    for (key, value) in more.as_object().expect("an object") {
        match value {
            Value::Null => object.remove(key),
            value => object.insert(key.clone(), value.clone()),
        };
    }
    config
}

/// What every file has.
fn plain(model_type: &str) -> Value {
    json!({
        "architectures": ["AnyForCausalLM"],
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": 64,
        "initializer_range": 0.02,
        "intermediate_size": 96,
        "max_position_embeddings": 4096,
        "model_type": model_type,
        "num_attention_heads": 4,
        "num_hidden_layers": 4,
        "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0",
        "use_cache": true,
        "vocab_size": 320,
    })
}

/// The settings of a model of each family, with the keys that its published files have and sizes of our own.
fn real_files() -> Vec<(&'static str, Value)> {
    let llama3 = json!({
        "factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 1024, "rope_type": "llama3"
    });
    let lists = |kind: &str| json!({ "type": kind, "short_factor": vec![1.0; 8], "long_factor": vec![2.0; 8] });
    let qwen = json!({
        "max_window_layers": 28, "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": true, "use_sliding_window": false
    });
    let gemma = json!({
        "hidden_act": null, "_sliding_window_pattern": 2, "attention_bias": false, "attn_logit_softcapping": null,
        "cache_implementation": "hybrid", "final_logit_softcapping": null, "head_dim": 16, "hidden_activation": "gelu_pytorch_tanh",
        "pad_token_id": 0, "query_pre_attn_scalar": 16, "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0,
        "sliding_window": 512,
    });
    vec![
        (
            "Llama 2",
            with(
                &plain("llama"),
                json!({ "_name_or_path": "somewhere", "pretraining_tp": 1, "rope_scaling": null, "tie_word_embeddings": false }),
            ),
        ),
        (
            "Llama 3.2",
            with(
                &plain("llama"),
                json!({
                    "attention_bias": false, "eos_token_id": [7, 8, 9], "head_dim": 16, "mlp_bias": false, "pretraining_tp": 1,
                    "rope_scaling": llama3, "rope_theta": 500000.0, "tie_word_embeddings": true
                }),
            ),
        ),
        (
            "SmolLM2",
            with(
                &plain("llama"),
                json!({
                    "attention_bias": false, "is_llama_config": true, "mlp_bias": false, "pad_token_id": 2, "pretraining_tp": 1,
                    "rope_interleaved": false, "rope_scaling": null, "rope_theta": 100000, "tie_word_embeddings": true,
                    "transformers.js_config": { "kv_cache_dtype": { "q4f16": "float16" } }
                }),
            ),
        ),
        (
            "Mistral 0.1",
            with(
                &plain("mistral"),
                json!({ "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false }),
            ),
        ),
        (
            "Qwen 2.5",
            with(&plain("qwen2"), with(&qwen, json!({ "use_mrope": false }))),
        ),
        (
            "Qwen 3",
            with(
                &plain("qwen3"),
                with(
                    &qwen,
                    json!({ "attention_bias": false, "head_dim": 16, "rope_scaling": null, "sliding_window": null }),
                ),
            ),
        ),
        ("Gemma 3", with(&plain("gemma3_text"), gemma)),
        (
            "Gemma 3n",
            with(
                &plain("gemma3n_text"),
                json!({
                    "hidden_act": null, "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0], "altup_active_idx": 0,
                    "altup_coef_clip": 120.0, "altup_correct_scale": true, "altup_lr_multiplier": 1.0, "altup_num_inputs": 4,
                    "attention_bias": false, "final_logit_softcapping": 30.0, "head_dim": 16, "hidden_activation": "gelu_pytorch_tanh",
                    "hidden_size_per_layer_input": 12, "intermediate_size": [96, 96, 96, 96], "laurel_rank": 8,
                    "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
                    "num_kv_shared_layers": 2, "pad_token_id": 0, "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000.0,
                    "rope_scaling": null, "rope_theta": 1000000.0, "sliding_window": 512, "vocab_size_per_layer_input": 300
                }),
            ),
        ),
        (
            "Phi-3",
            with(
                &plain("phi3"),
                json!({
                    "_name_or_path": "somewhere", "attention_bias": false, "auto_map": { "AutoConfig": "configuration.Config" },
                    "embd_pdrop": 0.0, "original_max_position_embeddings": 4096, "pad_token_id": 3, "resid_pdrop": 0.0,
                    "rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false
                }),
            ),
        ),
        (
            "Phi-3.5",
            with(
                &plain("phi3"),
                json!({ "original_max_position_embeddings": 1024, "rope_scaling": lists("longrope"), "sliding_window": 262144 }),
            ),
        ),
        (
            "Qwen3-30B-A3B",
            with(
                &plain("qwen3_moe"),
                json!({
                    "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 16, "max_window_layers": 48, "mlp_only_layers": [],
                    "moe_intermediate_size": 32, "norm_topk_prob": true, "num_experts": 128, "num_experts_per_tok": 8,
                    "output_router_logits": false, "rope_theta": 1e6, "router_aux_loss_coef": 0.001, "sliding_window": 4096,
                    "tie_word_embeddings": false, "use_sliding_window": false
                }),
            ),
        ),
        (
            "Qwen3-Coder-480B-A35B",
            with(
                &plain("qwen3_moe"),
                json!({
                    "decoder_sparse_step": 1, "head_dim": 16, "max_window_layers": 62, "mlp_only_layers": [], "moe_intermediate_size": 32,
                    "norm_topk_prob": true, "num_experts": 160, "num_experts_per_tok": 8, "output_router_logits": false,
                    "qkv_bias": false, "rope_theta": 1e7, "router_aux_loss_coef": 0.0, "shared_expert_intermediate_size": 0,
                    "tie_word_embeddings": false, "use_qk_norm": true, "use_sliding_window": false
                }),
            ),
        ),
        (
            "Qwen3.5-27B",
            with(
                &plain("qwen3_5_text"),
                json!({
                    "attention_bias": false, "attn_output_gate": true, "dtype": "bfloat16", "full_attention_interval": 4, "head_dim": 16,
                    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
                    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 6,
                    "linear_value_head_dim": 8, "mamba_ssm_dtype": "float32", "mlp_only_layers": [], "mtp_num_hidden_layers": 1,
                    "mtp_use_dedicated_embeddings": false,
                    "rope_parameters": {
                        "mrope_interleaved": true, "mrope_section": [1, 1, 0], "partial_rotary_factor": 0.25, "rope_theta": 1e7,
                        "rope_type": "default"
                    }
                }),
            ),
        ),
        (
            "SmolLM3-3B",
            with(
                &plain("smollm3"),
                json!({
                    "attention_bias": false, "bos_token_id": null, "eos_token_id": 128012, "max_window_layers": 28, "mlp_bias": false,
                    "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"],
                    "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0], "pad_token_id": 128004, "pretraining_tp": 2,
                    "rope_theta": 5000000.0, "sliding_window": null, "use_sliding_window": false
                }),
            ),
        ),
        (
            "Hunyuan-7B",
            with(
                &plain("hunyuan_v1_dense"),
                json!({
                    "add_classification_head": false, "attention_bias": false, "attention_head_dim": 16, "cla_share_factor": 2,
                    "class_num": 0, "dense_list": [4096, 0], "head_dim": 16, "im_end_id": 5, "im_newline_id": 11, "im_start_id": 4,
                    "mask_init_id": 12, "mlp_bias": false, "norm_type": "rms", "org_vocab_size": 320, "pad_id": 127961,
                    "pad_token_id": 127961, "pool_type": "last", "pretraining_tp": 1, "rope_theta": 10000.0, "sep_token_id": 127962,
                    "rope_scaling": {
                        "alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                        "type": "dynamic"
                    },
                    "text_end_id": 7, "text_start_id": 6, "tie_word_embeddings": true, "use_cla": false, "use_qk_norm": true,
                    "use_rotary_pos_emb": true
                }),
            ),
        ),
        (
            "Llama 4 Scout",
            with(
                &plain("llama4_text"),
                json!({
                    "_attn_implementation_autoset": true, "attention_bias": false, "attention_chunk_size": 8192, "attn_scale": 0.1,
                    "attn_temperature_tuning": 4, "cache_implementation": "hybrid", "floor_scale": 8192, "for_llm_compressor": false,
                    "head_dim": 16, "interleave_moe_layer_step": 1, "intermediate_size_mlp": 64, "moe_layers": [0, 1],
                    "no_rope_layers": [], "num_experts_per_tok": 1, "num_local_experts": 16, "output_router_logits": false,
                    "pad_token_id": 3, "rope_theta": 500000.0, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0,
                    "tie_word_embeddings": false, "use_qk_norm": true,
                    "rope_scaling": {
                        "factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
                        "rope_type": "llama3"
                    }
                }),
            ),
        ),
        (
            "Ministral 3",
            with(
                &plain("ministral3"),
                json!({
                    "head_dim": 16, "sliding_window": null, "tie_word_embeddings": true,
                    "rope_parameters": {
                        "beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
                        "mscale_all_dim": 1.0, "original_max_position_embeddings": 16384, "rope_theta": 1000000.0, "rope_type": "yarn",
                        "type": "yarn"
                    }
                }),
            ),
        ),
        (
            "Phi-3, early",
            with(
                &plain("phi3"),
                json!({ "original_max_position_embeddings": 1024, "rope_scaling": lists("su") }),
            ),
        ),
        (
            "Phi-4-mini",
            with(
                &plain("phi3"),
                json!({
                    "full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": false, "mlp_bias": false, "partial_rotary_factor": 0.75,
                    "original_max_position_embeddings": 1024, "tie_word_embeddings": true,
                    "rope_scaling": { "type": "longrope", "short_factor": vec![1.0; 6], "long_factor": vec![2.0; 6] }
                }),
            ),
        ),
    ]
}

/// The same of models with shared experts, whose settings no other model above has.
fn with_shared_experts() -> Vec<(&'static str, Value)> {
    vec![
        (
            "GLM-4.5-Air",
            with(
                &plain("glm4_moe"),
                json!({
                    "attention_bias": true, "decoder_sparse_step": 1, "eos_token_id": [7, 8, 9], "first_k_dense_replace": 1, "head_dim": 16,
                    "moe_intermediate_size": 32, "moe_router_dtype": "float32", "n_group": 1, "n_routed_experts": 128, "n_shared_experts": 1,
                    "norm_topk_prob": true, "num_experts_per_tok": 8, "num_nextn_predict_layers": 1, "output_router_logits": false,
                    "pad_token_id": 7, "partial_rotary_factor": 0.5, "rope_scaling": null, "rope_theta": 10000,
                    "routed_scaling_factor": 1.0, "router_aux_loss_coef": 0.001, "tie_word_embeddings": false, "topk_group": 1,
                    "topk_method": "noaux_tc", "use_qk_norm": false
                }),
            ),
        ),
        (
            "ERNIE-4.5-21B-A3B",
            with(
                &plain("ernie4_5_moe"),
                json!({
                    "head_dim": 16, "moe_capacity": [64, 64, 64], "moe_gate": "topk", "moe_intermediate_size": 32, "moe_k": 6,
                    "moe_layer_end_index": 3, "moe_layer_interval": 1, "moe_layer_start_index": 1, "moe_num_experts": 64,
                    "moe_num_shared_experts": 2, "moe_use_aux_free": true, "pad_token_id": 0, "rope_theta": 500000.0,
                    "tie_word_embeddings": true, "use_bias": false, "use_rmsnorm": true
                }),
            ),
        ),
    ]
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
