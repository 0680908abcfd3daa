//! Reader of a decoder's hyper-parameters: each is asked for once, whatever kind of file states it.

use rocmforge_ggml::RouteGate;

use super::layer_types::{self, LayerType};
use super::names::{
    CONTEXT, COUNT, FF, HEAD, HEADS, KV_HEADS, LAYERS, MOST_LAYERS, SIZE, SIZE_OR_NONE, TIED, VOCAB, WIDTH,
};
use super::rope::{self, Sizes};
use super::rules::{ExpertWidth, Growth, Recurrent, Rotated, Rules, ScanLayers, SharedCaches, Window};
use super::{
    DecoderConfig, LayerInputConfig, NormKind, OutputMatrix, PerLayer, RopeFactors, WindowKind, experts, factors,
    global, growth, kimi, latent, recurrent, streams, texts, windows,
};
use crate::ModelError;
use crate::keys::{Key, Keys, Known, NOT_NEGATIVE, POSITIVE, Within};

const KEY_LENGTH: Key = Key("attention.key_length", "attention_head_dim head_dim");
const VALUE_LENGTH: Key = Key("attention.value_length", "");
const WINDOW_KEY_LENGTH: Key = Key("attention.key_length_swa", "");
const WINDOW_VALUE_LENGTH: Key = Key("attention.value_length_swa", "");
const EPS: Key = Key(
    "attention.layer_norm_rms_epsilon",
    "rms_norm_eps norm_eps layer_norm_epsilon",
);
const LAYER_EPS: Key = Key(
    "attention.layer_norm_epsilon",
    "layer_norm_eps norm_eps layer_norm_epsilon norm_epsilon",
);
const SCALE: Key = Key("attention.scale", "");
const SCORE_DIVISOR: Key = Key("", "query_pre_attn_scalar");
const ATTENTION_SOFTCAP: Key = Key("attn_logit_softcapping", "attn_logit_softcapping");
const LOGIT_SOFTCAP: Key = Key("final_logit_softcapping", "final_logit_softcapping");
const QUERY_NORM: Key = Key("", "use_qk_norm");
const SHARED_CACHES: Key = Key("attention.shared_kv_layers", "num_kv_shared_layers");
const LAYER_INPUT: Key = Key("embedding_length_per_layer_input", "hidden_size_per_layer_input");
const LAYER_INPUT_TOKENS: Key = Key("", "vocab_size_per_layer_input");
const PREDICTORS: Key = Key("nextn_predict_layers", "num_nextn_predict_layers");
/// Networks of layers that read the keys and values of others are twice as wide.
const WIDE_SHARED: Key = Key("", "use_double_wide_mlp");

/// Tokens of the table of layer inputs where config.json does not state them.
const LAYER_INPUT_VOCAB: usize = 262_144;

/// [`TIED`] in early files of LFM 2.
const EARLY_TIED: Key = Key("", "tie_embedding");
/// The layers with attention, in early files of LFM 2.
const FULL_ATTENTION: Key = Key("", "full_attn_idxs");
/// How LFM 2 makes the width of its networks of what is stated.
const ADJUSTED: Key = Key("", "block_auto_adjust_ff_dim");
const ADJUSTED_BY: Key = Key("", "block_ffn_dim_multiplier");
const ADJUSTED_TO: Key = Key("", "block_multiple_of");

/// Context of a config.json whose model keeps states alone, and so needs no bound; llama.cpp's converter states it, too.
const UNBOUNDED: usize = 1 << 20;
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
        k.reads(features_read(k, rules));
        if rules.mxfp4 && !k.is_gguf() {
            mxfp4(k, rules)?;
        }
        k.refuse_features(&rules.known)?;
        let names = layer_types::names(k)?;
        let blocks = k.size(LAYERS, &MOST_LAYERS, names.as_ref().map(Vec::len))?;
        let predictors = match rules.predictors {
            true => k.take(PREDICTORS)?.unwrap_or(0),
            false => 0,
        };
        // In a config.json they are not among the layers.
        let blocks = if k.is_gguf() {
            blocks
        } else {
            k.check(LAYERS, blocks.saturating_add(predictors), &MOST_LAYERS)?
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
        let listed = layer_types::of_names(k, names, layers, |of| match of {
            LayerType::Full => true,
            LayerType::Window | LayerType::Chunk => of == LayerType::of_window(rules.window),
            LayerType::Recurrent => rules.recurrent.is_some(),
            LayerType::Network | LayerType::Experts => scans == Some(ScanLayers::WithoutNetwork),
        })?;
        let one_head = (no_attention && !k.is_gguf()).then(|| PerLayer::all(1));
        let heads = match headless && k.is_gguf() {
            true => recurrent::heads(k, HEADS, [blocks, layers], None)?.0,
            false => sizes(k, HEADS, &COUNT, one_head)?,
        };
        let texts = rules
            .texts
            .as_ref()
            .map(|rules| texts::take(k, rules, types))
            .transpose()?;
        let pooling = texts::pooling(k, rules)?;
        // Rows before that of the first position are not of the context.
        let rows = k.size(CONTEXT, &SIZE, (no_attention && !k.is_gguf()).then_some(UNBOUNDED))?;
        let first = texts.and_then(|texts| texts.first_position).unwrap_or(0);
        let context = rows.checked_sub(first).filter(|&context| context > 0);
        let context =
            context.ok_or_else(|| k.refuse(CONTEXT, rows, "there must be positions after the padding token's"))?;
        let latent_kept = (rules.latent && !k.is_gguf()).then(|| latent::kept(k)).transpose()?;
        let absent = match latent_kept {
            Some(_) => Some(PerLayer::all(1)),
            None => k.unless_null(KV_HEADS, rules.kv_heads).map(PerLayer::all),
        };
        let is_kimi = rules.recurrent == Some(Recurrent::KimiDelta) && !k.is_gguf();
        let kimi = is_kimi.then(|| kimi::take(k, listed.as_deref(), layers, rules.name));
        let kimi = kimi.transpose()?;
        let (kv_heads, attends) = match headless {
            true if !k.is_gguf() => {
                let numbers: Option<Vec<usize>> = k.take(FULL_ATTENTION)?;
                let of_layer = |layer: usize| match (&kimi, &listed) {
                    (Some(kimi), _) => !kimi.layers[layer],
                    (None, Some(types)) => types[layer] != LayerType::Recurrent,
                    (None, None) => numbers.as_ref().is_none_or(|numbers| numbers.contains(&layer)),
                };
                let found = sizes(k, KV_HEADS, &DIVISOR, absent.or(Some(heads.clone())))?;
                (found, (0..layers).map(of_layer).collect())
            }
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
        let unrotated = windows::unrotated(k, rules, layers)?;
        let (window, windowed) = windows::take(
            k,
            rules,
            listed.as_deref(),
            [blocks, layers],
            context,
            unrotated.as_deref(),
        )?;
        let of_width = width / heads.of(0);
        let absent = k.unless_null(KEY_LENGTH, rules.head_dim).or(no_attention.then_some(2));
        if texts.is_some() && absent.is_none() && !k.states(KEY_LENGTH) && !width.is_multiple_of(heads.of(0)) {
            return Err(k.refuse(HEADS, heads.of(0), "it must divide the width"));
        }
        let absent = absent.or((heads == PerLayer::all(heads.of(0))).then_some(of_width));
        let within = if rules.latent { &latent::KEPT } else { &HEAD };
        let (head_dim, values) = match latent_kept {
            Some([rank, rotated]) => {
                let kept = k.check(KEY_LENGTH, rank + rotated, within)?;
                (PerLayer::all(kept), PerLayer::all(rank))
            }
            None => {
                let head_dim = sizes(k, KEY_LENGTH, within, absent.map(PerLayer::all))?;
                let values = sizes(k, VALUE_LENGTH, within, Some(head_dim.clone()))?;
                (head_dim, values)
            }
        };
        let head_dim = rope::of_windows_too(k, WINDOW_KEY_LENGTH, &windowed, head_dim)?;
        let values = rope::of_windows_too(k, WINDOW_VALUE_LENGTH, &windowed, values)?;
        let (head_dim, values, kv_heads) = match rules.global_head_dim.filter(|_| !k.is_gguf()) {
            None => (head_dim, values, kv_heads),
            Some(absent) => {
                let [head_dim, kv_heads] = global::take(k, absent, &windowed, [head_dim, kv_heads])?;
                (head_dim.clone(), head_dim, kv_heads)
            }
        };
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
        let ff_key = Key(FF.0, rules.ff);
        let ff = match scans {
            Some(ScanLayers::WithoutNetwork) if !k.is_gguf() => {
                let stated = k.size(ff_key, &SIZE, None)?;
                let is_network = |of: LayerType| matches!(of, LayerType::Network | LayerType::Experts);
                let of_layer = |of| if is_network(of) { stated } else { 0 };
                let listed = listed.iter().flatten().copied();
                PerLayer::each(listed.map(of_layer)).ok_or_else(|| k.missing(layer_types::KEY))?
            }
            Some(ScanLayers::WithoutNetwork) => sizes(k, ff_key, &SIZE_OR_NONE, None)?,
            // What the file states is not used.
            Some(ScanLayers::All) => k.take::<serde_json::Value>(ff_key).map(|_| PerLayer::all(0))?,
            _ => {
                // A model whose layers all have experts need not state it.
                let absent = match rules.experts.map(|experts| experts.inner) {
                    Some(ExpertWidth::Stated(absent)) if !k.is_gguf() => Some(PerLayer::all(absent)),
                    _ => None,
                };
                let stated = sizes(k, ff_key, &SIZE, absent)?;
                let stated = if rules.adjusted_ff {
                    adjusted(k, &stated)?
                } else {
                    stated
                };
                match k.take(WIDE_SHARED)? == Some(true) {
                    true => PerLayer::each((0..layers).map(|layer| match cache_of.get(layer) {
                        Some(_) => 2 * stated.of(layer),
                        None => stated.of(layer),
                    }))
                    .unwrap_or(stated),
                    false => stated,
                }
            }
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
        let experts = experts::take(k, rules, &ff, listed.as_deref(), [blocks, layers], gate)?;
        let recurrent = match (kimi, rules.recurrent) {
            (None, Some(kind)) => Some(recurrent::take(k, kind, &heads, &attends, blocks, width)?),
            (found, _) => found,
        };
        let original_context = match rules.original_context {
            Some(_) => k.take(rope::ORIGINAL_CONTEXT)?,
            None => None,
        };
        let sizes = Sizes {
            head_dim: &head_dim,
            rotated: latent_kept.map(|[_, rotated]| rotated),
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
        let latent = match (rules.latent, latent_kept) {
            (false, _) => None,
            (true, Some([rank, _])) => Some(latent::of_json(k, rank, rules.query_rank)?),
            (true, None) => Some(latent::take(k, [&kv_heads, &head_dim], &rope)?),
        };
        // What is kept of a token is the value too, whatever length the file states of one.
        let values = latent.map_or(values, |latent| PerLayer::all(latent.rank));
        let rotated = windows::rotated(k, rules, unrotated.as_deref(), (window, &windowed))?;
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
        let factors = factors::take(k, rules, head_dim.of(0))?;
        let score_factor = factors
            .scores
            .map_or_else(|| k.factor(SCALE), |stated| Ok(Some(stated)))?;
        let divisor = match rules.score_divisor {
            Some(absent) => Some(k.number(SCORE_DIVISOR, &POSITIVE, Some(absent))?),
            None => (rules.wide_scale_layers == Some(layers)).then_some(of_width as f32),
        };
        let norm_eps = match rules.norm {
            NormKind::Rms => k.number(EPS, &NOT_NEGATIVE, None)?,
            NormKind::Layer => {
                let absent = rules.texts.and_then(|texts| texts.eps).filter(|_| !k.is_gguf());
                k.number(LAYER_EPS, &NOT_NEGATIVE, absent)?
            }
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
            norm_eps,
            inner_eps: rules.inner_eps.filter(|_| !k.is_gguf()).unwrap_or(norm_eps),
            norm: rules.norm,
            output_norm: rules.output_norm,
            attention_scale: match latent {
                Some(latent) => {
                    if let Some(stated) = score_factor {
                        return Err(k.refuse(SCALE, stated, "latent attention has a factor of its own"));
                    }
                    let length = (latent.nope + rope.get(0).n_dims) as f64;
                    Some((on_scores * on_scores / length.sqrt()) as f32)
                }
                None => {
                    let absent = divisor.map(|divisor| 1.0 / divisor.sqrt());
                    score_factor.or(rules.score_factor).or(absent)
                }
            },
            latent,
            rope,
            rope_factors: match rules.unused_divisors {
                true => RopeFactors::Unused,
                false => rope_factors,
            },
            rotated,
            embedding_factor: factors.embedding,
            attention_factor: factors.attention,
            branch_factor: factors.branches,
            gate_factor: factors.gates,
            scan_factors: factors.scans,
            logit_factor: factors.logits,
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
                true => softcap(k, ATTENTION_SOFTCAP, rules.softcaps.absent[0])?,
                false => None,
            },
            logit_softcap: match rules.softcaps.logits {
                true => softcap(k, LOGIT_SOFTCAP, rules.softcaps.absent[1])?,
                false => None,
            },
            output: {
                let early = k.agreed(EARLY_TIED, None)?;
                match k.agreed(TIED, early)?.map(|tied: (_, bool)| tied.1) {
                    None => rules.output,
                    Some(true) => OutputMatrix::Embedding,
                    Some(false) => OutputMatrix::Own,
                }
            },
            pooling,
            classifier: texts::classifier(k, rules)?,
            texts,
        })
    }
}

/// Takes the settings of a quantised checkpoint, which must be of MXFP4.
fn mxfp4(k: &mut Keys<'_>, rules: &Rules) -> Result<(), ModelError> {
    let Some(settings) = k.object("quantization_config")? else {
        return Ok(());
    };
    if !settings.is("quant_method", "mxfp4") {
        let key = Key("", "quantization_config.quant_method");
        return Err(k.refuse(key, "another method", "mxfp4 is supported"));
    }
    // The tensors say which are quantised.
    settings.finish(
        &Known {
            ignored: &["quant_method modules_to_not_convert dequantize"],
            ..Known::NOTHING
        },
        rules.name,
    )
}

/// A bound of scores. Null, or 0 in a GGUF, turns off what an absent key stands for.
fn softcap(k: &mut Keys<'_>, key: Key, absent: Option<f32>) -> Result<Option<f32>, ModelError> {
    let absent = absent.filter(|_| !k.has_any(key));
    Ok(k.factor(key)?.or(absent))
}

/// Widths of LFM 2's networks: two thirds of what is stated, times a factor, rounded up to a multiple of a number.
fn adjusted(k: &mut Keys<'_>, stated: &PerLayer) -> Result<PerLayer, ModelError> {
    let is_adjusted = k.take(ADJUSTED)?.unwrap_or(true);
    let absent = k.unless_null(ADJUSTED_BY, Some(1.0));
    let by: Option<f64> = k.take(ADJUSTED_BY)?.or(absent);
    let to = k.size(ADJUSTED_TO, &SIZE, Some(256))?;
    let of_one = |stated: usize| {
        if !is_adjusted {
            return stated;
        }
        let part = 2 * stated / 3;
        by.map_or(part, |by| ((part as f64 * by) as usize).next_multiple_of(to))
    };
    let all = PerLayer::each(stated.values().map(|&stated| of_one(stated)));
    let all = all.unwrap_or(PerLayer::all(1));
    for &width in all.values() {
        k.check(FF, width, &SIZE)?;
    }
    Ok(all)
}

/// Keys that turn a feature on, which is read by these rules.
fn features_read(k: &Keys<'_>, rules: &Rules) -> Vec<&'static str> {
    let others = [
        (rules.window != Window::Never, windows::WINDOW),
        (rules.sections.is_some(), rope::SECTIONS),
        (rules.predictors, PREDICTORS),
        (rules.shared_caches != SharedCaches::Never, SHARED_CACHES),
        (rules.layer_inputs.is_some(), LAYER_INPUT),
        (rules.global_head_dim.is_some(), global::EACH),
    ];
    let others = others.into_iter().filter_map(|(is_read, key)| is_read.then_some(key));
    let experts = rules.experts.iter().flat_map(experts::read);
    let recurrent = rules.recurrent.iter().flat_map(|kind| recurrent::read(*kind)).copied();
    let latent = rules.latent.then_some(latent::READ).into_iter().flatten();
    let growth = growth::read(rules).iter().copied();
    let factors = factors::read(rules.factors).iter().copied();
    let keys = factors
        .chain(others)
        .chain(latent)
        .chain(growth)
        .chain(experts)
        .chain(recurrent);
    keys.flat_map(|key| k.names(key)).collect()
}

/// What each layer is given of a token. `absent` is its length where the file does not state it.
fn layer_input(
    k: &mut Keys<'_>,
    rules: &Rules,
    absent: usize,
    vocab: usize,
) -> Result<Option<LayerInputConfig>, ModelError> {
    let width = k.take(LAYER_INPUT)?.unwrap_or(absent);
    let tokens = if k.is_gguf() { vocab } else { LAYER_INPUT_VOCAB };
    let tokens = k.size(LAYER_INPUT_TOKENS, &SIZE, Some(tokens))?;
    if width == 0 && rules.streams.is_none() {
        return Ok(None);
    }
    Ok(Some(LayerInputConfig {
        width: k.check(LAYER_INPUT, width, &COUNT)?,
        tokens,
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
