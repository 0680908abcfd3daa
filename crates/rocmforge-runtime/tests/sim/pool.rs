//! Memory that is reused again and again on a machine that runs queued work in any legal order and sees every stale pointer.

use super::{assert_clean, backend_on};
use rocmforge_hip_sys::*;
use rocmforge_runtime::*;
use rocmforge_sim::{Report, ReportKind, Schedule, SimConfig, SimHost, Tools};
use rocmforge_test_support::Random;
use std::ffi::c_void;
use std::sync::Arc;

/// No edge that HIP does not promise.
fn strict(seed: u64) -> SimConfig {
    let schedule = match seed % 5 {
        0 => Schedule::Lazy,
        1 => Schedule::Eager,
        2 => Schedule::Reverse,
        3 => Schedule::Pct { seed, depth: 3 },
        _ => Schedule::Random(seed),
    };
    SimConfig {
        seed,
        schedule,
        strict: true,
        tools: Tools::all(),
        ..SimConfig::default()
    }
}

fn pooled(seed: u64) -> (Arc<SimHost>, Arc<HipBackend>) {
    backend_on(strict(seed), PoolOptions::ON)
}

/// A program that makes, copies and drops buffers of a few sizes on three streams, and what each must contain.
fn program(backend: &Arc<HipBackend>, seed: u64, steps: usize) {
    let streams = [0, 1, 2].map(|_| backend.create_stream("worker").unwrap());
    let mut random = Random(seed);
    let mut held: Vec<(HipBuffer<u32>, Vec<u32>)> = Vec::new();
    for step in 0..steps as u32 {
        let stream = &streams[random.index(3)];
        let len = [17, 900, 1024, 1030][random.index(4)];
        match random.index(8) {
            0 | 1 => held.push((HipBuffer::zeroed(stream, Elems(len), "zeroed").unwrap(), vec![0; len])),
            2 => {
                let data: Vec<u32> = (0..len as u32).map(|i| i ^ (step << 16)).collect();
                held.push((HipBuffer::from_slice(stream, &data, "data").unwrap(), data));
            }
            3 if !held.is_empty() => {
                // A temporary, written from one of the buffers and gone while that is still queued.
                let (from, expected) = &held[random.index(held.len())];
                // SAFETY: the copy writes all of it.
                let copy = unsafe { HipBuffer::uninit(stream, Elems(from.len()), "copy") }.unwrap();
                copy.copy_from_buffer(stream, from).unwrap();
                if random.index(2) == 0 {
                    let expected = expected.clone();
                    held.push((copy, expected));
                }
            }
            4 | 5 if !held.is_empty() => drop(held.swap_remove(random.index(held.len()))),
            6 if !held.is_empty() => {
                let (buffer, expected) = &held[random.index(held.len())];
                assert_eq!(&buffer.to_vec(stream).unwrap(), expected, "seed {seed}, step {step}");
            }
            7 if random.index(4) == 0 => drop(backend.trim_memory(Bytes(8192)).unwrap()),
            _ => {}
        }
    }
    for (buffer, expected) in &held {
        assert_eq!(
            &buffer.to_vec(&streams[0]).unwrap(),
            expected,
            "seed {seed}, at the end"
        );
    }
}

/// Programs to run: `ROCMFORGE_POOL_SEEDS` makes it more.
fn seeds() -> u64 {
    let given = std::env::var("ROCMFORGE_POOL_SEEDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(60)
}

#[test]
fn recycled_memory_gives_the_result_of_fresh_memory_in_every_order() {
    let (mut hits, mut steals) = (0, 0);
    for seed in 0..seeds() {
        let (sim, backend) = pooled(seed);
        let epoch = backend.card().ledger().epoch();
        program(&backend, seed, 120);
        let figures = backend.memory_statistics();
        (hits, steals) = (hits + figures.pool.hits, steals + figures.pool.steals);
        assert_eq!(figures.driver.allocations, figures.pool.misses);
        assert_eq!(figures.pool.in_use_blocks, 0);
        assert_eq!(sim.allocation_stats(0).live_bytes, figures.pool.held().0, "seed {seed}");
        assert_eq!(backend.card().ledger().live_bytes(), figures.pool.held(), "seed {seed}");
        assert!(epoch.leaks().is_clean(), "seed {seed}: {}", epoch.leaks());
        drop(backend);
        assert_clean(&sim);
    }
    assert!(hits > 20 * seeds() && steals > seeds(), "{hits} hits, {steals} steals");
}

#[test]
fn fc04_memory_dropped_in_use_is_freed_behind_its_uses() {
    // Strict: `hipFree` waits for nothing, as nothing promises that it does.
    for seed in 0..seeds() / 2 {
        let (sim, backend) = backend_on(strict(seed), PoolOptions::OFF);
        let epoch = backend.card().ledger().epoch();
        program(&backend, seed, 120);
        backend.synchronize().unwrap();
        assert!(epoch.leaks().is_clean(), "seed {seed}: {}", epoch.leaks());
        let calls = backend.memory_statistics().driver;
        assert!(
            calls.frees == calls.allocations && calls.live == Bytes::ZERO,
            "seed {seed}: {calls:?}"
        );
        drop(backend);
        assert_clean(&sim);
    }
}

#[test]
fn two_readers_and_a_writer_share_a_block_that_was_in_use_before() {
    for seed in 0..20 {
        let (sim, backend) = pooled(seed);
        let [writer, one, two] = [0, 1, 2].map(|_| backend.create_stream("stream").unwrap());
        let mut last = std::ptr::null_mut();
        // They stay, so that only the shared block is ever idle.
        let mut sinks = Vec::new();
        for round in 0..6u32 {
            // On each stream in turn, in the memory that the other two still read.
            let [writer, one, two] = match round % 3 {
                0 => [&writer, &one, &two],
                1 => [&one, &two, &writer],
                _ => [&two, &writer, &one],
            };
            let shared = HipBuffer::from_slice(writer, &[round; 1000], "shared").unwrap();
            assert!(round == 0 || shared.as_device_ptr() == last, "it is reused");
            last = shared.as_device_ptr();
            for reader in [one, two] {
                let sink = HipBuffer::<u32>::zeroed(reader, Elems(1000), "sink").unwrap();
                sink.copy_from_buffer(reader, &shared).unwrap();
                sinks.push((round, sink));
            }
        }
        assert_eq!(backend.memory_statistics().pool.misses, 13);
        for (round, sink) in &sinks {
            assert_eq!(sink.to_vec(&writer).unwrap(), [*round; 1000], "seed {seed}");
        }
        drop((writer, one, two, sinks, backend));
        assert_clean(&sim);
    }
}

/// The only report there is.
#[track_caller]
fn the_report(sim: &SimHost, kind: ReportKind) -> Report {
    let reports = sim.take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_eq!(reports[0].kind, kind, "{}", reports[0]);
    reports[0].clone()
}

/// Writes `bytes` at `ptr` as a program would that got the pointer from somewhere, and waits.
fn poke(sim: &SimHost, ptr: *mut c_void, bytes: usize) -> bool {
    let null = std::ptr::null_mut();
    // SAFETY: the simulated card checks every address.
    let enqueued = unsafe { sim.hipMemsetAsync(ptr, 1, bytes, null) };
    // SAFETY: takes a handle.
    let done = unsafe { sim.hipStreamSynchronize(null) };
    enqueued == hipSuccess && done == hipSuccess
}

#[test]
fn a_stale_pointer_into_an_idle_block_is_found() {
    for in_use in [false, true] {
        let (sim, backend) = pooled(0);
        let buffer = HipBuffer::from_slice(backend.stream(), &[7u8; 100], "given back").unwrap();
        let stale = buffer.as_device_ptr();
        if !in_use {
            backend.synchronize().unwrap();
        }
        drop(buffer);
        backend.synchronize().unwrap();
        assert_eq!(
            backend.memory_statistics().pool.idle_blocks,
            1,
            "the driver has it not back"
        );
        assert!(poke(&sim, stale, 4), "a real card would do it");
        let report = the_report(&sim, ReportKind::UseAfterFree);
        assert!(report.to_string().contains("given back"), "{report}");
        backend.trim_memory(Bytes::ZERO).unwrap();
        assert!(!poke(&sim, stale, 4));
        the_report(&sim, ReportKind::UseAfterFree);
    }
}

#[test]
fn an_access_behind_the_end_of_a_block_that_is_larger_is_found() {
    let (sim, backend) = pooled(0);
    for len in [4000, 100, 3000] {
        let buffer = HipBuffer::<u8>::zeroed(backend.stream(), Elems(len), "small").unwrap();
        backend.synchronize().unwrap();
        assert!(poke(&sim, buffer.as_device_ptr(), len));
        assert_eq!(sim.take_reports(), []);
        assert!(!poke(&sim, buffer.as_device_ptr(), len + 1));
        the_report(&sim, ReportKind::OutOfBounds);
    }
    assert_eq!(backend.memory_statistics().pool.misses, 1);
}

#[test]
fn what_an_earlier_owner_wrote_is_not_written() {
    for in_use in [false, true] {
        let (sim, backend) = pooled(0);
        let other = backend.create_stream("other").unwrap();
        drop(HipBuffer::from_slice(backend.stream(), &[7u8; 64], "earlier").unwrap());
        if !in_use {
            backend.synchronize().unwrap();
        }
        // SAFETY: on the simulated card, where reading memory nobody wrote is a report.
        let buffer = unsafe { HipBuffer::<u8>::uninit(&other, Elems(64), "later") }.unwrap();
        let figures = backend.memory_statistics().pool;
        assert_eq!((figures.hits, figures.steals), if in_use { (0, 1) } else { (1, 0) });
        let _ = buffer.to_vec(&other);
        let report = the_report(&sim, ReportKind::Uninitialised);
        assert_eq!(report.allocation.unwrap().label.as_deref(), Some("later"));
    }
}

#[test]
fn a_pool_that_forgot_the_order_would_be_found() {
    let sim = SimHost::new(strict(0));
    let names = sim.names();
    let mut streams = [std::ptr::null_mut(); 2];
    for stream in &mut streams {
        // SAFETY: a live out-pointer.
        let status = unsafe { sim.hipStreamCreateWithFlags(stream, hipStreamNonBlocking) };
        assert_eq!(status, hipSuccess);
    }
    let mut ptr = std::ptr::null_mut();
    // SAFETY: a live out-pointer.
    assert_eq!(unsafe { sim.hipMalloc(&mut ptr, 4096) }, hipSuccess);
    for stream in streams {
        names.mark_in_use(ptr, 64, "owner", "here");
        // SAFETY: the simulated card checks every address.
        assert_eq!(unsafe { sim.hipMemsetAsync(ptr, 1, 64, stream) }, hipSuccess);
        names.mark_idle(ptr);
    }
    for stream in streams {
        // SAFETY: takes a handle.
        assert_eq!(unsafe { sim.hipStreamSynchronize(stream) }, hipSuccess);
    }
    the_report(&sim, ReportKind::Race);
}
