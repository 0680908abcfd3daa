//! Rules of a `model_type`: what an absent key of config.json stands for, and the lists of keys that it may have.
//!
//! The defaults are those of the library `transformers`, which writes these files. Keys that are read are in `json.rs` and `json_rope.rs`;
//! the lists here name the others. A key on no list is refused. Each architecture's file has its rules.

use crate::settings::{Fixed, Known, Literal, fixed};

/// Which layers see a sliding window only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum JsonWindow {
    /// None.
    Never,
    /// All, if `sliding_window` is not null.
    Every {
        /// Where the key is absent.
        window: Option<usize>,
    },
    /// With `use_sliding_window`, those from `max_window_layers` on, or those that `layer_types` names.
    Upper {
        /// Where `sliding_window` is absent.
        window: usize,
        /// Where `max_window_layers` is absent.
        from: usize,
    },
    /// All but the last of every `sliding_window_pattern` layers, or those that `layer_types` names.
    Pattern {
        /// Where `sliding_window` is absent.
        window: usize,
        /// Where `sliding_window_pattern` is absent.
        period: usize,
    },
}

/// How config.json of one `model_type` is read.
#[derive(Debug)]
pub(crate) struct JsonRules {
    pub(crate) model_type: &'static str,
    /// `head_dim` where the key is absent, if not width / heads.
    pub(crate) head_dim: Option<usize>,
    /// `num_key_value_heads` where the key is absent, if not the number of heads.
    pub(crate) kv_heads: Option<usize>,
    /// `rope_theta` where the key is absent.
    pub(crate) theta: f32,
    /// The base of layers with a window, where they have settings of their own.
    pub(crate) window_theta: Option<f32>,
    /// `original_max_position_embeddings` of the file itself, where the model has this setting and the key is absent.
    pub(crate) original_context: Option<usize>,
    /// `tie_word_embeddings` where the key is absent.
    pub(crate) tied: bool,
    /// `query_pre_attn_scalar` where the model has this setting and the key is absent.
    pub(crate) score_divisor: Option<f32>,
    pub(crate) window: JsonWindow,
    /// Experts, where the model has them.
    pub(crate) experts: Option<JsonExperts>,
    pub(crate) known: Known,
}

/// Experts where their keys are absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonExperts {
    /// `num_experts`.
    pub(crate) count: usize,
    /// `num_experts_per_tok`.
    pub(crate) used: usize,
    /// `moe_intermediate_size`.
    pub(crate) inner: usize,
    /// `norm_topk_prob`.
    pub(crate) normalised: bool,
}

/// Where the file comes from, how it is to be held in memory, and what a training run did.
pub(crate) const OF_THE_FILE: &[&str] = &[
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_attn_implementation_internal",
    "_commit_hash",
    "_experts_implementation_internal",
    "_flash_attn_2_enabled",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "auto_map",
    "cache_implementation",
    "chunk_size_feed_forward",
    "dtype",
    "gradient_checkpointing",
    "initializer_range",
    "is_llama_config",
    "keys_to_ignore_at_inference",
    "model_max_length",
    "name_or_path",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "return_dict",
    "return_dict_in_generate",
    "tf_legacy_loss",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_flash_attention",
];

/// Dropout, which works in training only.
pub(crate) const DROPOUT: &[&str] = &[
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "classifier_dropout",
    "embd_pdrop",
    "hidden_dropout",
    "hidden_dropout_prob",
    "resid_pdrop",
];

/// Heads that other tasks put on top of the model.
pub(crate) const TASKS: &[&str] = &[
    "_num_labels",
    "finetuning_task",
    "id2label",
    "label2id",
    "num_labels",
    "prefix",
    "problem_type",
    "sbert_ce_default_activation_function",
    "sentence_transformers",
    "task_specific_params",
];

/// Ids that belong to the tokenizer, and defaults of sampling, which requests state here.
pub(crate) const GENERATION: &[&str] = &[
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "cls_token_id",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "mask_token_id",
    "max_length",
    "max_new_tokens",
    "max_sequence_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "pad_token_id",
    "remove_invalid_values",
    "repetition_penalty",
    "sep_token_id",
    "suppress_tokens",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "unk_token_id",
];

/// The lists that every model's file may draw on.
pub(crate) const IGNORED: &[&[&str]] = &[OF_THE_FILE, DROPOUT, TASKS, GENERATION];

const FALSE: &[Literal] = &[Literal::Bool(false)];
const ONE: &[Literal] = &[Literal::Number(1.0)];

/// Parts that no decoder here has.
pub(crate) const DECODERS: &[Fixed] = &[
    fixed("add_cross_attention", FALSE),
    fixed("attention_bias", FALSE),
    fixed("full_attn_mod", ONE),
    fixed("interpolate_factor", ONE),
    fixed("is_encoder_decoder", FALSE),
    fixed("lm_head_bias", FALSE),
    fixed("mlp_bias", FALSE),
    fixed("pretraining_tp", ONE),
    fixed("rope_interleaved", FALSE),
    fixed("use_mrope", FALSE),
];

pub(crate) const SILU: &[Fixed] = &[fixed("hidden_act", &[Literal::Text("silu")])];

pub(crate) const GELU_TANH: &[Fixed] = &[
    fixed("hidden_act", &[Literal::Text("gelu_pytorch_tanh")]),
    fixed("hidden_activation", &[Literal::Text("gelu_pytorch_tanh")]),
    fixed("use_bidirectional_attention", FALSE),
];

/// Features that a file of any model may turn on.
pub(crate) const FEATURES: &[(&str, &str)] = &[
    ("audio_config", "a model with an audio part"),
    ("compression_config", "a quantised checkpoint"),
    ("cross_attention_hidden_size", "cross attention"),
    ("num_local_experts", "mixture of experts"),
    ("n_routed_experts", "mixture of experts"),
    ("per_layer_config", "layers that differ"),
    ("pruned_heads", "pruned heads"),
    ("quantization", "a quantised checkpoint"),
    ("quantization_config", "a quantised checkpoint"),
    ("text_config", "a model with parts beside the text model"),
    ("tie_encoder_decoder", "an encoder"),
    ("vision_config", "a model with an image part"),
];

/// Experts, where a model has none.
pub(crate) const NO_EXPERTS: &[(&str, &str)] = &[
    ("num_experts", "mixture of experts"),
    ("num_experts_per_tok", "mixture of experts"),
];

/// [`IGNORED`], and what has no effect where nothing turns the window on.
pub(crate) const IGNORED_AND_WINDOW_LAYERS: &[&[&str]] =
    &[OF_THE_FILE, DROPOUT, TASKS, GENERATION, &["max_window_layers"]];

/// [`IGNORED`], and a key of architectures that have these biases or not whatever the file says.
pub(crate) const IGNORED_AND_ATTENTION_BIAS: &[&[&str]] =
    &[OF_THE_FILE, DROPOUT, TASKS, GENERATION, &["attention_bias"]];

/// [`IGNORED`], and what works on a router in training only.
pub(crate) const IGNORED_AND_ROUTER_TRAINING: &[&[&str]] = &[
    OF_THE_FILE,
    DROPOUT,
    TASKS,
    GENERATION,
    &["output_router_logits", "router_aux_loss_coef"],
];

pub(crate) const NO_WINDOW: &[(&str, &str)] = &[
    ("sliding_window", "a sliding window"),
    ("use_sliding_window", "a sliding window"),
];

/// Keys of models whose window is read.
pub(crate) const WINDOW_READ: Known = Known {
    ignored: IGNORED,
    fixed: &[DECODERS, SILU],
    features: &[FEATURES, NO_EXPERTS],
};
