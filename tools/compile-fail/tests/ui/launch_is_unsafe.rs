//! The metadata says how large an argument is, not what the kernel does with it.

use rocmforge_runtime::{HipKernel, HipResult, HipStream, LaunchArgs, LaunchConfig};

fn run(stream: &HipStream, kernel: &HipKernel) -> HipResult<()> {
    stream.launch(kernel, LaunchConfig::linear(1, 32), LaunchArgs::new())
}

fn main() {
    let _ = run;
}
