//! `/v1/chat/completions`: answers to conversations.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use futures_util::stream::{SelectAll, StreamExt};
use rocmforge_models::chat::{Role, ThinkingSplit};
use rocmforge_models::generate::{Prompt, Stats};
use serde_json::{Map, Value, json};

use super::{COMMON, Common, FINGERPRINT, Usage, finish_reason, input_tokens, logprobs, timings};
use crate::answer::{self, Answer, Part};
use crate::app::{App, Asker};
use crate::description::answers::asked;
use crate::description::field::{Body, Field, Form, Group};
use crate::description::schema;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::generation::{self, id, now};
use crate::prompt::{self, Chat};
use crate::stream;

/// What all values of an answer begin with.
struct Head {
    id: String,
    created: u64,
    model: String,
}

impl Head {
    fn json(&self, object: &str, choices: Value) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
            "choices": choices,
        })
    }

    fn chunk(&self, index: usize, delta: Value, finish: Option<&str>) -> Value {
        let choice = json!({"index": index, "delta": delta, "logprobs": null, "finish_reason": finish});
        self.json("chat.completion.chunk", json!([choice]))
    }
}

/// Fields of templates that only models have.
const NOT_SUPPORTED: [&str; 2] = ["chat_template", "documents"];

/// What [`conversation`] reads.
const CONVERSATION: &[Field] = &[
    Field("messages", Form::Other(asked::messages), "The conversation."),
    Field(
        "chat_template_kwargs",
        Form::Other(|| {
            let known = [("enable_thinking", schema::flag())];
            schema::either([schema::object([], known, false), asked::one_of(&[])])
        }),
        "enable_thinking: whether the model thinks.",
    ),
    Field(
        "continue_final_message",
        Form::Bool,
        "Whether the model goes on with its own last message.",
    ),
    Field(
        "add_generation_prompt",
        Form::Bool,
        "Whether an answer begins after the last message.",
    ),
    Field(
        "reasoning_effort",
        Form::Other(|| asked::one_of(&prompt::EFFORTS)),
        "How much the model thinks.",
    ),
];

/// The conversation of a request without an answer.
pub(crate) const MESSAGES: [Group; 2] = [Group::Read(CONVERSATION), Group::Refused(&NOT_SUPPORTED)];

const FIELDS: &[Field] = &[
    Field(
        "reasoning_format",
        Form::Other(|| asked::one_of(&["none", "auto", "deepseek"])),
        "Whether what the model thinks is apart; none leaves the text whole.",
    ),
    Field("logprobs", Form::Bool, "Whether tokens have their log-probabilities."),
    Field(
        "top_logprobs",
        Form::Count(0),
        "So many most likely tokens are shown with each.",
    ),
    Field("verbose", Form::Bool, "Whether the answer has its prompt."),
];

pub(super) const BODY: Body = Body {
    groups: &[Group::All(&MESSAGES), Group::Read(FIELDS), Group::All(&COMMON)],
    required: &["model", "messages"],
};

pub(super) const COUNT: Body = Body {
    groups: &[Group::All(&MESSAGES), Group::Read(MODEL)],
    required: &["messages"],
};

/// The model's name, where it may be left out.
pub(crate) const MODEL: &[Field] = &[Field("model", Form::Text, "The model's name, if there are several.")];

/// Reads the conversation of a request.
pub(crate) fn conversation(fields: &Fields) -> Result<Chat, ApiError> {
    let list = fields.list("messages")?;
    let list = list.ok_or_else(|| ApiError::field("messages", "it must be a list of messages"))?;
    // Templates come from models, never from clients; of their variables these are known.
    fields.refuse(&NOT_SUPPORTED)?;
    let mut variables = Vec::new();
    if let Some(given) = fields.object("chat_template_kwargs")? {
        for (name, value) in given {
            match (name.as_str(), value) {
                ("enable_thinking", Value::Bool(_)) => variables.push(("enable_thinking", value.clone())),
                _ => {
                    let text = format!("{name} = {value} is not taken: enable_thinking is known, and true or false");
                    return Err(ApiError::not_supported("chat_template_kwargs", text));
                }
            }
        }
    }
    let continues = fields.bool("continue_final_message")?;
    let answers = fields.get("add_generation_prompt").is_some() && fields.bool("add_generation_prompt")?;
    let messages = prompt::messages(list)?;
    let is_last_own = messages.last().is_some_and(|message| message.role == Role::Assistant);
    if continues && answers && is_last_own {
        let text = "the last message is gone on with, or an answer begins: not both";
        return Err(ApiError::field("continue_final_message", text));
    }
    let mut chat = Chat {
        messages,
        variables,
        continues,
        ends: fields.get("add_generation_prompt").is_some() && !answers,
        tools: None,
        joins: false,
    };
    if let Some(effort) = fields.text("reasoning_effort")? {
        chat.set_effort("reasoning_effort", effort)?;
    }
    Ok(chat)
}

/// Whether what the model thinks is separated from what it says.
pub(crate) fn splits_thinking(fields: &Fields) -> Result<bool, ApiError> {
    match fields.text("reasoning_format")? {
        None | Some("auto" | "deepseek") => Ok(true),
        Some("none") => Ok(false),
        Some(_) => Err(ApiError::not_supported(
            "reasoning_format",
            "none, deepseek and auto are known",
        )),
    }
}

pub(super) async fn complete(
    State(app): State<App>,
    asker: Asker,
    uri: Uri,
    fields: Fields,
) -> Result<Response, ApiError> {
    // llama.cpp's clients use the route without a version, and name no model.
    if uri.path().starts_with("/v1/") {
        fields.model()?;
    }
    let chat = conversation(&fields)?;
    let splits = splits_thinking(&fields)?;
    let mut common = Common::read(&app, &fields).await?;
    app.check_answers(&asker, 1, common.choices)?;
    let wants_logprobs = fields.bool("logprobs")?;
    let top = fields.count("top_logprobs", 0, app.options().limits.logprobs)?;
    if top.is_some_and(|top| top > 0) && !wants_logprobs {
        return Err(ApiError::field("top_logprobs", "it needs logprobs: true"));
    }
    common.request.logprobs = top.unwrap_or(0);
    let pieces = chat.render(&asker, &common.lease).await?;
    let verbose = fields.bool("verbose")?.then(|| prompt::joined(&pieces));
    let thinking = answer::thinking(&common.lease, &pieces, splits);
    let (prompt, ()) = generation::encode(&common.lease, Prompt::Pieces(pieces), |_, _| ()).await?;
    let requests = common.requests(&prompt);
    let answers = requests.map(|request| Answer::start(&app, &asker, &common.lease, request, thinking.clone()));
    let answers: Vec<Answer> = try_join_all(answers).await?;
    let head = Head {
        id: id("chatcmpl-"),
        created: now(),
        model: common.model.clone(),
    };
    match common.is_stream {
        true => Ok(stream::values(chunks(head, common, answers, wants_logprobs), true)),
        false => {
            let mut answer = whole(&head, &common, answers, wants_logprobs).await?;
            if let Some(prompt) = verbose {
                answer["__verbose"] = json!({ "prompt": prompt });
            }
            Ok(Json(answer).into_response())
        }
    }
}

/// `/v1/chat/completions/input_tokens`: how many tokens the prompt has.
pub(super) async fn count(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Json<Value>, ApiError> {
    let tokens = prompt::count(&app, &asker, &fields, conversation).await?;
    Ok(input_tokens(tokens))
}

async fn whole(head: &Head, common: &Common, answers: Vec<Answer>, wants_logprobs: bool) -> Result<Value, ApiError> {
    let answers = try_join_all(answers.into_iter().map(Answer::complete)).await?;
    let (mut usage, mut choices, mut stats) = (Usage::default(), Vec::new(), Stats::default());
    for (index, answer) in answers.into_iter().enumerate() {
        usage.add(&answer.end.stats, index == 0);
        usage.thought += answer.end.thought;
        stats = answer.end.stats;
        let logprobs = wants_logprobs.then(|| logprobs::of_chat(common.lease.handle().tokenizer(), &answer.tokens));
        let mut message =
            json!({"role": "assistant", "content": answer.split.content, "refusal": null, "annotations": []});
        if !answer.split.reasoning.is_empty() {
            message["reasoning_content"] = answer.split.reasoning.into();
        }
        choices.push(json!({
            "index": index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": finish_reason(&answer.end.reason),
        }));
    }
    let mut answer = head.json("chat.completion", choices.into());
    answer["usage"] = usage.json();
    answer["timings"] = timings(&stats);
    Ok(answer)
}

/// The parts of an answer that a chunk shows, without those that are empty.
fn delta(split: ThinkingSplit) -> Map<String, Value> {
    let parts = [("reasoning_content", split.reasoning), ("content", split.content)];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    parts.map(|(name, text)| (name.to_owned(), text.into())).collect()
}

fn chunks(
    head: Head,
    common: Common,
    answers: Vec<Answer>,
    wants_logprobs: bool,
) -> impl futures_util::Stream<Item = Result<Value, ApiError>> {
    async_stream::stream! {
        for index in 0..answers.len() {
            yield Ok(head.chunk(index, json!({"role": "assistant", "content": null, "refusal": null}), None));
        }
        let mut reports = vec![common.reports.clone(); answers.len()];
        let mut parts = SelectAll::new();
        for (index, answer) in answers.into_iter().enumerate() {
            parts.push(answer.into_stream().map(move |part| (index, part)).boxed());
        }
        let (mut usage, mut last) = (Usage::default(), Stats::default());
        while let Some((index, part)) = parts.next().await {
            match part {
                Err(error) => {
                    yield Err(error);
                    return;
                }
                Ok(Part::Prompt(progress)) => {
                    for chunk in reports[index].take(progress, || head.chunk(index, json!({}), None)) {
                        yield Ok(chunk);
                    }
                }
                Ok(Part::Token(split, token)) => {
                    let mut delta = delta(split);
                    if delta.is_empty() {
                        if !wants_logprobs {
                            continue;
                        }
                        delta.insert("content".to_owned(), "".into());
                    }
                    let mut chunk = head.chunk(index, delta.into(), None);
                    if wants_logprobs {
                        let tokenizer = common.lease.handle().tokenizer();
                        chunk["choices"][0]["logprobs"] = logprobs::of_chat(tokenizer, &[token]);
                    }
                    yield Ok(chunk);
                }
                Ok(Part::End(split, end)) => {
                    usage.add(&end.stats, index == 0);
                    usage.thought += end.thought;
                    last = end.stats;
                    let delta = delta(split);
                    if !delta.is_empty() {
                        yield Ok(head.chunk(index, delta.into(), None));
                    }
                    let mut chunk = head.chunk(index, json!({}), Some(finish_reason(&end.reason)));
                    chunk["timings"] = timings(&end.stats);
                    yield Ok(chunk);
                }
            }
        }
        if common.wants_usage {
            let mut chunk = head.json("chat.completion.chunk", json!([]));
            chunk["usage"] = usage.json();
            chunk["timings"] = timings(&last);
            yield Ok(chunk);
        }
    }
}
