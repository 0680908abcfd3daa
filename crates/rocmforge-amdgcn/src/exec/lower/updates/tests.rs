//! Stores whose data was made of a value from the same address, or not.

use super::*;
use crate::exec::lower::words::assemble;
use rocmforge_isa::Arch;

const LOAD: &str = "flat_load_b32 v5, v[1:2]";
const STORE: &str = "flat_store_b32 v[1:2], v5";

/// Whether the last of these instructions is found to store an update, which must be so on both cards.
#[track_caller]
fn is_update(lines: &[&str]) -> bool {
    let text = lines.join("\n");
    let found = [Arch::Gfx1100, Arch::Gfx1201].map(|arch| {
        let function = assemble(arch, &text);
        let (store, before) = function.split_last().expect("a store");
        update(before, &store.inst) != 0
    });
    assert_eq!(found[0], found[1], "cards:\n{text}");
    found[0]
}

#[test]
fn the_data_of_an_update_comes_from_a_load() {
    assert!(is_update(&[LOAD, STORE]));
    assert!(!is_update(&[LOAD, "v_mov_b32_e32 v5, 0", STORE]));
}

#[test]
fn relative_moves_are_not_followed() {
    let load = "flat_load_b32 v12, v[1:2]";
    assert!(!is_update(&[load, "v_movrels_b32_e32 v5, v12", STORE]));
    assert!(!is_update(&[LOAD, "v_movreld_b32_e32 v12, v8", STORE]));
}

#[test]
fn an_exchange_writes_both_registers() {
    let exchange = "v_swap_b32 v5, v8";
    let other = "flat_store_b32 v[1:2], v8";
    assert!(!is_update(&[LOAD, exchange, STORE]));
    assert!(is_update(&[LOAD, exchange, other]));
    assert!(is_update(&[LOAD, exchange, exchange, STORE]));
    // The address is another one then.
    assert!(!is_update(&[LOAD, "v_swap_b32 v13, v1", STORE]));
}

#[test]
fn what_keeps_a_part_leaves_data_of_the_load() {
    assert!(is_update(&[LOAD, "v_writelane_b32 v5, s1, 3", STORE]));
    assert!(is_update(&[LOAD, "flat_load_d16_b16 v5, v[3:4]", STORE]));
}
