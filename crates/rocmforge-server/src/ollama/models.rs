//! Models as ollama lists them. None of these routes loads one.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::entry;
use crate::app::App;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::generation::now;
use crate::registry::Entry;
use crate::source::ModelKind;

/// The version of ollama whose routes these are: clients refuse old ones.
const VERSION: &str = "0.12.0";
/// What stands for "for ever": 100 years, in seconds.
const FOR_EVER: u64 = 100 * 365 * 86400;

/// Seconds since 1970 as RFC 3339 has them. Days become dates by the calendar's rule of 400 years.
pub(super) fn time(seconds: u64) -> String {
    let (days, second) = (seconds / 86400 + 719_468, seconds % 86400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    // Years begin in March here, so that the day that comes every four years is the last.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, after) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + after;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// What is known of a model: nothing but its name before it is loaded.
fn details(entry: &Entry) -> (Value, u64) {
    let known = entry.look(|loaded, _| {
        let facts = &loaded.facts;
        let details = json!({
            "parent_model": "",
            "format": "gguf",
            "family": facts.architecture,
            "families": [facts.architecture],
            "parameter_size": parameters(facts.parameters),
            "quantization_level": facts.weight_type,
        });
        (details, facts.weight_bytes)
    });
    let unknown = json!({
        "parent_model": "",
        "format": "gguf",
        "family": "",
        "families": [],
        "parameter_size": "",
        "quantization_level": "",
    });
    known.unwrap_or((unknown, 0))
}

/// A count such as `1.2B`.
fn parameters(count: u64) -> String {
    match count {
        1_000_000_000.. => format!("{:.1}B", count as f64 / 1e9),
        1_000_000.. => format!("{:.1}M", count as f64 / 1e6),
        _ => format!("{:.1}K", count as f64 / 1e3),
    }
}

fn model(entry: &Entry) -> Value {
    let (details, size) = details(entry);
    // ollama's own client shows the first twelve digits. No file is read for it: each name has another.
    let digest = Sha256::digest(&entry.name);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"name": entry.name, "model": entry.name, "size": size, "digest": digest, "details": details})
}

/// `/api/tags`.
pub(super) async fn list(State(app): State<App>) -> Json<Value> {
    let models = app.registry().entries().map(|entry| {
        let mut model = model(&entry);
        model["modified_at"] = time(app.started()).into();
        model
    });
    Json(json!({"models": models.collect::<Vec<_>>()}))
}

/// `/api/ps`.
pub(super) async fn running(State(app): State<App>) -> Json<Value> {
    let models = app.registry().entries().filter_map(|entry| {
        let unused = entry.idle()?;
        let rest = entry
            .keep_alive()
            .map_or(FOR_EVER, |time| time.saturating_sub(unused).as_secs());
        let mut model = model(&entry);
        model["expires_at"] = time(now() + rest).into();
        let ((bytes, on_cards), context) =
            entry.look(|loaded, figures| (loaded.bytes(figures), loaded.facts.context))?;
        // Clients divide one by the other.
        model["size"] = bytes.into();
        model["size_vram"] = on_cards.into();
        model["context_length"] = context.into();
        Some(model)
    });
    Json(json!({"models": models.collect::<Vec<_>>()}))
}

fn capabilities(kind: Option<ModelKind>) -> Vec<&'static str> {
    vec![match kind {
        None | Some(ModelKind::Text) => "completion",
        Some(ModelKind::Embedding) => "embedding",
        // ollama has no name for it.
        Some(ModelKind::Ranking) => "ranking",
    }]
}

/// `/api/show`.
pub(super) async fn show(State(app): State<App>, fields: Fields) -> Result<Json<Value>, ApiError> {
    let entry = entry(&app, &fields)?;
    let (details, _) = details(&entry);
    let known = entry.look(|loaded, _| {
        let (facts, template) = (&loaded.facts, &loaded.template);
        let architecture = &facts.architecture;
        let info = json!({
            "general.architecture": architecture,
            "general.parameter_count": facts.parameters,
            format!("{architecture}.context_length"): facts.trained_context,
            format!("{architecture}.embedding_length"): facts.width,
        });
        let template = template.as_ref().map_or("", |template| template.source());
        let mut capabilities = capabilities(entry.kind());
        capabilities.extend(loaded.thinking_marks().map(|_| "thinking"));
        (info, template.to_owned(), capabilities)
    });
    let (info, template, capabilities) = known.unwrap_or((json!({}), String::new(), capabilities(entry.kind())));
    Ok(Json(json!({
        "modelfile": "",
        "parameters": "",
        "template": template,
        "details": details,
        "model_info": info,
        "capabilities": capabilities,
        "modified_at": time(app.started()),
    })))
}

/// `/api/version`.
pub(super) async fn version() -> Json<Value> {
    Json(json!({"version": VERSION, "server": concat!("rocmforge ", env!("CARGO_PKG_VERSION"))}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_795_873_636, "2026-11-28T13:47:16Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }
}
