//! Counts requests to memory, and instructions by the straight runs they come in.

use crate::counters::{Class, Counters, LdsTraffic, Traffic};
use crate::exec::code::Code;
use crate::exec::state::fields::Flow;
use crate::exec::state::request::{Place, Request};
use crate::fault::Access;
use std::collections::HashMap;

/// Counts of requests.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) counters: Counters,
    pub(crate) touched: Touched,
}

/// Segments of global memory that were read, and those that were written: each counts once for the whole launch, which a
/// workgroup by itself cannot tell.
#[derive(Default)]
pub(crate) struct Touched {
    read: Segments,
    written: Segments,
}

impl Touched {
    /// Adds another share's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.read.add(&other.read);
        self.written.add(&other.written);
    }

    /// Writes the numbers of segments into the launch's counters.
    pub(crate) fn count(&self, counters: &mut Counters) {
        counters.distinct.read = self.read.len();
        counters.distinct.written = self.written.len();
    }
}

/// A set of segments: a bit for each, 64 neighbours to a word.
#[derive(Default)]
struct Segments(HashMap<u64, u64>);

impl Segments {
    fn insert(&mut self, segment: u64) {
        *self.0.entry(segment >> 6).or_default() |= 1 << (segment & 63);
    }

    fn add(&mut self, other: &Self) {
        for (&word, &bits) in &other.0 {
            *self.0.entry(word).or_default() |= bits;
        }
    }

    fn len(&self) -> u64 {
        self.0.values().map(|bits| u64::from(bits.count_ones())).sum()
    }
}

impl Count {
    pub(crate) fn request(&mut self, r: &Request<'_>) {
        let bytes = u64::from(r.exec.count_ones() * r.size);
        let counters = &mut self.counters;
        let traffic = match (r.place, r.access) {
            (Place::Lds, _) => return lds(&mut counters.lds, r, bytes),
            (Place::Scratch, _) => {
                counters.scratch_bytes += bytes;
                return;
            }
            (_, Access::Load | Access::None) => &mut counters.loads,
            (_, Access::Store) => &mut counters.stores,
            (_, Access::Atomic) => &mut counters.atomics,
            (_, Access::Scalar) => &mut counters.scalar,
        };
        let touched = &mut self.touched;
        global(traffic, r, bytes, |segment| {
            if r.access != Access::Store {
                touched.read.insert(segment);
            }
            if matches!(r.access, Access::Store | Access::Atomic) {
                touched.written.insert(segment);
            }
        });
    }
}

fn lanes(exec: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |l| exec >> l & 1 != 0)
}

fn global(traffic: &mut Traffic, r: &Request<'_>, bytes: u64, mut touch: impl FnMut(u64)) {
    // At most two segments a lane, in the order of lanes: mostly sorted already.
    let mut segments = [0; 64];
    let mut n = 0;
    for l in lanes(r.exec) {
        let (first, last) = (r.at[l] >> 7, r.at[l].wrapping_add(u64::from(r.size) - 1) >> 7);
        for segment in [first, last] {
            if n == 0 || segments[n - 1] != segment {
                segments[n] = segment;
                n += 1;
            }
        }
    }
    let segments = &mut segments[..n];
    segments.sort_unstable();
    traffic.requests += 1;
    traffic.bytes += bytes;
    for same in segments.chunk_by(|a, b| a == b) {
        traffic.segments += 1;
        touch(same[0]);
    }
}

fn lds(traffic: &mut LdsTraffic, r: &Request<'_>, bytes: u64) {
    let at_once = match r.size {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    traffic.requests += 1;
    traffic.bytes += bytes;
    for first in (0..32).step_by(at_once) {
        let group = r.exec >> first & (u32::MAX >> (32 - at_once));
        if group == 0 {
            continue;
        }
        let mut dwords: Vec<u64> = Vec::with_capacity(128);
        for l in lanes(group << first) {
            let (from, to) = (r.at[l] / 4, (r.at[l] + u64::from(r.size) - 1) / 4);
            dwords.extend(from..=to);
        }
        if r.access != Access::Atomic {
            dwords.sort_unstable();
            dwords.dedup();
        }
        let mut banks = [0u64; 32];
        for dword in dwords {
            banks[dword as usize & 31] += 1;
        }
        traffic.cycles += 1;
        traffic.conflicts += banks.into_iter().max().unwrap_or(1).saturating_sub(1);
    }
}

/// Adds up what runs, counted where they start, have executed.
pub(crate) fn add_runs(counters: &mut Counters, code: &Code, runs: &[u64]) {
    for (start, &times) in runs.iter().enumerate().filter(|(_, times)| **times > 0) {
        let straight = usize::from(code.ins[start].straight);
        let end = start + straight + usize::from(code.ins[start + straight].flow != Flow::Next);
        for &class in &code.classes[start..end] {
            if let Some(class) = Class::ALL.get(class as usize) {
                counters.instructions[*class as usize] += times;
            }
        }
    }
}
