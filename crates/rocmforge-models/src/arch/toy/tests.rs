//! Models of all kinds of caches beside their definition in f64: steps of several sequences, forks, prefixes, roll-back, failures, preemption.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use rocmforge_ggml::{CpuBackend, HipGgmlBackend, HostAccess, HybridBackend};
use rocmforge_gguf::{Gguf, TensorType, Writer};
use rocmforge_runtime::{Bytes, Policy};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::{LeaseOptions, gpu, gpu_with};

use super::{CONTEXT, HEADS, ROWS};
use crate::generate::{Event, Generator, Request};
use crate::sampling::SamplerConfig;
use crate::{Chunk, Engine, EngineOptions, KvType, Limit, Model, ModelError, Outputs, SequenceId};

const LAYERS: usize = 2;
const WIDTH: usize = 8;
const VOCAB: usize = 320;
const DECAY: f64 = 0.9;
const EPS: f64 = 1e-5;

/// The matrices of a model by name, with their rows and columns.
type Weights = BTreeMap<String, (usize, usize, Vec<f32>)>;

fn weights(name: &str) -> Weights {
    let mut random = rng(7);
    let mut weights = Weights::new();
    let mut add = |name: String, rows: usize, cols: usize, scale: f32| {
        let values = random.vec_in(rows * cols, -scale, scale);
        weights.insert(name, (rows, cols, values));
    };
    add("token_embd.weight".to_owned(), VOCAB, WIDTH, 1.0);
    add("output.weight".to_owned(), VOCAB, WIDTH, 1.0);
    add("output_norm.weight".to_owned(), 1, WIDTH, 1.0);
    for layer in 0..LAYERS {
        add(format!("blk.{layer}.norm.weight"), 1, WIDTH, 1.0);
        let recurrent = [("in", WIDTH, WIDTH), ("out", WIDTH, WIDTH)];
        let attention = [
            ("attn_q", WIDTH, WIDTH),
            ("attn_k", 4, WIDTH),
            ("attn_v", 4, WIDTH),
            ("attn_output", WIDTH, WIDTH),
        ];
        let latent = [
            ("q", HEADS * WIDTH, WIDTH),
            ("out", WIDTH, HEADS * WIDTH),
            ("c", WIDTH, WIDTH),
        ];
        let matrices = match name {
            "toy" => recurrent.to_vec(),
            "toy-hybrid" => [&recurrent[..], &attention].concat(),
            // The second layer shares what the first one keeps.
            _ => latent[..3 - layer].to_vec(),
        };
        for (name, rows, cols) in matrices {
            add(format!("blk.{layer}.{name}.weight"), rows, cols, 0.5);
        }
    }
    if name == "toy-latent" {
        return weights;
    }
    let unit = (0..ROWS * ROWS).map(|i| f32::from(u8::from(i / ROWS == i % ROWS)));
    weights.insert("unit.weight".to_owned(), (ROWS, ROWS, unit.collect()));
    for (name, power) in [("falling", 1), ("rising", -1)] {
        let powers = (0..CONTEXT as i32).map(|position| DECAY.powi(power * position) as f32);
        weights.insert(format!("{name}.weight"), (CONTEXT, 1, powers.collect()));
    }
    weights
}

fn model(name: &str) -> Model {
    let mut writer = Writer::new();
    writer.metadata("general.architecture", name).expect("a new key");
    for (key, value) in [
        ("block_count", LAYERS),
        ("embedding_length", WIDTH),
        ("feed_forward_length", WIDTH),
        ("attention.head_count", 2),
        ("context_length", CONTEXT),
        ("vocab_size", VOCAB),
    ] {
        writer
            .metadata(format!("{name}.{key}"), value as u32)
            .expect("a new key");
    }
    writer
        .metadata(format!("{name}.attention.layer_norm_rms_epsilon"), EPS as f32)
        .expect("a new key");
    for (name, (rows, cols, values)) in weights(name) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let dims = if rows == 1 { vec![cols] } else { vec![cols, rows] };
        writer
            .tensor(name, &dims, TensorType::F32, Cow::Owned(bytes))
            .expect("a new tensor");
    }
    let gguf = Gguf::from_bytes(writer.to_bytes().expect("a file")).expect("as it was written");
    Model::from_gguf(gguf).expect("a model")
}

/// Logits of each token, by the definition.
fn reference(name: &str, tokens: &[u32]) -> Vec<Vec<f64>> {
    let weights = weights(name);
    let row = |name: &str, row: usize| -> Vec<f64> {
        let (_, cols, values) = &weights[name];
        values[row * cols..][..*cols].iter().map(|&w| f64::from(w)).collect()
    };
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let product = |name: &str, x: &[f64]| -> Vec<f64> { (0..weights[name].0).map(|i| dot(&row(name, i), x)).collect() };
    let norm = |name: &str, x: &[f64]| -> Vec<f64> {
        let scale = 1.0 / (dot(x, x) / WIDTH as f64 + EPS).sqrt();
        x.iter().zip(row(name, 0)).map(|(x, w)| x * scale * w).collect()
    };
    let mut states = vec![vec![0.0; WIDTH]; LAYERS];
    let mut kept: Vec<Vec<f64>> = Vec::new();
    let mut logits = Vec::new();
    for &token in tokens {
        let mut x = row("token_embd.weight", token as usize);
        for (layer, h) in states.iter_mut().enumerate() {
            let of_layer = |name: &str| format!("blk.{layer}.{name}.weight");
            let normed = norm(&of_layer("norm"), &x);
            let context = if name == "toy" {
                let added = product(&of_layer("in"), &normed);
                h.iter_mut().zip(added).for_each(|(h, added)| *h = DECAY * *h + added);
                h.clone()
            } else {
                if layer == 0 {
                    kept.push(product(&of_layer("c"), &normed));
                }
                let queries = product(&of_layer("q"), &normed);
                let heads = queries.chunks(WIDTH).map(|query| {
                    let weights: Vec<f64> = kept.iter().map(|key| (0.5 * dot(query, key)).exp()).collect();
                    let sum: f64 = weights.iter().sum();
                    let of = |i: usize| weights.iter().zip(&kept).map(|(w, value)| w / sum * value[i]).sum();
                    (0..WIDTH).map(of).collect::<Vec<f64>>()
                });
                heads.collect::<Vec<_>>().concat()
            };
            let out = product(&of_layer("out"), &context);
            x.iter_mut().zip(out).for_each(|(x, out)| *x += out);
        }
        logits.push(product("output.weight", &norm("output_norm.weight", &x)));
    }
    logits
}

fn ids(seed: u64, length: usize) -> Vec<u32> {
    let mut rng = rng(seed);
    (0..length).map(|_| rng.below(316) as u32).collect()
}

fn options(chunk: usize) -> EngineOptions {
    EngineOptions {
        max_context: Limit::Tokens(CONTEXT),
        max_sequences: ROWS - 1,
        kv: KvType::F32,
        block_size: 4,
        chunk,
        ..EngineOptions::default()
    }
}

/// Sequences of an engine, each beside the definition.
struct Checked<B: HostAccess> {
    name: &'static str,
    engine: Engine<B>,
    tokens: BTreeMap<SequenceId, Vec<u32>>,
}

impl<B: HostAccess> Checked<B> {
    fn new(name: &'static str, backend: B, chunk: usize) -> Self {
        let engine = Engine::new(backend, &model(name), options(chunk)).expect("the model loads");
        let tokens = BTreeMap::new();
        Self { name, engine, tokens }
    }

    /// A sequence that begins with what is cached of `prompt`.
    fn add(&mut self, prompt: &[u32]) -> SequenceId {
        let sequence = self.engine.add_sequence(prompt).expect("room");
        let cached = self.engine.cached_tokens(sequence).expect("there");
        self.tokens.insert(sequence, prompt[..cached].to_vec());
        sequence
    }

    fn remove(&mut self, sequence: SequenceId) {
        self.engine.remove(sequence).expect("there");
        self.tokens.remove(&sequence);
    }

    fn fork(&mut self, sequence: SequenceId) -> SequenceId {
        let fork = self.engine.fork(sequence).expect("there");
        self.tokens.insert(fork, self.tokens[&sequence].clone());
        fork
    }

    /// One step of all these tokens.
    fn step(&mut self, parts: &[(SequenceId, &[u32])]) {
        let chunks = parts.iter().map(|&(sequence, tokens)| Chunk {
            sequence,
            tokens,
            outputs: Outputs::All,
        });
        let logits = self.engine.step(&chunks.collect::<Vec<_>>()).expect("runs");
        let mut rows = logits.rows();
        for &(sequence, tokens) in parts {
            let held = self.tokens.get_mut(&sequence).expect("ours");
            let before = held.len();
            held.extend(tokens);
            for (at, expected) in reference(self.name, held).iter().enumerate().skip(before) {
                let row = rows.next().expect("a row for each token");
                for (found, expected) in row.iter().zip(expected) {
                    let difference = (f64::from(*found) - expected).abs();
                    assert!(difference < 1e-3, "token {at} of {}: {difference}", held.len());
                }
            }
        }
    }

    /// What is left of `tokens`, in steps as the cache wants them.
    fn run(&mut self, sequence: SequenceId, tokens: &[u32]) {
        let mut at = self.tokens[&sequence].len();
        while at < tokens.len() {
            let (pending, chunk) = (tokens.len() - at, self.engine.chunk());
            let count = self
                .engine
                .cache()
                .tokens_of_step(sequence, pending, chunk)
                .expect("there");
            self.step(&[(sequence, &tokens[at..at + count])]);
            at += count;
        }
    }
}

fn check_steps<B: HostAccess>(name: &'static str, backend: impl Fn() -> B) {
    // Alone, in steps of all sizes.
    let tokens = ids(1, 45);
    for chunk in [1, 3, 16] {
        let mut all = Checked::new(name, backend(), chunk);
        let sequence = all.add(&[]);
        tokens.chunks(chunk).for_each(|chunk| all.step(&[(sequence, chunk)]));
    }

    // Several sequences, with as many tokens as they have.
    let mut all = Checked::new(name, backend(), 16);
    let [a, b, c] = [(); 3].map(|()| all.add(&[]));
    all.step(&[(a, &tokens[..5]), (b, &tokens[7..8]), (c, &tokens[10..17])]);
    all.step(&[(c, &tokens[17..18]), (a, &tokens[5..6])]);
    let fork = all.fork(a);
    all.step(&[(b, &tokens[8..9]), (fork, &tokens[20..29]), (a, &tokens[6..8])]);
    all.step(&[(fork, &[3]), (a, &[4]), (c, &[5])]);
}

fn check_states<B: HostAccess>(backend: B) {
    let tokens = ids(1, 45);
    let mut all = Checked::new("toy", backend, 16);
    // A prefix goes on from a checkpoint at the end of a block.
    let a = all.add(&tokens);
    all.run(a, &tokens);
    let other = [&tokens[..38], &ids(2, 4)].concat();
    let b = all.add(&other);
    // Steps have ended at 16, 32, and 44.
    assert_eq!(all.tokens[&b].len(), 32);
    all.run(b, &other);
    // What preemption does: a sequence goes, and comes back.
    all.remove(a);
    let a = all.add(&tokens);
    assert_eq!(all.tokens[&a].len(), 44);
    all.run(a, &tokens);

    // A step that fails changes nothing, wherever it does.
    let unknown = [Chunk {
        sequence: a,
        tokens: &[VOCAB as u32],
        outputs: Outputs::Last,
    }];
    let refused = all.engine.step(&unknown).expect_err("no such token");
    assert!(matches!(refused, ModelError::TokenOutOfRange { .. }), "{refused}");
    all.step(&[(a, &[1]), (b, &[2])]);

    // Back to the nearest checkpoint.
    let left = all.engine.roll_back(a, 41).expect("there");
    assert_eq!((left, all.engine.cached_tokens(a).expect("there")), (32, 32));
    all.tokens.insert(a, tokens[..32].to_vec());
    all.run(a, &tokens);
    assert_eq!(all.engine.roll_back(a, 0).expect("there"), 0);
    all.tokens.insert(a, Vec::new());
    all.run(a, &other);
    // A step that fails in the middle: of 16 slots 15 are in use, and two sequences want one each.
    let others: Vec<SequenceId> = (0..13).map(|_| all.add(&[])).collect();
    others.iter().for_each(|&other| all.step(&[(other, &[5])]));
    let chunk = |sequence| Chunk {
        sequence,
        tokens: &[6, 7],
        outputs: Outputs::Last,
    };
    let refused = all
        .engine
        .step(&[chunk(a), chunk(b)])
        .expect_err("no slot for the second");
    assert!(matches!(refused, ModelError::Cache(_)), "{refused}");
    all.step(&[(a, &[8])]);
    others.iter().for_each(|&other| all.remove(other));
    all.step(&[(a, &[6, 7]), (b, &[6, 7])]);
    for sequence in [a, b] {
        all.remove(sequence);
    }
    let stats = all.engine.cache().counts();
    assert_eq!((stats.free, stats.blocks), (16, 16));
}

#[test]
fn a_recurrent_model_equals_its_recurrence() {
    check_steps("toy", || CpuBackend::with_threads(2));
    check_states(CpuBackend::with_threads(2));
    let gpu = gpu();
    let backend = || HipGgmlBackend::new(gpu.backend()).expect("kernels");
    check_steps("toy", backend);
    check_states(backend());
}

/// A card with room for all, for some layers, and for none: what layers keep lies where they do.
#[test]
fn with_any_part_on_the_device_they_equal_their_definition() {
    for name in ["toy", "toy-latent"] {
        let engine = Engine::new(CpuBackend::with_threads(1), &model(name), options(16)).expect("loads");
        let plan = *engine.memory();
        for percent in [200, 70, 40, 0] {
            let bytes = plan.scratch * percent.min(100) / 100 + (plan.weights + plan.cache) * percent / 100;
            let gpu = gpu_with(LeaseOptions {
                policy: Policy::fixed(Bytes(bytes as u64)),
                ..LeaseOptions::default()
            });
            check_steps(name, || {
                let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
                HybridBackend::new(device, CpuBackend::with_threads(2))
            });
        }
    }
}

/// By the definition: a state of each layer for what four sequences read and write, two checkpoints each, the zeros, and padding.
#[test]
fn states_are_planned() {
    let engine = Engine::new(CpuBackend::with_threads(1), &model("toy"), options(16)).expect("loads");
    assert_eq!(engine.memory().cache, LAYERS * WIDTH * 4 * (4 * 4 + 1 + 5));
}

/// One vector a token, which is key and value of two layers: a fourth of what keys and values of both would take.
#[test]
fn layers_that_share_one_vector_a_token_equal_their_definition() {
    check_steps("toy-latent", || CpuBackend::with_threads(2));
    let gpu = gpu();
    check_steps("toy-latent", || HipGgmlBackend::new(gpu.backend()).expect("kernels"));
    let mut all = Checked::new("toy-latent", CpuBackend::with_threads(2), 16);
    // 64 tokens of four sequences, and blocks for the padding of two tokens.
    assert_eq!(all.engine.memory().cache, WIDTH * 4 * (4 * CONTEXT + 4));
    let tokens = ids(1, 45);
    let a = all.add(&tokens);
    all.run(a, &tokens);
    let b = all.add(&tokens);
    assert_eq!(all.tokens[&b].len(), 44);
    // A fork writes into a block of its own.
    let fork = all.fork(a);
    all.step(&[(fork, &[9, 8]), (b, &tokens[44..]), (a, &[7])]);
    assert_eq!(all.engine.roll_back(fork, 43).expect("there"), 43);
    all.tokens.get_mut(&fork).expect("ours").truncate(43);
    all.step(&[(fork, &[1, 2, 3])]);
}

/// Requests over states and windows, in a cache that cannot hold them all, so that some lose their place: each gives what it gives alone.
#[test]
fn requests_that_lose_their_place_give_what_each_gives_alone() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/tiny/llama.gguf");
    let tokenizer = Model::open(file)
        .expect("a committed model")
        .tokenizer()
        .expect("it has one");
    let model = model("toy-hybrid");
    let small = EngineOptions {
        cache_tokens: Limit::Tokens(CONTEXT),
        ..options(6)
    };
    let engine = Engine::new(CpuBackend::with_threads(1), &model, small).expect("loads");
    let mut generator = Generator::new(engine, tokenizer);
    let mut sent = BTreeMap::new();
    let (mut most, mut preempted) = (0, false);
    for seed in 0..6 {
        let prompt = ids(20 + seed / 2, 9 + 4 * seed as usize);
        let request = Request {
            sampler: SamplerConfig::greedy(),
            max_tokens: 20,
            ignore_end: true,
            ..Request::new(prompt.clone())
        };
        sent.insert(generator.submit(request).expect("taken"), (prompt, Vec::new()));
    }
    let (mut before, mut finished) = (0, 0);
    for _ in 0..2000 {
        for event in generator.step().expect("runs") {
            match event {
                Event::Token { request, token } => sent.get_mut(&request).expect("ours").1.push(token.id),
                Event::Finished { .. } => finished += 1,
                Event::Prompt { .. } => {}
            }
        }
        let now = generator.engine().cache().counts().sequences;
        preempted |= now + finished < before;
        (most, before, finished) = (most.max(now), now, 0);
    }
    assert_eq!(generator.requests(), 0, "it does not end");
    assert!(most > 2 && preempted, "{most} at once");
    for (prompt, found) in sent.into_values() {
        let mut alone = Engine::new(CpuBackend::with_threads(1), &model, options(CONTEXT)).expect("loads");
        let sequence = alone.add_sequence(&[]).expect("room");
        let mut logits = alone.prefill(sequence, &prompt).expect("runs");
        let best = |logits: &[f32]| {
            (0..VOCAB)
                .max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
                .expect("some") as u32
        };
        for (at, &token) in found.iter().enumerate() {
            assert_eq!(token, best(&logits), "token {at} after {}", prompt.len());
            logits = alone.decode(sequence, token).expect("runs");
        }
        assert_eq!(found.len(), 20);
    }
}
