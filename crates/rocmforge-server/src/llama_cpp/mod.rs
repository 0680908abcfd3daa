//! Routes of llama.cpp's server that no other API has.

mod completion;
mod embedding;
mod props;
mod rerank;

use axum::Router;
use axum::routing::{get, post};
use utoipa::openapi::path::HttpMethod;

pub(crate) use props::named_model;

use crate::app::App;
use crate::description::{Answer, Route, answers};
use crate::error::{ApiError, Kind};
use crate::openai::EVENTS;

/// Routes of llama.cpp that this server does not have.
const NOT_THERE: [&str; 3] = ["/infill", "/lora-adapters", "/slots/{id}"];

pub(crate) fn routes() -> Router<App> {
    let routes = Router::new()
        .route("/completion", post(completion::complete))
        .route("/completions", post(completion::complete))
        .route("/embedding", post(embedding::embed))
        .route("/embeddings", post(embedding::embed))
        .route("/rerank", post(rerank::rank))
        .route("/reranking", post(rerank::rank))
        .route("/v1/rerank", post(rerank::rank))
        .route("/v1/reranking", post(rerank::rank))
        .route("/props", get(props::show).post(not_there))
        .route("/slots", get(props::slots));
    NOT_THERE.iter().fold(routes, |routes, path| {
        routes.route(path, get(not_there).post(not_there))
    })
}

pub(crate) fn described() -> Vec<Route> {
    let tag = "llama.cpp";
    let complete = |path: &str| {
        let answer = Answer::Stream(answers::llama_cpp, EVENTS);
        Route::post(tag, path, "Continues texts.", &completion::BODY, answer)
    };
    let mut routes = vec![
        complete("/completion"),
        complete("/completions"),
        Route {
            query: &["model"],
            ..Route::get(
                tag,
                "/props",
                "What a model is, and its settings.",
                Answer::Switched(answers::props),
            )
        },
        Route::get(tag, "/slots", "Places of requests.", Answer::Switched(answers::slots)),
    ];
    for path in ["/embedding", "/embeddings"] {
        let answer = Answer::Json(answers::llama_cpp_embeddings);
        routes.push(Route::post(tag, path, "Embeddings of texts.", &embedding::BODY, answer));
    }
    for path in ["/rerank", "/reranking", "/v1/rerank", "/v1/reranking"] {
        let about = "Documents by their scores for a query.";
        let answer = Answer::Json(answers::ranked);
        routes.push(Route::post(tag, path, about, &rerank::BODY, answer));
    }
    let refused = |method, path: &str| Route::refused(tag, method, path, "Not in this server.", 501);
    routes.push(refused(HttpMethod::Post, "/props"));
    for path in NOT_THERE {
        routes.push(refused(HttpMethod::Get, path));
        routes.push(refused(HttpMethod::Post, path));
    }
    routes
}

async fn not_there() -> ApiError {
    ApiError::new(Kind::NotThere, "this server does not support this route of llama.cpp")
}
