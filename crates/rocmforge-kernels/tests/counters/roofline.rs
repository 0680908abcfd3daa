//! Roofline: which limit of a card each kernel meets first, by the simulator's counts and published rates.
//!
//! A model, never a measurement. Each part of the card works at its published rate and all of them at once, so the slowest
//! decides. Latency, clocks below the boost clock, launch and imbalance are left out: a real card is slower.

use crate::chosen::Chosen;
use crate::measure;
use rocmforge_sim::Arch;
use rocmforge_sim::counters::{Class, Counters};
use std::collections::BTreeMap;
use std::error::Error;

/// Published rates of a card.
///
/// | figure | source |
/// |---|---|
/// | compute units, boost clock, memory | AMD's product pages: Radeon RX 7600, RX 7900 XTX and RX 9070 XT, Ryzen AI 9 HX 370 (which has the Radeon 890M, with 128 bits of LPDDR5X-7500), Instinct MI300X |
/// | `matrix` | AMD's matrix instruction calculator: 32 cycles of a SIMD for 16 x 16 x 16 on gfx11, 16 on gfx12, a product of 16 x 16 x 16 in 16 cycles of one of four on gfx942 |
///
/// Units, clock and `matrix` give the peaks that the pages name for f16 matrices: 43.5, 122.9, 195 and 1,307 TFLOP/s, and 23.8 for the Radeon 890M.
struct Card {
    name: &'static str,
    processor: &'static str,
    /// The code whose instructions were counted: its own, or that of the nearest processor which the simulator executes.
    counted: Arch,
    compute_units: f64,
    /// Boost clock, in GHz.
    clock: f64,
    /// Memory, in GB/s.
    memory: f64,
    /// Products of f16 matrices with f32 sums, in operations for each clock of a compute unit.
    matrix: f64,
}

const CARDS: [Card; 5] = [
    Card {
        name: "RX 7600",
        processor: "gfx1102",
        counted: Arch::Gfx1100,
        compute_units: 32.0,
        clock: 2.655,
        memory: 288.0,
        matrix: 512.0,
    },
    Card {
        name: "RX 7900 XTX",
        processor: "gfx1100",
        counted: Arch::Gfx1100,
        compute_units: 96.0,
        clock: 2.5,
        memory: 960.0,
        matrix: 512.0,
    },
    Card {
        name: "RX 9070 XT",
        processor: "gfx1201",
        counted: Arch::Gfx1201,
        compute_units: 64.0,
        clock: 2.97,
        memory: 640.0,
        matrix: 1024.0,
    },
    Card {
        name: "Radeon 890M",
        processor: "gfx1150",
        counted: Arch::Gfx1100,
        compute_units: 16.0,
        clock: 2.9,
        memory: 120.0,
        matrix: 512.0,
    },
    Card {
        name: "MI300X",
        processor: "gfx942",
        counted: Arch::Gfx1100,
        compute_units: 304.0,
        clock: 2.1,
        memory: 5300.0,
        matrix: 2048.0,
    },
];

/// Wave instructions of 32 lanes that a compute unit starts in a clock: two SIMDs of 32 lanes, or four of 16 (the guides to the instruction sets
/// of RDNA 3, RDNA 4 and CDNA 3).
const VECTOR_RATE: f64 = 2.0;
/// Clocks of a SIMD for 32 results of `exp2`, `1/x` and the like: a quarter of the rate of other instructions (the same guides).
const TRANSCENDENTAL_CLOCKS: f64 = 4.0;
/// Operations of a product of 16 x 16 x 16.
const WMMA_OPERATIONS: f64 = 2.0 * 16.0 * 16.0 * 16.0;

/// A limit of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roof {
    Memory,
    Vector,
    Matrix,
    Lds,
}

impl Roof {
    const ALL: [Self; 4] = [Self::Memory, Self::Vector, Self::Matrix, Self::Lds];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Vector => "vector",
            Self::Matrix => "matrix",
            Self::Lds => "LDS",
        }
    }

    /// Nanoseconds that this part of the card needs at least. LDS: the counted cycles, with conflicts, one for each
    /// compute unit and clock. Memory: each segment once, as if caches kept the rest.
    fn time(self, card: &Card, c: &Counters) -> f64 {
        let clocks = card.compute_units * card.clock;
        match self {
            Self::Memory => c.distinct.bytes() as f64 / card.memory,
            Self::Vector => {
                let plain = (c.of(Class::Valu) + c.of(Class::Vopd)) as f64;
                let transcendental = c.of(Class::Trans) as f64 * TRANSCENDENTAL_CLOCKS;
                (plain + transcendental) / VECTOR_RATE / clocks
            }
            Self::Matrix => c.of(Class::Wmma) as f64 * WMMA_OPERATIONS / card.matrix / clocks,
            Self::Lds => (c.lds.cycles + c.lds.conflicts) as f64 / clocks,
        }
    }

    /// The roof that takes longest, and how long.
    fn met(card: &Card, c: &Counters) -> (Self, f64) {
        let times = Self::ALL.map(|roof| (roof, roof.time(card, c)));
        times.into_iter().fold(
            (Self::Memory, 0.0),
            |most, next| if next.1 > most.1 { next } else { most },
        )
    }
}

/// Prints for each kernel and card the roof that it meets, how long it is there at least, and how busy the memory is then.
#[test]
fn the_roof_of_every_kernel() -> Result<(), Box<dyn Error>> {
    let mut counts = BTreeMap::new();
    for arch in Arch::ALL {
        counts.insert(arch.name(), measure(&Chosen::ALL, arch)?);
    }
    println!(
        "A model by counts of simulated code and published rates, not a measurement. For each card: the limit that a kernel"
    );
    println!(
        "meets at the shapes of `cargo xtask kernels counters`, the least microseconds there, and the share of the memory's rate."
    );
    for card in &CARDS {
        println!(
            "  {:<12} {} with counts of the code for {}: {} compute units at {} GHz, {} GB/s",
            card.name, card.processor, card.counted, card.compute_units, card.clock, card.memory
        );
    }
    print!("{:<30}", "kernel");
    for card in &CARDS {
        print!(" {:>22}", card.name);
    }
    println!();
    for (kernel, own) in &counts[Arch::Gfx1100.name()] {
        print!("{kernel:<30}");
        for card in &CARDS {
            let counts = counts[card.counted.name()].get(kernel).unwrap_or(own);
            let (roof, time) = Roof::met(card, &counts.counters);
            assert!(time > 0.0, "{kernel} asks nothing of a {}", card.name);
            let busy = 100.0 * Roof::Memory.time(card, &counts.counters) / time;
            print!(" {:>7} {:>9.3} {:>3.0}%", roof.name(), time / 1000.0, busy);
        }
        println!();
    }
    Ok(())
}

/// What AMD names as the peak of products of f16 matrices, in TFLOP/s.
#[test]
fn rates_give_the_published_peaks() {
    for (card, peak) in CARDS.iter().zip([43.5, 122.9, 195.0, 23.8, 1307.4]) {
        let found = card.matrix * card.compute_units * card.clock / 1000.0;
        assert!((found / peak - 1.0).abs() < 0.005, "{}: {found} and {peak}", card.name);
    }
}

#[test]
fn each_part_of_a_card_can_be_the_slowest() {
    let card = &CARDS[1];
    let mut c = Counters::default();
    c.distinct.read = 7_500_000; // 960 MB: a millisecond of the memory
    assert_eq!(Roof::met(card, &c), (Roof::Memory, 1e6));
    // 96 compute units of 2.5 GHz start 480 instructions a nanosecond.
    c.instructions[Class::Valu as usize] = 960_000_000;
    assert_eq!(Roof::met(card, &c), (Roof::Vector, 2e6));
    // 96 x 2.5 x 512 = 122,880 operations a nanosecond: 15 products of 8,192.
    c.instructions[Class::Wmma as usize] = 45_000_000;
    assert_eq!(Roof::met(card, &c), (Roof::Matrix, 3e6));
    (c.lds.cycles, c.lds.conflicts) = (480_000_000, 480_000_000);
    assert_eq!(Roof::met(card, &c), (Roof::Lds, 4e6));
}
