//! Errors of requests, in the words of each API.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rocmforge_models::ModelError;
use rocmforge_models::chat::ChatError;
use rocmforge_models::generate::GenerateError;
use rocmforge_models::serve::ServeError;
use serde_json::{Value, json};

use crate::generation::id;
use crate::unread::Shared;

/// The longest message of an error. Some quote what the client sent.
const LONGEST_MESSAGE: usize = 1000;
/// Seconds after which a client may try again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// What kind of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request makes no sense.
    Invalid,
    /// The prompt is longer than the context.
    ContextExceeded { tokens: usize, context: usize },
    /// There is no key, or not a known one.
    Unauthorized,
    /// The host or the origin is not allowed.
    Forbidden,
    /// No such route or model.
    NotFound,
    /// The route knows other methods.
    MethodNotAllowed,
    /// The body did not come in time.
    Timeout,
    /// The body is too large.
    TooLarge,
    /// The body is no JSON.
    MediaType,
    /// What is asked for is not there in this server.
    NotSupported,
    /// The route is known, and this server does not have it.
    NotThere,
    /// The queue is full.
    Busy,
    /// The server ends, or the model cannot be loaded now.
    Unavailable,
    /// The device failed, or there is a defect.
    Internal,
}

impl Kind {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Invalid | Self::ContextExceeded { .. } | Self::NotSupported => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotThere => StatusCode::NOT_IMPLEMENTED,
        }
    }

    /// OpenAI's name, in llama.cpp's spelling where OpenAI has none.
    const fn openai(self) -> &'static str {
        match self {
            Self::ContextExceeded { .. } => "exceed_context_size_error",
            Self::Invalid | Self::MethodNotAllowed | Self::Timeout | Self::TooLarge | Self::MediaType => {
                "invalid_request_error"
            }
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::NotFound => "not_found_error",
            Self::NotSupported | Self::NotThere => "not_supported_error",
            Self::Busy => "rate_limit_error",
            Self::Unavailable => "unavailable_error",
            Self::Internal => "server_error",
        }
    }

    /// Anthropic's name.
    const fn anthropic(self) -> &'static str {
        match self {
            Self::Invalid
            | Self::ContextExceeded { .. }
            | Self::NotSupported
            | Self::NotThere
            | Self::MethodNotAllowed
            | Self::MediaType => "invalid_request_error",
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::NotFound => "not_found_error",
            Self::Timeout => "timeout_error",
            Self::TooLarge => "request_too_large",
            Self::Busy => "rate_limit_error",
            Self::Unavailable => "overloaded_error",
            Self::Internal => "api_error",
        }
    }
}

/// The form that errors have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
    Ollama,
}

impl Dialect {
    /// Its name in the description of the routes.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAiError",
            Self::Anthropic => "AnthropicError",
            Self::Ollama => "OllamaError",
        }
    }

    /// That of a route.
    pub(crate) fn of(path: &str) -> Self {
        match path.strip_prefix("/v1/messages") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => Self::Anthropic,
            _ if path.starts_with("/api/") => Self::Ollama,
            _ => Self::OpenAi,
        }
    }

    /// An error as the API has it, which is also what goes into a stream.
    pub(crate) fn error(self, error: &ApiError) -> Value {
        match self {
            Self::OpenAi => error.openai(),
            Self::Anthropic => json!({
                "type": "error",
                "error": {"type": error.kind.anthropic(), "message": error.message},
                "request_id": id("req_"),
            }),
            Self::Ollama => json!({"error": error.message}),
        }
    }
}

/// Why a request is not answered.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    /// The field that is wrong.
    pub(crate) param: Option<String>,
}

impl ApiError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
            message.truncate(end);
            message.push_str("...");
        }
        Self {
            kind,
            message,
            param: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// A field is wrong.
    pub(crate) fn field(name: &str, message: impl std::fmt::Display) -> Self {
        Self::invalid(format!("{name}: {message}")).at(name)
    }

    /// A field asks for something that this server does not do.
    pub(crate) fn not_supported(name: &str, message: impl std::fmt::Display) -> Self {
        Self::new(Kind::NotSupported, format!("{name}: {message}")).at(name)
    }

    fn at(mut self, name: &str) -> Self {
        self.param = Some(name.to_owned());
        self
    }

    fn openai(&self) -> Value {
        let mut error = json!({
            "message": self.message,
            "type": self.kind.openai(),
            "param": self.param,
            "code": self.kind.status().as_u16(),
        });
        if let Kind::ContextExceeded { tokens, context } = self.kind {
            error["n_prompt_tokens"] = tokens.into();
            error["n_ctx"] = context.into();
        }
        json!({ "error": error })
    }
}

/// The error travels in the extensions, and [`write`] makes the body.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.kind.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the bodies of errors, those of the framework among them, as the API of the route has them.
pub(crate) async fn write(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let dialect = Dialect::of(&path);
    let (parts, body) = request.into_parts();
    let body = Shared::new(body);
    let request = Request::from_parts(parts, Body::new(body.clone()));
    // A panic is a defect in one request: its client gets an error, and its connection stays.
    let mut run = std::pin::pin!(next.run(request));
    let poll = |context: &mut Context<'_>| {
        let polled = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            let text = "the request panicked: this is a defect of the server";
            Poll::Ready(ApiError::new(Kind::Internal, text).into_response())
        })
    };
    let mut response = std::future::poll_fn(poll).await;
    let error = match response.extensions_mut().remove::<ApiError>() {
        Some(error) => error,
        None => match response.status() {
            StatusCode::NOT_FOUND => ApiError::new(Kind::NotFound, "there is no such route"),
            StatusCode::METHOD_NOT_ALLOWED => ApiError::new(Kind::MethodNotAllowed, "this route has another method"),
            _ => return response,
        },
    };
    body.read_rest();
    if error.kind == Kind::Internal {
        // Both may hold what the client sent: quoted, no control character of it reaches the log.
        tracing::error!(?path, error = ?error.message, "request failed");
    }
    // What the guard and the framework have set stays, such as the origin that may read the answer.
    let mut headers = std::mem::take(response.headers_mut());
    headers.remove(header::CONTENT_TYPE);
    headers.remove(header::CONTENT_LENGTH);
    let mut response = (error.kind.status(), axum::Json(dialect.error(&error))).into_response();
    response.headers_mut().extend(headers);
    let headers = response.headers_mut();
    match error.kind {
        Kind::Busy | Kind::Unavailable => drop(headers.insert(header::RETRY_AFTER, RETRY_AFTER)),
        Kind::Unauthorized => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    response
}

impl From<ChatError> for ApiError {
    fn from(error: ChatError) -> Self {
        Self::invalid(format!("messages: {error}")).at("messages")
    }
}

impl From<&GenerateError> for ApiError {
    fn from(error: &GenerateError) -> Self {
        match error {
            GenerateError::PromptTooLong { tokens, context } => {
                let (tokens, context) = (*tokens, *context);
                // The words are those that clients of llama.cpp look for.
                let text = format!(
                    "the prompt has {tokens} tokens, which exceeds the available context size of {context}: shorten it, or serve the model with a larger context"
                );
                Self::new(Kind::ContextExceeded { tokens, context }, text)
            }
            GenerateError::TextTooLong { bytes, most, context } => {
                // No token is longer than `most / context` bytes.
                let (context, tokens) = (*context, bytes.div_ceil((most / context.max(&1)).max(1)));
                let text = format!(
                    "the prompt has {bytes} bytes, which exceeds the available context size of {context} tokens: shorten it, or serve the model with a larger context"
                );
                Self::new(Kind::ContextExceeded { tokens, context }, text)
            }
            GenerateError::EmptyPrompt
            | GenerateError::Tokenizer(_)
            | GenerateError::Sampling(_)
            | GenerateError::Model(ModelError::TokenOutOfRange { .. }) => Self::invalid(error.to_string()),
            _ => Self::new(Kind::Internal, error.to_string()),
        }
    }
}

impl From<ServeError> for ApiError {
    fn from(error: ServeError) -> Self {
        let kind = match &error {
            ServeError::Refused(cause) => return Self::from(&**cause),
            ServeError::QueueFull { .. } | ServeError::TextsFull { .. } => Kind::Busy,
            ServeError::EmptyText => Kind::Invalid,
            ServeError::TextTooLong { tokens, most } => {
                let (tokens, context) = (*tokens, *most);
                Kind::ContextExceeded { tokens, context }
            }
            ServeError::Draining | ServeError::Stopped => Kind::Unavailable,
            _ => Kind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use axum::{Router, middleware};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_request_that_panics_has_an_answer() {
        let panics = || async {
            if true {
                panic!("planted")
            }
        };
        let router = Router::new()
            .route("/api/x", get(panics))
            .layer(middleware::from_fn(write));
        let request = Request::get("/api/x").body(Body::empty()).expect("a request");
        let response = router.oneshot(request).await.expect("the router never fails");
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = axum::body::to_bytes(response.into_body(), 1000).await.expect("a body");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert!(
            body["error"].as_str().is_some_and(|text| text.contains("panicked")),
            "{body}"
        );
    }
}
