//! Loads in loops that wait, and in those that do not.

use super::*;
use crate::exec::lower::words::assemble;

const LOAD: &str = "ds_load_b32 v1, v20";
const DECIDE: [&str; 3] = [
    "v_readfirstlane_b32 s2, v1",
    "s_cmp_eq_u32 s2, 0",
    "s_cbranch_scc1 loop",
];

/// Whether a load in a loop of these instructions is a poll, which must be so on both cards.
#[track_caller]
fn polls(body: &[&str]) -> bool {
    let text = [&["loop:"][..], body, &DECIDE].concat().join("\n");
    let found = [Arch::Gfx1100, Arch::Gfx1201].map(|arch| !of(&assemble(arch, &text)).is_empty());
    assert_eq!(found[0], found[1], "cards:\n{text}");
    found[0]
}

#[test]
fn a_loop_that_only_waits_polls() {
    assert!(polls(&["s_sleep 1", LOAD]));
    // What it has loaded does not decide.
    assert!(!polls(&["s_sleep 1", "ds_load_b32 v5, v20"]));
}

#[test]
fn a_loop_that_stores_does_more_than_wait() {
    assert!(!polls(&[LOAD, "ds_store_b32 v20, v1"]));
}

#[test]
fn a_loop_that_goes_through_memory_does_not_wait() {
    let step = "v_add_nc_u32_e32 v21, 4, v20";
    assert!(polls(&[step, "ds_load_b32 v1, v21"]));
    assert!(!polls(&[step, "v_mov_b32_e32 v20, v21", LOAD]));
    assert!(!polls(&[LOAD, "v_writelane_b32 v20, s2, 0"]));
}

#[test]
fn a_load_before_the_loop_decides_soon_or_is_no_poll() {
    let decides = |lines: &[&str]| {
        let text = lines.join("\n");
        decides_soon(&assemble(Arch::Gfx1100, &text), 0)
    };
    assert!(decides(&[
        "ds_load_b32 v1, v20",
        "v_readfirstlane_b32 s2, v1",
        "s_cmp_eq_u32 s2, 0",
        "s_cbranch_scc1 end",
        "end:"
    ]));
    assert!(!decides(&[
        "ds_load_b32 v1, v20",
        "s_cmp_eq_u32 s2, 0",
        "s_cbranch_scc1 end",
        "end:"
    ]));
}
