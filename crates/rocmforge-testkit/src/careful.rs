//! Careful mode: the limits of a test on a card that drives a display.

use crate::options::LeaseOptions;
use rocmforge_memory::{Bytes, Cap, Policy};
use std::time::Duration;

pub use rocmforge_gpu_test::CAREFUL_VARIABLE;
/// The most memory that a careful test may hold; on a small card a quarter of it.
pub const CAREFUL_BYTES: Bytes = Bytes::gib(2);
/// The longest that a careful test waits for the card: a launch that takes longer counts as hung.
pub const CAREFUL_DEADLINE: Duration = Duration::from_secs(2);

impl LeaseOptions {
    /// These options, within the limits of a careful test: whatever the test asks for, it gets no more memory, no less
    /// headroom for the desktop and no longer waits.
    #[must_use]
    pub fn careful(self) -> Self {
        let cap = match self.policy.cap {
            Cap::Fixed(bytes) | Cap::Quarter(bytes) => bytes.min(CAREFUL_BYTES),
            _ => CAREFUL_BYTES,
        };
        Self {
            policy: Policy {
                cap: Cap::Quarter(cap),
                ..Policy::tests()
            },
            deadline: self.deadline.min(CAREFUL_DEADLINE),
            ..self
        }
    }
}

/// Whether careful mode is set for this process.
pub(crate) fn wanted() -> bool {
    std::env::var_os(CAREFUL_VARIABLE).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn careful(policy: Policy, deadline: u64) -> LeaseOptions {
        LeaseOptions {
            policy,
            deadline: Duration::from_secs(deadline),
            ..LeaseOptions::default()
        }
        .careful()
    }

    #[test]
    fn no_policy_and_no_deadline_gets_past_the_limits() {
        for policy in [
            Policy::tests(),
            Policy::desktop(),
            Policy::headless(),
            Policy::fixed(Bytes::gib(16)),
        ] {
            let options = careful(policy, 60);
            assert_eq!(options.policy, Policy::tests());
            assert_eq!(options.deadline, CAREFUL_DEADLINE);
        }
    }

    #[test]
    fn a_test_that_asks_for_less_gets_less() {
        let options = careful(Policy::fixed(Bytes::mib(64)), 1);
        assert_eq!(options.policy.cap, Cap::Quarter(Bytes::mib(64)));
        assert_eq!(options.deadline, Duration::from_secs(1));
    }
}
