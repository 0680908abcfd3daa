//! Order of the workgroups of a launch: a permutation that needs no table.

/// Which workgroup runs in which place. HIP promises no order, so that every one is legal.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupOrder {
    groups: u64,
    /// The workgroup that runs first, and the distance to the next; it has no factor in common with `groups`.
    first: u64,
    stride: u64,
}

/// SplitMix64's mixing step.
fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

fn common_factor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl GroupOrder {
    /// The order of a seed; 0 is the order of their numbers.
    pub(super) fn new(seed: u64, groups: u64) -> Self {
        let groups = groups.max(1);
        if seed == 0 {
            return Self {
                groups,
                first: 0,
                stride: 1,
            };
        }
        let mut stride = mix(seed ^ 0x5851_F42D_4C95_7F2D) % groups;
        // Of `groups` numbers in a row one at least fits, most often one of the next few.
        while common_factor(stride.max(1), groups) != 1 || stride == 0 {
            stride = (stride + 1) % groups.max(2);
        }
        Self {
            groups,
            first: mix(seed) % groups,
            stride,
        }
    }

    /// The workgroup that runs in a place.
    pub(super) fn at(&self, place: u64) -> u64 {
        let at = u128::from(self.first) + u128::from(place) * u128::from(self.stride);
        (at % u128::from(self.groups)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::GroupOrder;
    use std::collections::BTreeSet;

    #[test]
    fn every_workgroup_runs_once() {
        for groups in (1..70).chain([255, 256, 1000]) {
            for seed in 0..20 {
                let order = GroupOrder::new(seed, groups);
                let all: BTreeSet<u64> = (0..groups).map(|place| order.at(place)).collect();
                assert_eq!(all, (0..groups).collect(), "{groups} groups, seed {seed}");
            }
        }
        let order = GroupOrder::new(7, u64::MAX);
        assert_ne!(order.at(u64::MAX - 1), order.at(u64::MAX - 2));
    }

    #[test]
    fn seeds_give_different_orders() {
        let order = |seed| {
            (0..16)
                .map(|place| GroupOrder::new(seed, 16).at(place))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(0), (0..16).collect::<Vec<_>>());
        let orders: BTreeSet<_> = (0..100).map(order).collect();
        assert!(orders.len() > 50, "{}", orders.len());
    }
}
