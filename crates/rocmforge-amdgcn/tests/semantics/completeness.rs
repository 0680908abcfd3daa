//! Every operation of gfx1100 that the interpreter takes has a property test here, or a reason why not.

use crate::enc;
use crate::valu::{lowers, ops};
use crate::{
    compare, control, convert, division, float, integer, lanes, memory, packed, rare, scalar, transcendental, wmma,
};
use rocmforge_amdgcn::{Arch, Op};
use std::collections::BTreeSet;

/// Operations without a model: what they do is not a function of registers and memory.
#[rustfmt::skip]
const WITHOUT_MODEL: &[(&str, &[&str])] = &[
    ("hints and waits, which the interpreter leaves out", &[
        "s_nop", "s_sleep", "s_delay_alu", "s_waitcnt", "s_waitcnt_depctr", "s_wait_idle", "s_wait_event", "s_clause",
        "s_setprio", "s_set_inst_prefetch_distance", "s_wakeup", "s_ttracedata", "s_ttracedata_imm", "s_incperflevel",
        "s_decperflevel", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt", "s_waitcnt_vmcnt", "s_waitcnt_vscnt", "s_version",
        "v_nop", "v_pipeflush", "ds_nop",
    ]),
    ("caches, which are not modelled", &[
        "s_icache_inv", "s_dcache_inv", "s_gl1_inv", "buffer_gl0_inv", "buffer_gl1_inv",
    ]),
    ("ends, traps and barriers: tests/exec", &[
        "s_endpgm", "s_endpgm_saved", "s_code_end", "s_trap", "s_sethalt", "s_barrier",
    ]),
    ("address probes, which have no effect on memory that is always there", &["s_atc_probe", "s_atc_probe_buffer"]),
    ("branches on a debugger, which is never attached", &[
        "s_cbranch_cdbgsys", "s_cbranch_cdbguser", "s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user",
    ]),
    ("does nothing in waves of 32", &["v_permlane64_b32"]),
];

/// Everything the property tests of this crate speak for.
fn covered() -> BTreeSet<Op> {
    let rows = [
        integer::BITS32,
        integer::ARITHMETIC32,
        integer::BITS64,
        integer::BITS16,
        float::SINGLE,
        float::DOUBLE,
        float::HALF,
        convert::ROWS,
        transcendental::ROWS,
        packed::ROWS,
        division::ROWS,
    ];
    let mut all: BTreeSet<Op> = rows.into_iter().flat_map(ops).collect();
    all.extend(compare::ops());
    all.extend(scalar::ops());
    all.extend(memory::ops());
    all.extend(lanes::ops());
    all.extend(wmma::ops());
    all.extend(control::ops());
    all.extend(rare::ops());
    all
}

#[test]
fn every_operation_is_covered() {
    let covered = covered();
    let excepted: BTreeSet<&str> = WITHOUT_MODEL
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    let missing: BTreeSet<&str> = enc::all()
        .iter()
        .filter(|(e, _)| !covered.contains(&e.op) && !excepted.contains(e.op.mnemonic()))
        .filter(|(_, words)| lowers(words))
        .map(|(e, _)| e.op.mnemonic())
        .collect();
    assert!(missing.is_empty(), "no property test for {missing:?}");
}

#[test]
fn exceptions_are_no_longer_than_needed() {
    let covered = covered();
    for (why, names) in WITHOUT_MODEL {
        for name in *names {
            let (encoding, _) = enc::all()
                .iter()
                .find(|(e, _)| e.op.mnemonic() == *name)
                .unwrap_or_else(|| panic!("{name} is no operation"));
            assert!(
                !covered.contains(&encoding.op),
                "{name} has a model, but is excepted as: {why}"
            );
        }
    }
}

/// Every operation of the tables must have been found, else the first test would not see it.
#[test]
fn all_operations_are_found() {
    let found: BTreeSet<Op> = enc::all().iter().map(|(e, _)| e.op).collect();
    let operations = Arch::Gfx1100.operations();
    assert!(operations.len() > 900, "{} operations", operations.len());
    let lost: Vec<&str> = operations.difference(&found).map(|op| op.mnemonic()).collect();
    assert!(lost.is_empty(), "{lost:?}");
}
