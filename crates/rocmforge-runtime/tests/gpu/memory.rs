//! Buffers and copies on a device.

use rocmforge_runtime::*;
use rocmforge_testkit::compare::assert_same;
use rocmforge_testkit::data::rng;
use rocmforge_testkit::{LeaseOptions, gpu, gpu_with};
use serial_test::serial;

const LENGTHS: [usize; 10] = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129];

fn values(len: usize) -> Vec<f32> {
    (0..len).map(|i| i as f32 * 0.5 - 7.0).collect()
}

#[test]
#[serial]
fn test_hip_buffer_copy() {
    let gpu = gpu();
    let backend = gpu.backend();
    for len in LENGTHS {
        let data = values(len);
        let buffer = HipBuffer::<f32>::zeroed(backend.stream(), Elems(len), "copy").unwrap();
        buffer.copy_from_host(backend.stream(), &data).unwrap();
        let mut back = vec![f32::NAN; len];
        buffer.copy_to_host(backend.stream(), &mut back).unwrap();
        assert_same(&back, &data, &format!("{len} elements"));
        let mut back = vec![f32::NAN; len];
        backend.copy_from_device_safe(&buffer, &mut back).unwrap();
        assert_same(&back, &data, &format!("{len} elements"));
    }
}

#[test]
#[serial]
fn test_gpu_memory_roundtrip() {
    let gpu = gpu();
    // Below, at and above one piece of staging memory, and above all of it.
    for len in [(1 << 18) - 1, 1 << 18, (1 << 18) + 1, (4 << 18) + 129] {
        let data = values(len);
        let tensor = DeviceTensor::from_host(gpu.backend(), &data, &[len]).unwrap();
        assert_same(&tensor.to_host().unwrap(), &data, &format!("{len} elements"));
    }
}

#[test]
#[serial]
fn test_gpu_buffer_allocation() {
    let gpu = gpu();
    let backend = gpu.backend();
    let before = backend.safe_alloc_size().unwrap();
    for size in [1, 255, 256, 257, 1 << 20, (1 << 20) + 1] {
        assert!(backend.can_allocate(size).unwrap());
        let buffer = backend.allocate_buffer_safe(size).unwrap();
        assert_eq!(buffer.byte_len(), size);
        assert!(backend.safe_alloc_size().unwrap() <= before - size);
        assert_same(&buffer.to_vec(backend.stream()).unwrap(), &vec![0; size], "zeroed");
    }
    backend.synchronize().unwrap();
    assert!(!backend.can_allocate(usize::MAX).unwrap());
}

#[test]
#[serial]
fn a_budget_in_bytes_is_all_there_for_buffers() {
    // Whatever the driver holds for the process beside them, and though it has begun to before the first.
    let budget = Bytes::mib(8);
    let gpu = gpu_with(LeaseOptions {
        policy: Policy::fixed(budget),

        ..LeaseOptions::default()
    });
    let backend = gpu.backend();
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(backend.allocate_buffer_safe(1 << 20).unwrap());
    }
    let error = backend.allocate_buffer_safe(1).unwrap_err();
    match &error {
        HipError::OutOfBudget(refused) => {
            assert_eq!(
                (refused.available, refused.limit),
                (Bytes::ZERO, rocmforge_memory::Limit::Cap),
                "{error}"
            );
        }
        other => panic!("{other}"),
    }
    held.pop();
    backend.synchronize().unwrap();
    held.push(backend.allocate_buffer_safe(1 << 20).unwrap());
    let now = backend.card().budget();
    assert_eq!(now.committed, budget);
    assert_eq!(now.budget.0, budget.0 + (now.own.0 - now.committed.0), "{now:?}");
}

#[test]
#[serial]
fn test_gpu_to_gpu_copy() {
    let gpu = gpu();
    let backend = gpu.backend();
    let other = backend.create_stream("other").unwrap();
    for len in LENGTHS {
        let data = values(len);
        let from = HipBuffer::from_slice(backend.stream(), &data, "from").unwrap();
        // SAFETY: the copy below writes all of it.
        let to = unsafe { HipBuffer::<f32>::uninit(&other, Elems(len), "to") }.unwrap();
        to.copy_from_buffer(&other, &from).unwrap();
        assert_same(&to.to_vec(backend.stream()).unwrap(), &data, &format!("{len} elements"));
    }
}

#[test]
#[serial]
fn test_attention_cpu_fallback_buffer_size_consistency() {
    // What a fallback to the CPU copies back has the size the device was given, for scores of odd shapes.
    let gpu = gpu();
    for (heads, seq_q, seq_k) in [(1, 1, 1), (2, 31, 33), (3, 65, 129)] {
        let shape = [heads, seq_q, seq_k];
        let scores = DeviceTensor::zeros(gpu.backend(), &shape).unwrap();
        assert_eq!(scores.size_bytes(), heads * seq_q * seq_k * size_of::<f32>());
        assert_eq!(scores.to_host().unwrap().len(), scores.len());
    }
}

#[test]
#[serial]
fn views_share_what_is_written() {
    let gpu = gpu();
    let stream = gpu.backend().stream();
    let data = values(129);
    let whole = HipBuffer::from_slice(stream, &data, "whole").unwrap();
    let view = whole.view(33..97).unwrap();
    view.copy_from_host(stream, &[1.5; 64]).unwrap();
    drop(view);
    let back = whole.to_vec(stream).unwrap();
    assert_eq!(back[..33], data[..33]);
    assert_eq!(back[33..97], [1.5; 64]);
    assert_eq!(back[97..], data[97..]);
}

#[test]
#[serial]
fn streams_order_themselves() {
    let gpu = gpu();
    let backend = gpu.backend();
    let streams: Vec<HipStream> = (0..3).map(|_| backend.create_stream("worker").unwrap()).collect();
    let buffers: Vec<HipBuffer<u32>> = (0..4)
        .map(|_| HipBuffer::zeroed(&streams[0], Elems(65), "b").unwrap())
        .collect();
    let mut model = vec![vec![0u32; 65]; 4];
    let mut rng = rng(0x5eed);
    for step in 0..300u32 {
        let mut pick = |n: usize| (rng.next_u64() % n as u64) as usize;
        let (stream, to, from) = (&streams[pick(3)], pick(4), pick(4));
        if to == from {
            buffers[to].copy_from_host(stream, &[step; 65]).unwrap();
            model[to] = vec![step; 65];
        } else {
            buffers[to].copy_from_buffer(stream, &buffers[from]).unwrap();
            model[to] = model[from].clone();
        }
    }
    for (index, (buffer, expected)) in buffers.iter().zip(&model).enumerate() {
        assert_same(
            &buffer.to_vec(&streams[index % 3]).unwrap(),
            expected,
            &format!("buffer {index}"),
        );
    }
}
