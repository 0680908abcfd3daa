//! Small functions with atomics whose values are used, or not.

mod private;

use super::*;
use crate::exec::code::operands::NOTHING;
use crate::exec::lower::words::assemble;
use rocmforge_isa::Arch;

/// An atomic that returns the old value in `v5`.
const ADD: &str = "flat_atomic_add_u32 v5, v[1:2], v7 glc";

/// Whether the value of the first atomic is found to be used, which must be so on both cards and in waves of both sizes.
#[track_caller]
fn is_used(text: &str) -> bool {
    let found = [Arch::Gfx1100, Arch::Gfx1201].map(|arch| {
        let function = assemble(arch, text);
        [false, true].map(|wide| {
            let mut ins = vec![NOTHING; function.len()];
            mark(&function, &mut ins, wide);
            let is_atomic = |at: &&Decoded| at.inst.op.facts().memory == Memory::Atomic;
            let atomic = function.iter().find(is_atomic).expect("an atomic");
            ins[atomic.index].half & UNUSED == 0
        })
    });
    let used = found[0][0];
    assert_eq!(found, [[used; 2]; 2], "cards, and sizes of waves:\n{text}");
    used
}

#[track_caller]
fn used(text: &str) {
    assert!(is_used(text), "it is used:\n{text}");
}

#[track_caller]
fn unused(text: &str) {
    assert!(!is_used(text), "it is not used:\n{text}");
}

#[test]
fn a_value_is_used_where_a_path_reads_it() {
    unused(&format!("{ADD}\n s_endpgm"));
    used(&format!("{ADD}\n v_mov_b32_e32 v6, v5\n s_endpgm"));
    unused(&format!(
        "{ADD}\n v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, v5\n s_endpgm"
    ));
    let branch = |before, after| {
        format!("{ADD}\n {before}\n s_cbranch_scc1 out\n {after}\n v_mov_b32_e32 v6, v5\n out:\n s_endpgm")
    };
    used(&branch("", ""));
    unused(&branch("v_mov_b32_e32 v5, 0", ""));
    unused(&branch("", "v_mov_b32_e32 v5, 0"));
    // It keeps half of the register, or all lanes but one.
    used(&branch("", "flat_load_d16_b16 v5, v[1:2]"));
    used(&branch("", "v_writelane_b32 v5, s1, 3"));
    // Past the end.
    used(ADD);
}

#[test]
fn an_address_is_a_use() {
    used(&format!("{ADD}\n flat_store_b32 v[5:6], v5\n s_endpgm"));
    used(&format!("{ADD}\n flat_load_b32 v5, v[4:5]\n s_endpgm"));
    used(&format!("{ADD}\n flat_store_b32 v[1:2], v5\n s_endpgm"));
}

#[test]
fn the_next_round_of_a_loop_may_read_the_value() {
    let round = |first| format!("loop:\n {first}\n {ADD}\n s_cbranch_scc1 loop\n s_endpgm");
    used(&round("v_mov_b32_e32 v6, v5"));
    unused(&round(""));
    unused(&round("v_mov_b32_e32 v5, 0\n v_mov_b32_e32 v6, v5"));
}

#[test]
fn a_called_function_and_a_caller_may_read_the_value() {
    for leaves in ["s_swappc_b64 s[30:31], s[0:1]", "s_setpc_b64 s[30:31]"] {
        used(&format!("{ADD}\n {leaves}\n v_mov_b32_e32 v5, 0\n s_endpgm"));
        unused(&format!("{ADD}\n v_mov_b32_e32 v5, 0\n {leaves}\n s_endpgm"));
    }
    // Only what comes behind the atomic counts.
    unused(&format!("s_swappc_b64 s[30:31], s[0:1]\n {ADD}\n s_endpgm"));
}

#[test]
fn lanes_that_are_off_keep_the_value_until_exec_is_written() {
    let lines = |lines: &[&str]| format!("{ADD}\n {}\n s_endpgm", lines.join("\n"));
    let (write, read) = ("v_mov_b32_e32 v5, 0", "v_mov_b32_e32 v6, v5");
    for exec in [
        "s_mov_b32 exec_lo, s0",
        "s_and_saveexec_b32 s2, s0",
        "v_cmpx_ne_u32_e32 v0, v1",
    ] {
        used(&lines(&[exec, read]));
        unused(&lines(&[exec, write, read]));
        used(&lines(&[exec, write, exec, read]));
        unused(&lines(&[exec, write, exec, write, read]));
        unused(&lines(&[write, exec, read]));
    }
}

#[test]
fn an_instruction_may_read_the_value_in_lanes_that_are_off() {
    let partly = |read| format!("{ADD}\n s_mov_b32 exec_lo, s0\n v_mov_b32_e32 v5, 0\n {read}\n s_endpgm");
    let wholly = |read| format!("{ADD}\n v_mov_b32_e32 v5, 0\n s_mov_b32 exec_lo, s0\n {read}\n s_endpgm");
    for read in [
        "v_readlane_b32 s1, v5, 3",
        "v_mov_b32_dpp v6, v5 row_shl:1 row_mask:0xf bank_mask:0xf",
        "v_permlane16_b32 v6, v5, s2, s3",
        "v_permlanex16_b32 v6, v5, s2, s3",
        "ds_bpermute_b32 v6, v1, v5",
    ] {
        used(&partly(read));
        unused(&wholly(read));
    }
    unused(&partly("v_add_nc_u32_e32 v6, v5, v5"));
    unused(&partly("flat_store_b32 v[1:2], v5"));
}
