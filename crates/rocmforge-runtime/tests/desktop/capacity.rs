//! The capacity faults of a card shared with a desktop, one test each.

use super::*;
use rocmforge_sim::{FaultPlan, FigureFault, When};

#[test]
fn fc28_what_hip_would_allow_and_the_desktop_needs_is_refused() {
    let sim = machine(steady([flat(10 * GIB)]));
    let backend = open(&sim);
    assert!(hip_free(&sim).is_some_and(|free| free > 19 * GIB));
    let error = held(&backend, 10 * GIB).unwrap_err();
    let HipError::OutOfBudget(refused) = &error else {
        panic!("{error}")
    };
    assert!(refused.others >= Bytes(10 * GIB), "it saw the desktop: {error}");
    let _most = held(&backend, refused.available.0).unwrap();
    let status = status(&sim);
    assert_eq!(
        (status.evicted_by_us, status.floor_violations),
        (Bytes(0), 0),
        "{status:?}"
    );
    assert!(status.free >= Bytes(GIB), "the headroom is there: {status:?}");
}

#[test]
fn fc29_two_backends_and_eight_threads_share_one_budget() {
    let sim = machine(steady([flat(2 * GIB)]));
    let cards: Arc<rocmforge_runtime::Cards> = Arc::default();
    let backends = [0, 1].map(|_| {
        let provider = Provider {
            cards: Some(Arc::clone(&cards)),
            ..provider(&sim)
        };
        HipBackend::open(provider, BackendOptions::default()).unwrap()
    });
    let budget = backends[0].card().budget().budget;
    let granted: u64 = std::thread::scope(|scope| {
        let worker = |index: usize| {
            let backend = &backends[index % 2];
            scope.spawn(move || {
                let mut held_here = Vec::new();
                for round in 0..200u64 {
                    let bytes = (1 + (round * 37 + index as u64 * 11) % 97) * MIB;
                    held_here.extend(held(backend, bytes));
                }
                let bytes: u64 = held_here.iter().map(|buffer| buffer.bytes().0).sum();
                std::mem::forget(held_here); // held until the end, to be counted together
                bytes
            })
        };
        let workers: Vec<_> = (0..8).map(worker).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert!(
        granted <= budget.0 && granted + 97 * MIB > budget.0,
        "{granted} of {budget}"
    );
    assert_eq!(sim.allocation_stats(0).live_bytes, granted);
    assert_eq!(status(&sim).evicted_by_us, Bytes(0));
}

#[test]
fn fc30_a_request_in_parts_gets_no_more_than_one() {
    let whole = {
        let sim = machine(steady([flat(3 * GIB)]));
        let backend = open(&sim);
        backend.safe_alloc_size().unwrap() as u64
    };
    for piece in [7 * MIB, 64 * MIB, 333 * MIB, 2 * GIB] {
        let sim = machine(steady([flat(3 * GIB)]));
        let backend = open(&sim);
        let mut parts = Vec::new();
        // The driver's page at most is lost a piece; a refusal in between does not come back as a grant.
        for _ in 0..2 * whole / piece {
            parts.extend(held(&backend, piece));
            pause(&sim, 7);
        }
        let granted: u64 = parts.iter().map(|part| part.bytes().0).sum();
        assert!(
            granted <= whole && granted + piece > whole,
            "{granted} of {whole} in {piece}"
        );
    }
}

#[test]
fn fc31_what_the_driver_rounds_up_counts() {
    let sim = machine(steady([flat(2 * GIB)]));
    let backend = open(&sim);
    let small: Vec<_> = (0..5000).map(|_| held(&backend, 1).unwrap()).collect();
    assert_eq!(backend.card().ledger().live_bytes(), Bytes(5000));
    let charged = sim.allocation_stats(0).charged_bytes;
    assert_eq!(charged, 5000 * 4096);
    pause(&sim, 200);
    let budget = backend.card().budget();
    assert_eq!(budget.own, Bytes(charged), "the overhead was found: {budget:?}");
    drop(small);
}

#[test]
fn fc32_sizes_that_overflow_reach_no_driver() {
    let sim = machine(steady([]));
    let backend = open(&sim);
    let before = sim.allocation_stats(0);
    for len in [usize::MAX, usize::MAX / 8 + 1, isize::MAX as usize / 8 + 1] {
        let error = HipBuffer::<f64>::zeroed(backend.stream(), Elems(len), "huge").unwrap_err();
        assert!(matches!(error, HipError::SizeOverflow { .. }), "{error}");
    }
    assert!(matches!(held(&backend, 1 << 60), Err(HipError::OutOfBudget(_))));
    assert_eq!(sim.allocation_stats(0), before);
}

#[test]
fn fc33_a_game_that_starts_finds_its_room_if_the_program_looks() {
    let sim = machine(steady([Client::browser(), Client::game(Duration::from_secs(3))]));
    let backend = open(&sim);
    let mut buffers = Vec::new();
    while let Ok(buffer) = held(&backend, 256 * MIB) {
        buffers.push(buffer);
    }
    let first = buffers.len();
    for _ in 0..400 {
        pause(&sim, 50);
        shed(&backend, &mut buffers);
    }
    let status = status(&sim);
    assert!(
        buffers.len() < first && !buffers.is_empty(),
        "{first} then {}",
        buffers.len()
    );
    assert_undisturbed(&status);
}

#[test]
fn fc33_a_program_that_does_not_look_is_stopped_and_its_own_device_is_at_stake() {
    // It has registered no step, and neither launches nor allocates.
    let jump = Client::steps("game", vec![(Duration::from_secs(2), Bytes(10 * GIB))]);
    let sim = machine(steady([flat(2 * GIB), jump]));
    let backend = open(&sim);
    let all = held(&backend, backend.safe_alloc_size().unwrap() as u64).unwrap();
    pause(&sim, 3000);
    let after = status(&sim);
    assert!(after.queue_stops > 0 && after.floor_violations == 1, "{after:?}");
    assert_eq!(backend.safe_alloc_size().unwrap(), 0);
    // Shed at once, it is over.
    drop(all);
    pause(&sim, 3000);
    let later = status(&sim);
    assert!(
        later.alive() && later.evicted == Bytes(0) && !later.queues_stopped,
        "{later:?}"
    );
}

#[test]
fn fc34_another_rocm_process_takes_from_both_figures() {
    let other = Client::rocm(vec![(Duration::from_secs(1), Bytes(6 * GIB))]);
    let sim = machine(steady([other]));
    let backend = open(&sim);
    let (before, hip) = (backend.card().budget(), hip_free(&sim).unwrap());
    pause(&sim, 1500);
    let after = backend.card().budget();
    assert_eq!(hip - hip_free(&sim).unwrap(), 6 * GIB);
    let (was, is) = (before.others.unwrap(), after.others.unwrap());
    assert_eq!(is.0 - was.0, 6 * GIB);
    assert!(before.budget.0 - after.budget.0 <= 6 * GIB, "{before:?} {after:?}");
    assert!(after.budget < before.budget);
}

#[test]
fn fc35_pinned_memory_ends_at_the_machines_limit_with_a_typed_error() {
    let sim = SimHost::new(SimConfig {
        host_memory: Bytes(8 * MIB),
        ..SimConfig::default()
    });
    let backend = open(&sim);
    let mut pinned = Vec::new();
    let error = loop {
        match PinnedBuffer::<u8>::zeroed(&backend, Elems(MIB as usize), "spill") {
            Ok(buffer) => pinned.push(buffer),
            Err(error) => break error,
        }
        assert!(pinned.len() <= 8);
    };
    assert!(error.is_out_of_memory(), "{error}");
    assert_eq!((pinned.len(), sim.pinned_count()), (8, 8));
    drop(pinned);
    backend.synchronize().unwrap();
    assert_eq!(sim.pinned_count(), 0);
}

#[test]
fn fc35_pinned_memory_is_granted_from_the_machines_budget() {
    let sim = SimHost::new(SimConfig {
        host_memory: Bytes(64 * MIB),
        ..SimConfig::default()
    });
    let host = rocmforge_memory::HostBudget::new(sim.host_readings());
    let backend = HipBackend::open(provider(&sim).with_host(host.clone()), BackendOptions::default()).unwrap();
    let pin = || PinnedBuffer::<u8>::zeroed(&backend, Elems(MIB as usize), "spill");
    let mut pinned: Vec<_> = (0..24).map(|_| pin().unwrap()).collect();
    let error = pin().err().expect("3/8 are pinned");
    let HipError::OutOfHostBudget(refused) = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (refused.held, refused.total, refused.label.as_str()),
        (Bytes(24 * MIB), Bytes(64 * MIB), "spill")
    );
    assert!(error.is_out_of_memory() && sim.pinned_count() == 24, "{error}");
    drop(pinned.pop());
    pinned.push(pin().unwrap());
    drop(pinned);
    backend.synchronize().unwrap();
    assert_eq!(host.held(rocmforge_memory::HostKind::Pinned), Bytes::ZERO);
}

#[test]
fn fc27_what_the_driver_refuses_although_it_was_granted_lowers_the_budget() {
    let sim = machine(steady([flat(2 * GIB)]));
    let backend = open(&sim);
    let before = backend.card().budget();
    sim.set_fault_plan(FaultPlan::new().allocation(When::Nth(1)));
    let error = held(&backend, GIB).unwrap_err();
    assert!(matches!(error, HipError::DriverOutOfMemory { .. }), "{error}");
    let after = backend.card().budget();
    assert_eq!((after.driver_refusals, after.reserved), (1, Bytes(0)));
    assert_eq!(before.budget.0 - after.budget.0, 64 * MIB, "it called enough free");
    assert!(held(&backend, GIB).is_ok());
}

#[test]
fn fc33_caches_are_dropped_for_what_is_required_and_for_the_desktop() {
    let jump = Client::steps("game", vec![(Duration::from_secs(2), Bytes(4 * GIB))]);
    let sim = machine(steady([flat(2 * GIB), jump]));
    let backend = open(&sim);
    let kernels = rocmforge_kernels::Kernels::load(&backend).unwrap();
    let x = HipBuffer::from_slice(backend.stream(), &[1.0f32; 64], "x").unwrap();
    let cache: Arc<std::sync::Mutex<Vec<HipBuffer<u8>>>> = Arc::default();
    let fill = || cache.lock().unwrap().push(held(&backend, GIB).unwrap());
    (0..11).for_each(|_| fill());
    let _registration = backend.card().on_pressure(rocmforge_memory::Step::DropCaches, {
        let cache = Arc::clone(&cache);
        move |shortage| {
            let (mut cache, mut freed) = (cache.lock().unwrap(), Bytes(0));
            while freed < shortage.needed && !cache.is_empty() {
                freed = freed.saturating_add(cache.remove(0).bytes());
            }
            freed
        }
    });
    let _weights = held(&backend, 4 * GIB).unwrap();
    assert_eq!(cache.lock().unwrap().len(), 8, "12 of 12.6 GiB");
    // The desktop takes 4 GiB more: 0.7 of it is ours to give back, at the next launch.
    pause(&sim, 2050);
    kernels.scale(backend.stream(), &x, &x, 2.0).unwrap();
    let budget = backend.card().budget();
    assert!(budget.own <= budget.budget, "{budget:?}");
    assert_eq!(cache.lock().unwrap().len(), 5);
    let status = status(&sim);
    assert_eq!((status.evicted_by_us, status.queue_stops), (Bytes(0), 0), "{status:?}");
}

#[test]
fn fc36_what_the_driver_takes_by_itself_is_found_and_counted() {
    let card = CardConfig {
        desktop: Some(steady([flat(GIB)])),
        overhead: Bytes(400 * MIB),
        ..CardConfig::default()
    };
    let sim = SimHost::new(SimConfig {
        cards: vec![card],
        ..SimConfig::default()
    });
    let backend = open(&sim);
    let before = backend.card().budget();
    let kernels = rocmforge_kernels::Kernels::load(&backend).unwrap();
    let x = HipBuffer::from_slice(backend.stream(), &[1.0f32; 64], "x").unwrap();
    kernels.scale(backend.stream(), &x, &x, 2.0).unwrap();
    backend.synchronize().unwrap();
    pause(&sim, 200);
    let after = backend.card().budget();
    assert!(after.own >= Bytes(400 * MIB), "{after:?}");
    assert!(
        before.available.0 - after.available.0 >= 400 * MIB,
        "{before:?} {after:?}"
    );
    assert_eq!(
        backend.card().ledger().live_bytes(),
        Bytes(256),
        "the ledger says what is ours"
    );
    drop((x, kernels));
}

#[test]
fn fc16_figures_that_lie_never_grant_what_is_not_there() {
    for fault in [
        FigureFault::Stale,
        FigureFault::Zero,
        FigureFault::AboveTotal,
        FigureFault::BelowOwn,
        FigureFault::Unreadable,
    ] {
        for which in 0..3 {
            let sim = machine(steady([flat(4 * GIB)]));
            let backend = open(&sim);
            let plan = FaultPlan::new();
            let plan = match which {
                0 => plan.memory_info(When::From(1), fault),
                1 => plan.sysfs(When::From(1), fault),
                _ => plan.memory_info(When::From(1), fault).sysfs(When::From(1), fault),
            };
            sim.set_fault_plan(plan);
            let mut buffers = Vec::new();
            for _ in 0..100 {
                pause(&sim, 150);
                buffers.extend(held(&backend, 256 * MIB));
            }
            let granted = backend.card().ledger().live_bytes();
            let status = status(&sim);
            assert!(granted.0 + 5 * GIB <= 20 * GIB, "{fault:?} in {which}: {granted}");
            assert_eq!(
                status.evicted_by_us,
                Bytes(0),
                "{fault:?} in {which}: {granted} {status:?}"
            );
        }
    }
}

#[test]
fn fc49_launches_stop_while_the_driver_moves_memory_and_go_on_when_we_have_given_way() {
    let jump = Client::steps("game", vec![(Duration::from_secs(2), Bytes(10 * GIB))]);
    let sim = machine(steady([flat(2 * GIB), jump]));
    let backend = open(&sim);
    let kernels = rocmforge_kernels::Kernels::load(&backend).unwrap();
    let x = HipBuffer::from_slice(backend.stream(), &[1.0f32; 64], "x").unwrap();
    let scale = || kernels.scale(backend.stream(), &x, &x, 2.0);
    let most = held(&backend, 12 * GIB).unwrap();
    scale().unwrap();
    pause(&sim, 2100);
    let launches = sim.launches();
    let error = scale().unwrap_err().to_string();
    assert!(
        error.contains("launches on") && error.contains("Free buffers"),
        "{error}"
    );
    assert_eq!(sim.launches(), launches, "nothing was enqueued");
    drop(most);
    // The queues stand still until the memory is back, and it must have been calm for a moment since somebody looked.
    pause(&sim, 2000);
    backend.card().look();
    pause(&sim, 300);
    scale().unwrap();
    backend.synchronize().unwrap();
    assert_eq!(x.to_vec(backend.stream()).unwrap(), [4.0f32; 64]);
}

#[test]
fn a_policy_that_leaves_the_desktop_nothing_is_refused_with_a_display() {
    let sim = machine(steady([]));
    let options = |policy| BackendOptions {
        policy,
        ..BackendOptions::default()
    };
    let error = HipBackend::open(provider(&sim), options(Policy::unlimited())).unwrap_err();
    assert!(matches!(&error, HipError::DisplayInUse(_)), "{error}");
    assert!(HipBackend::open(provider(&sim), options(Policy::headless())).is_ok());
}
