//! Launches: geometry and arguments are checked before anything is enqueued.

mod args;
mod geometry;

pub use args::LaunchArgs;
pub use geometry::{LaunchConfig, validate_launch_config};

use crate::error::HipResult;
use crate::hip;
use crate::launch_log::LaunchRecord;
use crate::module::HipKernel;
use crate::stream::HipStream;
use crate::touched::Work;

impl HipStream {
    /// Enqueues a kernel, after everything its buffers have to wait for.
    ///
    /// Geometry and arguments are compared with the kernel's own metadata first; on an error nothing was enqueued.
    ///
    /// # Safety
    ///
    /// What the metadata does not say must hold: the kernel stays inside of the buffers for these values; buffers it
    /// writes are given with [`LaunchArgs::out`]; element types and the meaning of the values are the kernel's. The safe
    /// launchers of `rocmforge-kernels` check that for each kernel.
    pub unsafe fn launch(&self, kernel: &HipKernel, config: LaunchConfig, mut args: LaunchArgs<'_>) -> HipResult<()> {
        let core = self.core();
        core.driver.enter()?;
        core.same_backend(kernel.core(), || format!("kernel {:?}", kernel.name()))?;
        let meta = kernel.meta();
        geometry::check_geometry(meta, &config, &core.device.limits).map_err(|error| error.of(kernel.name()))?;
        args.check(meta).map_err(|error| error.of(kernel.name()))?;
        core.make_way()?;

        let mut params = args.addresses();
        let function = kernel.handle();
        let size = (config.grid, config.block, config.dynamic_lds);
        let launched = self.submit(Work::Kernel(kernel), &mut args.touches, |driver, stream| {
            // SAFETY: the function's module is kept by `kernel`, and after it by the launch that is noted below; each of
            // `params` points at as many bytes as the kernel declares (`check`); the rest is promised by our caller.
            unsafe { hip::module::launch(driver, function, size, stream, &mut params) }
        })?;
        core.launches.note(LaunchRecord {
            what: kernel.shared_name(),
            stream: self.id(),
            cursor: launched,
            grid: config.grid,
            block: config.block,
        });
        if let Some(cursor) = launched {
            kernel.note_launch(self.shared(), cursor);
        }
        Ok(())
    }
}
