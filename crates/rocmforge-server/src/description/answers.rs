//! Answers of the routes, as the description has them. Unless it says otherwise, an object has all of its properties and no others; the tests and
//! `tools/schemathesis` compare what the server answers with it.

use serde_json::{Value, json};
use utoipa::openapi::schema::Type;

use super::schema::{
    Described, about, any, count, either, flag, list, map, named, number, object, one, or_null, text, values, whole,
};
use crate::error::Dialect;

/// One value.
fn only(value: impl Into<Value>) -> Described {
    values([value.into()])
}

fn null() -> Described {
    one(Type::Null)
}

fn maybe(described: Described) -> Described {
    either([described, null()])
}

/// Schemas that several routes share.
pub(crate) fn shared() -> Vec<(&'static str, Described)> {
    vec![
        ("Usage", usage()),
        ("Timings", timings()),
        ("Logprobs", logprobs()),
        ("Model", model()),
        (
            "Settings",
            about(map(any()), "Settings of a request, as llama.cpp names them."),
        ),
        ("Details", details()),
    ]
}

/// An error in the form of an API.
pub(crate) fn error(dialect: Dialect) -> Described {
    match dialect {
        Dialect::OpenAi => whole([(
            "error",
            object(
                [
                    ("message", text()),
                    ("type", text()),
                    ("param", or_null(Type::String)),
                    ("code", count()),
                ],
                [("n_prompt_tokens", count()), ("n_ctx", count())],
                false,
            ),
        )]),
        Dialect::Anthropic => whole([
            ("type", only("error")),
            ("error", whole([("type", text()), ("message", text())])),
            ("request_id", text()),
        ]),
        Dialect::Ollama => whole([("error", text())]),
    }
}

fn usage() -> Described {
    whole([
        ("prompt_tokens", count()),
        ("completion_tokens", count()),
        ("total_tokens", count()),
        ("prompt_tokens_details", whole([("cached_tokens", count())])),
        ("completion_tokens_details", whole([("reasoning_tokens", count())])),
    ])
}

fn timings() -> Described {
    whole([
        ("cache_n", count()),
        ("prompt_n", count()),
        ("prompt_ms", number()),
        ("prompt_per_token_ms", number()),
        ("prompt_per_second", number()),
        ("predicted_n", count()),
        ("predicted_ms", number()),
        ("predicted_per_token_ms", number()),
        ("predicted_per_second", number()),
    ])
}

fn logprobs() -> Described {
    let token = || {
        [
            ("token", text()),
            ("id", count()),
            ("logprob", number()),
            ("bytes", list(count())),
        ]
    };
    let top = ("top_logprobs", list(whole(token())));
    let content = list(whole(token().into_iter().chain([top])));
    whole([("content", content), ("refusal", null())])
}

fn completion(kind: &'static str, choice: Described, verbose: bool) -> Described {
    object(
        [
            ("id", text()),
            ("object", only(kind)),
            ("created", count()),
            ("model", text()),
            ("system_fingerprint", text()),
            ("choices", list(choice)),
            ("usage", named("Usage")),
            ("timings", named("Timings")),
        ],
        verbose.then(|| ("__verbose", whole([("prompt", text())]))),
        false,
    )
}

pub(crate) fn chat() -> Described {
    let message = object(
        [
            ("role", only("assistant")),
            ("content", text()),
            ("refusal", null()),
            ("annotations", list(any())),
        ],
        [("reasoning_content", text())],
        false,
    );
    let choice = whole([
        ("index", count()),
        ("message", message),
        ("logprobs", maybe(named("Logprobs"))),
        ("finish_reason", values(["stop", "length"])),
    ]);
    completion("chat.completion", choice, true)
}

pub(crate) fn completions() -> Described {
    let logprobs = whole([
        ("tokens", list(text())),
        ("token_logprobs", list(or_null(Type::Number))),
        ("top_logprobs", list(maybe(map(number())))),
        ("text_offset", list(count())),
    ]);
    let choice = whole([
        ("index", count()),
        ("text", text()),
        ("logprobs", maybe(logprobs)),
        ("finish_reason", values(["stop", "length"])),
    ]);
    completion("text_completion", choice, false)
}

pub(crate) fn input_tokens() -> Described {
    whole([("object", only("response.input_tokens")), ("input_tokens", count())])
}

pub(crate) fn response() -> Described {
    let part = object(
        [("type", values(["output_text", "reasoning_text"])), ("text", text())],
        [("annotations", list(any())), ("logprobs", list(any()))],
        false,
    );
    let item = object(
        [
            ("type", values(["message", "reasoning"])),
            ("id", text()),
            ("status", values(["completed", "incomplete"])),
            ("content", list(part)),
        ],
        [("role", only("assistant")), ("summary", list(any()))],
        false,
    );
    let usage = whole([
        ("input_tokens", count()),
        ("input_tokens_details", whole([("cached_tokens", count())])),
        ("output_tokens", count()),
        ("output_tokens_details", whole([("reasoning_tokens", count())])),
        ("total_tokens", count()),
    ]);
    whole([
        ("id", text()),
        ("object", only("response")),
        ("created_at", count()),
        ("completed_at", or_null(Type::Integer)),
        ("status", values(["completed", "incomplete"])),
        ("incomplete_details", maybe(whole([("reason", text())]))),
        ("error", null()),
        ("model", text()),
        ("instructions", or_null(Type::String)),
        ("output", list(item)),
        ("usage", usage),
        ("max_output_tokens", or_null(Type::Integer)),
        ("temperature", number()),
        ("top_p", number()),
        ("presence_penalty", number()),
        ("frequency_penalty", number()),
        ("top_logprobs", count()),
        (
            "reasoning",
            whole([("effort", or_null(Type::String)), ("summary", null())]),
        ),
        ("text", whole([("format", whole([("type", only("text"))]))])),
        ("metadata", one(Type::Object)),
        ("tools", list(any())),
        ("tool_choice", text()),
        ("parallel_tool_calls", flag()),
        ("max_tool_calls", null()),
        ("truncation", text()),
        ("previous_response_id", null()),
        ("store", flag()),
        ("background", flag()),
        ("service_tier", text()),
        ("safety_identifier", or_null(Type::String)),
        ("prompt_cache_key", or_null(Type::String)),
    ])
}

fn model() -> Described {
    let meta = whole([
        ("architecture", text()),
        ("weight_type", text()),
        ("n_params", count()),
        ("size", count()),
        ("n_ctx", count()),
        ("n_ctx_train", count()),
        ("n_embd", count()),
        ("n_vocab", count()),
    ]);
    whole([
        ("id", text()),
        ("object", only("model")),
        ("created", count()),
        (
            "kind",
            values([Value::Null, "text".into(), "embedding".into(), "ranking".into()]),
        ),
        ("owned_by", text()),
        ("status", whole([("value", values(["loaded", "unloaded"]))])),
        ("meta", maybe(meta)),
    ])
}

pub(crate) fn one_model() -> Described {
    named("Model")
}

pub(crate) fn models() -> Described {
    whole([("object", only("list")), ("data", list(named("Model")))])
}

pub(crate) fn message() -> Described {
    let block = object(
        [("type", values(["text", "thinking"]))],
        [
            ("text", text()),
            ("citations", null()),
            ("thinking", text()),
            ("signature", text()),
        ],
        false,
    );
    let reasons = [
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "model_context_window_exceeded",
    ];
    let usage = whole([
        ("input_tokens", count()),
        ("cache_creation_input_tokens", count()),
        ("cache_read_input_tokens", count()),
        ("cache_creation", null()),
        ("output_tokens", count()),
        ("output_tokens_details", whole([("thinking_tokens", count())])),
        ("server_tool_use", null()),
        ("service_tier", text()),
        ("inference_geo", null()),
    ]);
    whole([
        ("id", text()),
        ("type", only("message")),
        ("role", only("assistant")),
        ("model", text()),
        ("content", list(block)),
        ("stop_reason", values(reasons)),
        ("stop_sequence", or_null(Type::String)),
        ("stop_details", null()),
        ("container", null()),
        ("usage", usage),
    ])
}

pub(crate) fn message_tokens() -> Described {
    whole([("input_tokens", count())])
}

pub(crate) fn health() -> Described {
    let model = whole([
        ("model", text()),
        ("state", values(["ready", "draining", "stopped"])),
        ("last_step_age_seconds", or_null(Type::Number)),
        ("in_step_seconds", or_null(Type::Number)),
        ("failed_steps_in_a_row", count()),
        ("open_requests", count()),
        ("steps", count()),
    ]);
    let loading = whole([("model", text()), ("seconds", number())]);
    whole([
        ("status", values(["ok", "error"])),
        ("models", list(model)),
        ("loading", either([loading, null()])),
    ])
}

pub(crate) fn reloaded() -> Described {
    whole([("reloaded", flag())])
}

pub(crate) fn tokens() -> Described {
    let piece = either([text(), list(count())]);
    let token = either([count(), whole([("id", count()), ("piece", piece)])]);
    // The counts are in answers to vLLM's clients.
    object(
        [("tokens", list(token))],
        [("count", count()), ("max_model_len", count())],
        false,
    )
}

pub(crate) fn content() -> Described {
    whole([("content", text()), ("prompt", text())])
}

pub(crate) fn tokenizer_info() -> Described {
    whole([
        ("bos_token", or_null(Type::String)),
        ("eos_token", or_null(Type::String)),
        ("add_bos_token", flag()),
        ("chat_template", or_null(Type::String)),
        ("model_max_length", count()),
    ])
}

pub(crate) fn prompt() -> Described {
    whole([("prompt", text())])
}

pub(crate) fn memory() -> Described {
    let card = whole([
        ("id", text()),
        ("name", text()),
        ("total", count()),
        ("budget", count()),
        ("own", count()),
        ("others", or_null(Type::Integer)),
        ("headroom", count()),
    ]);
    let model = whole([
        ("model", text()),
        ("device", text()),
        ("cards", list(text())),
        ("weight_bytes", count()),
        ("cache_bytes", count()),
        ("card_bytes", count()),
        ("cache_tokens", count()),
        ("cache_blocks", count()),
        ("cache_blocks_used", count()),
        ("cache_blocks_kept", count()),
    ]);
    whole([("cards", list(card)), ("models", list(model))])
}

/// llama.cpp's answer, or one for each prompt. `response_fields` chooses its properties.
fn numbers() -> Described {
    list(number())
}

fn prompt_usage() -> Described {
    whole([("prompt_tokens", count()), ("total_tokens", count())])
}

pub(crate) fn embeddings() -> Described {
    let embedding = whole([
        ("object", values(["embedding"])),
        ("index", count()),
        ("embedding", either([numbers(), text()])),
    ]);
    whole([
        ("object", values(["list"])),
        ("model", text()),
        ("usage", prompt_usage()),
        ("data", list(embedding)),
    ])
}

pub(crate) fn llama_cpp_embeddings() -> Described {
    list(whole([("index", count()), ("embedding", list(numbers()))]))
}

pub(crate) fn ranked() -> Described {
    let document = whole([("text", text())]);
    let result = object(
        [("index", count()), ("relevance_score", number())],
        [("document", document)],
        false,
    );
    let of_tei = object([("index", count()), ("score", number())], [("text", text())], false);
    let all = whole([
        ("model", text()),
        ("object", values(["list"])),
        ("usage", prompt_usage()),
        ("results", list(result)),
    ]);
    either([all, list(of_tei)])
}

pub(crate) fn ollama_embeddings() -> Described {
    let times = [
        ("total_duration", count()),
        ("load_duration", count()),
        ("prompt_eval_count", count()),
    ];
    object([("model", text()), ("embeddings", list(numbers()))], times, false)
}

pub(crate) fn ollama_embedding() -> Described {
    whole([("embedding", numbers())])
}

pub(crate) fn llama_cpp() -> Described {
    let answer = || {
        object(
            [],
            [
                ("index", count()),
                ("content", text()),
                ("tokens", list(count())),
                ("id_slot", count()),
                ("stop", flag()),
                ("model", text()),
                ("tokens_predicted", count()),
                ("tokens_evaluated", count()),
                ("generation_settings", named("Settings")),
                ("prompt", text()),
                ("has_new_line", flag()),
                ("truncated", flag()),
                ("stop_type", values(["eos", "word", "limit", "none"])),
                ("stopping_word", text()),
                ("tokens_cached", count()),
                ("timings", named("Timings")),
                ("completion_probabilities", list(any())),
            ],
            true,
        )
    };
    either([answer(), list(answer())])
}

pub(crate) fn props() -> Described {
    let settings = whole([("n_ctx", count()), ("params", named("Settings"))]);
    object(
        [
            ("is_sleeping", flag()),
            ("model_alias", text()),
            ("model_path", text()),
            ("modalities", whole([("vision", flag()), ("audio", flag())])),
            ("build_info", text()),
        ],
        [
            ("default_generation_settings", settings),
            ("total_slots", count()),
            ("chat_template", text()),
            ("bos_token", text()),
            ("eos_token", text()),
        ],
        false,
    )
}

pub(crate) fn slots() -> Described {
    list(whole([
        ("id", count()),
        ("model", text()),
        ("n_ctx", count()),
        ("speculative", flag()),
        ("is_processing", flag()),
    ]))
}

fn ollama(said: (&'static str, Described), more: Option<(&'static str, Described)>) -> Described {
    let figures = [
        "total_duration",
        "load_duration",
        "prompt_eval_count",
        "prompt_eval_duration",
        "eval_count",
        "eval_duration",
    ];
    object(
        [
            ("model", text()),
            ("created_at", text()),
            ("done", flag()),
            ("done_reason", values(["stop", "length", "load", "unload"])),
            said,
        ],
        figures.into_iter().map(|name| (name, count())).chain(more),
        false,
    )
}

pub(crate) fn ollama_chat() -> Described {
    let message = object(
        [("role", only("assistant")), ("content", text())],
        [("thinking", text())],
        false,
    );
    ollama(("message", message), None)
}

pub(crate) fn ollama_text() -> Described {
    ollama(("response", text()), Some(("thinking", text())))
}

fn details() -> Described {
    whole([
        ("parent_model", text()),
        ("format", text()),
        ("family", text()),
        ("families", list(text())),
        ("parameter_size", text()),
        ("quantization_level", text()),
    ])
}

fn ollama_model() -> [(&'static str, Described); 5] {
    [
        ("name", text()),
        ("model", text()),
        ("size", count()),
        ("digest", text()),
        ("details", named("Details")),
    ]
}

pub(crate) fn tags() -> Described {
    let model = ollama_model().into_iter().chain([("modified_at", text())]);
    whole([("models", list(whole(model)))])
}

pub(crate) fn running() -> Described {
    let more = [
        ("expires_at", text()),
        ("size_vram", count()),
        ("context_length", count()),
    ];
    whole([("models", list(whole(ollama_model().into_iter().chain(more))))])
}

pub(crate) fn show() -> Described {
    whole([
        ("modelfile", text()),
        ("parameters", text()),
        ("template", text()),
        ("details", named("Details")),
        ("model_info", map(any())),
        ("capabilities", list(text())),
        ("modified_at", text()),
    ])
}

pub(crate) fn version() -> Described {
    whole([("version", text()), ("server", text())])
}

/// Parts of a conversation that several requests have.
pub(crate) mod asked {
    use super::{Described, Type, Value, either, json, list, object, one, text, values};
    use crate::description::schema::filled;

    /// A text, or parts of it.
    pub(crate) fn content() -> Described {
        let kind = one_of(&["text", "input_text", "output_text"]);
        let part = object([("text", text())], [("type", kind)], true);
        let refusal = object([("type", values(["refusal"])), ("refusal", text())], [], true);
        either([text(), list(either([part, refusal]))])
    }

    /// Messages of a conversation.
    pub(crate) fn messages() -> Described {
        let roles = ["system", "developer", "user", "assistant", "tool"];
        filled(object(
            [("role", values(roles))],
            [("content", either([content(), one(Type::Null)]))],
            true,
        ))
    }

    /// One of some values, or null.
    pub(crate) fn one_of(names: &[&str]) -> Described {
        let names = names.iter().map(|name| Value::from(*name));
        values(names.chain([json!(null)]))
    }
}
