//! Routes about the server: health, readiness, metrics, and the tokens of texts.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use rocmforge_models::serve::State as ServerState;
use rocmforge_models::tokenizer::{AddBos, Encode, SpecialTokens};
use serde_json::{Value, json};
use utoipa::openapi::path::HttpMethod;

use crate::app::{App, Asker};
use crate::description::answers;
use crate::description::field::{Body, Field, Form, Group};
use crate::description::schema;
use crate::description::{Answer, Route};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::llama_cpp::named_model;
use crate::metrics;
use crate::openai::chat::{MESSAGES, MODEL, conversation};
use crate::prompt::{self, Chat};

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/health", get(health))
        .route("/v1/health", get(health))
        .route("/ready", get(ready))
        .route("/metrics", get(show_metrics))
        .route("/admin/reload", post(reload))
        .route("/tokenize", post(tokenize))
        .route("/detokenize", post(detokenize))
        .route("/tokenizer_info", get(tokenizer_info))
        .route("/apply-template", post(apply_template))
}

pub(crate) fn described() -> Vec<Route> {
    let tag = "server";
    let health = |path: &str| Route::get(tag, path, "Whether each engine works.", Answer::Health(answers::health));
    let text = Answer::Text("text/plain");
    vec![
        health("/health"),
        health("/v1/health"),
        Route::get(tag, "/ready", "Whether requests are taken.", text),
        Route::get(tag, "/metrics", "Figures for Prometheus.", text),
        Route {
            method: HttpMethod::Post,
            ..Route::get(
                tag,
                "/admin/reload",
                "Reads keys, certificate and models anew, where there are keys of admins.",
                Answer::Json(answers::reloaded),
            )
        },
        Route::post(
            tag,
            "/tokenize",
            "Tokens of a text.",
            &TOKENIZE,
            Answer::Json(answers::tokens),
        ),
        Route::post(
            tag,
            "/detokenize",
            "The text of tokens.",
            &DETOKENIZE,
            Answer::Json(answers::content),
        ),
        Route {
            query: &["model"],
            ..Route::get(
                tag,
                "/tokenizer_info",
                "What vLLM's clients ask of a tokenizer.",
                Answer::Json(answers::tokenizer_info),
            )
        },
        Route::post(
            tag,
            "/apply-template",
            "The prompt of a conversation.",
            &APPLY,
            Answer::Json(answers::prompt),
        ),
    ]
}

/// vLLM's fields that are not there.
const NOT_SUPPORTED: [&str; 2] = ["messages", "return_token_strs"];

const TOKENIZE: Body = Body {
    groups: &[
        Group::Read(MODEL),
        Group::Refused(&NOT_SUPPORTED),
        Group::Read(&[
            Field("content", Form::Text, "The text."),
            Field("prompt", Form::Text, "The text, in vLLM's words."),
            Field(
                "add_special_tokens",
                Form::Bool,
                "Whether the tokens of a prompt begin as one does [default: true].",
            ),
            Field("add_special", Form::Bool, "Whether the tokens begin as a prompt does."),
            Field(
                "parse_special",
                Form::Bool,
                "Whether control tokens in the text are tokens [default: true].",
            ),
            Field("with_pieces", Form::Bool, "Whether each token has its text."),
        ]),
    ],
    required: &[],
};

const DETOKENIZE: Body = Body {
    groups: &[
        Group::Read(MODEL),
        Group::Read(&[Field(
            "tokens",
            Form::Other(|| schema::either([schema::list(schema::count()), schema::values([Value::Null])])),
            "The tokens.",
        )]),
    ],
    required: &[],
};

const APPLY: Body = Body {
    groups: &[
        Group::All(&MESSAGES),
        Group::Read(MODEL),
        Group::Read(&[Field("tools", Form::List, "Tools that the template describes.")]),
    ],
    required: &["messages"],
};

/// Whether the engines answer: the age of each one's last step, and how long the running one takes; and how long a model has been loading.
async fn health(State(app): State<App>) -> Response {
    let mut is_well = !app.registry().is_load_overdue();
    let models = app.registry().entries().filter_map(|entry| {
        entry.look(|_, figures| {
            let is_stopped = figures.state == ServerState::Stopped;
            is_well &= !is_stopped && figures.failed_in_a_row < 3;
            json!({
                "model": entry.name,
                "state": match figures.state {
                    ServerState::Ready => "ready",
                    ServerState::Draining => "draining",
                    ServerState::Stopped => "stopped",
                },
                "last_step_age_seconds": figures.last_step.map(|age| age.as_secs_f64()),
                "in_step_seconds": figures.in_step.map(|age| age.as_secs_f64()),
                "failed_steps_in_a_row": figures.failed_in_a_row,
                "open_requests": figures.open,
                "steps": figures.steps,
            })
        })
    });
    let models: Vec<Value> = models.collect();
    let (status, word) = match is_well {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "error"),
    };
    let loading = app.registry().loading();
    let loading = loading.map(|(model, time)| json!({"model": model, "seconds": time.as_secs_f64()}));
    (
        status,
        axum::Json(json!({"status": word, "models": models, "loading": loading})),
    )
        .into_response()
}

/// Whether requests are taken.
async fn ready(State(app): State<App>) -> Result<&'static str, ApiError> {
    match app.is_draining() {
        true => Err(ApiError::new(Kind::Unavailable, "the server ends")),
        false => Ok("ready\n"),
    }
}

async fn show_metrics(State(app): State<App>) -> Result<impl IntoResponse, ApiError> {
    if !app.options().metrics {
        return Err(ApiError::new(Kind::NotThere, "this server shows no metrics"));
    }
    let kind = (
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8".to_owned(),
    );
    let started = HeaderName::from_static("process-start-time-unix");
    Ok(([kind, (started, app.started().to_string())], metrics::text(&app)))
}

/// Reads settings anew: keys, certificate, models. Without keys of admins anybody could ask for it.
async fn reload(State(app): State<App>, asker: Asker) -> Result<axum::Json<Value>, ApiError> {
    if app.admin_keys().is_empty() || !app.can_reload() {
        return Err(ApiError::new(Kind::NotFound, "there is no such route"));
    }
    app.check_admin(&asker)?;
    let text = "some settings could not be read and are as before: the server's log says which";
    let reloaded = app.reload().await;
    reloaded.map_err(|_| ApiError::new(Kind::Internal, text))?;
    Ok(axum::Json(json!({"reloaded": true})))
}

async fn tokenize(State(app): State<App>, asker: Asker, fields: Fields) -> Result<axum::Json<Value>, ApiError> {
    let place = asker.place;
    let lease = app.any_lease(fields.text("model")?).await?;
    fields.refuse(&NOT_SUPPORTED)?;
    // vLLM's clients send a `prompt`, llama.cpp's a `content`.
    let of_prompt = fields.get("add_special_tokens").is_none() || fields.bool("add_special_tokens")?;
    let of_content = fields.bool("add_special")?;
    let (name, text, bos) = match (fields.text("prompt")?, fields.text("content")?) {
        (Some(_), Some(_)) => return Err(ApiError::field("prompt", "there is a content, too: send one of them")),
        (Some(prompt), None) => ("prompt", prompt, of_prompt),
        (None, content) => ("content", content.unwrap_or_default(), of_content),
    };
    let text = text.to_owned();
    let tokenizer = lease.tokenizer();
    let encode = Encode {
        add_bos: match bos {
            true => AddBos::ModelDefault,
            false => AddBos::No,
        },
        special: match fields.get("parse_special").is_none() || fields.bool("parse_special")? {
            true => SpecialTokens::Parse,
            false => SpecialTokens::AsText,
        },
    };
    // A long text takes time.
    let encoder = Arc::clone(&tokenizer);
    let encoded = tokio::task::spawn_blocking(move || {
        let _place = place;
        encoder.encode(&text, encode)
    });
    let encoded = encoded.await;
    let encoded = encoded.map_err(|_| ApiError::new(Kind::Internal, "the text could not become tokens"))?;
    let ids = encoded.map_err(|error| ApiError::field(name, error))?;
    let tokens: Vec<Value> = match fields.bool("with_pieces")? {
        false => ids.into_iter().map(Value::from).collect(),
        true => {
            let piece = |id: u32| {
                let bytes = tokenizer.token_bytes(id).unwrap_or_default();
                let piece = match std::str::from_utf8(bytes) {
                    Ok(text) => Value::from(text),
                    Err(_) => Value::from(bytes),
                };
                json!({"id": id, "piece": piece})
            };
            ids.into_iter().map(piece).collect()
        }
    };
    let count = tokens.len();
    let mut answer = json!({ "tokens": tokens });
    if name == "prompt" {
        answer["count"] = count.into();
        answer["max_model_len"] = lease.loaded().facts.context.into();
    }
    Ok(axum::Json(answer))
}

async fn detokenize(State(app): State<App>, asker: Asker, fields: Fields) -> Result<axum::Json<Value>, ApiError> {
    let place = app.place(&asker)?;
    let tokenizer = app.any_lease(fields.text("model")?).await?.tokenizer();
    let ids = fields.list("tokens")?.map_or(&[][..], Vec::as_slice);
    let ids = ids.iter().map(|id| {
        let id = id.as_u64().filter(|id| *id < tokenizer.vocab_size() as u64);
        id.map(|id| id as u32)
            .ok_or_else(|| ApiError::field("tokens", "it must be a list of the model's tokens"))
    });
    let ids: Vec<u32> = ids.collect::<Result<_, _>>()?;
    let decoder = Arc::clone(&tokenizer);
    // Many tokens take time.
    let decode = tokio::task::spawn_blocking(move || {
        let _place = place;
        decoder.decode_with_control(&ids)
    });
    let text = decode.await;
    let text = text.map_err(|_| ApiError::new(Kind::Internal, "the tokens could not become a text"))?;
    // The second name is vLLM's.
    Ok(axum::Json(json!({"content": text, "prompt": text})))
}

/// What vLLM's clients want to know of a tokenizer (`?model=NAME` where there are several). It loads nothing.
async fn tokenizer_info(State(app): State<App>, RawQuery(query): RawQuery) -> Result<axum::Json<Value>, ApiError> {
    let query = query.unwrap_or_default();
    let entry = app.registry().find(named_model(&query)?.as_deref())?;
    let info = entry.look(|loaded, _| {
        let tokenizer = loaded.server.tokenizer();
        let token = |id: Option<u32>| id.and_then(|id| tokenizer.token(id));
        json!({
            "bos_token": token(tokenizer.bos()),
            "eos_token": token(tokenizer.eos()),
            "add_bos_token": tokenizer.add_bos(),
            "chat_template": loaded.template.as_ref().map(|template| template.source()),
            "model_max_length": loaded.facts.context,
        })
    });
    let not_loaded = || {
        ApiError::new(
            Kind::Unavailable,
            format!("the model {} is not loaded: ask it something first", entry.name),
        )
    };
    info.map(axum::Json).ok_or_else(not_loaded)
}

async fn apply_template(State(app): State<App>, asker: Asker, fields: Fields) -> Result<axum::Json<Value>, ApiError> {
    let lease = app.lease(fields.text("model")?).await?;
    let chat = Chat {
        tools: fields.list("tools")?.filter(|tools| !tools.is_empty()).cloned(),
        ..conversation(&fields)?
    };
    let pieces = chat.render(&asker, &lease).await?;
    Ok(axum::Json(json!({"prompt": prompt::joined(&pieces)})))
}
