//! Statistics of a run of the optimizer.

use std::fmt;

use super::{Pass, PassCounts};

/// What the passes did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptimizerStats {
    /// Views, reshapes and copies that changed nothing.
    pub noops_removed: usize,
    /// Nodes that no output needs.
    pub dce_nodes_removed: usize,
    /// Nodes that computed what another node computes.
    pub cse_nodes_removed: usize,
    /// Weights whose layout was changed.
    pub layout_conversions_added: usize,
    /// Rewrites of every pass, those above among them.
    pub counts: PassCounts,
}

impl OptimizerStats {
    /// Nodes removed as no-ops, dead code or common subexpressions.
    #[must_use]
    pub const fn total_removed(&self) -> usize {
        self.noops_removed + self.dce_nodes_removed + self.cse_nodes_removed
    }

    /// Whether nothing was changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total_removed() == 0 && self.layout_conversions_added == 0 && self.counts.total() == 0
    }

    pub(super) fn add(&mut self, pass: Pass, count: usize) {
        self.counts.add(pass, count);
        match pass {
            Pass::NoOps => self.noops_removed += count,
            Pass::DeadCode => self.dce_nodes_removed += count,
            Pass::CommonSubexpressions => self.cse_nodes_removed += count,
            Pass::Layout => self.layout_conversions_added += count,
            _ => {}
        }
    }
}

impl fmt::Display for OptimizerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} noops, {} DCE, {} CSE, {} layout ({} total)",
            self.noops_removed,
            self.dce_nodes_removed,
            self.cse_nodes_removed,
            self.layout_conversions_added,
            self.total_removed()
        )?;
        let has_field = |pass: &Pass| {
            matches!(
                pass,
                Pass::NoOps | Pass::DeadCode | Pass::CommonSubexpressions | Pass::Layout
            )
        };
        let others = Pass::ALL.into_iter().filter(|pass| !has_field(pass));
        for pass in others.filter(|&pass| self.counts.of(pass) > 0) {
            write!(f, ", {} {}", self.counts.of(pass), pass.name())?;
        }
        Ok(())
    }
}
