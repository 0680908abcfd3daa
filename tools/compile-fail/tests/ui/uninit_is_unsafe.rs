//! Memory nobody has written is another program's data.

use rocmforge_runtime::{Elems, HipBuffer, HipResult, HipStream};

fn garbage(stream: &HipStream) -> HipResult<HipBuffer<f32>> {
    HipBuffer::<f32>::uninit(stream, Elems(8), "garbage")
}

fn main() {
    let _ = garbage;
}
