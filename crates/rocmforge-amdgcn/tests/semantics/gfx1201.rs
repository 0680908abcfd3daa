//! As `main.rs`, for gfx1201: the operations that it shares with gfx1100, and those it adds or changed.

// Bit fields read as in the ISA manual, without a pair of brackets around every shift.
#![allow(clippy::precedence)]

mod compare;
mod completeness;
mod constants;
mod control;
mod convert;
mod division;
mod enc;
mod float;
mod fp8;
mod harness;
mod integer;
mod lanes;
mod matrix;
mod memory;
mod minima;
mod nans;
mod packed;
mod portable;
mod rare;
mod refused;
mod registers;
mod rig;
mod scalar;
mod transcendental;
mod unwritten;
mod valu;
mod value;
mod vopd;

use rocmforge_isa::{Arch, Op};

/// The instruction set that these tests are of.
const ARCH: Arch = Arch::Gfx1201;

/// What only the modules of this instruction set speak for.
fn own_ops() -> Vec<Op> {
    let rows = [minima::ROWS, fp8::ROWS];
    rows.into_iter().flat_map(valu::ops).chain(matrix::ops()).collect()
}

/// Operations without a model that gfx1100 has not.
#[rustfmt::skip]
const OWN_WITHOUT_MODEL: &[(&str, &[&str])] = &[
    ("hints and waits, which the interpreter leaves out", &[
        "s_wait_loadcnt", "s_wait_storecnt", "s_wait_samplecnt", "s_wait_bvhcnt", "s_wait_expcnt", "s_wait_dscnt",
        "s_wait_kmcnt", "s_wait_loadcnt_dscnt", "s_wait_storecnt_dscnt", "s_wait_alu", "s_singleuse_vdst",
        "s_sleep_var", "s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data", "s_prefetch_data_pc_rel",
        "s_buffer_prefetch_data",
    ]),
    ("caches, which are not modelled", &["global_inv", "global_wb", "global_wbinv"]),
    ("barriers: tests/exec", &["s_barrier_signal", "s_barrier_signal_isfirst", "s_barrier_wait"]),
];
