//! Routes of the Anthropic API.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::{Stream, StreamExt};
use rocmforge_models::chat::Role;
use rocmforge_models::generate::{FinishReason, Request};
use serde_json::{Value, json};
use utoipa::openapi::schema::Type;

use crate::answer::{self, Answer, Block, End, Step, Whole};
use crate::app::{App, Asker};
use crate::description::answers::{self, asked};
use crate::description::field::{Body, Field, Form, Group};
use crate::description::{self, Route, schema};
use crate::error::{ApiError, Dialect};
use crate::fields::Fields;
use crate::generation::id;
use crate::openai::EVENTS;
use crate::openai::chat::MODEL;
use crate::prompt::{self, Chat};
use crate::{sampler, stream};

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/messages", post(create))
        .route("/v1/messages/count_tokens", post(count))
}

/// Fields that change an answer and are not there.
const NOT_SUPPORTED: [&str; 4] = ["tools", "mcp_servers", "container", "output_format"];

pub(crate) fn described() -> Vec<Route> {
    let (tag, messages) = ("Anthropic", "/v1/messages");
    let answer = description::Answer::Stream(answers::message, EVENTS);
    let create = Route::post(tag, messages, "Answers a conversation.", &BODY, answer);
    let (about, answer) = (
        "Counts the tokens of a conversation.",
        description::Answer::Json(answers::message_tokens),
    );
    let count = Route::post(tag, format!("{messages}/count_tokens"), about, &COUNT, answer);
    vec![create, count]
}

/// What [`conversation`] reads.
const CONVERSATION: &[Field] = &[
    Field(
        "output_config",
        Form::Other(|| {
            let format = [("format", asked::one_of(&[]))];
            schema::either([schema::object([], format, true), asked::one_of(&[])])
        }),
        "A format is not supported.",
    ),
    Field(
        "system",
        Form::Other(|| schema::either([asked::content(), asked::one_of(&[])])),
        "What the model is asked to be.",
    ),
    Field(
        "messages",
        Form::Other(|| {
            let role = ("role", schema::values(["user", "assistant"]));
            let content = schema::either([schema::text(), schema::list(schema::one(Type::Object))]);
            schema::filled(schema::object([role, ("content", content)], [], true))
        }),
        "The conversation.",
    ),
    Field(
        "thinking",
        Form::Other(|| {
            let kind = ("type", schema::values(["enabled", "adaptive", "disabled"]));
            let budget = ("budget_tokens", schema::at_least(Type::Integer, 0, true));
            schema::either([schema::object([kind], [budget], true), asked::one_of(&[])])
        }),
        "Whether the model thinks. budget_tokens is read and not enforced.",
    ),
];

const FIELDS: &[Field] = &[
    Field("max_tokens", Form::Count(1), "Most tokens of the answer."),
    Field("stop_sequences", Form::Texts, "Texts that end the answer."),
    Field("stream", Form::Bool, "Whether the answer comes as a stream."),
];

const BODY: Body = Body {
    groups: &[
        Group::Read(CONVERSATION),
        Group::Refused(&NOT_SUPPORTED),
        Group::Read(MODEL),
        Group::Read(FIELDS),
        Group::All(sampler::FIELDS),
    ],
    required: &["model", "messages", "max_tokens"],
};

const COUNT: Body = Body {
    groups: &[
        Group::Read(CONVERSATION),
        Group::Refused(&NOT_SUPPORTED),
        Group::Read(MODEL),
    ],
    required: &["messages"],
};

/// Reads the conversation of a request.
fn conversation(fields: &Fields) -> Result<Chat, ApiError> {
    fields.refuse(&NOT_SUPPORTED)?;
    let output = fields.object("output_config")?;
    if output
        .and_then(|output| output.get("format"))
        .is_some_and(|format| !format.is_null())
    {
        return Err(ApiError::not_supported(
            "output_config.format",
            "this server does not support it",
        ));
    }
    let mut chat = Chat {
        joins: true,
        ..Chat::default()
    };
    if let Some(system) = fields.get("system") {
        chat.push(Role::System, prompt::text("system", system)?, None);
    }
    let list = fields.list("messages")?.filter(|list| !list.is_empty());
    for message in list.ok_or_else(|| ApiError::field("messages", "it must be a list of one message or more"))? {
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => {
                return Err(ApiError::field(
                    "messages",
                    "the role of each must be user or assistant",
                ));
            }
        };
        let content = message.get("content").unwrap_or(&Value::Null);
        let (text, reasoning) = match content {
            Value::Array(blocks) if role == Role::Assistant => said(blocks)?,
            _ => (prompt::text("messages", content)?, None),
        };
        chat.push(role, text, reasoning);
        chat.continues = role == Role::Assistant;
    }
    if let Some(thinking) = fields.object("thinking")? {
        match thinking.get("type").and_then(Value::as_str) {
            Some("enabled" | "adaptive") => chat.set_thinking(true),
            Some("disabled") => chat.set_thinking(false),
            _ => {
                return Err(ApiError::field(
                    "thinking",
                    "its type must be enabled, adaptive or disabled",
                ));
            }
        }
        let budget = thinking.get("budget_tokens").filter(|budget| !budget.is_null());
        if budget.is_some_and(|budget| budget.as_u64().is_none()) {
            return Err(ApiError::field(
                "thinking.budget_tokens",
                "it must be a number of tokens",
            ));
        }
    }
    Ok(chat)
}

/// What the model said before, and what it thought. What was hidden from the client cannot be shown to the model.
fn said(blocks: &[Value]) -> Result<(String, Option<String>), ApiError> {
    let kind = |block: &Value| block.get("type").and_then(Value::as_str).map(str::to_owned);
    let is_thought = |block: &&Value| matches!(kind(block).as_deref(), Some("thinking" | "redacted_thinking"));
    let thoughts = blocks
        .iter()
        .filter(is_thought)
        .filter_map(|block| block.get("thinking"));
    let thoughts: Option<Vec<&str>> = thoughts.map(Value::as_str).collect();
    let thoughts = thoughts.ok_or_else(|| ApiError::field("messages", "the thinking of a block must be a text"))?;
    let text = prompt::text_of_parts("messages", blocks.iter().filter(|block| !is_thought(block)))?;
    Ok((text, (!thoughts.is_empty()).then(|| thoughts.join("\n"))))
}

async fn count(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Json<Value>, ApiError> {
    let tokens = prompt::count(&app, &asker, &fields, conversation).await?;
    Ok(Json(json!({"input_tokens": tokens})))
}

async fn create(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let limits = &app.options().limits;
    let chat = conversation(&fields)?;
    let max_tokens = fields.count("max_tokens", 1, usize::MAX)?;
    let max_tokens = max_tokens.ok_or_else(|| ApiError::field("max_tokens", "it must be there"))?;
    let stop = fields.stops("stop_sequences", limits)?;
    let is_stream = fields.bool("stream")?;
    let model = fields.model()?;
    let lease = app.lease(Some(model)).await?;
    let sampler = sampler::config(&fields, lease.handle().tokenizer(), limits).await?;
    let pieces = chat.render(&asker, &lease).await?;
    let thinking = answer::thinking(&lease, &pieces, true);
    let request = Request {
        sampler,
        max_tokens,
        stop,
        ..Request::new(pieces)
    };
    let head = Head {
        id: id("msg_"),
        model: model.to_owned(),
    };
    let answer = Answer::start(&app, &asker, &lease, request, thinking).await?;
    match is_stream {
        true => Ok(stream::events(events(head, answer), Some(&json!({"type": "ping"})))),
        false => Ok(Json(head.whole(answer.complete().await?)).into_response()),
    }
}

/// What a message begins with.
struct Head {
    id: String,
    model: String,
}

impl Head {
    fn message(&self, content: Vec<Value>, usage: Value) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": null,
            "stop_sequence": null,
            "stop_details": null,
            "container": null,
            "usage": usage,
        })
    }

    fn whole(&self, answer: Whole) -> Value {
        let (reasoning, text) = (answer.split.reasoning, answer.split.content);
        let mut content = Vec::new();
        if !reasoning.is_empty() {
            content.push(block(Block::Thinking, &reasoning));
        }
        if !text.is_empty() || content.is_empty() {
            content.push(block(Block::Text, &text));
        }
        let mut message = self.message(content, usage(&answer.end));
        (message["stop_reason"], message["stop_sequence"]) = stop(&answer.end.reason);
        message
    }
}

/// A block of a content. Clients send what the model thought back with its signature; here it is empty, as nothing is checked.
fn block(block: Block, text: &str) -> Value {
    match block {
        Block::Thinking => json!({"type": "thinking", "thinking": text, "signature": ""}),
        Block::Text => json!({"type": "text", "text": text, "citations": null}),
    }
}

/// Why an answer ended, and the text that ended it.
fn stop(reason: &FinishReason) -> (Value, Value) {
    match reason {
        FinishReason::MaxTokens => ("max_tokens".into(), Value::Null),
        FinishReason::ContextFull => ("model_context_window_exceeded".into(), Value::Null),
        FinishReason::StopString(text) => ("stop_sequence".into(), text.as_str().into()),
        _ => ("end_turn".into(), Value::Null),
    }
}

/// Figures of a message. `input_tokens` are those that were computed.
fn figures(input: usize, cached: usize, drawn: usize, thought: usize) -> Value {
    json!({
        "input_tokens": input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "cache_creation": null,
        "output_tokens": drawn,
        "output_tokens_details": {"thinking_tokens": thought},
        "server_tool_use": null,
        "service_tier": "standard",
        "inference_geo": null,
    })
}

fn usage(end: &End) -> Value {
    let cached = end.stats.cached_tokens;
    figures(
        end.stats.prompt_tokens - cached,
        cached,
        end.stats.drawn_tokens,
        end.thought,
    )
}

fn events(head: Head, answer: Answer) -> impl Stream<Item = Value> + Send {
    async_stream::stream! {
        let mut steps = std::pin::pin!(answer.into_steps());
        let mut index = 0;
        while let Some(step) = steps.next().await {
            match step {
                Err(error) => {
                    yield Dialect::Anthropic.error(&error);
                    return;
                }
                // How many tokens were in the cache is known at the end only.
                Ok(Step::Prompt(tokens)) => {
                    let message = head.message(Vec::new(), figures(tokens, 0, 0, 0));
                    yield json!({"type": "message_start", "message": message});
                }
                Ok(Step::Begin(kind)) => {
                    yield json!({"type": "content_block_start", "index": index, "content_block": block(kind, "")});
                    if index == 0 {
                        yield json!({"type": "ping"});
                    }
                }
                Ok(Step::Delta(kind, text)) => {
                    let delta = match kind {
                        Block::Thinking => json!({"type": "thinking_delta", "thinking": text}),
                        Block::Text => json!({"type": "text_delta", "text": text}),
                    };
                    yield json!({"type": "content_block_delta", "index": index, "delta": delta});
                }
                Ok(Step::Close(kind, _)) => {
                    if kind == Block::Thinking {
                        let delta = json!({"type": "signature_delta", "signature": ""});
                        yield json!({"type": "content_block_delta", "index": index, "delta": delta});
                    }
                    yield json!({"type": "content_block_stop", "index": index});
                    index += 1;
                }
                Ok(Step::End(end)) => {
                    let (stop_reason, stop_sequence) = stop(&end.reason);
                    let delta = json!({
                        "stop_reason": stop_reason,
                        "stop_sequence": stop_sequence,
                        "stop_details": null,
                        "container": null,
                    });
                    yield json!({"type": "message_delta", "delta": delta, "usage": usage(&end)});
                    yield json!({"type": "message_stop"});
                }
            }
        }
    }
}
