//! Bytes from a device make no valid reference, string or bool.

use rocmforge_runtime::{HipBuffer, HipResult, HipStream};

fn strings(stream: &HipStream) -> HipResult<HipBuffer<String>> {
    HipBuffer::from_slice(stream, &[String::new()], "strings")
}

fn main() {
    let _ = strings;
}
