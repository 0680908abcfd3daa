//! Rules of an architecture's files: what an absent key stands for, and the lists of keys that nothing reads.
//!
//! The defaults for config.json are those of the library `transformers`, which writes these files. Each architecture's file has its rules.

use rocmforge_ggml::{RopeStyle, RouteGate, Unary};

use super::{NormKind, OutputMatrix, PoolingMode, Presence, QueryGrowth};
use crate::keys::Known;
use crate::weights::LinearNames;

/// Which layers see a sliding window only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Window {
    /// None.
    Never,
    /// All, if there is a window.
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
    /// All but the last of every so many layers, or those that a list names.
    Pattern {
        /// Where the key is absent.
        window: Option<usize>,
        /// Where the key is absent.
        period: usize,
        /// Only in a model of so many layers; others of the architecture have no window.
        of: Option<usize>,
    },
    /// All but the first of every so many layers, or those that a list names.
    ButFirst {
        /// Where the key is absent.
        period: usize,
    },
    /// Chunks, in all but the last of every so many layers, or in those that a list names; in a config.json without a list in those with rotary embedding.
    Chunks {
        /// The length where a config.json has no key for it. A GGUF has no key: the length is this one, or the file says that there are no chunks.
        length: usize,
        /// Where the key is absent.
        period: usize,
    },
}

impl Window {
    /// [`Self::Pattern`] in a model of any number of layers.
    pub(crate) const fn pattern(period: usize, window: Option<usize>) -> Self {
        Self::Pattern {
            window,
            period,
            of: None,
        }
    }

    /// The same, in models of so many layers only.
    pub(crate) const fn in_models_of(self, layers: usize) -> Self {
        match self {
            Self::Pattern { window, period, .. } => Self::Pattern {
                window,
                period,
                of: Some(layers),
            },
            other => other,
        }
    }
}

/// Rotary embedding of layers with a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WindowRope {
    /// That of all layers.
    Same,
    /// That of all layers, whose base may have a key of its own.
    Base,
    /// Without a rule for long contexts, and with the base of all layers.
    Unscaled,
    /// Without a rule for long contexts, and with a base of its own: this where its key is absent.
    Own(f32),
}

/// Recurrent layers in place of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recurrent {
    /// Gated delta nets, in layers of a list or of an interval.
    DeltaNet {
        /// The heads of values of one head of keys are neighbours.
        neighbours: bool,
    },
    /// Gated delta nets that decay column by column, in layers without heads.
    KimiDelta,
    /// Short convolutions, in layers without heads.
    ShortConv,
    /// Selective scans.
    Mamba2(ScanLayers),
}

/// Layers with a selective scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanLayers {
    /// All, in place of attention; no layer has a network.
    All,
    /// All, beside attention.
    Beside,
    /// Those without heads of keys, in place of attention.
    WithoutHeads,
    /// Of the layers without a network those without heads of keys; a layer with a network has neither.
    WithoutNetwork,
}

/// Layers with rotary embedding. Without, attention does not know positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rotated {
    /// All.
    All,
    /// All but the last of every so many; a config.json may state another number, or a list. A GGUF which says that there are no chunks: all.
    AllBut(usize),
    /// Those with a window.
    Windowed,
    /// Those with a window where any layer has one, else all.
    WindowedIfAny,
    /// All, unless a GGUF says that the model was trained without; of a config.json, if it says so.
    Finetuned,
    /// None.
    Never,
}

/// Queries that grow with their position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Growth {
    /// They do not.
    Never,
    /// By a scale that the file states, with each context of the training.
    OfContext,
    /// By a scale and with each length that the file states.
    OfLength,
    /// In layers without rotary embedding: by this, unless config.json states another.
    Unrotated(QueryGrowth),
}

/// Factors that a file may state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Factors {
    /// No such.
    None,
    /// On logits.
    Logits,
    /// On values of attention.
    Values,
    /// On embeddings, on the result of each branch, and a divisor of logits, which must be there.
    Granite,
    /// On all parts of a layer, of config.json alone: conversion to GGUF multiplies the weights by them.
    FalconH1,
}

/// Scores that a file may state a bound of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softcaps {
    /// Those of attention.
    pub(crate) attention: bool,
    pub(crate) logits: bool,
    /// Bounds of both where a config.json has no key for them.
    pub(crate) absent: [Option<f32>; 2],
}

impl Softcaps {
    pub(crate) const NONE: Self = Self {
        attention: false,
        logits: false,
        absent: [None; 2],
    };
    pub(crate) const LOGITS: Self = Self {
        logits: true,
        ..Self::NONE
    };
    pub(crate) const BOTH: Self = Self {
        attention: true,
        ..Self::LOGITS
    };
}

/// Layers that read the keys and values of earlier ones, which are the last of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedCaches {
    /// No layer does so.
    Never,
    /// As many as the key says; this many where it is absent.
    Stated(usize),
    /// As many as the key says; where it is absent, all but so many at the start.
    AllBut(usize),
}

/// Several residual streams, and gates of the first layers that are mostly zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    /// Models of at most so many layers have no such gates where the key is absent; else the first ten have.
    pub(crate) dense: usize,
    /// The deviation of gates is that of a sample.
    pub(crate) sample: bool,
}

/// How files of one kind state an architecture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// `general.architecture` or `model_type`.
    pub(crate) name: &'static str,
    /// Pairs of rotary embedding: conversion to GGUF reorders the query and key rows of some.
    pub(crate) pairs: RopeStyle,
    /// Length of a head where the key is absent, if not width / heads.
    pub(crate) head_dim: Option<usize>,
    /// Length of heads in layers without a window, where a config.json states another for them, or nothing (Gemma 4).
    pub(crate) global_head_dim: Option<usize>,
    /// Key and value heads where the key is absent, if not the number of heads.
    pub(crate) kv_heads: Option<usize>,
    /// Rotary base where the key is absent.
    pub(crate) theta: f32,
    /// Rotated part of a head where the key is absent.
    pub(crate) partial_rotary: f64,
    /// The rule `dynamic` has a constant `alpha`, which stretches the base.
    pub(crate) alpha: bool,
    /// Pairs of rotary embedding where the file states sections of several axes; `None`: it must not. Text has the same position on each axis.
    pub(crate) sections: Option<RopeStyle>,
    /// Divisors of the frequencies that a file has are not used.
    pub(crate) unused_divisors: bool,
    pub(crate) window_rope: WindowRope,
    pub(crate) rotated: Rotated,
    pub(crate) growth: Growth,
    /// Models with this many experts do not normalise queries and keys; a config.json states it.
    pub(crate) unnormed_experts: Option<usize>,
    pub(crate) norm: NormKind,
    pub(crate) factors: Factors,
    pub(crate) recurrent: Option<Recurrent>,
    /// Attention is latent.
    pub(crate) latent: bool,
    /// Length of the vector that its queries follow from where the key is absent from a config.json; `None`: they follow from the input.
    pub(crate) query_rank: Option<usize>,
    /// What a config.json cannot state: [`DecoderConfig::inner_eps`](super::DecoderConfig), if not that of the other norms.
    pub(crate) inner_eps: Option<f32>,
    /// Name of the norm before the output matrix.
    pub(crate) output_norm: LinearNames,
    /// Layers behind the others may predict further tokens.
    pub(crate) predictors: bool,
    /// `original_max_position_embeddings` of the file itself, where the model has this setting and the key is absent.
    pub(crate) original_context: Option<usize>,
    /// The matrix of logits where `tie_word_embeddings` is absent.
    pub(crate) output: OutputMatrix,
    /// `query_pre_attn_scalar` where the model has this setting and the key is absent.
    pub(crate) score_divisor: Option<f32>,
    /// The factor on scores of a model without such a setting, if not that of the head's length.
    pub(crate) score_factor: Option<f32>,
    /// Which scores have a bound where the file states one.
    pub(crate) softcaps: Softcaps,
    /// With this many layers, scores are divided by the square root of width / heads and not of the head's length.
    pub(crate) wide_scale_layers: Option<usize>,
    pub(crate) window: Window,
    /// Names of the width of networks in a config.json, of which the first that is there counts.
    pub(crate) ff: &'static str,
    /// In a config.json the width of networks may be a part of what is stated (LFM 2).
    pub(crate) adjusted_ff: bool,
    pub(crate) shared_caches: SharedCaches,
    /// Elements that each layer is given of a token beside the residual stream, where the key is absent; `None`: there is no such key.
    pub(crate) layer_inputs: Option<usize>,
    pub(crate) streams: Option<Streams>,
    /// Names of settings, with those that other files have for them.
    pub(crate) renamed: &'static [(&'static str, &'static str)],
    /// Experts of a checkpoint may be of MXFP4.
    pub(crate) mxfp4: bool,
    /// Experts, where the model has them.
    pub(crate) experts: Option<Experts>,
    /// What encoders have.
    pub(crate) texts: Option<TextRules>,
    /// A classifier gives two scores, of yes and of no, where a file has one.
    pub(crate) answers: bool,
    pub(crate) known: Known,
}

/// What encoders have beside layers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextRules {
    /// Types of tokens where the key is absent; `None`: it has none.
    pub(crate) types: Option<usize>,
    pub(crate) positions: Positions,
    /// Embeddings are normalised before the first layer.
    pub(crate) embedding_norm: bool,
    /// ALiBi's largest bias; 0: it has none.
    pub(crate) alibi: f32,
    /// The activation where the key is absent.
    pub(crate) activation: Unary,
    /// What a classifier takes where the key is absent: the mean of all states, or the first; `None`: its classifiers are of another form.
    pub(crate) classifies: Option<PoolingMode>,
    /// Added to the variance by the norms of a config.json where the key is absent.
    pub(crate) eps: Option<f32>,
}

/// A table of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Positions {
    /// The model has no such table.
    None,
    /// Its first row is the first position's.
    Table,
    /// In a checkpoint the row after the padding token's id is the first position's.
    AfterPadding,
}

/// Experts where their keys are absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experts {
    pub(crate) count: usize,
    /// `None`: the key must be there.
    pub(crate) used: Option<usize>,
    pub(crate) inner: ExpertWidth,
    pub(crate) normalised: bool,
    pub(crate) gate: RouteGate,
    pub(crate) choice_bias: Presence,
    /// As [`ExpertsConfig::on_input`](super::ExpertsConfig).
    pub(crate) on_input: bool,
    /// Which of the settings a GGUF may state.
    pub(crate) keys: ExpertKeys,
    pub(crate) shared: Option<SharedExpert>,
    /// In a config.json: layers before the first with experts, the factor on results, and groups with how many are chosen from.
    pub(crate) first_dense: usize,
    pub(crate) factor: Option<f32>,
    pub(crate) groups: [usize; 2],
}

impl Experts {
    /// Those of a GGUF: a softmax, and factors that sum up to 1.
    pub(crate) const GGUF: Self = Self {
        count: 0,
        used: None,
        inner: ExpertWidth::StatedOrPart,
        normalised: true,
        gate: RouteGate::SoftMax,
        choice_bias: Presence::Never,
        on_input: false,
        keys: ExpertKeys::NONE,
        shared: None,
        first_dense: 0,
        factor: None,
        groups: [0; 2],
    };
}

/// Settings of experts that a GGUF may state. llama.cpp ignores the keys of others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertKeys {
    /// Kind of the gate.
    pub(crate) gate: bool,
    /// Whether factors are divided by their sum.
    pub(crate) normalised: bool,
    /// A factor on the results.
    pub(crate) factor: bool,
    /// The first layers have no experts.
    pub(crate) first_dense: bool,
    /// Of the others each so many have experts.
    pub(crate) step: bool,
    /// The same, from the second layer on; without the key no layer has any.
    pub(crate) every: bool,
}

impl ExpertKeys {
    pub(crate) const NONE: Self = Self {
        gate: false,
        normalised: false,
        factor: false,
        first_dense: false,
        step: false,
        every: false,
    };
    /// A factor alone.
    pub(crate) const FACTOR: Self = Self {
        factor: true,
        ..Self::NONE
    };
}

/// Width of an expert.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpertWidth {
    /// That of the key, and this where it is absent.
    Stated(usize),
    /// That of the key; where it is absent, what the chosen ones have together is that of one network.
    StatedOrPart,
    /// That of one network: no key states another.
    Network,
}

/// Width of the network beside the experts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SharedWidth {
    /// That of the key, and this where it is absent.
    Stated(usize),
    /// That of the key, and that of a network without experts where it is absent.
    StatedOrNetwork,
    /// That of a network without experts: no key states another.
    Network,
    /// That of the key; where it is absent, there is no such network.
    StatedOrNone,
    /// That of an expert: no key states another.
    OfExpert,
    /// So many times that of an expert as the key of shared experts says.
    OfCount,
    /// So many times that of its key, or of an expert where it is absent.
    StatedOfCount,
}

/// The network beside the experts, where a model has one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedExpert {
    pub(crate) inner: SharedWidth,
    /// The sigmoid of a product of its input multiplies its result.
    pub(crate) gated: bool,
}

/// Keys of every config.json without effect on numbers: where the file comes from, how it is to be held in memory, what a training run did; dropout, which
/// works in training only; heads that other tasks put on top of the model; ids that belong to the tokenizer, and defaults of sampling, which requests
/// state here.
pub(crate) const IGNORED: &str = "_attn_implementation _attn_implementation_autoset _attn_implementation_internal _commit_hash \
    _experts_implementation_internal _flash_attn_2_enabled _name_or_path attn_implementation auto_map cache_implementation \
    chunk_size_feed_forward dtype gradient_checkpointing initializer_range is_llama_config keys_to_ignore_at_inference model_max_length \
    name_or_path output_attentions output_hidden_states output_past return_dict return_dict_in_generate tf_legacy_loss tokenizer_class \
    torch_dtype torchscript transformers.js_config transformers_version unsloth_fixed unsloth_version use_bfloat16 use_cache \
    use_flash_attention \
    attention_dropout attention_probs_dropout_prob attn_pdrop classifier_dropout embd_pdrop hidden_dropout hidden_dropout_prob resid_pdrop \
    _num_labels finetuning_task id2label label2id num_labels prefix problem_type sbert_ce_default_activation_function sentence_transformers \
    task_specific_params \
    bad_words_ids begin_suppress_tokens bos_token_id cls_token_id decoder_start_token_id diversity_penalty do_sample early_stopping \
    encoder_no_repeat_ngram_size eos_token_id exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id length_penalty \
    mask_token_id max_length max_new_tokens max_sequence_length min_length no_repeat_ngram_size num_beam_groups num_beams \
    num_return_sequences output_scores pad_token_id remove_invalid_values repetition_penalty sep_token_id suppress_tokens temperature top_k \
    top_p typical_p unk_token_id";

/// The norm that a model does not have.
pub(crate) const GGUF_RMS: &str = "attention.layer_norm_rms_epsilon";

/// What only the training of a router uses.
pub(crate) const ROUTER_TRAINING: &str = "output_router_logits router_aux_loss_coef router_jitter_noise";

/// Parts that no decoder here has.
pub(crate) const DECODERS: &[(&str, &str)] = &[
    ("add_cross_attention", "false"),
    ("attention_bias", "false"),
    ("full_attn_mod", "1"),
    ("interpolate_factor", "1"),
    ("is_encoder_decoder", "false"),
    ("lm_head_bias", "false"),
    ("mlp_bias", "false"),
    ("pretraining_tp", "1"),
    ("rope_interleaved", "false"),
    ("use_mrope", "false"),
];

/// Features that a config.json of any model may turn on.
pub(crate) const FEATURES: &[(&str, &str)] = &[
    ("a model with an audio part", "audio_config"),
    ("a model with an image part", "vision_config"),
    ("a model with parts beside the text model", "text_config"),
    (
        "a quantised checkpoint",
        "compression_config quantization quantization_config",
    ),
    ("an encoder", "tie_encoder_decoder"),
    ("cross attention", "cross_attention_hidden_size"),
    ("layers that differ", "per_layer_config"),
    ("mixture of experts", "n_routed_experts"),
    ("pruned heads", "pruned_heads"),
];
/// Experts, where a model has none.
pub(crate) const NO_EXPERTS: &[(&str, &str)] = &[(
    "mixture of experts",
    "num_experts num_local_experts num_experts_per_tok",
)];
/// Windows of some layers, where a model has none.
pub(crate) const NO_UPPER_WINDOW: &[(&str, &str)] = &[("a sliding window for some layers", "use_sliding_window")];

/// Keys of a config.json whose window is read.
pub(crate) const JSON: Known = Known {
    ignored: &[IGNORED],
    fixed: &[DECODERS, &[("hidden_act", "silu")]],
    features: &[FEATURES, NO_EXPERTS],
    ..Known::NOTHING
};

/// Keys of GGUF without effect on numbers: notes of converters, and settings of uses that are no decoding. The norms of these architectures are RMS norms,
/// whatever else a converter found; the number of tokens decides where there are any; YaRN, where the rule is another. The rest are settings of other
/// architectures that are not 0 where llama.cpp saves a model, which reads them for these architectures only.
pub(crate) const GGUF_IGNORED: &str = "attention.layer_norm_epsilon classifier.output_labels dense_2_feat_in dense_2_feat_out dense_3_feat_in \
    dense_3_feat_out decoder_start_token_id vocab_size rope.scaling.finetuned \
    tensor_data_layout rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow \
    activation.situ_beta attention.indexer.kpool_select_tail attention.rope_pattern attn_logit_softcapping deepstack_mapping expert_group_scale \
    final_logit_softcapping kda.gate_lower_bound router_logit_softcapping token_shift_count";
/// Settings of layers with a window, where no layer has one.
pub(crate) const GGUF_WINDOW_LAYERS: &str = "attention.key_length_swa attention.sliding_window_pattern attention.value_length_swa \
    rope.dimension_count_swa rope.freq_base_swa";

/// Settings of GGUF that turn something on where they are not 0; llama.cpp writes all of them into the files that it saves.
pub(crate) const GGUF_FEATURES: &[(&str, &str)] = &[
    ("ALiBi", "attention.max_alibi_bias"),
    (
        "Mamba layers",
        "ssm.conv_kernel ssm.dt_b_c_rms ssm.group_count ssm.inner_size ssm.state_size ssm.time_step_rank",
    ),
    (
        "RWKV layers",
        "rescale_every_n_layers time_decay_extra_dim time_mix_extra_dim wkv.head_size",
    ),
    ("Swin norms", "swin_norm"),
    ("a base that grows with the context", "rope.scaling.alpha"),
    ("a bound of queries, keys and values", "attention.clamp_kqv"),
    ("a bound of the network", "swiglu_clamp_exp swiglu_clamp_shexp"),
    (
        "a choice of keys",
        "attention.indexer.block_size attention.indexer.head_count attention.indexer.key_length attention.indexer.kpool \
        attention.indexer.local_blocks attention.indexer.top_k attention.indexer.types",
    ),
    (
        "a vocoder",
        "convnext.block_count convnext.embedding_length posnet.block_count posnet.embedding_length",
    ),
    ("another activation", "activation.situ_linear_beta"),
    ("a factor on embeddings", "embedding_scale"),
    ("a factor on logits", "logit_scale"),
    ("a factor on the attention's output", "attention.output_scale"),
    ("a factor on the branches", "residual_scale"),
    ("a factor on values", "attention.value_scale"),
    ("an encoder", "decoder_block_count"),
    (
        "attention with a temperature",
        "attention.temperature_length attention.temperature_scale",
    ),
    (
        "group norms",
        "attention.group_norm_epsilon attention.group_norm_groups",
    ),
    ("image features in several layers", "n_deepstack_layers"),
    (
        "keys in groups",
        "attention.compress_ratios attention.compress_rope_freq_base attention.output_group_count attention.output_lora_rank",
    ),
    (
        "latent attention",
        "attention.key_length_mla attention.key_length_mla_swa attention.kv_lora_rank attention.kv_lora_rank_swa attention.q_lora_rank \
         attention.value_length_mla attention.value_length_mla_swa",
    ),
    ("layers that predict further tokens", "nextn_predict_layers"),
    ("layers that share keys and values", "attention.shared_kv_layers"),
    (
        "mixture of experts",
        "expert_chunk_feed_forward_length expert_gating_func expert_group_count expert_group_used_count expert_latent_length \
         expert_weights_scale experts_per_group interleave_moe_layer_step leading_dense_block_count moe_every_n_layers",
    ),
    (
        "layers that are run again",
        "hrm.h_cycles hrm.l_cycles hrm.layers_per_stack hrm.prefix_lm",
    ),
    ("linear attention", "kda.head_dim kda.safe_gate"),
    (
        "low-rank recurrence",
        "attention.decay_lora_rank attention.gate_lora_rank attention.iclr_lora_rank attention.value_residual_mix_lora_rank",
    ),
    ("parallel branches", "use_parallel_residual"),
    ("positions with several axes", "rope.dimension_sections"),
    ("recurrent layers", "attention.recurrent_layers"),
    (
        "several residual streams",
        "attn_res.block_size hash_layer_count hyper_connection.count hyper_connection.epsilon hyper_connection.low_rank \
         hyper_connection.magnitude hyper_connection.sinkhorn_iterations",
    ),
    ("short convolutions", "shortconv.l_cache"),
    ("relative positions", "attention.relative_buckets_count"),
];
/// Experts, where an architecture has none: a softmax over all scores chooses, and the chosen factors sum up to 1.
pub(crate) const GGUF_EXPERTS: &[(&str, &str)] = &[(
    "mixture of experts",
    "expert_count expert_feed_forward_length expert_used_count expert_weights_norm",
)];
/// A network beside the experts, where an architecture has none.
pub(crate) const GGUF_SHARED_EXPERT: &[(&str, &str)] = &[(
    "a shared expert",
    "expert_shared_count expert_shared_feed_forward_length",
)];
/// A window, where an architecture has none.
pub(crate) const GGUF_WINDOW: &[(&str, &str)] = &[("a sliding window", "attention.sliding_window")];

/// Settings of GGUF that no decoder here has, at other values.
pub(crate) const GGUF_FIXED: &[(&str, &str)] = &[
    ("attention.causal", "true"),
    // -1 stands for no value.
    ("rope.scaling.yarn_ext_factor", "0 -1"),
    ("rope.scaling.yarn_attn_factor", "1"),
    ("rope.scaling.yarn_log_multiplier", "0"),
];

/// Keys of a GGUF without experts and windows.
pub(crate) const GGUF: Known = Known {
    ignored: &[GGUF_IGNORED, GGUF_WINDOW_LAYERS],
    fixed: &[GGUF_FIXED],
    features: &[GGUF_FEATURES, GGUF_EXPERTS, GGUF_SHARED_EXPERT, GGUF_WINDOW],
    ..Known::NOTHING
};
