//! Graphs, and graphs ready to be replayed.

use crate::capturing::record::Record;
use crate::core::Core;
use crate::core::deferred::Resource;
use crate::core::stream_shared::Use;
use crate::error::{GraphError, HipResult};
use crate::hip;
use crate::launch_log::LaunchRecord;
use crate::stream::HipStream;
use crate::touched::{ExecShared, Touched, Work};
use parking_lot::Mutex;
use rocmforge_memory::{Access, HandleKind, HandleToken, Site};
use std::sync::Arc;

/// A captured graph. Made by [`Capture::finish`](crate::Capture::finish).
pub struct HipGraph {
    core: Arc<Core>,
    raw: hip::Graph,
    label: String,
    record: Arc<Record>,
    token: Option<HandleToken>,
}

impl HipGraph {
    pub(super) fn new(core: &Arc<Core>, graph: hip::Graph, record: Record, label: &str, site: Site) -> Self {
        let token = core.card.ledger().track(HandleKind::Graph, label, site);
        Self {
            core: Arc::clone(core),
            raw: graph,
            label: label.to_owned(),
            record: Arc::new(record),
            token: Some(token),
        }
    }

    /// Its label.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Operations in it; waits and records of events are none.
    pub fn len(&self) -> usize {
        self.record.nodes.len()
    }

    /// Whether it has no operation.
    pub fn is_empty(&self) -> bool {
        self.record.nodes.is_empty()
    }

    /// Makes it ready to be replayed. What comes out is independent of the graph, and owns what it names as well.
    #[track_caller]
    pub fn instantiate(&self) -> HipResult<HipGraphExec> {
        let (core, site) = (&self.core, Site::caller());
        core.driver.enter()?;
        let raw = hip::graph::instantiate(&core.driver, &self.raw)?;
        let token = core.card.ledger().track(HandleKind::Graph, &self.label, site);
        Ok(HipGraphExec {
            shared: ExecShared {
                id: hip::unique_id(),
                core: Arc::clone(core),
                label: self.label.clone(),
                uses: Mutex::default(),
            },
            raw,
            record: Arc::clone(&self.record),
            broken: false,
            token: Some(token),
        })
    }
}

impl Drop for HipGraph {
    fn drop(&mut self) {
        if let Err(error) = hip::graph::destroy(&self.core.driver, self.raw.take()) {
            self.core.driver.abandon(self.token.take(), error);
        }
    }
}

debug_fields!(HipGraph, |graph| label: graph.label, operations: graph.len());

/// A graph ready to be replayed.
///
/// It owns every buffer, kernel and pinned memory its operations name: all of them may be dropped, in any order. Dropped
/// itself while a replay is under way, the driver keeps it and they live until the replay is done.
pub struct HipGraphExec {
    shared: ExecShared,
    raw: hip::GraphExec,
    record: Arc<Record>,
    /// An update failed half-way.
    broken: bool,
    token: Option<HandleToken>,
}

impl HipGraphExec {
    /// Its label.
    pub fn label(&self) -> &str {
        &self.shared.label
    }

    /// Replays the graph on `stream`, after everything its operations have to wait for: a replay uses all that they name,
    /// as one operation of the stream. Two replays of one executable graph come one after the other.
    pub fn launch(&self, stream: &HipStream) -> HipResult<()> {
        self.shared.core.driver.enter()?;
        if self.broken {
            return Err(GraphError::Broken.into());
        }
        self.shared.core.card.check_launch()?;
        let own = (Touched::Exec(&self.shared), Access::Write);
        let mut touches: Vec<(Touched<'_>, Access)> = self.record.kept.touches().chain([own]).collect();
        let launched = stream.submit(Work::Replay, &mut touches, |driver, stream| {
            // SAFETY: `drop` gives the executable graph back when its replays are done. What its operations name lives:
            // `self` holds it, and after that its own tracked use does.
            unsafe { hip::graph::launch(driver, &self.raw, stream) }
        })?;
        self.shared.core.launches.note(LaunchRecord {
            what: format!("graph {:?}", self.shared.label).into(),
            stream: stream.id(),
            cursor: launched,
            grid: [0; 3],
            block: [0; 3],
        });
        if let Some(cursor) = launched {
            for kernel in &self.record.kept.kernels {
                kernel.note_launch(stream.shared(), cursor);
            }
        }
        Ok(())
    }

    /// Makes it do what `graph` does, from the next replay on: the same operations on other buffers, with other values
    /// and sizes. Waits, at most until the backend's deadline, for its replays under way.
    ///
    /// # Errors
    ///
    /// [`GraphError::Topology`] if the operations are not the same; nothing has changed then. If the driver refuses, this
    /// executable graph is unusable afterwards.
    pub fn update(&mut self, graph: &HipGraph) -> HipResult<()> {
        let core = &self.shared.core;
        core.driver.enter()?;
        core.same_backend(&graph.core, || format!("graph {:?}", graph.label))?;
        if self.broken {
            return Err(GraphError::Broken.into());
        }
        same_topology(&self.record, &graph.record)?;
        let pending: Vec<Use> = self.shared.uses.lock().pending().cloned().collect();
        for last in pending {
            last.stream.wait(last.cursor)?;
        }
        // SAFETY: no replay is under way (just waited for), and `self` is borrowed mutably.
        let updated = unsafe { hip::graph::update(&core.driver, &mut self.raw, &graph.raw) }?;
        match updated {
            Ok(()) => self.record = Arc::clone(&graph.record),
            // Some of its operations may have been updated.
            Err(_) => self.broken = true,
        }
        updated
    }
}

impl Drop for HipGraphExec {
    fn drop(&mut self) {
        let uses = std::mem::take(self.shared.uses.get_mut());
        let graph = Resource::Graph {
            raw: self.raw.take(),
            token: self.token.take(),
        };
        self.shared.core.deferred.release(graph, uses);
    }
}

debug_fields!(HipGraphExec, |exec| label: exec.shared.label, operations: exec.record.nodes.len());

/// Whether the operations of both, and what each comes after, are the same.
fn same_topology(old: &Record, new: &Record) -> HipResult<()> {
    let describe = |record: &Record, node: usize| match record.nodes.get(node) {
        Some(found) if found.after.is_empty() => format!("{} after nothing", found.kind),
        Some(found) => format!("{} after {:?}", found.kind, found.after),
        None => "not there".to_owned(),
    };
    let same = |node: &usize| match (old.nodes.get(*node), new.nodes.get(*node)) {
        (Some(old), Some(new)) => old.kind == new.kind && old.after == new.after,
        _ => false,
    };
    let all = 0..old.nodes.len().max(new.nodes.len());
    match all.into_iter().find(|node| !same(node)) {
        None => Ok(()),
        Some(node) => Err(GraphError::Topology {
            node,
            was: describe(old, node),
            is: describe(new, node),
        }
        .into()),
    }
}
