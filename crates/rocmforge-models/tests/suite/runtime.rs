//! Memory of an engine: its size, what steps keep, and that nothing of an earlier step is left in it.

use crate::reference::{Tiny, engine};
use rocmforge_ggml::{CpuBackend, HipGgmlBackend, HostAccess};
use rocmforge_models::config::RecurrentKind;
use rocmforge_models::{Engine, EngineOptions, KvType, Limit, Model};
use rocmforge_testkit::{GpuLease, gpu};

/// Bits of the logits after a prompt and three more tokens, in a sequence that finds nothing of earlier ones in the cache.
fn logits<B: HostAccess>(engine: &mut Engine<B>, tokens: &[u32]) -> Vec<Vec<u32>> {
    let (prompt, more) = tokens.split_at(tokens.len() - 3);
    let sequence = engine.add_sequence(&[]).expect("room");
    assert_eq!(engine.cached_tokens(sequence).expect("there"), 0);
    let mut rows = vec![engine.prefill(sequence, prompt).expect("runs")];
    for &token in more {
        rows.push(engine.decode(sequence, token).expect("runs"));
    }
    engine.remove(sequence).expect("there");
    let bits = |row: Vec<f32>| row.into_iter().map(f32::to_bits).collect();
    rows.into_iter().map(bits).collect()
}

fn held(gpu: &GpuLease) -> usize {
    usize::try_from(gpu.backend().card().budget().committed.0).expect("a size")
}

#[test]
fn scratch_buffer_reuse_invariant() {
    for name in ["llama.gguf", "gemma3.gguf"] {
        let gpu = gpu();
        let all = Tiny::all();
        let tiny = all.iter().find(|tiny| tiny.file == name).expect("a committed model");
        let mut engine = engine(HipGgmlBackend::new(gpu.backend()).expect("kernels"), &tiny.open(), 64);
        let (plan, loaded) = (*engine.memory(), held(&gpu));
        let tokens = &tiny.ids[..23];
        let first = logits(&mut engine, tokens);
        let mut kept = Vec::new();
        for round in 0..3 {
            // More shapes than are kept prepared, with other tokens.
            for length in [8, 31, 15, 5] {
                let other: Vec<u32> = tokens.iter().rev().cycle().take(length).copied().collect();
                let rows = logits(&mut engine, &other);
                assert_ne!(rows, first[..rows.len()], "{name}: other tokens have other logits");
                let scratch = held(&gpu) - loaded;
                assert!(
                    scratch <= plan.scratch,
                    "{name}, round {round}: {scratch} of {}",
                    plan.scratch
                );
            }
            assert_eq!(logits(&mut engine, tokens), first, "{name}, round {round}");
            kept.push(held(&gpu));
        }
        assert!(kept[0] > loaded, "{name}: prepared steps are kept");
        assert_eq!(kept, [kept[0]; 3], "{name}: memory grows with steps");
    }
}

/// What two engines of a model say of themselves before anything ran, and what they compute first.
fn initialised<B: HostAccess>(backend: B, model: &Model, tokens: &[u32]) -> (Vec<usize>, Vec<Vec<u32>>) {
    let options = EngineOptions {
        max_context: Limit::Tokens(50),
        max_sequences: 1,
        kv: KvType::F32,
        ..EngineOptions::default()
    };
    let mut steps = Vec::new();
    let progress = |loaded, total| steps.push((loaded, total));
    let mut engine = Engine::with_progress(backend, model, options, progress).expect("room");
    let (config, plan) = (engine.config().clone(), *engine.memory());
    assert!(steps.is_sorted() && steps.iter().all(|&(_, total)| total == plan.weights));
    assert_eq!(steps.last(), Some(&(plan.weights, plan.weights)));
    // Four blocks of 16 tokens hold 50, and one takes padding: keys and values of every head, in f32, of the layers that have some of their own.
    let is_recurrent = |layer| {
        config
            .recurrent
            .as_ref()
            .is_some_and(|recurrent| recurrent.layers[layer])
    };
    let beside = config.recurrent.as_ref().is_some_and(|recurrent| recurrent.beside);
    let attends = |layer| *config.mixes.get(layer) && (beside || !is_recurrent(layer));
    let keeps = |layer: &usize| config.cache_of.get(*layer).is_none() && attends(*layer);
    let length = |layer| config.head_dim.of(layer).max(config.value_dim.of(layer));
    let rows = (0..config.layers)
        .filter(keeps)
        .map(|layer| config.kv_heads.of(layer) * length(layer));
    // What latent attention keeps is key and value.
    let tensors = if config.latent.is_some() { 1 } else { 2 };
    // States of one sequence: read, written, two checkpoints, zeros, and two of padding.
    let of_states = config.recurrent.as_ref().map_or(0, |recurrent| {
        let before = recurrent.taps - 1;
        let one = match recurrent.kind {
            RecurrentKind::ShortConv => config.width * before,
            RecurrentKind::DeltaNet(net) | RecurrentKind::KimiDelta(net) => {
                (2 * net.key_heads + net.heads) * net.dim * before + net.heads * net.dim * net.dim
            }
            RecurrentKind::Mamba2(scan) => {
                let inner = scan.heads * scan.dim;
                (inner + 2 * scan.groups * scan.state) * before + inner * scan.state
            }
        };
        7 * one * recurrent.layers.iter().filter(|is_recurrent| **is_recurrent).count()
    });
    let cache = 4 * (tensors * rows.sum::<usize>() * 80 + of_states);
    assert_eq!((plan.max_context, plan.cache_tokens, plan.cache), (50, 50, cache));
    assert_eq!((engine.max_context(), engine.chunk()), (50, options.chunk));
    // A window and a chunk are more than all tokens.
    assert!(engine.cache().free_blocks().0.iter().all(|&free| free == 4));
    let said = vec![plan.weights, plan.cache, plan.scratch, plan.max_context];
    let rows = logits(&mut engine, tokens);
    assert!(rows.iter().all(|row| row.len() == config.vocab));
    (said, rows)
}

#[test]
fn model_runtime_initialization_consistency() {
    let gpu = gpu();
    let empty = held(&gpu);
    for tiny in Tiny::all() {
        let model = tiny.open();
        let tokens = &tiny.ids[..12];
        let cpu = || initialised(CpuBackend::with_threads(2), &model, tokens);
        let device = || initialised(HipGgmlBackend::new(gpu.backend()).expect("kernels"), &model, tokens);
        let on_device = device();
        assert_eq!(cpu(), cpu(), "{}", tiny.file);
        assert_eq!(on_device, device(), "{}", tiny.file);
        // The same plan everywhere, but that passes fuse what has fewer intermediates on the CPU; the logits differ in their rounding,
        // which other tests look at. Of latent attention devices read the sums of a step's heads where they lie, and the CPU copies them.
        let (on_cpu, on_device) = (cpu().0, on_device.0);
        let scratch = [on_cpu[2], on_device[2]];
        let config = model.config();
        let copied = config
            .latent
            .map_or(0, |latent| 64 * config.heads.of(0) * latent.rank * 4);
        // Passes of devices order nodes in another way: fewer intermediates of attention and of what is beside it, or of a recurrent layer, are there at a time.
        let is_beside = config.recurrent.is_some() || config.streams.is_some();
        let of_attention = 64 * (config.heads.of(0) + 2 * config.kv_heads.of(0)) * config.head_dim.of(0) * 4;
        let copied = copied + if is_beside { of_attention } else { 0 };
        assert!(scratch[0] <= scratch[1] + copied, "{}: {scratch:?}", tiny.file);
        for place in [0, 1, 3] {
            assert_eq!(on_cpu[place], on_device[place], "{}", tiny.file);
        }
        assert_eq!(held(&gpu), empty, "{}: an engine that is gone holds nothing", tiny.file);
    }
}
