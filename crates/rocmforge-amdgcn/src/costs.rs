//! Costs: what launches of a program's kernels took, and whether several host threads pay for the next one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// A launch that takes less is also tried on one thread, to compare.
const SHORT: Duration = Duration::from_millis(50);
/// Launches after which the slower way is tried again.
const AGAIN: u32 = 64;

/// What a workgroup of a kernel took.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// Instructions, in the last launch.
    instructions: u64,
    /// Seconds on one thread, and on several: the last launches count most. They decide only where a launch runs, never its result.
    one: Option<f64>,
    several: Option<f64>,
    launches: u32,
}

/// The costs of a program's kernels, by their ELF addresses.
#[derive(Default)]
pub(crate) struct Costs(Mutex<HashMap<u64, Cost>>);

impl Costs {
    /// Notes what a launch of `groups` workgroups has taken; `several`: it was tried on several threads.
    pub(crate) fn note(&self, kernel: u64, groups: u64, instructions: u64, time: Duration, several: bool) {
        let Ok(mut costs) = self.0.lock() else {
            return;
        };
        let cost = costs.entry(kernel).or_default();
        cost.instructions = instructions / groups.max(1);
        cost.launches = cost.launches.wrapping_add(1);
        let seconds = time.as_secs_f64() / groups.max(1) as f64;
        let known = if several { &mut cost.several } else { &mut cost.one };
        *known = Some(known.map_or(seconds, |known| 0.75 * known + 0.25 * seconds));
    }

    /// Instructions of a workgroup in the last launch of a kernel, if there was one.
    pub(crate) fn of_group(&self, kernel: u64) -> Option<u64> {
        self.of(kernel).map(|cost| cost.instructions)
    }

    /// Whether the next launch of a kernel is to run on several threads: where that is new, or was faster.
    pub(crate) fn several_pay(&self, kernel: u64, groups: u64) -> bool {
        let Some(cost) = self.of(kernel) else {
            return true;
        };
        match (cost.one, cost.several) {
            (_, None) => true,
            (None, Some(several)) => several * groups as f64 >= SHORT.as_secs_f64(),
            (Some(one), Some(several)) => (several < one) != (cost.launches % AGAIN == 0),
        }
    }

    fn of(&self, kernel: u64) -> Option<Cost> {
        self.0.lock().ok().and_then(|costs| costs.get(&kernel).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::{AGAIN, Costs};
    use std::time::Duration;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_faster_way_is_taken_once_both_are_known() {
        let costs = Costs::default();
        assert!(costs.several_pay(1, 8), "a new kernel");
        costs.note(1, 8, 800, MS(4), true);
        assert_eq!(costs.of_group(1), Some(100));
        assert!(!costs.several_pay(1, 8), "short: one thread is tried as well");
        costs.note(1, 8, 800, MS(2), false);
        assert!(!costs.several_pay(1, 8), "one thread was faster");
        costs.note(2, 8, 800, MS(2), true);
        costs.note(2, 8, 800, MS(4), false);
        assert!(costs.several_pay(2, 8), "several threads were faster");
    }

    #[test]
    fn a_long_launch_stays_on_several_threads() {
        let costs = Costs::default();
        costs.note(1, 8, 800, MS(100), true);
        assert!(costs.several_pay(1, 8));
        assert!(!costs.several_pay(1, 1), "a launch of fewer workgroups is short");
    }

    #[test]
    fn the_slower_way_is_tried_again() {
        let costs = Costs::default();
        costs.note(1, 1, 1, MS(2), true);
        for _ in 1..AGAIN {
            assert!(!costs.several_pay(1, 1));
            costs.note(1, 1, 1, MS(1), false);
        }
        assert!(costs.several_pay(1, 1));
    }
}
