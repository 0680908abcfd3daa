//! Bytes from a device make no valid reference, string or bool.

use rocmforge_runtime::HipBuffer;

fn strings(_: HipBuffer<String>) {}

fn main() {
    let _ = strings;
}
