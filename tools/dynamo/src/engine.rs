//! The engine: `LLMEngine` over a server thread of ours.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use clap::Args;
use dynamo_backend_common::{
    BackendError, CompletionUsage, DynamoError, EngineConfig, ErrorType, GenerateContext, LLMEngine, LLMEngineOutput,
    LLMEngineOutputExt, LlmRegistration, PreprocessedRequest, PromptTokensDetails, StopReason, TopLogprob, usage,
};
use futures::stream::BoxStream;
use rocmforge::device;
use rocmforge_ggml::{Activations, CpuBackend, HipGgmlBackend, HostAccess, HybridBackend};
use rocmforge_models::generate::{Event, FinishReason, Generator, Stats, Token};
use rocmforge_models::serve::{Handle, ServeError, ServeOptions, Server, Ticket};
use rocmforge_models::{Engine, EngineOptions, Limit, Model, ModelError};
use tokio::sync::mpsc;

use crate::request;

/// What is served, and on what.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// GGUF file, or directory of Hugging Face.
    #[arg(long)]
    pub model: PathBuf,
    /// Name for clients; the file's or directory's without it.
    #[arg(long)]
    pub model_name: Option<String>,
    /// `cpu`, or a device: `hip:0`, `nvidia:0`, `sim`. What does not fit on a device is computed on the CPU.
    #[arg(long, default_value = "cpu")]
    pub device: String,
    /// Longest sequence in tokens; without it the longest that fits.
    #[arg(long)]
    pub ctx: Option<usize>,
    /// Computes products with quantised weights without rounding activations to 8 bits.
    #[arg(long)]
    pub exact: bool,
    /// Most sequences in one step.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel: u16,
}

impl Options {
    /// The name for clients.
    #[must_use]
    pub fn served_name(&self) -> String {
        let of_file = || Some(self.model.file_stem()?.to_string_lossy().into_owned());
        self.model_name
            .clone()
            .or_else(of_file)
            .unwrap_or_else(|| "model".to_owned())
    }

    const fn activations(&self) -> Activations {
        match self.exact {
            true => Activations::F32,
            false => Activations::Int8,
        }
    }

    fn engine_options(&self) -> EngineOptions {
        EngineOptions {
            max_context: self.ctx.map_or(Limit::Auto, Limit::Tokens),
            max_sequences: usize::from(self.parallel),
            ..EngineOptions::default()
        }
    }
}

/// A model of ours as an engine of Dynamo.
pub struct ModelEngine {
    options: Options,
    /// The server thread, between `start` and `cleanup`.
    server: Mutex<Option<Server>>,
}

impl ModelEngine {
    /// An engine that loads its model when it is started.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            server: Mutex::new(None),
        }
    }

    /// Puts `server` in the place of the one that is there.
    fn replace(&self, server: Option<Server>) -> Option<Server> {
        let mut place = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, server)
    }

    fn handle(&self) -> Option<Handle> {
        let place = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().map(Server::handle)
    }
}

#[async_trait]
impl LLMEngine for ModelEngine {
    async fn start(&self, _worker_id: u64) -> Result<EngineConfig, DynamoError> {
        let options = self.options.clone();
        let loading = tokio::task::spawn_blocking(move || load(&options));
        let loaded = loading.await.map_err(|error| failure(BackendError::Unknown, error))?;
        let (server, registration) = loaded?;
        self.replace(Some(server));
        Ok(EngineConfig {
            model: self.options.model.display().to_string(),
            served_model_name: Some(self.options.served_name()),
            llm: Some(registration),
            ..EngineConfig::default()
        })
    }

    async fn generate(
        &self,
        request: PreprocessedRequest,
        context: GenerateContext,
    ) -> Result<BoxStream<'static, Result<LLMEngineOutput, DynamoError>>, DynamoError> {
        let handle = self
            .handle()
            .ok_or_else(|| failure(BackendError::EngineShutdown, "the engine is not started"))?;
        let logprobs = request.output_options.logprobs.is_some();
        let visible = request
            .stop_conditions
            .stop_token_ids_visible
            .clone()
            .unwrap_or_default();
        let request = request::read(&request).map_err(|refused| failure(BackendError::InvalidArgument, refused))?;
        // The context bounds the events: one for each token, those of the prompt's parts, and the last.
        let (events, mut received) = mpsc::unbounded_channel();
        let ticket = handle
            .submit_to(request, move |event| drop(events.send(event)))
            .map_err(|error| serve_failure(&error))?;
        // Dropped with the stream, however that ends.
        let ends = EndsRequest(ticket);
        Ok(Box::pin(async_stream::stream! {
            let ends = ends;
            let mut sent: u32 = 0;
            loop {
                let event = tokio::select! {
                    biased;
                    () = context.stopped() => {
                        yield Ok(LLMEngineOutput::cancelled());
                        break;
                    }
                    event = received.recv() => event,
                };
                match event {
                    Some(Ok(Event::Prompt { .. })) => {}
                    Some(Ok(Event::Token { token, .. })) => {
                        sent = sent.saturating_add(1);
                        yield Ok(output(&token, logprobs));
                    }
                    Some(Ok(Event::Finished { reason, end, stats, .. })) => {
                        if let Some(token) = end.filter(|token| visible.contains(&token.id)) {
                            sent = sent.saturating_add(1);
                            yield Ok(output(&token, logprobs));
                        }
                        yield last(reason, sent, &stats);
                        break;
                    }
                    Some(Err(error)) => {
                        yield Err(serve_failure(&error));
                        break;
                    }
                    None => {
                        yield Err(failure(BackendError::StreamIncomplete, "the request ended without a last event"));
                        break;
                    }
                }
            }
            drop(ends);
        }))
    }

    async fn cleanup(&self) -> Result<(), DynamoError> {
        let Some(server) = self.replace(None) else {
            return Ok(());
        };
        // Its thread is waited for.
        let ending = tokio::task::spawn_blocking(move || drop(server));
        ending.await.map_err(|error| failure(BackendError::Unknown, error))
    }
}

/// Ends a request when it is dropped.
struct EndsRequest(Ticket);

impl Drop for EndsRequest {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A drawn token. Its text is the frontend's to make.
fn output(token: &Token, logprobs: bool) -> LLMEngineOutput {
    let likely = |(rank, &(id, logprob)): (usize, &(u32, f32))| TopLogprob {
        rank: u32::try_from(rank + 1).unwrap_or(u32::MAX),
        token_id: id,
        token: None,
        logprob: f64::from(logprob),
        bytes: None,
    };
    LLMEngineOutput {
        token_ids: vec![token.id],
        log_probs: logprobs.then(|| vec![f64::from(token.logprob)]),
        top_logprobs: logprobs.then(|| vec![token.top.iter().enumerate().map(likely).collect()]),
        ..LLMEngineOutput::default()
    }
}

/// The end of a request that sent so many tokens. The token that ended the text is among them if the request wants to see it.
fn last(reason: FinishReason, sent: u32, stats: &Stats) -> Result<LLMEngineOutput, DynamoError> {
    let stopped = |by: StopReason| LLMEngineOutput {
        stop_reason: Some(by),
        ..LLMEngineOutput::stop()
    };
    let output = match reason {
        FinishReason::EndOfText(_) => LLMEngineOutput::stop(),
        FinishReason::StopToken(id) => stopped(StopReason::Int(i64::from(id))),
        FinishReason::StopString(text) => stopped(StopReason::String(text)),
        FinishReason::MaxTokens | FinishReason::ContextFull => LLMEngineOutput::length(),
        FinishReason::Cancelled => LLMEngineOutput::cancelled(),
        reason => return Err(failure(BackendError::Unknown, format!("the request ended: {reason:?}"))),
    };
    Ok(output.with_usage(counts(sent, stats)))
}

fn counts(sent: u32, stats: &Stats) -> CompletionUsage {
    let count = |tokens: usize| u32::try_from(tokens).unwrap_or(u32::MAX);
    CompletionUsage {
        prompt_tokens_details: Some(PromptTokensDetails {
            cached_tokens: Some(count(stats.cached_tokens)),
            ..PromptTokensDetails::default()
        }),
        ..usage(count(stats.prompt_tokens), sent)
    }
}

/// Loads the model and starts its thread.
fn load(options: &Options) -> Result<(Server, LlmRegistration), DynamoError> {
    let model = Model::open(&options.model).map_err(|error| failure(BackendError::InvalidArgument, error))?;
    let activations = options.activations();
    let cpu = move || CpuBackend::new().activations(activations);
    if options.device == "cpu" {
        return start(model, options, move || Ok(cpu()));
    }
    let device = device::open(&options.device).map_err(|error| failure(BackendError::InvalidArgument, error))?;
    start(model, options, move || {
        let hip = HipGgmlBackend::new(device.backend())?.activations(activations);
        Ok(HybridBackend::new(hip, cpu()))
    })
}

fn start<B: HostAccess>(
    model: Model,
    options: &Options,
    backend: impl FnOnce() -> Result<B, ModelError> + Send + 'static,
) -> Result<(Server, LlmRegistration), DynamoError> {
    let engine_options = options.engine_options();
    let (made, context) = std::sync::mpsc::channel();
    let server = Server::start(ServeOptions::default(), move || {
        let engine = Engine::new(backend()?, &model, engine_options)?;
        let _ = made.send(engine.max_context());
        Ok(Generator::new(engine, model.tokenizer()?))
    });
    let server = server.map_err(|error| serve_failure(&error))?;
    let registration = LlmRegistration {
        context_length: context.recv().ok().and_then(|context| u32::try_from(context).ok()),
        max_num_seqs: Some(u64::from(options.parallel)),
        ..LlmRegistration::default()
    };
    Ok((server, registration))
}

fn failure(kind: BackendError, message: impl std::fmt::Display) -> DynamoError {
    DynamoError::builder()
        .error_type(ErrorType::Backend(kind))
        .message(message.to_string())
        .build()
}

fn serve_failure(error: &ServeError) -> DynamoError {
    if let ServeError::QueueFull { .. } = error {
        // Another worker may have room.
        return DynamoError::builder()
            .error_type(ErrorType::WorkerOverloaded)
            .message(error.to_string())
            .build();
    }
    let kind = match error {
        ServeError::Refused(_) => BackendError::InvalidArgument,
        ServeError::Draining | ServeError::Stopped | ServeError::StepDeadline { .. } => BackendError::EngineShutdown,
        _ => BackendError::Unknown,
    };
    failure(kind, error)
}
