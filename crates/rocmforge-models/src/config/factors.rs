//! Factors on parts of a model: on embeddings, scores, results of branches, gates, scans and logits.

use super::ScanFactors;
use super::rules::{Factors, Rules};
use crate::ModelError;
use crate::keys::{Key, Keys, POSITIVE};

const SCORE_FACTOR: Key = Key("", "attention_multiplier");
const EMBEDDING_FACTOR: Key = Key("embedding_scale", "embedding_multiplier");
const BRANCH_FACTOR: Key = Key("residual_scale", "residual_multiplier");
const LOGIT_FACTOR: Key = Key("logit_scale", "logit_scale");
const LOGIT_DIVISOR: Key = Key("logit_scale", "logits_scaling");
const VALUE_FACTOR: Key = Key("attention.value_scale", "");

/// Keys of features that [`take`] asks for.
pub(super) const fn read(factors: Factors) -> &'static [Key] {
    match factors {
        Factors::None | Factors::FalconH1 => &[],
        Factors::Logits => &[LOGIT_FACTOR],
        Factors::Values => &[VALUE_FACTOR],
        Factors::Granite => &[LOGIT_DIVISOR, EMBEDDING_FACTOR, BRANCH_FACTOR],
    }
}

/// Factors that a file states.
#[derive(Default)]
pub(super) struct Stated {
    pub(super) embedding: Option<f32>,
    pub(super) scores: Option<f32>,
    /// On the results of attention.
    pub(super) attention: Option<f32>,
    /// On those of all branches, or of networks alone where attention has its own.
    pub(super) branches: Option<f32>,
    pub(super) gates: Option<f32>,
    pub(super) scans: Option<ScanFactors>,
    pub(super) logits: Option<f32>,
}

/// Takes the factors of an architecture. `head_dim` is the length of a head.
pub(super) fn take(k: &mut Keys<'_>, rules: &Rules, head_dim: usize) -> Result<Stated, ModelError> {
    Ok(match rules.factors {
        Factors::None => Stated::default(),
        Factors::Logits => Stated {
            logits: k.factor(LOGIT_FACTOR)?,
            ..Stated::default()
        },
        Factors::Values => Stated {
            attention: k.factor(VALUE_FACTOR)?,
            ..Stated::default()
        },
        Factors::Granite => {
            let absent = (!k.is_gguf()).then_some(1.0);
            let logits = k.number(LOGIT_DIVISOR, &POSITIVE, absent)?;
            Stated {
                embedding: k.factor(EMBEDDING_FACTOR)?,
                // The key's default is 1, and not one over the square root of the head's elements.
                scores: absent
                    .map(|absent| k.number(SCORE_FACTOR, &POSITIVE, Some(absent)))
                    .transpose()?,
                branches: k.factor(BRANCH_FACTOR)?,
                logits: Some(1.0 / logits),
                ..Stated::default()
            }
        }
        Factors::FalconH1 => {
            let one = |k: &mut Keys<'_>, name| k.number(Key("", name), &POSITIVE, Some(1.0));
            // Queries, keys and values are products of the same input.
            let input = one(k, "attention_in_multiplier")?;
            let keys = one(k, "key_multiplier")?;
            let attention = input * one(k, "attention_out_multiplier")?;
            let [gates, branches] = several(k, "mlp_multipliers")?;
            Stated {
                embedding: Some(one(k, "embedding_multiplier")?),
                scores: Some(keys * input * input / (head_dim as f32).sqrt()),
                attention: Some(attention),
                branches: Some(branches),
                gates: Some(gates),
                scans: Some(ScanFactors {
                    input: one(k, "ssm_in_multiplier")?,
                    parts: several(k, "ssm_multipliers")?,
                    // The sum of both results has the factor of attention.
                    output: one(k, "ssm_out_multiplier")? / attention,
                }),
                logits: Some(one(k, "lm_head_multiplier")?),
            }
        }
    })
}

/// Factors in a list of known length, all 1 where it is absent.
fn several<const N: usize>(k: &mut Keys<'_>, name: &'static str) -> Result<[f32; N], ModelError> {
    let Some(list) = k.take::<Vec<f32>>(Key("", name))? else {
        return Ok([1.0; N]);
    };
    let length = list.len();
    let found: Option<[f32; N]> = list.try_into().ok();
    let found = found.filter(|list| list.iter().all(|factor| factor.is_finite() && *factor > 0.0));
    let value = format!("a list of {length} numbers");
    found.ok_or_else(|| k.refuse(Key("", name), value, "there must be a positive factor for each part"))
}
