//! Streams on the simulated card, which runs queued work in any legal order.

use super::{assert_clean, backend};
use rocmforge_runtime::*;

#[test]
fn two_readers_and_a_writer_on_three_streams() {
    for seed in 0..32 {
        let (sim, backend) = backend(seed);
        let writer = backend.create_stream("writer").unwrap();
        let readers = [0, 1].map(|_| backend.create_stream("reader").unwrap());
        let shared = HipBuffer::<u32>::zeroed(&writer, Elems(64), "shared").unwrap();
        let sinks = [0, 1].map(|i| HipBuffer::<u32>::zeroed(&readers[i], Elems(64 * 4), "sink").unwrap());
        for round in 0..4usize {
            shared.copy_from_host(&writer, &[round as u32; 64]).unwrap();
            for (reader, sink) in readers.iter().zip(&sinks) {
                sink.view(round * 64..(round + 1) * 64)
                    .unwrap()
                    .copy_from_buffer(reader, &shared)
                    .unwrap();
            }
        }
        let expected: Vec<u32> = (0..4).flat_map(|round| [round; 64]).collect();
        for sink in &sinks {
            assert_eq!(sink.to_vec(&writer).unwrap(), expected, "seed {seed}");
        }
        drop((writer, readers, shared, sinks, backend));
        assert_clean(&sim);
    }
}

#[test]
fn large_copies_come_back() {
    let (sim, backend) = backend(7);
    let other = backend.create_stream("other").unwrap();
    for len in [1, 31, 32, 33, 1 << 18, (1 << 18) + 1, (5 << 18) + 3] {
        let data: Vec<u32> = (0..len).collect();
        let buffer = HipBuffer::from_slice(backend.stream(), &data, "data").unwrap();
        assert_eq!(buffer.to_vec(&other).unwrap(), data, "{len} elements");
        let pending = buffer.download_async(&other).unwrap();
        drop(buffer);
        assert_eq!(pending.wait().unwrap()[..], data[..], "{len} elements");
    }
    drop((other, backend));
    assert_clean(&sim);
}

#[test]
fn the_budget_sees_the_desktop() {
    let (sim, backend) = backend(1);
    let before = backend.safe_alloc_size().unwrap();
    let (free, total) = backend.get_memory_info().unwrap();
    assert!(before <= free && free < total);
    sim.set_desktop_used(0, total as u64);
    assert_eq!(backend.safe_alloc_size().unwrap(), 0);
    let error = backend.allocate_buffer_safe(1).unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    drop(backend);
    assert_clean(&sim);
}
