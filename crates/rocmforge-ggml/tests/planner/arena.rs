//! Arena and calculator tests of the earlier implementation, held to the planner's buffers.

use rocmforge_ggml::planner::{BufferKind, Plan, PlanError, Problem};

const KIND: BufferKind = BufferKind::unlimited(256);

fn offsets(plan: &Plan) -> Vec<usize> {
    plan.places.iter().map(|place| place.offset).collect()
}

#[test]
fn test_arena_basic_allocation() {
    let mut problem = Problem::new(1, KIND);
    problem.add(1024, 0, 0);
    problem.add(2048, 0, 0);
    let plan = Plan::new(&problem).unwrap();
    assert_eq!((plan.peak_bytes, plan.buffers.len()), (3072, 1));
    assert_eq!(offsets(&plan), [2048, 0]);
}

#[test]
fn test_arena_alignment() {
    let mut problem = Problem::new(1, KIND);
    for bytes in 1..20 {
        problem.add(bytes * 37, 0, 0);
    }
    let plan = Plan::new(&problem).unwrap();
    assert!(offsets(&plan).iter().all(|offset| offset.is_multiple_of(256)));
    assert!(plan.peak_bytes.is_multiple_of(256));
}

#[test]
fn test_arena_invalid_alignment_fails() {
    let mut problem = Problem::new(1, BufferKind::unlimited(100));
    problem.add(16, 0, 0);
    assert!(matches!(
        Plan::new(&problem),
        Err(PlanError::Alignment { alignment: 100, .. })
    ));
}

/// Two gaps: the item goes where it fits, and the buffer does not grow.
#[test]
fn test_arena_best_fit() {
    let mut problem = Problem::new(3, KIND);
    for (bytes, first, last) in [
        (1024, 0, 1),
        (512, 0, 2),
        (256, 0, 1),
        (512, 0, 2),
        (1024, 2, 2),
        (256, 2, 2),
    ] {
        problem.add(bytes, first, last);
    }
    let plan = Plan::new(&problem).unwrap();
    assert_eq!((plan.peak_bytes, plan.bound_bytes), (2304, 2304));
}

/// What does not fit into one buffer gets another: it never overlaps and is never dropped.
#[test]
fn test_arena_insufficient_space() {
    let kind = BufferKind {
        alignment: 256,
        max_bytes: Some(1024),
    };
    let mut problem = Problem::new(1, kind);
    problem.add(768, 0, 0);
    problem.add(512, 0, 0);
    let plan = Plan::new(&problem).unwrap();
    assert_eq!(
        plan.buffers.iter().map(|buffer| buffer.bytes).collect::<Vec<_>>(),
        [768, 512]
    );
}

/// What freed neighbours leave is one gap.
#[test]
fn test_arena_coalescing() {
    let mut problem = Problem::new(2, KIND);
    problem.add(1024, 0, 0);
    problem.add(1024, 0, 0);
    problem.add(2048, 1, 1);
    assert_eq!(Plan::new(&problem).unwrap().peak_bytes, 2048);
}

/// Every other one of four ends: what comes then still fits without a larger buffer, because all lives are known beforehand.
#[test]
fn test_arena_fragmentation() {
    let mut problem = Problem::new(2, KIND);
    for last in [0, 1, 0, 1] {
        problem.add(1024, 0, last);
    }
    problem.add(2048, 1, 1);
    let plan = Plan::new(&problem).unwrap();
    assert_eq!((plan.peak_bytes, plan.bound_bytes), (4096, 4096));
}

#[test]
fn test_empty_calculator() {
    let plan = Plan::new(&Problem::new(0, KIND)).unwrap();
    assert_eq!((plan.peak_bytes, plan.bound_bytes, plan.buffers.len()), (0, 0, 0));
}

#[test]
fn test_single_tensor() {
    let mut problem = Problem::new(1, KIND);
    problem.add(1000, 0, 0);
    assert_eq!(Plan::new(&problem).unwrap().peak_bytes, 1024);
}

#[test]
fn test_multiple_tensors() {
    let mut problem = Problem::new(3, KIND);
    for node in 0..3 {
        problem.add(1000, node, node);
    }
    // One after the other in one place; all at once in three.
    assert_eq!(Plan::new(&problem).unwrap().peak_bytes, 1024);
    problem
        .items
        .iter_mut()
        .for_each(|item| (item.first, item.last) = (0, 2));
    assert_eq!(Plan::new(&problem).unwrap().peak_bytes, 3 * 1024);
}
