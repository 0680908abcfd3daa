//! Fit: whether a model fits on a card, before anything is fetched or loaded.
//!
//! The plan is the engine's own ([`Engine::forecast`]), and the budget is that of the memory ledger, on a simulated card with the memory that is asked about.

mod encoder;

use std::io::Write;

use clap::Args as Arguments;
use rocmforge::ggml::{DType, HipGgmlBackend, HostAccess};
use rocmforge::gguf::TensorType;
use rocmforge::models::bert::AnyModel;
use rocmforge::models::{Engine, EngineOptions, Forecast, Limit, Model, ModelError};
use serde_json::{Value, json};

use crate::cards;
use crate::failure::Failure;
use crate::options::{CacheOptions, DEFAULT_MODEL};
use crate::place::{Asked, CardOptions};
use crate::pull::header;
use crate::table::{self, short};

/// Context for which figures are shown where none is asked for and none fits.
const SHORT_CONTEXT: usize = 4096;
/// Bytes that main memory delivers in a second, two channels of DDR5: for the upper bound on the tokens/s of layers on the CPU.
const MAIN_MEMORY: f64 = 60e9;
/// Types that are tried in place of one that does not fit, from the best on.
const TRIED: [DType; 6] = [DType::Q8_0, DType::Q6K, DType::Q5K, DType::Q4K, DType::Q3K, DType::Q2K];

/// Says whether a model fits on a card, and what would; fetches nothing but the model's header.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    /// A name as for `pull`, a model that is here, a GGUF file, whole or in part, a config.json, or a directory that has one.
    #[arg(value_name = "MODEL", default_value = DEFAULT_MODEL)]
    model: String,
    #[command(flatten)]
    card: CardOptions,
    /// The model as it would be with its matrices in this type, such as q4_k or q8_0.
    #[arg(long, value_parser = quant)]
    quant: Option<DType>,
    #[command(flatten)]
    cache: CacheOptions,
    /// Prints one JSON object, and nothing else, on stdout.
    #[arg(long)]
    json: bool,
}

/// A type of weights by its name in GGUF, or by that of the files that have mostly this type (`Q4_K_M`).
fn quant(text: &str) -> Result<DType, String> {
    let name = text.to_ascii_uppercase();
    let base = ["_XL", "_S", "_M", "_L"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(&name);
    let find = |name: &str| {
        TensorType::ALL
            .iter()
            .find(|ty| ty.name().eq_ignore_ascii_case(name))
            .copied()
    };
    // `IQ2_S` and others end so themselves.
    let dtype = find(&name).or_else(|| find(base)).and_then(DType::of_tensor_type);
    dtype
        .filter(|dtype| dtype.is_weight())
        .ok_or_else(|| "it is a type of weights, such as f16, q8_0 or q4_k".to_owned())
}

/// What was found out.
pub(crate) struct Answer {
    /// Shares of memory at the context that is shown.
    shown: Forecast,
    /// The longest context that fits.
    pub(crate) largest: Option<usize>,
    /// What the model may take, where a place is asked about.
    room: Option<usize>,
}

/// Parts of a model without room on a card.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spilled {
    /// How many parts have room.
    pub(crate) on_card: usize,
    /// Bytes of the others.
    bytes: usize,
    /// The fewest bytes of the others that each token reads.
    token_bytes: usize,
}

impl Spilled {
    /// No more tokens can be computed in a second, whatever the CPU does.
    fn most_tokens_per_second(self) -> f64 {
        MAIN_MEMORY / self.token_bytes.max(1) as f64
    }
}

impl Answer {
    /// The plan of a model in the memory of a backend.
    ///
    /// # Errors
    /// The model has no plan: a tensor is missing, or has another shape.
    pub(crate) fn of<B: HostAccess>(
        model: &Model,
        backend: &B,
        options: EngineOptions,
        room: Option<usize>,
    ) -> Result<Self, Failure> {
        let forecast = |max_context, room| {
            let options = EngineOptions { max_context, ..options };
            Engine::forecast(backend, model, options, room)
        };
        let best = match room.map(|room| forecast(Limit::Auto, Some(room))) {
            None => None,
            Some(Ok(best)) => Some(best),
            Some(Err(ModelError::DoesNotFit { .. } | ModelError::ContextTooLarge { .. })) => None,
            Some(Err(error)) => return Err(error.into()),
        };
        let largest = best.as_ref().map(|best| best.memory.max_context);
        let shown = match (options.max_context, best) {
            (Limit::Auto, Some(best)) => best,
            (Limit::Auto, None) if room.is_some() => {
                forecast(Limit::Tokens(SHORT_CONTEXT.min(model.config().context)), None)?
            }
            (asked, _) => forecast(asked, None)?,
        };
        Ok(Self { shown, largest, room })
    }

    /// Parts of the model.
    pub(crate) fn parts(&self) -> usize {
        self.shown.parts.len()
    }

    /// Bytes of each kind of caches, at the context that is shown.
    pub(crate) fn caches(&self) -> serde_json::Map<String, Value> {
        let caches = self.shown.caches.iter();
        caches.map(|(kind, bytes)| (kind.clone(), json!(bytes))).collect()
    }

    /// Bytes of everything.
    pub(crate) fn needed(&self) -> usize {
        let memory = &self.shown.memory;
        memory
            .weights
            .saturating_add(memory.cache)
            .saturating_add(memory.scratch)
    }

    /// Whether everything has room at the context that is shown.
    pub(crate) fn fits(&self) -> Option<bool> {
        self.room.map(|room| self.largest.is_some() && self.needed() <= room)
    }

    /// The parts that have room on the card, and those that have none.
    pub(crate) fn spilled(&self) -> Spilled {
        let mut left = self.room.unwrap_or(0).saturating_sub(self.shown.memory.scratch);
        let mut spilled = Spilled::default();
        for part in &self.shown.parts {
            match left.checked_sub(part.bytes) {
                Some(rest) => (left, spilled.on_card) = (rest, spilled.on_card + 1),
                None => {
                    spilled.bytes = spilled.bytes.saturating_add(part.bytes);
                    spilled.token_bytes = spilled.token_bytes.saturating_add(part.token_bytes);
                }
            }
        }
        spilled
    }
}

/// The card that is asked about, and a simulated one with its memory.
struct AskedPlace {
    card: Option<Asked>,
    backend: HipGgmlBackend,
    /// What a model may take of the card.
    room: Option<usize>,
}

impl AskedPlace {
    fn of(args: &Args) -> Result<Self, Failure> {
        let card = match args.card.asked()? {
            None => Asked::of_machine(),
            asked => asked,
        };
        let backend = card.as_ref().unwrap_or(&Asked::any()).open()?;
        let room = card.as_ref().and_then(|_| backend.available_bytes());
        Ok(Self { card, backend, room })
    }

    fn json(&self) -> Option<Value> {
        let budget = self.backend.hip().card().budget();
        self.card.as_ref().map(|card| {
            json!({
                "name": card.name,
                "target": card.target,
                "shares_memory": card.shared.is_some(),
                "has_kernels": card.has_kernels(),
                "memory_bytes": card.memory.0,
                "others_bytes": budget.others.map(|bytes| bytes.0),
                "headroom_bytes": budget.headroom.0,
                "budget_bytes": self.room,
            })
        })
    }

    /// Rows about the card.
    fn rows(&self) -> Vec<(&'static str, String)> {
        let Some(card) = &self.card else {
            let advice = "none here: --card NAME or --vram SIZE asks about one";
            return vec![("card", advice.to_owned())];
        };
        let target = card.target.as_deref().unwrap_or("any");
        let mut rows = vec![("card", format!("{}, {}, {target}", card.name, short(card.memory.0)))];
        if card.shared.is_some() {
            let text = "it shares the machine's memory, of which the driver maps half or what it is set to";
            rows.push(("", text.to_owned()));
        }
        if !card.has_kernels() {
            let with = cards::with_kernels();
            let text = format!("none for {target} in this program: the CPU would compute. They are for {with}");
            rows.push(("kernels", text));
        }
        let budget = self.backend.hip().card().budget();
        let others = budget
            .others
            .map_or_else(|| "an unknown part".to_owned(), |bytes| short(bytes.0));
        let headroom = short(budget.headroom.0);
        rows.push((
            "desktop",
            format!("{others} in use by others, {headroom} more are kept free for them"),
        ));
        rows.push(("budget", self.room.map_or_else(String::new, |room| short(room as u64))));
        rows
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let outline = header::open(&args.model)?;
    let place = AskedPlace::of(args)?;
    match &outline.model {
        AnyModel::Text(model) => decoder(args, model, &place),
        AnyModel::Pooled(model) => encoder::run(args, model, &place),
    }
}

/// Answers for a model that makes text.
fn decoder(args: &Args, model: &Model, place: &AskedPlace) -> Result<(), Failure> {
    let options = args.cache.engine();
    let model = args
        .quant
        .map_or_else(|| model.clone(), |dtype| model.outline_in(dtype));
    let answer = Answer::of(&model, &place.backend, options, place.room)?;
    let other = match answer.fits() {
        Some(false) => smaller(&model, &place.backend, options, &answer)?,
        _ => None,
    };
    let memory = &answer.shown.memory;
    let asked = match options.max_context {
        Limit::Tokens(tokens) => tokens,
        Limit::Auto => model.config().context,
    };
    let (spilled, parts) = (answer.spilled(), answer.parts());
    let object = json!({
        "model": args.model,
        "architecture": model.architecture().name(),
        "card": place.json(),
        "context": memory.max_context,
        "model_context": model.config().context,
        "weight_bytes": memory.weights,
        "cache_bytes": memory.cache,
        "caches": answer.caches(),
        "scratch_bytes": memory.scratch,
        "needed_bytes": answer.needed(),
        "fits": answer.fits(),
        "largest_context": answer.largest,
        "fitting_type": other.as_ref().map(|(dtype, ..)| dtype.to_string()),
        "fitting_type_context": other.as_ref().map(|(_, context)| context),
        "parts": parts,
        "parts_on_card": answer.room.map(|_| spilled.on_card),
        "spilled_bytes": answer.room.map(|_| spilled.bytes),
        "spilled_bytes_per_token": answer.room.map(|_| spilled.token_bytes),
        "most_tokens_per_second": answer.room.filter(|_| spilled.token_bytes > 0).map(|_| spilled.most_tokens_per_second()),
    });
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&object)?)?;
        return Ok(());
    }
    let bytes = |bytes: usize| short(bytes as u64);
    let mut rows = vec![("model", format!("{} ({})", args.model, model.architecture().name()))];
    rows.push(("weights", bytes(memory.weights)));
    let kv = DType::from(options.kv);
    rows.push((
        "cache",
        format!("{} for {} tokens in {kv}", bytes(memory.cache), memory.max_context),
    ));
    if answer.shown.caches.len() > 1 {
        rows.extend(
            answer
                .shown
                .caches
                .iter()
                .map(|(kind, size)| ("", format!("{} {kind}", bytes(*size)))),
        );
    }
    rows.push(("scratch", bytes(memory.scratch)));
    rows.push(("needed", bytes(answer.needed())));
    rows.extend(place.rows());
    if place.card.is_none() {
        return print(&mut out, &rows);
    }
    let verdict = match (answer.fits(), answer.largest) {
        (Some(true), Some(largest)) if largest == model.config().context => {
            format!("yes, with all of the {largest} tokens that the model was made for")
        }
        (Some(true), Some(largest)) => {
            format!(
                "yes, up to {largest} of the {} tokens that the model was made for",
                model.config().context
            )
        }
        (_, Some(largest)) => format!("not with {asked} tokens; --ctx {largest} fits"),
        (_, None) => "no".to_owned(),
    };
    rows.push(("fits", verdict));
    if answer.fits() == Some(false) {
        rows.push((
            "smaller",
            match &other {
                Some((dtype, context)) => format!(
                    "with all matrices in {dtype} it fits, up to {context} tokens; files with larger types for some matrices (Q4_K_M) take up to a tenth more"
                ),
                None => "no usual type of weights makes it fit".to_owned(),
            },
        ));
        rows.push((
            "spilling",
            format!(
                "{} of {parts} parts fit on the card; the CPU would compute the others, {}",
                spilled.on_card,
                bytes(spilled.bytes)
            ),
        ));
        rows.push((
            "",
            format!(
                "and read at least {} of them for each token after {} tokens: upper bound {:.1} tokens/s, if main memory delivers {:.0} GB/s",
                bytes(spilled.token_bytes),
                memory.max_context,
                spilled.most_tokens_per_second(),
                MAIN_MEMORY / 1e9
            ),
        ));
    }
    print(&mut out, &rows)
}

fn print(out: &mut impl Write, rows: &[(&str, String)]) -> Result<(), Failure> {
    let rows: Vec<[String; 2]> = rows
        .iter()
        .map(|(name, value)| [(*name).to_owned(), value.clone()])
        .collect();
    Ok(table::plain(out, &rows)?)
}

/// The best type in which the model fits with the context that is shown, and the longest context in it.
fn smaller(
    model: &Model,
    backend: &HipGgmlBackend,
    options: EngineOptions,
    answer: &Answer,
) -> Result<Option<(DType, usize)>, Failure> {
    for dtype in TRIED {
        let other = Answer::of(&model.outline_in(dtype), backend, options, answer.room)?;
        let is_smaller = other.shown.memory.weights < answer.shown.memory.weights;
        if is_smaller
            && other.fits() == Some(true)
            && let Some(largest) = other.largest
        {
            return Ok(Some((dtype, largest)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_gguf_and_of_files() {
        for (text, dtype) in [
            ("q4_k", DType::Q4K),
            ("Q4_K_M", DType::Q4K),
            ("iq2_s", DType::Iq2S),
            ("F16", DType::F16),
            ("q8_0", DType::Q8_0),
        ] {
            assert_eq!(quant(text), Ok(dtype), "{text}");
        }
        for text in ["", "q9", "i32", "q8_k", "_M"] {
            assert!(quant(text).is_err(), "{text}");
        }
    }
}
