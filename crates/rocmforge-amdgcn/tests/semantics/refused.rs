//! Refusals of the interpreter, with their reasons: lists for each instruction set, which `docs/simulator.md` links.
//!
//! `ROCMFORGE_BLESS=1` writes them.

use crate::ARCH;
use crate::enc::{self, int};
use crate::rig::load;
use crate::valu::{Form, forms, lowers};
use rocmforge_amdgcn::LoadError;
use rocmforge_isa::{Mods, Op};
use std::collections::{BTreeMap, BTreeSet};

const LIST: &str = match ARCH {
    rocmforge_isa::Arch::Gfx1100 => include_str!("refused/gfx1100.txt"),
    rocmforge_isa::Arch::Gfx1201 => include_str!("refused/gfx1201.txt"),
};

/// Why a kernel with these words cannot run.
pub(crate) fn reason(words: &[u32]) -> Option<String> {
    let program = load(words).expect("the object can be laid out");
    let (_, why) = program.refusals().next()?;
    Some(match why {
        LoadError::Unmodelled { why, .. } => (*why).to_owned(),
        other => panic!("{words:x?} is no instruction: {other}"),
    })
}

type Reasons = BTreeMap<String, BTreeSet<&'static str>>;

/// The same operation with the message or the barrier that runs, where others do not.
fn at_its_best(op: Op, words: &[u32]) -> Vec<u32> {
    /// The end of a wave, and the time.
    const MESSAGES: [u32; 2] = [3, 0x83];
    let mut words = words.to_vec();
    match op {
        Op::SSendmsg => words[0] |= MESSAGES[0],
        Op::SSendmsgRtnB32 | Op::SSendmsgRtnB64 => words[0] = words[0] & !0xff | MESSAGES[1],
        // The workgroup's barrier is number -1.
        Op::SBarrierWait => words[0] |= 0xffff,
        Op::SBarrierSignal | Op::SBarrierSignalIsfirst => words[0] = words[0] & !0xff | int(-1),
        _ => {}
    }
    words
}

/// Operations of which no encoding runs.
fn operations() -> Reasons {
    let mut all = Reasons::new();
    for op in ARCH.operations() {
        let words = enc::all().iter().filter(|(e, _)| e.op == op).map(|(_, words)| words);
        let reasons: Vec<Option<String>> = words.map(|words| reason(&at_its_best(op, words))).collect();
        if let Some(Some(reason)) = reasons.first().filter(|_| reasons.iter().all(Option::is_some)) {
            all.entry(reason.clone()).or_default().insert(op.mnemonic());
        }
    }
    all
}

/// Vector operations of which some form does not run that others do: modifiers.
fn modified(refused: &Reasons) -> Reasons {
    let mut all = Reasons::new();
    let names: BTreeSet<(&str, Op)> = enc::all().iter().map(|(e, _)| (e.name, e.op)).collect();
    let whole: BTreeSet<&str> = refused.values().flatten().copied().collect();
    for (name, op) in names.into_iter().filter(|(_, op)| !whole.contains(op.mnemonic())) {
        let modified = |form: &&Form| form.exec == u32::MAX && form.inst.mods != Mods::default();
        for form in forms(name).iter().filter(modified).filter(|form| !lowers(&form.words)) {
            let reason = reason(&form.words).expect("it does not lower");
            all.entry(reason).or_default().insert(op.mnemonic());
        }
    }
    all
}

fn text(title: &str, reasons: &Reasons) -> String {
    let mut text = format!("# {title}\n");
    for (reason, names) in reasons {
        text.push_str(&format!("\n{reason}\n"));
        for name in names {
            text.push_str(&format!("    {name}\n"));
        }
    }
    text
}

#[test]
fn what_is_refused_is_listed_with_its_reason() {
    let operations = operations();
    let modified = modified(&operations);
    for (reason, names) in operations.iter().chain(&modified) {
        assert!(!reason.is_empty(), "no reason for {names:?}");
    }
    let name = ARCH.name();
    let found = [
        text(&format!("Operations of {name} that do not run"), &operations),
        text(
            "Vector operations of which a form does not run, by its modifiers",
            &modified,
        ),
    ]
    .join("\n");
    if std::env::var_os("ROCMFORGE_BLESS").is_some() {
        let path = format!("{}/tests/semantics/refused/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, &found).expect("the list can be written");
        return;
    }
    assert_eq!(
        found, LIST,
        "run this test with ROCMFORGE_BLESS=1 and read what changes"
    );
}
