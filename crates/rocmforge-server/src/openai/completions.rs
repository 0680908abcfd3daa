//! `/v1/completions`: texts that go on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use futures_util::stream::{SelectAll, StreamExt};
use rocmforge_models::Input;
use rocmforge_models::generate::{Event, Prompt};
use rocmforge_models::tokenizer::Tokenizer;
use serde_json::{Value, json};

use super::logprobs::OfText;
use super::{COMMON, Common, FINGERPRINT, Usage, finish_reason, timings};
use crate::app::{App, Asker};
use crate::description::field::{Body, Field, Form, Group};
use crate::description::schema;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::generation::{self, Generation, id, now};
use crate::progress::Progress;
use crate::registry::Lease;
use crate::stream;

/// Tokens of an answer, if the request does not say: the API's default.
const MAX_TOKENS: usize = 16;

const NOT_SUPPORTED: [&str; 1] = ["suffix"];

const FIELDS: &[Field] = &[
    Field(
        "prompt",
        Form::Other(|| {
            let ids = || schema::list(schema::count());
            let one = || schema::either([schema::text(), ids()]);
            schema::either([schema::text(), schema::filled(schema::count()), schema::filled(one())])
        }),
        "A text, token ids, or a list of these.",
    ),
    Field(
        "logprobs",
        Form::Other(|| {
            let top = schema::at_least(utoipa::openapi::schema::Type::Integer, 0, true);
            schema::either([schema::flag(), top])
        }),
        "So many most likely tokens are shown with each; true and 0 show the drawn ones.",
    ),
    Field("echo", Form::Bool, "Whether the answer begins with the prompt."),
];

pub(super) const BODY: Body = Body {
    groups: &[Group::Read(FIELDS), Group::Refused(&NOT_SUPPORTED), Group::All(&COMMON)],
    required: &["prompt"],
};

/// What all values of an answer begin with.
struct Head {
    id: String,
    created: u64,
    model: String,
}

impl Head {
    fn json(&self, choices: Value) -> Value {
        json!({
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
            "choices": choices,
        })
    }
}

/// Prompts: a text, token ids, or a list of either.
pub(crate) fn prompts(fields: &Fields, most: usize) -> Result<Vec<Prompt>, ApiError> {
    let wrong = || ApiError::field("prompt", "it must be a text, a list of token ids, or a list of these");
    let ids = |list: &[Value]| -> Result<Prompt, ApiError> {
        let ids = list.iter().map(|id| u32::try_from(id.as_u64()?).ok());
        Ok(Prompt::Ids(ids.collect::<Option<_>>().ok_or_else(wrong)?))
    };
    let one = |value: &Value| match value {
        Value::String(text) => Ok(Prompt::Text(text.clone())),
        Value::Array(list) => ids(list),
        _ => Err(wrong()),
    };
    let prompts = match fields.get("prompt").ok_or_else(wrong)? {
        Value::Array(list) if list.is_empty() => return Err(wrong()),
        Value::Array(list) if list[0].is_number() => vec![ids(list)?],
        Value::Array(list) => list.iter().map(one).collect::<Result<_, _>>()?,
        value => vec![one(value)?],
    };
    match prompts.len() > most {
        true => Err(ApiError::field("prompt", format!("there may be {most} prompts"))),
        false => Ok(prompts),
    }
}

/// What is shown of a prompt before its answer.
#[derive(Clone, Debug, Default)]
struct Echo {
    text: String,
    /// The first token.
    first: Option<u32>,
}

/// A prompt as tokens, and what is shown of it.
async fn read(lease: &Arc<Lease>, prompt: Prompt, is_shown: bool) -> Result<(Prompt, Echo), ApiError> {
    let text = match &prompt {
        Prompt::Text(text) if is_shown => Some(text.clone()),
        _ => None,
    };
    let echo = move |inputs: &[Input], tokenizer: &Tokenizer| {
        if !is_shown {
            return Echo::default();
        }
        let ids: Vec<u32> = inputs.iter().filter_map(Input::id).collect();
        Echo {
            first: ids.first().copied(),
            text: text.unwrap_or_else(|| tokenizer.decode(&ids)),
        }
    };
    generation::encode(lease, prompt, echo).await
}

pub(super) async fn complete(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let limits = app.options().limits;
    let prompts = prompts(&fields, limits.choices)?;
    fields.refuse(&NOT_SUPPORTED)?;
    let mut common = Common::read(&app, &fields).await?;
    if common.request.max_tokens == usize::MAX
        && fields.get("max_tokens").is_none()
        && fields.get("n_predict").is_none()
    {
        common.request.max_tokens = MAX_TOKENS;
    }
    let top = match fields.get("logprobs") {
        Some(Value::Bool(wanted)) => wanted.then_some(0),
        _ => fields.count("logprobs", 0, limits.logprobs)?,
    };
    common.request.logprobs = top.unwrap_or(0);
    let wants_logprobs = top.is_some();
    let echo = fields.bool("echo")?;
    if echo && wants_logprobs {
        common.request.prompt_logprobs = top;
    }
    app.check_answers(&asker, prompts.len(), common.choices)?;
    let (mut encoded, mut echoes) = (Vec::new(), Vec::new());
    for prompt in prompts {
        let (prompt, shown) = read(&common.lease, prompt, echo).await?;
        encoded.push(prompt);
        echoes.extend(std::iter::repeat_n(shown, common.choices));
    }
    let requests = encoded.iter().flat_map(|prompt| common.requests(prompt));
    let generations = requests.map(|request| Generation::start(&app, &asker, &common.lease, request));
    let generations: Vec<Generation> = try_join_all(generations).await?;
    let head = Head {
        id: id("cmpl-"),
        created: now(),
        model: common.model.clone(),
    };
    match common.is_stream {
        true => {
            let chunks = chunks(head, common, generations, echoes, wants_logprobs);
            Ok(stream::values(chunks, true))
        }
        false => whole(&head, &common, generations, &echoes, wants_logprobs).await,
    }
}

async fn whole(
    head: &Head,
    common: &Common,
    generations: Vec<Generation>,
    echoes: &[Echo],
    wants_logprobs: bool,
) -> Result<Response, ApiError> {
    let completions = try_join_all(generations.into_iter().map(Generation::complete)).await?;
    let (mut usage, mut choices) = (Usage::default(), Vec::new());
    for (index, (completion, echo)) in completions.iter().zip(echoes).enumerate() {
        usage.add(&completion.stats, index % common.choices == 0);
        let tokenizer = common.lease.handle().tokenizer();
        let logprobs = wants_logprobs.then(|| {
            let mut of_text = OfText::new(tokenizer, 0);
            if let Some(first) = echo.first {
                of_text = of_text.prompt(first, &completion.scores).shown(&echo.text);
            }
            // The token that ended the text is listed, as in the OpenAI API: clients that score a prompt leave out the last entry.
            of_text.drawn(completion.tokens.iter().chain(&completion.end)).json()
        });
        choices.push(json!({
            "index": index,
            "text": format!("{}{}", echo.text, completion.text),
            "logprobs": logprobs,
            "finish_reason": finish_reason(&completion.reason),
        }));
    }
    let mut answer = head.json(choices.into());
    answer["usage"] = usage.json();
    if let Some(last) = completions.last() {
        answer["timings"] = timings(&last.stats);
    }
    Ok(Json(answer).into_response())
}

fn chunks(
    head: Head,
    common: Common,
    generations: Vec<Generation>,
    echoes: Vec<Echo>,
    wants_logprobs: bool,
) -> impl futures_util::Stream<Item = Result<Value, ApiError>> {
    let chunk = |head: &Head, index: usize, text: &str, logprobs: Value, finish: Option<&str>| {
        let choice = json!({"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish});
        head.json(json!([choice]))
    };
    async_stream::stream! {
        let mut offsets = vec![0; echoes.len()];
        let mut scores = vec![Vec::new(); echoes.len()];
        let mut reports = vec![common.reports.clone(); echoes.len()];
        let mut events = SelectAll::new();
        for (index, generation) in generations.into_iter().enumerate() {
            events.push(generation.into_stream().map(move |event| (index, event)).boxed());
        }
        let mut usage = Usage::default();
        while let Some((index, event)) = events.next().await {
            match event {
                Err(error) => {
                    yield Err(error);
                    return;
                }
                Ok(Event::Prompt { done, tokens, cached, time, scores: part, .. }) => {
                    let progress = Progress { tokens, done, cached, time };
                    for chunk in reports[index].take(progress, || chunk(&head, index, "", Value::Null, None)) {
                        yield Ok(chunk);
                    }
                    scores[index].extend(part);
                    let echo = &echoes[index];
                    let Some(first) = echo.first.filter(|_| done == tokens) else {
                        continue;
                    };
                    let mut logprobs = Value::Null;
                    if wants_logprobs {
                        let tokenizer = common.lease.handle().tokenizer();
                        logprobs = OfText::new(tokenizer, 0).prompt(first, &scores[index]).json();
                    }
                    offsets[index] = echo.text.chars().count();
                    yield Ok(chunk(&head, index, &echo.text, logprobs, None));
                }
                Ok(Event::Token { token, .. }) => {
                    if token.text.is_empty() && !wants_logprobs {
                        continue;
                    }
                    let text = token.text.clone();
                    let mut logprobs = Value::Null;
                    if wants_logprobs {
                        let tokenizer = common.lease.handle().tokenizer();
                        logprobs = OfText::new(tokenizer, offsets[index]).drawn(&[token]).json();
                    }
                    offsets[index] += text.chars().count();
                    yield Ok(chunk(&head, index, &text, logprobs, None));
                }
                Ok(Event::Finished {
                    reason,
                    end,
                    text,
                    stats,
                    ..
                }) => {
                    usage.add(&stats, index % common.choices == 0);
                    let mut logprobs = Value::Null;
                    if wants_logprobs && end.is_some() {
                        let tokenizer = common.lease.handle().tokenizer();
                        logprobs = OfText::new(tokenizer, offsets[index]).drawn(&end).json();
                    }
                    let mut chunk = chunk(&head, index, &text, logprobs, Some(finish_reason(&reason)));
                    chunk["timings"] = timings(&stats);
                    yield Ok(chunk);
                }
            }
        }
        if common.wants_usage {
            let mut chunk = head.json(json!([]));
            chunk["usage"] = usage.json();
            yield Ok(chunk);
        }
    }
}
