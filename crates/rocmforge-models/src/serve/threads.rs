//! Threads of a server: one that owns an engine, and its watch.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use super::shared::{Reply, Shared, StopAtEnd};
use super::{ServeError, ServeOptions};
use crate::ModelError;

/// Tells who starts a server that its engine is there, with what its handles need.
pub(super) type Made<L> = Sender<Result<L, ServeError>>;

/// Both threads, and what they share.
#[derive(Debug)]
pub(super) struct Threads<E: Reply> {
    shared: Arc<Shared<E>>,
    worker: Option<JoinHandle<()>>,
    watch: Option<JoinHandle<()>>,
}

impl<E: Reply> Threads<E> {
    /// Starts them. `make` makes the engine on its thread, `run` tells what handles need, and computes until the server ends.
    ///
    /// # Errors
    /// `make` failed, or the system gives no thread.
    pub(super) fn start<T, L: Send + 'static>(
        options: ServeOptions,
        make: impl FnOnce() -> Result<T, ModelError> + Send + 'static,
        run: impl FnOnce(T, &Shared<E>, &Made<L>) + Send + 'static,
    ) -> Result<(Self, L), ServeError> {
        let shared = Arc::new(Shared::new(options));
        let (made, is_made) = mpsc::channel();
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let no_thread = |error| ServeError::Thread(Arc::new(error));
        let of_worker = Arc::clone(&shared);
        let worker = thread("rocmforge-engine").spawn(move || {
            let _stop = StopAtEnd(&of_worker);
            match make() {
                Ok(engine) => run(engine, &of_worker, &made),
                Err(error) => drop(made.send(Err(ServeError::Start(Arc::new(error))))),
            }
        });
        let worker = worker.map_err(no_thread)?;
        // A thread that ends without a word has panicked.
        let limits = is_made.recv().unwrap_or(Err(ServeError::Stopped))?;
        let of_watch = Arc::clone(&shared);
        let watch = thread("rocmforge-watch").spawn(move || of_watch.watch());
        let threads = Self {
            watch: Some(watch.map_err(no_thread)?),
            worker: Some(worker),
            shared,
        };
        Ok((threads, limits))
    }

    pub(super) const fn shared(&self) -> &Arc<Shared<E>> {
        &self.shared
    }

    /// Whether nobody has waited for their end.
    pub(super) const fn are_there(&self) -> bool {
        self.worker.is_some()
    }

    /// Waits for both threads. One that does not come back from the device is left behind.
    pub(super) fn join(&mut self) {
        let has_ended = self.shared.wait_for_end();
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
        if let Some(worker) = self.worker.take()
            && has_ended
        {
            let _ = worker.join();
        }
    }
}
