//! Code for a family of processors runs on the member that is here.

use crate::card::{Arg, Card};
use rocmforge_amdgcn::{DEVICE_BASE, Program};
use rocmforge_isa::Arch;

const FAMILIES: [(Arch, &[u8]); 2] = [
    (Arch::Gfx1100, include_bytes!("../fixtures/gfx11-generic.co")),
    (Arch::Gfx1201, include_bytes!("../fixtures/gfx12-generic.co")),
];

#[test]
fn kernels_of_generic_targets_run() {
    for (arch, elf) in FAMILIES {
        assert_eq!(Program::load(elf, DEVICE_BASE).expect("loads").arch(), arch);
        let x: Vec<f32> = (0..192).map(|n| n as f32 - 50.0).collect();
        let mut card = Card::new(elf);
        let (dx, dy) = (card.upload(&x), card.alloc(4 * 192));
        let by = Arg::U32(1.5f32.to_bits());
        card.run("scale", 3, 64, &[Arg::Ptr(dx), Arg::Ptr(dy), by]);
        let wanted: Vec<f32> = x.iter().map(|x| x * 1.5).collect();
        assert_eq!(card.download::<f32>(dy, 192), wanted, "{arch}");
    }
}
