//! Spare waves: those of launches that have ended, which each host thread keeps for its next one. A wave has 33 KiB of registers; to
//! allocate them takes longer than a short launch.

use crate::exec::number::mode::Mode;
use crate::exec::state::wave::{Lanes, Wave, WaveState};
use crate::fault::POISON;
use std::cell::RefCell;

/// Waves that a thread keeps: those of the largest workgroup.
const MOST: usize = 32;

thread_local! {
    static SPARE: RefCell<Vec<Box<Wave>>> = const { RefCell::new(Vec::new()) };
}

/// A wave with poisoned registers; every workgroup of a launch reuses it, so that registers are stale as on a card. `size`: work-items of
/// the workgroup; `lanes`: those of a wave.
pub(super) fn fresh(index: u32, size: u32, lanes: u32) -> Box<Wave> {
    let mut wave = half(index, size, lanes, 0);
    if lanes > 32 {
        wave.high = Some(half(index, size, lanes, 32));
    }
    wave
}

/// Keeps waves that are no longer needed.
pub(super) fn keep(waves: Vec<Box<Wave>>) {
    SPARE.with_borrow_mut(|spare| {
        for mut wave in waves {
            spare.extend(wave.high.take());
            spare.push(wave);
        }
        spare.truncate(MOST);
    });
}

/// The lanes of a wave from one on.
fn half(index: u32, size: u32, lanes: u32, first_lane: u32) -> Box<Wave> {
    let spare = SPARE.with_borrow_mut(Vec::pop);
    let mut wave = spare.unwrap_or_else(|| Box::new(Wave::EMPTY));
    let slot = index * lanes + first_lane;
    let live = size.saturating_sub(slot).min(32);
    *wave = Wave::EMPTY;
    wave.live = if live == 32 { u32::MAX } else { (1 << live) - 1 };
    wave.index = index;
    wave.first_lane = first_lane;
    wave.slot = slot;
    wave
}

impl Wave {
    /// No lanes, and registers that nobody has set.
    const EMPTY: Self = Self {
        v: [Lanes([POISON; 32]); 256],
        tmp: Lanes([0; 32]),
        s: [POISON; 128],
        scc: 0,
        mode: Mode::DEFAULT,
        clock: 0,
        looks: 0,
        ran: 0,
        until: 0,
        left: 0,
        next: 0,
        saved_exec: 0,
        live: 0,
        index: 0,
        first_lane: 0,
        slot: 0,
        high: None,
        state: WaveState::Ready,
        signals: 0,
        gws: None,
        last: 0,
    };
}
