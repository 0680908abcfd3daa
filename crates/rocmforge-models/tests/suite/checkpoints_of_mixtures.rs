//! [`Checkpoint`]s of mixtures of experts and of models with states.

use super::changes::Change;
use super::checkpoints::Checkpoint;

const EXPERTS: (&str, &str) = ("num_experts_per_tok", "expert_used_count");
const INNER: (&str, &str) = ("moe_intermediate_size", "expert_feed_forward_length");
const SHARED: [(&str, &str); 3] = [
    (".ffn_gate_shexp.", ".mlp.shared_experts.gate_proj."),
    (".ffn_up_shexp.", ".mlp.shared_experts.up_proj."),
    (".ffn_down_shexp.", ".mlp.shared_experts.down_proj."),
];
const APART: Change = Change::ExpertsApart {
    of: ".mlp.experts.",
    names: ["gate_proj", "up_proj", "down_proj"],
};
const GRANITE: [(&str, &str); 7] = [
    ("embedding_multiplier", "embedding_scale"),
    ("residual_multiplier", "residual_scale"),
    ("logits_scaling", "logit_scale"),
    ("attention_multiplier", "attention.scale"),
    ("num_local_experts", "expert_count"),
    EXPERTS,
    ("shared_intermediate_size", "expert_shared_feed_forward_length"),
];
const GRANITE_NAMES: [(&str, &str); 1] = [(".ffn_gate_inp.", ".block_sparse_moe.router.layer.")];
/// Of a state, a head and so on; the number of groups and heads.
const SCAN: [(&str, &str); 4] = [
    ("mamba_d_conv", "ssm.conv_kernel"),
    ("mamba_d_state", "ssm.state_size"),
    ("mamba_n_heads", "ssm.time_step_rank"),
    ("mamba_n_groups", "ssm.group_count"),
];
const BACKBONE: [(&str, &str); 9] = [
    ("token_embd.", "backbone.embeddings."),
    ("output_norm.", "backbone.norm_f."),
    ("blk.", "backbone.layers."),
    (".attn_norm.", ".norm."),
    (".ssm_in.", ".mixer.in_proj."),
    (".ssm_conv1d.", ".mixer.conv1d."),
    (".ssm_dt.bias", ".mixer.dt_bias"),
    (".ssm_norm.", ".mixer.norm."),
    (".ssm_out.", ".mixer.out_proj."),
];
const SCANS: [Change; 2] = [Change::Decay(".mamba."), Change::Convolution];

pub(super) const MIXTURES: &[Checkpoint] = &[
    Checkpoint {
        files: &["gpt-oss"],
        model_type: "gpt_oss",
        names: &[(".ffn_gate_inp.", ".mlp.router.")],
        settings: &[
            ("sliding_window", "attention.sliding_window"),
            ("num_local_experts", "expert_count"),
            EXPERTS,
        ],
        fixed: r#"{ "swiglu_limit": 7.0, "attention_bias": true }"#,
        changes: &[Change::ExpertsTransposed],
    },
    Checkpoint {
        files: &["glm4moe"],
        model_type: "glm4_moe",
        names: &SHARED,
        settings: &[
            EXPERTS,
            INNER,
            ("n_routed_experts", "expert_count"),
            ("n_shared_experts", "expert_shared_count"),
            ("routed_scaling_factor", "expert_weights_scale"),
            ("first_k_dense_replace", "leading_dense_block_count"),
            ("num_nextn_predict_layers", "nextn_predict_layers"),
        ],
        fixed: r#"{ "n_group": 1, "topk_group": 1, "norm_topk_prob": true }"#,
        changes: &[APART],
    },
    Checkpoint {
        files: &["minimax-m2"],
        model_type: "minimax_m2",
        names: &[
            (".ffn_gate_inp.", ".block_sparse_moe.gate."),
            (".exp_probs_b.bias", ".block_sparse_moe.e_score_correction_bias"),
        ],
        settings: &[
            ("num_local_experts", "expert_count"),
            EXPERTS,
            ("rotary_dim", "rope.dimension_count"),
        ],
        fixed: r#"{ "rope_theta": 10000.0, "use_qk_norm": true }"#,
        changes: &[Change::ExpertsApart {
            of: ".block_sparse_moe.experts.",
            names: ["w1", "w3", "w2"],
        }],
    },
    Checkpoint {
        files: &["deepseek2"],
        model_type: "deepseek_v3",
        names: &LATENT,
        settings: &[
            EXPERTS,
            INNER,
            ("q_lora_rank", "attention.q_lora_rank"),
            ("kv_lora_rank", "attention.kv_lora_rank"),
            ("qk_rope_head_dim", "rope.dimension_count"),
            ("v_head_dim", "attention.value_length_mla"),
            ("n_routed_experts", "expert_count"),
            ("n_shared_experts", "expert_shared_count"),
            ("routed_scaling_factor", "expert_weights_scale"),
            ("first_k_dense_replace", "leading_dense_block_count"),
            ("n_group", "expert_group_count"),
            ("topk_group", "expert_group_used_count"),
        ],
        fixed: r#"{ "qk_nope_head_dim": 12, "head_dim": 8, "partial_rotary_factor": null, "norm_topk_prob": true, "rope_scaling": {
            "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128, "mscale": 0.707, "mscale_all_dim": 0.707 } }"#,
        changes: &[APART, Change::KeysAndValues],
    },
    Checkpoint {
        files: &["deepseek2-lite"],
        model_type: "deepseek_v2",
        names: &LATENT,
        settings: &[
            EXPERTS,
            INNER,
            ("kv_lora_rank", "attention.kv_lora_rank"),
            ("qk_rope_head_dim", "rope.dimension_count"),
            ("v_head_dim", "attention.value_length_mla"),
            ("n_routed_experts", "expert_count"),
            ("n_shared_experts", "expert_shared_count"),
        ],
        fixed: r#"{ "q_lora_rank": null, "qk_nope_head_dim": 6, "head_dim": 8, "partial_rotary_factor": null, "topk_method": "greedy" }"#,
        changes: &[APART, Change::KeysAndValues],
    },
    Checkpoint {
        files: &["ernie4_5-moe"],
        model_type: "ernie4_5_moe",
        names: &[(".exp_probs_b.bias", ".mlp.moe_statics.e_score_correction_bias")],
        settings: &[
            INNER,
            ("moe_k", "expert_used_count"),
            ("moe_num_experts", "expert_count"),
            ("moe_layer_start_index", "leading_dense_block_count"),
            ("moe_layer_interval", "interleave_moe_layer_step"),
        ],
        fixed: r#"{ "moe_num_shared_experts": 0, "moe_layer_end_index": -1, "use_bias": false }"#,
        changes: &[Change::Without(".attn_output.bias"), APART],
    },
    Checkpoint {
        files: &["granitemoe"],
        model_type: "granitemoeshared",
        names: &GRANITE_NAMES,
        settings: &GRANITE,
        fixed: "{}",
        changes: &[Change::Halves, Change::GatesJoined],
    },
    Checkpoint {
        files: &["lfm2moe"],
        model_type: "lfm2_moe",
        names: &[
            ("token_embd_norm.", "model.embedding_norm."),
            (".attn_norm.", ".operator_norm."),
            (".ffn_norm.", ".ffn_norm."),
            (".attn_q_norm.", ".self_attn.q_layernorm."),
            (".attn_k_norm.", ".self_attn.k_layernorm."),
            (".attn_output.", ".self_attn.out_proj."),
            (".shortconv.", ".conv."),
            (".exp_probs_b.bias", ".feed_forward.expert_bias"),
            (".ffn_gate_inp.", ".feed_forward.gate."),
            (".ffn_gate.", ".feed_forward.w1."),
            (".ffn_up.", ".feed_forward.w3."),
            (".ffn_down.", ".feed_forward.w2."),
        ],
        settings: &[
            EXPERTS,
            INNER,
            ("num_experts", "expert_count"),
            ("num_dense_layers", "leading_dense_block_count"),
            ("conv_L_cache", "shortconv.l_cache"),
            ("norm_eps", "attention.layer_norm_rms_epsilon"),
        ],
        fixed: r#"{ "rms_norm_eps": null, "norm_topk_prob": true, "num_key_value_heads": 2, "layer_types": "by heads of keys" }"#,
        changes: &[
            Change::Convolution,
            Change::ExpertsApart {
                of: ".feed_forward.experts.",
                names: ["w1", "w3", "w2"],
            },
        ],
    },
    Checkpoint {
        files: &["qwen3next"],
        model_type: "qwen3_next",
        names: &DELTA_NET,
        settings: &DELTA_NET_SETTINGS,
        fixed: r#"{ "norm_topk_prob": true }"#,
        changes: &[
            Change::NormsLessOne,
            Change::Decay(".linear_attn."),
            Change::Convolution,
            APART,
            Change::JoinedQueries,
        ],
    },
    Checkpoint {
        files: &["qwen35"],
        model_type: "qwen3_5_text",
        names: &DELTA_NET,
        settings: &DELTA_NET_SETTINGS,
        fixed: "{}",
        changes: &[
            Change::NormsLessOne,
            Change::Neighbours,
            Change::Decay(".linear_attn."),
            Change::Convolution,
        ],
    },
    Checkpoint {
        files: &["mamba2"],
        model_type: "mamba2",
        names: &BACKBONE,
        settings: &[
            ("conv_kernel", "ssm.conv_kernel"),
            ("state_size", "ssm.state_size"),
            ("num_heads", "ssm.time_step_rank"),
            ("n_groups", "ssm.group_count"),
            ("layer_norm_epsilon", "attention.layer_norm_rms_epsilon"),
        ],
        fixed: r#"{ "head_dim": 6, "expand": 0.75, "rms_norm_eps": null, "num_attention_heads": null, "num_key_value_heads": null,
            "intermediate_size": null, "max_position_embeddings": null, "partial_rotary_factor": null,
            "time_step_limit": [0.0, { "__float__": "Infinity" }] }"#,
        changes: &[Change::Decay(".mixer."), Change::Convolution],
    },
    Checkpoint {
        files: &["falcon-h1"],
        model_type: "falcon_h1",
        names: &[
            ("output_norm.", "model.final_layernorm."),
            (".ffn_norm", ".pre_ff_layernorm.weight"),
            (".ffn_gate.", ".feed_forward.gate_proj."),
            (".ffn_up.", ".feed_forward.up_proj."),
            (".ffn_down.", ".feed_forward.down_proj."),
        ],
        settings: &SCAN,
        fixed: r#"{ "mamba_d_head": 6, "mamba_d_ssm": 24, "mamba_rms_norm": true, "mamba_norm_before_gate": false }"#,
        changes: &SCANS,
    },
    Checkpoint {
        files: &["granitehybrid"],
        model_type: "granitemoehybrid",
        names: &GRANITE_NAMES,
        settings: &[
            GRANITE[0], GRANITE[1], GRANITE[2], GRANITE[3], GRANITE[4], GRANITE[5], GRANITE[6], SCAN[0], SCAN[1],
            SCAN[2], SCAN[3],
        ],
        fixed: r#"{ "mamba_d_head": 6, "mamba_expand": 2, "position_embedding_type": "rope", "num_attention_heads": 3,
            "num_key_value_heads": 1, "layer_types": "by heads of keys" }"#,
        changes: &[Change::Halves, Change::GatesJoined, SCANS[0], SCANS[1]],
    },
    Checkpoint {
        files: &["nemotron_h", "nemotron_h_moe"],
        model_type: "nemotron_h",
        names: &NEMOTRON,
        settings: &[
            EXPERTS,
            INNER,
            ("n_routed_experts", "expert_count"),
            (
                "moe_shared_expert_intermediate_size",
                "expert_shared_feed_forward_length",
            ),
            ("routed_scaling_factor", "expert_weights_scale"),
            ("conv_kernel", "ssm.conv_kernel"),
            ("ssm_state_size", "ssm.state_size"),
            ("mamba_num_heads", "ssm.time_step_rank"),
            ("n_groups", "ssm.group_count"),
            ("layer_norm_epsilon", "attention.layer_norm_rms_epsilon"),
        ],
        fixed: r#"{ "mamba_head_dim": 6, "rms_norm_eps": null, "intermediate_size": 48, "num_key_value_heads": 2, "norm_topk_prob": true,
            "partial_rotary_factor": null, "num_hidden_layers": null, "layers_block_type": "by heads of keys", "mlp_hidden_act": "relu2" }"#,
        changes: &[
            Change::Decay(".mixer."),
            Change::Convolution,
            Change::ExpertsApart {
                of: ".mixer.experts.",
                names: ["gate_proj", "up_proj", "down_proj"],
            },
        ],
    },
];

const LATENT: [(&str, &str); 9] = [
    SHARED[0],
    SHARED[1],
    SHARED[2],
    (".attn_q_a.", ".self_attn.q_a_proj."),
    (".attn_q_a_norm.", ".self_attn.q_a_layernorm."),
    (".attn_q_b.", ".self_attn.q_b_proj."),
    (".attn_kv_a_mqa.", ".self_attn.kv_a_proj_with_mqa."),
    (".attn_kv_a_norm.", ".self_attn.kv_a_layernorm."),
    (".attn_kv_b.", ".self_attn.kv_b_proj."),
];

const DELTA_NET: [(&str, &str); 9] = [
    (".attn_qkv.", ".linear_attn.in_proj_qkv."),
    (".attn_gate.", ".linear_attn.in_proj_z."),
    (".ssm_beta.", ".linear_attn.in_proj_b."),
    (".ssm_alpha.", ".linear_attn.in_proj_a."),
    (".ssm_ba.", ".linear_attn.in_proj_ba."),
    (".ssm_conv1d.", ".linear_attn.conv1d."),
    (".ssm_dt.bias", ".linear_attn.dt_bias"),
    (".ssm_norm.", ".linear_attn.norm."),
    (".ssm_out.", ".linear_attn.out_proj."),
];

const DELTA_NET_SETTINGS: [(&str, &str); 10] = [
    EXPERTS,
    INNER,
    ("num_experts", "expert_count"),
    ("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    ("full_attention_interval", "full_attention_interval"),
    ("linear_conv_kernel_dim", "ssm.conv_kernel"),
    ("linear_num_key_heads", "ssm.group_count"),
    ("linear_num_value_heads", "ssm.time_step_rank"),
    ("linear_key_head_dim", "ssm.state_size"),
    ("linear_value_head_dim", "ssm.state_size"),
];

const NEMOTRON: [(&str, &str); 19] = [
    BACKBONE[0],
    BACKBONE[1],
    BACKBONE[2],
    BACKBONE[3],
    BACKBONE[4],
    BACKBONE[5],
    BACKBONE[6],
    BACKBONE[7],
    BACKBONE[8],
    (".attn_q.", ".mixer.q_proj."),
    (".attn_k.", ".mixer.k_proj."),
    (".attn_v.", ".mixer.v_proj."),
    (".attn_output.", ".mixer.o_proj."),
    (".exp_probs_b.bias", ".mixer.gate.e_score_correction_bias"),
    (".ffn_gate_inp.", ".mixer.gate."),
    (".ffn_up_shexp.", ".mixer.shared_experts.up_proj."),
    (".ffn_down_shexp.", ".mixer.shared_experts.down_proj."),
    (".ffn_up.", ".mixer.up_proj."),
    (".ffn_down.", ".mixer.down_proj."),
];
