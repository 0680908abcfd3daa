//! Pooled states: one vector a text, or one score.

use rocmforge_ggml::{GgmlResult, Op, TensorId, Unary};

use super::{Linear, Norm, NormRule};
use crate::ModelError;
use crate::config::PoolingMode;
use crate::step::{StepGraph, Tensors, WholeTexts};
use crate::weights::{LinearNames, Name};

/// Maps of embeddings behind the pooling.
const DENSE: [LinearNames; 2] = [
    LinearNames::new("dense_2", "dense_2"),
    LinearNames::new("dense_3", "dense_3"),
];
const POOLER: LinearNames = LinearNames::new("cls", "pooler.dense");
const POOLER_NORM: LinearNames = LinearNames::new("cls.norm", "pooler.norm");
const SCORE: LinearNames = LinearNames::new("cls.output", "classifier");

/// What follows the layers of a model that reads whole texts.
#[derive(Debug)]
pub(crate) struct Pooled {
    dense: Vec<Linear>,
    /// Of a model that ranks.
    classifier: Option<Classifier>,
    /// Whether embeddings are scaled to length 1.
    normalize: bool,
}

/// Rows to scores.
#[derive(Debug)]
struct Classifier {
    /// A map before the score, with the function and the norm behind it.
    pooler: Option<(Linear, Unary, Option<Norm>)>,
    score: Linear,
}

impl Pooled {
    /// Asks for the weights: states have `width` elements.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        texts: WholeTexts,
        width: usize,
        rule: NormRule,
    ) -> Result<Self, ModelError> {
        let ranks = texts.pooling.mode == PoolingMode::Rank;
        let mut dense = Vec::new();
        if !ranks {
            let [first, second] = DENSE;
            if let Some(inner) = t.rows_of(first.weight)? {
                dense.push(Linear::new(t, first, None, [inner, width])?);
                dense.push(Linear::new(t, second, None, [width, inner])?);
            }
        }
        let classifier = ranks.then(|| Classifier::new(t, width, rule)).transpose()?;
        Ok(Self {
            dense,
            classifier,
            normalize: texts.pooling.normalize && !ranks,
        })
    }

    /// Adds the nodes: `x` are the states of all tokens.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>, x: TensorId, width: usize) -> GgmlResult<TensorId> {
        let texts = g.texts()?;
        let [count, length] = texts.shape;
        let x = g.reshape(x, [count, length, width])?;
        let mut x = g.push(Op::MeanPool, &[x, texts.pooling])?;
        if let Some(classifier) = &self.classifier {
            return classifier.build(g, x);
        }
        for dense in &self.dense {
            x = dense.build(g, x)?;
        }
        match self.normalize {
            false => Ok(x),
            true => g.push(Op::L2Norm { eps: 1e-12 }, &[x]),
        }
    }
}

impl Classifier {
    fn new(t: &mut Tensors<'_>, width: usize, rule: NormRule) -> Result<Self, ModelError> {
        let pooler = match t.has(POOLER.weight)? {
            false => None,
            true => {
                let pooler = Linear::new(t, POOLER, None, [width, width])?;
                // ModernBERT has a norm behind it, and another function.
                let norm = t
                    .has(POOLER_NORM.weight)?
                    .then(|| Norm::new(t, POOLER_NORM, width, rule));
                let norm = norm.transpose()?;
                let function = if norm.is_some() { Unary::GeluErf } else { Unary::Tanh };
                Some((pooler, function, norm))
            }
        };
        let score = Linear::new(t, SCORE, None, [1, width])?;
        Ok(Self { pooler, score })
    }

    fn build(&self, g: &mut StepGraph<'_>, mut x: TensorId) -> GgmlResult<TensorId> {
        if let Some((pooler, function, norm)) = &self.pooler {
            x = pooler.build(g, x)?;
            x = g.push(Op::Unary(*function), &[x])?;
            x = Norm::of(norm.as_ref(), g, x)?;
        }
        self.score.build(g, x)
    }
}

/// Heads that a model has, and that this use of it leaves out.
pub(crate) const OTHER_HEADS: [Name; 9] = [
    POOLER.weight,
    POOLER.bias,
    POOLER_NORM.weight,
    Name::new("cls.output.weight", "score.weight"),
    Name::new("cls.output.bias", "score.bias"),
    SCORE.weight,
    SCORE.bias,
    DENSE[0].weight,
    DENSE[1].weight,
];
