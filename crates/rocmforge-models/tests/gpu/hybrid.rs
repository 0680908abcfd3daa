//! Models with less device memory than they want, and with memory that a desktop takes and gives back meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rocmforge_ggml::{CpuBackend, HipGgmlBackend, HybridBackend};
use rocmforge_hip_sys::HipClock;
use rocmforge_models::generate::{Event, Generator, Request};
use rocmforge_models::sampling::SamplerConfig;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions, KvType, Limit, Model};
use rocmforge_runtime::{Bytes, Policy};
use rocmforge_sim::{CardConfig, Client, DesktopConfig, SimConfig};
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu_with, skip};

use crate::SMOLLM2;
use crate::reference::{Tiny, best, model_file};

const GIB: u64 = 1 << 30;

pub(super) fn hybrid(gpu: &GpuLease) -> HybridBackend {
    let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    HybridBackend::new(device, CpuBackend::new())
}

/// A card whose budget is `bytes`.
pub(super) fn card_of(bytes: u64) -> GpuLease {
    gpu_with(LeaseOptions {
        policy: Policy::fixed(Bytes(bytes)),
        ..LeaseOptions::default()
    })
}

fn options(context: usize) -> EngineOptions {
    EngineOptions {
        max_context: Limit::Tokens(context),
        max_sequences: 1,
        kv: KvType::F32,
        chunk: 16,
        ..EngineOptions::default()
    }
}

/// Bytes that a model wants on a device: for intermediates, and for weights and cache.
fn wanted(model: &Model, context: usize) -> (u64, u64) {
    let engine = Engine::new(CpuBackend::new(), model, options(context)).expect("room");
    let plan = engine.memory();
    (plan.scratch as u64, (plan.weights + plan.cache) as u64)
}

/// A part of them. Intermediates of the smallest models are larger than the models: they are there in any case but the last.
pub(super) fn part((scratch, rest): (u64, u64), percent: u64) -> u64 {
    rest * percent / 100 + if percent == 0 { 0 } else { scratch }
}

/// The most likely tokens after a prompt.
fn greedy(
    engine: &mut Engine<HybridBackend>,
    prompt: &[u32],
    tokens: usize,
    mut between: impl FnMut(usize),
) -> Vec<u32> {
    let sequence = engine.add_sequence(prompt).expect("room");
    let mut logits = engine.prefill(sequence, prompt).expect("runs");
    let mut ids = Vec::new();
    for step in 0..tokens {
        between(step);
        ids.push(best(&logits));
        logits = engine.decode(sequence, ids[step]).expect("runs");
    }
    engine.remove(sequence).expect("there");
    ids
}

#[test]
fn every_architecture_equals_the_f64_forward_with_any_part_on_the_device() {
    for tiny in Tiny::all() {
        let wanted = wanted(&tiny.open(), tiny.ids.len());
        for percent in [200, 60, 30, 0] {
            let gpu = card_of(part(wanted, percent));
            tiny.check(hybrid(&gpu), 7);
        }
    }
}

/// Layers on two cards and the rest on the host, or all on the cards.
#[test]
fn every_architecture_equals_the_f64_forward_on_two_cards() {
    for tiny in Tiny::all() {
        let (scratch, rest) = wanted(&tiny.open(), tiny.ids.len());
        for percent in [[60, 60], [40, 30]] {
            let [first, second] = percent.map(|percent| part((scratch, rest), percent));
            let first = card_of(first);
            if first.sim().is_none() {
                skip!("several cards are tested on simulated ones");
            }
            let second = card_of(second);
            let device = HipGgmlBackend::new(second.backend()).expect("kernels");
            tiny.check(hybrid(&first).with_card(device).expect("two"), 7);
        }
    }
}

#[test]
fn a_text_is_the_same_with_any_part_of_the_memory() {
    let tiny = Tiny::all()
        .into_iter()
        .find(|tiny| tiny.file == "llama.gguf")
        .expect("a committed model");
    let model = tiny.open();
    let wanted = wanted(&model, 64);
    let mut texts = Vec::new();
    let mut parts = Vec::new();
    for percent in [200, 60, 30, 0] {
        let gpu = card_of(part(wanted, percent));
        let mut engine = Engine::new(hybrid(&gpu), &model, options(64)).expect("room");
        texts.push(greedy(&mut engine, &tiny.ids[..9], 12, |_| ()));
        let budget = gpu.backend().card().budget();
        assert!(budget.peak <= budget.budget, "{percent} %: {budget:?}");
        parts.push(engine.backend().groups_on_gpu());
        let statistics = engine.backend().statistics();
        assert_eq!(statistics.gpu_nodes > 0, percent > 0, "{percent} %: {statistics:?}");
        assert_eq!(statistics.cpu_nodes > 0, percent < 200, "{percent} %: {statistics:?}");
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    // With all of the model on the device a step is one replay.
    let gpu = card_of(part(wanted, 200));
    let mut engine = Engine::new(hybrid(&gpu), &model, options(64)).expect("room");
    let mut replays = Vec::new();
    let sequence = engine.add_sequence(&tiny.ids[..3]).expect("room");
    engine.prefill(sequence, &tiny.ids[..3]).expect("runs");
    for &id in &tiny.ids[3..9] {
        engine.decode(sequence, id).expect("runs");
        replays.push(engine.backend().gpu().replays());
    }
    assert_eq!(replays, [0, 0, 1, 2, 3, 4]);
    drop((engine, gpu));
    let on_gpu: Vec<usize> = parts.iter().map(|part| part.0).collect();
    assert_eq!((on_gpu[0], on_gpu[3]), (parts[0].1, 0), "{parts:?}");
    assert!(on_gpu.is_sorted_by(|more, fewer| more >= fewer), "{parts:?}");
}

/// Tokens of a text that is still written when the desktop has given the memory back.
const TOKENS: usize = 50;

/// A 5 GiB card of which the desktop takes 4 GiB after two seconds, and gives it back after four.
fn busy_desktop() -> LeaseOptions {
    let game = [(0, GIB / 4), (2, GIB / 4 + 4 * GIB), (4, GIB / 4)];
    let steps = game
        .map(|(second, bytes)| (Duration::from_secs(second), Bytes(bytes)))
        .to_vec();
    LeaseOptions {
        sim: SimConfig {
            cards: vec![CardConfig {
                vram: Bytes(5 * GIB),
                desktop: Some(DesktopConfig {
                    preemption_failure: 0.0,
                    ..DesktopConfig::with([Client::steps("game", steps)])
                }),
                ..CardConfig::default()
            }],
            ..LeaseOptions::default().sim
        },
        policy: Policy::desktop(),
        ..LeaseOptions::default()
    }
}

/// Writes a text while the desktop takes the memory and gives it back.
fn undisturbed(model: &Model, prompt: &[u32], tokens: usize, expected: &[u32]) {
    let gpu = gpu_with(busy_desktop());
    let Some(sim) = gpu.sim().cloned() else {
        skip!("the memory of a real desktop cannot be controlled");
    };
    let mut engine = Engine::new(hybrid(&gpu), model, options(64)).expect("room");
    let all = engine.backend().groups_on_gpu();
    assert_eq!(all.0, all.1, "everything begins on the device");
    let found = greedy(&mut engine, prompt, tokens, |_| sim.pause(Duration::from_millis(500)));
    assert_eq!(found, expected);
    let statistics = engine.backend().statistics().clone();
    assert!(statistics.spills > 0 && statistics.returns > 0, "{statistics:?}");
    let desktop = sim.desktop(0).expect("the card has one");
    assert_eq!(
        (desktop.evicted_by_us, desktop.queue_stops),
        (Bytes(0), 0),
        "{desktop:?}"
    );
}

#[test]
fn a_desktop_that_takes_the_memory_in_the_middle_of_a_text_changes_nothing() {
    let tiny = Tiny::all()
        .into_iter()
        .find(|tiny| tiny.file == "llama.gguf")
        .expect("a committed model");
    let model = tiny.open();
    let gpu = card_of(0);
    let mut engine = Engine::new(hybrid(&gpu), &model, options(64)).expect("room");
    let expected = greedy(&mut engine, &tiny.ids[..9], TOKENS, |_| ());
    drop((engine, gpu));
    undisturbed(&model, &tiny.ids[..9], TOKENS, &expected);
}

/// The desktop takes all memory at once after any call of HIP, and so stops launches in the middle of a step: the step goes on on the host.
#[test]
fn launches_that_are_stopped_change_no_token() {
    let tiny = Tiny::all()
        .into_iter()
        .find(|tiny| tiny.file == "llama.gguf")
        .expect("a committed model");
    let model = tiny.open();
    // The tokens, how many calls their steps made, and whether the card has run some nodes and the CPU others.
    let run = |calls: u64| {
        let gpu = gpu_with(LeaseOptions {
            policy: Policy {
                reread_every: Duration::ZERO,
                ..Policy::desktop()
            },
            ..LeaseOptions::default()
        });
        let sim = gpu.sim()?;
        let mut engine = Engine::new(hybrid(&gpu), &model, options(64)).expect("room");
        let made = Arc::new(AtomicU64::new(0));
        let (count, weak) = (Arc::clone(&made), Arc::downgrade(sim));
        sim.set_observer(move |call| {
            if call.status.is_none()
                && count.fetch_add(1, Ordering::Relaxed) == calls
                && let Some(sim) = weak.upgrade()
            {
                sim.set_desktop_used(0, 64 * GIB);
            }
        });
        let tokens = greedy(&mut engine, &tiny.ids[..9], 5, |_| ());
        sim.clear_observer();
        let statistics = engine.backend().statistics();
        let both = statistics.gpu_nodes > 0 && statistics.cpu_nodes > 0;
        Some((tokens, made.load(Ordering::Relaxed), both))
    };
    let Some((expected, made, _)) = run(u64::MAX) else {
        skip!("the memory of a real desktop cannot be controlled");
    };
    let trials = 0..made.min(60);
    let mut on_both = 0;
    for trial in trials.clone() {
        let calls = trial * made / trials.end;
        let (tokens, _, both) = run(calls).expect("simulated");
        assert_eq!(tokens, expected, "memory taken after {calls} of {made} calls");
        on_both += u64::from(both);
    }
    assert!(on_both * 2 > trials.end, "{on_both} of {}", trials.end);
}

#[test]
fn smollm2_writes_the_same_text_with_any_part_of_the_memory() {
    let Some(path) = model_file(SMOLLM2) else {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    };
    let model = Model::open(path).expect("the file is whole");
    let prompt = [504, 3575, 282, 4649, 314];
    let wanted = wanted(&model, 64);
    let texts = [110, 60, 30, 0].map(|percent| {
        let gpu = card_of(part(wanted, percent));
        let mut engine = Engine::new(hybrid(&gpu), &model, options(64)).expect("room");
        let text = greedy(&mut engine, &prompt, 3, |_| ());
        println!(
            "{percent} %: {:?} of the groups on the device, {text:?}",
            engine.backend().groups_on_gpu()
        );
        text
    });
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

/// Two models on one card beside a desktop: one waits for requests while the desktop takes the memory, and the other computes.
#[test]
fn an_idle_model_gives_its_memory_back_for_one_that_computes() {
    let tiny = Tiny::all().remove(0);
    let gpu = gpu_with(busy_desktop());
    let Some(sim) = gpu.sim().cloned() else {
        skip!("the memory of a real desktop cannot be controlled");
    };
    let start = || {
        let (model, card) = (tiny.open(), Arc::clone(gpu.backend()));
        let made = move || {
            let device = HipGgmlBackend::new(&card)?;
            let engine = Engine::new(HybridBackend::new(device, CpuBackend::new()), &model, options(64))?;
            Ok(Generator::new(engine, model.tokenizer()?))
        };
        Server::start(ServeOptions::default(), made).expect("room")
    };
    let [idle, busy] = [start(), start()];
    let on_card = |server: &Server| server.handle().figures().placement.expect("groups").device_bytes;
    assert!(
        on_card(&idle) > 0 && on_card(&busy) > 0,
        "everything begins on the device"
    );
    let request = Request {
        sampler: SamplerConfig::greedy(),
        max_tokens: 4,
        ..Request::new(tiny.ids[..3].to_vec())
    };
    let text = |server: &Server| {
        let events = server.handle().submit(request.clone()).expect("room in the queue");
        let ids = events.filter_map(|event| match event.expect("it runs") {
            Event::Token { token, .. } => Some(token.id),
            _ => None,
        });
        ids.collect::<Vec<u32>>()
    };
    let expected = text(&busy);
    sim.pause(Duration::from_millis(2500));
    assert_eq!(text(&busy), expected);
    assert_eq!(on_card(&idle), 0, "the desktop has taken the memory");
    // It computes on the CPU now.
    assert_eq!(text(&idle), expected);
    let desktop = sim.desktop(0).expect("the card has one");
    assert_eq!(
        (desktop.evicted_by_us, desktop.queue_stops),
        (Bytes(0), 0),
        "{desktop:?}"
    );
}
