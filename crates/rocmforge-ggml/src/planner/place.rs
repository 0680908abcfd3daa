//! Placement: offsets of bodies, all of which are known beforehand.
//!
//! One pass takes the bodies in an order and puts each at the lowest offset at which it meets nothing that lives at the same time
//! (first fit). Orders by size, by contention and by life are tried, each with repairs: what ends at the peak goes first. The search ends
//! as soon as a placement is as small as the lower bound, which on graphs of transformers the first order gives.

use std::cmp::Reverse;

use super::Problem;
use super::bodies::{Bodies, NONE};

/// Most repairs of an order. Of 500 random graphs of up to 200 nodes, 497 reach their bound within them.
const REPAIRS: usize = 400;
/// The same where buffers have a limit: the bound does not count what is lost at their ends, so the search seldom ends early.
const LIMITED_REPAIRS: usize = 32;
/// Bodies placed by all repairs of an order together: large graphs get fewer.
const REPAIR_WORK: usize = 1 << 17;
/// Bodies beyond which one order is tried and not repaired: a run may take time in the square of their number.
const MANY_BODIES: usize = 1 << 13;
/// Entries of the table of what lives at which node, beyond which no table is made: then every body is compared with all others.
const MAX_TABLE: usize = 1 << 24;

/// Buffers and the offsets of bodies in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Placement {
    /// Kind and size of each buffer.
    pub(super) buffers: Vec<(u32, usize)>,
    /// Buffer and offset of each body.
    pub(super) places: Vec<(u32, usize)>,
    pub(super) peak: usize,
}

/// The smallest placement found of these bodies.
pub(super) fn place(problem: &Problem, bodies: &Bodies) -> Placement {
    let mut placer = Placer::new(problem, bodies);
    let mut order: Vec<u32> = (0..bodies.bodies.len() as u32).collect();
    let life = |i: u32| {
        let body = &bodies.bodies[i as usize];
        u64::from(body.last - body.first + 1)
    };
    let size = |i: u32| bodies.bodies[i as usize].bytes as u64;
    let start = |i: u32| u64::from(u32::MAX - bodies.bodies[i as usize].first);
    let mut contention = Vec::new();
    let mut best: Option<Placement> = None;
    for key in 0..5 {
        if key == 1 {
            contention = contentions(problem, bodies);
        }
        order.sort_unstable_by_key(|&i| {
            let key = match key {
                0 => (size(i), life(i)),
                1 => (contention[i as usize], size(i)),
                2 => (size(i).saturating_mul(life(i)), size(i)),
                3 => (life(i), size(i)),
                _ => (start(i), size(i)),
            };
            (Reverse(key), i)
        });
        let placement = placer.run(&order);
        if best.as_ref().is_none_or(|best| placement.peak < best.peak) {
            best = Some(placement.clone());
        }
        let short = best.as_mut().filter(|best| best.peak > bodies.bound);
        if let Some(best) = short.filter(|_| order.len() <= MANY_BODIES) {
            repair(&mut placer, order.clone(), placement, best);
        }
        if order.len() > MANY_BODIES || best.as_ref().is_some_and(|best| best.peak <= bodies.bound) {
            break;
        }
    }
    best.unwrap_or_default()
}

/// The most bytes that live at a node of each body's life: where that is the bound, nothing may be wasted.
fn contentions(problem: &Problem, bodies: &Bodies) -> Vec<u64> {
    let mut live = vec![0i64; problem.nodes as usize + 1];
    for segment in &bodies.segments {
        live[segment.first as usize] += segment.bytes as i64;
        live[segment.last as usize + 1] -= segment.bytes as i64;
    }
    for node in 1..live.len() {
        live[node] += live[node - 1];
    }
    let most = |body: &super::bodies::Body| live[body.first as usize..=body.last as usize].iter().copied().max();
    bodies
        .bodies
        .iter()
        .map(|body| most(body).unwrap_or(0) as u64)
        .collect()
}

/// Moves the bodies that end at the top of their buffer to the front, again and again, and swaps two others now and then to leave a
/// circle of such moves. Always the same swaps: a plan is the same each time.
fn repair(placer: &mut Placer<'_>, mut order: Vec<u32>, mut current: Placement, best: &mut Placement) {
    let mut state = 1u64;
    let limited = placer.problem.kinds.iter().any(|kind| kind.max_bytes.is_some());
    let most = if limited { LIMITED_REPAIRS } else { REPAIRS };
    for round in 0..most.min(REPAIR_WORK / order.len().max(1)) {
        let at_top = |i: &u32| {
            let (buffer, offset) = current.places[*i as usize];
            let bytes = placer.bodies.bodies[*i as usize].bytes;
            bytes > 0 && offset + bytes == current.buffers[buffer as usize].1
        };
        let (top, rest): (Vec<u32>, Vec<u32>) = order.iter().partition(|i| at_top(i));
        order = top.into_iter().chain(rest).collect();
        if round % 3 == 2 {
            // Knuth's linear congruential generator for 64 bits; its low bits repeat early.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let places = order.len() as u64;
            order.swap(((state >> 33) % places) as usize, ((state >> 13) % places) as usize);
        }
        current = placer.run(&order);
        if current.peak < best.peak {
            best.clone_from(&current);
        }
        if best.peak <= placer.bodies.bound {
            return;
        }
    }
}

/// First fit over a fixed set of bodies.
struct Placer<'a> {
    problem: &'a Problem,
    bodies: &'a Bodies,
    /// Segments in the order of their first node, and where each node's begin.
    started: Vec<u32>,
    starts_at: Vec<u32>,
    /// Segments that live at each node and started before it, and where each node's begin. Empty if that would be too much.
    live: Vec<u32>,
    live_at: Vec<u32>,
    /// Buffer of each segment, or [`NONE`].
    buffer: Vec<u32>,
    offset: Vec<usize>,
    /// Forbidden offsets of the body at hand: buffer, and an open interval whose start may be negative.
    forbidden: Vec<(u32, isize, usize)>,
}

impl<'a> Placer<'a> {
    fn new(problem: &'a Problem, bodies: &'a Bodies) -> Self {
        let nodes = problem.nodes as usize;
        let segments = &bodies.segments;
        let (starts_at, started) = by_node(nodes, segments.len(), |i| segments[i].first..segments[i].first + 1);
        let entries = segments
            .iter()
            .fold(0usize, |sum, s| sum.saturating_add((s.last - s.first) as usize));
        let (live_at, live) = if entries <= MAX_TABLE {
            by_node(nodes, segments.len(), |i| segments[i].first + 1..segments[i].last + 1)
        } else {
            (Vec::new(), Vec::new())
        };
        Self {
            problem,
            bodies,
            started,
            starts_at,
            live,
            live_at,
            buffer: vec![NONE; segments.len()],
            offset: vec![0; segments.len()],
            forbidden: Vec::new(),
        }
    }

    /// Places all bodies in this order.
    fn run(&mut self, order: &[u32]) -> Placement {
        self.buffer.fill(NONE);
        let mut made = Placement {
            buffers: Vec::new(),
            places: vec![(0, 0); self.bodies.bodies.len()],
            peak: 0,
        };
        for &index in order {
            let body = &self.bodies.bodies[index as usize];
            if body.bytes == 0 {
                continue;
            }
            let (buffer, offset) = self.fit(index, &mut made.buffers);
            made.places[index as usize] = (buffer, offset);
            let end = &mut made.buffers[buffer as usize].1;
            *end = (*end).max(offset + body.bytes);
            let mut at = body.head;
            while at != NONE {
                self.buffer[at as usize] = buffer;
                self.offset[at as usize] = offset;
                at = self.bodies.segments[at as usize].next;
            }
        }
        made.peak = made.buffers.iter().map(|b| b.1).sum();
        made
    }

    /// The buffer that grows least for this body, and the lowest offset in it; a new buffer where none has room.
    fn fit(&mut self, index: u32, buffers: &mut Vec<(u32, usize)>) -> (u32, usize) {
        let body = &self.bodies.bodies[index as usize];
        let limit = self.problem.kinds[body.kind as usize].max_bytes;
        self.collect(index);
        self.forbidden.sort_unstable();
        let mut best: Option<(usize, u32, usize)> = None;
        let mut forbidden = self.forbidden.as_slice();
        for (buffer, &(kind, end)) in buffers.iter().enumerate() {
            let buffer = buffer as u32;
            let split = forbidden.partition_point(|f| f.0 <= buffer);
            let (own, rest) = forbidden.split_at(split);
            forbidden = rest;
            if kind != body.kind {
                continue;
            }
            let mut offset = 0usize;
            for &(_, from, to) in own {
                if offset as isize <= from {
                    break;
                }
                offset = offset.max(to);
            }
            // A buffer that was made for a larger item than its kind allows keeps that size as its limit.
            let grown = (offset + body.bytes).max(end);
            if limit.is_some_and(|limit| grown > limit.max(end)) {
                continue;
            }
            if best.is_none_or(|(growth, ..)| grown - end < growth) {
                best = Some((grown - end, buffer, offset));
            }
        }
        match best {
            Some((_, buffer, offset)) => (buffer, offset),
            None => {
                buffers.push((body.kind, 0));
                (buffers.len() as u32 - 1, 0)
            }
        }
    }

    /// The offsets at which a body would meet what is placed already.
    fn collect(&mut self, index: u32) {
        self.forbidden.clear();
        let mut at = self.bodies.bodies[index as usize].head;
        while at != NONE {
            let own = self.bodies.segments[at as usize];
            let mut meet = |other: u32| {
                let buffer = self.buffer[other as usize];
                let bytes = self.bodies.segments[other as usize].bytes;
                if buffer != NONE && bytes > 0 && own.bytes > 0 {
                    let start = self.offset[other as usize];
                    let from = start as isize - own.bytes as isize;
                    self.forbidden.push((buffer, from, start + bytes));
                }
            };
            if self.live_at.is_empty() {
                for (other, segment) in self.bodies.segments.iter().enumerate() {
                    if segment.first <= own.last && own.first <= segment.last {
                        meet(other as u32);
                    }
                }
            } else {
                let (first, last) = (own.first as usize, own.last as usize);
                let live = self.live_at[first] as usize..self.live_at[first + 1] as usize;
                let started = self.starts_at[first] as usize..self.starts_at[last + 1] as usize;
                self.live[live]
                    .iter()
                    .chain(&self.started[started])
                    .for_each(|&o| meet(o));
            }
            at = own.next;
        }
    }
}

/// For each node the indices whose range contains it: one flat list, and where each node's part begins.
fn by_node(nodes: usize, count: usize, range: impl Fn(usize) -> std::ops::Range<u32>) -> (Vec<u32>, Vec<u32>) {
    let mut begin = vec![0u32; nodes + 2];
    for i in 0..count {
        for node in range(i) {
            begin[node as usize + 2] += 1;
        }
    }
    for node in 1..begin.len() {
        begin[node] += begin[node - 1];
    }
    let mut list = vec![0u32; begin[nodes + 1] as usize];
    for i in 0..count {
        for node in range(i) {
            let slot = &mut begin[node as usize + 1];
            list[*slot as usize] = i as u32;
            *slot += 1;
        }
    }
    begin.pop();
    (begin, list)
}
