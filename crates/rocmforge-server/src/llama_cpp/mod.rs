//! Routes of llama.cpp's server that no other API has.

mod completion;
mod props;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;
use crate::error::{ApiError, Kind};

/// Routes of llama.cpp that this server does not have.
const NOT_THERE: [&str; 9] = [
    "/infill",
    "/embedding",
    "/embeddings",
    "/rerank",
    "/reranking",
    "/v1/rerank",
    "/v1/reranking",
    "/lora-adapters",
    "/slots/{id}",
];

pub(crate) fn routes() -> Router<App> {
    let routes = Router::new()
        .route("/completion", post(completion::complete))
        .route("/completions", post(completion::complete))
        .route("/props", get(props::show).post(not_there))
        .route("/slots", get(props::slots));
    NOT_THERE.iter().fold(routes, |routes, path| {
        routes.route(path, get(not_there).post(not_there))
    })
}

async fn not_there() -> ApiError {
    ApiError::new(Kind::NotThere, "this server does not support this route of llama.cpp")
}
