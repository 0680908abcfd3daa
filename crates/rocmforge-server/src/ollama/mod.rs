//! Routes of ollama: chats and texts as newline-delimited JSON, and the models that there are. Routes that change models are refused: nothing
//! that a client sends names a file.

mod answer;
mod embed;
mod models;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodFilter, get, on, post};
use rocmforge_models::generate::Prompt;
use rocmforge_models::tokenizer::Piece;
use serde_json::{Value, json};
use utoipa::openapi::path::HttpMethod;

use crate::answer::thinking;
use crate::app::{App, Asker};
use crate::description::answers::{self, asked};
use crate::description::field::{Body, Field, Form, Group};
use crate::description::{self, Route, schema};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::openai::{self, Common};
use crate::prompt::{self, Chat};
use crate::registry::Entry;
use crate::sampler;
use answer::Answer;

/// Options that this server reads; those about memory and threads are its own.
const OPTIONS: [&str; 14] = [
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repeat_last_n",
    "repeat_penalty",
    "presence_penalty",
    "frequency_penalty",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "seed",
    "stop",
];
/// How much a model may be asked to think.
const EFFORTS: [&str; 4] = ["low", "medium", "high", "max"];
/// Fields that change an answer and are not there.
const NOT_SUPPORTED: [&str; 8] = [
    "tools", "format", "images", "suffix", "template", "context", "logprobs", "adapters",
];

pub(crate) fn routes() -> Router<App> {
    let routes = Router::new()
        .route("/api/chat", post(chat))
        .route("/api/generate", post(generate))
        .route("/api/tags", get(models::list))
        .route("/api/ps", get(models::running))
        .route("/api/show", post(models::show))
        .route("/api/version", get(models::version))
        .route("/api/embed", post(embed::embed))
        .route("/api/embeddings", post(embed::embed_one));
    REFUSED.iter().fold(routes, |routes, (method, path)| {
        let filter = match method {
            HttpMethod::Delete => MethodFilter::DELETE,
            HttpMethod::Head => MethodFilter::HEAD,
            _ => MethodFilter::POST,
        };
        routes.route(path, on(filter, refuse))
    })
}

/// Routes that change models.
const REFUSED: [(HttpMethod, &str); 7] = [
    (HttpMethod::Post, "/api/pull"),
    (HttpMethod::Post, "/api/push"),
    (HttpMethod::Post, "/api/create"),
    (HttpMethod::Post, "/api/copy"),
    (HttpMethod::Delete, "/api/delete"),
    (HttpMethod::Post, "/api/blobs/{digest}"),
    (HttpMethod::Head, "/api/blobs/{digest}"),
];

pub(crate) fn described() -> Vec<Route> {
    use description::Answer::{Json, Stream};
    let tag = "ollama";
    let lines = "application/x-ndjson";
    let about = "Answers a conversation.";
    let mut routes = vec![
        Route::post(tag, "/api/chat", about, &CHAT, Stream(answers::ollama_chat, lines)),
        Route::post(
            tag,
            "/api/generate",
            "Answers a text.",
            &GENERATE,
            Stream(answers::ollama_text, lines),
        ),
        Route::get(tag, "/api/tags", "The models.", Json(answers::tags)),
        Route::get(tag, "/api/ps", "The loaded models.", Json(answers::running)),
        Route::post(tag, "/api/show", "What a model is.", &SHOW, Json(answers::show)),
        Route::get(
            tag,
            "/api/version",
            "The version of ollama whose routes these are.",
            Json(answers::version),
        ),
    ];
    for (path, body, answer) in [
        ("/api/embed", &embed::EMBED, Json(answers::ollama_embeddings)),
        ("/api/embeddings", &embed::EMBED_ONE, Json(answers::ollama_embedding)),
    ] {
        routes.push(Route::post(tag, path, "Embeddings of texts.", body, answer));
    }
    let about = "Refused: models are chosen where the server runs.";
    let refused = |(method, path): &(HttpMethod, &str)| Route::refused(tag, method.clone(), *path, about, 403);
    routes.extend(REFUSED.iter().map(refused));
    routes
}

/// What all requests that name a model have.
const NAME: &[Field] = &[
    Field("model", Form::Text, "The model's name."),
    Field("name", Form::Text, "As model."),
];

const FIELDS: &[Field] = &[
    Field(
        "think",
        Form::Other(|| schema::either([schema::flag(), asked::one_of(&EFFORTS)])),
        "Whether the model thinks, or how much.",
    ),
    Field(
        "stream",
        Form::Bool,
        "Whether the answer comes as a stream [default: true].",
    ),
    Field("options", Form::Other(options), "Settings of the sampler."),
    KEEP_ALIVE,
];

const KEEP_ALIVE: Field = Field(
    "keep_alive",
    Form::Other(|| schema::either([schema::number(), schema::text(), asked::one_of(&[])])),
    "How long the model stays loaded: seconds, or a text such as 5m; negative is for ever.",
);

/// `options`, of fields that the sampler has.
fn options() -> schema::Described {
    let fields = sampler::READ.iter().chain(openai::FIELDS);
    let known = fields.filter(|field| OPTIONS.contains(&field.0));
    let known = known.map(|field| (field.0, schema::about(field.1.described(), field.2)));
    let tokens = schema::about(Form::Integer.described(), "Most tokens; negative is no limit.");
    let options = schema::object([], known.chain([("num_predict", tokens)]), true);
    schema::either([options, asked::one_of(&[])])
}

const CHAT: Body = Body {
    groups: &[
        Group::Read(NAME),
        Group::Read(FIELDS),
        Group::Read(&[Field(
            "messages",
            Form::Other(|| {
                let roles = ["system", "developer", "user", "assistant", "tool"];
                let role = [("role", schema::values(roles))];
                let message = schema::object(role, [("content", schema::text())], true);
                schema::either([schema::list(message), asked::one_of(&[])])
            }),
            "The conversation; without messages the model is loaded.",
        )]),
        Group::Refused(&NOT_SUPPORTED),
    ],
    required: &["model"],
};

const GENERATE: Body = Body {
    groups: &[
        Group::Read(NAME),
        Group::Read(FIELDS),
        Group::Read(&[
            Field("prompt", Form::Text, "The text; without one the model is loaded."),
            Field("system", Form::Text, "What the model is asked to be."),
            Field(
                "raw",
                Form::Bool,
                "Whether the text is the whole prompt, with its control tokens.",
            ),
        ]),
        Group::Refused(&NOT_SUPPORTED),
    ],
    required: &["model"],
};

const SHOW: Body = Body {
    groups: &[Group::Read(NAME)],
    required: &["model"],
};

async fn refuse() -> ApiError {
    ApiError::new(
        Kind::Forbidden,
        "this server's models are chosen where it runs (rocmforge pull): clients cannot change them",
    )
}

/// The model that a request names; `:latest` at the end of a name means nothing here.
fn entry(app: &App, fields: &Fields) -> Result<Arc<Entry>, ApiError> {
    let name = match fields.text("model")? {
        Some(name) => Some(name),
        None => fields.text("name")?,
    };
    let name = name.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| ApiError::field("model", "model is required"))?;
    let bare = name.strip_suffix(":latest");
    let find = |name: &str| app.registry().entries().find(|entry| entry.name == name);
    let found = find(name).or_else(|| find(bare?));
    found.ok_or_else(|| ApiError::new(Kind::NotFound, format!("model {name:?} not found")))
}

/// Seconds of a time as Go writes it, such as `1h30m` or `-1.5s`; a number alone is seconds.
fn seconds(text: &str) -> Option<f64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    // What Rust reads beside digits, such as `inf`, is no number here.
    let number = |text: &str| {
        let has_digits_only = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        text.parse::<f64>().ok().filter(|_| has_digits_only)
    };
    if let Some(seconds) = number(text) {
        return Some(sign * seconds);
    }
    let (mut sum, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
        let unit_at = rest.find(|c| !is_of_number(c))?;
        let end = rest[unit_at..]
            .find(is_of_number)
            .map_or(rest.len(), |end| unit_at + end);
        let unit = match &rest[unit_at..end] {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        sum += number(&rest[..unit_at])? * unit;
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(sign * sum)
}

/// `keep_alive`: seconds, or a text such as `5m`; negative is for ever. The outer `None`: the request does not say.
fn keep_alive(fields: &Fields) -> Result<Option<Option<Duration>>, ApiError> {
    let wrong = || {
        ApiError::field(
            "keep_alive",
            "it must be seconds, or a time such as \"5m\" or \"1h30m\"",
        )
    };
    let seconds = match fields.get("keep_alive") {
        None => return Ok(None),
        Some(Value::String(text)) => seconds(text).ok_or_else(wrong)?,
        Some(number) => number.as_f64().ok_or_else(wrong)?,
    };
    match seconds {
        seconds if seconds.is_nan() => Err(wrong()),
        seconds if seconds < 0.0 => Ok(Some(None)),
        // A time that is too long for the clock is for ever.
        seconds => Ok(Some(
            Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|time| time.as_secs() < 1 << 32),
        )),
    }
}

/// What chats and texts have in common: the model with the settings of `options`.
async fn read(app: &App, fields: &Fields) -> Result<(Common, Duration), ApiError> {
    let begun = Instant::now();
    let entry = entry(app, fields)?;
    fields.refuse(&NOT_SUPPORTED)?;
    let mut inner = app.options().defaults.clone();
    inner.insert("model".to_owned(), entry.name.as_str().into());
    inner.insert("stream".to_owned(), is_stream(fields)?.into());
    if let Some(options) = fields.object("options")? {
        let known = options.iter().filter(|(name, _)| OPTIONS.contains(&name.as_str()));
        inner.extend(known.map(|(name, value)| (name.clone(), value.clone())));
        let tokens = Fields::of(options.clone()).integer("num_predict")?;
        // -1 is no limit, -2 the rest of the context.
        if let Some(tokens) = tokens.filter(|tokens| *tokens >= 0) {
            inner.insert("max_tokens".to_owned(), tokens.into());
        }
    }
    let keep = keep_alive(fields)?;
    let mut common = Common::read(app, &Fields::of(inner)).await?;
    if let Some(time) = keep {
        common.lease.keep(time);
    }
    if let Some(name) = fields.text("model")? {
        name.clone_into(&mut common.model);
    }
    Ok((common, begun.elapsed()))
}

/// ollama streams unless `stream` is false.
fn is_stream(fields: &Fields) -> Result<bool, ApiError> {
    Ok(fields.get("stream").is_none() || fields.bool("stream")?)
}

/// `think`: whether the model thinks, or how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Think<'a> {
    Switch(bool),
    Effort(&'a str),
}

impl<'a> Think<'a> {
    fn read(fields: &'a Fields) -> Result<Option<Self>, ApiError> {
        match fields.get("think") {
            None => Ok(None),
            Some(Value::Bool(thinks)) => Ok(Some(Self::Switch(*thinks))),
            Some(Value::String(effort)) if EFFORTS.contains(&effort.as_str()) => Ok(Some(Self::Effort(effort))),
            Some(_) => {
                let text = format!("it must be true, false, or one of {}", EFFORTS.join(", "));
                Err(ApiError::field("think", text))
            }
        }
    }

    fn is_wanted(self) -> bool {
        self != Self::Switch(false)
    }

    /// As the template's variables have it.
    fn variable(self) -> (&'static str, Value) {
        match self {
            Self::Switch(thinks) => ("enable_thinking", thinks.into()),
            Self::Effort(effort) => ("reasoning_effort", effort.into()),
        }
    }
}

/// A request without a text: it loads the model, or unloads it if it is loaded.
async fn without_text(app: &App, fields: &Fields, form: answer::Form) -> Result<Response, ApiError> {
    let unloads = keep_alive(fields)? == Some(Some(Duration::ZERO));
    let is_stream = is_stream(fields)?;
    if !unloads {
        let (common, _) = read(app, fields).await?;
        return Ok(form.without_text(&common.model, "load", is_stream));
    }
    let entry = entry(app, fields)?;
    fields.refuse(&NOT_SUPPORTED)?;
    if let Some(lease) = app.registry().lease_if_loaded(&entry) {
        lease.keep(Some(Duration::ZERO));
    }
    let model = fields.text("model")?.unwrap_or(&entry.name);
    Ok(form.without_text(model, "unload", is_stream))
}

/// Refuses a request that wants a model to think which does not.
fn check_thinks(think: Option<Think<'_>>, common: &Common) -> Result<(), ApiError> {
    if think.is_some_and(Think::is_wanted) && common.lease.loaded().thinking_marks().is_none() {
        // The words are ollama's, which clients look for.
        let text = format!("{:?} does not support thinking", common.model);
        return Err(ApiError::new(Kind::NotSupported, text));
    }
    Ok(())
}

async fn chat(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let think = Think::read(&fields)?;
    let messages = fields.list("messages")?.map_or(&[][..], Vec::as_slice);
    let has_images = |message: &Value| message["images"].as_array().is_some_and(|images| !images.is_empty());
    if messages.iter().any(has_images) {
        return Err(ApiError::not_supported("images", "the model takes text only"));
    }
    let messages = match messages.is_empty() {
        true => Vec::new(),
        false => prompt::messages(messages)?,
    };
    if messages.is_empty() {
        return without_text(&app, &fields, answer::Form::Chat).await;
    }
    let (common, load) = read(&app, &fields).await?;
    check_thinks(think, &common)?;
    let answer = Answer::new(answer::Form::Chat, common, load);
    let chat = Chat {
        messages,
        variables: think.map(Think::variable).into_iter().collect(),
        // A last message of the model is gone on with.
        continues: true,
        ..Chat::default()
    };
    let pieces = chat.render(&asker, &answer.common.lease).await?;
    let thinking = thinking(&answer.common.lease, &pieces, think.is_none_or(Think::is_wanted));
    answer.start(&app, &asker, Prompt::Pieces(pieces), thinking).await
}

async fn generate(State(app): State<App>, asker: Asker, fields: Fields) -> Result<Response, ApiError> {
    let think = Think::read(&fields)?;
    let (text, system) = (fields.text("prompt")?.unwrap_or_default(), fields.text("system")?);
    let is_raw = fields.bool("raw")?;
    if text.is_empty() {
        return without_text(&app, &fields, answer::Form::Text).await;
    }
    let (common, load) = read(&app, &fields).await?;
    check_thinks(think, &common)?;
    let answer = Answer::new(answer::Form::Text, common, load);
    let lease = &answer.common.lease;
    let prompt = match (is_raw, lease.loaded().template.is_some()) {
        // Who sends a whole prompt writes its frame, too.
        (true, _) => Prompt::Pieces(vec![Piece {
            text: text.to_owned(),
            trusted: true,
        }]),
        (false, false) => Prompt::Text(text.to_owned()),
        (false, true) => {
            let system = system.map(|text| json!({"role": "system", "content": text}));
            let user = json!({"role": "user", "content": text});
            let messages: Vec<Value> = system.into_iter().chain([user]).collect();
            let chat = Chat {
                messages: prompt::messages(&messages)?,
                variables: think.map(Think::variable).into_iter().collect(),
                ..Chat::default()
            };
            Prompt::Pieces(chat.render(&asker, lease).await?)
        }
    };
    // The answer to a raw prompt stays whole unless the request wants the thoughts.
    let splits = think.map_or(!is_raw, Think::is_wanted);
    let pieces = match &prompt {
        Prompt::Pieces(pieces) => pieces.as_slice(),
        _ => &[],
    };
    let thinking = thinking(lease, pieces, splits);
    answer.start(&app, &asker, prompt, thinking).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_texts() {
        let read = |value: Value| keep_alive(&Fields::of([("keep_alive".to_owned(), value)].into_iter().collect()));
        let seconds = |seconds: u64| Some(Some(Duration::from_secs(seconds)));
        assert_eq!(read(Value::Null).expect("absent"), None);
        for (value, time) in [
            (json!(5), seconds(5)),
            (json!("5m"), seconds(300)),
            (json!("2h"), seconds(7200)),
            (json!("1h30m"), seconds(5400)),
            (json!("1m0.5s500ms"), seconds(61)),
            (json!("500000us"), Some(Some(Duration::from_millis(500)))),
            (json!(0), seconds(0)),
            (json!("0"), seconds(0)),
            (json!(-1), Some(None)),
            (json!("-1m"), Some(None)),
            (json!(1e300), Some(None)),
        ] {
            assert_eq!(read(value.clone()).expect("a time"), time, "{value}");
        }
        for value in [
            json!("5 weeks"),
            json!("m"),
            json!(""),
            json!([1]),
            json!("1h30"),
            json!("1h-30m"),
            json!("h1"),
            json!("1..5s"),
            json!("5µ"),
            json!("-"),
            json!("NaN"),
            json!("inf"),
        ] {
            assert!(read(value.clone()).is_err(), "{value}");
        }
    }
}
