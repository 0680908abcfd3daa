//! Names and bounds of hyper-parameters that several readers ask for.

use crate::keys::{Key, Within};

pub(crate) const LAYERS: Key = Key("block_count", "num_hidden_layers");
pub(crate) const WIDTH: Key = Key("embedding_length", "hidden_size");
pub(crate) const FF: Key = Key("feed_forward_length", "intermediate_size");
pub(crate) const HEADS: Key = Key("attention.head_count", "num_attention_heads");
pub(super) const KV_HEADS: Key = Key("attention.head_count_kv", "num_key_value_heads");
pub(crate) const VOCAB: Key = Key("vocab_size", "vocab_size");
pub(crate) const CONTEXT: Key = Key("context_length", "max_position_embeddings");
pub(crate) const TIED: Key = Key("", "tie_word_embeddings");

/// Lists of layers are made before a tensor is looked for: no model has more.
pub(crate) const MOST_LAYERS: Within = Within(1..=512, "it must be 1 to 512");
pub(crate) const SIZE: Within = Within(1..=1 << 28, "it must be 1 to 2^28");
/// Of what a layer may lack.
pub(super) const SIZE_OR_NONE: Within = Within(0..=1 << 28, "it must be 0 to 2^28");
pub(super) const COUNT_OR_NONE: Within = Within(0..=1 << 16, "it must be 0 to 65536");
pub(super) const COUNT: Within = Within(1..=1 << 16, "it must be 1 to 65536");
pub(super) const HEAD: Within = Within(1..=640, "heads of 1 to 640 elements are supported");
