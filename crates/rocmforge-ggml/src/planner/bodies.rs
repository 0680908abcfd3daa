//! Bodies: items that share a place because each overwrites the one before, and the lower bound that follows.

use super::Problem;

/// None, as an index.
pub(super) const NONE: u32 = u32::MAX;

/// A rectangle of time and bytes: a body's height for some nodes. Heights of one body never grow with time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) bytes: usize,
    pub(super) body: u32,
    /// The body's next segment, or [`NONE`].
    pub(super) next: u32,
}

/// Items with one offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    pub(super) first: u32,
    pub(super) last: u32,
    /// The height of its first segment, which is its largest.
    pub(super) bytes: usize,
    pub(super) kind: u32,
    /// Its first segment.
    pub(super) head: u32,
    tail: u32,
}

/// The bodies of a problem, after the in-place decisions.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    pub(super) bodies: Vec<Body>,
    pub(super) segments: Vec<Segment>,
    /// The body of each item.
    pub(super) of_item: Vec<u32>,
    /// The item that each item overwrites, or [`NONE`].
    pub(super) over: Vec<u32>,
    /// The pair that allows it, or [`NONE`].
    pub(super) pair: Vec<u32>,
    /// Sum over the kinds of the most bytes that live at one node.
    pub(super) bound: usize,
}

impl Bodies {
    /// Takes the in-place decisions of a checked problem.
    ///
    /// An item overwrites the first of its pairs whose item nobody else overwrites, those of equal size first. That never raises the
    /// bound: at the node of a pair it saves the item's bytes, at every other node it changes nothing.
    pub(super) fn new(problem: &Problem) -> Self {
        let count = problem.items.len();
        let mut made = Self {
            of_item: vec![NONE; count],
            over: vec![NONE; count],
            pair: vec![NONE; count],
            bodies: Vec::with_capacity(count),
            segments: Vec::with_capacity(count),
            bound: 0,
        };
        made.decide(problem);
        made.build(problem);
        made.bound = (0..problem.kinds.len() as u32)
            .map(|kind| made.alive(problem, kind).into_iter().max().unwrap_or(0))
            .sum();
        made
    }

    /// The same with fewer pairs: without those at nodes where both items fit beside each other below the bound. The bound stays, and
    /// bodies become shorter, which leaves more ways to place them.
    pub(super) fn cut(&self, problem: &Problem) -> Self {
        let kinds = problem.kinds.len() as u32;
        let mut live: Vec<Vec<usize>> = (0..kinds).map(|kind| self.alive(problem, kind)).collect();
        let most: Vec<usize> = live
            .iter()
            .map(|live| live.iter().copied().max().unwrap_or(0))
            .collect();
        let count = problem.items.len();
        let mut made = Self {
            of_item: vec![NONE; count],
            over: self.over.clone(),
            pair: self.pair.clone(),
            bound: self.bound,
            ..Self::default()
        };
        for (index, item) in problem.items.iter().enumerate() {
            let kind = item.kind as usize;
            let own = self.over[index] != NONE && self.bodies[self.of_item[index] as usize].kind == item.kind;
            let at = &mut live[kind][item.first as usize];
            let bytes = problem.rounded(item);
            if own && *at + bytes <= most[kind] {
                *at += bytes;
                (made.over[index], made.pair[index]) = (NONE, NONE);
            }
        }
        made.build(problem);
        made
    }

    fn build(&mut self, problem: &Problem) {
        let mut order: Vec<u32> = (0..problem.items.len() as u32).collect();
        let start = |&i: &u32| problem.items[i as usize].first;
        if !order.is_sorted_by_key(start) {
            order.sort_by_key(start);
        }
        for item in order {
            self.add(problem, item);
        }
    }

    fn decide(&mut self, problem: &Problem) {
        let mut taken = vec![false; problem.items.len()];
        for pass in [true, false] {
            for (index, pair) in problem.pairs.iter().enumerate() {
                let (y, x) = (problem.items[pair.item as usize], problem.items[pair.over as usize]);
                let kinds = x.kind == y.kind || problem.pairs_across_kinds;
                if self.over[pair.item as usize] == NONE
                    && !taken[pair.over as usize]
                    && kinds
                    && (!pass || x.bytes == y.bytes)
                    // Three items of one node in a row: the first and the third live together.
                    && !(x.first == x.last && self.over[pair.over as usize] != NONE)
                    && !(y.first == y.last && taken[pair.item as usize])
                {
                    self.over[pair.item as usize] = pair.over;
                    self.pair[pair.item as usize] = index as u32;
                    taken[pair.over as usize] = true;
                }
            }
        }
    }

    fn add(&mut self, problem: &Problem, item: u32) {
        if self.of_item[item as usize] != NONE {
            return;
        }
        let mut at = self.over[item as usize];
        if at == NONE || self.of_item[at as usize] != NONE {
            return self.add_next(problem, item);
        }
        // What is overwritten may start at the same node and come later: back to what has a body, or to the chain's start.
        let mut chain = vec![item];
        while at != NONE && self.of_item[at as usize] == NONE {
            chain.push(at);
            at = self.over[at as usize];
        }
        while let Some(item) = chain.pop() {
            self.add_next(problem, item);
        }
    }

    fn add_next(&mut self, problem: &Problem, item: u32) {
        let i = problem.items[item as usize];
        let over = self.over[item as usize];
        if over == NONE {
            let (body, head) = (self.bodies.len() as u32, self.segments.len() as u32);
            let bytes = problem.rounded(&i);
            self.segments.push(Segment {
                first: i.first,
                last: i.last,
                bytes,
                body,
                next: NONE,
            });
            self.bodies.push(Body {
                first: i.first,
                last: i.last,
                bytes,
                kind: i.kind,
                head,
                tail: head,
            });
            self.of_item[item as usize] = body;
            return;
        }
        let index = self.of_item[over as usize];
        self.of_item[item as usize] = index;
        let body = &mut self.bodies[index as usize];
        let alignment = problem.kinds[body.kind as usize].alignment;
        let bytes = i.bytes.next_multiple_of(alignment);
        if i.last <= body.last {
            return;
        }
        let tail = &mut self.segments[body.tail as usize];
        let first = body.last + 1;
        body.last = i.last;
        if tail.bytes == bytes {
            tail.last = i.last;
            return;
        }
        let next = self.segments.len() as u32;
        self.segments[body.tail as usize].next = next;
        body.tail = next;
        self.segments.push(Segment {
            first,
            last: i.last,
            bytes,
            body: index,
            next: NONE,
        });
    }

    /// Bytes of one kind that live at each node.
    pub(super) fn alive(&self, problem: &Problem, kind: u32) -> Vec<usize> {
        let mut change = vec![0isize; problem.nodes as usize + 1];
        for segment in &self.segments {
            if self.bodies[segment.body as usize].kind == kind {
                change[segment.first as usize] += segment.bytes as isize;
                change[segment.last as usize + 1] -= segment.bytes as isize;
            }
        }
        let mut live = 0;
        let sums = change.iter().map(|step| {
            live += step;
            live as usize
        });
        sums.collect()
    }
}
