//! The interpreter against independent scalar models, written by hand from AMD's published pseudocode: every instruction
//! in all of its forms over edge values and random ones, for 32 lanes a wave. This is the test of gfx1100; `gfx1201.rs`
//! has the same modules for the other instruction set.

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
mod harness;
mod integer;
mod lanes;
mod memory;
mod minima;
mod modes;
mod nans;
mod packed;
mod portable;
mod rare;
mod refused;
mod registers;
mod rig;
mod scalar;
mod structure;
mod transcendental;
mod unwritten;
mod valu;
mod value;
mod vopd;
mod wmma;

use rocmforge_isa::{Arch, Op};

/// The instruction set that these tests are of.
const ARCH: Arch = Arch::Gfx1100;

/// What only the modules of this instruction set speak for.
fn own_ops() -> Vec<Op> {
    wmma::ops()
}

/// Operations without a model that gfx1201 has not.
#[rustfmt::skip]
const OWN_WITHOUT_MODEL: &[(&str, &[&str])] = &[
    ("hints and waits, which the interpreter leaves out", &[
        "s_set_inst_prefetch_distance", "s_waitcnt_depctr", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt",
        "s_waitcnt_vmcnt", "s_waitcnt_vscnt",
    ]),
    ("caches, which are not modelled", &["s_gl1_inv", "buffer_gl0_inv", "buffer_gl1_inv"]),
    ("barriers: tests/exec", &[
        "s_barrier", "ds_gws_init", "ds_gws_barrier", "ds_gws_sema_v", "ds_gws_sema_br", "ds_gws_sema_p", "ds_gws_sema_release_all",
    ]),
    ("branches on a debugger, which is never attached", &[
        "s_cbranch_cdbgsys", "s_cbranch_cdbguser", "s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user",
    ]),
];
