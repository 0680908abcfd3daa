//! Spare waves: those of launches that have ended, which each host thread keeps for its next one. A wave has 33 KiB of registers; to
//! allocate them takes longer than a short launch.

use crate::calls::Calls;
use crate::exec::number::mode::Mode;
use crate::exec::state::absence::NOWHERE;
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
    // A program may launch while its thread ends, after the spare waves have gone: then nothing is kept.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        for mut wave in waves {
            spare.extend(wave.high.take());
            spare.push(wave);
        }
        spare.truncate(MOST);
    });
}

/// The lanes of a wave from one on.
fn half(index: u32, size: u32, lanes: u32, first_lane: u32) -> Box<Wave> {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
    let mut wave = spare.ok().flatten().unwrap_or_else(|| Box::new(Wave::EMPTY));
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
        calls: Calls::NONE,
        last: 0,
        absent: Vec::new(),
        barriers: 0,
        last_write: NOWHERE,
        allocation: None,
    };
}

#[cfg(test)]
mod tests {
    use super::{fresh, keep};
    use crate::fault::POISON;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_kept_wave_is_as_a_new_one() {
        let mut wave = fresh(3, 200, 64);
        wave.v[7].0[5] = 1;
        (wave.s[9], wave.last, wave.ran) = (1, 1, 1);
        wave.high.as_mut().expect("64 lanes").v[7].0[5] = 1;
        keep(vec![wave]);
        for lanes in [64, 32] {
            let wave = fresh(3, 200, lanes);
            assert!(wave.v.iter().all(|register| register.0 == [POISON; 32]));
            assert!(wave.s.iter().all(|&register| register == POISON));
            assert_eq!((wave.last, wave.ran, wave.index), (0, 0, 3));
            assert_eq!((wave.slot, wave.high.is_some()), (3 * lanes, lanes == 64));
            let live = 200u32.saturating_sub(wave.slot).min(32);
            assert_eq!(wave.live.count_ones(), live);
        }
    }

    static LAUNCHED: AtomicBool = AtomicBool::new(false);

    /// Uses waves when its thread ends.
    struct AtEnd;

    impl Drop for AtEnd {
        fn drop(&mut self) {
            keep(vec![fresh(0, 32, 32)]);
            LAUNCHED.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_thread_may_launch_while_it_ends() {
        thread_local!(static AT_END: AtEnd = const { AtEnd });
        let launches = || {
            // Goes after the spare waves, which are used later for the first time.
            AT_END.with(|_| {});
            keep(vec![fresh(0, 32, 32)]);
        };
        std::thread::spawn(launches).join().expect("no panic");
        assert!(LAUNCHED.load(Ordering::Relaxed));
    }
}
