//! Counts of launches against figures worked out by hand.

use crate::card::{Arg, Card, faults, racy};
use rocmforge_amdgcn::{Class, ComputeUnit, Counters, Limit, Program};

fn count(card: &mut Card, kernel: &str, grid: u32, block: u32, args: &[Arg]) -> Counters {
    card.options.counters = true;
    card.run(kernel, grid, block, args).counters
}

#[test]
fn coalescing_is_counted_in_segments() {
    let mut card = Card::new(racy());
    let (x, y) = (card.upload(&vec![1u32; 1024]), card.alloc(4096 + 64));
    // Eight waves read and write 128 B each: one segment when aligned, two when not.
    let c = count(&mut card, "lds_raw_fixed", 1, 256, &[Arg::Ptr(x), Arg::Ptr(y)]);
    assert_eq!((c.loads.requests, c.loads.bytes, c.loads.segments), (8, 1024, 8));
    assert_eq!((c.stores.requests, c.stores.bytes, c.stores.segments), (8, 1024, 8));
    assert_eq!((c.waves, c.barriers, c.of(Class::Barrier)), (8, 1, 8));
    assert_eq!(
        (c.lds.requests, c.lds.bytes, c.lds.cycles, c.lds.conflicts),
        (16, 2048, 16, 0)
    );
    let c = count(&mut card, "lds_raw_fixed", 1, 256, &[Arg::Ptr(x + 4), Arg::Ptr(y + 64)]);
    assert_eq!((c.loads.segments, c.stores.segments), (16, 16));
    assert!(c.of(Class::Global) == 16 && c.of(Class::Lds) == 16 && c.of(Class::Smem) >= 8);
    assert!(c.scalar.bytes >= 8 * 16 && c.wmma_share() == 0.0);
    let sum: u64 = Class::ALL.iter().map(|&class| c.of(class)).sum();
    assert_eq!(sum, c.total());
}

#[test]
fn atomics_to_one_place_conflict_once_a_lane() {
    let mut card = Card::new(racy());
    let n = card.upload(&[0u32]);
    let c = count(&mut card, "count_fixed", 3, 64, &[Arg::Ptr(n)]);
    assert_eq!((c.atomics.requests, c.atomics.bytes, c.atomics.segments), (3, 12, 3));
    card.options.counters = false;
    let c = card.run("count_fixed", 3, 64, &[Arg::Ptr(n)]).counters;
    assert_eq!((c.workgroups, c.waves, c.total(), c.atomics.requests), (3, 6, 0, 0));
}

#[test]
fn a_segment_that_is_asked_for_again_is_one_distinct_segment() {
    for threads in [1, 2] {
        let mut card = Card::new(racy());
        card.options.threads = threads;
        // Four workgroups, each of them reads the same 256 numbers and writes the same 256.
        let (x, y) = (card.upload(&vec![1u32; 1024]), card.alloc(4096));
        let c = count(&mut card, "lds_raw_fixed", 4, 256, &[Arg::Ptr(x), Arg::Ptr(y)]);
        assert_eq!((c.stores.segments, c.distinct.written), (32, 8));
        // The loads, and at most three segments of arguments and dispatch packet.
        assert!((8..=11).contains(&c.distinct.read), "{c:?}");
        assert_eq!(c.distinct.bytes(), (c.distinct.read + 8) * 128);
        // An atomic reads and writes.
        let n = card.upload(&[0u32]);
        let c = count(&mut card, "count_fixed", 3, 64, &[Arg::Ptr(n)]);
        assert_eq!(c.distinct.written, 1);
        assert!((1..=4).contains(&c.distinct.read), "{c:?}");
    }
}

#[test]
fn counting_changes_no_result() {
    let run = |counters| {
        let mut card = Card::new(racy());
        card.options.counters = counters;
        let (x, y) = (card.upload(&(0..256u32).collect::<Vec<_>>()), card.alloc(1024));
        let outcome = card.run("reduce_fixed", 1, 256, &[Arg::Ptr(x), Arg::Ptr(y)]);
        (outcome.instructions, card.download::<u32>(y, 256))
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn occupancy_by_waves_and_lds() {
    let program = Program::load(faults(), 0x8000_0000_0000).expect("loads");
    let kernel = program.kernel("missing_barrier").expect("kernel");
    let unit = program.arch().compute_unit();
    // 1 KiB of LDS and few registers: the wave slots are the limit.
    let o = kernel.occupancy(unit, 256, 0);
    assert_eq!(
        (o.waves_per_simd, o.workgroups, o.limit, o.lds),
        (16, 8, Limit::Waves, 1024)
    );
    // 33 KiB: three workgroups of eight waves, over four SIMDs.
    let o = kernel.occupancy(unit, 256, 32 << 10);
    assert_eq!(
        (o.waves_per_simd, o.workgroups, o.limit, o.lds),
        (6, 3, Limit::Lds, 33 << 10)
    );
    assert_eq!(kernel.occupancy(unit, 64, 0).workgroups, 32);
    // A card with fewer registers holds fewer waves of a kernel that needs many.
    let heavy = |unit: &ComputeUnit| unit.occupancy(150, 0, 256).waves_per_simd;
    assert_eq!((heavy(unit), heavy(&ComputeUnit::RDNA_1024)), (8, 6));
}
