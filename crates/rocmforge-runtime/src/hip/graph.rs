//! Calls on graphs.

use super::{Driver, Graph, GraphExec, Stream};
use crate::error::{GraphError, HipResult};
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

/// [`hipGraphDestroy`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html). Executable graphs made
/// of it are copies.
pub(crate) fn destroy(driver: &Driver, graph: Graph) -> HipResult<()> {
    // SAFETY: live and this driver's (`raw`), and nobody has it from now on.
    driver.call("hipGraphDestroy", |api| unsafe {
        api.hipGraphDestroy(driver.raw(&graph))
    })
}

/// [`hipGraphInstantiate`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html), without a log.
pub(crate) fn instantiate(driver: &Driver, graph: &Graph) -> HipResult<GraphExec> {
    driver.make("hipGraphInstantiate", |api, raw| {
        // SAFETY: `raw` is a live out-pointer (`make`), the graph is live and this driver's (`raw`).
        unsafe { api.hipGraphInstantiate(raw, driver.raw(graph), null_mut(), null_mut(), 0) }
    })
}

/// [`hipGraphLaunch`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html).
///
/// # Safety
///
/// The executable graph and all that its operations name live until the replay is done.
pub(crate) unsafe fn launch(driver: &Driver, exec: &GraphExec, stream: &Stream) -> HipResult<()> {
    driver.call("hipGraphLaunch", |api| {
        // SAFETY: both are live and this driver's (`raw`); the rest is promised by the caller.
        unsafe { api.hipGraphLaunch(driver.raw(exec), driver.raw(stream)) }
    })
}

/// [`hipGraphExecUpdate`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html). The outer error:
/// the driver was not called. The inner one: some operations may have been updated.
///
/// # Safety
///
/// No replay of `exec` is under way.
pub(crate) unsafe fn update(driver: &Driver, exec: &mut GraphExec, graph: &Graph) -> HipResult<HipResult<()>> {
    let (mut node, mut result) = (null_mut(), hipGraphExecUpdateSuccess);
    let status = driver.status(|api| {
        // SAFETY: both are live and this driver's (`raw`), `exec` is idle as the caller promises; the out-pointers live for the
        // call.
        unsafe { api.hipGraphExecUpdate(driver.raw(exec), driver.raw(graph), &mut node, &mut result) }
    })?;
    if status == hipErrorGraphExecUpdateFailure {
        return Ok(Err(GraphError::Refused { result }.into()));
    }
    Ok(driver.check("hipGraphExecUpdate", status))
}

/// [`hipGraphExecDestroy`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___graph.html).
pub(crate) fn exec_destroy(driver: &Driver, exec: GraphExec) -> HipResult<()> {
    // SAFETY: live and this driver's (`raw`), and nobody has it from now on; no replay is under way: the callers of `launch`
    // promised that.
    driver.call("hipGraphExecDestroy", |api| unsafe {
        api.hipGraphExecDestroy(driver.raw(&exec))
    })
}
