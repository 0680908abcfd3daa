//! Weights of a decoder by what they are for, with every shape checked.

use std::collections::HashSet;

use rocmforge_ggml::DType;

use super::{DecoderConfig, OutputMatrix, RopeFactors};
use crate::ModelError;
use crate::weights::{Role, Weight, WeightSource};

/// Ends of names of tensors that old checkpoints hold although they follow from the configuration.
const DERIVED: [&str; 2] = [".rotary_emb.inv_freq", ".attn_rot_embd.weight"];

/// Weights of one layer.
#[derive(Debug)]
pub(crate) struct LayerWeights {
    pub(crate) attention_norm: Weight,
    /// Query, key and value.
    pub(crate) qkv: [Weight; 3],
    pub(crate) qkv_bias: Option<[Weight; 3]>,
    pub(crate) qk_norm: Option<[Weight; 2]>,
    pub(crate) attention_output: Weight,
    pub(crate) post_attention_norm: Option<Weight>,
    pub(crate) ff_norm: Weight,
    pub(crate) gate: Weight,
    pub(crate) up: Weight,
    pub(crate) down: Weight,
    pub(crate) post_ff_norm: Option<Weight>,
}

/// Weights of a decoder.
#[derive(Debug)]
pub(crate) struct DecoderWeights {
    pub(crate) embedding: Weight,
    pub(crate) layers: Vec<LayerWeights>,
    pub(crate) output_norm: Weight,
    /// `None`: the embedding's matrix is used.
    pub(crate) output: Option<Weight>,
    /// Divisors of rotary frequencies.
    pub(crate) rope_factors: Option<Weight>,
}

/// Finds weights and checks them.
struct Finder<'a> {
    source: &'a dyn WeightSource,
    config: &'a DecoderConfig,
    layer: usize,
}

impl Finder<'_> {
    fn find(&self, role: Role) -> Result<Option<Weight>, ModelError> {
        let post_norms = self.config.architecture.post_norms;
        match self.source.naming().name(role, self.layer, post_norms) {
            Some(name) => self.source.get(&name),
            None => Ok(None),
        }
    }

    fn need(&self, role: Role) -> Result<Weight, ModelError> {
        let post_norms = self.config.architecture.post_norms;
        self.find(role)?.ok_or_else(|| ModelError::MissingTensor {
            name: self
                .source
                .naming()
                .name(role, self.layer, post_norms)
                .unwrap_or_else(|| format!("{role:?}")),
        })
    }

    fn matrix(&self, role: Role, rows: usize, cols: usize) -> Result<Weight, ModelError> {
        let weight = self.need(role)?;
        shape(&weight, &[rows, cols])?;
        Ok(weight)
    }

    /// A vector as f32.
    fn vector(&self, role: Role, len: usize) -> Result<Weight, ModelError> {
        let weight = self.need(role)?;
        shape(&weight, &[len])?;
        if weight.dtype == DType::F32 {
            return Ok(weight);
        }
        Ok(Weight::from_f32(&weight.name, &weight.to_f32()?))
    }

    /// The weight of a norm, with the 1 that some checkpoints leave out.
    fn norm(&self, role: Role, len: usize) -> Result<Weight, ModelError> {
        let weight = self.vector(role, len)?;
        let plus_one =
            self.config.architecture.norm_plus_one && self.source.naming() == crate::weights::Naming::HuggingFace;
        if !plus_one {
            return Ok(weight);
        }
        let values: Vec<f32> = weight.to_f32()?.iter().map(|w| w + 1.0).collect();
        Ok(Weight::from_f32(&weight.name, &values))
    }

    fn layer(&self) -> Result<LayerWeights, ModelError> {
        let c = self.config;
        let row = c.architecture;
        let (q_width, kv_width) = (c.heads * c.head_dim, c.kv_width());
        let (qkv, gate, up) = match self.find(Role::QueryKeyValue)? {
            Some(all) if row.fused => {
                shape(&all, &[q_width + 2 * kv_width, c.width])?;
                let (k, v) = (q_width, q_width + kv_width);
                let qkv = [all.rows(0..k), all.rows(k..v), all.rows(v..v + kv_width)];
                let both = self.matrix(Role::GateUp, 2 * c.ff, c.width)?;
                (qkv, both.rows(0..c.ff), both.rows(c.ff..2 * c.ff))
            }
            _ => {
                let qkv = [
                    self.matrix(Role::Query, q_width, c.width)?,
                    self.matrix(Role::Key, kv_width, c.width)?,
                    self.matrix(Role::Value, kv_width, c.width)?,
                ];
                let gate = self.matrix(Role::Gate, c.ff, c.width)?;
                (qkv, gate, self.matrix(Role::Up, c.ff, c.width)?)
            }
        };
        let post = |role| -> Result<Option<Weight>, ModelError> {
            row.post_norms.then(|| self.norm(role, c.width)).transpose()
        };
        Ok(LayerWeights {
            attention_norm: self.norm(Role::AttentionNorm, c.width)?,
            qkv,
            // Some checkpoints of architectures without biases were trained with them.
            qkv_bias: match row.qkv_bias || self.find(Role::QueryBias)?.is_some() {
                false => None,
                true => Some([
                    self.vector(Role::QueryBias, q_width)?,
                    self.vector(Role::KeyBias, kv_width)?,
                    self.vector(Role::ValueBias, kv_width)?,
                ]),
            },
            qk_norm: match row.qk_norm {
                false => None,
                true => Some([
                    self.norm(Role::QueryNorm, c.head_dim)?,
                    self.norm(Role::KeyNorm, c.head_dim)?,
                ]),
            },
            attention_output: self.matrix(Role::AttentionOutput, c.width, q_width)?,
            post_attention_norm: post(Role::PostAttentionNorm)?,
            ff_norm: self.norm(Role::FeedForwardNorm, c.width)?,
            gate,
            up,
            down: self.matrix(Role::Down, c.width, c.ff)?,
            post_ff_norm: post(Role::PostFeedForwardNorm)?,
        })
    }
}

fn shape(weight: &Weight, expected: &[usize]) -> Result<(), ModelError> {
    if weight.dims == expected {
        return Ok(());
    }
    Err(ModelError::TensorShape {
        name: weight.name.clone(),
        found: weight.dims.clone(),
        expected: expected.to_vec(),
    })
}

impl DecoderWeights {
    /// Finds every weight of the model and checks its shape. `context` decides between Phi-3's two lists of divisors.
    ///
    /// # Errors
    /// A tensor is missing, has another shape, or a type that cannot be used; the error names it.
    pub(crate) fn find(source: &dyn WeightSource, config: &DecoderConfig, context: usize) -> Result<Self, ModelError> {
        let finder = |layer| Finder { source, config, layer };
        let top = finder(0);
        let pairs = config.rope.n_dims / 2;
        let rope_factors = match (&config.rope_factors, config.is_long(context)) {
            (RopeFactors::Given(values), _) => Some(Weight::from_f32("rope factors", values)),
            (RopeFactors::LongRope { lists: Some(lists), .. }, Some(long)) => {
                Some(Weight::from_f32("rope factors", &lists[usize::from(long)]))
            }
            (_, Some(true)) => Some(top.vector(Role::RopeFactorsLong, pairs)?),
            (_, Some(false)) => Some(top.vector(Role::RopeFactorsShort, pairs)?),
            (_, None) => match top.find(Role::RopeFactors)? {
                Some(_) => Some(top.vector(Role::RopeFactors, pairs)?),
                None => None,
            },
        };
        if let Some(divisors) = &rope_factors {
            let values = divisors.to_f32()?;
            let wrong = values.iter().position(|value| !(value.is_finite() && *value > 0.0));
            if let Some(index) = wrong {
                return Err(ModelError::RopeFactor {
                    name: divisors.name.clone(),
                    value: values[index],
                    index,
                });
            }
        }
        let own = match config.output {
            OutputMatrix::Embedding => false,
            OutputMatrix::Own => true,
            OutputMatrix::OwnIfThere => top.find(Role::Output)?.is_some(),
        };
        let output = match own {
            true => Some(top.matrix(Role::Output, config.vocab, config.width)?),
            false => None,
        };
        let found = Self {
            embedding: top.matrix(Role::TokenEmbedding, config.vocab, config.width)?,
            layers: (0..config.layers)
                .map(|layer| finder(layer).layer())
                .collect::<Result<_, _>>()?,
            output_norm: top.norm(Role::OutputNorm, config.width)?,
            output,
            rope_factors,
        };
        found.check_unused(source, config)?;
        Ok(found)
    }

    /// Refuses a file with tensors that these weights leave out.
    fn check_unused(&self, source: &dyn WeightSource, config: &DecoderConfig) -> Result<(), ModelError> {
        let mut used: HashSet<String> = HashSet::new();
        self.each(|weight| {
            used.insert(weight.name.clone());
        });
        // Which of the lists counts depends on the context; an output matrix is a copy where the embedding's is to be taken.
        let lists = [
            Role::RopeFactors,
            Role::RopeFactorsShort,
            Role::RopeFactorsLong,
            Role::Output,
        ];
        used.extend(
            lists
                .into_iter()
                .filter_map(|role| source.naming().name(role, 0, false)),
        );
        let is_derived = |name: &str| DERIVED.iter().any(|end| name.ends_with(end));
        match source
            .names()
            .into_iter()
            .find(|name| !used.contains(*name) && !is_derived(name))
        {
            None => Ok(()),
            Some(name) => Err(ModelError::UnusedTensor {
                name: name.to_owned(),
                architecture: config.architecture.name,
            }),
        }
    }

    /// Bytes of all weights.
    pub(crate) fn bytes(&self) -> usize {
        let mut total = 0usize;
        self.each(|weight| total = total.saturating_add(weight.bytes().bytes().len()));
        total
    }

    fn each(&self, mut visit: impl FnMut(&Weight)) {
        visit(&self.embedding);
        for layer in &self.layers {
            let vectors = [&layer.attention_norm, &layer.attention_output, &layer.ff_norm];
            let matrices = [&layer.gate, &layer.up, &layer.down];
            let optional = [&layer.post_attention_norm, &layer.post_ff_norm];
            vectors.into_iter().chain(matrices).for_each(&mut visit);
            optional.into_iter().flatten().for_each(&mut visit);
            layer.qkv.iter().for_each(&mut visit);
            layer.qkv_bias.iter().flatten().for_each(&mut visit);
            layer.qk_norm.iter().flatten().for_each(&mut visit);
        }
        visit(&self.output_norm);
        self.output.iter().chain(&self.rope_factors).for_each(&mut visit);
    }
}
