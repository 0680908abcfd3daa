//! Embeddings and scores: inputs of a request, their computation by an encoder, and answers that are written part by part.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use rocmforge_models::bert::{TextEncoder, TextIds};
use rocmforge_models::serve::{EmbeddingHandle, EmbeddingTicket, ServedEmbeddings};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::app::{App, Asker};
use crate::description::field::{Field, Form};
use crate::description::schema::{self, Described};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::options::Limits;
use crate::registry::Lease;

/// One thing to embed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// A text, which gets what the model wants before and after it.
    Text(String),
    /// Token ids with texts among them: all of the model's input, to which nothing is added.
    Parts(Vec<Part>),
}

/// A part of an input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Id(u32),
    Text(String),
}

/// The inputs of a request: a text, token ids, or a list of these. llama.cpp's objects count as texts: `prompt_string`, or `content` with parts.
pub(crate) fn inputs(fields: &Fields, name: &str, most: usize) -> Result<Vec<Input>, ApiError> {
    let wrong = |text: &str| ApiError::field(name, text);
    let value = fields.get(name);
    let value = value.ok_or_else(|| wrong("it is missing: give a text, a list of texts, or token ids"))?;
    let inputs = match value {
        Value::Array(list) if list.is_empty() => return Err(wrong("the list is empty")),
        // Ids are of one input.
        Value::Array(list) if !list.iter().any(Value::is_number) => {
            check_count(name, list.len(), most)?;
            list.iter().map(|value| input(name, value)).collect::<Result<_, _>>()?
        }
        value => vec![input(name, value)?],
    };
    Ok(inputs)
}

/// The schema of [`inputs`].
pub(crate) fn described_inputs() -> Described {
    let object = || {
        let keys = [
            ("prompt_string", schema::text()),
            ("content", schema::list(schema::any())),
        ];
        schema::object([], keys, true)
    };
    let part = || schema::either([schema::text(), schema::count()]);
    let one = || schema::either([schema::text(), object(), schema::filled(part())]);
    schema::either([one(), schema::filled(one())])
}

/// Fields of all routes of embeddings that choose a form.
pub(crate) const FORM: &[Field] = &[
    Field(
        "encoding_format",
        Form::Other(|| schema::values([Value::Null, "float".into(), "base64".into()])),
        "float is a list of numbers, base64 their f32 in little-endian order.",
    ),
    Field("dimensions", Form::Integer, "It must be the model's own number."),
];

/// Refuses too many inputs.
pub(crate) fn check_count(name: &str, count: usize, most: usize) -> Result<(), ApiError> {
    match count > most {
        true => Err(ApiError::field(name, format!("it has {count} entries, {most} may be"))),
        false => Ok(()),
    }
}

fn input(name: &str, value: &Value) -> Result<Input, ApiError> {
    let wrong = || ApiError::field(name, "it must be a text, a list of token ids, or a list of these");
    match value {
        Value::String(text) => Ok(Input::Text(text.clone())),
        Value::Array(list) if list.is_empty() => Err(ApiError::field(name, "a list of token ids is empty")),
        Value::Array(list) => {
            let part = |value: &Value| match value {
                Value::String(text) => Some(Part::Text(text.clone())),
                value => value.as_u64().and_then(|id| u32::try_from(id).ok()).map(Part::Id),
            };
            let parts: Option<Vec<Part>> = list.iter().map(part).collect();
            Ok(Input::Parts(parts.ok_or_else(wrong)?))
        }
        Value::Object(object) => {
            let object = Fields::of(object.clone());
            object.refuse(&["multimodal_data"])?;
            if let Some(text) = object.text("prompt_string")? {
                return Ok(Input::Text(text.to_owned()));
            }
            let parts = object.list("content")?.ok_or_else(wrong)?;
            let text = |part: &Value| match part["type"].as_str() {
                Some("text") => part["text"].as_str().map(str::to_owned).ok_or_else(wrong),
                kind => {
                    let kind = kind.unwrap_or_default();
                    let text = format!("a part of type {kind:?} is not supported: the model takes text only");
                    Err(ApiError::not_supported(name, text))
                }
            };
            Ok(Input::Text(parts.iter().map(text).collect::<Result<_, _>>()?))
        }
        _ => Err(wrong()),
    }
}

/// Rows of token ids, within the limits of the model and of the server.
pub(crate) struct Rows<'a> {
    encoder: &'a TextEncoder,
    limits: Limits,
    tokens: usize,
    rows: Vec<TextIds>,
}

impl Rows<'_> {
    pub(crate) fn encoder(&self) -> &TextEncoder {
        self.encoder
    }

    /// Adds an input; a text that is too long is cut if `cut` says so.
    pub(crate) fn add(&mut self, name: &str, input: &Input, cut: bool) -> Result<(), ApiError> {
        let of_field = |error| ApiError::field(name, error);
        let row = match input {
            Input::Text(text) => self.encoder.text(text, cut).map_err(of_field)?,
            Input::Parts(parts) => {
                let mut ids = Vec::new();
                for part in parts {
                    match part {
                        Part::Id(id) if (*id as usize) < self.encoder.vocab() => ids.push(*id),
                        Part::Id(id) => {
                            let text = format!(
                                "the model has no token of the id {id}: its ids are below {}",
                                self.encoder.vocab()
                            );
                            return Err(ApiError::field(name, text));
                        }
                        Part::Text(text) => ids.extend(self.encoder.plain(text).map_err(of_field)?),
                    }
                }
                self.encoder.whole(ids).map_err(of_field)?
            }
        };
        self.push(name, row)
    }

    /// Adds a row of ids.
    pub(crate) fn push(&mut self, name: &str, row: TextIds) -> Result<(), ApiError> {
        let (tokens, context) = (row.len(), self.encoder.max_tokens());
        if tokens > context {
            // The words are those that clients of llama.cpp look for.
            let text = format!(
                "{name}: an input of {tokens} tokens is too large to process: the model takes {context}, so shorten the text or split it"
            );
            return Err(ApiError::new(Kind::ContextExceeded { tokens, context }, text));
        }
        self.tokens += tokens;
        let most = self.limits.input_tokens;
        if self.tokens > most {
            let text = format!("the inputs have more than {most} tokens together: send them in several requests");
            return Err(ApiError::field(name, text));
        }
        self.rows.push(row);
        Ok(())
    }
}

/// A request while it is computed, for the figures of its end.
struct Run<'a> {
    lease: &'a Lease<EmbeddingHandle>,
    begun: Instant,
    end: Option<(&'static str, usize)>,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let (end, tokens) = self.end.unwrap_or(("cancelled", 0));
        self.lease.metrics().embedded(end, tokens, self.begun.elapsed());
    }
}

/// Computes the rows that `make` adds, away from the threads that serve connections. If nobody waits for the end of this, the request is cancelled.
pub(crate) async fn compute(
    app: &App,
    asker: &Asker,
    lease: &Arc<Lease<EmbeddingHandle>>,
    make: impl FnOnce(&mut Rows<'_>) -> Result<(), ApiError> + Send + 'static,
) -> Result<ServedEmbeddings, ApiError> {
    let place = app.place(asker)?;
    let mut run = Run {
        lease,
        begun: Instant::now(),
        end: None,
    };
    let limits = app.options().limits;
    let until = tokio::time::Instant::now() + limits.answer_time;
    let of_thread = Arc::clone(lease);
    type Submitted = (EmbeddingTicket, oneshot::Receiver<Answer>);
    type Answer = Result<ServedEmbeddings, rocmforge_models::serve::ServeError>;
    // Long texts take time to become tokens.
    let submit = tokio::task::spawn_blocking(move || {
        let handle = of_thread.handle();
        let mut rows = Rows {
            encoder: handle.encoder(),
            limits,
            tokens: 0,
            rows: Vec::new(),
        };
        make(&mut rows)?;
        let (sender, answer) = oneshot::channel();
        let ticket = handle.submit_to(rows.rows, move |answer| drop(sender.send(answer)))?;
        Ok::<Submitted, ApiError>((ticket, answer))
    });
    let submitted = submit
        .await
        .unwrap_or_else(|_| Err(ApiError::new(Kind::Internal, "the request could not be submitted")));
    let answered = match submitted {
        Err(error) => Err(error),
        Ok((_ticket, answer)) => match tokio::time::timeout_at(until, answer).await {
            Ok(Ok(Ok(served))) => finite(served),
            Ok(Ok(Err(error))) => Err(error.into()),
            Ok(Err(_)) => Err(ApiError::new(Kind::Internal, "the engine has stopped")),
            Err(_) => Err(ApiError::new(
                Kind::Internal,
                "the answer took longer than the server allows",
            )),
        },
    };
    if let Ok(served) = &answered {
        place.trace().embedded(lease.name(), served.tokens);
    }
    drop(place);
    run.end = Some(match &answered {
        Ok(served) => ("embedded", served.tokens),
        Err(error) if matches!(error.kind, Kind::Internal | Kind::Unavailable) => ("failed", 0),
        Err(_) => ("refused", 0),
    });
    answered
}

/// JSON has no NaN.
fn finite(served: ServedEmbeddings) -> Result<ServedEmbeddings, ApiError> {
    match served.embeddings.data.iter().all(|value| value.is_finite()) {
        true => Ok(served),
        false => Err(ApiError::new(
            Kind::Internal,
            "the model gives values that are no finite numbers",
        )),
    }
}

/// How an embedding is scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Norm {
    /// As the model gives it.
    Model,
    /// Its largest value becomes 32760.
    MaxAbs,
    /// This norm of it becomes 1; 2 is its length.
    Of(i32),
}

impl Norm {
    /// Length 1, as OpenAI promises. A model that scales its embeddings by itself has done it.
    pub(crate) fn length(handle: &EmbeddingHandle) -> Self {
        match handle.pooling().normalize {
            true => Self::Model,
            false => Self::Of(2),
        }
    }

    /// The embedding in this scale; zeros stay zeros.
    pub(crate) fn scaled(self, row: &[f32]) -> Vec<f32> {
        let largest = row
            .iter()
            .fold(0.0_f64, |most, &value| most.max(f64::from(value).abs()));
        let factor = match self {
            Self::Model => return row.to_vec(),
            _ if largest == 0.0 => return row.to_vec(),
            Self::MaxAbs => 32760.0 / largest,
            // Of parts of the largest, whose powers stay within the range.
            Self::Of(p) => {
                let powers = row.iter().map(|&value| (f64::from(value).abs() / largest).powi(p));
                (powers.sum::<f64>().powf(1.0 / f64::from(p)) * largest).recip()
            }
        };
        row.iter().map(|&value| (f64::from(value) * factor) as f32).collect()
    }
}

/// Refuses another length of embeddings than the model's.
pub(crate) fn check_dimensions(fields: &Fields, lease: &Lease<EmbeddingHandle>) -> Result<(), ApiError> {
    let width = lease.handle().width();
    match fields.integer("dimensions")? {
        None => Ok(()),
        Some(wanted) if usize::try_from(wanted) == Ok(width) => Ok(()),
        Some(wanted) => {
            let name = lease.name();
            let text =
                format!("the embeddings of {name} have {width} dimensions, and {wanted} of them are no embedding");
            Err(ApiError::not_supported("dimensions", text))
        }
    }
}

/// JSON of numbers.
pub(crate) fn numbers(row: &[f32]) -> String {
    // Numbers that are finite can be written.
    serde_json::to_string(row).unwrap_or_default()
}

/// An answer with a part of JSON for each embedding, made when the client takes it: the whole text of a large answer is never there.
pub(crate) fn written(
    head: String,
    served: ServedEmbeddings,
    part: impl Fn(usize, &[f32]) -> String + Send + 'static,
    tail: &'static str,
) -> Response {
    let parts = (0..served.embeddings.len()).map(move |index| {
        // All of it is kept until the last part is written: its texts count as open meanwhile.
        let served = &served;
        let comma = if index == 0 { "" } else { "," };
        format!("{comma}{}", part(index, served.embeddings.row(index)))
    });
    let all = std::iter::once(head)
        .chain(parts)
        .chain(std::iter::once(tail.to_owned()));
    let all = all.map(|text| Ok::<_, Infallible>(Bytes::from(text)));
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, Body::from_stream(stream::iter(all))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_are_those_of_their_definitions() {
        let row = [3.0_f32, -4.0, 0.0];
        for (norm, expected) in [
            (Norm::Model, [3.0, -4.0, 0.0]),
            (Norm::MaxAbs, [24570.0, -32760.0, 0.0]),
            (Norm::Of(1), [3.0 / 7.0, -4.0 / 7.0, 0.0]),
            (Norm::Of(2), [0.6, -0.8, 0.0]),
            (Norm::Of(3), [3.0 / 91_f32.cbrt(), -4.0 / 91_f32.cbrt(), 0.0]),
        ] {
            let found = norm.scaled(&row);
            let worst = found.iter().zip(expected).map(|(a, b): (&f32, f32)| (a - b).abs());
            assert!(worst.fold(0.0, f32::max) <= 1e-6 * 32760.0, "{norm:?}: {found:?}");
        }
        for norm in [Norm::MaxAbs, Norm::Of(1), Norm::Of(2), Norm::Of(i32::MAX)] {
            assert_eq!(norm.scaled(&[0.0; 2]), [0.0; 2]);
            let large = norm.scaled(&[f32::MAX, f32::MIN_POSITIVE]);
            assert!(large.iter().all(|value| value.is_finite()), "{norm:?}: {large:?}");
        }
    }

    #[test]
    fn inputs_are_texts_ids_or_lists_of_them() {
        let read = |json: &str| {
            let value: Value = serde_json::from_str(json).expect("JSON");
            inputs(
                &Fields::of([("input".to_owned(), value)].into_iter().collect()),
                "input",
                3,
            )
        };
        let text = |text: &str| Input::Text(text.to_owned());
        let ids = |ids: &[u32]| Input::Parts(ids.iter().map(|id| Part::Id(*id)).collect());
        for (json, expected) in [
            (r#""""#, vec![text("")]),
            (r#"["a", "b"]"#, vec![text("a"), text("b")]),
            ("[1, 2]", vec![ids(&[1, 2])]),
            ("[[1], [2, 3]]", vec![ids(&[1]), ids(&[2, 3])]),
            (r#"["a", [4]]"#, vec![text("a"), ids(&[4])]),
            (
                r#"[1, "a"]"#,
                vec![Input::Parts(vec![Part::Id(1), Part::Text("a".to_owned())])],
            ),
            (r#"{"prompt_string": "a"}"#, vec![text("a")]),
            (
                r#"[{"content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}]"#,
                vec![text("a b")],
            ),
        ] {
            assert_eq!(read(json).expect(json), expected, "{json}");
        }
        for json in [
            "null",
            "[]",
            "[[]]",
            "1",
            "true",
            "[-1]",
            "[1.5]",
            "[4294967296]",
            "[null]",
            r#"["a", null]"#,
            r#"["a", "b", "c", "d"]"#,
            r#"{"content": "a"}"#,
            r#"{"content": [{"type": "image_url"}]}"#,
            r#"{"content": [{"type": "text"}]}"#,
            r#"{"prompt_string": "a", "multimodal_data": ["aGk="]}"#,
            "{}",
            "[[[1]]]",
        ] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
