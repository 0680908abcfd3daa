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
        let found = number(&assemble(arch, &text)).expect("there is a compare-and-swap");
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
