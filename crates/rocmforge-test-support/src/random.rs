//! SplitMix64 (Steele, Lea and Flood 2014), the random numbers of tests: a seed gives the same ones on every machine.

/// The next number, and the state after it.
pub fn split_mix_64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A generator that starts with its seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and has other methods")]
    pub fn next(&mut self) -> u64 {
        split_mix_64(&mut self.0)
    }

    /// A number in `0..end`; 0 if there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// An index of `len` elements; 0 if there is none.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the authors' implementation for seed 0.
    #[test]
    fn numbers_are_those_of_the_paper() {
        let mut random = Random(0);
        let first = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!([random.next(), random.next(), random.next()], first);
        assert_eq!((random.below(0), random.index(1)), (0, 0));
    }
}
