//! Embedding server: one thread owns an encoder, and computes the texts of all open requests together.
//!
//! Requests have their turns step by step, so one with many texts does not hold up the others, and texts of the same length class share a step whatever
//! request they are of.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};

use rocmforge_ggml::HostAccess;

use super::error::ServeError;
use super::options::ServeOptions;
use super::shared::{Figures, Reply, Shared};
use super::threads::{self, Threads};
use crate::ModelError;
use crate::bert::{Embedder, Embeddings, Group, Pooling, TextEncoder, TextIds};
use crate::generate::GenerateError;

/// Limits of an embedding server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddingOptions {
    /// Requests and times.
    pub serve: ServeOptions,
    /// Most texts of all open requests, and of answers that are held. The memory of answers grows with it.
    pub texts: usize,
}

impl Default for EmbeddingOptions {
    fn default() -> Self {
        Self {
            serve: ServeOptions::default(),
            texts: 8192,
        }
    }
}

/// Embeddings of a request, or of a model that ranks a score for each pair. They count among the open texts until they are dropped.
#[derive(Debug)]
pub struct ServedEmbeddings {
    /// One row a text.
    pub embeddings: Embeddings,
    /// Tokens of all texts.
    pub tokens: usize,
    _texts: OpenTexts,
}

impl Reply for ServedEmbeddings {
    fn is_last(&self) -> bool {
        true
    }
}

/// Texts that are counted until this is dropped.
#[derive(Debug)]
struct OpenTexts {
    all: Arc<AtomicUsize>,
    count: usize,
}

impl OpenTexts {
    fn take(all: &Arc<AtomicUsize>, count: usize, limit: usize) -> Result<Self, ServeError> {
        let taken = all.fetch_update(Ordering::AcqRel, Ordering::Acquire, |open| {
            open.checked_add(count).filter(|open| *open <= limit)
        });
        match taken {
            Ok(_) => Ok(Self {
                all: Arc::clone(all),
                count,
            }),
            Err(open) => Err(ServeError::TextsFull {
                texts: open.saturating_add(count),
                limit,
            }),
        }
    }
}

impl Drop for OpenTexts {
    fn drop(&mut self) {
        self.all.fetch_sub(self.count, Ordering::AcqRel);
    }
}

/// What handles ask of the thread.
enum Command {
    Submit(Job),
    Cancel(u64),
    Wake,
}

/// A request whose texts are computed.
struct Job {
    ticket: u64,
    texts: Vec<TextIds>,
    /// Those that are not computed, the longest last.
    left: Vec<usize>,
    data: Vec<f32>,
    open: OpenTexts,
}

/// What handles know of the model.
#[derive(Clone, Debug)]
struct About {
    encoder: TextEncoder,
    pooling: Pooling,
    shares: bool,
    width: usize,
}

/// The thread that owns an encoder. Dropping it ends all requests.
#[derive(Debug)]
pub struct EmbeddingServer {
    handle: EmbeddingHandle,
    threads: Threads<ServedEmbeddings>,
}

impl EmbeddingServer {
    /// Starts the thread, which makes its embedder with `make`: a backend need not be able to change threads. Returns when it is made.
    ///
    /// # Errors
    /// `make` failed, or the system gives no thread.
    pub fn start<B: HostAccess>(
        options: EmbeddingOptions,
        make: impl FnOnce() -> Result<Embedder<B>, ModelError> + Send + 'static,
    ) -> Result<Self, ServeError> {
        let (commands, received) = mpsc::channel();
        let (threads, about) = Threads::start(options.serve, make, move |embedder: Embedder<B>, shared, made| {
            let model = embedder.model();
            let about = About {
                encoder: model.encoder().clone(),
                pooling: model.pooling(),
                shares: model.gives_shares(),
                width: model.result_width(),
            };
            let _ = made.send(Ok(about));
            let worker = Worker {
                embedder,
                shared,
                jobs: VecDeque::new(),
                steps: 0,
                failed_in_a_row: 0,
            };
            threads::run(worker, &received, shared);
        })?;
        let handle = EmbeddingHandle {
            commands,
            shared: Arc::clone(threads.shared()),
            about,
            texts: Arc::default(),
            limit: options.texts,
        };
        Ok(Self { handle, threads })
    }

    /// A handle that submits requests.
    #[must_use]
    pub fn handle(&self) -> EmbeddingHandle {
        self.handle.clone()
    }

    /// Takes no more requests, and waits until those that it has are done.
    pub fn drain(mut self) {
        self.handle.shared.drain();
        let _ = self.handle.commands.send(Command::Wake);
        self.threads.join();
    }
}

impl Drop for EmbeddingServer {
    fn drop(&mut self) {
        if self.threads.are_there() {
            self.handle.stop();
            self.threads.join();
        }
    }
}

/// Submits requests to an embedding server. Clones submit to the same one.
#[derive(Clone, Debug)]
pub struct EmbeddingHandle {
    commands: Sender<Command>,
    shared: Arc<Shared<ServedEmbeddings>>,
    about: About,
    texts: Arc<AtomicUsize>,
    limit: usize,
}

impl EmbeddingHandle {
    /// What turns texts into ids.
    #[must_use]
    pub const fn encoder(&self) -> &TextEncoder {
        &self.about.encoder
    }

    /// Pooling and normalisation.
    #[must_use]
    pub const fn pooling(&self) -> Pooling {
        self.about.pooling
    }

    /// Whether scores are shares between 0 and 1; others are any number.
    #[must_use]
    pub const fn gives_shares(&self) -> bool {
        self.about.shares
    }

    /// Components of a text's result.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.about.width
    }

    /// How the server is.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.shared.figures()
    }

    /// Ends all requests with an error, and the server.
    pub fn stop(&self) {
        self.shared.stop(&ServeError::Stopped);
        let _ = self.commands.send(Command::Wake);
    }

    /// Computes texts, and waits for them.
    ///
    /// # Errors
    /// As [`Self::submit_to`], and what ends a request before its answer.
    pub fn embed(&self, texts: Vec<TextIds>) -> Result<ServedEmbeddings, ServeError> {
        let (answers, answer) = mpsc::channel();
        let _ticket = self.submit_to(texts, move |answer| drop(answers.send(answer)))?;
        answer.recv().unwrap_or(Err(ServeError::Stopped))
    }

    /// Submits texts whose answer goes to `sink`. It must not wait: the engine's thread calls it, and whatever thread stops the server. Dropping the
    /// ticket ends the request within one step.
    ///
    /// # Errors
    /// [`ServeError::EmptyText`], [`ServeError::TextTooLong`], [`ServeError::TextsFull`], [`ServeError::QueueFull`], [`ServeError::Draining`],
    /// [`ServeError::Stopped`].
    pub fn submit_to(
        &self,
        texts: Vec<TextIds>,
        sink: impl FnOnce(Result<ServedEmbeddings, ServeError>) + Send + 'static,
    ) -> Result<EmbeddingTicket, ServeError> {
        if texts.is_empty() || texts.iter().any(TextIds::is_empty) {
            return Err(ServeError::EmptyText);
        }
        let most = self.about.encoder.max_tokens();
        if let Some(tokens) = texts.iter().map(TextIds::len).find(|tokens| *tokens > most) {
            return Err(ServeError::TextTooLong { tokens, most });
        }
        let open = OpenTexts::take(&self.texts, texts.len(), self.limit)?;
        let mut sink = Some(sink);
        let ticket = self.shared.open(Box::new(move |answer| {
            if let Some(sink) = sink.take() {
                sink(answer);
            }
        }))?;
        let mut left: Vec<usize> = (0..texts.len()).collect();
        left.sort_by_key(|&text| texts[text].len());
        let job = Job {
            ticket,
            left,
            data: vec![0.0; texts.len() * self.about.width],
            texts,
            open,
        };
        if self.commands.send(Command::Submit(job)).is_err() {
            self.shared.stop(&ServeError::Stopped);
        }
        Ok(EmbeddingTicket {
            number: ticket,
            commands: self.commands.clone(),
        })
    }
}

/// An open request. Dropping it ends the request, unless it has its answer.
#[derive(Debug)]
pub struct EmbeddingTicket {
    number: u64,
    commands: Sender<Command>,
}

impl Drop for EmbeddingTicket {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Cancel(self.number));
    }
}

struct Worker<'a, B: HostAccess> {
    embedder: Embedder<B>,
    shared: &'a Shared<ServedEmbeddings>,
    /// The first has the next turn.
    jobs: VecDeque<Job>,
    steps: u64,
    failed_in_a_row: u64,
}

impl<B: HostAccess> threads::Worker for Worker<'_, B> {
    type Command = Command;

    fn take(&mut self, command: Command) {
        match command {
            Command::Submit(job) => self.jobs.push_back(job),
            Command::Cancel(ticket) => {
                self.jobs.retain(|job| job.ticket != ticket);
                // Nothing is heard of one that has its answer.
                self.shared.send(ticket, Err(ServeError::Stopped));
            }
            Command::Wake => {}
        }
    }

    fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    fn step(&mut self) -> bool {
        let (chosen, group) = self.chosen();
        let rows: Vec<&TextIds> = chosen.iter().map(|&(job, text)| &self.jobs[job].texts[text]).collect();
        self.shared.step_begins();
        let found = self.embedder.compute(&rows, group);
        self.steps += 1;
        self.failed_in_a_row = if found.is_ok() { 0 } else { self.failed_in_a_row + 1 };
        if !self.shared.step_ends(self.figures()) {
            return false;
        }
        let width = self.embedder.model().result_width();
        match found {
            Ok(found) => {
                for (&(job, text), row) in chosen.iter().zip(found.rows.chunks_exact(width)) {
                    self.jobs[job].data[text * width..][..width].copy_from_slice(row);
                }
                // The next job has the next turn.
                self.jobs.rotate_left(1);
                self.end_done(width);
            }
            Err(error) => {
                let error = Arc::new(GenerateError::from(error));
                let mut failed: Vec<usize> = chosen.iter().map(|(job, _)| *job).collect();
                failed.dedup();
                for job in failed.into_iter().rev() {
                    if let Some(job) = self.jobs.remove(job) {
                        self.shared
                            .send(job.ticket, Err(ServeError::StepFailed(Arc::clone(&error))));
                    }
                }
            }
        }
        true
    }
}

impl<B: HostAccess> Worker<'_, B> {
    /// The texts of the next step, as places of jobs and of their texts: the longest of the job whose turn it is, and with them texts of other jobs that
    /// want steps of the same length.
    fn chosen(&mut self) -> (Vec<(usize, usize)>, Group) {
        let first = self.jobs.front();
        let longest = first.and_then(|job| job.left.last().map(|&text| job.texts[text].len()));
        let group = self.embedder.group(longest.unwrap_or(1));
        let mut chosen = Vec::new();
        for (place, job) in self.jobs.iter_mut().enumerate() {
            // Of jobs behind the first, the longest may want other steps: what they have of this length stands before them.
            let end = job.left.partition_point(|&text| job.texts[text].len() <= group.seq);
            let same = |text: &usize| self.embedder.group(job.texts[*text].len()) == group;
            let fits = job.left[..end].iter().rev().take_while(|text| same(text)).count();
            let from = end - fits.min(group.most - chosen.len());
            chosen.extend(job.left.drain(from..end).map(|text| (place, text)));
            if chosen.len() == group.most {
                break;
            }
        }
        (chosen, group)
    }

    /// Answers the jobs that have all of their texts.
    fn end_done(&mut self, width: usize) {
        let (done, left): (VecDeque<Job>, _) = self.jobs.drain(..).partition(|job| job.left.is_empty());
        self.jobs = left;
        for job in done {
            let answer = ServedEmbeddings {
                embeddings: Embeddings { data: job.data, width },
                tokens: job.texts.iter().map(TextIds::len).sum(),
                _texts: job.open,
            };
            self.shared.send(job.ticket, Ok(answer));
        }
    }

    fn figures(&self) -> Figures {
        Figures {
            running: self.jobs.len(),
            steps: self.steps,
            failed_in_a_row: self.failed_in_a_row,
            ..Figures::default()
        }
    }
}
