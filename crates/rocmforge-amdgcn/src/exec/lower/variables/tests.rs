//! Instructions whose address is that of a variable, or may be another.

use super::*;
use crate::exec::lower::words::assemble;
use rocmforge_isa::Arch;

/// Makes `s[2:3]` the address of a variable.
const VARIABLE: &str = "s_getpc_b64 s[2:3]\n s_add_u32 s2, s2, 0x100\n s_addc_u32 s3, s3, 0";
/// The address of another one.
const OTHER_VARIABLE: &str = "s_getpc_b64 s[2:3]\n s_add_u32 s2, s2, 0x200\n s_addc_u32 s3, s3, 0";
/// Copies it to `v[1:2]`.
const COPY: &str = "v_mov_b32_e32 v1, s2\n v_mov_b32_e32 v2, s3";
/// Loads an element, of a table of words or of bytes.
const ELEMENT: &str = "global_load_b32 v5, v3, s[2:3]";
const BYTE: &str = "global_load_u8 v5, v3, s[2:3]";
/// Makes `v3` the distance from it to something else.
const DISTANCE: &str = "v_sub_nc_u32_e32 v3, s4, v1";
/// Other lanes are on from here.
const LANES: &str = "s_or_b32 exec_lo, exec_lo, s1";

/// How many instructions are found, which must be as many on both cards and in waves of both sizes.
#[track_caller]
fn found(lines: &[&str]) -> usize {
    let text = lines.join("\n");
    let found = [Arch::Gfx1100, Arch::Gfx1201].map(|arch| {
        let function = assemble(arch, &text);
        [false, true].map(|wide| find(&function, wide).len())
    });
    let count = found[0][0];
    assert_eq!(found, [[count; 2]; 2], "cards, and sizes of waves:\n{text}");
    count
}

#[test]
fn an_index_is_added_to_the_address() {
    assert_eq!(found(&[VARIABLE, ELEMENT, "s_endpgm"]), 1);
    assert_eq!(
        found(&[VARIABLE, COPY, "global_load_b32 v5, v[1:2], off", "s_endpgm"]),
        1
    );
    assert_eq!(found(&[VARIABLE, COPY, DISTANCE, ELEMENT, "s_endpgm"]), 0);
}

#[test]
fn a_branch_into_the_sequence_has_another_address() {
    let [first, second, third] = VARIABLE.split('\n').collect::<Vec<_>>()[..] else {
        unreachable!("three instructions")
    };
    let branch = "s_cbranch_scc1 into";
    assert_eq!(found(&[branch, "into:", VARIABLE, ELEMENT, "s_endpgm"]), 1);
    for lines in [[first, "into:", second, third], [first, second, "into:", third]] {
        let lines = [&[branch][..], &lines, &[ELEMENT, "s_endpgm"]].concat();
        assert_eq!(found(&lines), 0);
    }
}

#[test]
fn a_jump_to_an_address_of_code_may_lead_anywhere() {
    let access = [VARIABLE, ELEMENT];
    assert_eq!(found(&[&access[..], &["s_setpc_b64 s[30:31]"]].concat()), 1);
    // The sum is not one with a constant.
    let jump = ["s_getpc_b64 s[0:1]", "s_setpc_b64 s[0:1]"];
    assert_eq!(found(&[&access[..], &jump].concat()), 0);
}

#[test]
fn a_call_writes_the_return_address() {
    let variable = VARIABLE
        .replace("s[2:3]", "s[34:35]")
        .replace("s2", "s34")
        .replace("s3,", "s35,");
    let access = "global_load_b32 v5, v3, s[34:35]";
    assert_eq!(
        found(&[&variable, "s_swappc_b64 s[30:31], s[0:1]", access, "s_endpgm"]),
        1
    );
    assert_eq!(
        found(&[&variable, "s_swappc_b64 s[34:35], s[4:5]", access, "s_endpgm"]),
        0
    );
}

#[test]
fn lanes_that_come_on_have_what_they_had() {
    let index = "v_mov_b32_e32 v3, 0";
    assert_eq!(found(&[VARIABLE, LANES, index, LANES, ELEMENT, "s_endpgm"]), 1);
    let lines = |middle: &'static [&str]| [&[VARIABLE, COPY, DISTANCE], middle, &[ELEMENT, "s_endpgm"]].concat();
    assert_eq!(found(&lines(&["v_mov_b32_e32 v3, 0"])), 1);
    assert_eq!(found(&lines(&[LANES, "v_mov_b32_e32 v3, 0"])), 1);
    assert_eq!(found(&lines(&[LANES, "v_mov_b32_e32 v3, 0", LANES])), 0);
    // One that reads them too.
    assert_eq!(
        found(&lines(&[
            LANES,
            "v_mov_b32_e32 v3, 0",
            "v_readlane_b32 s8, v3, 3",
            "v_mov_b32_e32 v3, s8"
        ])),
        0
    );
}

#[test]
fn a_part_of_a_register_keeps_what_it_had() {
    for part in ["v_writelane_b32 v3, s4, 0", "global_load_d16_b16 v3, v9, s[6:7]"] {
        assert_eq!(found(&[VARIABLE, part, ELEMENT, "s_endpgm"]), 1);
        assert_eq!(found(&[VARIABLE, COPY, DISTANCE, part, ELEMENT, "s_endpgm"]), 0);
    }
}

#[test]
fn a_distance_in_scalar_registers_is_added_too() {
    let load = "s_load_b32 s9, s[2:3], s8";
    assert_eq!(found(&[VARIABLE, load, "s_endpgm"]), 1);
    assert_eq!(found(&[VARIABLE, "s_sub_u32 s8, s4, s2", load, "s_endpgm"]), 0);
}

#[test]
fn a_word_of_a_variable_may_be_the_distance_to_another() {
    // Compilers make tables of pointers so.
    assert_eq!(
        found(&[VARIABLE, ELEMENT, "v_mov_b32_e32 v3, v5", ELEMENT, "s_endpgm"]),
        1
    );
    assert_eq!(found(&[VARIABLE, BYTE, "v_mov_b32_e32 v3, v5", ELEMENT, "s_endpgm"]), 2);
    // The distances in a table are from that table.
    assert_eq!(
        found(&[
            VARIABLE,
            ELEMENT,
            OTHER_VARIABLE,
            "v_mov_b32_e32 v3, v5",
            ELEMENT,
            "s_endpgm"
        ]),
        2
    );
}

#[test]
fn a_distance_may_be_kept_in_private_memory() {
    let (store, load) = (
        "scratch_store_b32 off, v3, s32 offset:16",
        "scratch_load_b32 v3, off, s32 offset:16",
    );
    let reload = ["v_mov_b32_e32 v3, 0", load, ELEMENT, "s_endpgm"];
    assert_eq!(found(&[&[VARIABLE, COPY, store][..], &reload].concat()), 1);
    assert_eq!(found(&[&[VARIABLE, COPY, DISTANCE, store][..], &reload].concat()), 0);
    // In a later round.
    let loop_ = [
        "loop:",
        load,
        ELEMENT,
        DISTANCE,
        store,
        "s_cbranch_scc1 loop",
        "s_endpgm",
    ];
    assert_eq!(found(&[&[VARIABLE, COPY][..], &loop_].concat()), 0);
}

#[test]
fn half_an_address_is_no_address() {
    let access = "s_load_b32 s8, s[6:7], null";
    assert_eq!(found(&[VARIABLE, "s_mov_b64 s[6:7], s[2:3]", access, "s_endpgm"]), 1);
    let half = [
        VARIABLE,
        "s_mov_b32 s3, 0",
        "s_mov_b64 s[6:7], s[2:3]",
        access,
        "s_endpgm",
    ];
    assert_eq!(found(&half), 0);
}

#[test]
fn a_factor_is_no_address() {
    let access = ["global_load_b32 v5, v[1:2], off", "s_endpgm"];
    let base = "v_mov_b32_e32 v12, s2\n v_mov_b32_e32 v13, s3";
    let sum = "v_mad_u64_u32 v[1:2], null, s4, 4, v[12:13]";
    let product = "v_mad_u64_u32 v[1:2], null, s2, 4, v[12:13]";
    assert_eq!(found(&[&[VARIABLE, base, sum][..], &access].concat()), 1);
    assert_eq!(found(&[&[VARIABLE, base, product][..], &access].concat()), 0);
    assert_eq!(found(&[&[VARIABLE, product][..], &access].concat()), 0);
}
