//! Requests on an engine with candidates against the same requests on one that reads every row.

use rocmforge_ggml::HostAccess;
use rocmforge_models::generate::{Completion, Event, Generator, Request, RequestId};
use rocmforge_models::sampling::{Mirostat, RowReason, SamplerConfig, Stage, Xtc};
use rocmforge_models::{Engine, EngineOptions, Limit, Model, ReadCounts};

use super::load::small_engine;

/// Samplers, and why some of their draws need the row.
fn samplers() -> Vec<(SamplerConfig, Option<RowReason>)> {
    let usual = SamplerConfig::default();
    let off = |config: SamplerConfig| SamplerConfig {
        top_k: 0,
        min_p: 0.0,
        top_p: 1.0,
        ..config
    };
    vec![
        (SamplerConfig::greedy(), None),
        (usual.clone(), None),
        (
            SamplerConfig {
                repeat_penalty: 1.2,
                frequency_penalty: 0.1,
                presence_penalty: 0.2,
                logit_bias: vec![(5, f32::NEG_INFINITY), (7, -2.0)],
                ..usual.clone()
            },
            None,
        ),
        (
            SamplerConfig {
                temperature: 1.3,
                ..off(usual.clone())
            },
            Some(RowReason::Draw),
        ),
        (
            SamplerConfig {
                mirostat: Some(Mirostat::default()),
                ..usual.clone()
            },
            Some(RowReason::Mirostat),
        ),
        (
            SamplerConfig {
                typical_p: 0.9,
                ..off(usual.clone())
            },
            Some(RowReason::Stage(Stage::Typical)),
        ),
        (
            SamplerConfig {
                xtc: Xtc {
                    probability: 1.0,
                    threshold: 0.05,
                },
                ..off(usual)
            },
            Some(RowReason::Stage(Stage::Xtc)),
        ),
    ]
}

/// All requests at once on a new engine, and what it read.
fn run<B: HostAccess>(
    backend: &impl Fn() -> B,
    model: &Model,
    candidates: usize,
    requests: &[Request],
) -> (Vec<Completion>, ReadCounts) {
    let options = EngineOptions {
        candidates: Some(candidates),
        cache_tokens: Limit::Auto,
        ..small_engine()
    };
    let mut engine = Engine::new(backend(), model, options).expect("the model loads");
    assert_eq!(engine.candidates(), candidates);
    engine.warm_up().expect("runs");
    let built = engine.graph_counts().built;
    let mut generator = Generator::new(engine, model.tokenizer().expect("the file has one"));
    let sent = requests
        .iter()
        .map(|request| generator.submit(request.clone()).expect("taken"));
    let sent: Vec<RequestId> = sent.collect();
    let mut completions: Vec<Option<Completion>> = vec![None; requests.len()];
    let mut tokens = vec![Vec::new(); requests.len()];
    let mut first = vec![Vec::new(); requests.len()];
    while generator.requests() > 0 {
        for event in generator.step().expect("runs") {
            let index = sent.iter().position(|id| *id == event.request()).expect("one of ours");
            match event {
                Event::Prompt { logits, .. } => first[index].extend(logits),
                Event::Token { token, .. } => tokens[index].push(token),
                Event::Finished {
                    reason,
                    end,
                    text,
                    stats,
                    ..
                } => {
                    completions[index] = Some(Completion {
                        tokens: std::mem::take(&mut tokens[index]),
                        text,
                        reason,
                        end,
                        first_logits: std::mem::take(&mut first[index]),
                        scores: Vec::new(),
                        stats,
                    });
                }
            }
        }
    }
    assert_eq!(
        generator.engine().graph_counts().built,
        built,
        "no graph is built after the warm-up"
    );
    let completions = completions
        .into_iter()
        .map(|completion| completion.expect("it has ended"));
    (completions.collect(), generator.engine().read_counts().clone())
}

/// Every request gives the same tokens; what needs rows reads them and is counted, and nothing else is.
pub(crate) fn check_candidates<B: HostAccess>(backend: impl Fn() -> B, model: &Model, draws: usize) {
    const CANDIDATES: usize = 64;
    for (number, (sampler, why)) in samplers().into_iter().enumerate() {
        let requests: Vec<Request> = (0..2)
            .map(|index| Request {
                sampler: SamplerConfig {
                    seed: index,
                    ..sampler.clone()
                },
                max_tokens: draws,
                ignore_end: true,
                logprobs: 5,
                first_logits: 9,
                ..Request::new(vec![7 + index as u32, 99, 200, 31])
            })
            .collect();
        let (expected, whole) = run(&backend, model, 0, &requests);
        let (found, read) = run(&backend, model, CANDIDATES, &requests);
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.ids(), expected.ids(), "sampler {number}");
            assert_eq!(found.reason, expected.reason);
            assert_eq!(found.first_logits, expected.first_logits);
            for (found, expected) in found.tokens.iter().zip(&expected.tokens) {
                assert!(
                    (found.logprob - expected.logprob).abs() < 2e-5,
                    "{found:?} {expected:?}"
                );
                let pairs = found.top.iter().zip(&expected.top);
                assert!(pairs.into_iter().all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 2e-5));
                assert_eq!((found.top.len(), expected.top.len()), (5, 5));
            }
        }
        let rows = (2 * draws) as u64;
        assert_eq!(whole.rows.get(&RowReason::Wanted), Some(&rows));
        assert_eq!((whole.candidates, read.candidates), (0, rows), "sampler {number}");
        match why {
            None => {
                assert!(read.rows.is_empty(), "sampler {number}: {read:?}");
                assert_eq!(read.bytes, rows * 12 * CANDIDATES as u64);
            }
            Some(why) => {
                let reasons: Vec<_> = read.rows.keys().copied().collect();
                assert_eq!(reasons, [why], "sampler {number}: {read:?}");
            }
        }
    }
    // Probabilities after the sampler's stages: of candidates where these are all that is left, else of the row.
    for (number, (sampler, why)) in samplers().into_iter().enumerate() {
        let request = Request {
            sampler,
            max_tokens: draws,
            ignore_end: true,
            logprobs: 5,
            sampler_logprobs: true,
            ..Request::new(vec![7, 99, 200, 31])
        };
        let (expected, _) = run(&backend, model, 0, std::slice::from_ref(&request));
        let (found, read) = run(&backend, model, CANDIDATES, &[request]);
        assert_eq!(found[0].tokens, expected[0].tokens, "sampler {number}");
        assert_eq!(read.rows.is_empty(), why.is_none(), "sampler {number}: {read:?}");
    }
    // More alternatives than there are candidates.
    let request = Request {
        sampler: SamplerConfig::greedy(),
        max_tokens: 2,
        ignore_end: true,
        logprobs: CANDIDATES + 1,
        ..Request::new(vec![3, 4])
    };
    let (found, read) = run(&backend, model, CANDIDATES, &[request]);
    assert!(found[0].tokens.iter().all(|token| token.top.len() == CANDIDATES + 1));
    assert_eq!(read.rows.get(&RowReason::Alternatives), Some(&2));
}
