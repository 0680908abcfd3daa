//! Registry: models by name. A model is loaded at its first request, and unloaded when another needs its place or nobody asked for it for a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use rocmforge_models::generate::PromptCounts;
use rocmforge_models::serve::{EmbeddingHandle, Figures, Handle, State};
use rocmforge_models::tokenizer::Tokenizer;
use tokio::sync::{Notify, watch};

use crate::error::{ApiError, Kind};
use crate::metrics::Metrics;
use crate::source::{Engine, LoadError, Loaded, ModelKind, Source};

/// The longest name of a model that a request may have.
const LONGEST_NAME: usize = 256;

/// Models by name.
pub(crate) struct Registry {
    models: ArcSwap<BTreeMap<String, Arc<Entry>>>,
    /// Entries that others have taken the place of, until their models are unloaded.
    retired: Mutex<Vec<Arc<Entry>>>,
    max_models: usize,
    keep_alive: Option<Duration>,
    /// How long requests wait while one model is loaded.
    load_time: Duration,
    /// One model is loaded or unloaded at a time.
    changing: tokio::sync::Mutex<()>,
    /// The model that is loaded now, and since when.
    loading: Mutex<Option<(String, Instant)>>,
    /// Whether all requests were ended.
    ended: watch::Sender<bool>,
}

/// Notes that a model is loaded, until it is dropped.
struct Loading<'a>(&'a Registry);

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        *lock(&self.0.loading) = None;
    }
}

/// A model, loaded or not.
pub(crate) struct Entry {
    pub(crate) name: String,
    source: Box<dyn Source>,
    /// What it makes, where its source knows that.
    kind: Option<ModelKind>,
    running: Mutex<Option<Arc<Running>>>,
    /// It is no longer in the table, and its model goes when nobody uses it.
    is_retired: Arc<AtomicBool>,
    /// Those of its name.
    pub(crate) metrics: Arc<Metrics>,
}

/// Counts of a model's engines, those of earlier loads among them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) steps: u64,
    pub(crate) prompts: PromptCounts,
    /// Parts of models that went to the host, and that came back.
    pub(crate) spills: u64,
    pub(crate) returns: u64,
}

impl Totals {
    fn add(&mut self, figures: &Figures) {
        self.steps += figures.steps;
        self.prompts.tokens += figures.prompts.tokens;
        self.prompts.cached += figures.prompts.cached;
        let placement = figures.placement.unwrap_or_default();
        self.spills += placement.spills;
        self.returns += placement.returns;
    }
}

/// A loaded model.
pub(crate) struct Running {
    loaded: Loaded,
    users: AtomicUsize,
    last_used: Mutex<Instant>,
    /// How long it stays loaded after its last request; `None`: until another needs its place.
    keep_alive: Mutex<Option<Duration>>,
    /// Whether a timer waits for the end of that time, and what makes it look again.
    has_timer: AtomicBool,
    used: Arc<Notify>,
    /// That of its entry.
    is_retired: Arc<AtomicBool>,
}

/// The use of a loaded model, whatever it makes. The model stays loaded meanwhile.
pub(crate) struct AnyLease {
    registry: Arc<Registry>,
    entry: Arc<Entry>,
    running: Arc<Running>,
    /// When the request asked for the model.
    asked: Instant,
}

/// The use of a loaded model through its handle: one that makes texts, or with another handle one that makes embeddings or scores.
pub(crate) struct Lease<H = Handle> {
    handle: H,
    any: AnyLease,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AnyLease {
    pub(crate) fn loaded(&self) -> &Loaded {
        &self.running.loaded
    }

    pub(crate) fn tokenizer(&self) -> Arc<Tokenizer> {
        self.loaded().server.tokenizer()
    }

    /// How long the model stays loaded after this request.
    pub(crate) fn keep(&self, time: Option<Duration>) {
        *lock(&self.running.keep_alive) = time;
    }

    /// The use of a model that makes texts.
    pub(crate) fn into_text(self) -> Result<Lease, ApiError> {
        match &self.running.loaded.server {
            Engine::Text(server) => Ok(Lease {
                handle: server.handle(),
                any: self,
            }),
            other => Err(wrong_kind(&self.entry.name, other.kind(), ModelKind::Text)),
        }
    }

    /// The use of an encoder that makes what is wanted.
    pub(crate) fn into_encoder(self, wanted: ModelKind) -> Result<Lease<EmbeddingHandle>, ApiError> {
        let server = &self.running.loaded.server;
        match server {
            Engine::Embedding(encoder) if server.kind() == wanted => Ok(Lease {
                handle: encoder.handle(),
                any: self,
            }),
            other => Err(wrong_kind(&self.entry.name, other.kind(), wanted)),
        }
    }
}

impl<H> Lease<H> {
    pub(crate) fn handle(&self) -> &H {
        &self.handle
    }

    pub(crate) fn loaded(&self) -> &Loaded {
        self.any.loaded()
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.any.entry.metrics
    }

    /// When the request asked for the model, which may have been loaded for it.
    pub(crate) fn asked(&self) -> Instant {
        self.any.asked
    }

    /// How long the model stays loaded after this request.
    pub(crate) fn keep(&self, time: Option<Duration>) {
        self.any.keep(time);
    }

    pub(crate) fn name(&self) -> &str {
        &self.any.entry.name
    }
}

/// A model is asked for what it does not make.
fn wrong_kind(name: &str, kind: ModelKind, wanted: ModelKind) -> ApiError {
    let makes = match kind {
        ModelKind::Text => "texts",
        ModelKind::Embedding => "embeddings of texts",
        ModelKind::Ranking => "scores of documents",
    };
    let ask = match (wanted, kind) {
        (ModelKind::Text, ModelKind::Embedding) => "ask it at /v1/embeddings, or name a model that makes texts",
        (ModelKind::Text, ModelKind::Ranking) | (ModelKind::Embedding, ModelKind::Ranking) => {
            "ask it at /v1/rerank, or name another model"
        }
        (ModelKind::Embedding, _) => {
            "name a model whose kind at /v1/models is \"embedding\", such as a sentence encoder of the architecture bert"
        }
        (ModelKind::Ranking, _) => {
            "name a model whose kind at /v1/models is \"ranking\": a BERT with a classifier of one score, from a directory (BertForSequenceClassification) or a GGUF of pooling type 4"
        }
        (ModelKind::Text, ModelKind::Text) => "name another model",
    };
    ApiError::new(Kind::NotSupported, format!("the model {name} makes {makes}: {ask}"))
}

impl Drop for AnyLease {
    fn drop(&mut self) {
        *lock(&self.running.last_used) = Instant::now();
        let users = self.running.users.fetch_sub(1, Ordering::AcqRel) - 1;
        let is_retired = self.running.is_retired.load(Ordering::Acquire);
        if users > 0 || (lock(&self.running.keep_alive).is_none() && !is_retired) {
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
        let time = match self.is_retired.load(Ordering::Acquire) {
            true => Duration::ZERO,
            false => (*lock(&self.keep_alive))?,
        };
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
                // One whose device does not answer stays until a request finds that it does again.
                if running.upgrade().is_some_and(|running| running.loaded.server.figures().is_stuck()) {
                    break;
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
    fn new(name: String, source: Box<dyn Source>, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            name,
            kind: source.kind(),
            source,
            running: Mutex::new(None),
            is_retired: Arc::default(),
            metrics,
        })
    }

    /// The loaded model and its figures, without using it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Loaded, &Figures) -> T) -> Option<T> {
        let running = lock(&self.running).clone()?;
        Some(look(&running.loaded, &running.loaded.server.figures()))
    }

    /// What the model makes; `None` where that is not known before it is loaded.
    pub(crate) fn kind(&self) -> Option<ModelKind> {
        let running = lock(&self.running).clone();
        running.map(|running| running.loaded.server.kind()).or(self.kind)
    }

    /// Refuses a request for what the model is known not to make, so that nothing is loaded for it.
    pub(crate) fn check_kind(&self, wanted: ModelKind) -> Result<(), ApiError> {
        match self.kind() {
            Some(kind) if kind != wanted => Err(wrong_kind(&self.name, kind, wanted)),
            _ => Ok(()),
        }
    }

    /// Counts of all its engines so far.
    pub(crate) fn totals(&self) -> Totals {
        // An engine is among the ended ones or among the loaded ones, and never in both.
        let running = lock(&self.running);
        let mut totals = *lock(&self.metrics.ended);
        if let Some(running) = running.as_ref() {
            totals.add(&running.loaded.server.figures());
        }
        totals
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
    fn lease(self: &Arc<Self>, registry: &Arc<Registry>, asked: Instant) -> Option<AnyLease> {
        let running = lock(&self.running);
        let running = running.as_ref()?;
        // A server that ended is loaded anew; if its device does not answer, the ended server stays, and requests get its error.
        let figures = running.loaded.server.figures();
        if figures.state == State::Stopped && !figures.is_stuck() {
            return None;
        }
        running.users.fetch_add(1, Ordering::AcqRel);
        Some(AnyLease {
            registry: Arc::clone(registry),
            entry: Arc::clone(self),
            running: Arc::clone(running),
            asked,
        })
    }

    /// Unloads the model if nobody uses it and `may` agrees, and waits until its memory is given back. One whose device does not answer stays:
    /// its memory cannot be given back, and `/health` is to show it.
    async fn unload_if(self: &Arc<Self>, may: impl FnOnce(&Running) -> bool) -> bool {
        let taken = {
            let mut running = lock(&self.running);
            match running.as_ref() {
                Some(idle)
                    if idle.users.load(Ordering::Acquire) == 0
                        && !idle.loaded.server.figures().is_stuck()
                        && may(idle) =>
                {
                    lock(&self.metrics.ended).add(&idle.loaded.server.figures());
                    running.take()
                }
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
        load_time: Duration,
    ) -> Self {
        let models = sources.into_iter().map(|(name, source)| {
            let entry = Entry::new(name.clone(), source, Arc::default());
            (name, entry)
        });
        Self {
            models: ArcSwap::from_pointee(models.collect()),
            retired: Mutex::default(),
            max_models: max_models.max(1),
            keep_alive,
            load_time,
            changing: tokio::sync::Mutex::new(()),
            loading: Mutex::default(),
            ended: watch::Sender::new(false),
        }
    }

    /// The model that is loaded now, and for how long it has been. A device that does not answer may hold it up for ever.
    pub(crate) fn loading(&self) -> Option<(String, Duration)> {
        let loading = lock(&self.loading);
        loading.as_ref().map(|(name, since)| (name.clone(), since.elapsed()))
    }

    /// Whether a model has been loading for longer than requests wait for it.
    pub(crate) fn is_load_overdue(&self) -> bool {
        self.loading().is_some_and(|(_, time)| time >= self.load_time)
    }

    /// Waits until requests should wait no longer for a model to be loaded: why.
    async fn given_up(&self) -> ApiError {
        let mut ended = self.ended.subscribe();
        loop {
            if *ended.borrow_and_update() {
                return ApiError::new(
                    Kind::Unavailable,
                    "the server ends, and the model was not loaded in time",
                );
            }
            let loading = self.loading();
            let left = loading
                .as_ref()
                .map_or(self.load_time, |(_, time)| self.load_time.saturating_sub(*time));
            if let Some((name, time)) = loading
                && left.is_zero()
            {
                let text = format!(
                    "the model {name} has been loading for {} s, and a load may take {} s: its file or its device does not answer. \
                     No other model is loaded meanwhile; those that are loaded go on. Look at the file and the device, and restart the server",
                    time.as_secs(),
                    self.load_time.as_secs_f64()
                );
                return ApiError::new(Kind::Unavailable, text);
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                _ = ended.changed() => {}
            }
        }
    }

    /// Ends all requests with an error: those whose answers run, and those that wait for a model.
    pub(crate) fn end_requests(&self) {
        self.ended.send_replace(true);
        for entry in self.all() {
            if let Some(running) = lock(&entry.running).clone() {
                running.loaded.server.stop();
            }
        }
    }

    /// The models as they are now.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Arc<Entry>> + use<> {
        let entries: Vec<Arc<Entry>> = self.models.load().values().cloned().collect();
        entries.into_iter()
    }

    /// Takes other models. Those of the same name and identity stay as they are, the others go when nobody uses them any more.
    pub(crate) fn replace(self: &Arc<Self>, sources: impl IntoIterator<Item = (String, Box<dyn Source>)>) {
        let old = self.models.load_full();
        let models = sources.into_iter().map(|(name, source)| {
            let entry = match old.get(&name) {
                Some(known) if known.source.identity() == source.identity() => Arc::clone(known),
                Some(known) => Entry::new(name.clone(), source, Arc::clone(&known.metrics)),
                None => Entry::new(name.clone(), source, Arc::default()),
            };
            (name, entry)
        });
        let models: BTreeMap<_, _> = models.collect();
        let is_kept = |entry: &Arc<Entry>| models.get(&entry.name).is_some_and(|new| Arc::ptr_eq(new, entry));
        let gone: Vec<Arc<Entry>> = old.values().filter(|entry| !is_kept(entry)).cloned().collect();
        self.models.store(Arc::new(models));
        let mut retired = lock(&self.retired);
        retired.retain(|entry| lock(&entry.running).is_some());
        retired.extend(gone.iter().cloned());
        drop(retired);
        for entry in gone {
            entry.is_retired.store(true, Ordering::Release);
            // The end of its last use unloads it.
            drop(entry.lease(self, Instant::now()));
        }
    }

    /// The models that may be loaded, those among them that are no longer in the table.
    fn all(&self) -> impl Iterator<Item = Arc<Entry>> + use<> {
        let retired = lock(&self.retired).clone();
        self.entries().chain(retired)
    }

    /// The model of a name. A request without a name, and one that names a model that is not there where there is only one, mean that one:
    /// many clients send the name of a model of OpenAI.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<Arc<Entry>, ApiError> {
        let models = self.models.load();
        if let Some(entry) = name.and_then(|name| models.get(name)) {
            return Ok(Arc::clone(entry));
        }
        // Answers repeat the name.
        if name.is_some_and(|name| name.len() > LONGEST_NAME) {
            let text = format!("a name of a model has at most {LONGEST_NAME} bytes");
            return Err(ApiError::new(Kind::NotFound, text));
        }
        match (models.len(), models.values().next()) {
            (1, Some(entry)) => Ok(Arc::clone(entry)),
            _ => {
                let known: Vec<&str> = models.keys().map(String::as_str).collect();
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
    pub(crate) fn lease_if_loaded(self: &Arc<Self>, entry: &Arc<Entry>) -> Option<AnyLease> {
        entry.lease(self, Instant::now())
    }

    /// Uses a model, and loads it before if it is not loaded. A load that takes too long goes on, because nothing can end it, but nobody waits for it.
    pub(crate) async fn lease(self: &Arc<Self>, entry: &Arc<Entry>) -> Result<AnyLease, ApiError> {
        let asked = Instant::now();
        if let Some(lease) = entry.lease(self, asked) {
            return Ok(lease);
        }
        // A client that goes away does not stop the loading: others wait for the same model.
        let (registry, entry) = (Arc::clone(self), Arc::clone(entry));
        let load = tokio::spawn(async move { registry.load(&entry, asked).await });
        tokio::select! {
            biased;
            loaded = load => loaded.unwrap_or_else(|_| Err(ApiError::new(Kind::Internal, "loading the model failed"))),
            error = self.given_up() => Err(error),
        }
    }

    async fn load(self: &Arc<Self>, entry: &Arc<Entry>, asked: Instant) -> Result<AnyLease, ApiError> {
        let _changing = tokio::select! {
            changing = self.changing.lock() => changing,
            error = self.given_up() => return Err(error),
        };
        if let Some(lease) = entry.lease(self, asked) {
            return Ok(lease);
        }
        *lock(&self.loading) = Some((entry.name.clone(), Instant::now()));
        let _loading = Loading(self);
        // A server that has ended makes room for its successor.
        entry.unload_if(|_| true).await;
        while self.loaded() >= self.max_models {
            if !self.unload_oldest().await {
                if self.is_stuck() {
                    let text = "the device of a loaded model does not answer: no other model can take its place";
                    return Err(ApiError::new(Kind::Unavailable, text));
                }
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
                Ok(loaded) => return Ok(self.start(entry, loaded, asked)),
                Err(LoadError::NoRoom(_)) if self.unload_oldest().await => {}
                Err(error) => {
                    // It may quote the file.
                    tracing::error!(model = %entry.name, error = ?error.to_string(), "cannot be loaded");
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

    fn start(self: &Arc<Self>, entry: &Arc<Entry>, loaded: Loaded, asked: Instant) -> AnyLease {
        let running = Arc::new(Running {
            loaded,
            users: AtomicUsize::new(1),
            last_used: Mutex::new(Instant::now()),
            keep_alive: Mutex::new(self.keep_alive),
            has_timer: AtomicBool::new(false),
            used: Arc::default(),
            is_retired: Arc::clone(&entry.is_retired),
        });
        *lock(&entry.running) = Some(Arc::clone(&running));
        AnyLease {
            registry: Arc::clone(self),
            entry: Arc::clone(entry),
            running,
            asked,
        }
    }

    fn loaded(&self) -> usize {
        self.all().filter(|entry| lock(&entry.running).is_some()).count()
    }

    /// Whether a loaded model's device does not answer.
    fn is_stuck(&self) -> bool {
        self.all()
            .any(|entry| entry.look(|_, figures| figures.is_stuck()) == Some(true))
    }

    /// Unloads the model that nobody uses and that was not used for the longest time. False if there is none.
    async fn unload_oldest(&self) -> bool {
        let idle = self.all().filter_map(|entry| Some((entry.idle()?, entry)));
        let mut idle: Vec<(Duration, Arc<Entry>)> = idle.collect();
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
