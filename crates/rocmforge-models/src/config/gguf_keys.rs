//! GGUF metadata of one architecture: keys that are read, and the list of those that are not.
//!
//! [`Keys`] notes what is read. [`Keys::finish`] refuses the other keys under the architecture's name (`llama.*`), unless the lists here
//! know them. Other prefixes say nothing about what the model computes; `general.type` must name a model.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rocmforge_gguf::{Metadata, Value};

use super::PerLayer;
use crate::ModelError;
use crate::arch::Architecture;
use crate::settings::{Fixed, Known, Literal, fixed, is_off_gguf, shortened};

/// Notes of converters, and settings of uses that are no decoding.
const IGNORED: &[&str] = &[
    // The norms of these architectures are RMS norms, whatever else a converter found.
    "attention.layer_norm_epsilon",
    "decoder_start_token_id",
    "pooling_type",
    // The number of tokens decides where there are any.
    "vocab_size",
    "rope.scaling.finetuned",
    "tensor_data_layout",
];

/// Settings of layers with a window, where no layer has one.
const WINDOW_LAYERS: &[&str] = &[
    "attention.key_length_swa",
    "attention.sliding_window_pattern",
    "attention.value_length_swa",
    "rope.dimension_count_swa",
    "rope.freq_base_swa",
];

/// llama.cpp computes Phi-3 without its window, because converters state it in several ways.
const PHI3_WINDOW: &[&str] = &["attention.sliding_window"];

/// What a rule for long contexts has beside its factor, where the rule is not YaRN.
const YARN: &[&str] = &["rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"];

const FIXED: &[Fixed] = &[
    fixed("attention.causal", &[Literal::Bool(true)]),
    // -1 stands for no value.
    fixed(
        "rope.scaling.yarn_ext_factor",
        &[Literal::Number(0.0), Literal::Number(-1.0)],
    ),
    fixed("rope.scaling.yarn_attn_factor", &[Literal::Number(1.0)]),
    fixed("rope.scaling.yarn_log_multiplier", &[Literal::Number(0.0)]),
];

/// Settings that turn something on where they are not 0; llama.cpp writes all of them into the files that it saves.
const FEATURES: &[(&str, &str)] = &[
    ("attention.clamp_kqv", "a bound of queries, keys and values"),
    ("attention.group_norm_epsilon", "group norms"),
    ("attention.group_norm_groups", "group norms"),
    ("attention.kv_lora_rank", "latent attention"),
    ("attention.max_alibi_bias", "ALiBi"),
    ("attention.output_scale", "a factor on the attention's output"),
    ("attention.q_lora_rank", "latent attention"),
    ("attention.recurrent_layers", "recurrent layers"),
    ("attention.relative_buckets_count", "relative positions"),
    ("attention.shared_kv_layers", "layers that share keys and values"),
    ("attention.temperature_length", "attention with a temperature"),
    ("attention.temperature_scale", "attention with a temperature"),
    ("attention.value_scale", "a factor on values"),
    ("decoder_block_count", "an encoder"),
    ("embedding_scale", "a factor on embeddings"),
    ("expert_gating_func", "mixture of experts"),
    ("expert_group_count", "mixture of experts"),
    ("expert_group_used_count", "mixture of experts"),
    ("expert_shared_count", "mixture of experts"),
    ("expert_shared_feed_forward_length", "mixture of experts"),
    ("expert_weights_scale", "mixture of experts"),
    ("interleave_moe_layer_step", "mixture of experts"),
    ("leading_dense_block_count", "mixture of experts"),
    ("logit_scale", "a factor on logits"),
    ("moe_every_n_layers", "mixture of experts"),
    ("n_deepstack_layers", "image features in several layers"),
    ("nextn_predict_layers", "layers that predict further tokens"),
    ("residual_scale", "a factor on the branches"),
    ("rope.dimension_sections", "positions with several axes"),
    ("rope.scaling.alpha", "a base that grows with the context"),
    ("router_logit_softcapping", "mixture of experts"),
    ("swin_norm", "Swin norms"),
    ("use_parallel_residual", "parallel branches"),
];

/// Keys of experts that are plain: a softmax over all scores chooses, and the chosen factors sum up to 1.
const EXPERTS: &[(&str, &str)] = &[
    ("expert_count", "mixture of experts"),
    ("expert_feed_forward_length", "mixture of experts"),
    ("expert_used_count", "mixture of experts"),
    ("expert_weights_norm", "mixture of experts"),
];

const NO_WINDOW: &[(&str, &str)] = &[("attention.sliding_window", "a sliding window")];

/// Keys of architectures without a window.
pub(crate) const PLAIN: Known = Known {
    ignored: &[IGNORED, YARN, WINDOW_LAYERS],
    fixed: &[FIXED],
    features: &[FEATURES, EXPERTS, NO_WINDOW],
};

/// Keys of architectures whose window is not applied.
pub(crate) const WINDOW_NOT_APPLIED: Known = Known {
    ignored: &[IGNORED, YARN, WINDOW_LAYERS, PHI3_WINDOW],
    features: &[FEATURES, EXPERTS],
    ..PLAIN
};

/// Keys of architectures with a window.
pub(crate) const WITH_WINDOW: Known = Known {
    ignored: &[IGNORED, YARN],
    features: &[FEATURES, EXPERTS],
    ..PLAIN
};

/// Keys of architectures with experts and without a window. llama.cpp normalises their factors whatever the file says.
pub(crate) const WITH_EXPERTS: Known = Known {
    ignored: &[IGNORED, YARN, WINDOW_LAYERS, &["expert_weights_norm"]],
    features: &[FEATURES, NO_WINDOW],
    ..PLAIN
};

/// Metadata keys of one architecture: `llama.block_count` is `block_count` here.
pub(super) struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'static Architecture,
    read: RefCell<BTreeSet<String>>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(metadata: &'a Metadata, architecture: &'static Architecture) -> Self {
        Self {
            metadata,
            architecture,
            read: RefCell::default(),
        }
    }

    /// The key with the architecture's name, without reading it.
    pub(super) fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture.name)
    }

    /// The key with the architecture's name, which is read.
    fn key(&self, key: &str) -> String {
        self.read.borrow_mut().insert(key.to_owned());
        self.name(key)
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Value> {
        self.metadata.get(&self.key(key))
    }

    pub(super) fn usize(&self, key: &str) -> Result<usize, ModelError> {
        Ok(self.metadata.usize(&self.key(key))?)
    }

    pub(super) fn opt_usize(&self, key: &str) -> Result<Option<usize>, ModelError> {
        Ok(self.metadata.opt_usize(&self.key(key))?)
    }

    pub(super) fn opt_f32(&self, key: &str) -> Result<Option<f32>, ModelError> {
        Ok(self.metadata.opt_f32(&self.key(key))?)
    }

    /// A number for which 0 stands for no value.
    pub(super) fn opt_f32_not_zero(&self, key: &str) -> Result<Option<f32>, ModelError> {
        Ok(self.opt_f32(key)?.filter(|&value| value != 0.0))
    }

    pub(super) fn opt_string(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        Ok(self.metadata.opt_string(&self.key(key))?)
    }

    /// A number for all layers, or a list with one for each.
    pub(super) fn per_layer(&self, key: &str, layers: usize) -> Result<Option<PerLayer>, ModelError> {
        let Some(Value::Array(array)) = self.value(key) else {
            return Ok(self.opt_usize(key)?.map(PerLayer::all));
        };
        if array.len() != layers {
            return Err(ModelError::Hyperparameter {
                key: self.name(key),
                value: format!("a list of {} entries", array.len()),
                rule: "it must be one number, or one for each layer",
            });
        }
        let values = self.metadata.u32s(&self.name(key))?;
        Ok(PerLayer::each(values.iter().map(|&value| value as usize).collect()))
    }

    pub(super) fn missing(&self, key: &str) -> ModelError {
        ModelError::MissingKey { key: self.name(key) }
    }

    /// Refuses features that the file turns on, before anything else is asked of it.
    pub(super) fn refuse_features(&self) -> Result<(), ModelError> {
        for (key, feature) in self.architecture.gguf.features.iter().flat_map(|list| list.iter()) {
            let value = self.metadata.get(&self.name(key));
            if let Some(value) = value.filter(|value| !is_off_gguf(value)) {
                return Err(ModelError::Feature {
                    feature,
                    key: (*key).to_owned(),
                    value: shortened(&value.to_string()),
                });
            }
        }
        Ok(())
    }

    /// Refuses keys of the architecture that nothing has read, unless they are known to leave the numbers as they are.
    pub(super) fn finish(self) -> Result<(), ModelError> {
        let known = &self.architecture.gguf;
        let prefix = self.name("");
        for (name, value) in self.metadata.iter() {
            let Some(key) = name.strip_prefix(&prefix) else {
                continue;
            };
            // Features have been asked for before.
            if self.read.borrow().contains(key) || known.ignores(key) || known.feature(key).is_some() {
                continue;
            }
            let shown = || shortened(&value.to_string());
            if let Some(row) = known.fixed(key) {
                if row.allows_gguf(value) {
                    continue;
                }
                return Err(ModelError::UnsupportedKey {
                    key: name.to_owned(),
                    value: shown(),
                    supported: row.supported(),
                });
            }
            return Err(ModelError::UnknownKey {
                key: shortened(name),
                value: shown(),
                architecture: self.architecture.name,
            });
        }
        match self.metadata.get("general.type") {
            Some(Value::String(kind)) if kind != "model" => Err(ModelError::UnsupportedKey {
                key: "general.type".to_owned(),
                value: shortened(kind),
                supported: "model".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}
