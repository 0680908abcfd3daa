//! Generation on random models on the CPU. The expected tokens come from the engine and the sampler, one sequence alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::reference::{check_load, log_probability};
use crate::suite::gguf_keys::{changed, tiny};
use rocmforge_ggml::CpuBackend;
use rocmforge_models::generate::{
    Completion, Event, FinishReason, GenerateError, Generator, Prompt, PromptCounts, Request, RequestId, Stats,
};
use rocmforge_models::sampling::{Sampler, SamplerConfig, SamplingError};
use rocmforge_models::tokenizer::{Piece, Tokenizer};
use rocmforge_models::{Chunk, Engine, EngineOptions, KvType, Limit, Model, ModelError, Outputs};
use rocmforge_testkit::data::rng;

/// The tiny vocabulary's `<eos>`.
const EOS: u32 = 318;

fn model() -> Model {
    tiny("llama.gguf").open()
}

pub(super) fn engine(context: usize, chunk: usize) -> Engine<CpuBackend> {
    let options = EngineOptions {
        max_context: Limit::Tokens(context),
        cache_tokens: Limit::Tokens(context),
        kv: KvType::F32,
        block_size: 4,
        chunk,
        ..EngineOptions::default()
    };
    Engine::new(CpuBackend::with_threads(1), &model(), options).expect("the model loads")
}

fn tokenizer() -> Arc<Tokenizer> {
    model().tokenizer().expect("the file has one")
}

pub(super) fn generator(context: usize, chunk: usize) -> Generator<CpuBackend> {
    Generator::new(engine(context, chunk), tokenizer())
}

/// `length` ids of text tokens.
pub(super) fn ids(seed: u64, length: usize) -> Vec<u32> {
    let mut rng = rng(seed);
    (0..length).map(|_| rng.below(316) as u32).collect()
}

/// A greedy request that only a limit ends.
pub(super) fn greedy(prompt: Vec<u32>, max_tokens: usize) -> Request {
    Request {
        sampler: SamplerConfig::greedy(),
        max_tokens,
        ignore_end: true,
        ..Request::new(prompt)
    }
}

/// The tokens of an engine that computes the whole prompt at once and then token by token.
pub(super) fn expected(prompt: &[u32], config: &SamplerConfig, tokens: usize) -> Vec<u32> {
    let mut engine = engine(512, 512);
    let mut sampler = Sampler::new(config.clone(), 0).expect("parameters");
    prompt.iter().for_each(|&id| sampler.accept(id));
    let sequence = engine.add_sequence(prompt).expect("room");
    let mut logits = engine.prefill(sequence, prompt).expect("runs");
    let mut drawn = Vec::new();
    for _ in 0..tokens {
        let id = sampler.sample(&logits).expect("a token").id;
        sampler.accept(id);
        drawn.push(id);
        logits = engine.decode(sequence, id).expect("runs");
    }
    drawn
}

/// `tokenizer.ggml.suppress_tokens`: with the best token in it the second best is drawn.
#[test]
fn suppressed_tokens_are_not_drawn() {
    let prompt = ids(5, 9);
    let first = expected(&prompt, &SamplerConfig::greedy(), 1)[0];
    let list: Vec<i32> = vec![first as i32, -1, 5_000];
    let more = [("tokenizer.ggml.suppress_tokens", list.into())];
    let model = changed(&tiny("llama.gguf").gguf(), &[], &more).expect("a model");
    let tokenizer = model.tokenizer().expect("the file has one");
    assert!(tokenizer.suppressed().iter().eq([&first]));
    let mut generator = Generator::new(engine(64, 64), tokenizer);
    let completion = generator.run(greedy(prompt.clone(), 8)).expect("tokens");
    let drawn: Vec<u32> = completion.tokens.iter().map(|token| token.id).collect();
    let banned = SamplerConfig {
        logit_bias: vec![(first, f32::NEG_INFINITY)],
        ..SamplerConfig::greedy()
    };
    assert_eq!(drawn, expected(&prompt, &banned, 8));
}

/// What came of each request.
#[derive(Default)]
struct Results(BTreeMap<RequestId, (Vec<u32>, String, Option<FinishReason>)>);

impl Results {
    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            let (ids, text, reason) = self.0.entry(event.request()).or_default();
            assert_eq!(*reason, None, "an event after the last: {event:?}");
            match event {
                Event::Prompt { .. } => {}
                Event::Token { token, .. } => {
                    ids.push(token.id);
                    text.push_str(&token.text);
                }
                Event::Finished {
                    reason: why,
                    text: rest,
                    ..
                } => {
                    text.push_str(&rest);
                    *reason = Some(why);
                }
            }
        }
    }
}

/// Whether the cache is as it was before the first request.
fn nothing_is_held(generator: &Generator<CpuBackend>) -> bool {
    let stats = generator.engine().cache().counts();
    stats.sequences == 0 && stats.free == stats.blocks
}

#[test]
fn a_request_alone_gives_the_tokens_of_the_engine() {
    for (length, chunk) in [(1, 1), (1, 16), (7, 3), (33, 5), (33, 64)] {
        let prompt = ids(length as u64, length);
        let mut generator = generator(256, chunk);
        let completion = generator.run(greedy(prompt.clone(), 12)).expect("runs");
        assert_eq!(
            completion.ids(),
            expected(&prompt, &SamplerConfig::greedy(), 12),
            "{length} {chunk}"
        );
        assert_eq!(completion.reason, FinishReason::MaxTokens);
        assert_eq!(completion.stats.prompt_tokens, length);
        assert_eq!(
            (completion.stats.cached_tokens, completion.stats.decoded_tokens),
            (0, 11)
        );
        assert!(completion.stats.prompt_tokens_per_second() > 0.0);
        assert!(completion.stats.decode_tokens_per_second() > 0.0);
        assert!(nothing_is_held(&generator));
    }
}

/// Seven requests, greedy and drawn, that come at different steps: each gives what it gives alone. In a cache that cannot hold them
/// all at once some lose their place, and go on where they were.
#[test]
fn in_a_batch_each_request_gives_what_it_gives_alone() {
    let requests: Vec<Request> = (0..7)
        .map(|index| Request {
            sampler: match index % 3 {
                0 => SamplerConfig::greedy(),
                _ => SamplerConfig {
                    seed: index,
                    repeat_penalty: 1.1,
                    ..SamplerConfig::default()
                },
            },
            ..greedy(ids(100 + index, 3 + 5 * index as usize), 20 + index as usize)
        })
        .collect();
    for (context, must_preempt) in [(512, false), (64, true)] {
        let mut generator = generator(context, 9);
        let mut results = Results::default();
        let (mut most, mut preempted, mut before) = (0, false, 0);
        let mut submitted = Vec::new();
        for request in &requests {
            submitted.push(generator.submit(request.clone()).expect("taken"));
            results.take(generator.step().expect("runs"));
        }
        for _ in 0..2000 {
            if generator.requests() == 0 {
                break;
            }
            let events = generator.step().expect("runs");
            let finished = events
                .iter()
                .filter(|event| matches!(event, Event::Finished { .. }))
                .count();
            let now = generator.engine().cache().counts().sequences;
            preempted |= now + finished < before;
            (most, before) = (most.max(now), now);
            results.take(events);
        }
        assert_eq!(generator.requests(), 0, "it does not end");
        assert!(most > 2, "{most} at once");
        assert_eq!(preempted, must_preempt, "context {context}");
        for (request, id) in requests.iter().zip(submitted) {
            let (found, _, reason) = &results.0[&id];
            let Prompt::Ids(prompt) = &request.prompt else {
                unreachable!("made above")
            };
            assert_eq!(
                *found,
                expected(prompt, &request.sampler, request.max_tokens),
                "{id:?}, context {context}"
            );
            assert_eq!(*reason, Some(FinishReason::MaxTokens));
        }
        assert!(nothing_is_held(&generator));
    }
}

#[test]
fn in_every_step_decoding_sequences_have_their_token_and_the_oldest_prompt_the_rest() {
    let mut generator = generator(256, 8);
    let first = generator.submit(greedy(ids(1, 4), 40)).expect("taken");
    generator.step().expect("runs");
    let long = generator.submit(greedy(ids(2, 30), 5)).expect("taken");
    let other = generator.submit(greedy(ids(3, 10), 5)).expect("taken");
    let mut done = BTreeMap::new();
    for step in 0..7 {
        let (mut tokens, mut computed) = (0, 1);
        for event in generator.step().expect("runs") {
            match event {
                Event::Token { request, .. } if request == first => tokens += 1,
                Event::Prompt { request, done: now, .. } => computed += now - done.insert(request, now).unwrap_or(0),
                _ => {}
            }
        }
        assert_eq!(tokens, 1, "step {step}");
        // Beside the token of `first`, 7 of the 40 tokens of prompts: 5 full steps and a rest of 5.
        let expected = [8, 8, 8, 8, 8, 6, 1][step];
        assert_eq!(computed, expected, "step {step}");
        assert!(
            done.get(&other).is_none_or(|_| done[&long] == 30),
            "step {step}: {done:?}"
        );
    }
}

/// Figures of all requests, in the order of their ends, when all have ended. Also how often one lost its place in the cache.
fn ends(generator: &mut Generator<CpuBackend>) -> (Vec<(RequestId, Stats)>, usize) {
    let (mut ends, mut lost, mut before) = (Vec::new(), 0, 0);
    while generator.requests() > 0 {
        let events = generator.step().expect("runs");
        let old = ends.len();
        ends.extend(events.into_iter().filter_map(|event| match event {
            Event::Finished { request, stats, .. } => Some((request, stats)),
            _ => None,
        }));
        let now = generator.engine().cache().counts().sequences;
        lost += usize::from(now + (ends.len() - old) < before);
        before = now;
    }
    (ends, lost)
}

#[test]
fn a_prompt_is_counted_once_however_long_it_waits() {
    let mut generator = generator(64, 16);
    generator.submit(greedy(ids(1, 40), 20)).expect("taken");
    // It does not fit beside the first.
    let waiting = generator.submit(greedy(ids(2, 30), 4)).expect("taken");
    let (ends, _) = ends(&mut generator);
    assert_eq!(ends.last().map(|(id, _)| *id), Some(waiting));
    assert_eq!(generator.prompt_counts(), PromptCounts { tokens: 70, cached: 0 });
    generator.run(greedy(ids(2, 30), 1)).expect("runs");
    assert_eq!(
        generator.prompt_counts(),
        PromptCounts {
            tokens: 100,
            cached: 28
        }
    );
}

#[test]
fn a_prompt_that_is_computed_again_was_not_cached_by_others() {
    // The first grows until the second loses its place, which it gets again soon, with what it has left in the cache.
    let mut again = 0;
    for tokens in 8..40 {
        let mut generator = generator(64, 3);
        generator.submit(greedy(ids(1, 20), tokens)).expect("taken");
        let second = generator.submit(greedy(ids(2, 36), 2)).expect("taken");
        let (ends, lost) = ends(&mut generator);
        again += lost;
        let (_, stats) = ends.iter().find(|(id, _)| *id == second).expect("it ends");
        assert_eq!(stats.cached_tokens, 0, "{tokens} tokens");
        assert_eq!(stats.drawn_tokens, 2);
        assert_eq!(generator.prompt_counts(), PromptCounts { tokens: 56, cached: 0 });
    }
    assert!(again > 0, "no prompt lost its place");
}

#[test]
fn cancelling_gives_the_cache_free() {
    let mut generator = generator(128, 16);
    let running = generator.submit(greedy(ids(1, 20), 100)).expect("taken");
    let other = generator.submit(greedy(ids(2, 5), 6)).expect("taken");
    let mut results = Results::default();
    results.take(generator.step().expect("runs"));
    results.take(generator.step().expect("runs"));
    let held = generator.engine().cache().counts();
    assert!(held.free < held.blocks);
    assert!(generator.cancel(running).expect("is there"));
    assert!(!generator.cancel(running).expect("has ended"));
    let waiting = generator.submit(greedy(ids(3, 5), 6)).expect("taken");
    assert!(generator.cancel(waiting).expect("waits"));
    while generator.requests() > 0 {
        results.take(generator.step().expect("runs"));
    }
    assert_eq!(results.0[&running].2, Some(FinishReason::Cancelled));
    assert_eq!(results.0[&waiting].2, Some(FinishReason::Cancelled));
    assert_eq!(results.0[&other].2, Some(FinishReason::MaxTokens));
    assert_eq!(results.0[&other].0, expected(&ids(2, 5), &SamplerConfig::greedy(), 6));
    assert!(nothing_is_held(&generator));
    assert!(generator.step().expect("nothing to do").is_empty());
}

#[test]
fn dropping_a_stream_cancels_its_request_only() {
    let mut generator = generator(128, 16);
    let other = generator.submit(greedy(ids(2, 5), 4)).expect("taken");
    let mut stream = generator.generate(greedy(ids(1, 20), 100)).expect("taken");
    let request = stream.request();
    for event in stream.by_ref().take(4) {
        assert_eq!(event.expect("runs").request(), request);
    }
    drop(stream);
    let mut results = Results::default();
    while generator.requests() > 0 {
        results.take(generator.step().expect("runs"));
    }
    results.take(generator.step().expect("what is left"));
    assert!(!results.0.contains_key(&request));
    // Its first tokens came while the stream ran.
    assert_eq!(results.0[&other].0, expected(&ids(2, 5), &SamplerConfig::greedy(), 4));
    assert!(nothing_is_held(&generator));

    let mut stream = generator.generate(greedy(ids(1, 20), 100)).expect("taken");
    for event in stream.by_ref().take(4) {
        event.expect("runs");
    }
    stream.cancel().expect("is there");
    assert_eq!(stream.complete().expect("ends").reason, FinishReason::Cancelled);
}

/// Ten requests' texts, streamed, are the texts of their ids; characters of several bytes are not cut.
#[test]
fn streamed_texts_are_the_texts_of_all_ids() {
    let tokenizer = tokenizer();
    let mut generator = generator(512, 64);
    let mut long = 0;
    for seed in 0..10 {
        let request = Request {
            sampler: SamplerConfig {
                seed,
                ..SamplerConfig::neutral()
            },
            ..greedy(ids(seed, 6), 50)
        };
        let completion = generator.run(request).expect("runs");
        assert_eq!(completion.tokens.len(), 50);
        // A control token ends an incomplete character before it.
        let ids = completion.ids();
        let parts = ids.split(|&id| tokenizer.is_control(id));
        assert_eq!(
            completion.text,
            parts.map(|ids| tokenizer.decode(ids)).collect::<String>()
        );
        long += completion.tokens.iter().filter(|token| token.text.is_empty()).count();
    }
    assert!(long > 0, "no token was held back");
}

#[test]
fn a_stop_string_cuts_the_text_and_is_never_shown() {
    let mut generator = generator(512, 64);
    let request = greedy(ids(5, 6), 40);
    let whole = generator.run(request.clone()).expect("runs");
    // A string that spans several tokens, from the middle of the text.
    let chars: Vec<(usize, char)> = whole.text.char_indices().collect();
    let (start, end) = (chars[chars.len() / 2].0, chars[chars.len() / 2 + 5].0);
    let stop = whole.text[start..end].to_owned();
    let first = whole.text.find(&stop).expect("it is there");
    let cut = generator
        .run(Request {
            stop: vec![String::new(), "never in it".to_owned(), stop.clone()],
            ..request
        })
        .expect("runs");
    assert_eq!(cut.text, whole.text[..first]);
    assert_eq!(cut.reason, FinishReason::StopString(stop));
    assert!(cut.tokens.len() < whole.tokens.len());
    assert_eq!(cut.ids(), whole.ids()[..cut.tokens.len()]);
}

#[test]
fn end_tokens_and_stop_tokens_end_the_text_and_are_not_in_it() {
    let mut generator = generator(512, 64);
    let prompt = ids(5, 6);
    let ends = Request {
        ignore_end: false,
        sampler: SamplerConfig {
            logit_bias: vec![(EOS, 1000.0)],
            ..SamplerConfig::greedy()
        },
        ..greedy(prompt.clone(), 3)
    };
    let completion = generator.run(ends.clone()).expect("runs");
    assert_eq!(completion.reason, FinishReason::EndOfText(EOS));
    assert!(completion.tokens.is_empty() && completion.text.is_empty());
    let ignored = generator
        .run(Request {
            ignore_end: true,
            ..ends
        })
        .expect("runs");
    assert_eq!(ignored.ids(), [EOS; 3]);
    assert_eq!(ignored.reason, FinishReason::MaxTokens);
    // Who sums log-probabilities needs that of the end, too.
    let end = completion.end.expect("a token ended it");
    assert_eq!((end.id, end.logprob), (EOS, ignored.tokens[0].logprob));
    assert_eq!(ignored.end, None);

    let drawn = expected(&prompt, &SamplerConfig::greedy(), 10);
    let stop = drawn[6];
    let first = drawn.iter().position(|&id| id == stop).expect("it is there");
    let stopped = generator
        .run(Request {
            stop_tokens: vec![stop],
            ..greedy(prompt, 20)
        })
        .expect("runs");
    assert_eq!(stopped.reason, FinishReason::StopToken(stop));
    assert_eq!(stopped.ids(), drawn[..first]);
}

#[test]
fn limits_of_tokens_and_of_the_context() {
    let mut generator = generator(32, 8);
    for max_tokens in [0, 1, 5] {
        let completion = generator.run(greedy(ids(9, 10), max_tokens)).expect("runs");
        assert_eq!(completion.tokens.len(), max_tokens);
        assert_eq!(completion.reason, FinishReason::MaxTokens);
    }
    // The last token is drawn from the logits of the context's last place.
    for length in [1, 31, 32] {
        let completion = generator.run(greedy(ids(9, length), usize::MAX)).expect("runs");
        assert_eq!(completion.reason, FinishReason::ContextFull, "{length}");
        assert_eq!(completion.tokens.len(), 33 - length);
    }
    assert!(nothing_is_held(&generator));
}

#[test]
fn a_prompt_that_begins_as_an_earlier_one_shares_its_cache() {
    let mut generator = generator(256, 16);
    let prompt = ids(21, 22);
    let first = generator.run(greedy(prompt.clone(), 6)).expect("runs");
    assert_eq!(first.stats.cached_tokens, 0);
    // Blocks of 4: of the same 22 tokens 20 are there.
    let again = generator.run(greedy(prompt.clone(), 6)).expect("runs");
    assert_eq!((again.stats.cached_tokens, again.ids()), (20, first.ids()));
    // A follow-up of 28 cached and 3 further tokens; the last drawn token was never computed.
    let mut longer = prompt;
    longer.extend(first.ids());
    longer.extend(ids(22, 3));
    let follow_up = generator.run(greedy(longer.clone(), 6)).expect("runs");
    assert_eq!(follow_up.stats.cached_tokens, 24);
    assert_eq!(follow_up.ids(), expected(&longer, &SamplerConfig::greedy(), 6));
    // A prompt that is cached to its last token: that one is computed for its logits.
    let whole = generator.run(greedy(longer[..24].to_vec(), 2)).expect("runs");
    assert_eq!(whole.stats.cached_tokens, 20);
}

#[test]
fn requests_of_different_salts_share_nothing() {
    let mut generator = generator(256, 16);
    let request = |salt: &str| Request {
        cache_salt: salt.to_owned(),
        ..greedy(ids(21, 22), 6)
    };
    let mut texts = Vec::new();
    for (salt, cached) in [("", 0), ("one", 0), ("two", 0), ("one", 20), ("", 20)] {
        let done = generator.run(request(salt)).expect("runs");
        assert_eq!(done.stats.cached_tokens, cached, "{salt}");
        texts.push(done.ids());
    }
    assert!(texts.iter().all(|text| *text == texts[0]));
}

#[test]
fn a_request_that_is_refused_or_fails_leaves_the_others_alone() {
    let mut generator = generator(32, 8);
    let good = generator.submit(greedy(ids(1, 8), 10)).expect("taken");
    let error = generator.submit(greedy(ids(1, 33), 1)).expect_err("too long");
    assert!(
        matches!(
            error,
            GenerateError::PromptTooLong {
                tokens: 33,
                context: 32
            }
        ),
        "{error}"
    );
    let error = generator.submit(greedy(Vec::new(), 1)).expect_err("empty");
    assert!(matches!(error, GenerateError::EmptyPrompt), "{error}");
    let error = generator.submit(Request::new("")).expect_err("empty");
    assert!(matches!(error, GenerateError::EmptyPrompt), "{error}");
    let error = generator.submit(greedy(vec![1, 320], 1)).expect_err("no such token");
    assert!(
        matches!(
            error,
            GenerateError::Model(ModelError::TokenOutOfRange { id: 320, vocab: 320 })
        ),
        "{error}"
    );
    let sampler = SamplerConfig {
        top_p: f32::NAN,
        ..SamplerConfig::default()
    };
    let wrong = Request {
        sampler,
        ..greedy(ids(1, 3), 1)
    };
    let error = generator.submit(wrong).expect_err("out of range");
    assert!(
        matches!(
            error,
            GenerateError::Sampling(SamplingError::Parameter { name: "top_p", .. })
        ),
        "{error}"
    );
    let banned = Request {
        sampler: SamplerConfig {
            logit_bias: (0..320).map(|id| (id, f32::NEG_INFINITY)).collect(),
            ..SamplerConfig::greedy()
        },
        ..greedy(ids(2, 3), 5)
    };
    let fails = generator.submit(banned).expect("taken");
    let mut results = Results::default();
    while generator.requests() > 0 {
        results.take(generator.step().expect("runs"));
    }
    assert_eq!(
        results.0[&fails].2,
        Some(FinishReason::Failed(SamplingError::NothingLeft(320)))
    );
    assert_eq!(results.0[&good].0, expected(&ids(1, 8), &SamplerConfig::greedy(), 10));
    assert!(nothing_is_held(&generator));
}

#[test]
fn control_tokens_in_a_text_are_text() {
    let generator = generator(128, 64);
    let text = generator.encode(&"ab<eos>".into()).expect("a text");
    assert!(!text.contains(&EOS) && text.len() > 3, "{text:?}");
    let piece = |text: &str, trusted| Piece {
        text: text.to_owned(),
        trusted,
    };
    let pieces = vec![piece("<eos>", false), piece("<eos>", true)];
    let ids = generator.encode(&pieces.into()).expect("pieces");
    assert_eq!(ids.iter().filter(|&&id| id == EOS).count(), 1);
    assert_eq!(ids.last(), Some(&EOS));
}

/// Chunks that take turns, a random cache and random requests: all end, and each gives what it gives alone.
#[test]
fn random_batches_end_and_give_what_each_request_gives_alone() {
    for seed in 0..12 {
        let mut rng = rng(seed);
        let (context, chunk) = (24 + rng.below(60), 1 + rng.below(12));
        let mut generator = generator(context, chunk);
        let mut expected_of = BTreeMap::new();
        let mut results = Results::default();
        for number in 0..8 {
            let prompt = ids(seed * 10 + number / 2, 1 + rng.below(context));
            let max_tokens = 1 + rng.below(12);
            let tokens = max_tokens.min(context + 1 - prompt.len());
            let id = generator.submit(greedy(prompt.clone(), max_tokens)).expect("taken");
            expected_of.insert(id, expected(&prompt, &SamplerConfig::greedy(), tokens));
            for _ in 0..rng.below(4) {
                results.take(generator.step().expect("runs"));
            }
        }
        for _ in 0..5000 {
            results.take(generator.step().expect("runs"));
            if generator.requests() == 0 {
                break;
            }
        }
        assert_eq!(generator.requests(), 0, "seed {seed}: it does not end");
        for (id, ids) in expected_of {
            assert_eq!(results.0[&id].0, ids, "seed {seed}, {id:?}");
        }
        assert!(nothing_is_held(&generator), "seed {seed}");
    }
}

#[test]
fn a_load_of_many_requests_builds_no_graph_and_gives_what_each_gives_alone() {
    for (seed, name) in [(1, "llama.gguf"), (2, "gemma3.gguf"), (3, "phi3.gguf")] {
        let model = tiny(name).open();
        check_load(|| CpuBackend::with_threads(1), &model, 64, seed, || {});
    }
}

#[test]
fn a_completion_has_a_text_for_a_text() {
    let mut generator = generator(128, 64);
    let completion: Completion = generator
        .run(Request {
            max_tokens: 8,
            sampler: SamplerConfig::greedy(),
            ..Request::new("banana")
        })
        .expect("runs");
    let prompt = generator.encode(&"banana".into()).expect("a text");
    assert_eq!(prompt.len(), 3); // ba na na
    assert_eq!(completion.stats.prompt_tokens, 3);
    let ids = completion.ids();
    let expected = expected(&prompt, &SamplerConfig::greedy(), ids.len());
    assert_eq!(ids, expected);
}

#[test]
fn tokens_of_a_prompt_have_the_log_probabilities_of_the_engines_rows() {
    let prompt = ids(31, 37);
    let mut engine = engine(512, 512);
    let sequence = engine.add_sequence(&prompt).expect("room");
    let chunk = Chunk {
        sequence,
        tokens: &prompt,
        outputs: Outputs::All,
    };
    let rows = engine.step(&[chunk]).expect("runs");
    let expected: Vec<f64> = (rows.rows().zip(&prompt[1..]))
        .map(|(row, id)| log_probability(row, *id))
        .collect();
    for (chunk, candidates) in [(512, 0), (7, 0), (16, 8)] {
        let options = EngineOptions {
            max_context: Limit::Tokens(128),
            block_size: 4,
            chunk,
            candidates: Some(candidates),
            kv: KvType::F32,
            ..EngineOptions::default()
        };
        let engine = Engine::new(CpuBackend::with_threads(1), &model(), options).expect("the model loads");
        let mut generator = Generator::new(engine, tokenizer());
        let plain = generator.run(greedy(prompt.clone(), 3)).expect("runs");
        assert!(plain.scores.is_empty());
        let request = Request {
            prompt_logprobs: Some(2),
            ..greedy(prompt.clone(), 3)
        };
        // The second is not shortened by the beginning that the first left in the cache.
        for _ in 0..2 {
            let scored = generator.run(request.clone()).expect("runs");
            assert_eq!(scored.ids(), plain.ids(), "chunk {chunk}");
            assert_eq!(scored.stats.cached_tokens, 0);
            let scores = scored.scores.iter();
            assert_eq!(scores.clone().map(|score| score.id).collect::<Vec<_>>(), prompt[1..]);
            for (place, (score, expected)) in scores.zip(&expected).enumerate() {
                assert!(
                    (f64::from(score.logprob) - expected).abs() < 1e-4,
                    "place {place}: {score:?}, {expected}"
                );
                assert_eq!(score.top.len(), 2);
            }
        }
    }
}

#[test]
fn log_probabilities_of_prompts_build_no_graph_after_a_warm_up() {
    for (sequences, chunk) in [(4, 16), (1, 8), (16, 8)] {
        let options = EngineOptions {
            max_context: Limit::Tokens(128),
            max_sequences: sequences,
            chunk,
            ..EngineOptions::default()
        };
        let mut engine = Engine::new(CpuBackend::with_threads(1), &model(), options).expect("the model loads");
        engine.warm_up().expect("runs");
        let warm = engine.graph_counts().built;
        let mut generator = Generator::new(engine, tokenizer());
        let scored = |length: usize| Request {
            prompt_logprobs: Some(1),
            ..greedy(ids(3, length), 2)
        };
        for length in 1..=40 {
            let completion = generator.run(scored(length)).expect("runs");
            assert_eq!(completion.scores.len(), length - 1);
        }
        // Beside others, some of which want the same.
        let lengths = [40, 1, 17, 5, 30, 2];
        let mut scores: Vec<(RequestId, usize)> = Vec::new();
        for (index, length) in lengths.into_iter().enumerate() {
            let request = match index % 3 {
                2 => greedy(ids(3, length), 8),
                _ => scored(length),
            };
            scores.push((generator.submit(request).expect("a request"), 0));
        }
        while generator.requests() > 0 || generator.has_events() {
            for event in generator.step().expect("runs") {
                let of_request = scores.iter_mut().find(|(id, _)| *id == event.request());
                if let (Event::Prompt { scores, .. }, Some((_, count))) = (&event, of_request) {
                    *count += scores.len();
                }
            }
        }
        let counts: Vec<usize> = scores.into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [39, 0, 0, 4, 29, 0]);
        let built = generator.engine().graph_counts().built;
        assert_eq!(built, warm, "{sequences} sequences, chunks of {chunk}");
    }
}

#[test]
fn requests_of_clients_take_turns() {
    let options = EngineOptions {
        max_context: Limit::Tokens(64),
        max_sequences: 2,
        chunk: 16,
        ..EngineOptions::default()
    };
    let engine = Engine::new(CpuBackend::with_threads(1), &model(), options).expect("the model loads");
    let mut generator = Generator::new(engine, tokenizer());
    let submit = |generator: &mut Generator<CpuBackend>, client: &str| {
        let request = Request {
            client: client.to_owned(),
            ..greedy(ids(3, 5), 4)
        };
        generator.submit(request).expect("a request")
    };
    let mut asked: Vec<RequestId> = (0..20).map(|_| submit(&mut generator, "many")).collect();
    // Two of them run when another client asks for one answer, and a third for two.
    let mut ended = Vec::new();
    let mut step = |generator: &mut Generator<CpuBackend>| {
        for event in generator.step().expect("runs") {
            if let Event::Finished { request, .. } = event {
                ended.push(request);
            }
        }
    };
    step(&mut generator);
    let others = [
        submit(&mut generator, "one"),
        submit(&mut generator, "two"),
        submit(&mut generator, "two"),
    ];
    while generator.requests() > 0 || generator.has_events() {
        step(&mut generator);
    }
    // A turn has one request of each client, and a client's own keep their order.
    asked.splice(2..2, [others[0], others[1]]);
    asked.splice(5..5, [others[2]]);
    assert_eq!(ended, asked);
}
