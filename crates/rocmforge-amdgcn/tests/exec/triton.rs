//! Kernels as Triton 3.9 compiles them (`fixtures/triton_kernels.py`): target identifiers of LLVM 23, dynamic LDS, matrix instructions, on
//! gfx1201 the wave's number from `ttmp8`, and masked accesses through resource descriptors.

use crate::card::{Arg, Card, Numbers};
use half::f16;
use rocmforge_amdgcn::Tools;

const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../fixtures/triton-gfx1100.co"),
    include_bytes!("../fixtures/triton-gfx1201.co"),
];
const SOFTMAX: [&[u8]; 2] = [
    include_bytes!("../fixtures/triton-softmax-gfx1100.co"),
    include_bytes!("../fixtures/triton-softmax-gfx1201.co"),
];
/// Rows, columns, and what is summed over; a block has 32 x 32 of the results.
const M: usize = 64;
const N: usize = 96;
const K: usize = 64;

#[test]
fn a_product_of_triton() {
    for elf in OBJECTS {
        let mut numbers = Numbers(8);
        // Eighths below 2, so that every sum is exact.
        let mut operand = |count: usize| -> Vec<f16> {
            let numbers = numbers.u32s(count).into_iter();
            numbers.map(|n| f16::from_f32((n % 31) as f32 / 8.0 - 2.0)).collect()
        };
        let (a, b) = (operand(M * K), operand(K * N));
        let bits = |x: &[f16]| -> Vec<u16> { x.iter().map(|x| x.to_bits()).collect() };
        let mut card = Card::new(elf);
        let (da, db, dc) = (card.upload(&bits(&a)), card.upload(&bits(&b)), card.alloc(4 * M * N));
        let sizes = [M, N, K].map(|n| Arg::U32(n as u32));
        let [m, n, k] = sizes;
        // Two pointers that Triton adds: memory for all blocks together, and for its profiler.
        let args = [
            Arg::Ptr(da),
            Arg::Ptr(db),
            Arg::Ptr(dc),
            m,
            n,
            k,
            Arg::Ptr(0),
            Arg::Ptr(0),
        ];
        let outcome = card.launch("matmul", [M as u32 / 32, N as u32 / 32, 1], [128, 1, 1], 4096, &args);
        assert!(outcome.faults.is_empty(), "{}", outcome.faults[0]);

        let found = card.download::<f32>(dc, M * N);
        for (at, found) in found.into_iter().enumerate() {
            let products = (0..K).map(|k| a[at / N * K + k].to_f64() * b[k * N + at % N].to_f64());
            assert_eq!(
                f64::from(found),
                products.sum::<f64>(),
                "row {}, column {}",
                at / N,
                at % N
            );
        }
    }
}

/// Rows of up to 256 elements, of which a mask takes the first: what is masked out has an offset that is out of range.
#[test]
fn a_masked_softmax_of_triton() {
    /// Elements between the starts of two rows.
    const STRIDE: usize = 210;
    const ROWS: usize = 5;
    const UNTOUCHED: f32 = -7.5;
    for elf in SOFTMAX {
        for columns in [1usize, 31, 128, 200, 210] {
            let mut numbers = Numbers(columns as u64);
            // Quarters from -4 to 4.
            let x: Vec<f32> = (numbers.u32s(ROWS * STRIDE).into_iter())
                .map(|n| (n % 33) as f32 / 4.0 - 4.0)
                .collect();
            let mut card = Card::new(elf);
            card.options.tools = Tools {
                init_registers: true,
                ..Tools::all()
            };
            let (from, to) = (card.upload(&x), card.upload(&[UNTOUCHED; ROWS * STRIDE]));
            let args = [
                Arg::Ptr(from),
                Arg::Ptr(to),
                Arg::U32(columns as u32),
                Arg::U32(STRIDE as u32),
                Arg::Ptr(0),
                Arg::Ptr(0),
            ];
            let outcome = card.launch("softmax", [ROWS as u32, 1, 1], [128, 1, 1], 16, &args);
            assert!(outcome.faults.is_empty(), "{columns} columns: {}", outcome.faults[0]);

            let found = card.download::<f32>(to, ROWS * STRIDE);
            for (row, (x, found)) in x.chunks(STRIDE).zip(found.chunks(STRIDE)).enumerate() {
                let powers: Vec<f64> = x[..columns].iter().map(|&x| f64::from(x).exp()).collect();
                let sum: f64 = powers.iter().sum();
                for (column, &found) in found.iter().enumerate() {
                    let model = powers.get(column).map(|power| power / sum);
                    let right = match model {
                        Some(model) => (f64::from(found) - model).abs() <= 1e-6 * model,
                        None => found == UNTOUCHED,
                    };
                    assert!(
                        right,
                        "{columns} columns, row {row}, column {column}: {found}, not {model:?}"
                    );
                }
            }
        }
    }
}
