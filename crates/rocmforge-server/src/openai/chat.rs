//! `/v1/chat/completions`: answers to conversations.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::future::try_join_all;
use futures_util::stream::{SelectAll, StreamExt};
use rocmforge_models::generate::{Event, Prompt, Stats};
use serde_json::{Value, json};

use super::{Common, FINGERPRINT, Usage, event_stream, finish_reason, logprobs, timings};
use crate::app::{App, Asker};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::generation::{Generation, id, now};
use crate::prompt::{self, Chat};

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
        let choice = json!({"index": index, "delta": delta, "finish_reason": finish});
        self.json("chat.completion.chunk", json!([choice]))
    }
}

/// Reads the conversation of a request.
pub(crate) fn conversation(fields: &Fields) -> Result<Chat, ApiError> {
    let list = fields.list("messages")?;
    let list = list.ok_or_else(|| ApiError::field("messages", "it must be a list of messages"))?;
    // Templates come from models, never from clients; of their variables these are known.
    fields.refuse(&["chat_template", "documents"])?;
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
    if let Some(effort) = fields.text("reasoning_effort")? {
        if !["none", "minimal", "low", "medium", "high"].contains(&effort) {
            return Err(ApiError::field(
                "reasoning_effort",
                "it must be none, minimal, low, medium or high",
            ));
        }
        variables.push(("reasoning_effort", effort.into()));
    }
    Ok(Chat {
        messages: prompt::messages(list)?,
        variables,
        continues: fields.get("continue_final_message").is_some() && fields.bool("continue_final_message")?,
    })
}

pub(super) async fn complete(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let chat = conversation(&fields)?;
    let mut common = Common::read(&app, &fields).await?;
    let wants_logprobs = fields.bool("logprobs")?;
    let top = fields.count("top_logprobs", 0, app.options().limits.logprobs)?;
    if top.is_some_and(|top| top > 0) && !wants_logprobs {
        return Err(ApiError::field("top_logprobs", "it needs logprobs: true"));
    }
    common.request.logprobs = top.unwrap_or(0);
    let prompt = Prompt::Pieces(chat.render(&common.lease).await?);
    let requests = common.requests(&prompt);
    let generations = requests.map(|request| Generation::start(&app, &asker, &common.lease, request));
    let generations: Vec<Generation> = try_join_all(generations).await?;
    let head = Head {
        id: id("chatcmpl-"),
        created: now(),
        model: common.model.clone(),
    };
    match common.is_stream {
        true => Ok(event_stream(stream(head, common, generations, wants_logprobs))),
        false => whole(&head, &common, generations, wants_logprobs).await,
    }
}

async fn whole(
    head: &Head,
    common: &Common,
    generations: Vec<Generation>,
    wants_logprobs: bool,
) -> Result<Response, ApiError> {
    let completions = try_join_all(generations.into_iter().map(Generation::complete)).await?;
    let (mut usage, mut choices, mut stats) = (Usage::default(), Vec::new(), Stats::default());
    for (index, completion) in completions.iter().enumerate() {
        usage.add(&completion.stats, completion.tokens.len(), index == 0);
        stats = completion.stats;
        let logprobs = wants_logprobs.then(|| logprobs::of_chat(common.lease.handle().tokenizer(), &completion.tokens));
        choices.push(json!({
            "index": index,
            "message": {"role": "assistant", "content": completion.text},
            "logprobs": logprobs,
            "finish_reason": finish_reason(&completion.reason),
        }));
    }
    let mut answer = head.json("chat.completion", choices.into());
    answer["usage"] = usage.json();
    answer["timings"] = timings(&stats);
    Ok(Json(answer).into_response())
}

fn stream(
    head: Head,
    common: Common,
    generations: Vec<Generation>,
    wants_logprobs: bool,
) -> impl futures_util::Stream<Item = Result<Value, ApiError>> {
    async_stream::stream! {
        for index in 0..generations.len() {
            yield Ok(head.chunk(index, json!({"role": "assistant", "content": ""}), None));
        }
        let mut events = SelectAll::new();
        for (index, generation) in generations.into_iter().enumerate() {
            events.push(generation.into_stream().map(move |event| (index, event)).boxed());
        }
        let (mut usage, mut drawn) = (Usage::default(), vec![0; events.len()]);
        while let Some((index, event)) = events.next().await {
            match event {
                Err(error) => {
                    yield Err(error);
                    return;
                }
                Ok(Event::Prompt { .. }) => {}
                Ok(Event::Token { token, .. }) => {
                    drawn[index] += 1;
                    if token.text.is_empty() && !wants_logprobs {
                        continue;
                    }
                    let mut chunk = head.chunk(index, json!({"content": token.text}), None);
                    if wants_logprobs {
                        let tokenizer = common.lease.handle().tokenizer();
                        chunk["choices"][0]["logprobs"] = logprobs::of_chat(tokenizer, &[token]);
                    }
                    yield Ok(chunk);
                }
                Ok(Event::Finished { reason, text, stats, .. }) => {
                    usage.add(&stats, drawn[index], index == 0);
                    if !text.is_empty() {
                        yield Ok(head.chunk(index, json!({"content": text}), None));
                    }
                    let mut chunk = head.chunk(index, json!({}), Some(finish_reason(&reason)));
                    chunk["timings"] = timings(&stats);
                    yield Ok(chunk);
                }
            }
        }
        if common.wants_usage {
            let mut chunk = head.json("chat.completion.chunk", json!([]));
            chunk["usage"] = usage.json();
            yield Ok(chunk);
        }
    }
}
