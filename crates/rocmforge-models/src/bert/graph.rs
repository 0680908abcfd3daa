//! The encoder as a graph.

use rocmforge_ggml::{Attention, AttentionMask, DType, GgmlResult, Graph, Layout, Op, TensorDesc, TensorId};

use super::{BertConfig, Pooling};
use crate::ModelError;

/// Tensors to be filled before a run.
#[derive(Clone, Copy, Debug)]
pub struct BertInputs {
    /// Token ids, u32 `[batch, seq]`.
    pub ids: TensorId,
    /// Positions, u32 `[seq]`.
    pub positions: TensorId,
    /// Token types, u32 `[batch, seq]`.
    pub token_types: TensorId,
    /// Attention mask, f32 `[batch, seq]`: 0 or -inf.
    pub mask: TensorId,
    /// Pooling weights, f32 `[batch, seq]`.
    pub pool_weights: TensorId,
}

/// The graph and its tensors by name.
#[derive(Clone, Debug)]
pub struct BertGraph {
    /// The graph; its outputs are marked.
    pub graph: Graph,
    /// Tensors to be filled before a run.
    pub inputs: BertInputs,
    /// Tensors that hold weights, with the weights' names.
    pub weights: Vec<(TensorId, String)>,
    /// Hidden states `[batch, seq, hidden]`: after the embedding layer, then after every encoder layer.
    pub hidden: Vec<TensorId>,
    /// The result, `[batch, hidden]`.
    pub embedding: TensorId,
}

/// Every weight that the encoder uses, with its shape in the file.
pub(super) fn weight_shapes(config: &BertConfig) -> Vec<(String, Vec<usize>)> {
    let (h, i) = (config.hidden_size, config.intermediate_size);
    let mut all = vec![
        (
            "embeddings.word_embeddings.weight".to_owned(),
            vec![config.vocab_size, h],
        ),
        (
            "embeddings.position_embeddings.weight".to_owned(),
            vec![config.max_position_embeddings, h],
        ),
        (
            "embeddings.token_type_embeddings.weight".to_owned(),
            vec![config.type_vocab_size, h],
        ),
        ("embeddings.LayerNorm.weight".to_owned(), vec![h]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![h]),
    ];
    for layer in 0..config.num_hidden_layers {
        for (part, out, input) in [
            ("attention.self.query", h, h),
            ("attention.self.key", h, h),
            ("attention.self.value", h, h),
            ("attention.output.dense", h, h),
            ("intermediate.dense", i, h),
            ("output.dense", h, i),
        ] {
            all.push((format!("encoder.layer.{layer}.{part}.weight"), vec![out, input]));
            all.push((format!("encoder.layer.{layer}.{part}.bias"), vec![out]));
        }
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            all.push((format!("encoder.layer.{layer}.{part}.weight"), vec![h]));
            all.push((format!("encoder.layer.{layer}.{part}.bias"), vec![h]));
        }
    }
    all
}

struct Builder<'a> {
    graph: Graph,
    weights: Vec<(TensorId, String)>,
    config: &'a BertConfig,
}

impl Builder<'_> {
    fn weight(&mut self, name: String, desc: TensorDesc) -> TensorId {
        let id = self.graph.add_tensor(desc);
        self.weights.push((id, name));
        id
    }

    fn table(&mut self, name: &str, rows: usize) -> TensorId {
        self.weight(
            format!("embeddings.{name}.weight"),
            TensorDesc::f32([rows, self.config.hidden_size]),
        )
    }

    /// A dense layer: the file has `[out, in]`, which is an `[in, out]` matrix in column-major order.
    fn dense(&mut self, x: TensorId, name: &str, input: usize, output: usize) -> GgmlResult<TensorId> {
        let weight = self.weight(
            format!("{name}.weight"),
            TensorDesc::new([input, output], DType::F32, Layout::ColMajor),
        );
        let bias = self.weight(format!("{name}.bias"), TensorDesc::f32([output]));
        self.graph.push(Op::MulMat, &[x, weight, bias])
    }

    fn layer_norm(&mut self, x: TensorId, name: &str) -> GgmlResult<TensorId> {
        let weight = self.weight(format!("{name}.weight"), TensorDesc::f32([self.config.hidden_size]));
        let bias = self.weight(format!("{name}.bias"), TensorDesc::f32([self.config.hidden_size]));
        self.graph.push(
            Op::LayerNorm {
                eps: self.config.layer_norm_eps,
            },
            &[x, weight, bias],
        )
    }

    fn layer(&mut self, x: TensorId, mask: TensorId, layer: usize) -> GgmlResult<TensorId> {
        let (h, i) = (self.config.hidden_size, self.config.intermediate_size);
        let at = |part: &str| format!("encoder.layer.{layer}.{part}");
        let q = self.dense(x, &at("attention.self.query"), h, h)?;
        let k = self.dense(x, &at("attention.self.key"), h, h)?;
        let v = self.dense(x, &at("attention.self.value"), h, h)?;
        let attention = Op::Attention(Attention {
            heads: self.config.num_attention_heads,
            kv_heads: self.config.num_attention_heads,
            head_dim: self.config.head_dim(),
            scale: 1.0 / (self.config.head_dim() as f32).sqrt(),
            causal: false,
            mask: AttentionMask::Additive,
        });
        let context = self.graph.push(attention, &[q, k, v, mask])?;
        let projected = self.dense(context, &at("attention.output.dense"), h, h)?;
        let sum = self.graph.push(Op::Add, &[projected, x])?;
        let attended = self.layer_norm(sum, &at("attention.output.LayerNorm"))?;
        let wide = self.dense(attended, &at("intermediate.dense"), h, i)?;
        let active = self.graph.push(Op::Unary(self.config.activation), &[wide])?;
        let narrow = self.dense(active, &at("output.dense"), i, h)?;
        let sum = self.graph.push(Op::Add, &[narrow, attended])?;
        self.layer_norm(sum, &at("output.LayerNorm"))
    }
}

pub(super) fn build(config: &BertConfig, pooling: Pooling, batch: usize, seq: usize) -> Result<BertGraph, ModelError> {
    let mut b = Builder {
        graph: Graph::new(),
        weights: Vec::new(),
        config,
    };
    let inputs = BertInputs {
        ids: b.graph.add_tensor(TensorDesc::u32([batch, seq])),
        positions: b.graph.add_tensor(TensorDesc::u32([seq])),
        token_types: b.graph.add_tensor(TensorDesc::u32([batch, seq])),
        mask: b.graph.add_tensor(TensorDesc::f32([batch, seq])),
        pool_weights: b.graph.add_tensor(TensorDesc::f32([batch, seq])),
    };
    let words = b.table("word_embeddings", config.vocab_size);
    let positions = b.table("position_embeddings", config.max_position_embeddings);
    let types = b.table("token_type_embeddings", config.type_vocab_size);
    let words = b.graph.push(Op::GetRows, &[words, inputs.ids])?;
    let types = b.graph.push(Op::GetRows, &[types, inputs.token_types])?;
    let positions = b.graph.push(Op::GetRows, &[positions, inputs.positions])?;
    let sum = b.graph.push(Op::Add, &[words, types])?;
    let sum = b.graph.push(Op::Add, &[sum, positions])?;
    let mut x = b.layer_norm(sum, "embeddings.LayerNorm")?;
    let mut hidden = vec![x];
    for layer in 0..config.num_hidden_layers {
        x = b.layer(x, inputs.mask, layer)?;
        hidden.push(x);
    }
    let mut embedding = b.graph.push(Op::MeanPool, &[x, inputs.pool_weights])?;
    if pooling.normalize {
        embedding = b.graph.push(Op::L2Norm { eps: 1e-12 }, &[embedding])?;
    }
    for &id in hidden.iter().chain([&embedding]) {
        b.graph.mark_output(id);
    }
    Ok(BertGraph {
        graph: b.graph,
        inputs,
        weights: b.weights,
        hidden,
        embedding,
    })
}
