//! What HIP does: a test per row of the behaviour table (`rows.txt`), named after the row's id, that runs in HIP 6 and in
//! HIP 7 mode. The rows come from AMD's own conformance tests (hip-tests) and, those with `x`, from reading its
//! implementation (clr).
//!
//! The rows in `both` run on any device, on a card from `tests/gpu`; `simulator-only.txt` says why the others do not.

/// The rows of a chapter that run on any device, here in HIP 6 mode and in HIP 7 mode.
macro_rules! both {
    ($($row:ident),* $(,)?) => {
        mod hip6 {
            $(#[test]
            fn $row() {
                super::$row(&crate::behaviour::modes::rig(rocmforge_sim::HipVersion::Hip6));
            })*
        }

        mod hip7 {
            $(#[test]
            fn $row() {
                super::$row(&crate::behaviour::modes::rig(rocmforge_sim::HipVersion::Hip7));
            })*
        }

        pub(crate) const ROWS: &[&str] = &[$(stringify!($row)),*];
    };
}

mod both;
mod rig;
#[allow(dead_code)] // shared with other tests
mod support;
mod behaviour {
    mod completeness;
    mod device;
    mod errors;
    mod events;
    mod faults;
    mod graphs;
    mod host_memory;
    mod kernels;
    mod launches;
    mod memcpy;
    mod memory;
    mod memset;
    pub(crate) mod modes;
    mod modules;
    mod pointers;
    mod pools;
    mod special_memory;
    mod streams;
    mod strict;
}
