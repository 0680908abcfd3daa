//! Caches by kind of layer: what layers with a window give far beyond it, beside a step of all tokens, in which nothing is released.

use std::collections::BTreeMap;

use rocmforge_attention::paged::BlockTable;
use rocmforge_ggml::{Activations, CpuBackend, HipGgmlBackend, HostAccess};
use rocmforge_gguf::{Gguf, TensorType};
use rocmforge_models::generate::{Event, Generator, Request};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_models::{Chunk, Engine, EngineOptions, KvType, Limit, Model, Outputs, SequenceId};
use rocmforge_runtime::{Bytes, Policy};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::{LeaseOptions, gpu, gpu_with};
use serde_json::{Map, Value, json};

use crate::reference::random_file;
use crate::reference::{SAME, Tiny, best};
use crate::suite::cache_types::{SMALL, nmse};
use crate::suite::directory::Export;
use crate::suite::serve::{Fault, planted};

fn gemma() -> Model {
    let tiny = Tiny::all().into_iter().find(|tiny| tiny.file == "gemma3.gguf");
    tiny.expect("a committed model").open()
}

/// A random model that has a window of 16 on every layer, or on all but the first.
fn with_settings(file: &str) -> Model {
    let windowed = |tiny: &Tiny| tiny.file == file && tiny.config.contains_key("sliding_window");
    let tiny = Tiny::with_settings().into_iter().find(windowed).expect("a fixture");
    as_directory(tiny.gguf(), tiny.config)
}

/// A model of a GGUF as a directory, with settings over its own.
pub(super) fn as_directory(gguf: Gguf, settings: Map<String, Value>) -> Model {
    let export = Export::new(gguf).expect("a model of a directory");
    let mut config = export.config();
    config.as_object_mut().expect("an object").extend(settings);
    let directory = tempfile::tempdir().expect("a directory");
    export.write(directory.path(), &config);
    Model::open(directory.path()).expect("a model")
}

fn ids(seed: u64, length: usize) -> Vec<u32> {
    let mut rng = rng(seed);
    (0..length).map(|_| rng.below(316) as u32).collect()
}

fn options(context: usize, chunk: usize) -> EngineOptions {
    EngineOptions {
        max_context: Limit::Tokens(context),
        max_sequences: 4,
        kv: KvType::F32,
        block_size: 4,
        chunk,
        ..EngineOptions::default()
    }
}

/// The logits of each token, all computed in one step.
fn at_once(model: &Model, tokens: &[u32]) -> Vec<Vec<f32>> {
    let options = EngineOptions {
        max_sequences: 1,
        ..options(tokens.len(), tokens.len())
    };
    let mut engine = Engine::new(CpuBackend::with_threads(2), model, options).expect("the model loads");
    let sequence = engine.add_sequence(&[]).expect("room");
    let chunk = Chunk {
        sequence,
        tokens,
        outputs: Outputs::All,
    };
    let logits = engine.step(&[chunk]).expect("runs");
    logits.rows().map(<[f32]>::to_vec).collect()
}

fn near(found: &[f32], expected: &[f32], what: &str) {
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let worst = differences.fold(0.0, |worst: f32, d| if d > worst || d.is_nan() { d } else { worst });
    assert!(worst < SAME, "{what}: {worst}");
}

/// Tokens in chunks of up to 7, each row beside `expected` of the whole.
fn run<B: HostAccess>(engine: &mut Engine<B>, sequence: SequenceId, tokens: &[u32], expected: &[Vec<f32>]) {
    let done = engine.cached_tokens(sequence).expect("there");
    let mut at = done;
    for tokens in tokens[done..].chunks(7) {
        let chunk = Chunk {
            sequence,
            tokens,
            outputs: Outputs::All,
        };
        for row in engine.step(&[chunk]).expect("runs").rows() {
            near(row, &expected[at], &format!("token {at} of {}", expected.len()));
            at += 1;
        }
    }
}

/// A long sequence, forks, a prefix that is shared, blocks that move, and a return to an earlier token.
pub(super) fn check_windows<B: HostAccess>(backend: B, model: &Model, pools: usize, length: usize) {
    let mut engine = Engine::new(backend, model, options(length, 7)).expect("the model loads");
    let tokens = ids(1, length);
    let other = [&tokens[..length / 2], &ids(2, length / 2)[..]].concat();
    let expected = at_once(model, &tokens);
    let expected_other = at_once(model, &other);

    let first = engine.add_sequence(&tokens).expect("room");
    run(&mut engine, first, &tokens[..length / 2], &expected);
    let fork = engine.fork(first).expect("there");
    run(&mut engine, first, &tokens, &expected);
    run(&mut engine, fork, &other, &expected_other);
    let tables = engine.cache().tables(first).expect("there");
    assert_eq!(tables.len(), pools);
    // The next token sees 16: blocks of 4, of which the first may begin before.
    let held = |table: &BlockTable| table.blocks().len();
    assert!(tables.iter().any(|table| held(table) <= 5), "{tables:?}");

    // Blocks of the end of both are cached still: what a prompt shares begins where its window is.
    engine.remove(first).expect("there");
    let again = engine.add_sequence(&tokens).expect("room");
    assert_eq!(engine.cached_tokens(again).expect("there"), (length - 1) / 4 * 4);
    run(&mut engine, again, &tokens, &expected);
    engine.defragment().expect("runs");
    let twin = engine.fork(fork).expect("there");
    // Back where no window is: what is cached is kept, the rest computed again.
    let back = length / 2 + 3;
    let left = engine.roll_back(twin, back).expect("there");
    assert!(left <= back && left == engine.cached_tokens(twin).expect("there"));
    engine.remove(fork).expect("there");
    run(&mut engine, twin, &other, &expected_other);
    for sequence in [again, twin] {
        engine.remove(sequence).expect("there");
    }
    let stats = engine.cache().counts();
    assert_eq!(stats.free, stats.blocks);
}

/// A fork writes into a block of its own; that another sequence then finds no room must not leave that block without its copy.
#[test]
fn a_fork_in_a_step_that_fails_keeps_its_tokens() {
    let model = gemma();
    let options = EngineOptions {
        cache_tokens: Limit::Tokens(16),
        ..options(16, 16)
    };
    let mut engine = Engine::new(CpuBackend::with_threads(2), &model, options).expect("the model loads");
    let tokens = ids(3, 4);
    let expected = at_once(&model, &tokens);
    let first = engine.add_sequence(&[]).expect("room");
    engine.prefill(first, &tokens[..3]).expect("runs");
    let fork = engine.fork(first).expect("there");
    let other = engine.add_sequence(&[]).expect("room");
    let chunk = |sequence, tokens| Chunk {
        sequence,
        tokens,
        outputs: Outputs::Last,
    };
    let more = ids(4, 12);
    engine
        .step(&[chunk(fork, &tokens[3..]), chunk(other, &more)])
        .expect_err("no room for both");
    for sequence in [fork, first] {
        assert_eq!(engine.cached_tokens(sequence).expect("there"), 3);
        near(
            &engine.decode(sequence, tokens[3]).expect("runs"),
            &expected[3],
            "after the failed step",
        );
    }
}

/// The copy of a block fails in one of two pools, or the step after both copies: all is as it was before.
#[test]
fn a_fork_whose_block_cannot_be_copied_keeps_its_tokens() {
    let model = gemma();
    let tokens = ids(5, 7);
    let expected = at_once(&model, &tokens);
    for fault in [2, 3, 4] {
        let backend = planted(&[(fault, Fault::Fail)]);
        let mut engine = Engine::new(backend, &model, options(16, 16)).expect("the model loads");
        let first = engine.add_sequence(&[]).expect("room");
        engine.prefill(first, &tokens[..3]).expect("runs");
        let fork = engine.fork(first).expect("there");
        let free = engine.cache().free_blocks();
        let chunk = Chunk {
            sequence: fork,
            tokens: &tokens[3..],
            outputs: Outputs::Last,
        };
        engine.step(&[chunk]).expect_err("planted");
        let now = engine.cache().free_blocks();
        // Copies that were made stay.
        let held = |pool: usize| usize::from(fault - 2 > pool);
        assert_eq!([now.0[0] + held(0), now.0[1] + held(1)], free.0[..], "program {fault}");
        for sequence in [fork, first] {
            assert_eq!(engine.cached_tokens(sequence).expect("there"), 3);
            near(
                &engine.decode(sequence, tokens[3]).expect("runs"),
                &expected[3],
                "after the failed copy",
            );
        }
    }
}

#[test]
fn far_beyond_the_window_logits_are_those_of_one_step() {
    for (model, pools) in [
        (gemma(), 2),
        (with_settings("qwen2.gguf"), 2),
        (with_settings("llama.gguf"), 1),
    ] {
        check_windows(CpuBackend::with_threads(2), &model, pools, 200);
    }
    let gpu = gpu();
    let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    check_windows(backend, &gemma(), 2, 84);
}

/// Heads for which there are kernels with keys in parts and on the matrix unit, in f16: chunks of a prompt, then token by token, past a window of 40.
#[test]
fn windows_of_a_device_in_f16_are_near_the_exact_ones() {
    let Value::Object(settings) = json!({
        "model_type": "mistral",
        "sliding_window": 40,
        "max_position_embeddings": 512,
    }) else {
        unreachable!("an object")
    };
    let model = as_directory(random_file(SMALL, TensorType::F32), settings);
    let tokens: Vec<u32> = ids(3, 180).iter().map(|id| id % 160).collect();
    let expected = at_once(&model, &tokens);
    let gpu = gpu();
    for (activations, bound) in [(Activations::F32, 1e-5), (Activations::Int8, 2e-3)] {
        let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let options = EngineOptions {
            kv: KvType::F16,
            block_size: 16,
            ..options(tokens.len(), 32)
        };
        let mut engine = Engine::new(backend.activations(activations), &model, options).expect("the model loads");
        let sequence = engine.add_sequence(&[]).expect("room");
        let mut rows = Vec::new();
        let (prompt, rest) = tokens.split_at(150);
        for tokens in prompt.chunks(32).chain(rest.chunks(1)) {
            let chunk = Chunk {
                sequence,
                tokens,
                outputs: Outputs::All,
            };
            rows.extend(engine.step(&[chunk]).expect("runs").rows().map(<[f32]>::to_vec));
        }
        let difference = nmse(&rows, &expected);
        println!("{activations:?}: {difference:.1e}");
        assert!(
            difference > 0.0 && difference < bound,
            "{activations:?}: {difference:.1e}"
        );
    }
}

/// Requests of different lengths on a card that has room for the windows of few: each gives what it gives alone.
#[test]
fn on_a_small_card_requests_wait_for_windows() {
    let model = gemma();
    let all = EngineOptions {
        max_sequences: 6,
        cache_tokens: Limit::Auto,
        ..options(96, 12)
    };
    let requests: Vec<Vec<u32>> = (0..6).map(|seed| ids(10 + seed, 20 + 9 * seed as usize)).collect();
    let alone: Vec<Vec<u32>> = requests
        .iter()
        .map(|prompt| {
            let mut engine = Engine::new(CpuBackend::with_threads(2), &model, options(96, 96)).expect("loads");
            let sequence = engine.add_sequence(prompt).expect("room");
            let mut logits = engine.prefill(sequence, prompt).expect("runs");
            let mut drawn = Vec::new();
            for _ in 0..8 {
                drawn.push(best(&logits));
                logits = engine.decode(sequence, best(&logits)).expect("runs");
            }
            drawn
        })
        .collect();
    // What one sequence needs, and the windows of some.
    let lease = gpu();
    let backend = HipGgmlBackend::new(lease.backend()).expect("kernels");
    let one = EngineOptions {
        max_sequences: 6,
        cache_tokens: Limit::Tokens(96),
        ..all
    };
    let plan = *Engine::new(backend, &model, one).expect("room").memory();
    drop(lease);
    let needed = plan.weights + plan.cache + plan.scratch;
    let lease = gpu_with(LeaseOptions {
        policy: Policy::fixed(Bytes(needed as u64 * 17 / 16)),
        ..LeaseOptions::default()
    });
    let backend = HipGgmlBackend::new(lease.backend()).expect("kernels");
    let engine = Engine::new(backend, &model, all).expect("room");
    let blocks: Vec<usize> = engine.cache().allocators().map(|pool| pool.capacity()).collect();
    println!("{:?}, blocks {blocks:?}", engine.memory());
    // Blocks for 16 + 12 tokens and two more: less than six times.
    assert!(blocks.iter().any(|&blocks| (9..54).contains(&blocks)), "{blocks:?}");
    let mut generator = Generator::new(engine, model.tokenizer().expect("the file has one"));
    let mut sent = BTreeMap::new();
    for (prompt, alone) in requests.into_iter().zip(alone) {
        let request = Request {
            sampler: SamplerConfig::greedy(),
            max_tokens: 8,
            ignore_end: true,
            ..Request::new(prompt)
        };
        sent.insert(generator.submit(request).expect("taken"), (alone, Vec::new()));
    }
    for _ in 0..400 {
        for event in generator.step().expect("runs") {
            if let Event::Token { request, token } = event {
                sent.get_mut(&request).expect("ours").1.push(token.id);
            }
        }
    }
    assert_eq!(generator.requests(), 0, "it does not end");
    for (id, (alone, found)) in sent {
        assert_eq!(found, alone, "{id:?}");
    }
}
