//! `/api/embed` and the older `/api/embeddings`: embeddings in ollama's forms.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use rocmforge_models::serve::EmbeddingHandle;
use serde_json::{Value, json};

use super::{KEEP_ALIVE, NAME, entry, keep_alive};
use crate::app::{App, Asker};
use crate::description::field::{Body, Field, Form, Group};
use crate::embeddings::{self, Input, Norm};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::registry::Lease;
use crate::source::ModelKind;

pub(super) const EMBED: Body = Body {
    groups: &[
        Group::Read(NAME),
        Group::Read(&[
            Field("input", Form::Texts, "The texts; without one the model is loaded."),
            Field(
                "truncate",
                Form::Bool,
                "Whether texts that are too long are cut [default: true].",
            ),
            Field("dimensions", Form::Integer, "It must be the model's own number."),
            KEEP_ALIVE,
        ]),
    ],
    required: &["model"],
};

pub(super) const EMBED_ONE: Body = Body {
    groups: &[
        Group::Read(NAME),
        Group::Read(&[
            Field("prompt", Form::Text, "The text; without one the model is loaded."),
            KEEP_ALIVE,
        ]),
    ],
    required: &["model"],
};

/// Uses the model of a request for as long as that says.
async fn read(app: &App, fields: &Fields) -> Result<Arc<Lease<EmbeddingHandle>>, ApiError> {
    let keep = keep_alive(fields)?;
    let lease = app.encoder(&entry(app, fields)?, ModelKind::Embedding).await?;
    if let Some(time) = keep {
        lease.keep(time);
    }
    Ok(lease)
}

/// Texts that are longer than the model takes are cut, unless `truncate` is false. Without texts the model is loaded.
pub(super) async fn embed(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let begun = Instant::now();
    let texts = fields.texts("input")?;
    embeddings::check_count("input", texts.len(), app.options().limits.inputs)?;
    let cuts = fields.get("truncate").is_none() || fields.bool("truncate")?;
    let lease = read(&app, &fields).await?;
    let load = begun.elapsed();
    embeddings::check_dimensions(&fields, &lease)?;
    let model = Value::from(fields.text("model")?.unwrap_or(lease.name()));
    if texts.is_empty() {
        return Ok(Json(json!({"model": model, "embeddings": []})).into_response());
    }
    let make = move |rows: &mut embeddings::Rows<'_>| {
        let mut texts = texts.into_iter();
        texts.try_for_each(|text| rows.add("input", &Input::Text(text), cuts))
    };
    let served = embeddings::compute(&app, &asker, &lease, make).await?;
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let (total, load, tokens) = (nanoseconds(begun.elapsed()), nanoseconds(load), served.tokens);
    let head = format!(
        "{{\"model\":{model},\"total_duration\":{total},\"load_duration\":{load},\"prompt_eval_count\":{tokens},\"embeddings\":["
    );
    let norm = Norm::length(lease.handle());
    let part = move |_: usize, row: &[f32]| embeddings::numbers(&norm.scaled(row));
    Ok(embeddings::written(head, served, part, "]}"))
}

/// One text, whose embedding is as the model gives it. An empty one loads the model.
pub(super) async fn embed_one(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let text = fields.text("prompt")?.unwrap_or_default().to_owned();
    let lease = read(&app, &fields).await?;
    if text.is_empty() {
        return Ok(Json(json!({"embedding": []})).into_response());
    }
    let make = move |rows: &mut embeddings::Rows<'_>| rows.add("prompt", &Input::Text(text), true);
    let served = embeddings::compute(&app, &asker, &lease, make).await?;
    let part = |_: usize, row: &[f32]| embeddings::numbers(row);
    Ok(embeddings::written("{\"embedding\":".to_owned(), served, part, "}"))
}
