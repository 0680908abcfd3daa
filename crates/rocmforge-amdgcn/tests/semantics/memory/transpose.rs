//! Loads of gfx1201 that transpose a matrix for the matrix instructions.
//!
//! AMD names them and says no more. What is tested is what they are for: the 16 x 16 elements of a matrix that lies in
//! memory by columns come into the registers as a matrix instruction wants its rows (`matrix.rs`), if the lanes point
//! where programs for cards point them.

use super::*;

/// Element `(row, column)`, all different in a byte and in a half.
fn element(row: usize, column: usize, bytes: usize) -> u32 {
    let n = (16 * row + column) as u32;
    if bytes == 1 { n } else { 0x1000 + 257 * n }
}

#[test]
fn matrices_by_columns_become_rows() {
    for (name, bytes) in [("global_load_tr_b64", 1usize), ("global_load_tr_b128", 2)] {
        let Some(code) = enc::find(name, Format::Global) else {
            continue;
        };
        let words = 2 * bytes as u32;
        // Column after column, of sixteen rows each.
        let data: Vec<u8> = (0..16)
            .flat_map(|column| (0..16).flat_map(move |row| element(row, column, bytes).to_le_bytes()[..bytes].to_vec()))
            .collect();
        // Where each lane points: of halves, to eight rows of one column; of bytes, the lower four lanes of each eight point
        // to the first half of four columns, the others to the second.
        let start = |lane: usize| match bytes {
            1 => (lane / 8 * 4 + lane % 4, lane / 4 % 2 * 8),
            _ => (lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8),
        };
        let input: Vec<u8> = (0..32)
            .flat_map(|lane| {
                let (column, row) = start(lane);
                ((16 * column + row) as u32 * bytes as u32).to_le_bytes()
            })
            .collect();
        for exec in [u32::MAX, 0xffff_0000] {
            let mut asm = Asm::default();
            asm.prologue(1, 4, 16).set64(6, DATA);
            for reg in 0..4 {
                asm.mov(40 + reg, int(-1));
            }
            asm.set(EXEC, exec)
                .put(&enc::flat(2, code, 40, Some(2), 0, 6, 0, false));
            asm.put(&[enc::sop1(0, EXEC, int(-1))]).store(40, 4, 0);
            let done = Launch {
                words: &asm.0,
                lanes: 32,
                input: &input,
                output: 16 * 32,
                data: &data,
                lds: 0,
                ..Launch::default()
            }
            .run();
            for lane in 0..32 {
                // Lane l holds of row l % 16 the half of the depth that its half of the wave has.
                let (row, depth) = (lane % 16, lane / 16 * 8);
                for register in 0..4 {
                    let model = if exec >> lane & 1 == 0 || register >= words {
                        u32::MAX
                    } else {
                        let per = 4 / bytes;
                        (0..per).fold(0, |all, k| {
                            let column = depth + register as usize * per + k;
                            all | element(row, column, bytes) << (8 * bytes * k)
                        })
                    };
                    let ours = word(&done.output, 16 * lane + 4 * register as usize);
                    assert_eq!(ours, model, "{name} lane {lane}, register {register}, exec {exec:#x}");
                }
            }
        }
    }
}
