//! Typed buffers: texels of every modelled format, with what their descriptor selects; ranges, unwritten bytes, and what is refused.

use super::buffer::{Descriptor, descriptor, fault, set};
use super::*;
use crate::ARCH;
use crate::enc::Buffer;
use crate::rig::Done;
use rocmforge_amdgcn::{Arch, ExecOptions, FaultKind};

/// Number, bits of a part, parts, kind: the definition by which the reference converts.
const FORMATS: [(u32, u32, usize, &str); 45] = [
    (1, 8, 1, "unorm"),
    (2, 8, 1, "snorm"),
    (3, 8, 1, "uscaled"),
    (4, 8, 1, "sscaled"),
    (5, 8, 1, "uint"),
    (6, 8, 1, "sint"),
    (7, 16, 1, "unorm"),
    (8, 16, 1, "snorm"),
    (9, 16, 1, "uscaled"),
    (10, 16, 1, "sscaled"),
    (11, 16, 1, "uint"),
    (12, 16, 1, "sint"),
    (13, 16, 1, "float"),
    (14, 8, 2, "unorm"),
    (15, 8, 2, "snorm"),
    (16, 8, 2, "uscaled"),
    (17, 8, 2, "sscaled"),
    (18, 8, 2, "uint"),
    (19, 8, 2, "sint"),
    (20, 32, 1, "uint"),
    (21, 32, 1, "sint"),
    (22, 32, 1, "float"),
    (23, 16, 2, "unorm"),
    (24, 16, 2, "snorm"),
    (27, 16, 2, "uint"),
    (28, 16, 2, "sint"),
    (29, 16, 2, "float"),
    (42, 8, 4, "unorm"),
    (43, 8, 4, "snorm"),
    (46, 8, 4, "uint"),
    (47, 8, 4, "sint"),
    (48, 32, 2, "uint"),
    (49, 32, 2, "sint"),
    (50, 32, 2, "float"),
    (51, 16, 4, "unorm"),
    (52, 16, 4, "snorm"),
    (55, 16, 4, "uint"),
    (56, 16, 4, "sint"),
    (57, 16, 4, "float"),
    (58, 32, 3, "uint"),
    (59, 32, 3, "sint"),
    (60, 32, 3, "float"),
    (61, 32, 4, "uint"),
    (62, 32, 4, "sint"),
    (63, 32, 4, "float"),
];

/// X, Y, Z, W, each where it is.
const XYZW: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;

/// A half-precision number, from its definition.
fn half(bits: u32) -> f64 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, f64::from(bits & 1023) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 => f64::INFINITY,
        _ => (1.0 + fraction) * 2f64.powi(exponent as i32 - 15),
    };
    if sign == 0 { size } else { -size }
}

/// The register of part `n` of a texel.
fn part((_, bits, _, kind): (u32, u32, usize, &str), texel: &[u8], n: usize) -> u32 {
    let size = bits as usize / 8;
    let raw = texel[n * size..][..size]
        .iter()
        .rev()
        .fold(0, |all, &byte| all << 8 | u64::from(byte));
    let signed = if raw >> (bits - 1) & 1 == 1 {
        raw as i64 - (1 << bits)
    } else {
        raw as i64
    };
    let float = |value: f64| (value as f32).to_bits();
    match kind {
        "unorm" => float(raw as f64 / ((1u64 << bits) - 1) as f64),
        "snorm" => float((signed as f64 / ((1u64 << (bits - 1)) - 1) as f64).max(-1.0)),
        "uscaled" => float(raw as f64),
        "sscaled" => float(signed as f64),
        "uint" => raw as u32,
        "sint" => signed as i32 as u32,
        _ if bits == 16 => float(half(raw as u32)),
        _ => raw as u32,
    }
}

fn name(operation: &str, values: usize) -> String {
    format!("buffer_{operation}_format_{}", &"xyzw"[..values])
}

/// Texels of a format and the bytes that a lane has: `0x3c` and less as the upper bytes, so that no half is infinite.
fn bytes(seed: usize, count: usize) -> Vec<u8> {
    (0..count)
        .map(|n| ((n + seed) * 37 % 251) as u8 & if n % 2 == 1 { 0xbb } else { 0xff })
        .collect()
}

/// Registers from 20 on, and the record whose number is in register 1.
fn indexed() -> Buffer {
    Buffer {
        data: 20,
        address: 1,
        descriptor: 8,
        soffset: NULL,
        idxen: true,
        ..Buffer::default()
    }
}

/// Loads `values` of the texel with the number of the lane, of 40 there.
fn load(d: Descriptor, values: usize, data: &[u8], unwritten: u64, options: ExecOptions) -> Done {
    let mut asm = Asm::default();
    asm.prologue(0, 4, 16);
    set(&mut asm, d, DATA);
    let fields = indexed();
    asm.put(&enc::buffer(enc::code(&name("load", values), Format::Mubuf), fields));
    asm.store(20, values as u32, 0);
    Launch {
        words: &asm.0,
        lanes: 32,
        input: &[0; 4],
        output: 16 * 32,
        data,
        unwritten,
        options,
        ..Launch::default()
    }
    .launch()
}

fn texels(number: u32, select: u32, stride: usize, records: u32) -> Descriptor {
    Descriptor {
        bits: number << 12 | select,
        ..descriptor(0, stride as u32, records)
    }
}

#[test]
fn texels_of_every_format_are_converted() {
    for format in FORMATS {
        let (number, bits, parts, kind) = format;
        let stride = parts * bits as usize / 8;
        let data = bytes(number as usize, 32 * stride);
        let one = if kind.ends_with("int") { 1 } else { 1f32.to_bits() };
        for values in 1..=4 {
            // In order; and turned round, with a constant.
            for (select, order) in [(XYZW, [0, 1, 2, 3]), (1 | 7 << 3 | 4 << 6 | 5 << 9, [9, 3, 0, 1])] {
                // 29 records: the last lanes are out of range.
                let done = load(
                    texels(number, select, stride, 29),
                    values,
                    &data,
                    0,
                    ExecOptions::default(),
                );
                assert_eq!(fault(&done), None);
                for lane in 0..32 {
                    for (value, part_of) in order.into_iter().enumerate().take(values) {
                        let model = match part_of {
                            _ if lane >= 29 => 0,
                            9 => one,
                            n if n < parts => part(format, &data[lane * stride..], n),
                            3 => one,
                            _ => 0,
                        };
                        let ours = word(&done.output, 16 * lane + 4 * value);
                        assert_eq!(ours, model, "{format:?}, {values} values, lane {lane}, value {value}");
                    }
                }
            }
        }
    }
}

#[test]
fn stores_make_texels_again() {
    for format in FORMATS {
        let (number, bits, parts, kind) = format;
        if kind.ends_with("scaled") {
            continue;
        }
        let stride = parts * bits as usize / 8;
        let data = bytes(number as usize, 32 * stride);
        for values in 1..=4 {
            let mut asm = Asm::default();
            asm.prologue(0, 4, 16);
            set(&mut asm, texels(number, XYZW, stride, 29), DATA);
            let fields = indexed();
            asm.put(&enc::buffer(enc::code(&name("load", 4), Format::Mubuf), fields));
            let other = enc::buffer(enc::code(&name("store", values), Format::Mubuf), fields);
            // To the second half.
            asm.set64(8, DATA + 32 * stride as u64 | (stride as u64) << 48)
                .put(&other);
            let mut all = data.clone();
            all.extend(vec![0xee; 32 * stride]);
            let done = Launch {
                words: &asm.0,
                lanes: 32,
                input: &[0; 4],
                output: 4,
                data: &all,
                ..Launch::default()
            }
            .launch();
            assert_eq!(fault(&done), None, "{format:?}");
            let size = bits as usize / 8;
            for lane in 0..32 {
                for n in 0..parts {
                    let place = 32 * stride + lane * stride + n * size;
                    let ours = &done.data[place..][..size];
                    // What is not given is 0, on gfx1201 the first value.
                    let from = match n < values {
                        true => Some(n),
                        false => (ARCH == Arch::Gfx1201).then_some(0),
                    };
                    let mut model: Vec<u8> = match from {
                        _ if lane >= 29 => vec![0xee; size],
                        Some(n) => data[lane * stride + n * size..][..size].to_vec(),
                        None => vec![0; size],
                    };
                    // Both least numbers are -1.
                    if kind == "snorm" && model[size - 1] == 0x80 && model[..size - 1].iter().all(|&byte| byte == 0) {
                        model[0] += 1;
                    }
                    assert_eq!(ours, model, "{format:?}, {values} values, lane {lane}, part {n}");
                }
            }
        }
    }
}

#[test]
fn formats_that_are_not_modelled_are_faults() {
    for (number, select, reason) in [
        (30, XYZW, "FORMAT"),
        (36, XYZW, "FORMAT"),
        (0, XYZW, "FORMAT"),
        (22, 2, "DST_SEL"),
    ] {
        let done = load(texels(number, select, 4, 32), 1, &[1; 128], 0, ExecOptions::default());
        let (kind, note) = fault(&done).expect("a fault");
        assert_eq!(kind, FaultKind::BufferDescriptor);
        assert!(note.contains(reason), "{note}");
    }
}

/// Texels of two bytes, of whose last ones nobody has written some.
#[test]
fn registers_of_unwritten_bytes_are_followed() {
    let data = [7; 64];
    let stored = |values, unwritten: usize| {
        let done = load(
            texels(14, XYZW, 2, 32),
            values,
            &data[unwritten..],
            unwritten as u64,
            ExecOptions::default(),
        );
        fault(&done).map(|(kind, _)| kind)
    };
    assert_eq!(stored(2, 0), None);
    assert_eq!(stored(2, 4), Some(FaultKind::UninitialisedGlobal));
    assert_eq!(
        stored(1, 1),
        None,
        "only the second part of the last texel is unwritten"
    );
    assert_eq!(stored(1, 2), Some(FaultKind::UninitialisedGlobal));
}
