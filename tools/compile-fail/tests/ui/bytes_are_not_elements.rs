//! A byte count where elements are expected made the first version four times too large.

use rocmforge_memory::Bytes;
use rocmforge_runtime::{HipBuffer, HipResult, HipStream};

fn sized(stream: &HipStream) -> HipResult<HipBuffer<f32>> {
    HipBuffer::zeroed(stream, Bytes(32), "buffer")
}

fn main() {
    let _ = sized;
}
