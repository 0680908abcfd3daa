//! Pairs of operations in one instruction: every X with every Y, also where one reads what the other writes.

use crate::enc::{self, LITERAL, decode, int, v};
use crate::float;
use crate::harness::{Lane, lanes};
use crate::rig::{Asm, Launch, word};
use crate::valu::{A, B, C, D, Form, MASK, Row, lane_bytes, mask_prologue};
use crate::{ARCH, integer, minima, packed};
use rocmforge_isa::Arch;

fn model(name: &str) -> Row {
    let tables = [
        float::SINGLE,
        integer::BITS32,
        integer::ARITHMETIC32,
        packed::ROWS,
        minima::ROWS,
    ];
    *tables
        .into_iter()
        .flatten()
        .find(|(row, _)| *row == name)
        .unwrap_or_else(|| panic!("{name} has no model"))
}

/// Registers of X and Y: destination, first and second source.
fn shapes() -> Vec<([u32; 3], [u32; 3])> {
    vec![
        // Nothing in common.
        ([D, v(A), B], [D + 1, v(A + 1), B + 1]),
        // Each reads what the other writes.
        ([D, v(D + 1), B], [D + 1, v(D), B + 1]),
        ([D, v(A), D + 1], [D + 1, v(B + 1), D]),
        // Each also reads its own destination.
        ([A, v(A), B], [B + 1, v(B + 1), A]),
        ([C + 1, v(C), C + 1], [C, v(C + 1), C]),
        // Constants, and one literal for both.
        ([D, int(-3), B], [D + 1, 242, D]),
        ([D, LITERAL, D + 1], [D + 1, LITERAL, B]),
        ([D, enc::VCC, B], [D + 1, v(D), B + 1]),
    ]
}

const SOME_LITERAL: u32 = 0x4049_0fdb;

struct Pair {
    x: Form,
    y: Form,
}

fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for x in 0..16 {
        for y in 0..32 {
            for ([dx, ax, bx], [dy, ay, by]) in shapes() {
                for exec in [u32::MAX, 0x8421_a5f0] {
                    // Moves have no second source.
                    for (bx, by) in [(bx, by), (0, by), (bx, 0), (0, 0)] {
                        let mut words = enc::vopd([x, dx, ax, bx], [y, dy, ay, by]).to_vec();
                        words.push(SOME_LITERAL);
                        let Ok(inst) = decode(&words, 0) else { continue };
                        let plain = |name: &str, second: u32| (name == "v_mov_b32") == (second == 0);
                        let Some(dual) = &inst.dual else { continue };
                        if !plain(inst.op.mnemonic(), bx) || !plain(dual.op.mnemonic(), by) {
                            continue;
                        }
                        words.truncate(inst.size as usize / 4);
                        let (x, y) = (inst.clone(), (**dual).clone());
                        let form = |inst| Form {
                            words: words.clone(),
                            inst,
                            exec,
                        };
                        pairs.push(Pair { x: form(x), y: form(y) });
                        break;
                    }
                }
            }
        }
    }
    pairs
}

#[test]
fn every_pair_reads_before_it_writes() {
    let pairs = pairs();
    let ops = |side: fn(&Pair) -> &Form| {
        let names: std::collections::BTreeSet<_> = pairs.iter().map(|pair| side(pair).inst.op).collect();
        names.len()
    };
    let all = match ARCH {
        Arch::Gfx1100 => (13, 16),
        // Without v_dot2acc_f32_f16.
        Arch::Gfx1201 => (12, 15),
    };
    assert_eq!((ops(|pair| &pair.x), ops(|pair| &pair.y)), all);
    // Few lanes for each of so many pairs: the operations themselves are tested elsewhere.
    let lanes: Vec<Lane> = lanes(false).into_iter().rev().take(32).collect();
    for pairs in pairs.chunks(64) {
        check(pairs, &lanes);
    }
}

fn check(pairs: &[Pair], lanes: &[Lane]) {
    let mut asm = Asm::default();
    asm.prologue(8, 32, 2048);
    mask_prologue(&mut asm);
    for (index, pair) in pairs.iter().enumerate() {
        for reg in 0..8 {
            asm.mov(A + reg, v(2 + reg));
        }
        asm.put(&[enc::sop1(0, enc::VCC, MASK)]).set(enc::EXEC, pair.x.exec);
        asm.put(&pair.x.words).put(&[enc::sop1(0, enc::EXEC, int(-1))]);
        asm.store(A, 4, 32 * index as u32)
            .store(A + 4, 4, 32 * index as u32 + 16);
    }
    let done = Launch {
        words: &asm.0,
        lanes: lanes.len(),
        input: &lane_bytes(lanes),
        output: 2048 * lanes.len(),
        ..Launch::default()
    }
    .run();
    for (lane, output) in done.output.chunks_exact(2048).enumerate() {
        for (pair, output) in pairs.iter().zip(output.chunks_exact(32)) {
            let mut written = [None, None];
            for (slot, form) in written.iter_mut().zip([&pair.x, &pair.y]) {
                let (_, model) = model(form.inst.op.mnemonic());
                let args = form.args(lanes, lane as u32);
                *slot = (pair.x.exec >> lane & 1 != 0).then(|| (form.dst().0, model(&args), args));
            }
            for reg in 0..8u8 {
                let old = crate::valu::register(&lanes[lane], A as u8 + reg) as u32;
                let got = word(output, 4 * reg as usize);
                let new = written.iter().flatten().find(|(dst, ..)| *dst == A as u8 + reg);
                let fine = match new {
                    Some((_, out, _)) => out.value.accepts(got.into(), rocmforge_isa::Ty::F32, false),
                    None => got == old,
                };
                assert!(
                    fine,
                    "`{}`, lane {lane}: v{} went from {old:#x} to {got:#x}; models {written:x?}",
                    pair.x.inst,
                    A as u8 + reg
                );
            }
        }
    }
}
