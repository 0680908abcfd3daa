//! Atomics of every width in every address space.

use super::*;
use crate::minima::Want::{Least, Most};
use crate::minima::{Bits, num};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Double, Single};

/// New value from the old one, the data, and the second data operand.
type Update = fn(u64, u64, u64) -> u64;

fn f32s(old: u64, data: u64) -> (f32, f32) {
    (f32::from_bits(old as u32), f32::from_bits(data as u32))
}

/// Atomics: the name after `global_atomic_`, the name after `ds_` without `rtn`, bits, and what they do. An empty name:
/// not there.
#[rustfmt::skip]
const ATOMICS: &[(&str, &str, u32, Update)] = &[
    ("add_u32", "add_u32", 32, |o, d, _| o + d),
    ("sub_u32", "sub_u32", 32, |o, d, _| o.wrapping_sub(d)),
    ("", "rsub_u32", 32, |o, d, _| d.wrapping_sub(o)),
    ("csub_u32", "", 32, |o, d, _| o.saturating_sub(d)),
    ("min_i32", "min_i32", 32, |o, d, _| (o as i32).min(d as i32) as u64),
    ("max_i32", "max_i32", 32, |o, d, _| (o as i32).max(d as i32) as u64),
    ("min_u32", "min_u32", 32, |o, d, _| o.min(d)),
    ("max_u32", "max_u32", 32, |o, d, _| o.max(d)),
    ("and_b32", "and_b32", 32, |o, d, _| o & d),
    ("or_b32", "or_b32", 32, |o, d, _| o | d),
    ("xor_b32", "xor_b32", 32, |o, d, _| o ^ d),
    ("inc_u32", "inc_u32", 32, |o, d, _| if o >= d { 0 } else { o + 1 }),
    ("dec_u32", "dec_u32", 32, |o, d, _| if o == 0 || o > d { d } else { o - 1 }),
    ("swap_b32", "storexchg_b32", 32, |_, d, _| d),
    ("cmpswap_b32", "cmpstore_b32", 32, |o, d, c| if o == c { d } else { o }),
    ("cmpswap_f32", "cmpstore_f32", 32, |o, d, c| { let (o32, c32) = f32s(o, c); if o32 == c32 { d } else { o } }),
    ("add_f32", "add_f32", 32, |o, d, _| { let (a, b) = f32s(o, d); (a + b).to_bits().into() }),
    ("min_f32", "min_f32", 32, |o, d, _| { let (a, b) = f32s(o, d); if b < a { d } else { o } }),
    ("max_f32", "max_f32", 32, |o, d, _| { let (a, b) = f32s(o, d); if b > a { d } else { o } }),
    ("", "mskor_b32", 32, |o, d, e| o & !d | e),
    ("", "wrap_b32", 32, |o, d, e| if o >= d { o - d } else { o + e }),
    ("add_u64", "add_u64", 64, |o, d, _| o.wrapping_add(d)),
    ("sub_u64", "sub_u64", 64, |o, d, _| o.wrapping_sub(d)),
    ("", "rsub_u64", 64, |o, d, _| d.wrapping_sub(o)),
    ("min_i64", "min_i64", 64, |o, d, _| (o as i64).min(d as i64) as u64),
    ("max_i64", "max_i64", 64, |o, d, _| (o as i64).max(d as i64) as u64),
    ("min_u64", "min_u64", 64, |o, d, _| o.min(d)),
    ("max_u64", "max_u64", 64, |o, d, _| o.max(d)),
    ("and_b64", "and_b64", 64, |o, d, _| o & d),
    ("or_b64", "or_b64", 64, |o, d, _| o | d),
    ("xor_b64", "xor_b64", 64, |o, d, _| o ^ d),
    ("inc_u64", "inc_u64", 64, |o, d, _| if o >= d { 0 } else { o + 1 }),
    ("dec_u64", "dec_u64", 64, |o, d, _| if o == 0 || o > d { d } else { o - 1 }),
    ("swap_b64", "storexchg_b64", 64, |_, d, _| d),
    ("cmpswap_b64", "cmpstore_b64", 64, |o, d, c| if o == c { d } else { o }),
    ("", "cmpstore_f64", 64, |o, d, c| if f64::from_bits(o) == f64::from_bits(c) { d } else { o }),
    ("", "min_f64", 64, |o, d, _| if f64::from_bits(d) < f64::from_bits(o) { d } else { o }),
    ("", "max_f64", 64, |o, d, _| if f64::from_bits(d) > f64::from_bits(o) { d } else { o }),
    ("", "mskor_b64", 64, |o, d, e| o & !d | e),
    // Of gfx1201.
    ("cond_sub_u32", "cond_sub_u32", 32, |o, d, _| if o >= d { o - d } else { o }),
    ("sub_clamp_u32", "sub_clamp_u32", 32, |o, d, _| o.saturating_sub(d)),
    ("min_num_f32", "min_num_f32", 32, |o, d, _| num(single(d), single(o), Least).to_bits() as u64),
    ("max_num_f32", "max_num_f32", 32, |o, d, _| num(single(d), single(o), Most).to_bits() as u64),
    ("", "min_num_f64", 64, |o, d, _| num(Double::read(d), Double::read(o), Least).to_bits() as u64),
    ("", "max_num_f64", 64, |o, d, _| num(Double::read(d), Double::read(o), Most).to_bits() as u64),
    ("pk_add_f16", "pk_add_f16", 32, |o, d, _| pairs(o, d, |a, b| (half::f16::from_bits(a) + half::f16::from_bits(b)).to_bits())),
    ("pk_add_bf16", "pk_add_bf16", 32, |o, d, _| pairs(o, d, |a, b| (half::bf16::from_bits(a) + half::bf16::from_bits(b)).to_bits())),
];

fn single(bits: u64) -> Single {
    Single::read(bits)
}

/// Both halves of a word.
fn pairs(old: u64, data: u64, f: impl Fn(u16, u16) -> u16) -> u64 {
    let half = |n: u32| u64::from(f((data >> (16 * n)) as u16, (old >> (16 * n)) as u16));
    half(0) | half(1) << 16
}

/// The DS name of an atomic, with or without result.
fn ds_name(base: &str, returns: bool) -> String {
    match base.rsplit_once('_') {
        Some((name, ty)) if returns => format!("ds_{name}_rtn_{ty}"),
        _ => format!("ds_{base}"),
    }
}

fn read(memory: &[u8], at: usize, wide: bool) -> u64 {
    let low = u64::from(word(memory, at));
    if wide {
        low | u64::from(word(memory, at + 4)) << 32
    } else {
        low
    }
}

fn number(words: [u32; 4], wide: bool) -> u64 {
    u64::from(words[0]) | if wide { u64::from(words[1]) << 32 } else { 0 }
}

/// What an atomic does to a lane.
fn apply(x: &mut Access, wide: bool, returns: bool, second: u64, update: Update) {
    let old = read(x.memory, x.at, wide);
    let new = update(old, number(x.data, wide), second);
    let words = [new as u32, (new >> 32) as u32];
    x.put_words(x.at, &words[..if wide { 2 } else { 1 }]);
    if returns {
        x.dst[0] = old as u32;
        if wide {
            x.dst[1] = (old >> 32) as u32;
        }
    }
}

#[test]
fn atomics() {
    for &(flat_name, lds_name, bits, update) in ATOMICS {
        let wide = bits == 64;
        let size = bits as usize / 8;
        let float = flat_name.contains("_f") || lds_name.contains("_f");
        let extreme = ["min_f", "max_f"]
            .iter()
            .any(|kind| flat_name.starts_with(kind) || lds_name.starts_with(kind));
        let accept: Accept = match (extreme, float) {
            _ if lds_name.contains("_num_") => same,
            _ if lds_name.starts_with("pk_add") => same_halves,
            (true, _) => same_number,
            (_, true) => same_float,
            _ => same,
        };
        for (space, prefix) in SPACES {
            if matches!(space, Space::Private | Space::PrivateBase | Space::PrivateBoth) {
                continue;
            }
            for returns in [false, true] {
                let lds = space == Space::Lds;
                let base = if lds { lds_name } else { flat_name };
                let name = if lds {
                    ds_name(base, returns)
                } else {
                    format!("{prefix}atomic_{base}")
                };
                let Some(code) = enc::find(&name, space.format()) else {
                    continue;
                };
                if base.is_empty() {
                    continue;
                }
                let compares = base.contains("cmp");
                let words = if lds {
                    let second = if compares || base.contains("mskor") || base.contains("wrap") {
                        SECOND
                    } else {
                        0
                    };
                    let dst = if returns { RESULT } else { 0 };
                    enc::ds(code, dst, ADDRESS, [FIRST, second], space.offset() as u32).to_vec()
                } else {
                    encode(space, code, returns, true, returns)
                };
                // Some return always.
                let Ok(inst) = decode(&words, 0) else { continue };
                let text = inst.to_string();
                // Minima and maxima of NaN: the text keeps what is there, compilers count on the number. Left open.
                let nan = !extreme;
                let case = cases(space, size, size, float, nan);
                for exec in EXECS {
                    let model = |x: &mut Access| {
                        // FLAT and GLOBAL keep the value to compare with behind the data.
                        let behind = [x.data[if wide { 2 } else { 1 }], x.data[3], 0, 0];
                        let second = number(if lds { x.data2 } else { behind }, wide);
                        apply(x, wide, returns, second, update);
                    };
                    check(&words, space, &case, exec, accept, &model, &text);
                }
            }
        }
    }
}

pub(super) fn names() -> Vec<String> {
    let mut names = Vec::new();
    for (flat, ds, ..) in ATOMICS {
        if !flat.is_empty() {
            names.extend(["flat", "global", "buffer"].map(|space| format!("{space}_atomic_{flat}")));
        }
        if !ds.is_empty() {
            names.extend([false, true].map(|returns| ds_name(ds, returns)));
        }
    }
    names
}
