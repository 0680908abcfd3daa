//! The log of racecheck against all accesses of a launch, compared with each other.

use super::cells::Cells;
use super::records::Bytes;
use super::slot::{Info, LaneBits, Now, Slot};
use super::sync::{Clock, Seen, Sync};
use std::ops::Range;

/// Waves of a workgroup.
const WAVES: u32 = 4;

/// A launch whose waves make requests at random.
struct Launch {
    random: u64,
    cells: Cells,
    group: u32,
    epoch: u32,
    next: u32,
    segments: [u32; WAVES as usize],
    /// Every access so far: bytes, whether it was a store, and its segment.
    history: Vec<(Range<usize>, bool, u32)>,
}

impl Launch {
    fn new(seed: u64) -> Self {
        Self {
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            cells: Cells::global(1 << 16).expect("address space"),
            group: 4,
            epoch: 4,
            next: 4,
            segments: [0; WAVES as usize],
            history: Vec::new(),
        }
    }

    fn below(&mut self, n: u64) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 11) % n) as usize
    }

    fn barrier(&mut self) {
        self.next = self.next.next_multiple_of(WAVES);
        self.epoch = self.next;
        for segment in &mut self.segments {
            *segment = self.next;
            self.next += 1;
        }
    }

    fn start_group(&mut self) {
        self.group = self.next;
        self.barrier();
    }

    /// Gives a wave a new segment, as its first store does.
    fn cut(&mut self, wave: usize) {
        let here = self.next & !(WAVES - 1) | wave as u32;
        let segment = if here < self.next { here + WAVES } else { here };
        self.segments[wave] = segment;
        self.next = segment + 1;
    }

    /// Makes a request; gives whether racecheck and the history say that it races.
    fn request(&mut self, wave: usize, store: bool, bytes: &Bytes) -> (bool, bool) {
        let now = Now {
            mine: self.segments[wave],
            floor: 4,
            group: self.group,
            epoch: self.epoch,
            stores: self.epoch,
            waves: WAVES - 1,
        };
        let touched: Vec<(u32, Range<usize>)> = bytes.lanes(&(0..usize::MAX)).collect();
        let races = |(other, stored, segment): &(Range<usize>, bool, u32)| {
            (store || *stored)
                && now.open(Slot::Load, *segment)
                && !now.own(*segment)
                && touched
                    .iter()
                    .any(|(_, own)| own.start < other.end && other.start < own.end)
        };
        let wanted = self.history.iter().any(races);
        let own = touched.iter().map(|(_, bytes)| (bytes.clone(), store, now.mine));
        self.history.extend(own);

        let info = Info::new(64, 0, 0, LaneBits::of(false));
        let mut hits = Vec::new();
        if !self.cells.note(&now, store, info, bytes) {
            for (_, bytes) in &touched {
                self.cells.carry_over(bytes.clone());
            }
            for (lane, bytes) in touched {
                let (first, count) = (bytes.start / 4, bytes.len() / 4);
                if store {
                    self.cells.store(&now, info, first, count, lane, count, &mut hits);
                } else {
                    self.cells.load(&now, info, first, count, lane, count, &mut hits);
                }
            }
        }
        (hits.iter().any(|hit| !now.own(hit.segment)), wanted)
    }

    /// Runs to the first race or the end of the launch; gives whether there was a race.
    fn run(&mut self) -> bool {
        // Often none, so that launches without a race are long enough to fill the lists.
        let stores = [0, 1, 8][self.below(3)];
        let alone = self.below(2) == 0;
        for _ in 0..6 {
            self.start_group();
            for _ in 0..=self.below(2) {
                for _ in 0..self.below(240) {
                    let (wave, place) = (self.below(WAVES.into()), self.below(60));
                    if self.below(40) == 0 {
                        self.cut(wave);
                    }
                    let store = self.below(200) < stores;
                    // What all waves read, or what only this one does.
                    let common = alone || self.below(3) != 0;
                    let start = if common {
                        3968 + place % 12 * 32
                    } else {
                        6144 + self.history.len() * 4 % 8192
                    };
                    let strided = common && place % 3 == 0;
                    let lanes = 1 + self.below(2) * 7;
                    let bytes = Bytes {
                        start,
                        end: if strided {
                            start + (lanes - 1) * 16 + 4
                        } else {
                            start + lanes * 4
                        },
                        size: 4,
                        exec: u32::MAX >> (32 - lanes),
                        at: strided
                            .then(|| std::array::from_fn(|lane| if lane < lanes { lane as u16 * 16 } else { 0 })),
                    };
                    let (found, wanted) = self.request(wave, store, &bytes);
                    assert_eq!(found, wanted, "wave {wave}, store {store}: {bytes:?}");
                    if found {
                        return true;
                    }
                }
                self.barrier();
            }
        }
        false
    }
}

#[test]
fn a_request_races_with_the_log_as_with_all_that_was_accessed() {
    let mut races = 0;
    for seed in 1..=3000 {
        races += u32::from(Launch::new(seed).run());
    }
    assert!((500..2500).contains(&races), "{races}");
}

#[test]
fn stores_that_no_wave_has_looked_at_take_no_memory() {
    let (mut sync, none) = (Sync::default(), Seen::new());
    let flags = [64, 128].map(|address| sync.var(address));
    // A volatile store goes round in a loop that does not end; another wave looks once.
    for turn in 0..100_000 {
        for &flag in &flags {
            let clock = Clock {
                group: 0,
                wave: 0,
                upto: 4 + turn,
                done: 4 + turn,
                epoch: 4,
                stores: 4,
                store: None,
                seen: &none,
                shared: &none,
            };
            sync.release(flag, &clock, true);
        }
        if turn == 500 {
            sync.now(flags[0]);
        }
    }
    assert!(sync.len() <= 4, "{} releases are kept", sync.len());
}
