//! Tables of checkpoints: what their names and settings are for those of the random GGUF models, and what conversion to GGUF changed.

use super::changes::Change;

/// A kind of checkpoint, apart from the product's tables.
pub(super) struct Checkpoint {
    /// Names of files of random models, without their end.
    pub(super) files: &'static [&'static str],
    pub(super) model_type: &'static str,
    /// Parts of names in GGUF, with those of the checkpoint; those of [`COMMON`] follow.
    pub(super) names: &'static [(&'static str, &'static str)],
    /// Settings, with the key of the GGUF under the architecture's name.
    pub(super) settings: &'static [(&'static str, &'static str)],
    /// Further settings, as JSON; null takes one out.
    pub(super) fixed: &'static str,
    /// In this order, of the tensors by their names in GGUF.
    pub(super) changes: &'static [Change],
}

/// Parts of names that most checkpoints have.
pub(super) const COMMON: [(&str, &str); 29] = [
    ("token_embd.", "model.embed_tokens."),
    ("output_norm.", "model.norm."),
    ("blk.", "model.layers."),
    (".attn_norm.", ".input_layernorm."),
    (".attn_q.", ".self_attn.q_proj."),
    (".attn_k.", ".self_attn.k_proj."),
    (".attn_v.", ".self_attn.v_proj."),
    (".attn_q_norm.", ".self_attn.q_norm."),
    (".attn_k_norm.", ".self_attn.k_norm."),
    (".attn_output.", ".self_attn.o_proj."),
    (".attn_sinks.weight", ".self_attn.sinks"),
    (".post_attention_norm.", ".post_attention_layernorm."),
    (".post_ffw_norm.", ".post_feedforward_layernorm."),
    (".ffn_norm.", ".post_attention_layernorm."),
    (".exp_probs_b.bias", ".mlp.gate.e_score_correction_bias"),
    (".ffn_gate_inp_shexp.", ".mlp.shared_expert_gate."),
    (".ffn_gate_shexp.", ".mlp.shared_expert.gate_proj."),
    (".ffn_up_shexp.", ".mlp.shared_expert.up_proj."),
    (".ffn_down_shexp.", ".mlp.shared_expert.down_proj."),
    (".ffn_gate_inp.", ".mlp.gate."),
    (".ffn_gate.", ".mlp.gate_proj."),
    (".ffn_up.", ".mlp.up_proj."),
    (".ffn_down.", ".mlp.down_proj."),
    (".ssm_in.", ".mamba.in_proj."),
    (".ssm_conv1d.", ".mamba.conv1d."),
    (".ssm_dt.bias", ".mamba.dt_bias"),
    (".ssm_norm.", ".mamba.norm."),
    (".ssm_out.", ".mamba.out_proj."),
    // At the end of a name.
    ("output.weight", "lm_head.weight"),
];

/// Settings that all have.
pub(super) const SETTINGS: [(&str, &str); 6] = [
    ("hidden_size", "embedding_length"),
    ("intermediate_size", "feed_forward_length"),
    ("num_attention_heads", "attention.head_count"),
    ("num_key_value_heads", "attention.head_count_kv"),
    ("vocab_size", "vocab_size"),
    ("max_position_embeddings", "context_length"),
];

pub(super) const CHECKPOINTS: &[Checkpoint] = &[
    Checkpoint {
        files: &["gemma2"],
        model_type: "gemma2",
        names: &[(".ffn_norm.", ".pre_feedforward_layernorm.")],
        settings: &[
            ("sliding_window", "attention.sliding_window"),
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("query_pre_attn_scalar", "attention.key_length"),
        ],
        fixed: r#"{ "hidden_activation": "gelu_pytorch_tanh" }"#,
        changes: &[Change::NormsLessOne],
    },
    Checkpoint {
        files: &["smollm3"],
        model_type: "smollm3",
        names: &[],
        settings: &[],
        fixed: r#"{ "no_rope_layers": [1, 1, 1, 0], "use_sliding_window": false, "sliding_window": null,
            "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention"] }"#,
        changes: &[Change::Halves],
    },
    Checkpoint {
        files: &["olmo2"],
        model_type: "olmo3",
        names: &[],
        settings: &[("sliding_window", "attention.sliding_window")],
        fixed: r#"{ "rope_theta": null, "rope_parameters": {
            "full_attention": { "rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0 },
            "sliding_attention": { "rope_type": "default", "rope_theta": 10000.0 } } }"#,
        changes: &[],
    },
    Checkpoint {
        files: &["glm4"],
        model_type: "glm4",
        names: &[
            (".post_attention_norm.", ".post_self_attn_layernorm."),
            (".post_ffw_norm.", ".post_mlp_layernorm."),
            (".ffn_up.", ".mlp.gate_up_proj."),
        ],
        settings: &[],
        fixed: r#"{ "attention_bias": true }"#,
        changes: &[],
    },
    Checkpoint {
        files: &["cohere2"],
        model_type: "cohere2",
        names: &[],
        settings: &[
            ("sliding_window", "attention.sliding_window"),
            ("logit_scale", "logit_scale"),
            ("layer_norm_eps", "attention.layer_norm_epsilon"),
        ],
        fixed: r#"{ "sliding_window_pattern": 4, "position_embedding_type": "rope_gptj" }"#,
        changes: &[],
    },
    Checkpoint {
        files: &["starcoder2"],
        model_type: "starcoder2",
        names: &[(".ffn_up.", ".mlp.c_fc."), (".ffn_down.", ".mlp.c_proj.")],
        settings: &[("norm_epsilon", "attention.layer_norm_epsilon")],
        fixed: r#"{ "hidden_act": "gelu_pytorch_tanh", "use_bias": true }"#,
        changes: &[],
    },
    Checkpoint {
        files: &["stablelm", "stablelm-parallel"],
        model_type: "stablelm",
        names: &[],
        settings: &[("layer_norm_eps", "attention.layer_norm_epsilon")],
        fixed: "{}",
        changes: &[Change::HeadsApart],
    },
];
