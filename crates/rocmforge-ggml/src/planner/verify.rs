//! Verification of a finished plan, apart from the code that made it, in every build.

use super::{Plan, PlanError, Problem};

/// Checks that every item lies inside a buffer of its kind and is aligned, that no two items that live at the same node share bytes
/// unless one overwrites the other through a pair of the problem, and that buffers are within the limits of their kinds.
///
/// # Errors
/// The first fault, with the items and the figures.
pub fn verify(problem: &Problem, plan: &Plan) -> Result<(), PlanError> {
    let mut largest = vec![0usize; plan.buffers.len()];
    for (item, (i, place)) in problem.items.iter().zip(&plan.places).enumerate() {
        let buffer = plan.buffers.get(place.buffer as usize);
        let fault = |rule| PlanError::Place {
            item,
            bytes: i.bytes,
            offset: place.offset,
            buffer: place.buffer,
            buffer_bytes: buffer.map_or(0, |b| b.bytes),
            rule,
        };
        if i.bytes == 0 {
            continue;
        }
        let Some(buffer) = buffer else {
            return Err(fault("there must be such a buffer"));
        };
        let Some(kind) = problem.kinds.get(buffer.kind as usize) else {
            return Err(fault("the buffer must be of a kind that exists"));
        };
        let moved = problem.pairs_across_kinds && place.over.is_some();
        if buffer.kind != i.kind && !moved {
            return Err(fault("the buffer must be of the item's kind"));
        }
        if !place.offset.is_multiple_of(kind.alignment.max(i.alignment)) {
            return Err(fault("the offset must be aligned"));
        }
        if place.offset.checked_add(i.bytes).is_none_or(|end| end > buffer.bytes) {
            return Err(fault("it must lie inside its buffer"));
        }
        let rounded = i.bytes.next_multiple_of(kind.alignment);
        largest[place.buffer as usize] = largest[place.buffer as usize].max(rounded);
    }
    for (buffer, (b, &largest)) in plan.buffers.iter().zip(&largest).enumerate() {
        let limit = problem.kinds.get(b.kind as usize).and_then(|kind| kind.max_bytes);
        if let Some(limit) = limit.filter(|&limit| b.bytes > limit.max(largest)) {
            return Err(PlanError::Limit {
                buffer,
                bytes: b.bytes,
                limit,
                largest,
            });
        }
    }
    overlaps(problem, plan)
}

/// Goes through time with the items that live, and compares each item with them when its life begins.
fn overlaps(problem: &Problem, plan: &Plan) -> Result<(), PlanError> {
    let mut order: Vec<u32> = (0..problem.items.len() as u32).collect();
    let start = |&i: &u32| problem.items[i as usize].first;
    if !order.is_sorted_by_key(start) {
        order.sort_by_key(start);
    }
    let mut live: Vec<u32> = Vec::new();
    for index in order {
        let b = &problem.items[index as usize];
        live.retain(|&i| problem.items[i as usize].last >= b.first);
        let at = plan.places[index as usize];
        for &other in &live {
            let (a, place) = (&problem.items[other as usize], plan.places[other as usize]);
            let apart = place.buffer != at.buffer
                || place.offset >= at.offset.saturating_add(b.bytes)
                || at.offset >= place.offset.saturating_add(a.bytes)
                || a.bytes == 0
                || b.bytes == 0;
            if !apart && !may_overwrite(problem, plan, index, other) && !may_overwrite(problem, plan, other, index) {
                return Err(PlanError::Overlap {
                    a: other as usize,
                    a_offset: place.offset,
                    a_bytes: a.bytes,
                    b: index as usize,
                    b_offset: at.offset,
                    b_bytes: b.bytes,
                    buffer: at.buffer,
                    node: b.first,
                });
            }
        }
        live.push(index);
    }
    Ok(())
}

/// Whether the plan puts `item` over `over` by a pair of the problem, at the node where one life ends and the other begins.
fn may_overwrite(problem: &Problem, plan: &Plan, item: u32, over: u32) -> bool {
    let place = plan.places[item as usize];
    let (y, x) = (&problem.items[item as usize], &problem.items[over as usize]);
    place.over == Some(over)
        && place.offset == plan.places[over as usize].offset
        && x.last == y.first
        && y.bytes <= x.bytes
        && place
            .pair
            .and_then(|pair| problem.pairs.get(pair as usize))
            .is_some_and(|pair| pair.item == item && pair.over == over)
}
