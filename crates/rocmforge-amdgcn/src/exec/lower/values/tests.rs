//! Loads whose value a compare-and-swap expects, found by numbers of values.

use super::*;
use crate::exec::lower::words::assemble;
use rocmforge_isa::Arch;

const LOAD: &str = "flat_load_b32 v5, v[1:2]";
const EXPECT: &str = "v_mov_b32_e32 v7, v5";
const SWAP: &str = "flat_atomic_cmpswap_b32 v9, v[1:2], v[6:7] glc";

/// Whether a load is found whose value the compare-and-swap expects, which must be so on both cards.
#[track_caller]
fn is_guess(lines: &[&str]) -> bool {
    let text = lines.join("\n");
    let found = [Arch::Gfx1100, Arch::Gfx1201].map(|arch| {
        let found = number(&assemble(arch, &text));
        !found.guesses.is_empty()
    });
    assert_eq!(found[0], found[1], "cards:\n{text}");
    found[0]
}

#[test]
fn a_copy_of_the_loaded_value_is_expected() {
    assert!(is_guess(&[LOAD, EXPECT, SWAP]));
    assert!(!is_guess(&[LOAD, SWAP]));
}

#[test]
fn a_relative_move_has_the_registers_that_m0_says() {
    let address = "v_movrels_b32_e32 v1, v12";
    assert!(!is_guess(&[address, LOAD, "s_mov_b32 m0, s0", address, EXPECT, SWAP]));
    assert!(!is_guess(&[
        address,
        LOAD,
        "v_mov_b32_e32 v13, 0",
        address,
        EXPECT,
        SWAP
    ]));
    assert!(!is_guess(&[LOAD, EXPECT, "v_movreld_b32_e32 v12, v8", SWAP]));
    // It is after the values have been used.
    assert!(is_guess(&[LOAD, EXPECT, SWAP, "v_movreld_b32_e32 v12, v8"]));
}

#[test]
fn a_word_of_memory_is_another_after_a_store_to_a_part_of_it() {
    let kept = |between: &str| {
        is_guess(&[
            LOAD,
            "ds_store_b32 v20, v5 offset:4",
            between,
            "ds_load_b32 v7, v20 offset:4",
            SWAP,
        ])
    };
    assert!(kept("ds_store_b8 v20, v8 offset:3"));
    assert!(kept("ds_store_b16 v20, v8 offset:2"));
    for part in [
        "ds_store_b8 v20, v8 offset:4",
        "ds_store_b32 v20, v8 offset:2",
        "ds_store_b64 v20, v[8:9] offset:1",
        "ds_store_b128 v20, v[8:11] offset:4",
    ] {
        assert!(!kept(part), "{part}");
    }
}

#[test]
fn an_exchange_writes_both_registers() {
    assert!(!is_guess(&[LOAD, EXPECT, "v_swap_b32 v8, v7", SWAP]));
    assert!(is_guess(&[
        LOAD,
        EXPECT,
        "v_swap_b32 v8, v7",
        "v_swap_b32 v8, v7",
        SWAP
    ]));
    assert!(is_guess(&[LOAD, "v_swap_b32 v7, v5", SWAP]));
}

#[test]
fn a_result_that_keeps_a_part_depends_on_what_was_there() {
    let part = "v_permlane16_b32 v1, v20, s2, s3";
    let (one, other) = ("v_mov_b32_e32 v1, v20", "v_mov_b32_e32 v1, v8");
    assert!(is_guess(&[one, part, LOAD, one, part, EXPECT, SWAP]));
    assert!(!is_guess(&[one, part, LOAD, other, part, EXPECT, SWAP]));
    // It has values of the lanes that are on.
    let lanes = "s_mov_b32 exec_lo, s0";
    assert!(!is_guess(&[one, part, LOAD, lanes, one, part, EXPECT, SWAP]));
}

#[test]
fn the_first_lane_is_another_where_none_is_on() {
    let address = ["v_readfirstlane_b32 s1, v20", "v_mov_b32_e32 v1, s1"];
    let (off, on) = ("s_mov_b32 exec_lo, 0", "s_mov_b32 exec_lo, -1");
    let read_again = |between: &str| {
        is_guess(&[
            address[0], address[1], LOAD, between, address[0], on, address[1], EXPECT, SWAP,
        ])
    };
    assert!(read_again("s_mov_b32 exec_lo, s0"));
    assert!(!read_again(off));
}

#[test]
fn two_words_of_lds_are_stored_with_their_values() {
    for (store, load, stored) in [
        ("ds_store_2addr_b32 v20, v5, v8 offset1:1", "ds_load_b32 v7, v20", true),
        (
            "ds_store_2addr_b32 v20, v5, v8 offset1:1",
            "ds_load_b32 v7, v20 offset:4",
            false,
        ),
        (
            "ds_store_2addr_b32 v20, v8, v5 offset1:1",
            "ds_load_b32 v7, v20 offset:4",
            true,
        ),
        (
            "ds_store_2addr_b64 v20, v[8:9], v[4:5] offset1:1",
            "ds_load_b32 v7, v20 offset:12",
            true,
        ),
        (
            "ds_store_2addr_stride64_b32 v20, v8, v5 offset1:1",
            "ds_load_b32 v7, v20 offset:256",
            true,
        ),
        (
            "ds_store_2addr_stride64_b32 v20, v8, v5 offset1:1",
            "ds_load_b32 v7, v20 offset:4",
            false,
        ),
        (
            "ds_store_2addr_stride64_b64 v20, v[8:9], v[4:5] offset1:1",
            "ds_load_b32 v7, v20 offset:516",
            true,
        ),
    ] {
        assert_eq!(is_guess(&[LOAD, store, load, SWAP]), stored, "{store}, {load}");
    }
}

#[test]
fn two_words_of_lds_are_no_longer_what_they_were() {
    let store = "ds_store_b32 v20, v5";
    let load = "ds_load_b32 v7, v20";
    assert!(is_guess(&[LOAD, store, load, SWAP]));
    for other in [
        "ds_store_2addr_b32 v20, v8, v5 offset1:1",
        "ds_storexchg_2addr_rtn_b32 v[8:9], v20, v8, v8 offset1:1",
    ] {
        assert!(!is_guess(&[LOAD, store, other, load, SWAP]), "{other}");
    }
}

#[test]
fn two_words_of_lds_are_loaded_with_their_values() {
    let store = "ds_store_2addr_b32 v20, v8, v5 offset1:1";
    assert!(is_guess(&[
        LOAD,
        store,
        "ds_load_2addr_b32 v[7:8], v20 offset0:1 offset1:2",
        SWAP
    ]));
    // Both registers are written.
    let other = "ds_load_2addr_b32 v[8:9], v20 offset0:1 offset1:2";
    assert!(is_guess(&[LOAD, EXPECT, other, SWAP]));
    assert!(!is_guess(&[
        LOAD,
        EXPECT,
        "ds_load_2addr_b32 v[7:8], v20 offset0:1 offset1:2",
        SWAP
    ]));
}

#[test]
fn a_base_and_an_offset_of_the_lane_are_their_sum() {
    let load = "global_load_b32 v5, v20, s[0:1]";
    let swap = "global_atomic_cmpswap_b32 v9, v[1:2], v[6:7], off glc";
    let low = "v_add_co_u32 v1, s2, s0, v20";
    let high = "v_add_co_ci_u32_e64 v2, null, s1, 0, s2";
    assert!(is_guess(&[load, low, high, EXPECT, swap]));
    // The order of a sum does not matter, and its words may be added the other way around.
    assert!(is_guess(&[load, "v_add_co_u32 v1, s2, v20, s0", high, EXPECT, swap]));
    let turned = "v_add_co_ci_u32_e64 v2, null, 0, s1, s2";
    assert!(is_guess(&[load, low, turned, EXPECT, swap]));
    // The carry of another sum.
    let other = "v_add_co_ci_u32_e64 v2, null, s1, 0, s3";
    assert!(!is_guess(&[load, low, other, EXPECT, swap]));
    // Another offset, before the sum or in the instructions.
    assert!(!is_guess(&[
        load,
        "v_writelane_b32 v20, s2, 0",
        low,
        high,
        EXPECT,
        swap
    ]));
    let (load_8, swap_8) = (
        "global_load_b32 v5, v20, s[0:1] offset:8",
        "global_atomic_cmpswap_b32 v9, v[1:2], v[6:7], off offset:8 glc",
    );
    assert!(is_guess(&[load_8, low, high, EXPECT, swap_8]));
    assert!(!is_guess(&[load_8, low, high, EXPECT, swap]));
    // Another value is expected.
    assert!(!is_guess(&[load, low, high, swap]));
}

#[test]
fn an_address_of_lds_is_a_sum_too() {
    let swap = "ds_cmpstore_rtn_b32 v9, v21, v6, v7";
    let swap_of_copy = |load: &str, address: &[&str]| {
        let mut lines = vec![load];
        lines.extend(address);
        lines.extend([EXPECT, swap]);
        is_guess(&lines)
    };
    let sum = "v_add_nc_u32_e32 v21, 4, v20";
    assert!(swap_of_copy("ds_load_b32 v5, v20 offset:4", &[sum]));
    assert!(!swap_of_copy("ds_load_b32 v5, v20", &[sum]));
    let shifted = [
        "v_lshlrev_b32_e32 v20, 2, v8",
        "ds_load_b32 v5, v20 offset:4",
        "v_lshl_add_u32 v21, v8, 2, 4",
    ];
    assert!(is_guess(&[&shifted[..], &[EXPECT, swap]].concat()));
}
