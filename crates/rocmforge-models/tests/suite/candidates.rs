//! Candidates in place of rows, through engine, generator and server, on the CPU.

use crate::reference::{Tiny, check_candidates, random_file};
use rocmforge_ggml::CpuBackend;
use rocmforge_gguf::TensorType;
use rocmforge_models::generate::{Generator, Request};
use rocmforge_models::sampling::{Row, RowReason, Sampler, SamplerConfig, top_logprobs};
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Chunk, Engine, EngineOptions, Limit, Model, ModelError, Outputs};

#[test]
fn requests_give_the_same_with_candidates_and_what_reads_rows_is_counted() {
    for name in ["llama.gguf", "gemma3.gguf"] {
        let tiny = Tiny::all().into_iter().find(|tiny| tiny.file == name);
        let model = tiny.expect("a committed model").open();
        check_candidates(|| CpuBackend::with_threads(1), &model, 12);
    }
}

/// Of a vocabulary of 8,000 tokens a step with 128 candidates brings 1.5 KB back, and not 32.
#[test]
fn a_step_reads_its_candidates_and_not_the_row() {
    const VOCAB: usize = 8000;
    let model = Model::from_gguf(random_file([1, 32, 1, 1, 32, 32, VOCAB], TensorType::Q8_0)).expect("a model");
    let options = EngineOptions {
        max_context: Limit::Tokens(64),
        max_sequences: 2,
        candidates: Some(128),
        ..EngineOptions::default()
    };
    let mut engine = Engine::new(CpuBackend::with_threads(1), &model, options).expect("room");
    let [a, b] = [(); 2].map(|()| engine.add_sequence(&[]).expect("room"));
    let mut sampler = Sampler::new(SamplerConfig::default(), 0).expect("parameters");
    let mut tokens = [3, 4];
    for step in 0..8 {
        let chunks = [(a, &tokens[..1]), (b, &tokens[1..])].map(|(sequence, tokens)| Chunk {
            sequence,
            tokens,
            outputs: Outputs::Last,
        });
        let before = engine.read_counts().bytes;
        // Every other step reads the second row whole.
        let mut row = 0;
        let outputs = engine.step_top(&chunks, |top| {
            row += 1;
            assert_eq!((top.ids.len(), top.vocabulary), (128, VOCAB));
            (step % 2 == 1 && row == 2).then_some(RowReason::Wanted)
        });
        let outputs = outputs.expect("runs");
        let bytes = engine.read_counts().bytes - before;
        let rows: Vec<Row<'_>> = outputs.rows().collect();
        match (step % 2, &rows[..]) {
            (0, [Row::Top(_), Row::Top(top)]) => {
                assert_eq!(bytes, 2 * 128 * 12);
                tokens = [top.ids[1], sampler.sample_top(top).expect("decided").id];
            }
            (1, [Row::Top(_), Row::Whole(row)]) => {
                assert_eq!(bytes, 2 * 128 * 12 + 2 * 4 * VOCAB as u64);
                assert_eq!(row.len(), VOCAB);
                // What was found of it is what is in it.
                assert_eq!(rows[1].largest(128), Ok(largest(row)));
                tokens = [top_logprobs(row, 1)[0].0, sampler.sample(row).expect("a token").id];
            }
            (_, rows) => panic!("{rows:?}"),
        }
    }
    let counts = engine.read_counts();
    assert_eq!((counts.candidates, counts.rows[&RowReason::Wanted]), (16, 4));
}

#[test]
fn rows_that_are_given_back_are_memory_of_the_next_step() {
    let tiny = Tiny::all().into_iter().find(|tiny| tiny.file == "llama.gguf");
    let model = tiny.expect("a committed model").open();
    let options = EngineOptions {
        max_context: Limit::Tokens(64),
        ..EngineOptions::default()
    };
    let rows_of = |gives_back: bool| {
        let mut engine = Engine::new(CpuBackend::with_threads(1), &model, options).expect("room");
        let sequence = engine.add_sequence(&[]).expect("room");
        let (mut places, mut all) = (Vec::new(), Vec::new());
        // Fewer rows, then as many again.
        for tokens in [&[3, 4, 5][..], &[6], &[7, 8, 9]] {
            let outputs = Outputs::All;
            let logits = engine
                .step(&[Chunk {
                    sequence,
                    tokens,
                    outputs,
                }])
                .expect("runs");
            assert_eq!(logits.rows().len(), tokens.len());
            places.push(logits.data.as_ptr() as usize);
            all.extend_from_slice(&logits.data);
            if gives_back {
                engine.reuse(logits);
            }
        }
        (places, all)
    };
    let (places, rows) = rows_of(true);
    assert_eq!(places, [places[0]; 3]);
    assert_eq!(rows, rows_of(false).1);
}

fn largest(row: &[f32]) -> Vec<(u32, f32)> {
    let top = top_logprobs(row, 128).into_iter();
    top.map(|(id, _)| (id, row[id as usize])).collect()
}

/// On the CPU the rows lie where the sampler runs.
#[test]
fn candidates_are_for_devices_and_at_most_what_a_kernel_sorts() {
    let model = Tiny::all()[0].open();
    let engine = |candidates| {
        let options = EngineOptions {
            candidates,
            ..EngineOptions::default()
        };
        Engine::new(CpuBackend::with_threads(1), &model, options)
    };
    assert_eq!(engine(None).expect("room").candidates(), 0);
    assert_eq!(engine(Some(0)).expect("room").candidates(), 0);
    let vocab = model.config().vocab;
    assert_eq!(engine(Some(2048)).expect("room").candidates(), vocab);
    assert!(matches!(engine(Some(2049)), Err(ModelError::Hyperparameter { key, .. }) if key == "candidates"));
}

#[test]
fn a_server_reports_what_was_read() {
    let server = Server::start(ServeOptions::default(), || {
        let model = Tiny::all()[0].open();
        let options = EngineOptions {
            candidates: Some(50),
            ..EngineOptions::default()
        };
        let engine = Engine::new(CpuBackend::with_threads(1), &model, options)?;
        Ok(Generator::new(engine, model.tokenizer()?))
    });
    let server = server.expect("it starts");
    let handle = server.handle();
    for sampler in [SamplerConfig::greedy(), SamplerConfig::neutral()] {
        let request = Request {
            sampler,
            max_tokens: 5,
            ignore_end: true,
            ..Request::new(vec![1, 2, 3])
        };
        let events = handle.submit(request).expect("taken");
        assert!(events.into_iter().all(|event| event.is_ok()));
    }
    let read = handle.figures().read;
    assert_eq!(read.candidates, 10);
    assert!(read.rows.keys().all(|why| *why == RowReason::Draw), "{read:?}");
    server.drain();
}
