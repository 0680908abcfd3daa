//! Routes of the OpenAI API.

pub(crate) mod chat;
mod completions;
mod embeddings;
pub(crate) mod logprobs;
mod models;
mod responses;

use std::sync::Arc;
use std::time::Duration;

use axum::routing::{get, post};
use axum::{Json, Router};
use rocmforge_models::generate::{FinishReason, Prompt, Request, Stats};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::description::answers::{self, asked};
use crate::description::field::{Body, Field, Form, Group};
use crate::description::{Answer, Route, schema};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::progress::Reports;
use crate::registry::Lease;
use crate::sampler;
pub(crate) use embeddings::is_base64;

/// What clients compare to know whether the same program answers.
const FINGERPRINT: &str = concat!("b-rocmforge-", env!("CARGO_PKG_VERSION"));

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/v1/chat/completions", post(chat::complete))
        .route("/chat/completions", post(chat::complete))
        .route("/v1/chat/completions/input_tokens", post(chat::count))
        .route("/chat/completions/input_tokens", post(chat::count))
        .route("/v1/completions", post(completions::complete))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/input_tokens", post(responses::count))
        .route("/v1/embeddings", post(embeddings::create))
        .route("/v1/models", get(models::list))
        .route("/models", get(models::list))
        .route("/v1/models/{*name}", get(models::show))
}

/// The answer of routes that count the tokens of a prompt.
fn input_tokens(tokens: usize) -> Json<Value> {
    Json(json!({"object": "response.input_tokens", "input_tokens": tokens}))
}

/// The media type of streams of server-sent events.
pub(crate) const EVENTS: &str = "text/event-stream";

pub(crate) fn described() -> Vec<Route> {
    let tag = "OpenAI";
    let mut routes = Vec::new();
    // llama.cpp's clients use some routes without a version.
    for version in ["/v1", ""] {
        let path = |path: &str| format!("{version}{path}");
        let body = match version {
            "" => Body {
                required: &["messages"],
                ..chat::BODY
            },
            _ => chat::BODY,
        };
        let about = "Answers a conversation.";
        let answer = Answer::Stream(answers::chat, EVENTS);
        routes.push(Route::post(tag, path("/chat/completions"), about, &body, answer));
        let (about, answer) = (
            "Counts the tokens of a conversation.",
            Answer::Json(answers::input_tokens),
        );
        let count = path("/chat/completions/input_tokens");
        routes.push(Route::post(tag, count, about, &chat::COUNT, answer));
        let answer = Answer::Json(answers::models);
        routes.push(Route::get(tag, path("/models"), "The models.", answer));
    }
    let answer = Answer::Stream(answers::completions, EVENTS);
    let about = "Continues texts.";
    routes.push(Route::post(tag, "/v1/completions", about, &completions::BODY, answer));
    let answer = Answer::Stream(answers::response, EVENTS);
    let about = "Answers a conversation; nothing is kept.";
    routes.push(Route::post(tag, "/v1/responses", about, &responses::BODY, answer));
    let (about, answer) = (
        "Counts the tokens of a conversation.",
        Answer::Json(answers::input_tokens),
    );
    routes.push(Route::post(
        tag,
        "/v1/responses/input_tokens",
        about,
        &responses::COUNT,
        answer,
    ));
    let answer = Answer::Json(answers::embeddings);
    let about = "Embeddings of texts.";
    routes.push(Route::post(tag, "/v1/embeddings", about, &embeddings::BODY, answer));
    let answer = Answer::Json(answers::one_model);
    routes.push(Route::get(tag, "/v1/models/{name}", "A model.", answer));
    routes
}

/// What [`Common`] reads.
pub(crate) const FIELDS: &[Field] = &[
    Field("model", Form::Text, "The model's name: GET /v1/models lists them."),
    Field("stream", Form::Bool, "Whether the answer comes as a stream."),
    Field(
        "stream_options",
        Form::Other(|| {
            let options = [("include_usage", schema::flag())];
            schema::either([schema::object([], options, true), asked::one_of(&[])])
        }),
        "include_usage: figures at the end of a stream.",
    ),
    Field("n", Form::Count(1), "Answers to each prompt."),
    Field(
        "max_completion_tokens",
        Form::Tokens,
        "Most tokens of an answer; -1 is no limit.",
    ),
    Field("max_tokens", Form::Tokens, "As max_completion_tokens."),
    Field("n_predict", Form::Tokens, "As max_completion_tokens."),
    Field("stop", Form::Texts, "Texts that end an answer."),
    Field(
        "ignore_eos",
        Form::Bool,
        "Whether tokens that end texts are never drawn.",
    ),
    Field(
        "response_format",
        Form::Other(|| {
            let kind = [("type", schema::values(["text"]))];
            schema::either([schema::object([], kind, false), asked::one_of(&[])])
        }),
        "The type text is known.",
    ),
    Field(
        "best_of",
        Form::Other(|| schema::values([Value::Null, 0.into(), 1.into()])),
        "1 is known.",
    ),
    Field(
        "skip_special_tokens",
        Form::Other(|| schema::values([Value::Null, true.into()])),
        "true is known: control tokens that are drawn are not part of the text.",
    ),
    Field(
        "return_progress",
        Form::Bool,
        "Whether a stream says how far the prompt is, as prompt_progress.",
    ),
    Field(
        "cache_salt",
        Form::Text,
        "Beginnings of prompts are shared in the cache only with requests that have the same.",
    ),
];

/// The same, with the sampler's.
pub(crate) const COMMON: [Group; 3] = [
    Group::Read(FIELDS),
    Group::Refused(&NOT_SUPPORTED),
    Group::All(sampler::FIELDS),
];

/// What both kinds of completion have in common.
pub(crate) struct Common {
    /// The name that the client gave the model.
    pub(crate) model: String,
    pub(crate) lease: Arc<Lease>,
    /// Without a prompt.
    pub(crate) request: Request,
    /// Answers to each prompt.
    pub(crate) choices: usize,
    pub(crate) is_stream: bool,
    /// What a stream says about each answer's prompt.
    pub(crate) reports: Reports,
    wants_usage: bool,
}

/// Fields that change an answer and are not there.
pub(crate) const NOT_SUPPORTED: [&str; 34] = [
    "tools",
    "functions",
    "response_format",
    "audio",
    "prediction",
    "web_search_options",
    "best_of",
    "lora",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "stop_token_ids",
    "min_tokens",
    "bad_words",
    "allowed_token_ids",
    "prompt_logprobs",
    "min_keep",
    // llama.cpp's, and old ones of its.
    "n_discard",
    "n_indent",
    "image_data",
    "system_prompt",
    "input_extra",
    // vLLM's and SGLang's.
    "use_beam_search",
    "include_stop_str_in_output",
    "truncate_prompt_tokens",
    "logits_processors",
    "thinking_token_budget",
    "no_repeat_ngram_size",
    "min_new_tokens",
    "top_a",
    "regex",
    "ebnf",
];

impl Common {
    pub(crate) async fn read(app: &App, fields: &Fields) -> Result<Self, ApiError> {
        let limits = &app.options().limits;
        let format = fields.object("response_format")?.and_then(|format| format.get("type"));
        let names = NOT_SUPPORTED.iter().filter(|name| match **name {
            "response_format" => format.is_none_or(|kind| kind != "text"),
            "best_of" => fields.get("best_of").is_some_and(|number| *number != 1),
            _ => true,
        });
        fields.refuse(&names.copied().collect::<Vec<_>>())?;
        let hides = fields.get("skip_special_tokens").is_none() || fields.bool("skip_special_tokens")?;
        if !hides {
            let text = "true is known: control tokens that are drawn are not part of the text";
            return Err(ApiError::not_supported("skip_special_tokens", text));
        }
        // A salt of an owner begins with `[`, and a digest in this form has no `:` and no NUL.
        let salt = fields.text("cache_salt")?;
        let cache_salt = salt.map_or(String::new(), |salt| format!(":{:x?}", Sha256::digest(salt)));
        let choices = fields.count("n", 1, limits.choices)?.unwrap_or(1);
        let max_tokens = match fields.tokens("max_completion_tokens")? {
            Some(tokens) => Some(tokens),
            None => fields.tokens("max_tokens")?.or(fields.tokens("n_predict")?),
        };
        let stop = fields.stops("stop", limits)?;
        let name = fields.text("model")?;
        let lease = app.lease(name).await?;
        let sampler = sampler::config(fields, lease.handle().tokenizer(), limits).await?;
        let options = fields.object("stream_options")?;
        let wants_usage = match options.and_then(|options| options.get("include_usage")) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(wants)) => *wants,
            Some(_) => {
                let text = "include_usage must be true or false";
                return Err(ApiError::field("stream_options", text));
            }
        };
        Ok(Self {
            model: name.unwrap_or(lease.name()).to_owned(),
            request: Request {
                sampler,
                max_tokens: max_tokens.unwrap_or(usize::MAX),
                stop,
                ignore_end: fields.bool("ignore_eos")?,
                cache_salt,
                ..Request::new(Prompt::Ids(Vec::new()))
            },
            lease,
            choices,
            is_stream: fields.bool("stream")?,
            reports: Reports::new(fields.bool("return_progress")?),
            wants_usage,
        })
    }

    /// The requests for all answers to a prompt. They differ only in their seeds.
    pub(crate) fn requests(&self, prompt: &Prompt) -> impl Iterator<Item = Request> {
        (0..self.choices as u64).map(|choice| {
            let mut request = self.request.clone();
            request.prompt = prompt.clone();
            request.sampler.seed = request.sampler.seed.wrapping_add(choice);
            request
        })
    }
}

fn finish_reason(reason: &FinishReason) -> &'static str {
    match reason {
        FinishReason::MaxTokens | FinishReason::ContextFull => "length",
        _ => "stop",
    }
}

/// Figures of all answers of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    prompt: usize,
    cached: usize,
    drawn: usize,
    /// Drawn tokens that the model thought.
    thought: usize,
}

impl Usage {
    /// Adds an answer's figures. Answers to the same prompt count it once.
    fn add(&mut self, stats: &Stats, is_new_prompt: bool) {
        if is_new_prompt {
            self.prompt += stats.prompt_tokens;
            self.cached += stats.cached_tokens;
        }
        self.drawn += stats.drawn_tokens;
    }

    fn json(&self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": self.drawn,
            "total_tokens": self.prompt + self.drawn,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.thought},
        })
    }
}

/// Times of an answer, as llama.cpp's server gives them.
pub(crate) fn timings(stats: &Stats) -> Value {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let per_token = |time: Duration, tokens: usize| milliseconds(time) / tokens.max(1) as f64;
    let computed = stats.prompt_tokens - stats.cached_tokens;
    json!({
        "cache_n": stats.cached_tokens,
        "prompt_n": computed,
        "prompt_ms": milliseconds(stats.prompt_time),
        "prompt_per_token_ms": per_token(stats.prompt_time, computed),
        "prompt_per_second": stats.prompt_tokens_per_second(),
        "predicted_n": stats.drawn_tokens,
        "predicted_ms": milliseconds(stats.decode_time),
        "predicted_per_token_ms": per_token(stats.decode_time, stats.decoded_tokens),
        "predicted_per_second": stats.decode_tokens_per_second(),
    })
}
