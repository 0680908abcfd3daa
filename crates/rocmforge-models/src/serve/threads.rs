//! Threads of a server: one that owns an engine, and its watch.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvError, Sender};
use std::thread::JoinHandle;

use super::error::ServeError;
use super::options::ServeOptions;
use super::shared::{Reply, Shared, State, StopAtEnd};
use crate::ModelError;

/// Stack of each thread in bytes, whatever the environment (`RUST_MIN_STACK`) or the system gives others.
const STACK: usize = 2 << 20;

/// Tells who starts a server that its engine is there, with what its handles need.
pub(super) type Made<L> = Sender<Result<L, ServeError>>;

/// What computes requests on the engine's thread.
pub(super) trait Worker {
    /// What handles ask of it.
    type Command;

    /// Takes a command.
    fn take(&mut self, command: Self::Command);

    /// Whether no step would compute anything or give a reply.
    fn is_idle(&self) -> bool;

    /// Computes one step. False if the server has stopped meanwhile.
    fn step(&mut self) -> bool;
}

/// Runs until the server is stopped, or drained and without requests, or all handles are gone.
pub(super) fn run<W: Worker, E: Reply>(mut worker: W, commands: &Receiver<W::Command>, shared: &Shared<E>) {
    loop {
        commands.try_iter().for_each(|command| worker.take(command));
        match shared.state() {
            State::Stopped => return,
            // An open request without a command is on its way.
            State::Draining if worker.is_idle() && shared.open_requests() == 0 => return,
            State::Ready | State::Draining => {}
        }
        if !worker.is_idle() {
            if !worker.step() {
                return;
            }
            continue;
        }
        // Without requests the thread sleeps.
        match commands.recv() {
            Ok(command) => worker.take(command),
            Err(RecvError) => return,
        }
    }
}

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
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned()).stack_size(STACK);
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
