//! `/embedding` and `/embeddings`: embeddings in llama.cpp's own form, with a norm that the request chooses.

use axum::extract::State;
use axum::response::Response;

use crate::app::{App, Asker};
use crate::description::field::{Body, Field, Form, Group};
use crate::embeddings::{self, Norm};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::openai::{chat, is_base64};
use crate::source::ModelKind;

pub(super) const BODY: Body = Body {
    groups: &[
        Group::Read(chat::MODEL),
        Group::Read(&[
            Field(
                "content",
                Form::Other(embeddings::described_inputs),
                "A text, a list of texts, token ids, or a list of lists of ids.",
            ),
            Field("input", Form::Other(embeddings::described_inputs), "As content."),
            Field(
                "embd_normalize",
                Form::Integer,
                "-1 leaves an embedding as it is, 0 makes its largest value 32760, another number is the power of the norm that becomes 1 [default: 2].",
            ),
        ]),
        Group::Read(embeddings::FORM),
    ],
    required: &[],
};

/// The norm that `embd_normalize` names: -1 none, 0 the largest value, 1 the sum, 2 the length, and further powers.
fn norm(fields: &Fields, is_normalized: bool) -> Result<Norm, ApiError> {
    let wrong = || ApiError::field("embd_normalize", "it must be -1, 0, or the power of a norm");
    match fields.integer("embd_normalize")?.unwrap_or(2) {
        2 if is_normalized => Ok(Norm::Model),
        -1 if is_normalized => Err(ApiError::not_supported(
            "embd_normalize",
            "the model scales its embeddings to length 1 by itself",
        )),
        -1 => Ok(Norm::Model),
        0 => Ok(Norm::MaxAbs),
        power => i32::try_from(power)
            .ok()
            .filter(|power| *power > 0)
            .map(Norm::Of)
            .ok_or_else(wrong),
    }
}

pub(super) async fn embed(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let name = match (fields.get("input").is_some(), fields.get("content").is_some()) {
        (true, true) => return Err(ApiError::field("content", "there is an input, too: send one of them")),
        (true, false) => "input",
        (false, _) => "content",
    };
    let inputs = embeddings::inputs(&fields, name, app.options().limits.inputs)?;
    if is_base64(&fields)? {
        return Err(ApiError::not_supported(
            "encoding_format",
            "this route gives numbers: /v1/embeddings gives base64",
        ));
    }
    let lease = app
        .encoder(&app.registry().find(fields.text("model")?)?, ModelKind::Embedding)
        .await?;
    embeddings::check_dimensions(&fields, &lease)?;
    let norm = norm(&fields, lease.handle().pooling().normalize)?;
    let make = move |rows: &mut embeddings::Rows<'_>| inputs.iter().try_for_each(|input| rows.add(name, input, false));
    let served = embeddings::compute(&app, &asker, &lease, make).await?;
    // A model without pooling would give a row for each token, which is why rows are in a list.
    let part = move |index: usize, row: &[f32]| {
        let row = embeddings::numbers(&norm.scaled(row));
        format!("{{\"index\":{index},\"embedding\":[{row}]}}")
    };
    Ok(embeddings::written("[".to_owned(), served, part, "]"))
}
