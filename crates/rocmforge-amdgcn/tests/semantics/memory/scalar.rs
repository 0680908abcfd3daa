//! Scalar loads, plain and through a buffer descriptor.

use super::*;

/// A descriptor's base, stride and number of records; past the end there are zeros.
#[test]
fn scalar_buffer_loads() {
    let data: Vec<u8> = (0..WINDOW as u32 / 4)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    for (name, words) in LOADS {
        let name = name.replace("s_load", "s_buffer_load");
        let Some(code) = enc::find(&name, Format::Smem) else {
            continue;
        };
        for (base, stride, records, register, imm) in [
            (0, 0, 4096, 0, 16),
            (64, 0, 40, 8, 12),
            (128, 16, 3, 20, 0),
            (0, 4, 1, 0, 0),
        ] {
            let mut asm = Asm::default();
            asm.prologue(0, 4, 64)
                .set64(8, (DATA + base) | stride << 48)
                .set(10, records)
                .set(11, 0);
            asm.set(6, register);
            asm.put(&enc::smem(code, 16, 8, 6, imm));
            for reg in 0..16 {
                asm.mov(20 + reg, 16 + reg);
            }
            for four in 0..4 {
                asm.store(20 + 4 * four, 4, 16 * four);
            }
            let done = Launch {
                words: &asm.0,
                lanes: 32,
                input: &[0; 4],
                output: 64 * 32,
                data: &data,
                lds: 0,
                ..Launch::default()
            }
            .run();
            let size = records as usize * (stride as usize).max(1);
            for n in 0..*words {
                let offset = register as usize + imm as usize + 4 * n;
                let model = if offset + 4 <= size {
                    word(&data, base as usize + offset)
                } else {
                    0
                };
                assert_eq!(
                    word(&done.output, 4 * n),
                    model,
                    "{name} word {n}, offset {offset}, size {size}"
                );
            }
        }
    }
}

/// Scalar loads: words, by constant offset, by register, by both.
#[test]
fn scalar_loads() {
    let data: Vec<u8> = (0..WINDOW as u32 / 4)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect();
    for (name, words) in LOADS {
        let Some(code) = enc::find(name, Format::Smem) else {
            continue;
        };
        for (base, offset, imm) in [
            (0, None, 0),
            (64, None, -64),
            (128, None, 1028),
            (0, Some(96), 0),
            (256, Some(40), -20),
        ] {
            let mut asm = Asm::default();
            asm.prologue(0, 4, 64).set64(4, DATA + base);
            for reg in 16..34 {
                asm.set(reg, 0xdead_0000 | reg);
            }
            asm.set(6, offset.unwrap_or(0));
            asm.put(&enc::smem(code, 16, 4, if offset.is_some() { 6 } else { NULL }, imm));
            for reg in 0..16 {
                asm.mov(20 + reg, 16 + reg);
            }
            for four in 0..4 {
                asm.store(20 + 4 * four, 4, 16 * four);
            }
            let done = Launch {
                words: &asm.0,
                lanes: 32,
                input: &[0; 4],
                output: 64 * 32,
                data: &data,
                lds: 0,
                ..Launch::default()
            }
            .run();
            let at = (base as i64 + i64::from(offset.unwrap_or(0)) + i64::from(imm)) as usize;
            for n in 0..16 {
                let model = if n < *words {
                    word(&data, at + 4 * n)
                } else {
                    0xdead_0010 + n as u32
                };
                assert_eq!(word(&done.output, 4 * n), model, "{name} word {n} from {at:#x}");
            }
        }
    }
}

/// A byte or half word of gfx1201: its bytes, and whether the sign fills the rest of the register.
pub(super) const NARROW: &[(&str, usize, bool)] = &[
    ("s_load_u8", 1, false),
    ("s_load_i8", 1, true),
    ("s_load_u16", 2, false),
    ("s_load_i16", 2, true),
];

#[test]
fn narrow_loads() {
    let data: Vec<u8> = (0..WINDOW as u32).map(|n| (n * 37 + 201) as u8).collect();
    for (name, bytes, signed) in NARROW {
        for (base, register, imm) in [(0, 0u32, 0), (64, 10, -10), (128, 0, 3 * *bytes as i32), (0, 40, 200)] {
            for records in [
                None,
                Some(register.wrapping_add_signed(imm) + *bytes as u32),
                Some(register.wrapping_add_signed(imm)),
            ] {
                let name = match records {
                    None => (*name).to_owned(),
                    Some(_) => name.replace("s_load", "s_buffer_load"),
                };
                let Some(code) = enc::find(&name, Format::Smem) else {
                    continue;
                };
                if records.is_some() && imm < 0 {
                    continue;
                }
                let mut asm = Asm::default();
                asm.prologue(0, 4, 4)
                    .set64(8, DATA + base)
                    .set(10, records.unwrap_or(0))
                    .set(11, 0)
                    .set(6, register);
                asm.put(&enc::smem(code, 16, 8, 6, imm)).mov(20, 16).store(20, 1, 0);
                let done = Launch {
                    words: &asm.0,
                    lanes: 32,
                    input: &[0; 4],
                    output: 4 * 32,
                    data: &data,
                    lds: 0,
                    ..Launch::default()
                }
                .run();
                let at = base as usize + register.wrapping_add_signed(imm) as usize;
                // The last of the records lets nothing through.
                let inside = records.is_none_or(|size| size as usize + base as usize >= at + bytes);
                let raw = (0..*bytes).fold(0, |all, n| all | u32::from(data[at + n]) << (8 * n));
                let unused = 32 - 8 * *bytes as u32;
                let model = match (inside, signed) {
                    (false, _) => 0,
                    (true, true) => ((raw << unused) as i32 >> unused) as u32,
                    (true, false) => raw,
                };
                assert_eq!(word(&done.output, 0), model, "{name} at {at:#x} of {records:?}");
            }
        }
    }
}

pub(super) const LOADS: &[(&str, usize)] = &[
    ("s_load_b32", 1),
    ("s_load_b64", 2),
    ("s_load_b96", 3),
    ("s_load_b128", 4),
    ("s_load_b256", 8),
    ("s_load_b512", 16),
];
