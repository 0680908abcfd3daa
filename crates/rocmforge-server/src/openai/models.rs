//! `/v1/models`: the models that a request may name.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{ApiError, Kind};
use crate::registry::Entry;
use crate::source::ModelKind;

fn model(entry: &Entry) -> Value {
    let meta = entry.look(|loaded, _| {
        let facts = &loaded.facts;
        json!({
            "architecture": facts.architecture,
            "weight_type": facts.weight_type,
            "n_params": facts.parameters,
            "size": facts.weight_bytes,
            "n_ctx": facts.context,
            "n_ctx_train": facts.trained_context,
            "n_embd": facts.width,
            "n_vocab": loaded.server.tokenizer().vocab_size(),
        })
    });
    json!({
        "id": entry.name,
        "object": "model",
        "created": 0,
        "owned_by": "rocmforge",
        // What it makes; null where that is not known before it is loaded.
        "kind": entry.kind().map(ModelKind::name),
        "status": {"value": if meta.is_some() { "loaded" } else { "unloaded" }},
        "meta": meta,
    })
}

pub(super) async fn list(State(app): State<App>) -> Json<Value> {
    let models: Vec<Value> = app.registry().entries().map(|entry| model(&entry)).collect();
    Json(json!({"object": "list", "data": models}))
}

pub(super) async fn show(
    State(app): State<App>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Value>, ApiError> {
    let Path(name) = name.map_err(|error| ApiError::invalid(error.body_text()))?;
    let entry = app.registry().entries().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| ApiError::new(Kind::NotFound, format!("there is no model {name:?}")))?;
    Ok(Json(model(&entry)))
}
