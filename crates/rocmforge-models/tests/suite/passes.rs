//! Decoders and the encoder with and without the optimizer's passes: the same logits.

use std::collections::BTreeSet;

use crate::reference::{Tiny, best, model_file};
use rocmforge_ggml::optimizer::{Bound, GraphOptimizer, Pass};
use rocmforge_ggml::{CpuBackend, GgmlBackend, Graph, HostAccess, Node, TensorId};
use rocmforge_models::bert::{Bert, Embedder, EmbedderOptions};
use rocmforge_models::{Engine, EngineOptions, KvType, Limit, Model};
use rocmforge_testkit::{gpu, skip};

/// All passes that keep every bit.
fn exact() -> GraphOptimizer {
    let keeps_bits = |pass: &Pass| pass.bound() == Bound::Bits;
    Pass::ALL
        .into_iter()
        .filter(keeps_bits)
        .fold(GraphOptimizer::none(), GraphOptimizer::with)
}

fn engine<B: HostAccess>(backend: B, model: &Model, passes: Option<GraphOptimizer>) -> Engine<B> {
    let options = EngineOptions {
        max_context: Limit::Tokens(64),
        max_sequences: 1,
        kv: KvType::F32,
        chunk: 16,
        passes,
        ..EngineOptions::default()
    };
    Engine::new(backend, model, options).expect("the model loads")
}

/// Logits after a prompt, and after each of some more tokens.
fn logits<B: HostAccess>(engine: &mut Engine<B>, ids: &[u32], more: usize) -> Vec<Vec<f32>> {
    let (prompt, rest) = ids.split_at(ids.len() - more);
    let sequence = engine.add_sequence(prompt).expect("room");
    let mut rows = vec![engine.prefill(sequence, prompt).expect("runs")];
    rows.extend(rest.iter().map(|&token| engine.decode(sequence, token).expect("runs")));
    engine.remove(sequence).expect("there");
    rows
}

#[track_caller]
fn check_near(found: &[Vec<f32>], expected: &[Vec<f32>]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(best(found), best(expected));
        let largest = expected.iter().fold(0f32, |most, value| most.max(value.abs()));
        for (f, e) in found.iter().zip(expected) {
            assert!((f - e).abs() <= 1e-4 * largest, "{f}, expected {e}");
        }
    }
}

/// The same bits with the passes that keep them, near ones with all.
fn check(name: &str, model: &Model, ids: &[u32]) {
    let cpu = || CpuBackend::with_threads(2);
    let mut plain = engine(cpu(), model, Some(GraphOptimizer::none()));
    let expected = logits(&mut plain, ids, 3);
    assert_eq!(
        logits(&mut engine(cpu(), model, Some(exact())), ids, 3),
        expected,
        "{name}"
    );
    let mut all = engine(cpu(), model, None);
    check_near(&logits(&mut all, &ids[..ids.len() - 3], 0), &expected[..1]);
    let prompt = all.last_step().expect("steps ran").optimized;
    assert!(
        prompt.counts.of(Pass::LastRows) > 0,
        "{name}: only the last row of the last layer is needed"
    );
    let mut all = engine(cpu(), model, None);
    check_near(&logits(&mut all, ids, 3), &expected);
    let nodes = |engine: &Engine<CpuBackend>| {
        let step = engine.last_step().expect("steps ran");
        (step.graph.launches().len(), step.optimized.to_string())
    };
    for engine in [&plain, &all] {
        // What the planner places over an operand overwrites it as it is read.
        assert_eq!(engine.backend().operand_copies(), 0, "{name}");
    }
    let ((before, nothing), (after, did)) = (nodes(&plain), nodes(&all));
    println!("{name}: prompt: {prompt}");
    println!("{name}: decode: {before} nodes, then {after} launches: {did}");
    assert_eq!(nothing, "0 noops, 0 DCE, 0 CSE, 0 layout (0 total)");
    // Products with experts, and those of gate and up with a bias, stay as they are.
    let gguf = model.gguf().expect("it is one");
    // Factors stand between what these passes join.
    if gguf.tensor("blk.0.attn_output.scale").is_some() {
        return;
    }
    // Layers of others have norms and branches in other places.
    let likes = ["llama", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "gemma3", "phi3"];
    if !likes.contains(&model.architecture().name()) {
        assert!(after < before, "{name}: {before} nodes, then {after} launches");
        return;
    }
    let stays = model.config().experts.values().any(Option::is_some)
        || ["gate", "up"]
            .iter()
            .any(|kind| gguf.tensor(&format!("blk.0.ffn_{kind}.bias")).is_some());
    let (passes, [part, of]) = match stays {
        false => (&[Pass::GateUp, Pass::Qkv, Pass::AddNorm, Pass::RopeSetRows][..], [3, 4]),
        true => (&[Pass::Qkv, Pass::AddNorm, Pass::RopeSetRows][..], [7, 8]),
    };
    assert!(
        after * of < before * part,
        "{name}: {before} nodes, then {after} launches"
    );
    for &pass in passes {
        let layers = model.config().layers;
        let step = all.last_step().expect("steps ran");
        assert!(
            step.optimized.counts.of(pass) >= layers,
            "{name}: {} in {layers} layers",
            pass.name()
        );
    }
}

#[test]
fn every_architecture_gives_the_same_logits() {
    for tiny in Tiny::all() {
        check(&tiny.file, &tiny.open(), &tiny.ids[..23]);
    }
}

/// Nodes whose operands are all constants, if those are: what constant folding would find first.
fn follow(graph: &Graph, is_constant: impl Fn(TensorId) -> bool) -> Vec<&'static str> {
    let of_constants = |node: &&Node| {
        let mut roots = node.inputs.iter().filter_map(|&id| graph.root(id));
        roots.all(&is_constant)
    };
    let nodes = graph.computing_nodes().filter(of_constants);
    nodes.map(|node| node.op.name()).collect()
}

/// Why a step names no constants to the optimizer.
#[test]
fn no_node_of_a_decoder_follows_from_its_weights() {
    for tiny in Tiny::all() {
        let mut plain = engine(CpuBackend::with_threads(2), &tiny.open(), Some(GraphOptimizer::none()));
        logits(&mut plain, &tiny.ids[..4], 1);
        let step = plain.last_step().expect("steps ran");
        let outputs = step.graph.nodes().iter().flat_map(|node| &node.outputs);
        let changes: BTreeSet<TensorId> = outputs
            .chain([&step.inputs])
            .filter_map(|&id| step.graph.root(id))
            .collect();
        let found = follow(&step.graph, |root| !changes.contains(&root));
        assert!(found.is_empty(), "{}: {found:?}", tiny.file);
    }
}

#[test]
fn smollm2_gives_the_same_logits() {
    let Some(path) = model_file("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") else {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    };
    let model = Model::open(path).expect("the file is whole");
    check(
        "SmolLM2-135M",
        &model,
        &[1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308],
    );
}

/// A graph with every pass on a device that has kernels for none of the fused ops.
#[test]
fn a_device_without_fused_kernels_runs_their_parts() {
    for name in ["llama.gguf", "gemma3.gguf"] {
        let all = Tiny::all();
        let tiny = all.iter().find(|tiny| tiny.file == name).expect("a committed model");
        let gpu = gpu();
        let device = || rocmforge_ggml::HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let ids = &tiny.ids[..12];
        let expected = logits(
            &mut engine(device(), &tiny.open(), Some(GraphOptimizer::none())),
            ids,
            3,
        );
        let every = Some(GraphOptimizer::new().without(Pass::Attention));
        let mut optimised = engine(device(), &tiny.open(), every);
        check_near(&logits(&mut optimised, ids, 3), &expected);
        assert!(optimised.backend().replays() > 0, "programs of parts are captured, too");
        check_near(&logits(&mut engine(device(), &tiny.open(), None), ids, 3), &expected);
    }
}

#[test]
fn the_encoder_gives_the_same_embeddings() {
    let directory = Bert::minilm_directory(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")));
    if !directory.exists() {
        skip!("all-MiniLM-L6-v2 is absent: cargo xtask model minilm");
    }
    let model = Bert::open(directory).expect("the files are whole");
    let texts = ["Graphs are rewritten.", "Each of two texts."];
    let [plain, passes] = [Some(GraphOptimizer::none()), None].map(|passes| {
        let options = EmbedderOptions {
            hidden: true,
            passes,
            ..EmbedderOptions::default()
        };
        let mut embedder = Embedder::new(model.clone(), CpuBackend::with_threads(2), options).expect("room");
        embedder.embed(&texts).expect("runs")
    });
    assert!(CpuBackend::with_threads(2).optimizer().has(Pass::Qkv));
    assert_eq!((&passes.embeddings, &passes.hidden), (&plain.embeddings, &plain.hidden));
    println!("encoder: {} launches, then {}", plain.launches, passes.launches);
    assert!(passes.launches < plain.launches);
}
