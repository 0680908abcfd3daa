//! The protocol under random interleavings: several cards on one ledger, one driver, figures frozen as long as they may be.
//!
//! At every grant, what all processes hold and have been promised fits the card beside the desktop. `PEERS_SEEDS` sets the
//! number of walks.
#![allow(clippy::print_stdout)] // the long run says what it has done

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocmforge_memory::{
    Allocation, Bytes, Card, Class, DeviceKey, PeerFigures, PeerLedger, Policy, Reading, Readings, Reservation,
};

use super::{CARD, UNUSED, scratch};
use crate::common::{GIB, MIB};

const TOTAL: u64 = 16 * GIB;
const DESKTOP: u64 = 2 * GIB;
const HEADROOM: u64 = 256 * MIB;
const PROCESSES: usize = 4;

/// What the driver holds for each process; freed memory that `used` still shows.
#[derive(Default)]
struct Driver {
    own: [u64; PROCESSES],
    late: u64,
    now: Duration,
}

struct Seen {
    driver: Arc<Mutex<Driver>>,
    process: usize,
    shows_own: bool,
}

impl Readings for Seen {
    fn read(&self) -> Reading {
        let driver = self.driver.lock().unwrap();
        Reading {
            total: Some(Bytes(TOTAL)),
            used: Some(Bytes(DESKTOP + driver.own.iter().sum::<u64>() + driver.late)),
            own: self.shows_own.then(|| Bytes(driver.own[self.process])),
            hip_free: Some(Bytes(TOTAL - driver.own.iter().sum::<u64>())),
            ..Reading::default()
        }
    }

    fn now(&self) -> Duration {
        self.driver.lock().unwrap().now
    }
}

/// What a process has in hand, in every stage of its life.
enum Piece {
    Reserved(Reservation),
    /// The driver has handed it out, the ledger does not know yet.
    Given(Reservation),
    Live(Allocation),
    /// The driver is being asked to take it back.
    Returning(Allocation),
    /// It has taken it back.
    Returned(Allocation),
}

impl Piece {
    fn bytes(&self) -> u64 {
        match self {
            Piece::Reserved(r) | Piece::Given(r) => r.bytes().0,
            Piece::Live(a) | Piece::Returning(a) | Piece::Returned(a) => a.bytes().0,
        }
    }

    /// What the driver has handed out for it, or may be asked to.
    fn weight(&self) -> u64 {
        match self {
            Piece::Returned(_) => 0,
            other => other.bytes(),
        }
    }
}

struct Process {
    card: Arc<Card>,
    pieces: Vec<Piece>,
}

fn start(directory: &Path, driver: &Arc<Mutex<Driver>>, process: usize, shows_own: bool) -> Process {
    let key = DeviceKey::new(CARD);
    let peers = PeerLedger::join(directory, &key, PeerFigures::InUsed).unwrap();
    let readings = Seen {
        driver: Arc::clone(driver),
        process,
        shows_own,
    };
    let policy = Policy {
        slack: Bytes::ZERO,
        ..Policy::headless()
    };
    Process {
        card: Card::open_shared(key, policy, Box::new(readings), peers).unwrap(),
        pieces: Vec::new(),
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Grants and refusals of one random walk.
fn walk(seed: u64, steps: u32) -> (u64, u64) {
    let root = scratch();
    let mut random = Random(seed);
    let shows_own = random.below(2) == 0;
    let driver = Arc::new(Mutex::new(Driver::default()));
    let mut processes: Vec<Process> = (0..PROCESSES)
        .map(|process| start(root.path(), &driver, process, shows_own))
        .collect();
    let (mut grants, mut refusals) = (0, 0);
    for step in 0..steps {
        let at = random.below(PROCESSES as u64) as usize;
        match random.below(16) {
            // Time passes: `used` catches up, figures age.
            0 => {
                let mut driver = driver.lock().unwrap();
                driver.now += Duration::from_millis(random.below(200));
                driver.late = random.below(driver.late + 1);
            }
            // A process ends in order and another one begins.
            1 if random.below(20) == 0 => {
                driver.lock().unwrap().own[at] = 0;
                processes[at] = start(root.path(), &driver, at, shows_own);
            }
            2 => drop(processes[at].card.budget()),
            3..=7 => {
                let bytes = match random.below(4) {
                    0 => random.below(MIB) + 1,
                    1 => random.below(40 * MIB) + 1,
                    2 => random.below(GIB) + 1,
                    _ => random.below(8 * GIB) + 1,
                };
                match processes[at].card.try_reserve(Bytes(bytes), Class::Required, "piece") {
                    Ok(reservation) => {
                        processes[at].pieces.push(Piece::Reserved(reservation));
                        grants += 1;
                        let all: u64 = processes.iter().flat_map(|p| &p.pieces).map(Piece::weight).sum();
                        assert!(
                            DESKTOP + HEADROOM + all <= TOTAL,
                            "seed {seed}, step {step}: {all} bytes were granted of {}",
                            TOTAL - DESKTOP - HEADROOM
                        );
                    }
                    Err(refusal) => {
                        refusals += 1;
                        assert_eq!(refusal.peers_error, None, "seed {seed}, step {step}");
                        let held = |p: &Process| p.pieces.iter().map(Piece::bytes).sum::<u64>();
                        let all: u64 = processes.iter().map(held).sum();
                        // What others do not use may be missed, what the driver shows late, and what it has just given or
                        // is about to take back: that may stand in `used` and among the reserved bytes.
                        let unknown = |piece: &&Piece| matches!(piece, Piece::Given(_) | Piece::Returning(_));
                        let pieces = processes.iter().flat_map(|p| &p.pieces);
                        let given: u64 = pieces.filter(unknown).map(Piece::bytes).sum();
                        let missed = UNUSED * (PROCESSES as u64 - 1) + driver.lock().unwrap().late + given;
                        // And what the budget has not grown back to yet.
                        let now = processes[at].card.budget();
                        let missed = missed + (now.target.0 - now.budget.0);
                        assert!(
                            DESKTOP + HEADROOM + all + bytes + missed > TOTAL,
                            "seed {seed}, step {step}: {bytes} were refused beside {all}: {refusal}"
                        );
                    }
                }
            }
            // A piece goes one step on its way.
            _ => {
                let process = &mut processes[at];
                if process.pieces.is_empty() {
                    continue;
                }
                let piece = process
                    .pieces
                    .swap_remove(random.below(process.pieces.len() as u64) as usize);
                let bytes = piece.bytes();
                let next = match piece {
                    Piece::Reserved(reservation) if random.below(4) == 0 => {
                        drop(reservation);
                        continue;
                    }
                    Piece::Reserved(reservation) => {
                        driver.lock().unwrap().own[at] += bytes;
                        Piece::Given(reservation)
                    }
                    Piece::Given(reservation) => Piece::Live(reservation.commit()),
                    Piece::Live(mut allocation) => {
                        allocation.begin_return();
                        Piece::Returning(allocation)
                    }
                    Piece::Returning(allocation) => {
                        let mut driver = driver.lock().unwrap();
                        driver.own[at] -= bytes;
                        driver.late += random.below(2) * bytes;
                        Piece::Returned(allocation)
                    }
                    Piece::Returned(allocation) => {
                        drop(allocation);
                        continue;
                    }
                };
                process.pieces.push(next);
            }
        }
    }
    (grants, refusals)
}

#[test]
fn no_interleaving_grants_more_than_there_is_nor_refuses_what_fits() {
    let (mut grants, mut refusals) = (0, 0);
    for seed in 0..40 {
        let (granted, refused) = walk(seed, 1500);
        grants += granted;
        refusals += refused;
    }
    assert!(
        grants > 5_000 && refusals > 1_000,
        "{grants} grants, {refusals} refusals"
    );
}
