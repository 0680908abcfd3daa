//! Registry: models by name. A model is loaded at its first request, and unloaded when another needs its place or nobody asked for it for a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rocmforge_models::serve::{Figures, Handle, State};
use tokio::sync::Notify;

use crate::error::{ApiError, Kind};
use crate::metrics::Metrics;
use crate::source::{LoadError, Loaded, Source};

/// The longest name of a model that a request may have.
const LONGEST_NAME: usize = 256;

/// Models by name.
pub(crate) struct Registry {
    models: BTreeMap<String, Arc<Entry>>,
    max_models: usize,
    keep_alive: Option<Duration>,
    /// One model is loaded or unloaded at a time.
    changing: tokio::sync::Mutex<()>,
}

/// A model, loaded or not.
pub(crate) struct Entry {
    pub(crate) name: String,
    source: Box<dyn Source>,
    running: Mutex<Option<Arc<Running>>>,
    pub(crate) metrics: Metrics,
}

/// A loaded model.
pub(crate) struct Running {
    loaded: Loaded,
    handle: Handle,
    users: AtomicUsize,
    last_used: Mutex<Instant>,
    /// How long it stays loaded after its last request; `None`: until another needs its place.
    keep_alive: Mutex<Option<Duration>>,
    /// Whether a timer waits for the end of that time, and what makes it look again.
    has_timer: AtomicBool,
    used: Arc<Notify>,
}

/// The use of a loaded model, which stays loaded meanwhile.
pub(crate) struct Lease {
    registry: Arc<Registry>,
    entry: Arc<Entry>,
    running: Arc<Running>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lease {
    pub(crate) fn handle(&self) -> &Handle {
        &self.running.handle
    }

    pub(crate) fn loaded(&self) -> &Loaded {
        &self.running.loaded
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.entry.metrics
    }

    /// How long the model stays loaded after this request.
    pub(crate) fn keep(&self, time: Option<Duration>) {
        *lock(&self.running.keep_alive) = time;
    }

    pub(crate) fn name(&self) -> &str {
        &self.entry.name
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *lock(&self.running.last_used) = Instant::now();
        let users = self.running.users.fetch_sub(1, Ordering::AcqRel) - 1;
        if users > 0 || lock(&self.running.keep_alive).is_none() {
            return;
        }
        let used = Arc::clone(&self.running.used);
        if self.running.has_timer.swap(true, Ordering::AcqRel) {
            return used.notify_one();
        }
        let (registry, entry) = (Arc::clone(&self.registry), Arc::clone(&self.entry));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(unload_when_idle(registry, entry, Arc::downgrade(&self.running), used));
        }
    }
}

/// A time that never ends.
const FAR: Duration = Duration::from_secs(1 << 30);

impl Running {
    /// How long it may still be idle; `None` if that has no end.
    fn idle_left(&self) -> Option<Duration> {
        let time = (*lock(&self.keep_alive))?;
        match self.users.load(Ordering::Acquire) {
            0 => Some(time.saturating_sub(lock(&self.last_used).elapsed())),
            _ => Some(FAR),
        }
    }
}

/// Unloads a model when nobody has used it for its time: the one timer that a loaded model has.
async fn unload_when_idle(registry: Arc<Registry>, entry: Arc<Entry>, running: Weak<Running>, used: Arc<Notify>) {
    while let Some(left) = running.upgrade().and_then(|running| running.idle_left()) {
        tokio::select! {
            () = tokio::time::sleep(left) => {
                let _changing = registry.changing.lock().await;
                if entry.unload_if(|running| running.idle_left() == Some(Duration::ZERO)).await {
                    return;
                }
            }
            () = used.notified() => {}
        }
    }
    if let Some(running) = running.upgrade() {
        running.has_timer.store(false, Ordering::Release);
    }
}

impl Entry {
    /// The loaded model and its figures, without using it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Loaded, &Figures) -> T) -> Option<T> {
        let running = lock(&self.running).clone()?;
        Some(look(&running.loaded, &running.handle.figures()))
    }

    /// How long nobody has used the loaded model.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let running = lock(&self.running).clone()?;
        let last = lock(&running.last_used).elapsed();
        let is_used = running.users.load(Ordering::Acquire) > 0;
        Some(if is_used { Duration::ZERO } else { last })
    }

    /// How long the loaded model stays after its last request.
    pub(crate) fn keep_alive(&self) -> Option<Duration> {
        let running = lock(&self.running).clone()?;
        *lock(&running.keep_alive)
    }

    /// Uses the model if it is loaded and answers.
    fn lease(self: &Arc<Self>, registry: &Arc<Registry>) -> Option<Lease> {
        let running = lock(&self.running);
        let running = running.as_ref()?;
        // A server that ended is loaded anew; if its device does not answer, the ended server stays, and requests get its error.
        let figures = running.handle.figures();
        if figures.state == State::Stopped && figures.in_step.is_none() {
            return None;
        }
        running.users.fetch_add(1, Ordering::AcqRel);
        Some(Lease {
            registry: Arc::clone(registry),
            entry: Arc::clone(self),
            running: Arc::clone(running),
        })
    }

    /// Unloads the model if nobody uses it and `may` agrees, and waits until its memory is given back.
    async fn unload_if(self: &Arc<Self>, may: impl FnOnce(&Running) -> bool) -> bool {
        let taken = {
            let mut running = lock(&self.running);
            match running.as_ref() {
                Some(idle) if idle.users.load(Ordering::Acquire) == 0 && may(idle) => running.take(),
                _ => return false,
            }
        };
        tracing::info!(model = %self.name, "unloads");
        let entry = Arc::clone(self);
        let unload = tokio::task::spawn_blocking(move || {
            // Who only looks at the model has it for a moment.
            while taken.as_ref().is_some_and(|running| Arc::strong_count(running) > 1) {
                std::thread::sleep(Duration::from_millis(1));
            }
            // The engine's thread ends here.
            drop(taken);
            entry.source.unloaded();
        });
        let _ = unload.await;
        true
    }
}

impl Registry {
    pub(crate) fn new(
        sources: impl IntoIterator<Item = (String, Box<dyn Source>)>,
        max_models: usize,
        keep_alive: Option<Duration>,
    ) -> Self {
        let entry = |(name, source): (String, _)| {
            let entry = Entry {
                name: name.clone(),
                source,
                running: Mutex::new(None),
                metrics: Metrics::default(),
            };
            (name, Arc::new(entry))
        };
        Self {
            models: sources.into_iter().map(entry).collect(),
            max_models: max_models.max(1),
            keep_alive,
            changing: tokio::sync::Mutex::new(()),
        }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.models.values()
    }

    /// The model of a name. A request without a name, and one that names a model that is not there where there is only one, mean that one:
    /// many clients send the name of a model of OpenAI.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&Arc<Entry>, ApiError> {
        if let Some(entry) = name.and_then(|name| self.models.get(name)) {
            return Ok(entry);
        }
        // Answers repeat the name.
        if name.is_some_and(|name| name.len() > LONGEST_NAME) {
            let text = format!("a name of a model has at most {LONGEST_NAME} bytes");
            return Err(ApiError::new(Kind::NotFound, text));
        }
        match (self.models.len(), self.models.values().next()) {
            (1, Some(entry)) => Ok(entry),
            _ => {
                let known: Vec<&str> = self.models.keys().map(String::as_str).collect();
                let known = known.join(", ");
                let text = match name {
                    Some(name) => format!("there is no model {name:?}; there are {known}"),
                    None => format!("name a model: there are {known}"),
                };
                Err(ApiError::new(Kind::NotFound, text))
            }
        }
    }

    /// Uses a model if it is loaded.
    pub(crate) fn lease_if_loaded(self: &Arc<Self>, entry: &Arc<Entry>) -> Option<Lease> {
        entry.lease(self)
    }

    /// Uses a model, and loads it before if it is not loaded.
    pub(crate) async fn lease(self: &Arc<Self>, entry: &Arc<Entry>) -> Result<Lease, ApiError> {
        if let Some(lease) = entry.lease(self) {
            return Ok(lease);
        }
        // A client that goes away does not stop the loading: others wait for the same model.
        let (registry, entry) = (Arc::clone(self), Arc::clone(entry));
        let load = tokio::spawn(async move { registry.load(&entry).await });
        load.await
            .unwrap_or_else(|_| Err(ApiError::new(Kind::Internal, "loading the model failed")))
    }

    async fn load(self: &Arc<Self>, entry: &Arc<Entry>) -> Result<Lease, ApiError> {
        let _changing = self.changing.lock().await;
        if let Some(lease) = entry.lease(self) {
            return Ok(lease);
        }
        // A server that has ended makes room for its successor.
        entry.unload_if(|_| true).await;
        while self.loaded() >= self.max_models {
            if !self.unload_oldest().await {
                let text = format!(
                    "{} models are loaded and in use, and no more may be: try again later",
                    self.max_models
                );
                return Err(ApiError::new(Kind::Busy, text));
            }
        }
        tracing::info!(model = %entry.name, "loads");
        loop {
            let of_thread = Arc::clone(entry);
            let load = tokio::task::spawn_blocking(move || of_thread.source.load());
            let load = load
                .await
                .unwrap_or_else(|_| Err(LoadError::Failed("loading the model panicked".into())));
            match load {
                Ok(loaded) => return Ok(self.start(entry, loaded)),
                Err(LoadError::NoRoom(_)) if self.unload_oldest().await => {}
                Err(error) => {
                    tracing::error!(model = %entry.name, %error, "cannot be loaded");
                    // The words may hold paths of this machine; who runs the server reads them in the log.
                    let text = match error {
                        LoadError::NoRoom(_) => "the model does not fit into the memory that is left",
                        LoadError::Failed(_) => "the model cannot be loaded: the server's log says why",
                    };
                    return Err(ApiError::new(Kind::Unavailable, text));
                }
            }
        }
    }

    fn start(self: &Arc<Self>, entry: &Arc<Entry>, loaded: Loaded) -> Lease {
        let running = Arc::new(Running {
            handle: loaded.server.handle(),
            loaded,
            users: AtomicUsize::new(1),
            last_used: Mutex::new(Instant::now()),
            keep_alive: Mutex::new(self.keep_alive),
            has_timer: AtomicBool::new(false),
            used: Arc::default(),
        });
        *lock(&entry.running) = Some(Arc::clone(&running));
        Lease {
            registry: Arc::clone(self),
            entry: Arc::clone(entry),
            running,
        }
    }

    fn loaded(&self) -> usize {
        self.entries().filter(|entry| lock(&entry.running).is_some()).count()
    }

    /// Unloads the model that nobody uses and that was not used for the longest time. False if there is none.
    async fn unload_oldest(&self) -> bool {
        let mut idle: Vec<(Duration, &Arc<Entry>)> = (self.entries())
            .filter_map(|entry| Some((entry.idle()?, entry)))
            .collect();
        idle.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        for (_, entry) in idle {
            if entry.unload_if(|_| true).await {
                return true;
            }
        }
        false
    }

    /// Unloads a model if nobody uses it.
    pub(crate) async fn unload(&self, entry: &Arc<Entry>) -> bool {
        let _changing = self.changing.lock().await;
        entry.unload_if(|_| true).await
    }
}
