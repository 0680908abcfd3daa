//! Rows of embeddings in place of tokens: the rows of a model's own table must give what the tokens' ids give.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rocmforge_ggml::{CpuBackend, DType, HipGgmlBackend, HostAccess, HybridBackend};
use rocmforge_models::generate::{Event, GenerateError, Generator, Prompt, Request, RequestId};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_models::serve::{ServeError, ServeOptions, Server};
use rocmforge_models::{
    AsInputs, CacheEvent, Chunk, Engine, EngineOptions, Input, KvType, Limit, Model, ModelError, Outputs, PrefixKey,
};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::gpu;

use crate::reference::{SAME, Tiny, best, load::small_engine};

fn model(file: &str) -> Model {
    let tiny = Tiny::all().into_iter().find(|tiny| tiny.file == file);
    tiny.expect("a committed model").open()
}

/// What enters the first layer for these ids: rows of the table, times the factor that Gemma has.
fn rows_of(model: &Model, ids: &[u32]) -> Vec<Input> {
    let table = model.weights().get("token_embd.weight").expect("plain").expect("there");
    assert_eq!(table.dtype, DType::F32);
    let (bytes, width) = (table.bytes(), model.config().width);
    let scale = match model.architecture().name() {
        "gemma3" => (width as f32).sqrt(),
        _ => 1.0,
    };
    let rows = ids
        .iter()
        .flat_map(|&id| &bytes.bytes()[id as usize * width * 4..][..width * 4]);
    let bytes: Vec<u8> = rows.copied().collect();
    let values = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes) * scale);
    Input::rows(width, values.collect()).expect("finite rows")
}

/// Rows for the ids that `is_row` names, by their places.
fn mixed(model: &Model, ids: &[u32], is_row: impl Fn(usize) -> bool) -> Vec<Input> {
    let rows = rows_of(model, ids).into_iter();
    let inputs = ids.iter().zip(rows).enumerate();
    inputs
        .map(|(place, (&id, row))| if is_row(place) { row } else { Input::Id(id) })
        .collect()
}

fn ids(seed: u64, length: usize) -> Vec<u32> {
    let mut rng = rng(seed);
    (0..length).map(|_| rng.below(316) as u32).collect()
}

fn options(chunk: usize) -> EngineOptions {
    EngineOptions {
        max_context: Limit::Tokens(96),
        max_sequences: 4,
        kv: KvType::F32,
        block_size: 4,
        chunk,
        ..EngineOptions::default()
    }
}

fn engine(model: &Model, chunk: usize) -> Engine<CpuBackend> {
    Engine::new(CpuBackend::with_threads(1), model, options(chunk)).expect("the model loads")
}

/// All logits of a sequence, in steps of `chunk`.
fn logits<B: HostAccess, T: AsInputs>(engine: &mut Engine<B>, tokens: &[T], chunk: usize) -> Vec<f32> {
    let sequence = engine.add_sequence(&[]).expect("room");
    let steps = tokens.chunks(chunk).flat_map(|tokens| {
        let outputs = Outputs::All;
        engine
            .step(&[Chunk {
                sequence,
                tokens,
                outputs,
            }])
            .expect("runs")
            .data
    });
    let logits = steps.collect();
    engine.remove(sequence).expect("there");
    logits
}

#[test]
fn rows_of_the_table_give_exactly_what_the_ids_give() {
    for file in ["llama.gguf", "gemma3.gguf", "qwen3moe.gguf", "phi3.gguf"] {
        let model = model(file);
        let ids = ids(1, 33);
        for chunk in [33, 7, 1] {
            let expected = logits(&mut engine(&model, 33), &ids, chunk);
            for (name, is_row) in [
                ("all", (|_| true) as fn(usize) -> bool),
                ("every second", |place| place % 2 == 1),
                ("an image", |place| (5..30).contains(&place)),
                ("none", |_| false),
            ] {
                let found = logits(&mut engine(&model, 33), &mixed(&model, &ids, is_row), chunk);
                assert!(found == expected, "{file}, rows: {name}, chunk {chunk}");
            }
        }
    }
}

#[test]
fn on_a_simulated_card_rows_give_what_ids_give() {
    let model = model("gemma3.gguf");
    let ids = ids(2, 11);
    let inputs = mixed(&model, &ids, |place| place % 3 > 0);
    let expected = logits(&mut engine(&model, 8), &ids, 8);
    let lease = gpu();
    let card = || HipGgmlBackend::new(lease.backend()).expect("kernels");
    let mut on_card = Engine::new(card(), &model, options(8)).expect("room");
    let both = HybridBackend::new(card(), CpuBackend::with_threads(1));
    let mut on_both = Engine::new(both, &model, options(8)).expect("room");
    for found in [logits(&mut on_card, &inputs, 8), logits(&mut on_both, &inputs, 8)] {
        let worst = expected.iter().zip(&found).map(|(a, b)| (a - b).abs());
        assert!(worst.fold(0.0, f32::max) < SAME && found.len() == expected.len());
    }
}

#[test]
fn a_ragged_batch_may_have_rows_and_a_text_load_builds_no_graph_more() {
    let model = model("gemma3.gguf");
    let mut engine = engine(&model, 24);
    engine.warm_up().expect("runs");
    let warm = engine.graph_counts().built;
    let prompts: Vec<Vec<u32>> = [9, 1, 6, 5]
        .into_iter()
        .zip(10..)
        .map(|(length, seed)| ids(seed, length))
        .collect();
    let kinds: [fn(usize) -> bool; 4] = [|place| place > 3, |_| true, |_| false, |place| place == 0];
    let mut run = |kinds: [fn(usize) -> bool; 4]| -> Vec<f32> {
        let prompts: Vec<Vec<Input>> = prompts
            .iter()
            .zip(kinds)
            .map(|(ids, is_row)| mixed(&model, ids, is_row))
            .collect();
        let sequences = prompts.iter().map(|_| engine.add_sequence(&[]).expect("room"));
        let sequences: Vec<_> = sequences.collect();
        let chunks = sequences.iter().zip(&prompts).map(|(&sequence, tokens)| Chunk {
            sequence,
            tokens,
            outputs: Outputs::Last,
        });
        let logits = engine.step(&chunks.collect::<Vec<_>>()).expect("runs");
        sequences
            .into_iter()
            .for_each(|sequence| engine.remove(sequence).expect("there"));
        logits.data
    };
    let expected = run([|_| false; 4]);
    for _ in 0..3 {
        assert!(run(kinds) == expected);
    }
    // One graph with rows, which lies in the memory of all steps: another bucket keeps it.
    assert_eq!(engine.graph_counts().built, warm + 1);
    for (length, built) in [(9, 2), (21, 3), (9, 3), (24, 3), (15, 4), (21, 4)] {
        let rows = rows_of(&model, &ids(3, length));
        let sequence = engine.add_sequence(&[]).expect("room");
        engine.prefill(sequence, &rows).expect("runs");
        engine.remove(sequence).expect("there");
        assert_eq!(engine.graph_counts().built, warm + built, "{length}");
    }
}

#[test]
fn a_prefix_is_shared_where_the_rows_are_the_same() {
    let model = model("llama.gguf");
    let mut engine = engine(&model, 32);
    let image = |seed| rows_of(&model, &ids(seed, 10));
    let prompt = |image: Vec<Input>| -> Vec<Input> {
        let text = |ids: [u32; 6]| ids.map(Input::Id);
        [&text([1, 2, 3, 4, 5, 6])[..], &image, &text([7, 8, 9, 10, 11, 12])].concat()
    };
    let cached = |engine: &mut Engine<CpuBackend>, key: &PrefixKey, prompt: &[Input]| {
        let sequence = engine.add_keyed_sequence(key, prompt).expect("room");
        let cached = engine.cached_tokens(sequence).expect("there");
        let logits = engine.prefill(sequence, prompt).expect("runs");
        engine.remove(sequence).expect("there");
        (cached, logits)
    };
    let none = PrefixKey::default();
    let (first, logits) = cached(&mut engine, &none, &prompt(image(1)));
    assert_eq!(first, 0);
    // Text alone is in the first block.
    assert_eq!(cached(&mut engine, &none, &prompt(image(2))).0, 4);
    let ids_of_image = ids(1, 10).into_iter().map(Input::Id).collect();
    assert_eq!(cached(&mut engine, &none, &prompt(ids_of_image)).0, 4);
    let mut last_differs = image(1);
    last_differs[9] = image(2)[9].clone();
    assert_eq!(cached(&mut engine, &none, &prompt(last_differs)).0, 12);
    // Rows of the same values, given anew.
    let (again, found) = cached(&mut engine, &none, &prompt(image(1)));
    assert!(again == 20 && found.iter().zip(&logits).all(|(a, b)| (a - b).abs() < SAME));
    let salt = PrefixKey {
        salt: "other".to_owned(),
        ..none
    };
    assert_eq!(cached(&mut engine, &salt, &prompt(image(1))).0, 0);
}

#[test]
fn events_of_the_cache_have_ids_of_default_keys_only() {
    let model = model("llama.gguf");
    let mut engine = engine(&model, 32);
    let events = Arc::new(Mutex::new(Vec::new()));
    let takes = Arc::new(AtomicBool::new(true));
    let (sent, is_taken) = (Arc::clone(&events), Arc::clone(&takes));
    engine.listen_to_cache(move |batch| {
        sent.lock().expect("no panic").extend(batch);
        is_taken.load(Ordering::SeqCst)
    });
    let mut run = |key: &PrefixKey, prompt: &[Input]| {
        let sequence = engine.add_keyed_sequence(key, prompt).expect("room");
        engine.prefill(sequence, prompt).expect("runs");
        engine.remove(sequence).expect("there");
        std::mem::take(&mut *events.lock().expect("no panic"))
    };
    let salt = PrefixKey {
        salt: "other".to_owned(),
        ..PrefixKey::default()
    };
    let text: Vec<Input> = ids(3, 12).into_iter().map(Input::Id).collect();
    assert_eq!(run(&salt, &text), []);
    let found = run(&PrefixKey::default(), &text);
    let [
        CacheEvent::Stored {
            parent: None,
            hashes,
            tokens,
        },
    ] = &found[..]
    else {
        panic!("{found:?}");
    };
    assert_eq!((hashes.len(), tokens), (3, &ids(3, 12)));
    // A block with rows ends what is named.
    let mut mixed = text[..4].to_vec();
    mixed.extend(rows_of(&model, &ids(4, 4)));
    mixed.extend_from_slice(&text[..8]);
    assert_eq!(run(&PrefixKey::default(), &mixed), []);
    // What was lost is said, and named when it is used again.
    takes.store(false, Ordering::SeqCst);
    let other: Vec<Input> = ids(5, 8).into_iter().map(Input::Id).collect();
    assert_eq!(run(&PrefixKey::default(), &other).len(), 1);
    takes.store(true, Ordering::SeqCst);
    let again = run(&PrefixKey::default(), &text);
    assert_eq!(again[0], CacheEvent::Cleared);
    let stored = again[1..].iter().map(|event| match event {
        CacheEvent::Stored { hashes, .. } => hashes.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(stored.sum::<usize>(), 3);
    drop(engine);
    assert_eq!(Arc::strong_count(&takes), 1, "the listener goes with the engine");
}

#[test]
fn forks_and_roll_back_keep_rows() {
    let model = model("gemma3.gguf");
    let (mut engine, ids) = (engine(&model, 32), ids(4, 40));
    let inputs = mixed(&model, &ids, |place| (3..36).contains(&place));
    let expected = logits(&mut engine, &ids, 32);
    let last = &expected[expected.len() - model.config().vocab..];
    let sequence = engine.add_sequence(&[]).expect("room");
    engine.prefill(sequence, &inputs).expect("runs");
    let fork = engine.fork(sequence).expect("there");
    for (sequence, tokens) in [(sequence, 17), (fork, 30), (sequence, 1)] {
        engine.roll_back(sequence, tokens).expect("there");
        engine.defragment().expect("runs");
        let found = engine.prefill(sequence, &inputs).expect("runs");
        assert!(found.iter().zip(last).all(|(a, b)| (a - b).abs() < SAME), "{tokens}");
        assert_eq!(engine.cache().tokens(sequence).expect("there"), inputs);
    }
}

fn greedy(prompt: impl Into<Prompt>) -> Request {
    Request {
        sampler: SamplerConfig::greedy(),
        max_tokens: 20,
        ignore_end: true,
        ..Request::new(prompt)
    }
}

/// Greedy tokens of a prompt in an engine of its own.
fn alone(model: &Model, prompt: &[u32]) -> Vec<u32> {
    let mut engine = engine(model, 96);
    let sequence = engine.add_sequence(prompt).expect("room");
    let mut logits = engine.prefill(sequence, prompt).expect("runs");
    let mut drawn = Vec::new();
    for _ in 0..20 {
        drawn.push(best(&logits));
        logits = engine.decode(sequence, best(&logits)).expect("runs");
    }
    drawn
}

#[test]
fn requests_with_rows_give_what_ids_give_also_when_their_place_was_taken() {
    let model = model("llama.gguf");
    let small = EngineOptions {
        cache_tokens: Limit::Tokens(96),
        ..options(16)
    };
    let engine = Engine::new(CpuBackend::with_threads(1), &model, small).expect("the model loads");
    let mut generator = Generator::new(engine, model.tokenizer().expect("the file has one"));
    let mut expected: BTreeMap<RequestId, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
    for seed in 20..28 {
        let ids = ids(seed, 5 + 4 * (seed as usize - 20));
        let inputs = mixed(&model, &ids, |place| (place as u64 + seed) % 4 < 3);
        let id = generator.submit(greedy(inputs)).expect("taken");
        expected.insert(id, (alone(&model, &ids), Vec::new()));
    }
    let (mut lost_place, mut before) = (false, 0);
    while generator.requests() > 0 {
        let mut ended = 0;
        for event in generator.step().expect("runs") {
            match event {
                Event::Token { request, token } => expected.get_mut(&request).expect("ours").1.push(token.id),
                Event::Finished { .. } => ended += 1,
                Event::Prompt { .. } => {}
            }
        }
        let now = generator.engine().cache().counts().sequences;
        lost_place |= now + ended < before;
        before = now;
    }
    assert!(lost_place, "the cache is too large for this test");
    for (expected, found) in expected.values() {
        assert_eq!(expected, found);
    }
}

#[test]
fn a_server_takes_rows_and_refuses_those_of_another_width() {
    let server = Server::start(ServeOptions::default(), || {
        let model = model("llama.gguf");
        let engine = Engine::new(CpuBackend::with_threads(1), &model, small_engine())?;
        Ok(Generator::new(engine, model.tokenizer()?))
    });
    let (server, model) = (server.expect("it starts"), model("llama.gguf"));
    let wrong = Input::rows(3, vec![1.0; 6]).expect("rows");
    match server.handle().submit(greedy(wrong)) {
        Err(ServeError::Refused(error)) => {
            let is_width = matches!(
                *error,
                GenerateError::Model(ModelError::EmbeddingWidth { elements: 3, .. })
            );
            assert!(is_width, "{error}");
        }
        other => panic!("{other:?}"),
    }
    let ids = ids(5, 12);
    let events = server.handle().submit(greedy(rows_of(&model, &ids))).expect("taken");
    let tokens = events.filter_map(|event| match event.expect("it runs") {
        Event::Token { token, .. } => Some(token.id),
        _ => None,
    });
    assert_eq!(tokens.collect::<Vec<_>>(), alone(&model, &ids));
    server.drain();
}

#[test]
fn rows_that_are_none_are_refused() {
    for (width, elements) in [(0, 0), (0, 4), (4, 3), (usize::MAX, 8)] {
        match Input::rows(width, vec![0.0; elements]) {
            Err(ModelError::EmbeddingWidth { .. }) => {}
            other => panic!("{width}, {elements}: {other:?}"),
        }
    }
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = vec![0.5; 12];
        values[7] = value;
        match Input::rows(4, values) {
            Err(ModelError::EmbeddingValue { row: 1, column: 3, .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(Input::rows(4, Vec::new()).expect("no rows").is_empty());
    // Zeros of both signs are other bits: they are not shared, although they would give the same.
    let row = |value| Input::rows(1, vec![value]).expect("a row");
    assert!(row(0.0) == row(0.0) && row(0.0) != row(-0.0) && row(0.0)[0] != Input::Id(0));

    let model = model("llama.gguf");
    let mut engine = engine(&model, 8);
    let sequence = engine.add_sequence(&[]).expect("room");
    let good = rows_of(&model, &[1, 2]);
    engine.prefill(sequence, &good).expect("runs");
    let [wrong, unknown] = [
        Input::rows(model.config().width - 1, vec![0.0; model.config().width - 1]).expect("a row")[0].clone(),
        u32::MAX.into(),
    ];
    for (wrong, what) in [(wrong, "width"), (unknown, "id")] {
        let tokens = [good[0].clone(), wrong];
        let outputs = Outputs::Last;
        match (
            engine.step(&[Chunk {
                sequence,
                tokens: &tokens,
                outputs,
            }]),
            what,
        ) {
            (Err(ModelError::EmbeddingWidth { .. }), "width") | (Err(ModelError::TokenOutOfRange { .. }), "id") => {}
            (other, _) => panic!("{what}: {other:?}"),
        }
        assert_eq!(engine.cached_tokens(sequence).expect("there"), 2);
    }
}
