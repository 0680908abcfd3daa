//! Models of the store: list, show, rm.

use std::io::Write;
use std::path::Path;

use clap::Args as Arguments;
use rocmforge::memory::Bytes;
use rocmforge::models::Model;
use rocmforge::models::bert::AnyModel;
use rocmforge::models::weights::WeightSource;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::options::DEFAULT_MODEL;
use crate::place::{CardOptions, Place};
use crate::store::{Entry, Store};
use crate::table;

/// Options of the list.
#[derive(Arguments, Debug)]
pub(crate) struct ListArgs {
    /// Prints one JSON array, and nothing else, on stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: CardOptions,
}

/// Options of `show`.
#[derive(Arguments, Debug)]
pub(crate) struct ShowArgs {
    /// A model that `rocmforge list` shows, a GGUF file, or a directory as Hugging Face lays it out.
    #[arg(value_name = "MODEL", default_value = DEFAULT_MODEL)]
    model: String,
    /// Prints one JSON object, and nothing else.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    card: CardOptions,
}

/// Options of `rm`.
#[derive(Arguments, Debug)]
pub(crate) struct RemoveArgs {
    /// Models that `rocmforge list` shows; also what an interrupted pull left of one.
    #[arg(value_name = "MODEL", required = true)]
    models: Vec<String>,
}

/// What weights are.
pub(crate) struct WeightFacts {
    pub(crate) bytes: usize,
    pub(crate) parameters: usize,
    /// The type of most bytes.
    pub(crate) most: Option<String>,
}

/// Bytes, number and type of weights.
pub(crate) fn weight_facts(weights: &dyn WeightSource) -> WeightFacts {
    let (mut bytes, mut parameters, mut types) = (0usize, 0usize, std::collections::BTreeMap::<String, usize>::new());
    for name in weights.names() {
        // A tensor that this build cannot use is named by what uses it.
        let Ok(Some(weight)) = weights.get(name) else { continue };
        bytes = bytes.saturating_add(weight.byte_size());
        parameters = parameters.saturating_add(weight.dims.iter().product());
        *types.entry(weight.dtype.to_string()).or_default() += weight.byte_size();
    }
    let most = types
        .iter()
        .max_by_key(|(_, bytes)| **bytes)
        .map(|(name, _)| name.clone());
    WeightFacts {
        bytes,
        parameters,
        most,
    }
}

/// What a model is, as far as its files say.
pub(crate) fn facts(model: &Model) -> Result<Value, Failure> {
    let config = model.config();
    let WeightFacts {
        bytes,
        parameters,
        most,
    } = weight_facts(model.weights());
    Ok(json!({
        "architecture": model.architecture().name(),
        "parameters": parameters,
        "type": most,
        "weight_bytes": bytes,
        "context": config.context,
        "vocabulary": config.vocab,
        "layers": config.layers,
        "width": config.width,
        "chat": model.chat_template()?.is_some(),
    }))
}

/// What the model of a path is, a decoder or an encoder.
fn facts_at(path: &Path, place: &Place) -> Result<Value, Failure> {
    let model = match AnyModel::open(path)? {
        AnyModel::Pooled(model) => model,
        AnyModel::Text(model) => {
            let mut facts = facts(&model)?;
            add_fit(&mut facts, &model, place);
            return Ok(facts);
        }
    };
    let (weights, config) = (weight_facts(model.weights()), model.config());
    let mut facts = json!({
        "architecture": model.architecture().name(),
        "parameters": weights.parameters,
        "type": weights.most,
        "weight_bytes": weights.bytes,
        "context": model.max_tokens(),
        "vocabulary": config.vocab,
        "layers": config.layers,
        "width": config.width,
        "pooling": format!("{:?}", model.pooling().mode).to_lowercase(),
        "chat": false,
    });
    facts["place"] = json!(place.name);
    // An encoder has no cache, and is whole in one place.
    match place.plan_encoder(&model) {
        Ok(memory) => {
            facts["fits"] = json!(place.room.map(|room| memory.bytes() <= room));
            facts["needed_bytes"] = json!(memory.bytes());
        }
        Err(error) => {
            facts["fits"] = Value::Null;
            facts["fits_error"] = json!(error.to_string());
        }
    }
    Ok(facts)
}

/// Adds whether the model fits in a place, by the engine's plan: `null` with the reason if there is no plan.
fn add_fit(facts: &mut Value, model: &Model, place: &Place) {
    facts["place"] = json!(place.name);
    match place.plan(model) {
        Ok(plan) => {
            facts["fits"] = json!(plan.fits());
            facts["needed_bytes"] = json!(plan.needed());
            facts["largest_context"] = json!(plan.largest);
            facts["caches"] = plan.caches().into();
            if place.is_card() {
                facts["has_kernels"] = json!(place.has_kernels);
                facts["parts"] = json!(plan.parts());
                facts["parts_on_card"] = json!(plan.spilled().on_card);
            }
        }
        Err(error) => {
            facts["fits"] = Value::Null;
            facts["fits_error"] = json!(error.to_string());
        }
    }
}

/// A cell of the list: whether the model fits.
fn fit_cell(entry: &Value) -> String {
    match (&entry["fits"], &entry["fits_error"]) {
        (Value::Bool(true), _) => match (entry["largest_context"].as_u64(), entry["context"].as_u64()) {
            (Some(largest), Some(context)) if largest < context => format!("fits, up to {largest} tokens"),
            _ => "fits".to_owned(),
        },
        (Value::Bool(false), _) => match (entry["parts_on_card"].as_u64(), entry["parts"].as_u64()) {
            (Some(on_card), Some(parts)) => format!("does not fit: {on_card} of {parts} parts"),
            _ => "does not fit".to_owned(),
        },
        (_, Value::String(error)) => format!("cannot be planned: {error}"),
        _ => String::new(),
    }
}

/// What a model of the store is. A model that cannot be opened is listed with its error.
fn entry_facts(entry: &Result<Entry, (String, std::io::Error)>, place: &Place) -> Value {
    let entry = match entry {
        Ok(entry) => entry,
        Err((name, error)) => return json!({ "name": name, "error": error.to_string() }),
    };
    let mut value = match facts_at(&entry.path(), place) {
        Ok(facts) => facts,
        Err(error) => json!({ "error": error.to_string() }),
    };
    value["name"] = json!(entry.manifest.name);
    value["path"] = json!(entry.path());
    value["bytes"] = json!(entry.bytes());
    value["source"] = json!(entry.manifest.source);
    value
}

/// Runs `list`.
pub(crate) fn list(args: &ListArgs) -> Result<(), Failure> {
    let entries = Store::of_user()?.list_all()?;
    let mut out = std::io::stdout().lock();
    if entries.is_empty() {
        match args.json {
            true => writeln!(out, "[]")?,
            false => eprintln!("no model is here: `rocmforge pull {DEFAULT_MODEL}` fetches a small one"),
        }
        return Ok(());
    }
    let place = Place::of(&args.card)?;
    let entries: Vec<Value> = entries.iter().map(|entry| entry_facts(entry, &place)).collect();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&entries)?)?;
        return Ok(());
    }
    if let Some(room) = place.room {
        let room = table::short(room as u64);
        match place.is_card() {
            true => eprintln!(
                "what fits: on {}, where {room} may be used{}",
                place.name,
                match place.has_kernels {
                    true => "",
                    false => "; this program has no kernels for it, and the CPU would compute",
                }
            ),
            false => eprintln!("what fits: in the machine's memory, of which {room} may be used"),
        }
    }
    let cell = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rows: Vec<[String; 5]> = entries
        .iter()
        .map(|entry| {
            let size = Bytes(entry["bytes"].as_u64().unwrap_or(0)).to_string();
            let what = match &entry["error"] {
                Value::Null => [cell(&entry["architecture"]), cell(&entry["type"])],
                error => [format!("cannot be used: {}", cell(error)), String::new()],
            };
            let [architecture, kind] = what;
            [cell(&entry["name"]), size, architecture, kind, fit_cell(entry)]
        })
        .collect();
    table::plain(&mut out, &rows)?;
    Ok(())
}

/// Runs `show`.
pub(crate) fn show(args: &ShowArgs) -> Result<(), Failure> {
    let path = Store::of_user()?.path_here(&args.model)?;
    let mut facts = facts_at(&path, &Place::of(&args.card)?)?;
    facts["path"] = json!(path);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&facts)?)?;
        return Ok(());
    }
    let bytes = |value: &Value| Bytes(value.as_u64().unwrap_or(0)).to_string();
    for (name, value) in facts.as_object().into_iter().flatten() {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Object(parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|(part, value)| format!("{part}: {}", bytes(value)))
                    .collect();
                parts.join(", ")
            }
            Value::Number(_) if name.ends_with("bytes") => bytes(value),
            other => other.to_string(),
        };
        writeln!(out, "{:<13} {value}", name.replace('_', " "))?;
    }
    Ok(())
}

/// Runs `rm`.
pub(crate) fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let store = Store::of_user()?;
    // All are looked for before the first is removed.
    let folders: Result<Vec<String>, Failure> = args.models.iter().map(|name| store.removable(name)).collect();
    for (name, folder) in args.models.iter().zip(folders?) {
        let model = store.lock_folder(&folder)?;
        let bytes = match model.entry() {
            Ok(Some(entry)) => format!(", {}", Bytes(entry.bytes())),
            _ => String::new(),
        };
        model.remove()?;
        eprintln!("{name} is removed{bytes}");
    }
    Ok(())
}
