//! App: what all routes share, and the routes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::middleware;
use rocmforge_models::serve::EmbeddingHandle;
use sha2::{Digest, Sha256};

use crate::error::{self, ApiError, Kind};
use crate::generation::now;
use crate::guard;
use crate::keys::Keys;
use crate::listen;
use crate::options::ServerOptions;
use crate::places::{self, Place, Places};
use crate::registry::{AnyLease, Entry, Lease, Registry};
use crate::source::{ModelKind, Source};
use crate::tls::Tls;
use crate::trace::Trace;
use crate::{admin, anthropic, description, llama_cpp, ollama, openai, page, requests};

/// A server's models and limits. Clones are the same server.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    /// As the server was started; keys and certificate may be others since.
    options: ServerOptions,
    keys: ArcSwap<Keys>,
    admin_keys: ArcSwap<Keys>,
    tls: ArcSwapOption<Tls>,
    reload: OnceLock<Reload>,
    /// One reload at a time.
    reloading: Mutex<()>,
    registry: Arc<Registry>,
    /// Seconds since 1970.
    started: u64,
    places: Arc<Places>,
}

/// Reads settings anew.
type Reload = Box<dyn Fn(&App) -> Result<(), String> + Send + Sync>;

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
    /// The slots could be asked for by nobody.
    #[error(
        "the server has keys, and shows its slots to admins only: give a file of their keys, or do not show the slots"
    )]
    NoAdmin,
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

/// Why a setting of a running server is not taken. The old one stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// Everybody could ask.
    #[error("there are no keys: a server that has some keeps them")]
    NoKeys,
    /// The server speaks HTTP.
    #[error("the server was started without a certificate, and speaks HTTP until it is started anew")]
    NoTls,
    /// No model was given.
    #[error("there is no model to serve")]
    NoModel,
}

/// Who asks, and the place of the request.
#[derive(Clone)]
pub(crate) struct Asker {
    /// The owner of a key; `None` where the route asks for no key.
    pub(crate) owner: Option<String>,
    /// The key is an admin's.
    pub(crate) is_admin: bool,
    /// Whose requests take turns with those of others: the owner, or where there are no keys the network address.
    pub(crate) client: String,
    /// A POST has one.
    pub(crate) place: Option<Arc<Place>>,
}

impl Asker {
    /// Two requests share a beginning of their prompts in the cache only if their salts are equal: those of one owner.
    pub(crate) fn salt(&self) -> String {
        self.owner
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
        let registry = Registry::new(models, options.max_models, options.keep_alive, options.limits.load_time);
        if registry.entries().next().is_none() {
            return Err(StartError::NoModel);
        }
        Ok(Self(Arc::new(Shared {
            keys: ArcSwap::from_pointee(options.keys.clone()),
            admin_keys: ArcSwap::from_pointee(options.admin_keys.clone()),
            tls: ArcSwapOption::from_pointee(options.tls.clone()),
            reload: OnceLock::new(),
            reloading: Mutex::default(),
            options,
            registry: Arc::new(registry),
            started: now(),
            places: Arc::default(),
        })))
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.0.options
    }

    /// The certificate for the next connection.
    pub(crate) fn tls(&self) -> Option<Tls> {
        self.0.tls.load().as_deref().cloned()
    }

    /// The keys of those who may ask now.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        self.0.keys.load_full()
    }

    /// The keys of admins now.
    pub(crate) fn admin_keys(&self) -> Arc<Keys> {
        self.0.admin_keys.load_full()
    }

    /// Refuses a route for admins to others. A server without any keys has no admins: whoever reaches it may ask.
    pub(crate) fn check_admin(&self, asker: &Asker) -> Result<(), ApiError> {
        if asker.is_admin || (self.keys().is_empty() && self.admin_keys().is_empty()) {
            return Ok(());
        }
        let text = "this route is for admins: ask with one of their keys (--admin-keys names the file)";
        let kind = match asker.owner {
            Some(_) => Kind::Forbidden,
            None => Kind::Unauthorized,
        };
        Err(ApiError::new(kind, text))
    }

    /// Takes other keys for the next requests. Answers that run go on.
    ///
    /// # Errors
    /// [`ChangeError::NoKeys`] for none.
    pub fn set_keys(&self, keys: Keys) -> Result<(), ChangeError> {
        if keys.is_empty() {
            return Err(ChangeError::NoKeys);
        }
        self.0.keys.store(Arc::new(keys));
        Ok(())
    }

    /// Takes other keys of admins for the next requests.
    ///
    /// # Errors
    /// [`ChangeError::NoKeys`] for none.
    pub fn set_admin_keys(&self, keys: Keys) -> Result<(), ChangeError> {
        if keys.is_empty() {
            return Err(ChangeError::NoKeys);
        }
        self.0.admin_keys.store(Arc::new(keys));
        Ok(())
    }

    /// Takes another certificate for the next connections. Those that are open go on.
    ///
    /// # Errors
    /// [`ChangeError::NoTls`] if the server has none.
    pub fn set_tls(&self, tls: Tls) -> Result<(), ChangeError> {
        if self.options().tls.is_none() {
            return Err(ChangeError::NoTls);
        }
        self.0.tls.store(Some(Arc::new(tls)));
        Ok(())
    }

    /// Takes other models. One whose name and [`Source::identity`] are as before stays, and stays loaded. The others go when the answers that run
    /// on them have ended. Call it where a Tokio runtime is.
    ///
    /// # Errors
    /// [`ChangeError::NoModel`] for none.
    pub fn set_models(&self, models: impl IntoIterator<Item = (String, Box<dyn Source>)>) -> Result<(), ChangeError> {
        let mut models = models.into_iter().peekable();
        if models.peek().is_none() {
            return Err(ChangeError::NoModel);
        }
        self.registry().replace(models);
        Ok(())
    }

    /// Sets once what [`Self::reload`] does: reads files anew and calls the setters. `POST /admin/reload` calls it, too, if there are keys of admins.
    pub fn on_reload(&self, reload: impl Fn(&Self) -> Result<(), String> + Send + Sync + 'static) {
        let _ = self.0.reload.set(Box::new(reload));
    }

    /// Whether there is something to reload.
    pub(crate) fn can_reload(&self) -> bool {
        self.0.reload.get().is_some()
    }

    /// Reads settings anew, on a thread that may wait for files.
    ///
    /// # Errors
    /// Some could not be read, and are as before.
    pub async fn reload(&self) -> Result<(), String> {
        let app = self.clone();
        let reload = tokio::task::spawn_blocking(move || {
            let _one = app.0.reloading.lock().unwrap_or_else(PoisonError::into_inner);
            app.0.reload.get().map_or(Ok(()), |reload| reload(&app))
        });
        reload.await.unwrap_or_else(|_| Err("reloading panicked".to_owned()))
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// When the server was made, in seconds since 1970.
    pub(crate) fn started(&self) -> u64 {
        self.0.started
    }

    /// Takes no more requests; those that were taken go on.
    pub(crate) fn drain(&self) {
        self.0.places.close();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.places.is_closed()
    }

    /// Loads a model before its first request.
    ///
    /// # Errors
    /// It cannot be loaded; the log says more.
    pub async fn load(&self, name: &str) -> Result<(), String> {
        let entry = self.registry().find(Some(name)).map_err(|error| error.message)?;
        let lease = self.registry().lease(&entry).await;
        lease.map(drop).map_err(|error| error.message)
    }

    /// Unloads a model that nobody uses. False if it is in use, or not loaded.
    pub async fn unload(&self, name: &str) -> bool {
        match self.registry().find(Some(name)) {
            Ok(entry) => self.registry().unload(&entry).await,
            Err(_) => false,
        }
    }

    /// Uses the model of a request for texts.
    pub(crate) async fn lease(&self, name: Option<&str>) -> Result<Arc<Lease>, ApiError> {
        let entry = self.registry().find(name)?;
        entry.check_kind(ModelKind::Text)?;
        Ok(Arc::new(self.registry().lease(&entry).await?.into_text()?))
    }

    /// Uses the model of a request for embeddings, or for scores.
    pub(crate) async fn encoder(
        &self,
        entry: &Arc<Entry>,
        wanted: ModelKind,
    ) -> Result<Arc<Lease<EmbeddingHandle>>, ApiError> {
        entry.check_kind(wanted)?;
        Ok(Arc::new(self.registry().lease(entry).await?.into_encoder(wanted)?))
    }

    /// Uses the model of a request, whatever it makes.
    pub(crate) async fn any_lease(&self, name: Option<&str>) -> Result<AnyLease, ApiError> {
        let entry = self.registry().find(name)?;
        self.registry().lease(&entry).await
    }

    /// Takes a place for a request.
    pub(crate) fn take_place(&self, owner: Option<&str>, trace: Arc<Trace>) -> Result<Arc<Place>, ApiError> {
        Place::take(&self.0.places, owner, trace, self)
    }

    /// The place of one more answer of a request: its own for the first.
    pub(crate) fn place(&self, asker: &Asker) -> Result<Arc<Place>, ApiError> {
        match &asker.place {
            Some(place) => place.of_answer(self),
            None => self.take_place(asker.owner.as_deref(), Arc::default()),
        }
    }

    /// Refuses a request with more answers than it may have.
    pub(crate) fn check_answers(&self, asker: &Asker, prompts: usize, choices: usize) -> Result<(), ApiError> {
        places::check_answers(self, asker.owner.as_deref(), prompts, choices)
    }

    /// Waits until all requests that were taken have been answered.
    pub(crate) async fn wait_for_requests(&self) {
        self.0.places.wait_until_free().await;
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
            .merge(description::routes())
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
        guard::check_address(self.options(), &self.keys(), address)?;
        listen::run(self, listener, end).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use futures_util::FutureExt;
    use tower::ServiceExt;

    use super::*;
    use crate::source::{LoadError, Loaded};

    /// Loads when it is released, and then fails.
    struct Slow {
        asked: mpsc::Sender<()>,
        released: Mutex<mpsc::Receiver<()>>,
    }

    impl Source for Slow {
        fn load(&self) -> Result<Loaded, LoadError> {
            self.asked.send(()).expect("the test waits");
            let _ = self.released.lock().expect("one at a time").recv();
            Err(LoadError::Failed("it is no model".into()))
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_end_waits_for_requests_whose_model_is_loading() {
        let (asked, is_asked) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let released = Mutex::new(released);
        let source: Box<dyn Source> = Box::new(Slow { asked, released });
        let app = App::new(ServerOptions::default(), [("slow".to_owned(), source)]).expect("a server");
        let post = || {
            let request = Request::post("/v1/completions").header("host", "localhost");
            let request = request.header("content-type", "application/json");
            request.body(Body::from("{\"prompt\": \"a\"}")).expect("a request")
        };
        let waiting = tokio::spawn(app.router().oneshot(post()));
        let loads = tokio::task::spawn_blocking(move || is_asked.recv());
        loads.await.expect("no panic").expect("the model loads");
        app.drain();
        let mut end = std::pin::pin!(app.wait_for_requests());
        assert!(end.as_mut().now_or_never().is_none(), "a request waits for its model");
        release.send(()).expect("it loads");
        let response = waiting.await.expect("no panic").expect("the router never fails");
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = axum::body::to_bytes(response.into_body(), 1 << 16)
            .await
            .expect("a body");
        let body = String::from_utf8_lossy(&body);
        assert!(body.contains("cannot be loaded"), "{body}");
        end.await;
        let refused = app.router().oneshot(post()).await.expect("the router never fails");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
