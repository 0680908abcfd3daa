//! Calls on graphs.

use super::{Driver, Graph, GraphExec, Stream};
use crate::error::{GraphError, HipResult};
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

/// [`hipGraphDestroy`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html). Executable graphs made
/// of it are copies.
///
/// # Safety
///
/// The graph is live, and nobody uses it from now on.
pub(crate) unsafe fn destroy(driver: &Driver, graph: Graph) -> HipResult<()> {
    // SAFETY: live, as the caller promises.
    driver.call("hipGraphDestroy", |api| unsafe { api.hipGraphDestroy(graph.0) })
}

/// [`hipGraphInstantiate`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html), without a log.
///
/// # Safety
///
/// The graph is live.
pub(crate) unsafe fn instantiate(driver: &Driver, graph: Graph) -> HipResult<GraphExec> {
    driver.make("hipGraphInstantiate", |api, raw| {
        // SAFETY: `raw` is a live out-pointer (`make`), the graph is live as the caller promises.
        unsafe { api.hipGraphInstantiate(raw, graph.0, null_mut(), null_mut(), 0) }
    })
}

/// [`hipGraphLaunch`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html).
///
/// # Safety
///
/// The stream is live; the executable graph and all that its operations name are so until the replay is done.
pub(crate) unsafe fn launch(driver: &Driver, exec: GraphExec, stream: Stream) -> HipResult<()> {
    // SAFETY: live, as the caller promises.
    driver.call("hipGraphLaunch", |api| unsafe { api.hipGraphLaunch(exec.0, stream.0) })
}

/// [`hipGraphExecUpdate`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html). The outer error:
/// the driver was not called. The inner one: some operations may have been updated.
///
/// # Safety
///
/// Both are live, and no replay of `exec` is under way.
pub(crate) unsafe fn update(driver: &Driver, exec: GraphExec, graph: Graph) -> HipResult<HipResult<()>> {
    let (mut node, mut result) = (null_mut(), hipGraphExecUpdateSuccess);
    // SAFETY: both are live, as the caller promises; the out-pointers live for the call.
    let status = driver.status(|api| unsafe { api.hipGraphExecUpdate(exec.0, graph.0, &mut node, &mut result) })?;
    if status == hipErrorGraphExecUpdateFailure {
        return Ok(Err(GraphError::Refused { result }.into()));
    }
    Ok(driver.check("hipGraphExecUpdate", status))
}

/// [`hipGraphExecDestroy`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html).
///
/// # Safety
///
/// The executable graph is live, nobody uses it from now on, and no replay is under way.
pub(crate) unsafe fn exec_destroy(driver: &Driver, exec: GraphExec) -> HipResult<()> {
    // SAFETY: live, as the caller promises.
    driver.call("hipGraphExecDestroy", |api| unsafe { api.hipGraphExecDestroy(exec.0) })
}
