//! `/rerank`: documents by their scores for a query, in the form of Jina and Cohere, or with `texts` in that of TEI.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::app::{App, Asker};
use crate::description::field::{Body, Field, Form, Group};
use crate::description::schema::{self, Described};
use crate::embeddings::{self, Rows};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::openai::chat::MODEL;
use crate::source::ModelKind;

/// Fields of other servers that change scores and are not there.
const NOT_SUPPORTED: [&str; 6] = [
    "instruction",
    "max_chunks_per_doc",
    "max_tokens_per_doc",
    "overlap_tokens",
    "rank_fields",
    "truncate_prompt_tokens",
];

fn described_documents() -> Described {
    let object = schema::object([("text", schema::text())], [], true);
    schema::filled(schema::either([schema::text(), object]))
}

pub(super) const BODY: Body = Body {
    groups: &[
        Group::Read(MODEL),
        Group::Read(&[
            Field("query", Form::Text, "What the documents are ranked for."),
            Field(
                "documents",
                Form::Other(described_documents),
                "Texts, or objects with one.",
            ),
            Field(
                "texts",
                Form::Other(described_documents),
                "As documents; the answer has TEI's form.",
            ),
            Field("top_n", Form::Count(0), "So many of the best are in the answer."),
            Field("return_documents", Form::Bool, "Whether the answer has the documents."),
            Field("return_text", Form::Bool, "The same in TEI's form."),
            Field("truncate", Form::Bool, "Whether documents that are too long are cut."),
            Field(
                "raw_scores",
                Form::Bool,
                "In TEI's form: false gives the sigmoid of scores.",
            ),
        ]),
        Group::Refused(&NOT_SUPPORTED),
    ],
    required: &["query"],
};

/// Documents: texts, or objects with one.
fn documents(fields: &Fields, name: &str, most: usize) -> Result<Vec<String>, ApiError> {
    let wrong = || ApiError::field(name, "it must be a list of texts with one at least");
    let list = fields.list(name)?.filter(|list| !list.is_empty()).ok_or_else(wrong)?;
    embeddings::check_count(name, list.len(), most)?;
    let text = |document: &Value| {
        let text = document.as_str().or_else(|| document.get("text")?.as_str());
        text.map(str::to_owned).ok_or_else(wrong)
    };
    list.iter().map(text).collect()
}

pub(super) async fn rank(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Json<Value>, ApiError> {
    fields.refuse(&NOT_SUPPORTED)?;
    let is_tei = fields.get("texts").is_some();
    if is_tei && fields.get("documents").is_some() {
        return Err(ApiError::field("documents", "there are texts, too: send one of them"));
    }
    let name = if is_tei { "texts" } else { "documents" };
    let query = fields.text("query")?.map(str::to_owned);
    let query = query.ok_or_else(|| ApiError::field("query", "it must be a text"))?;
    let documents = documents(&fields, name, app.options().limits.inputs)?;
    let top = fields.count("top_n", 0, i32::MAX as usize)?.unwrap_or(documents.len());
    let (shows_text, shows_document) = (fields.bool("return_text")?, fields.bool("return_documents")?);
    let shows = if is_tei { shows_text } else { shows_document };
    let cuts = fields.bool("truncate")?;
    // TEI's own scores are those of the model through a sigmoid, unless they are wanted raw; llama.cpp's are always raw.
    let is_raw = fields.get("raw_scores").is_none() || fields.bool("raw_scores")?;
    let model = fields.text("model")?;
    let lease = app.encoder(&app.registry().find(model)?, ModelKind::Ranking).await?;
    // Those of a model that gives shares are no logits.
    let is_sigmoid = is_tei && !is_raw && !lease.handle().gives_shares();
    let texts = documents.clone();
    let make = move |rows: &mut Rows<'_>| {
        // Where it can, the query becomes tokens once, whatever it is ranked with.
        let encoder = rows.encoder();
        let query = encoder.query(&query).map_err(|error| ApiError::field("query", error))?;
        for text in &texts {
            let pair = rows.encoder().ranked(&query, text, cuts);
            rows.push(name, pair.map_err(|error| ApiError::field(name, error))?)?;
        }
        Ok(())
    };
    let served = embeddings::compute(&app, &asker, &lease, make).await?;
    let scores = served.embeddings.data.iter().map(|&score| match is_sigmoid {
        false => score,
        true => 1.0 / (1.0 + (-score).exp()),
    });
    let mut ranked: Vec<(usize, f32)> = scores.enumerate().collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ranked.truncate(top);
    let results = ranked.into_iter().map(|(index, score)| {
        let mut result = json!({"index": index, (if is_tei { "score" } else { "relevance_score" }): score});
        match (shows, is_tei) {
            (false, _) => {}
            (true, true) => result["text"] = documents[index].as_str().into(),
            (true, false) => result["document"] = json!({"text": documents[index]}),
        }
        result
    });
    let results: Vec<Value> = results.collect();
    Ok(Json(match is_tei {
        true => results.into(),
        false => json!({
            "model": model.unwrap_or(lease.name()),
            "object": "list",
            "usage": {"prompt_tokens": served.tokens, "total_tokens": served.tokens},
            "results": results,
        }),
    }))
}
