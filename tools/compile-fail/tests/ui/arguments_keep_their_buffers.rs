//! A buffer cannot go between building the arguments and the launch.

use rocmforge_runtime::{HipBuffer, HipResult, HipStream, LaunchArgs};

fn early(stream: &HipStream) -> HipResult<LaunchArgs<'static>> {
    let buffer = HipBuffer::from_slice(stream, &[1u32], "short-lived")?;
    Ok(LaunchArgs::new().buffer(&buffer))
}

fn main() {
    let _ = early;
}
