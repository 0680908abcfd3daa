//! Pooled states: one vector a text, or one score.

use rocmforge_ggml::{GgmlResult, Op, TensorId, Unary};

use super::{Linear, Norm, NormRule};
use crate::ModelError;
use crate::config::{PoolingMode, Scores};
use crate::step::{Fused, StepGraph, Tensors, WholeTexts};
use crate::weights::{LinearNames, Name};

/// Maps of embeddings behind the pooling.
const DENSE: [LinearNames; 2] = [
    LinearNames::new("dense_2", "dense_2"),
    LinearNames::new("dense_3", "dense_3"),
];
const POOLER: LinearNames = LinearNames::new("cls", "pooler.dense");
const POOLER_NORM: LinearNames = LinearNames::new("cls.norm", "pooler.norm");
const SCORE: LinearNames = LinearNames::new("cls.output", "classifier");
/// Of decoders.
const DECODER_SCORE: LinearNames = LinearNames::new("", "score");

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
    score: Score,
}

/// The last map of a classifier.
#[derive(Debug)]
enum Score {
    One(Linear),
    /// Of two scores the share of the first in their softmax.
    Share(Linear),
    /// The same, with a map for each.
    ShareOfTwo([Linear; 2]),
}

impl Pooled {
    /// Asks for the weights: states have `width` elements. `logits` is the matrix of logits.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        texts: WholeTexts,
        logits: Fused,
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
        let classifier = ranks.then(|| Classifier::new(t, texts.scores, logits, width, rule));
        let classifier = classifier.transpose()?;
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
    fn new(
        t: &mut Tensors<'_>,
        scores: Scores,
        logits: Fused,
        width: usize,
        rule: NormRule,
    ) -> Result<Self, ModelError> {
        let of_token = |t: &mut Tensors<'_>, id: u32| {
            let id = id as usize;
            if id >= logits.of {
                let vocab = logits.of;
                return Err(ModelError::TokenOutOfRange { id: id as u32, vocab });
            }
            let row = Fused {
                first: id,
                ..logits.clone()
            };
            Linear::new(t, LinearNames::NONE, Some(&row), [1, width])
        };
        if let Scores::OfTokens(yes, no) = scores {
            let yes = of_token(t, yes)?;
            return Ok(Self {
                pooler: None,
                score: match no {
                    None => Score::One(yes),
                    Some(no) => Score::ShareOfTwo([yes, of_token(t, no)?]),
                },
            });
        }

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
        let is_decoder = !t.has(SCORE.weight)? && t.has(DECODER_SCORE.weight)?;
        let names = if is_decoder { DECODER_SCORE } else { SCORE };
        let score = match scores {
            Scores::Answers => Score::Share(Linear::new(t, names, None, [2, width])?),
            Scores::One | Scores::OfTokens(..) => Score::One(Linear::new(t, names, None, [1, width])?),
        };
        Ok(Self { pooler, score })
    }

    fn build(&self, g: &mut StepGraph<'_>, mut x: TensorId) -> GgmlResult<TensorId> {
        if let Some((pooler, function, norm)) = &self.pooler {
            x = pooler.build(g, x)?;
            x = g.push(Op::Unary(*function), &[x])?;
            x = Norm::of(norm.as_ref(), g, x)?;
        }
        let [first, second] = match &self.score {
            Score::One(score) => return score.build(g, x),
            Score::Share(scores) => {
                let both = scores.build(g, x)?;
                [g.columns(both, 0..1)?, g.columns(both, 1..2)?]
            }
            Score::ShareOfTwo([first, second]) => [first.build(g, x)?, second.build(g, x)?],
        };
        let more = g.push(Op::Sub, &[first, second])?;
        g.push(Op::Unary(Unary::Sigmoid), &[more])
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
