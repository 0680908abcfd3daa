//! Attention on a device, held to its definition in f64. On the simulated gfx1100 unless the supervisor says otherwise.

mod grid;
mod half;
mod masks;
mod memory;
mod paged;
mod rejections;
mod seeds;
mod support;

/// A part; `cargo xtask test-gpu --device sim:gfx1201` runs all.
#[test]
fn second_card() {
    rocmforge_testkit::on_every_card("second_card", &["masks::", "half::"]);
}
