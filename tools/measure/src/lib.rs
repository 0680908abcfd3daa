//! Measurements and checks of real cards beside other people's tools, under the card's lock.
//!
//! * [`mod@bench`]: our kernels beside PyTorch's;
//! * [`compute_sanitizer`]: NVIDIA's sanitizer over our kernels' tests, and beside our own sanitizer.

pub mod bench;
pub mod compute_sanitizer;

use rocmforge_gpu_test::root_at_run_time as workspace_root;
