//! Many threads on one card, each decision checked at its place in the order in which they were made.
//!
//! The card asks its readings for the time once at the beginning of each decision, with its mutex held. The clock here hands
//! out tickets, so the tickets are the order of the decisions. A free has no ticket; it happened between the last ticket
//! handed out before it and the first one after it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rocmforge_memory::{Bytes, Card, Class, DeviceKey, Policy, Reading, Readings};

use super::number;
use super::world::{GIB, MIB};
use rocmforge_test_support::Random;

thread_local! {
    static TICKET: Cell<u64> = const { Cell::new(0) };
}

#[derive(Clone, Default)]
struct Tickets(Arc<AtomicU64>);

impl Readings for Tickets {
    fn read(&self) -> Reading {
        // Nobody can say what is used, so the user's own number is the budget, whoever reads when.
        Reading {
            total: Some(Bytes(20 * GIB)),
            displays: 1,
            ..Reading::default()
        }
    }

    fn now(&self) -> Duration {
        TICKET.set(self.0.fetch_add(1, Ordering::SeqCst));
        Duration::ZERO
    }
}

enum Event {
    /// Decided at a ticket.
    Granted(u64, u64),
    Refused(u64, u64),
    /// Freed between two tickets.
    Freed(u64, u64, u64),
}

/// One round: what each thread did.
fn round(seed: u64, threads: u64, operations: u64) -> (u64, Vec<Event>) {
    let tickets = Tickets::default();
    let card = Card::new(
        DeviceKey::new("threads"),
        Policy::fixed(Bytes::gib(4)),
        Box::new(tickets.clone()),
    );
    let budget = card.budget().budget.0;
    let now = || tickets.0.load(Ordering::SeqCst);
    let events = thread::scope(|scope| {
        let worker = |index: u64| {
            let (card, now) = (&card, &now);
            scope.spawn(move || {
                let mut random = Random(seed << 8 | index);
                let (mut held, mut events) = (Vec::new(), Vec::new());
                for _ in 0..operations {
                    if random.one_in(3) && !held.is_empty() {
                        let index = random.below(held.len() as u64) as usize;
                        let reservation: rocmforge_memory::Reservation = held.swap_remove(index);
                        let (bytes, before) = (reservation.bytes().0, now());
                        drop(reservation);
                        events.push(Event::Freed(before, now(), bytes));
                        continue;
                    }
                    let bytes = (1 + random.below(512)) * MIB;
                    match card.try_reserve(Bytes(bytes), Class::Required, "thread") {
                        Ok(reservation) => {
                            events.push(Event::Granted(TICKET.get(), bytes));
                            held.push(reservation);
                        }
                        Err(_) => events.push(Event::Refused(TICKET.get(), bytes)),
                    }
                }
                std::mem::forget(held); // held until the end: no free without an event
                events
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    (budget, events)
}

/// The least and the most that can have been in use at each decision, and what was decided.
fn check(budget: u64, events: &[Event]) -> (u64, u64, u64) {
    // By ticket; a free counts for the most until its end, and for the least from its beginning.
    let (mut least, mut most) = (0_i64, 0_i64);
    let mut moments: Vec<(u64, u8, &Event)> = Vec::new();
    for event in events {
        match event {
            Event::Granted(at, _) | Event::Refused(at, _) => moments.push((*at, 2, event)),
            // Both counters say which ticket comes next.
            Event::Freed(before, after, _) => {
                moments.push((*before, 0, event));
                moments.push((*after, 1, event));
            }
        }
    }
    moments.sort_by_key(|(at, order, _)| (*at, *order));
    let (mut refusals, mut over, mut spurious) = (0, 0, 0);
    for (_, order, event) in moments {
        match event {
            Event::Granted(_, bytes) => {
                over += u64::from(least + *bytes as i64 > budget as i64);
                least += *bytes as i64;
                most += *bytes as i64;
            }
            Event::Refused(_, bytes) => {
                refusals += 1;
                spurious += u64::from(most + *bytes as i64 <= budget as i64);
            }
            Event::Freed(_, _, bytes) if order == 0 => least -= *bytes as i64,
            Event::Freed(_, _, bytes) => most -= *bytes as i64,
        }
    }
    (refusals, over, spurious)
}

#[test]
fn sixteen_threads_are_refused_only_what_does_not_fit() {
    let rounds = number("SEEDS", 10) * 10;
    let mut refused = 0;
    for seed in 0..rounds {
        let threads = 1 + seed % 16;
        let (budget, events) = round(seed, threads, 1600 / threads);
        let (refusals, over, spurious) = check(budget, &events);
        assert_eq!(
            (over, spurious),
            (0, 0),
            "seed {seed}: granted over budget, refused though it fitted"
        );
        refused += refusals;
    }
    println!("{rounds} rounds of 1 to 16 threads: {refused} refusals, each of what did not fit");
    assert!(refused > rounds * 10, "{refused}");
}
