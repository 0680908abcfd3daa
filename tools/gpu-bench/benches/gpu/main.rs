//! Every measurement on a card, in one program: launch, copies, allocation, each kernel; and, with `--serve`, the timed
//! requests of `cargo xtask bench compare`.
//!
//! It opens its device as a GPU test does: a real card only under a supervisor that holds its lock, which is
//! `cargo xtask bench`. Without a card it says what it leaves out: the simulator has no time worth reporting.
//! `ROCMFORGE_DEVICE=sim` with `--test` runs every benchmark once at a small size, which shows that it works.
#![allow(clippy::print_stdout)] // its output is what it is for

mod card;
mod copies;
mod declared;
mod inputs;
mod kernels;
mod launch;
mod memory;
mod op;
mod packed;
mod serve;
mod table;
mod timing;

use card::Card;
use criterion::Criterion;
use std::time::Duration;
use table::Table;

fn main() {
    if std::env::args().any(|argument| argument == "--serve") {
        return serve::run();
    }
    let Some(card) = Card::take() else {
        println!(
            "gpu: launch, copies, allocation and all kernels are left out: no card was asked for. \
             `cargo xtask bench run --device hip:<PCI address>` takes its lock and times them."
        );
        return;
    };
    // Event times scatter little; what makes a run long is the number of kernels.
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(500))
        .nresamples(1001)
        .without_plots()
        .configure_from_args();
    let mut table = Table::default();
    copies::run(&mut criterion, &card, &mut table);
    launch::run(&mut criterion, &card, &mut table);
    memory::run(&mut criterion, &card, &mut table);
    kernels::run(&mut criterion, &card, &mut table);
    packed::run(&mut criterion, &card, &mut table);
    criterion.final_summary();
    if card.is_real() {
        table.print(&card);
    }
}
