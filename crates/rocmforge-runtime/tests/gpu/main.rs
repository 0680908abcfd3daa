//! The runtime on a device: the simulated card in plain `cargo test`, whichever `cargo xtask test-gpu` names otherwise.

use rocmforge_kernels::Pack;
use rocmforge_runtime::*;
use std::sync::Arc;

mod errors;
mod graphs;
mod kernels;
mod memory;
mod synchronize;

/// The pack's `scale(const float* x, float* y, u64 n, float factor)`: y = x * factor.
fn scale(backend: &Arc<HipBackend>) -> HipModule {
    let arch = &backend.device().arch;
    let pack = Pack::for_processor(arch).unwrap_or_else(|| panic!("no pack for {arch}"));
    let object = pack
        .object("elementwise")
        .expect("a readable pack")
        .expect("the pack has it");
    backend.load_module(&object, "scale").expect("it loads")
}

/// y = x * factor, on `stream`.
fn launch_scale(
    stream: &HipStream,
    kernel: &HipKernel,
    x: &HipBuffer<f32>,
    y: &HipBuffer<f32>,
    factor: f32,
) -> HipResult<()> {
    assert_eq!(x.len(), y.len());
    /// Each of the 256 threads of a block does 4 elements.
    const PER_BLOCK: u32 = 1024;
    let blocks = safe_grid_dim(x.len() as u64, PER_BLOCK).expect("a small grid");
    let args = LaunchArgs::new().buffer(x).out(y).value(x.len() as u64).value(factor);
    // SAFETY: both buffers have the `n` elements that its argument names.
    unsafe { stream.launch(kernel, LaunchConfig::linear(blocks, 256), args) }
}
