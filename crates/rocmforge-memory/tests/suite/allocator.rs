//! One suite over every allocator and every stack of them that is in use.

mod fail;
mod layers;
mod suite;

use crate::common::device::{Error, Memory, Stream};
use crate::common::{Driver, GIB, World};
use fail::FailNth;
use rocmforge_memory::*;
use std::sync::Arc;

/// A driver's memory of 1 GiB on a card whose budget is 700 MiB of it.
struct Bench {
    memory: Memory,
    card: Arc<Card>,
}

impl Bench {
    fn new() -> Self {
        let driver = Driver::new(World {
            displays: 0,
            ..World::new(GIB, 0)
        });
        let memory = Memory::new(GIB, Some(driver.clone()));
        let card = Card::new(DeviceKey::new("test"), Policy::desktop(), driver.boxed());
        Self { memory, card }
    }
}

/// What the suite runs over: an allocator of the test's memory.
trait Stack: Allocator<Memory = u64, Stream = Stream, Error = Error> {}
impl<A: Allocator<Memory = u64, Stream = Stream, Error = Error>> Stack for A {}

/// The driver's memory within the budget.
type Limited = Budgeted<Logged<Arc<Counted<Memory>>>>;

/// Budget and driver of a backend, and the counts of what reaches the driver.
fn budgeted(bench: &Bench) -> (Limited, Arc<Counted<Memory>>) {
    let counted = Arc::new(Counted::new(bench.memory.clone()));
    let logged = Logged::new(Arc::clone(&counted));
    (Budgeted::new(Arc::clone(&bench.card), logged), counted)
}

/// The whole stack of a backend; `OFF` has no pool.
fn backend_stack(bench: &Bench, options: PoolOptions) -> (Arc<dyn Stack>, Arc<Counted<Memory>>) {
    let (budgeted, counted) = budgeted(bench);
    let names = Arc::new(bench.memory.clone());
    let stack: Arc<dyn Stack> = match options {
        PoolOptions::OFF => Arc::new(Named::new(budgeted, names)),
        _ => Arc::new(Named::new(
            Pool::new(budgeted, options, Some(bench.card.ledger())),
            names,
        )),
    };
    (stack, counted)
}

macro_rules! over {
    ($($name:ident: $keeps_ledger:literal, $make:expr;)*) => {
        $(mod $name {
            use super::*;

            const LEDGER: bool = $keeps_ledger;

            fn make(bench: &Bench) -> impl Stack + use<> {
                let make: fn(&Bench) -> _ = $make;
                make(bench)
            }

            over!(@tests
                blocks_belong_to_one_owner
                what_was_freed_can_be_had_again
                blocks_wait_for_their_last_uses
                a_refusal_takes_nothing
                the_ledger_is_what_the_driver_gave
                threads_share_it
                settling_waits_for_what_was_freed_in_use
                whatever_is_left_goes_back_at_the_end
            );
        })*
    };
    (@tests $($test:ident)*) => {
        $(#[test]
        fn $test() {
            let bench = Bench::new();
            suite::$test(&bench, make(&bench), LEDGER);
            suite::all_back(&bench);
        })*
    };
}

over! {
    driver: false, |b| b.memory.clone();
    budgeted: true, |b| Budgeted::new(Arc::clone(&b.card), b.memory.clone());
    counted: false, |b| Counted::new(b.memory.clone());
    logged: false, |b| Logged::new(b.memory.clone());
    failing: false, |b| FailNth::new(b.memory.clone());
    named: false, |b| Named::new(b.memory.clone(), Arc::new(b.memory.clone()));
    pool: false, |b| Pool::new(b.memory.clone(), PoolOptions::ON, None);
    pool_of_budgeted: true, |b| {
        let budgeted = Budgeted::new(Arc::clone(&b.card), b.memory.clone());
        Pool::new(budgeted, PoolOptions::ON, Some(b.card.ledger()))
    };
    pool_that_keeps_nothing: true, |b| Pool::new(budgeted(b).0, PoolOptions::OFF, Some(b.card.ledger()));
    pool_that_keeps_little: true, |b| backend_stack(b, PoolOptions { keep: Bytes::kib(64) }).0;
    backend: true, |b| backend_stack(b, PoolOptions::ON).0;
    backend_without_pool: true, |b| backend_stack(b, PoolOptions::OFF).0;
}
