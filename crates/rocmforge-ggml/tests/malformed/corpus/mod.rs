//! The corpus: each entry is a fault, how a graph with it is built, and what the message must say.

mod descriptors;
mod operands;
mod structure;

use rocmforge_ggml::{
    CpuBackend, DType, FlashAttnExt, Graph, Layout, Op, PagedAttention, Rope, RopeStyle, Strictness, TensorDesc,
    TensorId, executor, validate_graph,
};

fn f32(g: &mut Graph, shape: &[usize]) -> TensorId {
    g.add_tensor(TensorDesc::f32(shape))
}

fn of(g: &mut Graph, dtype: DType, shape: &[usize]) -> TensorId {
    g.add_tensor(TensorDesc::new(shape, dtype, Layout::RowMajor))
}

/// A node with an f32 output.
fn node(g: &mut Graph, op: Op, inputs: &[TensorId], out: &[usize]) -> TensorId {
    let y = f32(g, out);
    g.add_node(op, inputs.to_vec(), vec![y]);
    y
}

/// A tensor with these parts of its descriptor, a view of a tensor of 16 f32.
fn view(g: &mut Graph, change: impl Fn(&mut TensorDesc)) -> TensorId {
    let base = f32(g, &[16]);
    let mut desc = TensorDesc::view_of(g.tensor(base).expect("there"), 0);
    desc.view_of = Some(base);
    change(&mut desc);
    g.add_tensor(desc)
}

const SCALE: Op = Op::Scale { factor: 2.0 };

fn rope(g: &mut Graph, rope: Rope, positions: &[usize]) {
    let (x, p) = (f32(g, &[2, 3, 4, 8]), of(g, DType::U32, positions));
    node(g, Op::Rope(rope), &[x, p], &[2, 3, 4, 8]);
}

const ROPE: Rope = Rope::new(8, 10_000.0, RopeStyle::HalfSplit, 64);

const FLASH: FlashAttnExt = FlashAttnExt {
    scale: 1.0,
    max_bias: 0.0,
    softcap: 0.0,
    mask: false,
    sinks: false,
};

fn flash(g: &mut Graph, a: FlashAttnExt, shapes: &[&[usize]]) {
    let inputs: Vec<TensorId> = shapes.iter().map(|shape| f32(g, shape)).collect();
    node(g, Op::FlashAttnExt(a), &inputs, &[1, 3, 4, 8]);
}

fn paged(g: &mut Graph, block_size: usize, table: DType, tokens: usize) {
    let op = Op::PagedAttention(PagedAttention {
        heads: 2,
        kv_heads: 1,
        head_dim: 4,
        scale: 1.0,
        block_size,
        window: None,
        softcap: None,
        sinks: false,
    });
    let q = f32(g, &[3, 8]);
    let [k, v] = [0, 1].map(|_| f32(g, &[8, 4]));
    let table = of(g, table, &[1, 2]);
    let [s, p] = [0, 1].map(|_| of(g, DType::U32, &[tokens]));
    node(g, op, &[q, k, v, table, s, p], &[3, 8]);
}

/// Name, how it is built, a part of the message.
type Entry = (&'static str, fn(&mut Graph), &'static str);

fn corpus() -> impl Iterator<Item = &'static Entry> {
    [structure::ENTRIES, operands::ENTRIES, descriptors::ENTRIES]
        .into_iter()
        .flatten()
}

#[test]
fn every_malformed_graph_is_refused_with_a_message_that_says_why() {
    assert!(corpus().count() >= 40);
    let mut wrong = Vec::new();
    for &(name, build, says) in corpus() {
        let mut graph = Graph::new();
        build(&mut graph);
        let checked = validate_graph(&graph, Strictness::Strict)
            .err()
            .map(|error| error.to_string());
        let run = executor::execute_graph(&mut CpuBackend::with_threads(1), &graph).err();
        if !checked.as_ref().is_some_and(|message| message.contains(says)) {
            wrong.push(format!("{name}: {checked:?} does not say {says:?}"));
        }
        assert_eq!(
            run.map(|error| error.to_string()),
            checked,
            "{name}: an execution checks the same"
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn names_are_distinguished() {
    let names: std::collections::BTreeSet<&str> = corpus().map(|entry| entry.0).collect();
    assert_eq!(names.len(), corpus().count());
}
