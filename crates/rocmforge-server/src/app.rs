//! App: what all routes share, and the routes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::middleware;
use sha2::{Digest, Sha256};

use crate::error::{self, ApiError, Kind};
use crate::generation::now;
use crate::guard;
use crate::listen;
use crate::options::ServerOptions;
use crate::places::{Place, Places};
use crate::registry::{Entry, Lease, Registry};
use crate::source::Source;
use crate::{admin, anthropic, llama_cpp, ollama, openai, page, requests};

/// A server's models and limits. Clones are the same server.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    options: ServerOptions,
    registry: Arc<Registry>,
    is_draining: AtomicBool,
    /// Seconds since 1970.
    started: u64,
    places: Arc<Places>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

/// Why a server does not start, or has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Other machines could ask without a key.
    #[error(
        "{0} can be reached from other machines, and there are no keys: give a file of keys, listen on 127.0.0.1, or allow requests without keys"
    )]
    NoKeys(SocketAddr),
    /// No model was given.
    #[error("there is no model to serve")]
    NoModel,
    /// An option is no host or origin.
    #[error("{0:?} is no {1}")]
    Name(String, &'static str),
    /// It cannot listen.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
}

/// Who asks: the owner of a key, or anybody where there are no keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asker(pub(crate) Option<String>);

impl Asker {
    /// Two requests share a beginning of their prompts in the cache only if their salts are equal: those of one owner.
    pub(crate) fn salt(&self) -> String {
        self.0
            .as_ref()
            .map_or(String::new(), |owner| format!("{:x?}", Sha256::digest(owner)))
    }
}

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let asker = parts.extensions.get::<Self>().cloned();
        asker.ok_or_else(|| ApiError::new(Kind::Internal, "nobody looked at the key"))
    }
}

impl App {
    /// A server of these models, by the names that clients use.
    ///
    /// # Errors
    /// There is no model; other machines can reach the address and there are no keys; a host name or an origin has a wrong form.
    pub fn new(
        options: ServerOptions,
        models: impl IntoIterator<Item = (String, Box<dyn Source>)>,
    ) -> Result<Self, StartError> {
        guard::check(&options)?;
        let registry = Registry::new(models, options.max_models, options.keep_alive);
        if registry.entries().next().is_none() {
            return Err(StartError::NoModel);
        }
        Ok(Self(Arc::new(Shared {
            options,
            registry: Arc::new(registry),
            is_draining: AtomicBool::new(false),
            started: now(),
            places: Arc::default(),
        })))
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.0.options
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// When the server was made, in seconds since 1970.
    pub(crate) fn started(&self) -> u64 {
        self.0.started
    }

    /// Takes no more requests; those that run go on.
    pub(crate) fn drain(&self) {
        self.0.is_draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::Acquire)
    }

    /// Loads a model before its first request.
    ///
    /// # Errors
    /// It cannot be loaded; the log says more.
    pub async fn load(&self, name: &str) -> Result<(), String> {
        let entry = self.registry().find(Some(name)).map_err(|error| error.message)?;
        let lease = self.registry().lease(&Arc::clone(entry)).await;
        lease.map(drop).map_err(|error| error.message)
    }

    /// Unloads a model that nobody uses. False if it is in use, or not loaded.
    pub async fn unload(&self, name: &str) -> bool {
        match self.registry().find(Some(name)) {
            Ok(entry) => self.registry().unload(entry).await,
            Err(_) => false,
        }
    }

    /// Uses the model of a request.
    pub(crate) async fn lease(&self, name: Option<&str>) -> Result<Arc<Lease>, ApiError> {
        if self.is_draining() {
            return Err(ApiError::new(
                Kind::Unavailable,
                "the server ends: it takes no more requests",
            ));
        }
        let entry: &Arc<Entry> = self.registry().find(name)?;
        Ok(Arc::new(self.registry().lease(entry).await?))
    }

    /// A place among the requests that generate text.
    pub(crate) fn place(&self, asker: &Asker) -> Result<Place, ApiError> {
        Place::take(&self.0.places, asker, self.options())
    }

    /// Waits until no request generates text.
    pub(crate) async fn wait_for_requests(&self) {
        // The sender lives as long as the app.
        let _ = self.0.places.all.subscribe().wait_for(|all| *all == 0).await;
    }

    /// The routes with all that looks at requests before them, for a program that has a server of its own.
    pub fn router(&self) -> Router {
        Router::new()
            .merge(openai::routes())
            .merge(anthropic::routes())
            .merge(admin::routes())
            .merge(page::routes())
            .merge(llama_cpp::routes())
            .merge(ollama::routes())
            .with_state(self.clone())
            .layer(middleware::from_fn_with_state(self.clone(), guard::look))
            .layer(middleware::from_fn(error::write))
            .layer(middleware::from_fn(requests::log))
    }

    /// Listens until `end` comes, then takes no more requests and returns when those that run have ended, or had their time.
    ///
    /// # Errors
    /// It cannot listen.
    pub async fn run(&self, end: impl Future<Output = ()> + Send) -> Result<(), StartError> {
        let listen = self.options().listen;
        let listener = tokio::net::TcpListener::bind(listen).await;
        let listener = listener.map_err(|error| StartError::Listen(listen, error))?;
        self.run_on(listener, end).await
    }

    /// As [`Self::run`], on a listener that is open already.
    ///
    /// # Errors
    /// Its address can be reached from other machines, and there are no keys.
    pub async fn run_on(
        &self,
        listener: tokio::net::TcpListener,
        end: impl Future<Output = ()> + Send,
    ) -> Result<(), StartError> {
        let address = listener.local_addr();
        let address = address.map_err(|error| StartError::Listen(self.options().listen, error))?;
        guard::check_address(self.options(), address)?;
        listen::run(self, listener, end).await;
        Ok(())
    }
}
