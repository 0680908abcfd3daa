//! Costs: what launches of a program's kernels took, and whether several host threads pay for the next one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// Seconds that a launch has to take for each thread. Below, waking a thread and putting its writes together takes longer than the
/// launch: measured with the kernels of `benches/interpreter.rs`.
const WORTH: f64 = 50e-6;
/// Waves that take so long, of a kernel that is new.
const WAVES: u64 = 1 << 6;
/// A launch that takes less is also tried on one thread, to compare.
const SHORT: f64 = 0.05;
/// Launches of each way before the two are compared: the first ones on several threads also touch memory for the first time.
const TRIES: u32 = 3;
/// Launches after which the slower way is tried again, [`TRIES`] times: in the first of them the threads sleep and the caches are cold.
const AGAIN: u32 = 64;

/// What a workgroup of a kernel took. That decides only where a launch runs, never its result.
#[derive(Clone, Copy, Default)]
struct Cost {
    one: Time,
    several: Time,
}

/// Seconds of a workgroup in the fastest launch; those of long ago count less.
#[derive(Clone, Copy, Default)]
struct Time {
    launches: u32,
    seconds: f64,
}

impl Time {
    fn note(&mut self, seconds: f64) {
        let first = self.launches == 0;
        self.seconds = if first {
            seconds
        } else {
            seconds.min(1.05 * self.seconds)
        };
        self.launches = self.launches.saturating_add(1);
    }
}

/// The costs of a program's kernels, by their ELF addresses.
#[derive(Default)]
pub(crate) struct Costs(Mutex<HashMap<u64, Cost>>);

impl Costs {
    /// Notes what a launch of `groups` workgroups has taken; `several`: it was tried on several threads.
    pub(crate) fn note(&self, kernel: u64, groups: u64, time: Duration, several: bool) {
        let Ok(mut costs) = self.0.lock() else {
            return;
        };
        let cost = costs.entry(kernel).or_default();
        let way = if several { &mut cost.several } else { &mut cost.one };
        way.note(time.as_secs_f64() / groups.max(1) as f64);
    }

    /// Threads that the next launch of a kernel is worth, which has `groups` workgroups of `waves` waves in all.
    pub(crate) fn threads(&self, kernel: u64, groups: u64, waves: u64) -> u64 {
        let cost = self.of(kernel);
        if !cost.several_pay(groups) {
            return 1;
        }
        worth(cost.expected(groups), waves)
    }

    fn of(&self, kernel: u64) -> Cost {
        let costs = self.0.lock().ok();
        costs.and_then(|costs| costs.get(&kernel).copied()).unwrap_or_default()
    }
}

impl Cost {
    /// Seconds that a launch of `groups` workgroups is going to take, if there was one of the kernel.
    fn expected(self, groups: u64) -> Option<f64> {
        let known = [self.one, self.several].into_iter().filter(|time| time.launches > 0);
        known.map(|time| time.seconds * groups as f64).reduce(f64::min)
    }

    /// Whether the next launch is to run on several threads: where that is new, or was faster.
    fn several_pay(self, groups: u64) -> bool {
        let Self { one, several } = self;
        if several.launches < TRIES {
            return true;
        }
        if one.launches < TRIES {
            return several.seconds * groups as f64 >= SHORT;
        }
        let launches = one.launches.saturating_add(several.launches);
        let again = launches % AGAIN < TRIES;
        (several.seconds < one.seconds) != again
    }
}

/// Threads that a launch of so many waves is worth. `expected`: the seconds that it is going to take, if that is known.
fn worth(expected: Option<f64>, waves: u64) -> u64 {
    match expected {
        Some(seconds) => (seconds / WORTH) as u64,
        None => waves / WAVES,
    }
}

#[cfg(test)]
mod tests {
    use super::{AGAIN, Costs, TRIES, worth};
    use std::time::Duration;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Launches of 8 workgroups until both ways are known.
    fn known(one: u64, several: u64) -> Costs {
        let costs = Costs::default();
        for _ in 0..TRIES {
            assert!(costs.of(1).several_pay(8), "several threads are tried first");
            costs.note(1, 8, MS(several), true);
        }
        for _ in 0..TRIES {
            assert!(!costs.of(1).several_pay(8), "short: one thread is tried as well");
            costs.note(1, 8, MS(one), false);
        }
        let seconds = one.min(several) as f64 / 1000.0;
        assert_eq!(costs.of(1).expected(4), Some(seconds / 8.0 * 4.0));
        assert_eq!(costs.of(2).expected(4), None);
        costs
    }

    #[test]
    fn the_faster_way_is_taken_once_both_are_known() {
        assert!(!known(2, 4).of(1).several_pay(8), "one thread was faster");
        assert!(known(4, 2).of(1).several_pay(8), "several threads were faster");
    }

    #[test]
    fn a_slow_first_launch_is_forgotten() {
        let costs = Costs::default();
        costs.note(1, 8, MS(40), true);
        (0..TRIES).for_each(|_| costs.note(1, 8, MS(2), true));
        (0..TRIES).for_each(|_| costs.note(1, 8, MS(3), false));
        assert!(costs.of(1).several_pay(8));
    }

    #[test]
    fn a_long_launch_stays_on_several_threads() {
        let costs = Costs::default();
        (0..TRIES).for_each(|_| costs.note(1, 8, MS(100), true));
        assert!(costs.of(1).several_pay(8));
        assert!(!costs.of(1).several_pay(1), "a launch of fewer workgroups is short");
    }

    #[test]
    fn the_slower_way_is_tried_again() {
        let costs = known(1, 2);
        let mut tried = Vec::new();
        for launch in 2 * TRIES..4 * AGAIN {
            let several = costs.of(1).several_pay(8);
            costs.note(1, 8, if several { MS(2) } else { MS(1) }, several);
            if several {
                tried.push(launch);
            }
        }
        let runs = [1, 2, 3].map(|run| (0..TRIES).map(move |launch| run * AGAIN + launch));
        assert_eq!(tried, runs.into_iter().flatten().collect::<Vec<_>>());
    }

    #[test]
    fn a_launch_that_is_known_to_be_short_is_worth_one_thread() {
        assert_eq!(worth(Some(99e-6), 1 << 20), 1);
        assert_eq!(worth(Some(101e-6), 1), 2);
        assert_eq!(worth(Some(1e300), 1), u64::MAX);
    }

    #[test]
    fn a_new_kernel_is_judged_by_its_waves() {
        assert_eq!(worth(None, 8), 0);
        assert_eq!(worth(None, 128), 2);
    }
}
