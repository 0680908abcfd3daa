//! `/v1/responses`: answers to conversations, as items. Nothing is kept: each request has all of its conversation.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use rocmforge_models::chat::Role;
use rocmforge_models::generate::{FinishReason, Request};
use rocmforge_models::sampling::SamplerConfig;
use serde_json::{Value, json};

use super::input_tokens;
use crate::answer::{self, Answer, Block, End, Step, Whole};
use crate::app::{App, Asker};
use crate::description::answers::asked;
use crate::description::field::{Body, Field, Form, Group};
use crate::description::schema;
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::generation::{id, now};
use crate::prompt::{self, Chat};
use crate::{sampler, stream};

/// Fields that ask for what an earlier request left.
const STATE: [&str; 5] = ["store", "previous_response_id", "conversation", "background", "prompt"];
/// Fields that change an answer and are not there.
const NOT_SUPPORTED: [&str; 2] = ["tools", "max_tool_calls"];

/// What [`conversation`] reads.
const CONVERSATION: &[Field] = &[
    Field(
        "text",
        Form::Other(|| {
            let format = schema::object([], [("type", schema::values(["text"]))], true);
            let format = schema::either([format, asked::one_of(&[])]);
            schema::either([schema::object([], [("format", format)], true), asked::one_of(&[])])
        }),
        "The format text is known.",
    ),
    Field(
        "truncation",
        Form::Other(|| asked::one_of(&["disabled"])),
        "disabled is known.",
    ),
    Field(
        "top_logprobs",
        Form::Other(|| schema::values([Value::Null, 0.into()])),
        "/v1/chat/completions has them.",
    ),
    Field("instructions", Form::Text, "What the model is asked to be."),
    Field(
        "input",
        Form::Other(|| {
            let roles = schema::values(["user", "assistant", "system", "developer"]);
            let message = [("role", roles), ("content", asked::content())];
            let message = schema::object(message, [("type", asked::one_of(&["message"]))], true);
            let part = schema::object([("text", schema::text())], [], true);
            let parts = schema::either([schema::list(part), asked::one_of(&[])]);
            let thought = [("type", schema::values(["reasoning"]))];
            let thought = schema::object(thought, [("content", parts)], true);
            schema::either([schema::text(), schema::filled(schema::either([message, thought]))])
        }),
        "A text, or the messages of the conversation.",
    ),
    Field(
        "reasoning",
        Form::Other(|| {
            let effort = [("effort", asked::one_of(&prompt::EFFORTS))];
            schema::either([schema::object([], effort, true), asked::one_of(&[])])
        }),
        "effort: how much the model thinks.",
    ),
];

const FIELDS: &[Field] = &[
    Field("max_output_tokens", Form::Count(1), "Most tokens of the answer."),
    Field("stream", Form::Bool, "Whether the answer comes as a stream."),
    Field("metadata", Form::Object, "It is in the answer, too."),
    Field("safety_identifier", Form::Text, "It is in the answer, too."),
    Field("prompt_cache_key", Form::Text, "It is in the answer, too."),
];

pub(super) const BODY: Body = Body {
    groups: &[
        Group::Read(CONVERSATION),
        Group::Refused(&STATE),
        Group::Refused(&NOT_SUPPORTED),
        Group::Read(super::chat::MODEL),
        Group::Read(FIELDS),
        Group::All(sampler::FIELDS),
    ],
    required: &["model", "input"],
};

pub(super) const COUNT: Body = Body {
    groups: &[
        Group::Read(CONVERSATION),
        Group::Refused(&STATE),
        Group::Refused(&NOT_SUPPORTED),
        Group::Read(super::chat::MODEL),
    ],
    required: &["input"],
};

/// Reads the conversation of a request.
fn conversation(fields: &Fields) -> Result<Chat, ApiError> {
    if let Err(error) = fields.refuse(&STATE) {
        let name = error.param.unwrap_or_default();
        let text = "this server keeps no answers: send the whole conversation as input, with store: false";
        return Err(ApiError::not_supported(&name, text));
    }
    fields.refuse(&NOT_SUPPORTED)?;
    match fields.object("text")?.and_then(|text| text.get("format")) {
        None | Some(Value::Null) => {}
        Some(Value::Object(format)) if format.get("type").is_none_or(|kind| kind == "text") => {}
        Some(Value::Object(_)) => return Err(ApiError::not_supported("text.format", "the type text is known")),
        Some(_) => return Err(ApiError::field("text.format", "it must be an object")),
    }
    if fields.text("truncation")?.is_some_and(|kind| kind != "disabled") {
        return Err(ApiError::not_supported("truncation", "disabled is known"));
    }
    if fields.count("top_logprobs", 0, usize::MAX)?.is_some_and(|top| top > 0) {
        return Err(ApiError::not_supported("top_logprobs", "/v1/chat/completions has them"));
    }
    let mut chat = Chat {
        joins: true,
        ..Chat::default()
    };
    if let Some(instructions) = fields.text("instructions")? {
        chat.push(Role::System, instructions.to_owned(), None);
    }
    match fields.get("input") {
        Some(Value::String(text)) => chat.push(Role::User, text.clone(), None),
        Some(Value::Array(items)) if !items.is_empty() => read_items(items, &mut chat)?,
        _ => {
            return Err(ApiError::field(
                "input",
                "it must be a text, or a list of one item or more",
            ));
        }
    }
    if let Some(reasoning) = fields.object("reasoning")? {
        match reasoning.get("effort") {
            None | Some(Value::Null) => {}
            Some(Value::String(effort)) => chat.set_effort("reasoning.effort", effort)?,
            Some(_) => return Err(ApiError::field("reasoning.effort", "it must be a text")),
        }
    }
    Ok(chat)
}

/// Reads messages, and what the model thought before its own.
fn read_items(items: &[Value], chat: &mut Chat) -> Result<(), ApiError> {
    let mut reasoning = None;
    for item in items {
        let field = |text: &str| ApiError::field("input", text);
        let kind = match item.get("type") {
            None | Some(Value::Null) => "message",
            Some(kind) => kind
                .as_str()
                .ok_or_else(|| field("the type of an item must be a text"))?,
        };
        match kind {
            "message" => {
                let role = item.get("role").and_then(Value::as_str);
                let role = match role.and_then(|role| role.parse().ok()) {
                    Some(role) if role != Role::Tool => role,
                    _ => {
                        return Err(field(
                            "the role of a message must be user, assistant, system or developer",
                        ));
                    }
                };
                let text = prompt::text("input", item.get("content").unwrap_or(&Value::Null))?;
                let thought = reasoning.take().filter(|_| role == Role::Assistant);
                chat.push(role, text, thought);
            }
            "reasoning" => {
                let parts = match item.get("content") {
                    None | Some(Value::Null) => &[][..],
                    Some(Value::Array(parts)) => parts.as_slice(),
                    Some(_) => return Err(field("the content of an item reasoning must be a list")),
                };
                let parts = parts.iter();
                let texts = parts.map(|part| part.get("text").and_then(Value::as_str));
                let texts: Option<Vec<&str>> = texts.collect();
                let texts = texts.ok_or_else(|| field("each content of an item reasoning must have a text"))?;
                reasoning = (!texts.is_empty()).then(|| texts.join("\n"));
            }
            _ => {
                let text = format!("an item of type {kind:?} is not supported: message and reasoning are known");
                return Err(ApiError::not_supported("input", text));
            }
        }
    }
    Ok(())
}

pub(super) async fn count(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Json<Value>, ApiError> {
    let tokens = prompt::count(&app, &asker, &fields, conversation).await?;
    Ok(input_tokens(tokens))
}

pub(super) async fn create(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let limits = &app.options().limits;
    let chat = conversation(&fields)?;
    let max_tokens = fields.count("max_output_tokens", 1, usize::MAX)?;
    let is_stream = fields.bool("stream")?;
    // They are in the answer as they are here.
    fields.object("metadata")?;
    fields.text("safety_identifier")?;
    fields.text("prompt_cache_key")?;
    let model = fields.model()?;
    let lease = app.lease(Some(model)).await?;
    let sampler = sampler::config(&fields, lease.handle().tokenizer(), limits).await?;
    let head = Head::new(&fields, model, &sampler);
    let pieces = chat.render(&asker, &lease).await?;
    let thinking = answer::thinking(&lease, &pieces, true);
    let request = Request {
        sampler,
        max_tokens: max_tokens.unwrap_or(usize::MAX),
        ..Request::new(pieces)
    };
    let answer = Answer::start(&app, &asker, &lease, request, thinking).await?;
    match is_stream {
        true => Ok(stream::events(events(head, answer), None)),
        false => Ok(Json(head.whole(answer.complete().await?)).into_response()),
    }
}

/// The number as people write it.
fn number(number: f32) -> Value {
    number.to_string().parse::<f64>().unwrap_or_default().into()
}

/// The answer before it begins.
struct Head(Value);

impl Head {
    fn new(fields: &Fields, model: &str, sampler: &SamplerConfig) -> Self {
        let same = |name: &str| fields.get(name).cloned().unwrap_or_default();
        let reasoning = fields.get("reasoning");
        Self(json!({
            "id": id("resp_"),
            "object": "response",
            "created_at": now(),
            "completed_at": null,
            "status": "in_progress",
            "incomplete_details": null,
            "error": null,
            "model": model,
            "instructions": same("instructions"),
            "output": [],
            "usage": null,
            "max_output_tokens": same("max_output_tokens"),
            "temperature": number(sampler.temperature),
            "top_p": number(sampler.top_p),
            "presence_penalty": number(sampler.presence_penalty),
            "frequency_penalty": number(sampler.frequency_penalty),
            "top_logprobs": 0,
            "reasoning": {"effort": reasoning.and_then(|reasoning| reasoning.get("effort")), "summary": null},
            "text": {"format": {"type": "text"}},
            "metadata": fields.get("metadata").cloned().unwrap_or_else(|| json!({})),
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": true,
            "max_tool_calls": null,
            "truncation": "disabled",
            "previous_response_id": null,
            "store": false,
            "background": false,
            "service_tier": "default",
            "safety_identifier": same("safety_identifier"),
            "prompt_cache_key": same("prompt_cache_key"),
        }))
    }

    fn whole(self, answer: Whole) -> Value {
        let (reasoning, text) = (answer.split.reasoning, answer.split.content);
        let status = status(&answer.end.reason);
        let mut output = Vec::new();
        if !reasoning.is_empty() {
            let status = if text.is_empty() { status } else { "completed" };
            output.push(item(Block::Thinking, &id("rs_"), status, Some(&reasoning)));
        }
        if !text.is_empty() || output.is_empty() {
            output.push(item(Block::Text, &id("msg_"), status, Some(&text)));
        }
        self.ended(output, &answer.end)
    }

    /// The answer when it has ended.
    fn ended(mut self, output: Vec<Value>, end: &End) -> Value {
        let response = &mut self.0;
        let status = status(&end.reason);
        response["status"] = status.into();
        match status {
            "completed" => response["completed_at"] = now().into(),
            _ => response["incomplete_details"] = json!({"reason": "max_output_tokens"}),
        }
        response["output"] = output.into();
        let input = end.stats.prompt_tokens;
        response["usage"] = json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": end.stats.cached_tokens},
            "output_tokens": end.stats.drawn_tokens,
            "output_tokens_details": {"reasoning_tokens": end.thought},
            "total_tokens": input + end.stats.drawn_tokens,
        });
        self.0
    }

    /// The answer when it has failed.
    fn failed(mut self, output: Vec<Value>, error: &ApiError) -> Value {
        let code = match error.kind {
            Kind::ContextExceeded { .. } => "context_length_exceeded",
            Kind::Busy => "rate_limit_exceeded",
            Kind::Internal | Kind::Unavailable => "server_error",
            _ => "invalid_prompt",
        };
        self.0["status"] = "failed".into();
        self.0["output"] = output.into();
        self.0["error"] = json!({"code": code, "message": error.message});
        self.0
    }
}

/// The status of an answer that has ended, and of its last item.
fn status(reason: &FinishReason) -> &'static str {
    match reason {
        FinishReason::MaxTokens | FinishReason::ContextFull => "incomplete",
        _ => "completed",
    }
}

/// The content of an item.
fn part(block: Block, text: &str) -> Value {
    match block {
        Block::Thinking => json!({"type": "reasoning_text", "text": text}),
        Block::Text => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
    }
}

fn item(block: Block, id: &str, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.map(|text| part(block, text)).into_iter().collect();
    match block {
        Block::Thinking => {
            json!({"type": "reasoning", "id": id, "status": status, "summary": [], "content": content})
        }
        Block::Text => {
            json!({"type": "message", "id": id, "status": status, "role": "assistant", "content": content})
        }
    }
}

fn events(head: Head, answer: Answer) -> impl Stream<Item = Value> + Send {
    let mut number = 0;
    numberless(head, answer).map(move |mut event| {
        event["sequence_number"] = number.into();
        number += 1;
        event
    })
}

/// The events of an answer, except for their numbers.
fn numberless(head: Head, answer: Answer) -> impl Stream<Item = Value> + Send {
    async_stream::stream! {
        for kind in ["response.created", "response.in_progress"] {
            yield json!({"type": kind, "response": head.0});
        }
        let mut steps = std::pin::pin!(answer.into_steps());
        let (mut output, mut item_id) = (Vec::new(), String::new());
        // The last item's status is known at the end only.
        let mut last: Option<(Block, String)> = None;
        while let Some(step) = steps.next().await {
            let place = json!({"item_id": item_id, "output_index": output.len(), "content_index": 0});
            let at = |kind: &str, name: &str, value: Value| {
                let mut event = place.clone();
                event["type"] = kind.into();
                event[name] = value;
                event
            };
            match step {
                Err(error) => {
                    yield json!({"type": "response.failed", "response": head.failed(output, &error)});
                    return;
                }
                Ok(Step::Prompt(_)) => {}
                Ok(Step::Begin(block)) => {
                    if let Some((block, text)) = last.take() {
                        let item = item(block, &item_id, "completed", Some(&text));
                        yield json!({"type": "response.output_item.done", "output_index": output.len(), "item": item});
                        output.push(item);
                    }
                    item_id = id(if block == Block::Thinking { "rs_" } else { "msg_" });
                    let index = output.len();
                    let item = item(block, &item_id, "in_progress", None);
                    yield json!({"type": "response.output_item.added", "output_index": index, "item": item});
                    yield json!({
                        "type": "response.content_part.added",
                        "item_id": item_id,
                        "output_index": index,
                        "content_index": 0,
                        "part": part(block, ""),
                    });
                }
                Ok(Step::Delta(Block::Thinking, text)) => {
                    yield at("response.reasoning_text.delta", "delta", text.into());
                }
                Ok(Step::Delta(Block::Text, text)) => {
                    let mut event = at("response.output_text.delta", "delta", text.into());
                    event["logprobs"] = json!([]);
                    yield event;
                }
                Ok(Step::Close(block, text)) => {
                    match block {
                        Block::Thinking => yield at("response.reasoning_text.done", "text", text.as_str().into()),
                        Block::Text => {
                            let mut event = at("response.output_text.done", "text", text.as_str().into());
                            event["logprobs"] = json!([]);
                            yield event;
                        }
                    }
                    yield at("response.content_part.done", "part", part(block, &text));
                    last = Some((block, text));
                }
                Ok(Step::End(end)) => {
                    let status = status(&end.reason);
                    if let Some((block, text)) = last.take() {
                        let item = item(block, &item_id, status, Some(&text));
                        yield json!({"type": "response.output_item.done", "output_index": output.len(), "item": item});
                        output.push(item);
                    }
                    let response = head.ended(output, &end);
                    yield json!({"type": format!("response.{status}"), "response": response});
                    return;
                }
            }
        }
    }
}
