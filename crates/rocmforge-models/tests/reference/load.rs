//! Load of many requests on one engine: they come over time, some are cancelled, and the cache cannot hold them all.

use std::collections::BTreeMap;

use rocmforge_ggml::HostAccess;
use rocmforge_models::generate::{Event, FinishReason, Generator, Request, RequestId};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_models::{Engine, EngineOptions, KvType, Limit, Model};
use rocmforge_testkit::data::rng;

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

/// A request, and what came of it.
struct Sent {
    prompt: Vec<u32>,
    max_tokens: usize,
    /// Tokens after which it is cancelled.
    cancel_after: Option<usize>,
    ids: Vec<u32>,
    reason: Option<FinishReason>,
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

/// Runs `count` requests: each gives what it gives alone, and after the warm-up no graph is built.
pub(crate) fn check_load<B: HostAccess>(backend: impl Fn() -> B, model: &Model, count: usize, seed: u64) {
    let mut engine_of_all = Engine::new(backend(), model, small_engine()).expect("the model loads");
    engine_of_all.warm_up().expect("runs");
    let warm = engine_of_all.graph_counts();
    assert!(warm.built > 0 && warm.built == warm.planned);
    let mut generator = Generator::new(engine_of_all, model.tokenizer().expect("the file has one"));
    let mut rng = rng(seed);
    let mut sent: BTreeMap<RequestId, Sent> = BTreeMap::new();
    let mut most = 0;
    for _ in 0..100_000 {
        for _ in 0..rng.below(3).min(count - sent.len()) {
            let length = 1 + rng.below(60);
            let max_tokens = 1 + rng.below(24);
            let prompt: Vec<u32> = (0..length).map(|_| rng.below(316) as u32).collect();
            let request = Request {
                sampler: SamplerConfig::greedy(),
                max_tokens,
                ignore_end: true,
                ..Request::new(prompt.clone())
            };
            let id = generator.submit(request).expect("taken");
            let cancel_after = (rng.below(5) == 0).then(|| rng.below(max_tokens));
            sent.insert(
                id,
                Sent {
                    prompt,
                    max_tokens,
                    cancel_after,
                    ids: Vec::new(),
                    reason: None,
                },
            );
        }
        for event in generator.step().expect("runs") {
            let request = sent.get_mut(&event.request()).expect("a request of ours");
            match event {
                Event::Prompt { .. } => {}
                Event::Token { token, .. } => request.ids.push(token.id),
                Event::Finished { reason, .. } => request.reason = Some(reason),
            }
        }
        for (id, request) in &sent {
            if request.reason.is_none() && request.cancel_after.is_some_and(|after| request.ids.len() >= after) {
                generator.cancel(*id).expect("the cache knows it");
            }
        }
        let stats = generator.engine().cache().counts();
        assert!(stats.free <= stats.blocks && stats.sequences <= 6, "{stats:?}");
        most = most.max(stats.sequences);
        if sent.len() == count && generator.requests() == 0 {
            break;
        }
    }
    for event in generator.step().expect("runs") {
        if let Event::Finished { request, reason, .. } = event {
            sent.get_mut(&request).expect("a request of ours").reason = Some(reason);
        }
    }
    assert_eq!(
        (sent.len(), generator.requests()),
        (count, 0),
        "seed {seed}: it does not end"
    );
    assert!(most > 3, "seed {seed}: {most} at once");
    let counts = generator.engine().graph_counts();
    assert_eq!(
        (counts.built, counts.planned),
        (warm.built, warm.planned),
        "seed {seed}"
    );
    let mut one = engine(backend(), model, 128);
    for (id, request) in &sent {
        let expected = alone(&mut one, &request.prompt, request.ids.len());
        assert_eq!(request.ids, expected, "seed {seed}, {id:?}");
        match &request.reason {
            Some(FinishReason::MaxTokens) => assert_eq!(request.ids.len(), request.max_tokens, "{id:?}"),
            Some(FinishReason::Cancelled) => assert!(request.cancel_after.is_some(), "{id:?}"),
            reason => panic!("seed {seed}, {id:?}: {reason:?}"),
        }
    }
    let stats = generator.engine().cache().counts();
    assert_eq!((stats.sequences, stats.free), (0, stats.blocks), "seed {seed}");
}
