//! Properties of all instructions: lanes that are off, a destination that is a source, pairs that read before they write.

use crate::harness::{Lane, lanes, launch, run, vop3};
use rocmforge_amdgcn::FaultKind;

/// `s_mov_b32 exec_lo, literal`.
const SET_EXEC: u32 = 0xbefe_00ff;

#[test]
fn lanes_that_are_off_keep_their_destination() {
    let mask = 0x8421_a5f0;
    let [first, second] = vop3(0x125, 2);
    let words = [SET_EXEC, mask, first, second, SET_EXEC, u32::MAX];
    let lanes = lanes(false);
    for (index, (lane, ours)) in lanes.iter().zip(run("template_kernel", &words, &lanes)).enumerate() {
        let on = mask >> (index % 32) & 1 == 1;
        let sum = u64::from((lane.a as u32).wrapping_add(lane.b as u32));
        let model = if on { lane.d & !0xffff_ffff | sum } else { lane.d };
        assert_eq!(ours, model, "lane {index} of {lane:x?}");
    }
}

#[test]
fn a_destination_may_be_a_source() {
    // v_add_nc_u32 v8, v8, v2; v_lshlrev_b64 v[8:9], 8, v[8:9]
    let words = [0xd525_0008, 0x108 | 0x102 << 9, 0xd73c_0008, 136 | 0x108 << 9];
    let lanes = lanes(true);
    let model = |l: &Lane| (l.d & !0xffff_ffff | u64::from((l.d as u32).wrapping_add(l.a as u32))) << 8;
    for (lane, ours) in lanes.iter().zip(run("template_kernel", &words, &lanes)) {
        assert_eq!(ours, model(lane), "{lane:x?}");
    }
}

#[test]
fn a_pair_swaps() {
    // v_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8: X is operation 8 at bit 22, Y at bit 17.
    let words = [0xc800_0000 | 8 << 22 | 8 << 17 | 0x109, 0x108 | 4 << 17 | 8 << 24];
    let text = crate::enc::decode(&words, 0).expect("a pair").to_string();
    assert_eq!(text, "v_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8");
    let lanes = lanes(true);
    for (lane, ours) in lanes.iter().zip(run("template_kernel", &words, &lanes)) {
        assert_eq!(ours, lane.d.rotate_left(32), "{lane:x?}");
    }
}

#[test]
fn a_scalar_load_across_the_end_of_the_address_space_is_a_fault() {
    // s_mov_b64 s[20:21], -4; s_load_b128 s[20:23], s[20:21], null
    let (outcome, _) = launch(
        "template_kernel",
        &[0xbe94_01c4, 0xf408_050a, 0xf800_0000],
        &lanes(false)[..32],
    );
    let fault = outcome.faults.first().expect("a fault");
    assert_eq!(
        (fault.kind, fault.address),
        (FaultKind::GlobalOutOfBounds, u64::MAX - 3)
    );
}
