//! The machines the programs run on.

use crate::program::Rng;
use rocmforge_amdgcn::Tools;
use rocmforge_memory::Bytes;
use rocmforge_sim::{CardConfig, Poison, Schedule, SimConfig};

/// The code objects: correct kernels, those with mistakes, and some for another card.
pub(crate) const IMAGES: [&[u8]; 3] = [
    include_bytes!("../kernels/steps-gfx1100.co"),
    include_bytes!("../kernels/mistakes-gfx1100.co"),
    include_bytes!("../kernels/probe-gfx1201.co"),
];

/// A machine drawn from a seed: any schedule, strict or not.
pub(crate) fn machine(seed: u64) -> SimConfig {
    let mut rng = Rng::new(seed.rotate_left(17));
    let own = rng.next();
    let schedule = match rng.below(6) {
        0 => Schedule::Lazy,
        1 => Schedule::Eager,
        2 => Schedule::Reverse,
        3 => Schedule::Pct { seed: own, depth: 3 },
        _ => Schedule::Random(own),
    };
    SimConfig {
        cards: vec![CardConfig::with_vram(Bytes(64 << 20))],
        seed: own,
        schedule,
        strict: rng.chance(50),
        // A host function that has run would count as seen by the host, which hides what is planted behind it.
        separate_threads: true,
        tools: Tools::all(),
        poison: [Poison::Nan, Poison::Stale, Poison::Zero][rng.below(3)],
        instruction_budget: 20_000,
        ..SimConfig::default()
    }
}
