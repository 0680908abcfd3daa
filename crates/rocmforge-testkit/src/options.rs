//! Options of a lease.

use rocmforge_memory::Policy;
use rocmforge_runtime::PoolOptions;
use rocmforge_sim::SimConfig;
use std::time::Duration;

/// Wave instructions a test's launch may execute before it counts as endless: well beyond any kernel of a test, and about
/// twenty seconds of simulation.
const TEST_INSTRUCTIONS: u64 = 1_000_000_000;

/// What a lease is to be like.
#[derive(Clone)]
pub struct LeaseOptions {
    /// The machine to simulate, if the device is simulated.
    pub sim: SimConfig,
    /// How much of the card's memory the test may have.
    pub policy: Policy,
    /// How long any wait of the test may take.
    pub deadline: Duration,
    /// What the backend keeps of freed memory.
    pub pool: PoolOptions,
}

impl Default for LeaseOptions {
    /// One simulated gfx1100, the tests' policy, one minute, no pool.
    fn default() -> Self {
        Self {
            sim: SimConfig {
                instruction_budget: TEST_INSTRUCTIONS,
                ..SimConfig::default()
            },
            policy: Policy::tests(),
            deadline: Duration::from_secs(60),
            pool: PoolOptions::OFF,
        }
    }
}
