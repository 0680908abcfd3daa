//! A whole MLP without leaving the device: down(silu(gate x) * (up x)).

use crate::support::{Device, device};
use rocmforge_kernels::{MatmulShape, reference};
use rocmforge_testkit::data::rng;

const TOKENS: usize = 5;
const HIDDEN: usize = 48;
const INNER: usize = 70;

fn narrow(x: Vec<f64>) -> Vec<f32> {
    x.into_iter().map(|v| v as f32).collect()
}

fn run(d: &Device) {
    let mut random = rng(1);
    let x = random.vec(TOKENS * HIDDEN);
    let weights = [
        random.vec(INNER * HIDDEN),
        random.vec(INNER * HIDDEN),
        random.vec(HIDDEN * INNER),
    ];
    let (wide, back) = (
        MatmulShape::linear(TOKENS, INNER, HIDDEN),
        MatmulShape::linear(TOKENS, HIDDEN, INNER),
    );

    let (k, s) = (&d.kernels, d.stream());
    let input = d.up(&x);
    let [gate, up, down] = weights.each_ref().map(|w| d.up(w));
    let (g, u, y) = (d.out(TOKENS * INNER), d.out(TOKENS * INNER), d.out(TOKENS * HIDDEN));
    k.matmul(s, &input, &gate, None, &g, wide).unwrap();
    k.matmul(s, &input, &up, None, &u, wide).unwrap();
    k.swiglu(s, &g, &u, &g).unwrap();
    k.matmul(s, &g, &down, None, &y, back).unwrap();

    let gate = narrow(reference::matmul(&x, &weights[0], None, wide));
    let up = narrow(reference::matmul(&x, &weights[1], None, wide));
    let inner = narrow(reference::swiglu(&gate, &up));
    d.close(
        &y,
        &reference::matmul(&inner, &weights[2], None, back),
        &[TOKENS, HIDDEN],
        1e-3,
    );
}

#[test]
fn test_mlp_swiglu_gpu_only_path() {
    run(&device());
}

/// Between the first and the last kernel nothing waits: everything is queued before anything is read back.
#[test]
fn test_no_host_roundtrip_in_mlp_layer() {
    let d = device();
    let Some(sim) = d.lease().sim().cloned() else {
        return run(&d);
    };
    let before = sim.launches();
    run(&d);
    assert_eq!(sim.launches() - before, 4, "four kernels make an MLP");
}
