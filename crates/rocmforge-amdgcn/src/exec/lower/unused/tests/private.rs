//! Values that are stored in private memory, as code that is not optimised does.

use super::{ADD, unused, used};

/// Makes `v[12:13]` the generic pointer to the variable at 48, as a kernel does.
const POINTER: &str = "
    s_mov_b32 s33, 0
    s_mov_b64 s[4:5], src_private_base
    s_mov_b32 s7, 32
    s_lshr_b64 s[10:11], s[4:5], s7
    s_mov_b32 s5, -1
    s_mov_b32 s6, 0
    s_add_i32 s8, s33, 48
    v_mov_b32_e32 v12, s8
    v_cmp_ne_u32_e64 s8, v12, s5
    s_mov_b32 s7, s10
    v_mov_b32_e32 v13, s7
    v_cndmask_b32_e64 v14, s6, v13, s8
    v_cndmask_b32_e64 v12, s6, v12, s8
    v_mov_b32_e32 v13, v14";
const STORE: &str = "flat_store_b32 v[12:13], v5";

/// A kernel that makes the pointer and goes on so.
fn kernel(lines: &[&str]) -> String {
    format!("{POINTER}\n {}\n s_endpgm", lines.join("\n"))
}

#[test]
fn a_value_that_nothing_loads_is_unused() {
    unused(&kernel(&[ADD, STORE]));
    unused(&kernel(&[ADD, "scratch_store_b32 off, v5, s33 offset:48"]));
    // What other memory holds may be loaded anywhere.
    used(&kernel(&[ADD, "flat_store_b32 v[1:2], v5"]));
    used(&kernel(&[ADD, "global_store_b32 v[12:13], v5, off"]));
}

#[test]
fn a_value_that_is_loaded_is_used_if_the_load_is() {
    let read = "v_mov_b32_e32 v7, v6";
    for load in [
        "flat_load_b32 v6, v[12:13]",
        "scratch_load_b32 v6, off, s33 offset:48",
        "scratch_load_b64 v[6:7], off, s33 offset:44",
        "scratch_load_b32 v6, off, s33 offset:46",
        "scratch_load_u8 v6, off, s33 offset:51",
    ] {
        used(&kernel(&[ADD, STORE, load, read]));
        unused(&kernel(&[ADD, STORE, load]));
    }
    unused(&kernel(&[ADD, STORE, "scratch_load_b32 v6, off, s33 offset:52", read]));
    // Through another variable.
    let copy = "scratch_load_b32 v6, off, s33 offset:48\n scratch_store_b32 off, v6, s33 offset:64";
    unused(&kernel(&[ADD, STORE, copy]));
    let again = "scratch_load_b32 v6, off, s33 offset:64";
    used(&kernel(&[ADD, STORE, copy, again, read]));
    // An atomic operation of the variable itself.
    used(&kernel(&[ADD, STORE, "flat_atomic_add_u32 v9, v[12:13], v7 glc"]));
}

#[test]
fn the_next_round_of_a_loop_may_load_the_value() {
    let load = "flat_load_b32 v6, v[12:13]";
    let end = ["s_cbranch_scc1 loop"];
    let round = |lines: &[&str]| kernel(&[&["loop:"], lines, &end].concat());
    used(&round(&[load, "v_mov_b32_e32 v8, v6", ADD, STORE]));
    unused(&round(&[load, ADD, STORE]));
}

#[test]
fn a_pointer_is_kept_in_private_memory() {
    let spill = "scratch_store_b64 off, v[12:13], s33 offset:56";
    let other_lanes = "s_mov_b32 exec_lo, s0";
    let reload = "scratch_load_b64 v[3:4], off, s33 offset:56";
    let store = "flat_store_b32 v[3:4], v5";
    unused(&kernel(&[spill, other_lanes, reload, ADD, store]));
    // The place has another value on some path.
    let other = "scratch_store_b32 off, v1, s33 offset:56";
    used(&kernel(&[spill, other, reload, ADD, store]));
    used(&kernel(&[
        spill,
        "loop:",
        reload,
        ADD,
        store,
        other,
        "s_cbranch_scc1 loop",
    ]));
    used(&kernel(&[
        spill,
        reload,
        "loop:",
        reload,
        ADD,
        store,
        other,
        "s_cbranch_scc1 loop",
    ]));
    // Or only part of it.
    let part = "scratch_store_b8 off, v1, s33 offset:57";
    used(&kernel(&[spill, part, reload, ADD, store]));
    let number = "v_mov_b32_e32 v16, 0x130";
    let load = "scratch_load_b32 v12, off, s33 offset:56";
    let [whole, byte] = ["b32", "b8"].map(|kind| format!("scratch_store_{kind} off, v16, s33 offset:56"));
    unused(&kernel(&[number, &whole, load, ADD, STORE]));
    used(&kernel(&[number, &byte, load, ADD, STORE]));
    used(&kernel(&[
        number,
        &whole,
        "scratch_load_u8 v12, off, s33 offset:56",
        ADD,
        STORE,
    ]));
}

#[test]
fn a_pointer_may_change_in_a_later_round() {
    let start = "v_mov_b32_e32 v16, v12\n v_mov_b32_e32 v17, 0";
    let round = |next| kernel(&[start, "loop:", ADD, STORE, next, "s_cbranch_scc1 loop"]);
    unused(&round("v_mov_b32_e32 v12, v16"));
    used(&round("v_mov_b32_e32 v12, v16\n v_mov_b32_e32 v16, v17"));
}

#[test]
fn lanes_that_are_off_keep_the_pointer() {
    let (off, on) = ("s_mov_b32 exec_lo, s0", "s_mov_b32 exec_lo, s1");
    let other = "v_mov_b32_e32 v12, 0";
    unused(&kernel(&[off, on, ADD, STORE]));
    unused(&kernel(&[off, other, ADD, STORE]));
    used(&kernel(&[off, other, on, ADD, STORE]));
    // They do not store it, but another lane may get it from them.
    let store = "flat_store_b32 v[1:2], v13";
    let slot = "scratch_store_b32 off, v5, s33 offset:48";
    unused(&kernel(&[off, "v_mov_b32_e32 v13, 0", store, ADD, slot]));
    used(&kernel(&[off, on, store, ADD, slot]));
    let lane = "v_readlane_b32 s9, v13, 3\n v_mov_b32_e32 v22, s9\n flat_store_b32 v[1:2], v22";
    used(&kernel(&[off, "v_mov_b32_e32 v13, 0", lane, ADD, slot]));
    // A mask is of the lanes that were on.
    let made = POINTER.replacen("s_mov_b32 s7, s10", &format!("s_mov_b32 s7, s10\n {off}"), 1);
    used(&format!("{made}\n {ADD}\n {STORE}\n s_endpgm"));
}

#[test]
fn a_pointer_that_is_stored_elsewhere_may_be_loaded_through() {
    for store in [
        "flat_store_b64 v[1:2], v[12:13]",
        "global_store_b64 v[1:2], v[12:13], off",
        "ds_store_b64 v1, v[12:13]",
    ] {
        used(&kernel(&[store, ADD, STORE]));
        used(&kernel(&[ADD, STORE, store]));
    }
    let keep = "v_writelane_b32 v20, s7, 0\n scratch_store_b32 off, v20, s33 offset:64";
    let load = "scratch_load_b32 v21, off, s33 offset:64\n v_readlane_b32 s9, v21, 0";
    unused(&kernel(&[keep, load, ADD, STORE]));
    let elsewhere = "v_mov_b32_e32 v22, s9\n flat_store_b32 v[1:2], v22";
    used(&kernel(&[keep, load, elsewhere, ADD, STORE]));
    // Any hardware register counts as the one that has the upper word.
    used(&kernel(&["s_getreg_b32 s9, hwreg(HW_REG_MODE)", elsewhere, ADD, STORE]));
    // A mask is no part of a pointer.
    let mask = "v_cndmask_b32_e64 v22, v0, v1, s9\n flat_store_b32 v[1:2], v22";
    unused(&kernel(&[keep, load, mask, ADD, STORE]));
}

#[test]
fn an_address_that_is_not_known_may_be_that_of_the_variable() {
    unused(&kernel(&["flat_load_b32 v8, v[1:2]", ADD, STORE]));
    used(&kernel(&["scratch_load_b32 v8, v1, off", ADD, STORE]));
    used(&kernel(&["scratch_store_b32 v1, v3, off", ADD, STORE]));
    let element = "v_add_co_u32 v14, s8, v12, v1\n v_add_co_ci_u32_e64 v15, s8, v13, 0, s8";
    used(&kernel(&[element, "flat_load_b32 v8, v[14:15]", ADD, STORE]));
    used(&kernel(&["v_movrels_b32_e32 v8, v12", ADD, STORE]));
    let slot = "scratch_store_b32 off, v5, s33 offset:48";
    let exchanged = ["v_swap_b32 v13, v4", "flat_load_b32 v8, v[3:4]"];
    unused(&kernel(&[exchanged[1], ADD, slot]));
    used(&kernel(&[exchanged[0], exchanged[1], ADD, slot]));
}

#[test]
fn a_called_function_may_load_the_value() {
    let call = "s_swappc_b64 s[30:31], s[0:1]";
    used(&kernel(&[call, ADD, STORE]));
    used(&kernel(&[ADD, STORE, "v_mov_b32_e32 v5, 0", call]));
    // A jump to an address that the function has made does not leave it.
    let behind = "v_mov_b32_e32 v5, 0\n s_setpc_b64 s[0:1]";
    used(&kernel(&["s_getpc_b64 s[0:1]", ADD, STORE, behind]));
    unused(&kernel(&["s_getpc_b64 s[0:1]", ADD, STORE]));
}

#[test]
fn a_function_has_its_variables_above_the_stack_pointer() {
    let function = |lines: &[&str]| {
        let lines = lines.join("\n");
        format!(
            "s_mov_b32 s33, s32\n s_add_i32 s32, s32, 64\n {ADD}\n scratch_store_b32 off, v5, s33 offset:16
            v_mov_b32_e32 v5, 0\n {lines}\n s_setpc_b64 s[30:31]"
        )
    };
    let read = "v_mov_b32_e32 v7, v6";
    unused(&function(&[]));
    used(&function(&["scratch_load_b32 v6, off, s32 offset:-48", read]));
    unused(&function(&["scratch_load_b32 v6, off, s32 offset:-44", read]));
    // Neither is known to be above the other.
    used(&function(&[
        "scratch_load_b32 v6, off, off offset:16",
        "v_mov_b32_e32 v6, 0",
    ]));
}
