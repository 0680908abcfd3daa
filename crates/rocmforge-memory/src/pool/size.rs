//! Size classes: the size of the block that a request gets.

use crate::Bytes;
use crate::policy::GRANULE;
use std::ops::RangeInclusive;

/// The driver's page: it charges whole ones.
const PAGE: u64 = 4096;
/// Steps between a size and its double: 8 of them waste at most an eighth.
const STEPS: u64 = 8;

/// The size that is asked of the driver, so that requests of about the same size can share blocks: whole pages, an eighth
/// of the size rounded down to a power of two, whole granules of the driver from 16 MiB on.
pub(crate) fn rounded(bytes: Bytes) -> Bytes {
    let step = match bytes.0.checked_ilog2() {
        Some(log) => ((1 << log) / STEPS).clamp(PAGE, GRANULE),
        None => PAGE,
    };
    Bytes(bytes.0.checked_next_multiple_of(step).unwrap_or(bytes.0))
}

/// The capacities of idle blocks that serve a request: none that wastes more than an eighth, or than rounding would.
pub(crate) fn fitting(bytes: Bytes) -> RangeInclusive<u64> {
    let most = bytes.0.saturating_add(bytes.0 / STEPS);
    bytes.0..=most.max(rounded(bytes).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_wastes_at_most_an_eighth_or_a_page() {
        let around = (0..64).flat_map(|log| [-1i64, 0, 1].map(|d| (1u64 << log).saturating_add_signed(d)));
        for bytes in around.chain([3 << 20, 5 << 30, 1000, 12345, (16 << 20) + 1]) {
            let got = rounded(Bytes(bytes)).0;
            let waste = got - bytes;
            assert!(waste < PAGE || waste <= bytes / STEPS, "{bytes} gets {got}");
            assert!(waste < GRANULE, "{bytes} gets {got}");
            assert_eq!(rounded(Bytes(got)), Bytes(got), "rounding is done once");
            let fit = fitting(Bytes(bytes));
            assert!(fit.contains(&bytes) && fit.contains(&got));
            assert!(*fit.end() - bytes < PAGE.max(bytes / STEPS + 1));
        }
    }

    #[test]
    fn sizes_that_are_asked_for() {
        let mib = |n: u64| n << 20;
        for (bytes, size) in [
            (1, 4096),
            (4096, 4096),
            (4097, 8192),
            (mib(1), mib(1)),
            (mib(1) + 1, mib(1) + (128 << 10)),
            (mib(16), mib(16)),
            (mib(16) + 1, mib(18)),
            (mib(1000) + 1, mib(1002)),
            (u64::MAX, u64::MAX),
        ] {
            assert_eq!(rounded(Bytes(bytes)), Bytes(size), "{bytes}");
        }
    }
}
