//! The rows of HIP's behaviour that both platforms promise, on the leased device: a simulated Radeon in a plain `cargo test`, a
//! card under `cargo xtask test-gpu`.
#![allow(non_snake_case)]

/// The rows of a chapter: each becomes a test on a lease.
macro_rules! both {
    ($($row:ident),* $(,)?) => {
        mod leased {
            $(#[test]
            #[serial_test::serial]
            fn $row() {
                crate::on_lease(super::$row);
            })*
        }

        #[allow(dead_code)] // counted by `tests/behaviour`
        pub(crate) const ROWS: &[&str] = &[$(stringify!($row)),*];
    };
}

mod both;
mod rig;
#[allow(dead_code)] // most of it is for the simulator
mod support;

use rig::{Platform, Rig, probe_for};

/// Version 7 of AMD's library, as `hipRuntimeGetVersion` counts.
const HIP_7: i32 = 70_000_000;

fn on_lease(row: fn(&Rig)) {
    let gpu = rocmforge_testkit::gpu();
    let device = gpu.backend().device();
    let Some(probe) = probe_for(&device.arch) else {
        rocmforge_testkit::skip!("the probe kernels are not compiled for {}", device.arch);
    };
    let platform = match device.hip_version {
        _ if device.arch.starts_with("sm_") => Platform::Nvidia,
        version if version < HIP_7 => Platform::Hip6,
        _ => Platform::Hip7,
    };
    let (api, sim) = (gpu.api().clone(), gpu.sim().cloned());
    row(&Rig::new(api, platform, device.ordinal, probe, sim));
    // A row makes mistakes on purpose; what the device makes of them is what it checks, and its process ends with it.
    let _ = gpu.finish();
}

#[test]
fn second_card() {
    rocmforge_testkit::on_every_card("second_card", &["launches::", "modules::", "::f28_"]);
}
