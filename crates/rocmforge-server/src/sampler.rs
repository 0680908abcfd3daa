//! Sampler of a request: the fields of the OpenAI API, and those of llama.cpp for the rest.

use std::sync::Arc;

use rocmforge_models::sampling::{DRY_BREAKERS, Mirostat, SamplerConfig};
use rocmforge_models::tokenizer::{Encode, Tokenizer};
use serde_json::Value;

use crate::description::answers::asked;
use crate::description::field::{Field, Form, Group};
use crate::description::schema;
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::options::Limits;

/// Fields of every route that draws tokens.
pub(crate) const FIELDS: &[Group] = &[Group::Read(READ), Group::Refused(&NOT_SUPPORTED)];

pub(crate) const READ: &[Field] = &[
    Field(
        "temperature",
        Form::Number,
        "0 takes the most likely token; more is more random.",
    ),
    Field(
        "top_p",
        Form::Number,
        "The most likely tokens with this sum of probabilities are left.",
    ),
    Field(
        "min_p",
        Form::Number,
        "Tokens are left with at least this part of the highest probability.",
    ),
    Field("typical_p", Form::Number, "Locally typical sampling."),
    Field("typ_p", Form::Number, "As typical_p."),
    Field(
        "top_n_sigma",
        Form::Number,
        "Tokens are left within so many standard deviations of the highest logit.",
    ),
    Field(
        "repeat_penalty",
        Form::Number,
        "Divisor of logits of tokens that were there; 1 is off.",
    ),
    Field("repetition_penalty", Form::Number, "As repeat_penalty."),
    Field(
        "frequency_penalty",
        Form::Number,
        "Taken off logits, times how often the token was there.",
    ),
    Field(
        "presence_penalty",
        Form::Number,
        "Taken off logits of tokens that were there.",
    ),
    Field(
        "dry_multiplier",
        Form::Number,
        "Strength of the penalty of repeated sequences; 0 is off.",
    ),
    Field("dry_base", Form::Number, "Its growth with the length of the sequence."),
    Field(
        "dry_allowed_length",
        Form::Tokens,
        "The longest sequence that it leaves alone.",
    ),
    Field(
        "dry_penalty_last_n",
        Form::Tokens,
        "Tokens that it looks at; -1 is all.",
    ),
    Field("dry_sequence_breakers", Form::Texts, "Texts that end a sequence."),
    Field(
        "xtc_probability",
        Form::Number,
        "How often the most likely tokens are left out.",
    ),
    Field("xtc_threshold", Form::Number, "From which probability on."),
    Field(
        "top_k",
        Form::Integer,
        "So many most likely tokens are left; 0 and negative are off.",
    ),
    Field(
        "repeat_last_n",
        Form::Tokens,
        "Tokens that penalties look at; -1 is all.",
    ),
    Field(
        "mirostat",
        Form::Other(|| schema::values([Value::Null, 0.into(), 2.into()])),
        "2 is Mirostat 2, 0 is off.",
    ),
    Field("mirostat_tau", Form::Number, "Its wanted surprise."),
    Field("mirostat_eta", Form::Number, "Its rate of learning."),
    Field(
        "logit_bias",
        Form::Other(|| {
            let bias = || schema::either([schema::number(), schema::values([false])]);
            let pair = schema::list(schema::either([schema::text(), bias()]));
            schema::either([schema::map(bias()), schema::list(pair), asked::one_of(&[])])
        }),
        "Added to logits: by ids or texts of tokens, or a list of pairs; false bans a token.",
    ),
    Field(
        "seed",
        Form::Integer,
        "Equal seeds give equal texts; -1 is a new one each time.",
    ),
];

/// Fields that change an answer and are not there.
const NOT_SUPPORTED: [&str; 6] = [
    "samplers",
    "dynatemp_range",
    "grammar",
    "grammar_lazy",
    "json_schema",
    "adaptive_target",
];

/// The sampler that the fields describe: llama.cpp's with what they change. Texts take time to become tokens, so that is done on another thread.
pub(crate) async fn config(
    fields: &Fields,
    tokenizer: &Arc<Tokenizer>,
    limits: &Limits,
) -> Result<SamplerConfig, ApiError> {
    let (mut config, texts) = read(fields, tokenizer, limits)?;
    if texts.is_empty() {
        return Ok(config);
    }
    let (tokenizer, limits) = (Arc::clone(tokenizer), *limits);
    let find = tokio::task::spawn_blocking(move || {
        texts.find(&mut config, &tokenizer, &limits)?;
        Ok(config)
    });
    let found = find.await;
    found.map_err(|_| ApiError::new(Kind::Internal, "texts of the sampler could not become tokens"))?
}

/// [`config`] on this thread.
pub(crate) fn config_here(fields: &Fields, tokenizer: &Tokenizer, limits: &Limits) -> Result<SamplerConfig, ApiError> {
    let (mut config, texts) = read(fields, tokenizer, limits)?;
    texts.find(&mut config, tokenizer, limits)?;
    Ok(config)
}

/// Texts whose tokens a sampler needs.
#[derive(Default)]
struct Texts {
    /// What ends a repeat for DRY.
    breakers: Vec<String>,
    biases: Vec<(String, f32)>,
}

impl Texts {
    fn is_empty(&self) -> bool {
        self.breakers.is_empty() && self.biases.is_empty()
    }

    fn find(self, config: &mut SamplerConfig, tokenizer: &Tokenizer, limits: &Limits) -> Result<(), ApiError> {
        config.dry.breakers = match self.breakers.as_slice() {
            [] => Vec::new(),
            texts => tokenizer.ids_with(texts),
        };
        for (text, bias) in self.biases {
            let ids = tokenizer.encode(&text, Encode::TEXT);
            let ids = ids.map_err(|error| ApiError::field("logit_bias", error))?;
            config.logit_bias.extend(ids.into_iter().map(|id| (id, bias)));
            if config.logit_bias.len() > limits.biases {
                return Err(too_many_biases(limits));
            }
        }
        Ok(())
    }
}

fn too_many_biases(limits: &Limits) -> ApiError {
    ApiError::field("logit_bias", format!("it may have {} entries", limits.biases))
}

/// The sampler without what texts say, and these.
fn read(fields: &Fields, tokenizer: &Tokenizer, limits: &Limits) -> Result<(SamplerConfig, Texts), ApiError> {
    let mut texts = Texts::default();
    let mut config = SamplerConfig::default();
    // Where an API and another have names of their own for the same, either is taken.
    let floats: [(&[&str], &mut f32); 12] = [
        (&["temperature"], &mut config.temperature),
        (&["top_p"], &mut config.top_p),
        (&["min_p"], &mut config.min_p),
        (&["typical_p", "typ_p"], &mut config.typical_p),
        (&["top_n_sigma"], &mut config.top_n_sigma),
        (&["repeat_penalty", "repetition_penalty"], &mut config.repeat_penalty),
        (&["frequency_penalty"], &mut config.frequency_penalty),
        (&["presence_penalty"], &mut config.presence_penalty),
        (&["dry_multiplier"], &mut config.dry.multiplier),
        (&["dry_base"], &mut config.dry.base),
        (&["xtc_probability"], &mut config.xtc.probability),
        (&["xtc_threshold"], &mut config.xtc.threshold),
    ];
    for (names, value) in floats {
        for name in names {
            if let Some(number) = fields.float(name)? {
                *value = number;
            }
        }
    }
    // -1 is "all" for numbers of tokens, and "off" for top_k.
    if let Some(top_k) = fields.integer("top_k")? {
        config.top_k = usize::try_from(top_k).unwrap_or(0);
    }
    for (name, value) in [
        ("repeat_last_n", &mut config.repeat_last_n),
        ("dry_penalty_last_n", &mut config.dry.last_n),
        ("dry_allowed_length", &mut config.dry.allowed_length),
    ] {
        if let Some(tokens) = fields.tokens(name)? {
            *value = tokens;
        }
    }
    if config.dry.multiplier != 0.0 {
        texts.breakers = breakers(fields, limits)?;
    }
    config.mirostat = match fields.integer("mirostat")? {
        None | Some(0) => None,
        Some(2) => Some(Mirostat {
            tau: fields.float("mirostat_tau")?.unwrap_or(Mirostat::default().tau),
            eta: fields.float("mirostat_eta")?.unwrap_or(Mirostat::default().eta),
        }),
        Some(_) => return Err(ApiError::not_supported("mirostat", "0 (off) and 2 are known")),
    };
    (config.logit_bias, texts.biases) = biases(fields, tokenizer, limits)?;
    config.seed = match fields.integer("seed")? {
        // All other numbers are keys, negative ones too.
        Some(seed) if seed != -1 => seed as u64,
        _ => crate::generation::seed(),
    };
    config.check().map_err(|error| ApiError::invalid(error.to_string()))?;
    fields.refuse(&NOT_SUPPORTED)?;
    Ok((config, texts))
}

/// Texts that end a repeat.
fn breakers(fields: &Fields, limits: &Limits) -> Result<Vec<String>, ApiError> {
    let name = "dry_sequence_breakers";
    let mut texts = fields.texts(name)?;
    if fields.get(name).is_none() {
        texts = DRY_BREAKERS.map(str::to_owned).to_vec();
    }
    if texts.len() > limits.stops
        || texts
            .iter()
            .any(|text| text.is_empty() || text.len() > limits.stop_bytes)
    {
        let (most, bytes) = (limits.stops, limits.stop_bytes);
        return Err(ApiError::field(
            name,
            format!("it may have {most} texts of 1 to {bytes} bytes"),
        ));
    }
    Ok(texts)
}

/// Biases of tokens, and of texts.
type Biases = (Vec<(u32, f32)>, Vec<(String, f32)>);

/// `logit_bias`: an object of ids or texts, or llama.cpp's list of pairs. `false` bans a token.
fn biases(fields: &Fields, tokenizer: &Tokenizer, limits: &Limits) -> Result<Biases, ApiError> {
    let name = "logit_bias";
    let wrong = || ApiError::field(name, "it must map ids of tokens to numbers, as in {\"15043\": -100}");
    let pairs: Vec<(Value, &Value)> = match fields.get(name) {
        None => return Ok(Biases::default()),
        Some(Value::Object(object)) => object
            .iter()
            .map(|(key, bias)| (Value::from(key.as_str()), bias))
            .collect(),
        Some(Value::Array(list)) => {
            let pair = |pair: &'_ Value| match pair.as_array().map(Vec::as_slice) {
                Some([token, _]) => Some(token.clone()),
                _ => None,
            };
            let tokens: Option<Vec<Value>> = list.iter().map(pair).collect();
            let biases = list.iter().filter_map(|pair| pair.get(1));
            tokens.ok_or_else(wrong)?.into_iter().zip(biases).collect()
        }
        Some(_) => return Err(wrong()),
    };
    if pairs.len() > limits.biases {
        return Err(too_many_biases(limits));
    }
    let (mut biases, mut texts) = Biases::default();
    for (token, bias) in pairs {
        let bias = match bias {
            Value::Bool(false) => f32::NEG_INFINITY,
            number => number.as_f64().ok_or_else(wrong)? as f32,
        };
        let id = match &token {
            Value::String(text) => text.parse().ok(),
            number => Some(number.as_u64().ok_or_else(wrong)?),
        };
        match (id, &token) {
            (Some(id), _) if id < tokenizer.vocab_size() as u64 => biases.push((id as u32, bias)),
            (Some(id), _) => {
                let most = tokenizer.vocab_size();
                return Err(ApiError::field(
                    name,
                    format!("token {id} is not one of the model's {most}"),
                ));
            }
            (None, Value::String(text)) => {
                if text.len() > limits.stop_bytes {
                    return Err(ApiError::field(
                        name,
                        format!("a text may have {} bytes", limits.stop_bytes),
                    ));
                }
                texts.push((text.clone(), bias));
            }
            (None, _) => return Err(wrong()),
        }
    }
    Ok((biases, texts))
}
