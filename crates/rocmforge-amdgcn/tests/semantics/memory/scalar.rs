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
        let code = enc::code(name, Format::Smem);
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

pub(super) const LOADS: &[(&str, usize)] = &[
    ("s_load_b32", 1),
    ("s_load_b64", 2),
    ("s_load_b128", 4),
    ("s_load_b256", 8),
    ("s_load_b512", 16),
];
