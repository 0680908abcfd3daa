//! Page: the chat at `/`, in files that are part of the program, and the figures of memory that it draws.

mod memory;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::routing::get;

use crate::app::App;
use crate::description::{Answer, Route, answers};
use crate::error::{ApiError, Kind};

/// What a browser lets the page do: its own files and requests to its own server. A text of a model that a defect would turn into a part of the
/// page could still not run, load or send anything.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Files: path, type, content.
const FILES: [(&str, &str, &str); 7] = [
    ("/", "text/html; charset=utf-8", include_str!("index.html")),
    ("/page/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    (
        "/page/page.js",
        "text/javascript; charset=utf-8",
        include_str!("page.js"),
    ),
    ("/page/api.js", "text/javascript; charset=utf-8", include_str!("api.js")),
    (
        "/page/markdown.js",
        "text/javascript; charset=utf-8",
        include_str!("markdown.js"),
    ),
    (
        "/page/memory.js",
        "text/javascript; charset=utf-8",
        include_str!("memory.js"),
    ),
    ("/page/icon.svg", "image/svg+xml", include_str!("icon.svg")),
];

pub(crate) fn routes() -> Router<App> {
    let with_file = |router: Router<App>, (path, kind, content)| {
        let headers = [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            // A new version of the program has a new page.
            (header::CACHE_CONTROL, "no-cache"),
        ];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let show = async move |State(app): State<App>| match app.options().page {
            true => Ok((headers, content)),
            false => Err(ApiError::new(Kind::NotFound, "this server has no page")),
        };
        router.route(path, get(show))
    };
    FILES
        .into_iter()
        .fold(Router::new(), with_file)
        .route("/memory", get(memory::show))
}

pub(crate) fn described() -> Vec<Route> {
    let file = |(path, kind, _): (&str, &'static str, &str)| {
        let kind = kind.split(';').next().unwrap_or(kind);
        Route::get("page", path, "A file of the page.", Answer::Text(kind))
    };
    let memory = Route::get(
        "server",
        "/memory",
        "Memory of cards and models.",
        Answer::Json(answers::memory),
    );
    FILES.into_iter().map(file).chain([memory]).collect()
}

/// Whether it is a file of the page, which needs no key: the page asks for one.
pub(crate) fn is_file(path: &str) -> bool {
    FILES.iter().any(|(file, _, _)| *file == path)
}
