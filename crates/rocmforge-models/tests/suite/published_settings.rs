//! Settings of published models: the keys of their config.json, with sizes of our own.

use serde_json::{Value, json};

/// An object with further keys, and without those that are null in `more`.
pub(super) fn with(base: &Value, more: Value) -> Value {
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
pub(super) fn plain(model_type: &str) -> Value {
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
pub(super) fn real_files() -> Vec<(&'static str, Value)> {
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
pub(super) fn with_shared_experts() -> Vec<(&'static str, Value)> {
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
