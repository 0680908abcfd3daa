//! config.json of each `model_type`: what an absent key stands for, and the list of keys that it may have.
//!
//! The defaults are those of the library `transformers`, which writes these files. Keys that are read are in `from_config_json.rs` and
//! `json_rope.rs`; the lists here name the others. A key on no list is refused.

use crate::settings::{Fixed, Known, Literal, fixed};

/// Which layers see a sliding window only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum JsonWindow {
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
pub(super) struct JsonRules {
    pub(super) model_type: &'static str,
    /// `head_dim` where the key is absent, if not width / heads.
    pub(super) head_dim: Option<usize>,
    /// `num_key_value_heads` where the key is absent, if not the number of heads.
    pub(super) kv_heads: Option<usize>,
    /// `rope_theta` where the key is absent.
    pub(super) theta: f32,
    /// The base of layers with a window, where they have settings of their own.
    pub(super) window_theta: Option<f32>,
    /// `original_max_position_embeddings` of the file itself, where the model has this setting and the key is absent.
    pub(super) original_context: Option<usize>,
    /// `tie_word_embeddings` where the key is absent.
    pub(super) tied: bool,
    /// `query_pre_attn_scalar` where the model has this setting and the key is absent.
    pub(super) score_divisor: Option<f32>,
    pub(super) window: JsonWindow,
    pub(super) known: Known,
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
const IGNORED: &[&[&str]] = &[OF_THE_FILE, DROPOUT, TASKS, GENERATION];

const FALSE: &[Literal] = &[Literal::Bool(false)];
const ONE: &[Literal] = &[Literal::Number(1.0)];

/// Parts that no decoder here has.
const DECODERS: &[Fixed] = &[
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

const SILU: &[Fixed] = &[fixed("hidden_act", &[Literal::Text("silu")])];

const GELU_TANH: &[Fixed] = &[
    fixed("hidden_act", &[Literal::Text("gelu_pytorch_tanh")]),
    fixed("hidden_activation", &[Literal::Text("gelu_pytorch_tanh")]),
    fixed("use_bidirectional_attention", FALSE),
];

/// Features that a file of any model may turn on.
pub(crate) const FEATURES: &[(&str, &str)] = &[
    ("audio_config", "a model with an audio part"),
    ("compression_config", "a quantised checkpoint"),
    ("cross_attention_hidden_size", "cross attention"),
    ("num_experts", "mixture of experts"),
    ("num_experts_per_tok", "mixture of experts"),
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

/// Without effect where nothing turns the window on.
const WINDOW_LAYERS: &[&str] = &["max_window_layers"];

const NO_WINDOW: &[(&str, &str)] = &[
    ("sliding_window", "a sliding window"),
    ("use_sliding_window", "a sliding window"),
];

/// Llama 2 and 3, SmolLM2: what the others are compared with.
const LLAMA: JsonRules = JsonRules {
    model_type: "llama",
    head_dim: None,
    kv_heads: None,
    theta: 10_000.0,
    window_theta: None,
    original_context: None,
    tied: false,
    score_divisor: None,
    window: JsonWindow::Never,
    known: Known {
        ignored: &[OF_THE_FILE, DROPOUT, TASKS, GENERATION, WINDOW_LAYERS],
        fixed: &[DECODERS, SILU],
        features: &[FEATURES, NO_WINDOW],
    },
};

const WITHOUT_WINDOW_KEYS: Known = Known {
    ignored: IGNORED,
    fixed: &[DECODERS, SILU],
    features: &[FEATURES],
};

/// Every `model_type` that can be read.
pub(super) const JSON_RULES: &[JsonRules] = &[
    LLAMA,
    JsonRules {
        model_type: "mistral",
        kv_heads: Some(8),
        window: JsonWindow::Every { window: Some(4096) },
        known: Known {
            ignored: &[OF_THE_FILE, DROPOUT, TASKS, GENERATION, WINDOW_LAYERS],
            fixed: &[DECODERS, SILU],
            features: &[FEATURES, &[("use_sliding_window", "a sliding window for some layers")]],
        },
        ..LLAMA
    },
    JsonRules {
        model_type: "qwen2",
        kv_heads: Some(32),
        window: JsonWindow::Upper { window: 4096, from: 28 },
        known: Known {
            // The biases of query, key and value are there whatever the key says.
            ignored: &[OF_THE_FILE, DROPOUT, TASKS, GENERATION, &["attention_bias"]],
            ..WITHOUT_WINDOW_KEYS
        },
        ..LLAMA
    },
    JsonRules {
        model_type: "qwen3",
        head_dim: Some(128),
        kv_heads: Some(32),
        window: JsonWindow::Upper { window: 4096, from: 28 },
        known: WITHOUT_WINDOW_KEYS,
        ..LLAMA
    },
    JsonRules {
        model_type: "gemma3_text",
        head_dim: Some(256),
        kv_heads: Some(4),
        theta: 1_000_000.0,
        window_theta: Some(10_000.0),
        tied: true,
        score_divisor: Some(256.0),
        window: JsonWindow::Pattern {
            window: 4096,
            period: 6,
        },
        known: Known {
            fixed: &[DECODERS, GELU_TANH],
            ..WITHOUT_WINDOW_KEYS
        },
        ..LLAMA
    },
    JsonRules {
        model_type: "phi3",
        original_context: Some(4096),
        window: JsonWindow::Every { window: None },
        known: WITHOUT_WINDOW_KEYS,
        ..LLAMA
    },
];

impl JsonRules {
    /// The row with this `model_type`.
    pub(super) fn of(model_type: &str) -> Option<&'static Self> {
        JSON_RULES.iter().find(|row| row.model_type == model_type)
    }
}
