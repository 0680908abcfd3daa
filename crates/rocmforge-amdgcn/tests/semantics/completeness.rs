//! Every operation of the instruction set that the interpreter takes has a property test here, or a reason why not.

use crate::valu::{lowers, ops};
use crate::{ARCH, OWN_WITHOUT_MODEL, enc, own_ops};
use crate::{compare, control, convert, division, float, integer, lanes, memory, packed, rare, scalar, transcendental};
use rocmforge_isa::Op;
use std::collections::BTreeSet;

/// Operations without a model: what they do is not a function of registers and memory.
#[rustfmt::skip]
const WITHOUT_MODEL: &[(&str, &[&str])] = &[
    ("hints and waits, which the interpreter leaves out", &[
        "s_nop", "s_sleep", "s_delay_alu", "s_waitcnt", "s_wait_idle", "s_wait_event", "s_clause", "s_setprio", "s_wakeup",
        "s_ttracedata", "s_ttracedata_imm", "s_incperflevel", "s_decperflevel", "s_version", "v_nop", "v_pipeflush",
        "ds_nop",
    ]),
    ("caches, which are not modelled", &["s_icache_inv", "s_dcache_inv"]),
    ("ends and traps: tests/exec", &["s_endpgm", "s_endpgm_saved", "s_code_end", "s_trap", "s_sethalt"]),
    ("address probes, which have no effect on memory that is always there", &["s_atc_probe", "s_atc_probe_buffer"]),
    ("does nothing in waves of 32", &["v_permlane64_b32"]),
];

fn without_model() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    WITHOUT_MODEL.iter().chain(OWN_WITHOUT_MODEL).copied()
}

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
    all.extend(control::ops());
    all.extend(rare::ops());
    all.extend(own_ops());
    all
}

#[test]
fn every_operation_is_covered() {
    let covered = covered();
    let excepted: BTreeSet<&str> = without_model().flat_map(|(_, names)| names.iter().copied()).collect();
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
    for (why, names) in without_model() {
        for name in names {
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
    let operations = ARCH.operations();
    assert!(operations.len() > 900, "{} operations", operations.len());
    let lost: Vec<&str> = operations.difference(&found).map(|op| op.mnemonic()).collect();
    assert!(lost.is_empty(), "{lost:?}");
}
