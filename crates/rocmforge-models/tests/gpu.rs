//! Models on a device against the f64 reference.
#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture

mod reference;
mod gpu {
    mod archs;
    mod hybrid;
    mod types;
}

use reference::encoders::TinyEncoder;
use reference::{Fixture, Tiny, check_batch, check_chunks, check_prompt, check_scored, engine, model_file};
use rocmforge_ggml::{Activations, CpuBackend, HipGgmlBackend, HostAccess};
use rocmforge_gguf::TensorType;
use rocmforge_models::generate::{Event, Generator, Request};
use rocmforge_models::sampling::{RowReason, SamplerConfig};
use rocmforge_models::{Chunk, Engine, EngineOptions, KvType, Limit, Model, ModelError, Outputs};
use rocmforge_runtime::{Bytes, Policy};
use rocmforge_sim::{Arch, CardConfig, SimConfig};
use rocmforge_testkit::{LeaseOptions, gpu, gpu_with, skip};

const SMOLLM2: &str = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

#[test]
fn every_architecture_equals_the_f64_forward() {
    let gpu = gpu();
    for tiny in Tiny::all() {
        let worst = [40, 7].map(|chunk| tiny.check(HipGgmlBackend::new(gpu.backend()).expect("kernels"), chunk));
        println!("{:24} {}", tiny.file, worst.map(|d| format!("{d:.1e}")).join(" "));
    }
}

#[test]
fn a_prompt_in_chunks_and_prompts_in_a_batch_give_the_same_logits() {
    let gpu = gpu();
    for tiny in Tiny::all() {
        let model = tiny.open();
        let backend = || HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let chunks = check_chunks(backend, &model, &tiny.ids);
        let prompts = [&tiny.ids[..], &tiny.ids[20..23], &tiny.ids[7..8]];
        let batch = check_batch(backend, &model, &prompts, 2);
        println!("{:24} {chunks:.1e} {batch:.1e}", tiny.file);
    }
}

/// A card with half of what the model wants refuses it before anything is loaded, and one with enough runs it within the budget.
#[test]
fn memory_that_is_too_small_is_a_refusal_with_figures() {
    let tiny = &Tiny::all()[0];
    let model = tiny.open();
    let options = EngineOptions {
        max_context: Limit::Tokens(64),
        max_sequences: 1,
        kv: KvType::F16,
        ..EngineOptions::default()
    };
    let gpu = gpu();
    let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let plan = *Engine::new(backend, &model, options).expect("room").memory();
    let needed = plan.weights + plan.cache + plan.scratch;
    drop(gpu);

    let gpu = gpu_with(LeaseOptions {
        policy: Policy::fixed(Bytes(needed as u64 / 2)),
        ..LeaseOptions::default()
    });
    let before = gpu.backend().card().budget().committed;
    let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let error = Engine::new(backend, &model, options).expect_err("half of it");
    assert!(
        matches!(
            error,
            ModelError::DoesNotFit { .. } | ModelError::ContextTooLarge { .. }
        ),
        "{error}"
    );
    assert_eq!(gpu.backend().card().budget().committed, before, "nothing was loaded");
}

/// SmolLM2 and what its f64 reference computed, if the model is there.
fn smollm2() -> Option<(Model, Fixture)> {
    let model = Model::open(model_file(SMOLLM2)?).expect("the file is whole");
    Some((model, Fixture::load("smollm2")))
}

/// On a simulated card one prompt and few tokens, everything with `ROCMFORGE_ALL_PROMPTS`; on a real one everything.
#[test]
fn smollm2_equals_the_f64_reference() {
    let Some((model, fixture)) = smollm2() else {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    };
    let gpu = gpu();
    let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let mut engine = engine(backend, &model, 512);
    let simulated = gpu.sim().is_some();
    let everything = !simulated || std::env::var_os("ROCMFORGE_ALL_PROMPTS").is_some();
    let (prompts, tokens) = if everything {
        (fixture.prompts.len(), 24)
    } else {
        (1, 3)
    };
    let worst = (0..prompts)
        .map(|index| check_prompt(&mut engine, &fixture, index, tokens))
        .fold(0.0, f64::max);
    println!("largest difference of a logit: {worst:.1e}");
    if everything {
        let found = check_scored(&mut engine, &fixture.scored, 128);
        assert!((found - fixture.scored.perplexity).abs() < 1e-3, "{found}");
    }
}

/// Packed weights and activations of 8 bits choose the tokens of the exact products wherever the choice is clear.
#[test]
fn smollm2_with_activations_of_8_bits_chooses_the_same_tokens() {
    let Some((model, fixture)) = smollm2() else {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    };
    let gpu = gpu();
    let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let mut engine = engine(backend.activations(Activations::Int8), &model, 512);
    // Seven matrices of each of 30 layers, and the embedding, which is the output matrix too.
    assert_eq!(engine.backend().packed_weights(), 7 * 30 + 1);
    let prompt = &fixture.prompts[0];
    let sequence = engine.add_sequence(&prompt.ids).expect("room");
    let mut logits = engine.prefill(sequence, &prompt.ids).expect("runs");
    let tokens = if gpu.sim().is_some() { 4 } else { 24 };
    let clear = prompt.gaps.iter().take_while(|&&gap| gap > 0.5).count();
    assert!(clear > 0, "the first choice is clear: {:?}", prompt.gaps);
    for &id in &prompt.greedy[..tokens.min(clear)] {
        assert_eq!(reference::best(&logits), id);
        logits = engine.decode(sequence, id).expect("runs");
    }
    assert_eq!(engine.backend().packed_weights(), 7 * 30 + 1, "nothing was unpacked");
}

/// A prompt of more than 16 tokens rounds activations to 16 bits; the row that becomes logits meets packed weights in 8. The bound is that of ggml's
/// test of a whole model.
#[test]
fn a_rounded_prompt_is_near_the_exact_one() {
    let gpu = gpu();
    for tiny in Tiny::all() {
        let model = tiny.open();
        let [exact, rounded] = [Activations::F32, Activations::Int8].map(|activations| {
            let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
            let mut engine = engine(backend.activations(activations), &model, 64);
            let sequence = engine.add_sequence(&tiny.ids).expect("room");
            engine.prefill(sequence, &tiny.ids).expect("runs")
        });
        let square = |x: f32| f64::from(x).powi(2);
        let error: f64 = exact.iter().zip(&rounded).map(|(e, r)| square(e - r)).sum();
        let nmse = error / exact.iter().map(|&e| square(e)).sum::<f64>();
        println!("{:24} {nmse:.1e}", tiny.file);
        assert!(exact != rounded && nmse <= 2e-3, "{}: {nmse:.1e}", tiny.file);
    }
}

#[test]
fn a_load_of_requests_builds_no_graph_and_gives_what_each_gives_alone() {
    let gpu = gpu();
    let tiny = Tiny::all().into_iter().find(|tiny| tiny.file == "llama.gguf");
    let model = tiny.expect("a committed model").open();
    let within_budget = || {
        let budget = gpu.backend().card().budget();
        assert!(budget.committed <= budget.budget, "{budget:?}");
    };
    let backend = || HipGgmlBackend::new(gpu.backend()).expect("kernels");
    reference::check_load(backend, &model, 64, 1, within_budget);
}

/// Requests on both cards, with candidates and with rows; and a vocabulary that is searched in parts, where candidates are the default.
#[test]
fn candidates_give_the_tokens_of_whole_rows() {
    for arch in [Arch::Gfx1100, Arch::Gfx1201] {
        let gpu = gpu_with(LeaseOptions {
            sim: SimConfig {
                cards: vec![CardConfig::of(arch)],
                ..SimConfig::default()
            },
            ..LeaseOptions::default()
        });
        let tiny = Tiny::all().into_iter().find(|tiny| tiny.file == "llama.gguf");
        let model = tiny.expect("a committed model").open();
        reference::check_candidates(|| HipGgmlBackend::new(gpu.backend()).expect("kernels"), &model, 4);

        let model = Model::from_gguf(reference::random_file([1, 32, 1, 1, 32, 32, 10_000], TensorType::Q8_0));
        let model = model.expect("a model");
        let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let mut engine = engine(backend, &model, 64);
        assert_eq!(engine.candidates(), 128);
        let sequence = engine.add_sequence(&[5]).expect("room");
        let mut token = 5;
        for _ in 0..3 {
            let chunk = Chunk {
                sequence,
                tokens: &[token],
                outputs: Outputs::Last,
            };
            let mut found = None;
            let outputs = engine.step_top(&[chunk], |top| {
                found = Some((top.largest(128).map(Iterator::collect), top.logprobs(9)));
                Some(RowReason::Wanted)
            });
            let outputs = outputs.expect("runs");
            let row = outputs.rows().next().expect("one");
            let (largest, logprobs) = found.expect("asked");
            assert_eq!(largest, row.largest(128));
            let pairs = logprobs
                .expect("9 of 128")
                .into_iter()
                .zip(row.logprobs(9).expect("all"));
            pairs.for_each(|(a, b)| assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-5, "{a:?} {b:?}"));
            token = row.largest(3).expect("all")[2].0;
        }
    }
}

/// Ids of three requests that share their steps.
fn batch<B: HostAccess>(backend: B, model: &Model) -> Vec<Vec<u32>> {
    let tokenizer = model.tokenizer().expect("the file has one");
    let mut generator = Generator::new(reference::engine_for(backend, model, 128, 5), tokenizer);
    let requests = [&[7, 99, 200][..], &[7, 99, 200, 31, 12, 5, 301], &[64]].map(|prompt| {
        let request = Request {
            sampler: SamplerConfig::greedy(),
            max_tokens: 6,
            ignore_end: true,
            ..Request::new(prompt.to_vec())
        };
        generator.submit(request).expect("taken")
    });
    let mut ids = vec![Vec::new(); requests.len()];
    while generator.requests() > 0 {
        for event in generator.step().expect("runs") {
            if let Event::Token { request, token } = event {
                let index = requests
                    .iter()
                    .position(|known| *known == request)
                    .expect("one of them");
                ids[index].push(token.id);
            }
        }
    }
    ids
}

#[test]
fn a_batch_of_requests_gives_the_tokens_of_the_cpu() {
    let gpu = gpu();
    let tiny = Tiny::all().into_iter().find(|tiny| tiny.file == "llama.gguf");
    let model = tiny.expect("a committed model").open();
    let on_device = batch(HipGgmlBackend::new(gpu.backend()).expect("kernels"), &model);
    assert!(on_device.iter().all(|ids| ids.len() == 6), "{on_device:?}");
    assert_eq!(on_device, batch(CpuBackend::new(), &model));
}

#[test]
fn encoders_equal_the_f64_forward() {
    let gpu = gpu();
    for tiny in TinyEncoder::all() {
        let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let worst = tiny.check(tiny.open(), device, 64);
        println!("{:24} {worst:.1e}", tiny.file);
    }
}
