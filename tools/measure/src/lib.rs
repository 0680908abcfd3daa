//! Measurements and checks of real cards beside other people's tools, under the card's lock.
//!
//! * [`mod@bench`]: our kernels beside PyTorch's;
//! * [`compute_sanitizer`]: NVIDIA's sanitizer over our kernels' tests, and beside our own sanitizer.

pub mod bench;
pub mod compute_sanitizer;

use std::path::Path;

/// The workspace's root directory.
fn workspace_root() -> &'static Path {
    (Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)).expect("tools/<tool> lies in the workspace")
}
