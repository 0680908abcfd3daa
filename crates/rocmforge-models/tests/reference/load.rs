//! Load of many requests on one engine: they come over time, some are cancelled, the cache cannot hold them all, and a step fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rocmforge_ggml::{GgmlBackend, GgmlError, GgmlResult, HostAccess, TensorDesc, TensorId};
use rocmforge_models::generate::{Event, FinishReason, Generator, Request, RequestId};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_models::{Engine, EngineOptions, KvType, Limit, Model};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::{Hook, HookedBackend};

use super::{best, engine};

/// An engine for several sequences in a cache that cannot hold the longest of all.
pub(crate) fn small_engine() -> EngineOptions {
    EngineOptions {
        max_context: Limit::Tokens(96),
        cache_tokens: Limit::Tokens(288),
        max_sequences: 6,
        kv: KvType::F32,
        block_size: 8,
        chunk: 24,
        ..EngineOptions::default()
    }
}

/// Programs that a backend still runs before one fails: one program a step.
#[derive(Clone)]
struct FailsAfter(Arc<AtomicUsize>);

impl Hook for FailsAfter {
    fn enqueue(&mut self) -> GgmlResult<()> {
        match self.0.fetch_sub(1, Ordering::SeqCst) {
            0 => Err(GgmlError::UnknownTensor(TensorId(usize::MAX))),
            _ => Ok(()),
        }
    }
}

/// A request, and what came of it.
struct Sent {
    id: RequestId,
    prompt: Vec<u32>,
    max_tokens: usize,
    /// Tokens after which it is cancelled.
    cancel_after: Option<usize>,
    ids: Vec<u32>,
    end: Option<End>,
}

#[derive(Debug)]
enum End {
    Finished(FinishReason),
    /// Its step failed.
    Failed,
}

/// Greedy tokens of a prompt in an engine of its own.
fn alone<B: HostAccess>(engine: &mut Engine<B>, prompt: &[u32], tokens: usize) -> Vec<u32> {
    let sequence = engine.add_sequence(&prompt[..1]).expect("room");
    let mut logits = engine.prefill(sequence, prompt).expect("runs");
    let mut ids = Vec::new();
    for _ in 0..tokens {
        ids.push(best(&logits));
        logits = engine.decode(sequence, best(&logits)).expect("runs");
    }
    engine.remove(sequence).expect("there");
    ids
}

/// Bytes of the tensors below `end` that have memory of their own.
fn held<B: GgmlBackend>(backend: &B, end: usize) -> usize {
    let own = (0..end).filter_map(|id| backend.tensor_desc(TensorId(id)));
    own.filter(|desc| !desc.is_view()).map(TensorDesc::byte_size).sum()
}

/// A load on a generator, in which steps may fail.
struct Load<'a, B: HostAccess> {
    generator: &'a mut Generator<B>,
    count: usize,
    seed: u64,
    /// Looks at memory and counts after each step.
    watch: &'a dyn Fn(&Engine<B>),
    sent: Vec<Sent>,
    /// The requests in each step, by their order.
    steps: Vec<Vec<usize>>,
}

impl<B: HostAccess> Load<'_, B> {
    /// Runs all requests to their ends. No beginning is shared with a load of another `salt`: each takes the same steps, as long as none fails.
    fn run(mut self, salt: &str) -> (Vec<Sent>, Vec<Vec<usize>>) {
        let (mut rng, mut most) = (rng(self.seed), 0);
        for _ in 0..100_000 {
            for _ in 0..rng.below(3).min(self.count - self.sent.len()) {
                let length = 1 + rng.below(60);
                let max_tokens = 1 + rng.below(24);
                let prompt: Vec<u32> = (0..length).map(|_| rng.below(316) as u32).collect();
                let request = Request {
                    sampler: SamplerConfig::greedy(),
                    max_tokens,
                    ignore_end: true,
                    cache_salt: salt.to_owned(),
                    ..Request::new(prompt.clone())
                };
                self.sent.push(Sent {
                    id: self.generator.submit(request).expect("taken"),
                    prompt,
                    max_tokens,
                    cancel_after: (rng.below(5) == 0).then(|| rng.below(max_tokens)),
                    ids: Vec::new(),
                    end: None,
                });
            }
            self.step();
            for request in &self.sent {
                if request.end.is_none() && request.cancel_after.is_some_and(|after| request.ids.len() >= after) {
                    self.generator.cancel(request.id).expect("the cache knows it");
                }
            }
            let engine = self.generator.engine();
            (self.watch)(engine);
            let stats = engine.cache().counts();
            assert!(stats.free <= stats.blocks && stats.sequences <= 6, "{stats:?}");
            most = most.max(stats.sequences);
            if self.sent.len() == self.count && self.generator.requests() == 0 {
                break;
            }
        }
        // Cancelled requests have their last event with the next step.
        self.step();
        let seed = self.seed;
        assert_eq!(
            (self.sent.len(), self.generator.requests()),
            (self.count, 0),
            "seed {seed}: it does not end"
        );
        assert!(most > 3, "seed {seed}: {most} at once");
        let stats = self.generator.engine().cache().counts();
        assert_eq!((stats.sequences, stats.free), (0, stats.blocks), "seed {seed}");
        (self.sent, self.steps)
    }

    fn step(&mut self) {
        let Ok(events) = self.generator.step() else {
            for id in self.generator.end_failed() {
                self.request(id).end = Some(End::Failed);
            }
            return;
        };
        let mut computed = Vec::new();
        for event in events {
            let id = event.request();
            match event {
                Event::Prompt { .. } => computed.push(id),
                Event::Token { token, .. } => {
                    computed.push(id);
                    self.request(id).ids.push(token.id);
                }
                Event::Finished { reason, .. } => self.request(id).end = Some(End::Finished(reason)),
            }
        }
        let mut of_step: Vec<usize> = computed.into_iter().map(|id| self.index(id)).collect();
        of_step.sort_unstable();
        of_step.dedup();
        if !of_step.is_empty() {
            self.steps.push(of_step);
        }
    }

    fn index(&self, id: RequestId) -> usize {
        let found = self.sent.iter().position(|sent| sent.id == id);
        found.expect("a request of ours")
    }

    fn request(&mut self, id: RequestId) -> &mut Sent {
        let index = self.index(id);
        &mut self.sent[index]
    }
}

/// Runs `count` requests three times: each gives what it gives alone, no graph is built after the warm-up, and none is captured after the second time.
/// A step in the middle of the third time fails, and with it the requests that it had in the second, and no others. After each step what is held is
/// compared with the plan, and `within_budget` is called.
pub(crate) fn check_load<B: HostAccess>(
    backend: impl Fn() -> B,
    model: &Model,
    count: usize,
    seed: u64,
    within_budget: impl Fn(),
) {
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let hooked = HookedBackend::around(backend(), FailsAfter(Arc::clone(&left)));
    let mut engine_of_all = Engine::new(hooked, model, small_engine()).expect("the model loads");
    engine_of_all.warm_up().expect("runs");
    let warm = engine_of_all.graph_counts();
    assert!(warm.built > 0 && warm.planned >= warm.built, "{warm:?}");
    let plan = *engine_of_all.memory();
    let planned = plan.weights + plan.cache + plan.scratch;
    assert!(plan.available.is_none_or(|available| planned <= available), "{plan:?}");
    // A graph that is built later has ids beyond all others.
    let is_known = |id: &usize| engine_of_all.backend().tensor_desc(TensorId(*id)).is_some();
    let end = (0..1 << 20).rev().find(is_known).expect("tensors") + 4096;
    let of_all = held(engine_of_all.backend(), end);
    assert!(plan.cache < of_all && of_all <= planned, "{of_all} of {plan:?}");
    let mut generator = Generator::new(engine_of_all, model.tokenizer().expect("the file has one"));
    let mut one = engine(backend(), model, 128);
    let mut texts: Vec<Vec<u32>> = Vec::new();
    let mut steps: Vec<Vec<usize>> = Vec::new();
    for round in 0..3 {
        let is_last = round == 2;
        // One of several requests, at half time or later.
        let fails = (steps.len() / 2..steps.len()).find(|&step| steps[step].len() > 1);
        if is_last {
            left.store(fails.expect("such a step"), Ordering::SeqCst);
        }
        let before = generator.engine().graph_counts();
        let watch = |engine: &Engine<HookedBackend<FailsAfter, B>>| {
            let counts = engine.graph_counts();
            assert_eq!(
                (counts.built, counts.planned),
                (warm.built, warm.planned),
                "seed {seed}"
            );
            // Fewer requests go on after a fault, in steps that were not captured yet.
            let has_failed = left.load(Ordering::SeqCst) > steps.len();
            let captured = if is_last && !has_failed {
                before.captured
            } else {
                counts.built
            };
            assert!(counts.captured <= captured, "seed {seed}, time {round}: {counts:?}");
            assert_eq!(held(engine.backend(), end), of_all, "seed {seed}");
            within_budget();
        };
        let load = Load {
            generator: &mut generator,
            count,
            seed,
            watch: &watch,
            sent: Vec::new(),
            steps: Vec::new(),
        };
        let (sent, found) = load.run(&round.to_string());
        let mut failed = Vec::new();
        for (index, request) in sent.iter().enumerate() {
            if round == 0 {
                texts.push(alone(&mut one, &request.prompt, request.ids.len()));
            }
            let text = &texts[index];
            assert_eq!(request.ids, text[..request.ids.len()], "seed {seed}, request {index}");
            match request.end.as_ref().expect("an end") {
                End::Finished(FinishReason::MaxTokens) => assert_eq!(request.ids.len(), request.max_tokens),
                End::Finished(FinishReason::Cancelled) => assert!(request.cancel_after.is_some(), "{index}"),
                End::Failed => failed.push(index),
                other @ End::Finished(_) => panic!("seed {seed}, request {index}: {other:?}"),
            }
        }
        match fails.filter(|_| is_last) {
            None => {
                assert!(failed.is_empty(), "seed {seed}: {failed:?}");
                assert!(round == 0 || found == steps, "seed {seed}: the same steps");
                steps = found;
            }
            Some(step) => {
                assert_eq!(found[..step], steps[..step], "seed {seed}");
                assert_eq!(failed, steps[step], "seed {seed}: the requests of step {step}");
            }
        }
    }
}
