//! Tensor names: one table from what a tensor is for to its name in each kind of file.

/// What a tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are the documentation: they are the field's own.
pub enum Role {
    TokenEmbedding,
    OutputNorm,
    Output,
    RopeFactors,
    RopeFactorsShort,
    RopeFactorsLong,
    AttentionNorm,
    Query,
    Key,
    Value,
    QueryKeyValue,
    QueryBias,
    KeyBias,
    ValueBias,
    QueryNorm,
    KeyNorm,
    AttentionOutput,
    PostAttentionNorm,
    FeedForwardNorm,
    Gate,
    Up,
    GateUp,
    Down,
    PostFeedForwardNorm,
}

/// How a kind of file names tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// GGUF: `blk.0.attn_q.weight`.
    Gguf,
    /// Hugging Face: `model.layers.0.self_attn.q_proj.weight`.
    HuggingFace,
}

/// A row of the table; `*` stands for the layer. An empty name: files of this kind do not have the tensor.
struct Row {
    role: Role,
    gguf: &'static str,
    hugging_face: &'static str,
    /// The name in Hugging Face files of architectures with post norms, where it differs.
    with_post_norms: Option<&'static str>,
}

const fn row(role: Role, gguf: &'static str, hugging_face: &'static str) -> Row {
    Row {
        role,
        gguf,
        hugging_face,
        with_post_norms: None,
    }
}

const NAMES: &[Row] = &[
    row(Role::TokenEmbedding, "token_embd.weight", "model.embed_tokens.weight"),
    row(Role::OutputNorm, "output_norm.weight", "model.norm.weight"),
    row(Role::Output, "output.weight", "lm_head.weight"),
    row(Role::RopeFactors, "rope_freqs.weight", ""),
    row(Role::RopeFactorsShort, "rope_factors_short.weight", ""),
    row(Role::RopeFactorsLong, "rope_factors_long.weight", ""),
    row(
        Role::AttentionNorm,
        "blk.*.attn_norm.weight",
        "model.layers.*.input_layernorm.weight",
    ),
    row(
        Role::Query,
        "blk.*.attn_q.weight",
        "model.layers.*.self_attn.q_proj.weight",
    ),
    row(
        Role::Key,
        "blk.*.attn_k.weight",
        "model.layers.*.self_attn.k_proj.weight",
    ),
    row(
        Role::Value,
        "blk.*.attn_v.weight",
        "model.layers.*.self_attn.v_proj.weight",
    ),
    row(
        Role::QueryKeyValue,
        "blk.*.attn_qkv.weight",
        "model.layers.*.self_attn.qkv_proj.weight",
    ),
    row(
        Role::QueryBias,
        "blk.*.attn_q.bias",
        "model.layers.*.self_attn.q_proj.bias",
    ),
    row(
        Role::KeyBias,
        "blk.*.attn_k.bias",
        "model.layers.*.self_attn.k_proj.bias",
    ),
    row(
        Role::ValueBias,
        "blk.*.attn_v.bias",
        "model.layers.*.self_attn.v_proj.bias",
    ),
    row(
        Role::QueryNorm,
        "blk.*.attn_q_norm.weight",
        "model.layers.*.self_attn.q_norm.weight",
    ),
    row(
        Role::KeyNorm,
        "blk.*.attn_k_norm.weight",
        "model.layers.*.self_attn.k_norm.weight",
    ),
    row(
        Role::AttentionOutput,
        "blk.*.attn_output.weight",
        "model.layers.*.self_attn.o_proj.weight",
    ),
    row(
        Role::PostAttentionNorm,
        "blk.*.post_attention_norm.weight",
        "model.layers.*.post_attention_layernorm.weight",
    ),
    Row {
        role: Role::FeedForwardNorm,
        gguf: "blk.*.ffn_norm.weight",
        hugging_face: "model.layers.*.post_attention_layernorm.weight",
        with_post_norms: Some("model.layers.*.pre_feedforward_layernorm.weight"),
    },
    row(
        Role::Gate,
        "blk.*.ffn_gate.weight",
        "model.layers.*.mlp.gate_proj.weight",
    ),
    row(Role::Up, "blk.*.ffn_up.weight", "model.layers.*.mlp.up_proj.weight"),
    // Phi-3's GGUF calls the fused matrix by the name of one half.
    row(
        Role::GateUp,
        "blk.*.ffn_up.weight",
        "model.layers.*.mlp.gate_up_proj.weight",
    ),
    row(
        Role::Down,
        "blk.*.ffn_down.weight",
        "model.layers.*.mlp.down_proj.weight",
    ),
    row(
        Role::PostFeedForwardNorm,
        "blk.*.post_ffw_norm.weight",
        "model.layers.*.post_feedforward_layernorm.weight",
    ),
];

impl Naming {
    /// The name of a tensor; `None` if files of this kind do not have it.
    #[must_use]
    pub fn name(self, role: Role, layer: usize, post_norms: bool) -> Option<String> {
        let row = NAMES.iter().find(|row| row.role == role)?;
        let name = match self {
            Self::Gguf => row.gguf,
            Self::HuggingFace => row.with_post_norms.filter(|_| post_norms).unwrap_or(row.hugging_face),
        };
        (!name.is_empty()).then(|| name.replace('*', &layer.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_kinds() {
        let hf = |role, post| Naming::HuggingFace.name(role, 3, post).unwrap();
        assert_eq!(Naming::Gguf.name(Role::Query, 3, false).unwrap(), "blk.3.attn_q.weight");
        assert_eq!(hf(Role::Query, false), "model.layers.3.self_attn.q_proj.weight");
        // Llama calls the norm before the feed-forward network what Gemma calls the one after attention.
        assert_eq!(hf(Role::FeedForwardNorm, false), hf(Role::PostAttentionNorm, true));
        assert_eq!(
            hf(Role::FeedForwardNorm, true),
            "model.layers.3.pre_feedforward_layernorm.weight"
        );
        assert_eq!(Naming::HuggingFace.name(Role::RopeFactors, 0, false), None);
    }
}
