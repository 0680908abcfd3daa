//! `/v1/embeddings`: embeddings of texts, scaled to length 1.

use axum::extract::State;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::app::{App, Asker};
use crate::description::field::{Body, Field, Form, Group};
use crate::embeddings::{self, Norm};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::source::ModelKind;

/// Fields of other servers that change an embedding and are not there.
const NOT_SUPPORTED: [&str; 6] = [
    "input_type",
    "late_chunking",
    "prompt_name",
    "task",
    "truncate",
    "truncate_prompt_tokens",
];

pub(super) const BODY: Body = Body {
    groups: &[
        Group::Read(super::chat::MODEL),
        Group::Read(&[Field(
            "input",
            Form::Other(embeddings::described_inputs),
            "A text, a list of texts, token ids, or a list of lists of ids.",
        )]),
        Group::Read(embeddings::FORM),
        Group::Refused(&NOT_SUPPORTED),
    ],
    required: &["input"],
};

/// Whether embeddings are base64 of their f32 in little-endian order, and no lists of numbers.
pub(crate) fn is_base64(fields: &Fields) -> Result<bool, ApiError> {
    match fields.text("encoding_format")? {
        None | Some("float") => Ok(false),
        Some("base64") => Ok(true),
        Some(_) => Err(ApiError::field("encoding_format", "it must be float or base64")),
    }
}

pub(super) async fn create(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    fields.refuse(&NOT_SUPPORTED)?;
    let is_base64 = is_base64(&fields)?;
    let inputs = embeddings::inputs(&fields, "input", app.options().limits.inputs)?;
    let name = fields.text("model")?;
    let lease = app.encoder(&app.registry().find(name)?, ModelKind::Embedding).await?;
    embeddings::check_dimensions(&fields, &lease)?;
    let make =
        move |rows: &mut embeddings::Rows<'_>| inputs.iter().try_for_each(|input| rows.add("input", input, false));
    let served = embeddings::compute(&app, &asker, &lease, make).await?;
    let usage = json!({"prompt_tokens": served.tokens, "total_tokens": served.tokens});
    let model = Value::from(name.unwrap_or(lease.name()));
    let head = format!("{{\"object\":\"list\",\"model\":{model},\"usage\":{usage},\"data\":[");
    let norm = Norm::length(lease.handle());
    let part = move |index: usize, row: &[f32]| {
        let row = norm.scaled(row);
        let embedding = match is_base64 {
            false => embeddings::numbers(&row),
            true => {
                let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
                format!("\"{}\"", STANDARD.encode(bytes))
            }
        };
        format!("{{\"object\":\"embedding\",\"index\":{index},\"embedding\":{embedding}}}")
    };
    Ok(embeddings::written(head, served, part, "]}"))
}
