//! Launches of latent attention, and of products with parts of rows, that a device runs as one.

use rocmforge_ggml::optimizer::{GraphOptimizer, Pass};
use rocmforge_ggml::{DType, Graph, Layout, Op, RopeStyle, TensorDesc, planner};

use crate::common::latent::{Latent, MISSES, yarn};

const PLAIN: Latent = Latent {
    tokens: 3,
    heads: 2,
    rank: 36,
    nope: 8,
    shared: 12,
    slots: 5,
    cache: DType::F16,
    rope: None,
    factors: false,
    miss: "nothing",
};

/// The names of the launches that are to run with the one before.
fn joined(latent: Latent, optimizer: GraphOptimizer) -> (Graph, Vec<&'static str>) {
    let mut graph = latent.graph().expect("the operands fit").0;
    optimizer.optimize(&mut graph);
    let launches = graph.launches().into_owned();
    let names = launches.iter().filter(|launch| launch.is_joined());
    let names = names.map(|launch| launch.kernel().name()).collect();
    (graph, names)
}

fn turned(latent: Latent) -> Latent {
    Latent {
        rope: Some(yarn(8, RopeStyle::Interleaved)),
        factors: true,
        ..latent
    }
}

const ALL: [&str; 8] = [
    "ROPE", "CONCAT", "CONT", "RMS_NORM", "CONT", "ROPE", "CONCAT", "SET_ROWS",
];

#[test]
fn rows_of_latent_attention_are_one_launch() {
    let optimizer = GraphOptimizer::new().without(Pass::RopeSetRows).joining();
    assert_eq!(joined(turned(PLAIN), optimizer).1, ALL);
    // The row of one token has no gaps, so nothing is copied before the norm.
    let one = Latent { tokens: 1, ..PLAIN };
    let of_one = ["ROPE", "CONCAT", "RMS_NORM", "CONT", "ROPE", "CONCAT", "SET_ROWS"];
    assert_eq!(joined(turned(one), optimizer).1, of_one);
    // A model without rotary embedding.
    let without: Vec<&str> = ALL.into_iter().filter(|name| *name != "ROPE").collect();
    assert_eq!(joined(PLAIN, optimizer).1, without);
    assert_eq!(
        joined(turned(PLAIN), GraphOptimizer::new().without(Pass::RopeSetRows)).1,
        [""; 0]
    );
}

#[test]
fn what_is_nearly_so_is_left() {
    let optimizer = GraphOptimizer::new().without(Pass::RopeSetRows).joining();
    for miss in MISSES {
        let latent = turned(Latent { miss, ..PLAIN });
        assert_eq!(joined(latent, optimizer).1, [""; 0], "{miss}");
    }
    let none = Latent { tokens: 0, ..PLAIN };
    assert_eq!(joined(turned(none), optimizer).1, [""; 0], "nothing to compute");
}

/// The queries lie over nothing that the launch reads, though each of the launches apart could end before the next begins.
#[test]
fn what_one_launch_reads_lives_until_it_ends() {
    let optimizer = GraphOptimizer::new().without(Pass::RopeSetRows).joining();
    let (mut graph, names) = joined(turned(PLAIN), optimizer);
    assert_eq!(names, ALL);
    planner::share_memory(&mut graph).expect("planned");
    let launches = graph.launches();
    let group: Vec<_> = launches.iter().take(ALL.len() + 1).collect();
    let place = |id| (graph.root(id), graph.tensor(id).expect("there").span());
    let queries = group[2].outputs()[0];
    let (root, span) = place(queries);
    for &input in group.iter().flat_map(|launch| launch.inputs()) {
        let (other, part) = place(input);
        let apart = other != root || part.end <= span.start || span.end <= part.start;
        assert!(apart, "{input} is under the queries {queries}");
    }
}

/// Rows of 64 elements, copied, times quantised experts. `strides` are the view's of `[2, 3, 64]`; `marked`: the copy is a result, too.
#[test]
fn copies_of_parts_of_rows_are_joined_to_the_product_after_them() {
    let optimizer = GraphOptimizer::fusions().joining();
    for (strides, dtype, marked, joined) in [
        ([210, 70, 1], DType::Q8_0, false, 1),
        ([210, 70, 1], DType::Q8_0, true, 0),
        ([210, 70, 1], DType::F16, false, 0),
        // Rows at several distances, rows over each other, and columns that are no neighbours.
        ([350, 70, 1], DType::Q8_0, false, 0),
        ([96, 32, 1], DType::Q8_0, false, 0),
        ([420, 140, 2], DType::Q8_0, false, 0),
    ] {
        let mut graph = Graph::new();
        let x = graph.add_tensor(TensorDesc::f32([1000]));
        let mut view = TensorDesc::view_of(graph.tensor(x).expect("there"), 12);
        (view.shape, view.strides, view.layout) = (vec![2, 3, 64], strides.to_vec(), Layout::Strided);
        let view = graph.add_tensor(view);
        graph.add_node(Op::View, vec![x], vec![view]);
        let copy = graph.push(Op::Cont, &[view]).expect("fits");
        let experts = graph.add_tensor(TensorDesc::new([4, 64, 32], dtype, Layout::ColMajor));
        let ids = graph.add_tensor(TensorDesc::u32([2, 3]));
        let y = graph.push(Op::MulMatId, &[copy, experts, ids]).expect("fits");
        graph.mark_output(y);
        if marked {
            graph.mark_output(copy);
        }
        optimizer.optimize(&mut graph);
        let count = graph.launches().iter().filter(|launch| launch.is_joined()).count();
        assert_eq!(count, joined, "{strides:?}, {dtype}, {marked}");
    }
}
