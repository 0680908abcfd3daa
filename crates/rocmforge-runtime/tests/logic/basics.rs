//! Opening, copying, tensors.

use crate::fake::{Fake, backend, open};
use rocmforge_hip_sys::*;
use rocmforge_runtime::*;
use std::sync::Arc;

#[test]
fn a_copy_comes_back() {
    let (fake, backend) = backend();
    let stream = backend.stream();
    for len in [0, 1, 31, 32, 33, 1 << 18, (5 << 18) + 3, (9 << 18) + 1] {
        let data: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let buffer = HipBuffer::from_slice(stream, &data, "data").unwrap();
        assert_eq!(buffer.to_vec(stream).unwrap(), data, "{len} elements");
    }
    assert_eq!(fake.count("hipEventCreateWithFlags"), 0, "one stream needs no event");
    drop(backend);
    assert_eq!((fake.live_memory(), fake.live_pinned(), fake.live_handles()), (0, 0, 0));
    assert_eq!(fake.violations(), [""; 0]);
}
