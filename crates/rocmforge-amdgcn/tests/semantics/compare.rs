//! Compares and classes, into a mask and into `exec`.

use crate::valu::{Args, Row, check, named};
use crate::value::{Out, flag};
use rocmforge_isa::Op;
use std::cmp::Ordering;

pub(crate) type Relation = fn(Option<Ordering>) -> bool;
/// The order of an instruction's two operands.
type Order = fn(&Args) -> Option<Ordering>;

/// What each relation says of less, equal, greater and unordered.
#[rustfmt::skip]
pub(crate) const FLOATS: [(&str, Relation); 16] = [
    ("f", |_| false),
    ("lt", |o| o == Some(Ordering::Less)),
    ("eq", |o| o == Some(Ordering::Equal)),
    ("le", |o| matches!(o, Some(Ordering::Less | Ordering::Equal))),
    ("gt", |o| o == Some(Ordering::Greater)),
    ("lg", |o| matches!(o, Some(Ordering::Less | Ordering::Greater))),
    ("ge", |o| matches!(o, Some(Ordering::Greater | Ordering::Equal))),
    ("o", |o| o.is_some()),
    ("u", |o| o.is_none()),
    ("nge", |o| !matches!(o, Some(Ordering::Greater | Ordering::Equal))),
    ("nlg", |o| !matches!(o, Some(Ordering::Less | Ordering::Greater))),
    ("ngt", |o| o != Some(Ordering::Greater)),
    ("nle", |o| !matches!(o, Some(Ordering::Less | Ordering::Equal))),
    ("neq", |o| o != Some(Ordering::Equal)),
    ("nlt", |o| o != Some(Ordering::Less)),
    ("t", |_| true),
];

#[rustfmt::skip]
const INTEGERS: [(&str, Relation); 8] = [
    ("f", |_| false),
    ("lt", |o| o == Some(Ordering::Less)),
    ("eq", |o| o == Some(Ordering::Equal)),
    ("le", |o| o != Some(Ordering::Greater)),
    ("gt", |o| o == Some(Ordering::Greater)),
    ("ne", |o| o != Some(Ordering::Equal)),
    ("ge", |o| o != Some(Ordering::Less)),
    ("t", |_| true),
];

/// How the operands of a type are ordered.
#[rustfmt::skip]
const TYPES: [(&str, bool, Order); 9] = [
    ("f16", true, |x| x.h(0).partial_cmp(&x.h(1))),
    ("f32", true, |x| x.f(0).partial_cmp(&x.f(1))),
    ("f64", true, |x| x.d(0).partial_cmp(&x.d(1))),
    ("i16", false, |x| x.ih(0).partial_cmp(&x.ih(1))),
    ("u16", false, |x| x.uh(0).partial_cmp(&x.uh(1))),
    ("i32", false, |x| x.i(0).partial_cmp(&x.i(1))),
    ("u32", false, |x| x.u(0).partial_cmp(&x.u(1))),
    ("i64", false, |x| (x.s[0] as i64).partial_cmp(&(x.s[1] as i64))),
    ("u64", false, |x| x.s[0].partial_cmp(&x.s[1])),
];

/// Class of a float of `mantissa` bits and `exponent` bits, as a bit number.
fn class(bits: u64, exponent: u32, mantissa: u32) -> u32 {
    let negative = bits >> (exponent + mantissa) & 1 == 1;
    let fraction = bits & ((1 << mantissa) - 1);
    let power = bits >> mantissa & ((1 << exponent) - 1);
    let signed = |minus, plus| if negative { minus } else { plus };
    match (power == (1 << exponent) - 1, power, fraction) {
        (true, _, 0) => signed(2, 9),
        // The first bit of the fraction tells a quiet NaN.
        (true, ..) => (fraction >> (mantissa - 1)) as u32,
        (_, 0, 0) => signed(5, 6),
        (_, 0, _) => signed(4, 7),
        _ => signed(3, 8),
    }
}

fn is_class(x: &Args, exponent: u32, mantissa: u32) -> Out {
    flag(x.s[1] >> class(x.s[0], exponent, mantissa) & 1 == 1)
}

#[rustfmt::skip]
const CLASSES: &[Row] = &[
    ("class_f16", |x| is_class(x, 5, 10)),
    ("class_f32", |x| is_class(x, 8, 23)),
    ("class_f64", |x| is_class(x, 11, 52)),
];

const PREFIXES: [&str; 2] = ["v_cmp", "v_cmpx"];

/// Every comparison: its mnemonic, relation and type.
fn comparisons() -> impl Iterator<Item = (String, Relation, Order)> {
    PREFIXES.into_iter().flat_map(|prefix| {
        TYPES.into_iter().flat_map(move |(ty, float, order)| {
            let relations: &[_] = if float { &FLOATS } else { &INTEGERS };
            relations
                .iter()
                .map(move |&(name, relation)| (format!("{prefix}_{name}_{ty}"), relation, order))
        })
    })
}

#[test]
fn comparisons_of_all_types() {
    for (name, relation, order) in comparisons() {
        check(&name, |x| flag(relation(order(x))));
    }
}

#[test]
fn classes_of_floats() {
    for prefix in PREFIXES {
        for (name, model) in CLASSES {
            check(&format!("{prefix}_{name}"), model);
        }
    }
}

pub(crate) fn ops() -> Vec<Op> {
    let classes = PREFIXES
        .into_iter()
        .flat_map(|prefix| CLASSES.iter().map(move |(name, _)| format!("{prefix}_{name}")));
    comparisons()
        .map(|(name, ..)| name)
        .chain(classes)
        .filter_map(|name| named(&name))
        .collect()
}
