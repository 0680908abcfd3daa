//! Description of all routes in OpenAPI 3.1, at `/openapi.json`.

pub(crate) mod answers;
pub(crate) mod field;
pub(crate) mod schema;

use std::sync::OnceLock;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathsBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApiBuilder, PathItem, Ref, RefOr, Required, ResponseBuilder,
};

use crate::app::App;
use crate::error::Dialect;
use crate::{admin, anthropic, llama_cpp, ollama, openai, page};
use field::Body;
use schema::Described;

/// What a route answers.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    /// JSON.
    Json(fn() -> Described),
    /// JSON, or a stream of this media type.
    Stream(fn() -> Described, &'static str),
    /// JSON, unless the route is switched off.
    Switched(fn() -> Described),
    /// A text of this media type.
    Text(&'static str),
    /// JSON with either status.
    Health(fn() -> Described),
    /// This status, always.
    Refused(u16),
}

/// A route with one method.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) method: HttpMethod,
    pub(crate) path: String,
    pub(crate) tag: &'static str,
    pub(crate) about: &'static str,
    pub(crate) query: &'static [&'static str],
    pub(crate) body: Option<Body>,
    pub(crate) answer: Answer,
}

impl Route {
    pub(crate) fn get(tag: &'static str, path: impl Into<String>, about: &'static str, answer: Answer) -> Self {
        Self {
            method: HttpMethod::Get,
            path: path.into(),
            tag,
            about,
            query: &[],
            body: None,
            answer,
        }
    }

    pub(crate) fn post(
        tag: &'static str,
        path: impl Into<String>,
        about: &'static str,
        body: &Body,
        answer: Answer,
    ) -> Self {
        Self {
            method: HttpMethod::Post,
            body: Some(*body),
            ..Self::get(tag, path, about, answer)
        }
    }

    /// A route that always answers with an error, whatever it is asked.
    pub(crate) fn refused(
        tag: &'static str,
        method: HttpMethod,
        path: impl Into<String>,
        about: &'static str,
        status: u16,
    ) -> Self {
        Self {
            method,
            ..Self::get(tag, path, about, Answer::Refused(status))
        }
    }

    /// Statuses of errors that the route may answer.
    fn errors(&self) -> Vec<u16> {
        // Of the guard, and of the framework.
        let mut statuses = vec![400, 401, 403];
        if self.path.contains('{') {
            statuses.push(404);
        }
        if matches!(self.method, HttpMethod::Post) {
            statuses.extend([404, 408, 413, 415, 429, 500, 503]);
        }
        match self.answer {
            Answer::Refused(status) => statuses.push(status),
            Answer::Json(_) | Answer::Stream(..) => statuses.push(500),
            Answer::Switched(_) => statuses.extend([500, 501]),
            // The page and the metrics may be switched off, and one says whether the server ends.
            Answer::Text(_) => statuses.extend([404, 500, 501, 503]),
            Answer::Health(_) => {}
        }
        if !self.query.is_empty() {
            statuses.extend([404, 503]);
        }
        statuses.sort_unstable();
        statuses.dedup();
        statuses
    }

    fn operation(&self) -> OperationBuilder {
        let json = |described: Described| ContentBuilder::new().schema(Some(described)).build();
        let text = || json(schema::text());
        let answer = ResponseBuilder::new().description("The answer.");
        let (statuses, answer): (&[&str], _) = match self.answer {
            Answer::Json(described) | Answer::Switched(described) => {
                (&["200"], answer.content("application/json", json(described())))
            }
            Answer::Stream(described, kind) => {
                let whole = answer.content("application/json", json(described()));
                (&["200"], whole.content(kind, text()))
            }
            Answer::Text(kind) => (&["200"], answer.content(kind, text())),
            Answer::Health(described) => (&["200", "503"], answer.content("application/json", json(described()))),
            Answer::Refused(_) => (&[], answer),
        };
        let answer = answer.build();
        let mut operation = OperationBuilder::new().tag(self.tag).summary(Some(self.about));
        for status in statuses {
            operation = operation.response(*status, answer.clone());
        }
        let dialect = Dialect::of(&self.path).name();
        for status in self.errors() {
            let error: RefOr<_> = Ref::from_response_name(dialect).into();
            operation = operation.response(status.to_string(), error);
        }
        let in_path = self
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        for (name, place) in in_path
            .map(|name| (name, ParameterIn::Path))
            .chain(self.query.iter().map(|name| (*name, ParameterIn::Query)))
        {
            let required = match place {
                ParameterIn::Path => Required::True,
                _ => Required::False,
            };
            let parameter = ParameterBuilder::new()
                .name(name)
                .parameter_in(place)
                .required(required);
            operation = operation.parameter(parameter.schema(Some(schema::text())));
        }
        if let Some(body) = self.body {
            let content = json(body.described());
            let body = RequestBodyBuilder::new().content("application/json", content);
            operation = operation.request_body(Some(body.required(Some(Required::True)).build()));
        }
        operation
    }
}

pub(crate) fn routes() -> Router<App> {
    let show = || async { ([(header::CONTENT_TYPE, "application/json")], text()).into_response() };
    Router::new().route("/openapi.json", get(show))
}

fn described() -> Vec<Route> {
    let about = "This description.";
    vec![Route::get(
        "server",
        "/openapi.json",
        about,
        Answer::Json(|| schema::object([("openapi", schema::text())], [], true)),
    )]
}

/// All routes.
fn table() -> &'static [Route] {
    static ROUTES: OnceLock<Vec<Route>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        let all = [
            openai::described(),
            anthropic::described(),
            admin::described(),
            page::described(),
            llama_cpp::described(),
            ollama::described(),
            described(),
        ];
        all.into_iter().flatten().collect()
    })
}

/// The fields of a request to this path.
pub(crate) fn body(path: &str) -> Option<Body> {
    let route = table().iter().find(|route| route.body.is_some() && route.path == path);
    route?.body
}

/// The description as JSON.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut paths = PathsBuilder::new();
        for route in table() {
            paths = paths.path(&route.path, PathItem::new(route.method.clone(), route.operation()));
        }
        let mut components = ComponentsBuilder::new()
            .security_scheme(
                "bearer",
                SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build()),
            )
            .security_scheme(
                "key",
                SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("x-api-key"))),
            );
        for (name, described) in answers::shared() {
            components = components.schema(name, described);
        }
        for dialect in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Ollama] {
            let content = ContentBuilder::new().schema(Some(answers::error(dialect))).build();
            let response = ResponseBuilder::new()
                .description("What is wrong.")
                .content("application/json", content);
            components = components.response(dialect.name(), response);
        }
        let info = InfoBuilder::new()
            .title("ROCmForge")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(
                "Language models by the APIs of OpenAI, Anthropic, ollama and llama.cpp.",
            ));
        let none: [&str; 0] = [];
        let described = OpenApiBuilder::new()
            .info(info)
            .paths(paths)
            .components(Some(components.build()));
        // A server may have no keys.
        let described = described.security(Some([
            SecurityRequirement::default(),
            SecurityRequirement::new("bearer", none),
            SecurityRequirement::new("key", none),
        ]));
        described.build().to_json().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_json() {
        let value: serde_json::Value = serde_json::from_str(text()).expect("JSON");
        assert_eq!(value["openapi"], "3.1.0");
    }
}
