//! Rewrites a graph so that it does less work with the same results.
//!
//! [`Pass::ALL`] are the rewrites, in the order in which they run; all of them run again until none of them finds anything. Then those that are
//! fusions ([`Pass::is_fusion`]) make nodes that a backend has a kernel for one launch ([`Graph::launches`]); the nodes stay. Each has a bound ([`Pass::bound`]): the same bits, or sums in another order.
//!
//! Ids stay what they were: a removed tensor leaves a gap. Marked outputs are kept under their ids. Nodes with effects
//! ([`crate::Graph::has_effect`]) are left where they are, and no read of memory moves over an effect on it. A graph whose memory has been
//! planned is left as it is: its places are right for the order of its nodes only. So is one whose nodes are launches already.

mod add_norm;
mod attention;
mod bias;
mod cse;
mod dce;
mod dependency;
mod experts;
mod fold;
mod gate_up;
mod join;
mod last_rows;
mod latent;
mod layout;
mod noop;
mod norm_weight;
mod pass;
mod qkv;
mod rewrite;
mod rope_rows;
mod stats;

pub use cse::NodeSignature;
pub use dependency::DependencyInfo;
pub use fold::Constants;
pub(crate) use latent::{LatentRows, row_step};
pub use pass::{Bound, Pass, PassCounts};
pub use stats::OptimizerStats;

use crate::Graph;
use pass::Work;
use rewrite::Rewriter;

/// Most rounds. Every pass makes nodes fewer, fuses them into kinds that it does not look for, or moves a choice of rows towards the
/// graph's beginning, so rounds end by themselves; this is for graphs that are not valid.
const ROUNDS: usize = 64;

/// The bit of [`GraphOptimizer::joining`].
const JOINS: u32 = 1 << 31;

/// A choice of passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphOptimizer {
    /// A bit for each of [`Pass::ALL`], and [`JOINS`].
    passes: u32,
}

impl Default for GraphOptimizer {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphOptimizer {
    /// All passes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            passes: (1 << Pass::ALL.len()) - 1,
        }
    }

    /// No pass.
    #[must_use]
    pub const fn none() -> Self {
        Self { passes: 0 }
    }

    /// These and one more.
    #[must_use]
    pub const fn with(mut self, pass: Pass) -> Self {
        self.passes |= 1 << pass.index();
        self
    }

    /// These without one.
    #[must_use]
    pub const fn without(mut self, pass: Pass) -> Self {
        self.passes &= !(1 << pass.index());
        self
    }

    /// These, and launches are marked that a device runs with the one before ([`crate::Launch::is_joined`]).
    #[must_use]
    pub const fn joining(mut self) -> Self {
        self.passes |= JOINS;
        self
    }

    /// Those that make several nodes one launch.
    #[must_use]
    pub fn fusions() -> Self {
        let fusions = Pass::ALL.into_iter().filter(|pass| pass.is_fusion());
        fusions.fold(Self::none(), Self::with)
    }

    /// These without [`Self::fusions`].
    #[must_use]
    pub fn without_fusions(self) -> Self {
        Self {
            passes: self.passes & !Self::fusions().joining().passes,
        }
    }

    /// Whether a pass is among them.
    #[must_use]
    pub const fn has(&self, pass: Pass) -> bool {
        self.passes & (1 << pass.index()) != 0
    }

    /// Without dead code elimination.
    #[must_use]
    pub const fn without_dce(self) -> Self {
        self.without(Pass::DeadCode)
    }

    /// Without common subexpression elimination.
    #[must_use]
    pub const fn without_cse(self) -> Self {
        self.without(Pass::CommonSubexpressions)
    }

    /// Without the removal of views, reshapes and copies that change nothing.
    #[must_use]
    pub const fn without_noop_elimination(self) -> Self {
        self.without(Pass::NoOps)
    }

    /// Without changes of weight layouts.
    #[must_use]
    pub const fn without_layout_optimization(self) -> Self {
        self.without(Pass::Layout)
    }

    /// Runs the passes. No tensor's content is known, so nothing is folded.
    pub fn optimize(&self, graph: &mut Graph) -> OptimizerStats {
        self.optimize_with(graph, &mut Constants::new())
    }

    /// Runs the passes on a graph some of whose tensors are constants; what is folded is in `constants` then.
    pub fn optimize_with(&self, graph: &mut Graph, constants: &mut Constants) -> OptimizerStats {
        let mut stats = OptimizerStats::default();
        if graph.is_planned() || graph.is_fused() {
            return stats;
        }
        for _ in 0..ROUNDS {
            let mut changes = 0;
            for pass in Pass::ALL.into_iter().filter(|&pass| self.has(pass)) {
                if let Work::Rewrite(run) = pass.work() {
                    let count = run(graph, constants);
                    stats.add(pass, count);
                    changes += count;
                }
            }
            if changes == 0 {
                break;
            }
        }
        let mut rewriter = Rewriter::new(graph);
        for pass in Pass::ALL.into_iter().filter(|&pass| self.has(pass)) {
            if let Work::Fusion(find) = pass.work() {
                let before = rewriter.fused();
                find(graph, &mut rewriter);
                stats.add(pass, rewriter.fused() - before);
            }
        }
        let fused = rewriter.fused();
        let mut launches = rewriter.take_launches(graph);
        let joined = self.passes & JOINS != 0 && join::run(graph, &rewriter.uses, &mut launches) > 0;
        graph.set_launches((fused > 0 || joined).then_some(launches));
        stats
    }
}
