//! Reader of a decoder's hyper-parameters: each is asked for once, whatever kind of file states it.

use rocmforge_ggml::RouteGate;

use super::names::{
    CONTEXT, COUNT, FF, HEAD, HEADS, KV_HEADS, LAYERS, MOST_LAYERS, SIZE, SIZE_OR_NONE, TIED, VOCAB, WIDTH,
};
use super::rope::{self, Sizes};
use super::rules::{Factors, Growth, Recurrent, Rotated, Rules, ScanLayers, SharedCaches, Window};
use super::{
    DecoderConfig, LayerInputConfig, NormKind, OutputMatrix, PerLayer, RopeFactors, WindowKind, experts, growth,
    latent, recurrent, streams, texts,
};
use crate::ModelError;
use crate::keys::{Key, Keys, NOT_NEGATIVE, POSITIVE, Within};

const KEY_LENGTH: Key = Key("attention.key_length", "head_dim");
const VALUE_LENGTH: Key = Key("attention.value_length", "");
const WINDOW_KEY_LENGTH: Key = Key("attention.key_length_swa", "");
const WINDOW_VALUE_LENGTH: Key = Key("attention.value_length_swa", "");
const EPS: Key = Key("attention.layer_norm_rms_epsilon", "rms_norm_eps");
const LAYER_EPS: Key = Key(
    "attention.layer_norm_epsilon",
    "layer_norm_eps norm_eps layer_norm_epsilon",
);
const SCALE: Key = Key("attention.scale", "");
const SCORE_DIVISOR: Key = Key("", "query_pre_attn_scalar");
const ATTENTION_SOFTCAP: Key = Key("attn_logit_softcapping", "attn_logit_softcapping");
const LOGIT_SOFTCAP: Key = Key("final_logit_softcapping", "final_logit_softcapping");
const EMBEDDING_FACTOR: Key = Key("embedding_scale", "");
const BRANCH_FACTOR: Key = Key("residual_scale", "");
const LOGIT_FACTOR: Key = Key("logit_scale", "");
const VALUE_FACTOR: Key = Key("attention.value_scale", "");
const FINETUNED: Key = Key("rope.scaling.finetuned", "");
const WINDOW: Key = Key("attention.sliding_window", "sliding_window local_attention");
const WINDOW_ON: Key = Key("", "use_sliding_window");
const WINDOW_FROM: Key = Key("", "max_window_layers");
/// Later files of config.json note the period that `layer_types` was made from.
const PATTERN: Key = Key(
    "attention.sliding_window_pattern",
    "sliding_window_pattern _sliding_window_pattern global_attn_every_n_layers",
);
const LAYER_TYPES: Key = Key("", "layer_types");
/// 1 for a layer with rotary embedding, 0 for one without.
const ROTATED: Key = Key("", "no_rope_layers");
const UNROTATED_PERIOD: Key = Key("", "no_rope_layer_interval");
const QUERY_NORM: Key = Key("", "use_qk_norm");
const SHARED_CACHES: Key = Key("attention.shared_kv_layers", "num_kv_shared_layers");
const LAYER_INPUT: Key = Key("embedding_length_per_layer_input", "hidden_size_per_layer_input");
const LAYER_INPUT_TOKENS: Key = Key("", "vocab_size_per_layer_input");
const PREDICTORS: Key = Key("nextn_predict_layers", "");

/// Tokens of the table of layer inputs where config.json does not state them.
const LAYER_INPUT_VOCAB: usize = 262_144;

const PERIOD: Within = Within(1..=1 << 16, "it must be 1 to 65536");
const DIVISOR: Within = Within(1..=1 << 16, "it must divide the number of heads");

/// What a GGUF says of a model under other names than the architecture's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outside {
    /// Length of the vocabulary.
    pub(crate) tokens: Option<usize>,
    /// Types of tokens.
    pub(crate) types: Option<usize>,
    /// The file has tensors of Phi-3's divisors.
    pub(crate) long_factors: bool,
}

impl DecoderConfig {
    /// `outside` is what the file says elsewhere.
    pub(crate) fn read(k: &mut Keys<'_>, rules: &Rules, outside: Outside) -> Result<Self, ModelError> {
        let Outside {
            tokens,
            types,
            long_factors,
        } = outside;
        k.rename(rules.renamed);
        k.reads(features_read(rules));
        k.refuse_features(&rules.known)?;
        let blocks = k.size(LAYERS, &MOST_LAYERS, None)?;
        let predictors = match rules.predictors {
            true => k.take(PREDICTORS)?.unwrap_or(0),
            false => 0,
        };
        let layers = blocks.checked_sub(predictors).filter(|&layers| layers > 0);
        let layers = layers.ok_or_else(|| k.refuse(PREDICTORS, predictors, "there must be other layers, too"))?;
        let width = k.size(WIDTH, &SIZE, None)?;
        // Layers without attention have no heads.
        let headless = matches!(
            rules.recurrent,
            Some(Recurrent::KimiDelta | Recurrent::ShortConv | Recurrent::Mamba2(_))
        );
        let scans = match rules.recurrent {
            Some(Recurrent::Mamba2(which)) => Some(which),
            _ => None,
        };
        // Converters state little about the attention of a model that has none.
        let no_attention = scans == Some(ScanLayers::All);
        // Lists have an entry for each block of the file.
        let sizes = |k: &mut Keys<'_>, key, within: &Within, absent| -> Result<PerLayer, ModelError> {
            Ok(k.sizes(key, blocks, within, absent)?.first(layers))
        };
        let heads = match headless {
            true => recurrent::heads(k, HEADS, [blocks, layers], None)?.0,
            false => sizes(k, HEADS, &COUNT, None)?,
        };
        let texts = rules
            .texts
            .as_ref()
            .map(|rules| texts::take(k, rules, types))
            .transpose()?;
        let pooling = texts::pooling(k, rules)?;
        // Rows before that of the first position are not of the context.
        let rows = k.size(CONTEXT, &SIZE, None)?;
        let first = texts.and_then(|texts| texts.first_position).unwrap_or(0);
        let context = rows.checked_sub(first).filter(|&context| context > 0);
        let context =
            context.ok_or_else(|| k.refuse(CONTEXT, rows, "there must be positions after the padding token's"))?;
        let absent = k.unless_null(KV_HEADS, rules.kv_heads).map(PerLayer::all);
        let (kv_heads, attends) = match headless {
            true => {
                let absent = no_attention.then(|| PerLayer::all(0));
                recurrent::heads(k, KV_HEADS, [blocks, layers], absent)?
            }
            false => {
                let found = sizes(k, KV_HEADS, &DIVISOR, absent.or(Some(heads.clone())))?;
                (found, vec![true; layers])
            }
        };
        for layer in 0..layers {
            if !heads.of(layer).is_multiple_of(kv_heads.of(layer)) {
                return Err(k.refuse(KV_HEADS, kv_heads.of(layer), DIVISOR.1));
            }
        }
        let unrotated = unrotated(k, rules, layers)?;
        let (window, windowed) = windows(k, rules, [blocks, layers], context, unrotated.as_deref())?;
        let of_width = width / heads.of(0);
        let absent = k.unless_null(KEY_LENGTH, rules.head_dim).or(no_attention.then_some(2));
        if texts.is_some() && absent.is_none() && !k.states(KEY_LENGTH) && !width.is_multiple_of(heads.of(0)) {
            return Err(k.refuse(HEADS, heads.of(0), "it must divide the width"));
        }
        let absent = absent.or((heads == PerLayer::all(heads.of(0))).then_some(of_width));
        let within = if rules.latent { &latent::KEPT } else { &HEAD };
        let head_dim = sizes(k, KEY_LENGTH, within, absent.map(PerLayer::all))?;
        let values = sizes(k, VALUE_LENGTH, within, Some(head_dim.clone()))?;
        let head_dim = rope::of_windows_too(k, WINDOW_KEY_LENGTH, &windowed, head_dim)?;
        let values = rope::of_windows_too(k, WINDOW_VALUE_LENGTH, &windowed, values)?;
        let cache_of = match rules.shared_caches {
            SharedCaches::Never => PerLayer::all(None),
            SharedCaches::Stated(absent) => cache_of(k, &windowed, [&kv_heads, &head_dim, &values], absent)?,
            SharedCaches::AllBut(own) => {
                let absent = layers.saturating_sub(own);
                cache_of(k, &windowed, [&kv_heads, &head_dim, &values], absent)?
            }
        };
        let vocab = match tokens {
            Some(tokens) => k.check(VOCAB, tokens, &SIZE)?,
            None => k.size(VOCAB, &SIZE, None)?,
        };
        let ff = match scans {
            Some(ScanLayers::WithoutNetwork) => sizes(k, FF, &SIZE_OR_NONE, None)?,
            // What the file states is not used.
            Some(ScanLayers::All) => k.take::<serde_json::Value>(FF).map(|_| PerLayer::all(0))?,
            _ => sizes(k, FF, &SIZE, None)?,
        };
        let mixes = match scans {
            Some(ScanLayers::WithoutNetwork) => PerLayer::each((0..layers).map(|layer| ff.of(layer) == 0)),
            _ => None,
        };
        let mixes = mixes.unwrap_or(PerLayer::all(true));
        // A layer that is a network alone is not recurrent.
        let attends: Vec<bool> = (0..layers).map(|layer| attends[layer] || !mixes.get(layer)).collect();
        // Early files of GLM 4.7 Flash do not state the gate; llama.cpp knows them by these sizes.
        let is_flash = rules.latent && (layers == 47 || layers == 48) && vocab == 154_880;
        let gate = is_flash.then_some(RouteGate::Sigmoid);
        let experts = experts::take(k, rules, &ff, [blocks, layers], gate)?;
        let take = |kind| recurrent::take(k, kind, &heads, &attends, blocks);
        let recurrent = rules.recurrent.map(take).transpose()?;
        let original_context = match rules.original_context {
            Some(_) => k.take(rope::ORIGINAL_CONTEXT)?,
            None => None,
        };
        let sizes = Sizes {
            head_dim: &head_dim,
            windowed: &windowed,
            context,
            original_context,
            long_factors,
        };
        let rope::Found {
            rope,
            factors: rope_factors,
            scores: on_scores,
            growth,
        } = match rules.rotated {
            Rotated::Never if rules.texts.is_some() => rope::none(rules, &sizes),
            // Files of decoders state it, used or not.
            _ => rope::take(k, rules, &sizes)?,
        };
        let latent = match rules.latent {
            true => Some(latent::take(k, [&kv_heads, &head_dim], &rope)?),
            false => None,
        };
        // What is kept of a token is the value too, whatever length the file states of one.
        let values = latent.map_or(values, |latent| PerLayer::all(latent.rank));
        let no_chunks = matches!(rules.window, Window::Chunks { .. }) && window.is_none();
        let rotated = match unrotated {
            // The file says that there are no chunks, and that is a model of another kind.
            Some(_) if no_chunks && k.is_gguf() => PerLayer::all(true),
            Some(without) => PerLayer::each(without.iter().map(|without| !without)).unwrap_or(PerLayer::all(true)),
            None => rotated(k, rules, &windowed)?,
        };
        let growth = match rules.growth {
            Growth::Unrotated(absent) => growth::of_unrotated(k, absent, &rotated, layers)?,
            Growth::Never | Growth::OfContext | Growth::OfLength => PerLayer::all(growth),
        };
        let query_norm = match rules.unnormed_experts {
            None => true,
            Some(count) if k.is_gguf() => !experts.values().flatten().any(|experts| experts.count == count),
            Some(_) => k.take(QUERY_NORM)?.unwrap_or(true),
        };
        let on_scores = if *rotated.get(0) { on_scores } else { 1.0 };
        let [embedding_factor, attention_factor, branch_factor, logit_factor] = factors(k, rules)?;
        let divisor = match rules.score_divisor {
            Some(absent) => Some(k.number(SCORE_DIVISOR, &POSITIVE, Some(absent))?),
            None => (rules.wide_scale_layers == Some(layers)).then_some(of_width as f32),
        };
        Ok(Self {
            layers,
            predictors,
            width,
            ff,
            experts,
            recurrent,
            mixes,
            heads,
            kv_heads,
            head_dim,
            value_dim: values,
            vocab,
            context,
            norm_eps: match rules.norm {
                NormKind::Rms => k.number(EPS, &NOT_NEGATIVE, None)?,
                NormKind::Layer => {
                    let absent = rules.texts.and_then(|texts| texts.eps).filter(|_| !k.is_gguf());
                    k.number(LAYER_EPS, &NOT_NEGATIVE, absent)?
                }
            },
            norm: rules.norm,
            output_norm: rules.output_norm,
            attention_scale: match latent {
                Some(latent) => {
                    if let Some(stated) = k.factor(SCALE)? {
                        return Err(k.refuse(SCALE, stated, "latent attention has a factor of its own"));
                    }
                    let length = (latent.nope + rope.get(0).n_dims) as f64;
                    Some((on_scores * on_scores / length.sqrt()) as f32)
                }
                None => {
                    let absent = divisor.map(|divisor| 1.0 / divisor.sqrt());
                    k.factor(SCALE)?.or(rules.score_factor).or(absent)
                }
            },
            latent,
            rope,
            rope_factors: match rules.unused_divisors {
                true => RopeFactors::Unused,
                false => rope_factors,
            },
            rotated,
            embedding_factor,
            attention_factor,
            branch_factor,
            logit_factor,
            cache_of,
            layer_input: match rules.layer_inputs {
                Some(absent) => layer_input(k, rules, absent, vocab)?,
                None => None,
            },
            streams: rules.streams.map(|_| streams::take(k)).transpose()?,
            sparsity: match rules.streams {
                Some(rules) => streams::sparsity(k, rules, layers)?,
                None => PerLayer::all(None),
            },
            window: {
                let of_layers = windowed.iter().map(|&windowed| window.filter(|_| windowed));
                PerLayer::each(of_layers).unwrap_or(PerLayer::all(None))
            },
            window_kind: match rules.window {
                Window::Chunks { .. } => WindowKind::Chunk,
                _ => WindowKind::Last,
            },
            growth,
            query_norm,
            attention_softcap: match rules.softcaps.attention {
                true => k.factor(ATTENTION_SOFTCAP)?,
                false => None,
            },
            logit_softcap: match rules.softcaps.logits {
                true => {
                    let absent = rules.softcaps.absent.filter(|_| !k.has_any(LOGIT_SOFTCAP));
                    k.factor(LOGIT_SOFTCAP)?.or(absent)
                }
                false => None,
            },
            output: match k.take(TIED)? {
                None => rules.output,
                Some(true) => OutputMatrix::Embedding,
                Some(false) => OutputMatrix::Own,
            },
            pooling,
            classifier: texts::classifier(k, rules)?,
            texts,
        })
    }
}

/// Keys of GGUF that turn a feature on, which is read by these rules.
fn features_read(rules: &Rules) -> Vec<&'static str> {
    let factors: &[Key] = match rules.factors {
        Factors::None => &[],
        Factors::Logits => &[LOGIT_FACTOR],
        Factors::Values => &[VALUE_FACTOR],
        Factors::Granite => &[LOGIT_FACTOR, EMBEDDING_FACTOR, BRANCH_FACTOR],
    };
    let others = [
        (rules.window != Window::Never, WINDOW),
        (rules.sections.is_some(), rope::SECTIONS),
        (rules.predictors, PREDICTORS),
        (rules.shared_caches != SharedCaches::Never, SHARED_CACHES),
        (rules.layer_inputs.is_some(), LAYER_INPUT),
    ];
    let others = others.into_iter().filter_map(|(is_read, key)| is_read.then_some(key));
    let experts = rules.experts.iter().flat_map(experts::read);
    let recurrent = rules.recurrent.iter().flat_map(|kind| recurrent::read(*kind)).copied();
    let latent = rules.latent.then_some(latent::READ).into_iter().flatten();
    let growth = growth::read(rules).iter().copied();
    let keys = factors
        .iter()
        .copied()
        .chain(others)
        .chain(latent)
        .chain(growth)
        .chain(experts)
        .chain(recurrent);
    keys.map(|Key(gguf, _)| gguf).collect()
}

/// Factors on embeddings, on the results of attention, on those of branches, and on logits.
fn factors(k: &mut Keys<'_>, rules: &Rules) -> Result<[Option<f32>; 4], ModelError> {
    Ok(match rules.factors {
        Factors::None => [None; 4],
        Factors::Logits => [None, None, None, k.factor(LOGIT_FACTOR)?],
        Factors::Values => [None, k.factor(VALUE_FACTOR)?, None, None],
        Factors::Granite => {
            let logits = k.number(LOGIT_FACTOR, &POSITIVE, None)?;
            [
                k.factor(EMBEDDING_FACTOR)?,
                None,
                k.factor(BRANCH_FACTOR)?,
                Some(1.0 / logits),
            ]
        }
    })
}

/// What each layer is given of a token. `absent` is its length where the file does not state it.
fn layer_input(
    k: &mut Keys<'_>,
    rules: &Rules,
    absent: usize,
    vocab: usize,
) -> Result<Option<LayerInputConfig>, ModelError> {
    let width = k.take(LAYER_INPUT)?.unwrap_or(absent);
    if width == 0 && rules.streams.is_none() {
        return Ok(None);
    }
    let tokens = if k.is_gguf() { vocab } else { LAYER_INPUT_VOCAB };
    Ok(Some(LayerInputConfig {
        width: k.check(LAYER_INPUT, width, &COUNT)?,
        tokens: k.size(LAYER_INPUT_TOKENS, &SIZE, Some(tokens))?,
    }))
}

/// Whose keys and values the last layers read; `absent` is how many do so where the file does not say it. They are those of the last layer before them that has a window as they do, or none.
fn cache_of(
    k: &mut Keys<'_>,
    windowed: &[bool],
    sizes: [&PerLayer; 3],
    absent: usize,
) -> Result<PerLayer<Option<usize>>, ModelError> {
    let sharing = k.take(SHARED_CACHES)?.unwrap_or(absent);
    let own = windowed.len().saturating_sub(sharing);
    let source = |layer: usize| -> Result<Option<usize>, ModelError> {
        if layer < own {
            return Ok(None);
        }
        let same = |source: &usize| sizes.iter().all(|sizes| sizes.of(*source) == sizes.of(layer));
        let source = windowed[..own].iter().rposition(|&other| other == windowed[layer]);
        let rule = "before them there must be a layer with the same window, heads and lengths, which has keys and values of its own";
        let source = source
            .filter(same)
            .ok_or_else(|| k.refuse(SHARED_CACHES, sharing, rule));
        source.map(Some)
    };
    let sources = (0..windowed.len()).map(source).collect::<Result<Vec<_>, _>>()?;
    Ok(PerLayer::each(sources).unwrap_or(PerLayer::all(None)))
}

/// Which layers have no rotary embedding, where windows have nothing to do with it.
fn unrotated(k: &mut Keys<'_>, rules: &Rules, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    let Rotated::AllBut(absent) = rules.rotated else {
        return Ok(None);
    };
    let period = k.size(UNROTATED_PERIOD, &PERIOD, Some(absent))?;
    // An empty list is the same as none.
    let listed: Vec<usize> = k.take(ROTATED)?.unwrap_or_default();
    if listed.is_empty() {
        return Ok(Some((1..=layers).map(|layer| layer.is_multiple_of(period)).collect()));
    }
    if listed.len() != layers || listed.iter().any(|&rotated| rotated > 1) {
        let value = format!("a list of {} numbers", listed.len());
        return Err(k.refuse(ROTATED, value, "it must have 0 or 1 for each layer"));
    }
    Ok(Some(listed.iter().map(|&rotated| rotated == 0).collect()))
}

/// Which layers have rotary embedding.
fn rotated(k: &mut Keys<'_>, rules: &Rules, windowed: &[bool]) -> Result<PerLayer<bool>, ModelError> {
    let layers = windowed.len();
    let any = windowed.contains(&true);
    let rotated: Vec<bool> = match rules.rotated {
        Rotated::All => vec![true; layers],
        Rotated::Windowed => windowed.to_vec(),
        Rotated::WindowedIfAny => windowed.iter().map(|&windowed| windowed || !any).collect(),
        Rotated::Never => vec![false; layers],
        Rotated::Finetuned => vec![k.take(FINETUNED)?.unwrap_or(true); layers],
        // These were asked for before.
        Rotated::AllBut(_) => vec![true; layers],
    };
    Ok(PerLayer::each(rotated).unwrap_or(PerLayer::all(true)))
}

/// Which layers have the window: a list in the file, if there is one.
fn listed(k: &mut Keys<'_>, rules: &Rules, [blocks, layers]: [usize; 2]) -> Result<Option<Vec<bool>>, ModelError> {
    let (with, rule) = match rules.window {
        Window::Chunks { .. } => (
            "chunked_attention",
            "full_attention and chunked_attention are supported",
        ),
        _ => (
            "sliding_attention",
            "full_attention and sliding_attention are supported",
        ),
    };
    if let Some(mut windowed) = k.flags(PATTERN, blocks)? {
        windowed.truncate(layers);
        return Ok(Some(windowed));
    }
    let Some(names) = k.take::<Vec<String>>(LAYER_TYPES)? else {
        return Ok(None);
    };
    if names.len() != layers {
        let value = format!("{} entries", names.len());
        return Err(k.refuse(LAYER_TYPES, value, "there must be one for each layer"));
    }
    let windowed = names.iter().map(|name| match name.as_str() {
        "full_attention" => Ok(false),
        other if other == with => Ok(true),
        other => Err(k.refuse(LAYER_TYPES, other, rule)),
    });
    windowed.collect::<Result<_, _>>().map(Some)
}

/// How many keys layers with a window see, and which layers these are. Lists of the file have `blocks` entries. Some layers may have no rotary embedding.
fn windows(
    k: &mut Keys<'_>,
    rules: &Rules,
    [blocks, layers]: [usize; 2],
    context: usize,
    unrotated: Option<&[bool]>,
) -> Result<(Option<usize>, Vec<bool>), ModelError> {
    let none = vec![false; layers];
    let window = |k: &mut Keys<'_>, absent| -> Result<Option<usize>, ModelError> {
        let absent = k.unless_null(WINDOW, absent);
        // In a GGUF 0 is no window.
        Ok(k.take(WINDOW)?.or(absent).filter(|&window| window != 0 || !k.is_gguf()))
    };
    let (window, windowed) = match rules.window {
        Window::Never => return Ok((None, none)),
        Window::Every { window: absent } => (window(k, absent)?, vec![true; layers]),
        Window::Upper { window: absent, from } => {
            let on = k.take(WINDOW_ON)?.unwrap_or(false);
            let window = window(k, Some(absent))?.filter(|_| on);
            let from: usize = k.take(WINDOW_FROM)?.unwrap_or(from);
            let listed = listed(k, rules, [blocks, layers])?;
            if window.is_none() && listed.iter().flatten().any(|&windowed| windowed) {
                let rule = "use_sliding_window and sliding_window must say how many keys these layers see";
                return Err(k.refuse(LAYER_TYPES, "sliding_attention", rule));
            }
            (
                window,
                listed.unwrap_or_else(|| (0..layers).map(|layer| layer >= from).collect()),
            )
        }
        Window::Pattern { of: Some(of), .. } if of != layers => return Ok((None, none)),
        Window::Chunks { length, period } => {
            let chunk = match k.is_gguf() {
                // llama.cpp takes this length, unless the file says 0.
                true => (k.take::<usize>(WINDOW)? != Some(0)).then_some(length),
                false => window(k, Some(length))?,
            };
            let listed = listed(k, rules, [blocks, layers])?;
            let period: usize = k.take(PATTERN)?.unwrap_or(period);
            let windowed: Vec<bool> = match (listed, unrotated) {
                (Some(listed), _) => listed,
                (None, Some(without)) if !k.is_gguf() => {
                    let rotated = without.iter().map(|without| !without);
                    rotated.map(|rotated| rotated && chunk.is_some()).collect()
                }
                (None, _) => (1..=layers)
                    .map(|layer| period > 0 && !layer.is_multiple_of(period))
                    .collect(),
            };
            if chunk.is_none() && !k.is_gguf() && windowed.contains(&true) {
                return Err(k.refuse(WINDOW, "null", "layers with chunks must have their length"));
            }
            (chunk, windowed)
        }
        Window::Pattern { .. } | Window::ButFirst { .. } => {
            // Of each period one layer has no window.
            let (absent, period, full): (_, _, fn(usize) -> usize) = match rules.window {
                Window::Pattern { window, period, .. } => (window, period, |period| period - 1),
                Window::ButFirst { period } => (None, period, |_| 0),
                _ => return Ok((None, none)),
            };
            let window = window(k, absent)?;
            let listed = listed(k, rules, [blocks, layers])?;
            let period: usize = k.take(PATTERN)?.unwrap_or(period);
            let by_period = |layer: usize| period > 0 && layer % period != full(period);
            let windowed = listed.unwrap_or_else(|| (0..layers).map(by_period).collect());
            match window {
                None if k.is_gguf() => return Ok((None, none)),
                None if windowed.contains(&true) => {
                    return Err(k.refuse(WINDOW, "null", "layers with a window must have its length"));
                }
                // These layers have a rotary embedding of their own, however long the window is.
                _ => (window, windowed),
            }
        }
    };
    let Some(window) = window else { return Ok((None, none)) };
    let window = k.check(
        WINDOW,
        window,
        &Within(1..=usize::MAX, "a window must hold at least one key"),
    )?;
    let own_rope = matches!(
        rules.window,
        Window::Pattern { .. } | Window::ButFirst { .. } | Window::Chunks { .. }
    );
    // A window that holds the whole context hides nothing.
    Ok(if own_rope || window < context {
        (Some(window), windowed)
    } else {
        (None, none)
    })
}
