//! One process, sixteen threads, each with a stream of its own, all on the one card at once.

use rocmforge::backend::{Elems, HipBackend, HipBuffer, HipResult, HipStream};
use rocmforge_kernels::{Kernels, MatmulShape, reference};
use rocmforge_testkit::compare::{Tolerance, assert_close, compare_here};
use rocmforge_testkit::data::{poison, rng, widen};
use rocmforge_testkit::gpu;
use std::sync::{Arc, Barrier};

const THREADS: usize = 16;
/// Turns of each thread on a card, where they take no time: every turn leaves its memory to those of other threads. The first
/// one, which is all there is in simulation, is compared with other devices too.
const TURNS: usize = 50;

/// What a thread computed, and what it should have.
struct Computed {
    what: &'static str,
    found: Vec<f32>,
    expected: Vec<f64>,
    tolerance: Tolerance,
}

impl Computed {
    /// Compares without keeping what was computed.
    fn check(&self) {
        let shape = [self.found.len()];
        if let Err(mismatch) = compare_here(&self.found, &self.expected, &shape, self.tolerance) {
            panic!("{}: {mismatch}", self.what);
        }
    }
}

#[test]
fn sixteen_threads_with_streams_of_their_own() {
    let gpu = gpu();
    let (backend, kernels) = (gpu.backend(), gpu.kernels());
    let common = rng(16).vec(1025);
    // Written by the backend's stream, read by sixteen others.
    let shared = HipBuffer::from_slice(backend.stream(), &common, "shared").unwrap();
    let start = Barrier::new(THREADS);
    let turns = if gpu.sim().is_some() { 1 } else { TURNS };
    let computed: Vec<Vec<Computed>> = std::thread::scope(|scope| {
        let run = |thread: usize| {
            let (shared, common, start) = (&shared, &common, &start);
            move || {
                let stream = backend.create_stream(&format!("thread {thread}")).unwrap();
                start.wait();
                let turn = |turn: usize| {
                    let seed = (thread * TURNS + turn) as u64;
                    turn_of(backend, kernels, &stream, seed, shared, common).unwrap()
                };
                let first = turn(0);
                for turn in (1..turns).map(turn) {
                    turn.iter().for_each(Computed::check);
                }
                first
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // Compared here, in the same order every time: devices are compared by the order of their buffers.
    for (thread, computed) in computed.into_iter().enumerate() {
        for Computed {
            what,
            found,
            expected,
            tolerance,
        } in computed
        {
            println!("thread {thread}: {what}");
            assert_close(&found, &expected, &[found.len()], tolerance);
        }
    }
}

/// Up, kernels of which some depend on others, and down, on one stream.
fn turn_of(
    backend: &Arc<HipBackend>,
    kernels: &Kernels,
    stream: &HipStream,
    seed: u64,
    shared: &HipBuffer<f32>,
    common: &[f32],
) -> HipResult<Vec<Computed>> {
    let mut random = rng(seed).quiet();
    let (m, k, n) = (17 + random.below(16), 33, 31);
    let (a, b) = (random.vec(m * k), random.vec(k * n));
    let (da, db) = (
        HipBuffer::from_slice(stream, &a, "a")?,
        HipBuffer::from_slice(stream, &b, "b")?,
    );
    let out = |len: usize| HipBuffer::from_slice(stream, &poison(len), "output");
    let (product, soft) = (out(m * n)?, out(m * n)?);
    let (copied, scaled) = (out(common.len())?, out(common.len())?);
    let shape = MatmulShape::new(m, n, k);
    let launched = kernels
        .copy(stream, shared, &copied)
        .and_then(|()| kernels.matmul(stream, &da, &db, None, &product, shape))
        .and_then(|()| kernels.scale(stream, &copied, &scaled, 0.5))
        .and_then(|()| kernels.softmax(stream, &product, &soft, m, n, 1.0));
    launched.expect("checked shapes");
    // A buffer made and dropped between launches is memory for another thread.
    drop(HipBuffer::<f32>::zeroed(backend.stream(), Elems(m * n), "short-lived")?);
    let multiplied = product.to_vec(stream)?;
    let expected_of_softmax = reference::softmax(&multiplied, n, 1.0);
    let halved = common.iter().map(|&v| f64::from(v) * 0.5).collect();
    Ok(vec![
        Computed {
            what: "copy of what all share",
            found: copied.to_vec(stream)?,
            expected: widen(common),
            tolerance: Tolerance::Exact,
        },
        Computed {
            what: "matmul",
            found: multiplied,
            expected: reference::matmul(&a, &b, None, shape),
            tolerance: Tolerance::Absolute(1e-5),
        },
        Computed {
            what: "scale",
            found: scaled.to_vec(stream)?,
            expected: halved,
            tolerance: Tolerance::Exact,
        },
        Computed {
            what: "softmax",
            found: soft.to_vec(stream)?,
            expected: expected_of_softmax,
            tolerance: Tolerance::Absolute(1e-5),
        },
    ])
}
