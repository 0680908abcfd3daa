//! Seeded test data.

/// A small seeded generator (splitmix64, Steele, Lea and Flood 2014): the same seed gives the same data on every machine.
#[derive(Clone, Debug)]
pub struct Rng {
    seed: u64,
    numbers: rocmforge_sim::Rng,
    quiet: bool,
}

/// A generator that prints its seed if the test panics while it lives. `ROCMFORGE_SEED` overrides the seed.
pub fn rng(seed: u64) -> Rng {
    let set = std::env::var("ROCMFORGE_SEED").ok();
    let seed = set.and_then(|text| text.parse().ok()).unwrap_or(seed);
    Rng {
        seed,
        numbers: rocmforge_sim::Rng::new(seed),
        quiet: false,
    }
}

impl Rng {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.numbers.next()
    }

    /// A number in `0..bound`.
    ///
    /// # Panics
    ///
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "nothing is below 0");
        (self.next_u64() % bound as u64) as usize
    }

    /// A number in `[low, high)`, with 24 random bits.
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.next_u64() >> 40) as f32 / (1u32 << 24) as f32)
    }

    /// `n` numbers in `[-1, 1)`.
    pub fn vec(&mut self, n: usize) -> Vec<f32> {
        self.vec_in(n, -1.0, 1.0)
    }

    /// `n` numbers in `[low, high)`.
    pub fn vec_in(&mut self, n: usize, low: f32, high: f32) -> Vec<f32> {
        (0..n).map(|_| self.uniform(low, high)).collect()
    }

    /// Does not print the seed on a panic.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }
}

impl Drop for Rng {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.quiet {
            #[allow(clippy::print_stderr)] // a failing test must say how to repeat it
            {
                eprintln!("random data: seed {} (repeat with ROCMFORGE_SEED={0})", self.seed);
            }
        }
    }
}

/// Widens to f64, for references.
pub fn widen(data: &[f32]) -> Vec<f64> {
    data.iter().map(|&x| f64::from(x)).collect()
}

/// A NaN with a payload that no computation gives: fill outputs with it before a launch, so that an unwritten element shows.
pub const POISON: f32 = f32::from_bits(0x7fc0_dead);

/// `n` poisoned elements.
pub fn poison(n: usize) -> Vec<f32> {
    vec![POISON; n]
}
