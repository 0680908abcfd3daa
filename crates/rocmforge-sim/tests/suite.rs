//! Tests of the whole simulator but its campaign and those of a device: one binary, with a module for each subject.

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

mod api;
mod behaviour;
mod both;
mod device;
mod races;
mod rig;
mod suite {
    mod desktop;
    mod extremes;
    mod fault_plans;
    mod launch_order;
    mod observer;
    mod ordering;
    mod padding;
    mod pct;
    mod program;
    mod selection;
    mod signals;
    mod stopped;
}
mod support;
