//! Every kernel of every object, against its reference.

use super::objects::{self, Object};
use super::{lanes, matrix, memory, numbers};
use crate::card::{Arg, Card, Numbers};
use crate::{ANY, Inputs, N, Reference};

fn kernels(file: &str) -> &'static [(&'static str, Reference)] {
    match file {
        "lanes" => lanes::KERNELS,
        "numbers" => numbers::KERNELS,
        "memory" => memory::KERNELS,
        "matrix" => matrix::KERNELS,
        _ => &[],
    }
}

fn inputs(object: &Object) -> Inputs {
    let mut random = Numbers(0xe0);
    Inputs {
        a: random.u32s(N),
        b: random.u32s(N),
        flushes: object.name.contains("flush"),
        fast: object.name.contains("fast"),
    }
}

/// What is wrong with a kernel of an object, if anything is.
fn wrong(object: &Object, kernel: &str, reference: Reference) -> Option<String> {
    let inputs = inputs(object);
    let expected = reference(&inputs);
    let mut card = Card::new(&object.elf);
    let (a, b) = (card.upload(&inputs.a), card.upload(&inputs.b));
    let out = card.upload(&vec![0xdead_beef_u32; expected.len()]);
    let outcome = card.launch(
        kernel,
        [2, 1, 1],
        [64, 1, 1],
        0,
        &[Arg::Ptr(a), Arg::Ptr(b), Arg::Ptr(out)],
    );
    if let Some(fault) = outcome.faults.first() {
        return Some(format!("{}: {kernel}: {fault}", object.name));
    }
    let ours: Vec<u32> = card.download(out, expected.len());
    let at = ours
        .iter()
        .zip(&expected)
        .position(|(ours, expected)| ours != expected && *expected != ANY)?;
    let (slot, i) = (at / N, at % N);
    Some(format!(
        "{}: {kernel}: slot {slot} of work-item {i} is {:#010x}, the reference says {:#010x} (a {:#x}, b {:#x})",
        object.name, ours[at], expected[at], inputs.a[i], inputs.b[i]
    ))
}

#[test]
fn every_kernel_computes_what_its_reference_does() {
    let objects = objects::read();
    assert_eq!(objects.len(), 80);
    let mut failures = Vec::new();
    let mut runs = 0;
    for object in &objects {
        for &(kernel, reference) in kernels(object.file()) {
            runs += 1;
            failures.extend(wrong(object, kernel, reference));
        }
    }
    println!("{} objects, {runs} launches", objects.len());
    assert!(
        failures.is_empty(),
        "{} of {runs}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
