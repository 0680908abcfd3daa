//! Products of packed weights with activations of 8 bits.

use crate::support::{Device, device, device_with, refused};
use crate::weights::{blocks, up};
use rocmforge_kernels::{
    Fault, Faults, GluKind, HalfRows, JointProduct, KernelResult, Packed16Tiles, PackedWeights, Q8Activations,
    Residual, RowInput, RowNorm, WeightPacking, WeightType, reference,
};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::rng;

fn packable() -> impl Iterator<Item = WeightType> {
    WeightType::ALL.into_iter().filter(|ty| ty.is_packable())
}

/// `n` bytes that no kernel has written.
fn poisoned(d: &Device, n: usize) -> HipBuffer<u8> {
    up(d, &vec![0xA5; n])
}

fn pack(d: &Device, ty: WeightType, w: &[u8], shape: [usize; 2]) -> PackedWeights {
    d.kernels
        .pack_weight(d.stream(), ty, &up(d, w), poisoned(d, w.len()), shape)
        .expect("packs")
}

/// Quantises rows of `k`, and gives the bytes too.
fn quantize(d: &Device, x: &[f32], k: usize) -> (Q8Activations, Vec<u8>) {
    let m = x.len() / k;
    let to = poisoned(d, Q8Activations::byte_len(m, k).expect("whole blocks"));
    let q8 = d.kernels.quantize_q8(d.stream(), &d.up(x), to.clone(), [m, k]);
    (q8.expect("quantises"), to.to_vec(d.stream()).expect("download"))
}

/// A block of 8-bit activations as memory holds it.
struct Block {
    integers: Vec<i8>,
    d: f32,
    sums: [i16; 2],
}

fn decode(bytes: &[u8]) -> Vec<Block> {
    let n = bytes.len() / 40;
    let part = |i: usize| {
        let integers = [&bytes[16 * i..][..16], &bytes[16 * (n + i)..][..16]].concat();
        let rest = &bytes[32 * n + 8 * i..][..8];
        Block {
            integers: integers.iter().map(|b| b.cast_signed()).collect(),
            d: f32::from_le_bytes(rest[..4].try_into().unwrap()),
            sums: [4, 6].map(|at| i16::from_le_bytes([rest[at], rest[at + 1]])),
        }
    };
    (0..n).map(part).collect()
}

/// The values that 8-bit activations stand for.
fn values(bytes: &[u8]) -> Vec<f64> {
    let blocks = decode(bytes);
    let values = |b: &Block| {
        b.integers
            .iter()
            .map(|&q| f64::from(q) * f64::from(b.d))
            .collect::<Vec<_>>()
    };
    blocks.iter().flat_map(values).collect()
}

/// One product against the definition with the activations that the device made, and against the one with f32 activations.
fn product(d: &Device, ty: WeightType, [m, n, k]: [usize; 3], with: [bool; 2]) {
    let mut random = rng((m * 1_000_000 + n * 1000 + k) as u64);
    let w = blocks(ty, &mut random, n * k / ty.block_len());
    let (x, bias, residual) = (random.vec_in(m * k, -1.0, 1.0), random.vec(n), random.vec(m * n));
    let [bias, residual] = [&bias, &residual].map(Vec::as_slice);
    let (bias, residual) = (with[0].then_some(bias), with[1].then_some(residual));
    let (packed, y, sum) = (pack(d, ty, &w, [n, k]), d.out(m * n), d.out(m * n));
    let (q8, bytes) = quantize(d, &x, k);
    let on_device = [bias, residual].map(|values| values.map(|values| d.up(values)));
    let added = on_device[1].as_ref().map(|of| Residual { of, sum: &sum });
    d.kernels
        .matvec_q8(d.stream(), &packed, &q8, on_device[0].as_ref(), added, &y)
        .unwrap();
    let actual = d.get(if added.is_some() { &sum } else { &y });

    let input = values(&bytes);
    let expected = reference::matvec_q8(ty, &w, &input, bias, residual, k);
    // Rounding errors grow with the sum of the products' sizes.
    let weights = reference::dequantize(ty, &w);
    let size = |x: &[f64], w: &[f64]| x.iter().zip(w).map(|(x, w)| (x * w).abs()).sum::<f64>();
    let sizes = input.chunks(k).flat_map(|x| weights.chunks(k).map(move |w| size(x, w)));
    let limit = 5e-7 * sizes.fold(1.0, f64::max);
    assert_close(&actual, &expected, &[m, n], Tolerance::Absolute(limit));

    // The bound that ggml's tests have for products.
    let exact = reference::matmul_weight(ty, &w, &x, None, k);
    let rest = reference::matvec_q8(ty, &w, &vec![0.0; m * k], bias, residual, k);
    let errors = actual
        .iter()
        .zip(&exact)
        .zip(&rest)
        .map(|((&y, e), r)| (f64::from(y) - r - e).powi(2));
    let error = errors.sum::<f64>() / exact.iter().map(|e| e * e).sum::<f64>().max(1e-12);
    if n * k >= 1024 {
        assert!(error <= 5e-4, "{ty} [{m}, {n}, {k}]: NMSE {error:.1e}");
    }
}

#[test]
fn a_vector_at_odd_shapes_of_every_type() {
    let d = device();
    for ty in packable() {
        let block = ty.block_len();
        let depths = [block, 3 * block, 1024, 1024 + block];
        for (k, n) in depths.into_iter().zip([1, 31, 33, 129]) {
            product(&d, ty, [1, n, k], [n == 31, n == 129]);
        }
    }
}

#[test]
fn few_rows_are_shared_by_the_teams_of_a_block() {
    let d = device();
    // One group of rows, 16 steps: two to a team.
    product(&d, WeightType::Q4_0, [1, 3, 16_384], [true, true]);
    product(&d, WeightType::Q6K, [2, 2, 7_168], [true, true]);
}

#[test]
fn rows_longer_than_lds() {
    let d = device();
    product(&d, WeightType::Q4_0, [1, 5, 16_416], [true, true]);
    product(&d, WeightType::Q4_1, [3, 5, 8_224], [true, true]);
    product(&d, WeightType::Q4K, [8, 3, 8_448], [true, true]);
}

#[test]
fn more_groups_than_blocks_of_the_grid() {
    let d = device();
    let most = 2 * d.lease().backend().device().multiprocessors as usize;
    product(&d, WeightType::Q8_0, [1, 2 * (most + most / 3) + 1, 96], [false, false]);
}

#[test]
fn integers_scales_and_sums_are_those_of_the_definition() {
    let d = device();
    for (m, k) in [(1, 32), (1, 1056), (3, 96), (8, 4096)] {
        let mut random = rng(k as u64);
        let mut x = random.vec_in(m * k, -3.0, 3.0);
        for (i, block) in x.chunks_mut(32).enumerate() {
            // Blocks of all magnitudes.
            let scale = 10f32.powi(i as i32 % 60 - 25);
            block.iter_mut().for_each(|v| *v *= scale);
        }
        let (_, bytes) = quantize(&d, &x, k);
        let (integers, scales) = reference::quantize_q8(&x);
        for (i, block) in decode(&bytes).iter().enumerate() {
            let d = f64::from(block.d);
            assert!(
                (d - scales[i]).abs() <= 2e-7 * scales[i],
                "block {i}: {d} is not {}",
                scales[i]
            );
            for (e, (&q, &wanted)) in block.integers.iter().zip(&integers[32 * i..]).enumerate() {
                // The device's quotient may round another way where it lies between two integers.
                let quotient = f64::from(x[32 * i + e]) / scales[i];
                let tie = (quotient.abs().fract() - 0.5).abs() < 1e-4;
                let near = (q - wanted).abs() <= i8::from(tie);
                assert!(near, "block {i}, element {e}: {q} is not {wanted}, of {quotient}");
            }
            let sum = |range: &[i8]| range.iter().map(|&q| i16::from(q)).sum::<i16>();
            assert_eq!(
                block.sums,
                [sum(&block.integers[..16]), sum(&block.integers[16..])],
                "block {i}"
            );
        }
    }
}

#[test]
fn zeros_tiny_huge_and_no_numbers() {
    let d = device();
    let mut x = vec![0f32; 32 * 7];
    x[32] = -1e-31; // below 2^-100
    x[64] = 1e-29;
    x[96] = f32::MAX;
    x[97] = -f32::MAX;
    x[128] = f32::INFINITY;
    x[160..192].fill(1.0);
    x[170] = f32::NAN;
    x[192] = -2.0;
    let (q8, bytes) = quantize(&d, &x, 32);
    let found = decode(&bytes);
    assert_eq!((found[0].d, found[1].d), (0.0, 0.0));
    assert!(
        found[..2]
            .iter()
            .all(|b| b.integers.iter().all(|&q| q == 0) && b.sums == [0, 0])
    );
    assert_eq!(
        (found[2].integers[0], found[3].integers[0], found[3].integers[1]),
        (127, 127, -127)
    );
    assert!(found[3].d.is_finite() && found[4].d.is_infinite() && found[5].d.is_nan());
    assert_eq!((found[6].integers[0], found[6].sums), (-127, [-127, 0]));

    // Scales of 0 and 1, beside each kind of activations.
    let mut w = [0x5A; 36];
    w[..2].copy_from_slice(&0u16.to_le_bytes());
    w[18..20].copy_from_slice(&0x3C00u16.to_le_bytes());
    let (packed, y) = (pack(&d, WeightType::Q4_0, &w, [2, 32]), d.out(14));
    d.kernels.matvec_q8(d.stream(), &packed, &q8, None, None, &y).unwrap();
    let y = d.get(&y);
    assert_eq!((y[0], y[2], y[4], y[6]), (0.0, 0.0, 0.0, 0.0), "weights of scale 0");
    assert!(y[5] != 0.0 && y[7].abs() <= f32::MAX, "{} {}", y[5], y[7]);
    assert!(y[9].is_nan() && y[10].is_nan() && y[11].is_nan() && y[13].is_finite());
}

#[test]
fn a_sum_may_be_the_product() {
    let d = device();
    let (ty, m, n, k) = (WeightType::Q5_1, 2, 9, 64);
    let mut random = rng(11);
    let w = blocks(ty, &mut random, n * k / 32);
    let (x, residual) = (random.vec(m * k), random.vec(m * n));
    let (packed, (q8, _)) = (pack(&d, ty, &w, [n, k]), quantize(&d, &x, k));
    let [apart, y, both] = [(); 3].map(|()| d.out(m * n));
    let of = &d.up(&residual);
    for (sum, y) in [(&apart, &y), (&both, &both)] {
        let added = Some(Residual { of, sum });
        d.kernels.matvec_q8(d.stream(), &packed, &q8, None, added, y).unwrap();
    }
    let sums: Vec<f32> = d.get(&y).iter().zip(&residual).map(|(y, r)| y + r).collect();
    assert_eq!(d.get(&apart), sums);
    assert_eq!(d.get(&both), sums);
}

/// A product of one row of f32, against the definition with the activations that `quantize_q8` makes of the same numbers.
fn row_product(d: &Device, ty: WeightType, [n, k]: [usize; 2], with: [bool; 2]) {
    let mut random = rng((n * 1000 + k) as u64);
    let w = blocks(ty, &mut random, n * k / ty.block_len());
    let packed = pack(d, ty, &w, [n, k]);
    let (x, weight, residual) = (random.vec(k), random.vec(k), random.vec(n));
    let [x_in, weight_in, residual_in] = [&x, &weight, &residual].map(|values| d.up(values));
    let [normed, y, sum] = [d.out(k), d.out(n), d.out(n)];
    let (eps, [norm, added]) = (1e-5, with);
    let norm = norm.then_some(RowNorm {
        weight: &weight_in,
        eps,
        y: &normed,
    });
    let added = added.then_some(Residual {
        of: &residual_in,
        sum: &sum,
    });
    let input = RowInput { x: &x_in, norm };
    d.kernels
        .matvec_q8_row(d.stream(), &packed, input, None, added, &y)
        .unwrap();

    let mut multiplied = x.clone();
    if norm.is_some() {
        let squares: f64 = x.iter().map(|&v| f64::from(v).powi(2)).sum();
        let factor = 1.0 / (squares / k as f64 + f64::from(eps)).sqrt();
        let expected = x
            .iter()
            .zip(&weight)
            .map(|(&x, &w)| f64::from(x) * factor * f64::from(w));
        multiplied = d.get(&normed);
        assert_close(
            &multiplied,
            &expected.collect::<Vec<_>>(),
            &[k],
            Tolerance::Absolute(2e-5),
        );
    }
    let (_, bytes) = quantize(d, &multiplied, k);
    let input = values(&bytes);
    let weights = reference::dequantize(ty, &w);
    let sizes = weights
        .chunks(k)
        .map(|w| w.iter().zip(&input).map(|(w, x)| (w * x).abs()).sum::<f64>());
    let limit = Tolerance::Absolute(5e-7 * sizes.fold(1.0, f64::max));
    assert_close(
        &d.get(&y),
        &reference::matvec_q8(ty, &w, &input, None, None, k),
        &[n],
        limit,
    );
    if added.is_some() {
        let expected = reference::matvec_q8(ty, &w, &input, None, Some(&residual), k);
        assert_close(&d.get(&sum), &expected, &[n], limit);
    }
}

#[test]
fn the_longest_row_of_floats_is_rounded_and_normed_on_the_way() {
    let d = device();
    row_product(&d, WeightType::Q8_0, [5, 16_384], [false, true]);
    row_product(&d, WeightType::Q4_1, [2, 16_384 - 32], [true, true]);
}

#[test]
fn rows_of_floats_that_do_not_fit_are_refused() {
    let d = device();
    let (y, normed) = (d.out(3), d.out(32));
    let row = |k: usize, eps: f32, text| {
        let (_, w) = both_orders(&d, WeightType::Q4_0, [3, k], 1);
        let x = d.up(&vec![1.0; k]);
        let norm = RowNorm {
            weight: &x,
            eps,
            y: &normed,
        };
        let input = RowInput {
            x: &x,
            norm: Some(norm),
        };
        refused(d.kernels.matvec_q8_row(d.stream(), &w, input, None, None, &y), text);
    };
    row(16_416, 0.0, "k is 16416; it must be 1 to 16384");
    row(32, f32::NAN, "eps");
}

#[test]
fn what_does_not_fit_is_refused() {
    let d = device();
    let (s, k) = (d.stream(), &d.kernels);
    let refused = |text, result: KernelResult<()>| refused(result, text);
    let w = up(&d, &[0; 36]);
    let pack = |ty, w: &HipBuffer<u8>, to: &HipBuffer<u8>, shape| k.pack_weight(s, ty, w, to.clone(), shape).map(drop);
    let q4_0 = WeightType::Q4_0;
    refused(
        "pack_weight: f16 weights cannot be packed",
        pack(WeightType::F16, &w, &poisoned(&d, 36), [1, 18]),
    );
    refused(
        "must be whole blocks (33 and 32)",
        pack(q4_0, &w, &poisoned(&d, 36), [2, 33]),
    );
    let shifted = poisoned(&d, 38).view(2..38).expect("inside");
    refused("it must be a multiple of 16", pack(q4_0, &w, &shifted, [2, 32]));

    let x = d.up(&[1.0; 64]);
    let quantize = |to: &HipBuffer<u8>, shape| k.quantize_q8(s, &x, to.clone(), shape).map(drop);
    refused(
        "a row must be whole blocks (16 and 32)",
        quantize(&poisoned(&d, 80), [4, 16]),
    );
    assert_eq!(Q8Activations::byte_len(3, 64), Some(240));
    assert_eq!(Q8Activations::byte_len(3, 65), None);

    let packed = k.pack_weight(s, q4_0, &w, poisoned(&d, 36), [2, 32]).expect("packs");
    assert_eq!((packed.ty(), packed.n(), packed.k()), (q4_0, 2, 32));
    let rows = |m: usize, cols: usize| {
        let (x, to) = (d.up(&vec![1.0; m * cols]), poisoned(&d, m * cols / 32 * 40));
        k.quantize_q8(s, &x, to, [m, cols]).expect("quantises")
    };
    let product = |x: &Q8Activations, y: &HipBuffer<f32>| k.matvec_q8(s, &packed, x, None, None, y);
    refused("m is 9; it must be 1 to 8", product(&rows(9, 32), &d.out(18)));
    refused("as many columns (32 and 64)", product(&rows(1, 64), &d.out(2)));
    refused("y has 3 elements", product(&rows(1, 32), &d.out(3)));
    let (one, y) = (rows(1, 32), d.out(4));
    refused(
        "bias has 4 elements",
        k.matvec_q8(s, &packed, &one, Some(&y), None, &d.out(2)),
    );
}

/// Random blocks of a type, in both orders.
fn both_orders(d: &Device, ty: WeightType, [n, k]: [usize; 2], seed: u64) -> (HipBuffer<u8>, PackedWeights) {
    let w = blocks(ty, &mut rng(seed), n * k / ty.block_len());
    (up(d, &w), pack(d, ty, &w, [n, k]))
}

#[test]
fn products_of_many_rows_are_those_of_ggmls_blocks_bit_for_bit() {
    let d = device();
    for (index, ty) in packable().enumerate() {
        for (m, n, k) in [(9, 67, 3 * ty.block_len()), (65, 3, ty.block_len())] {
            let (w, packed) = both_orders(&d, ty, [n, k], index as u64);
            let mut random = rng(20 + index as u64);
            let (x, bias) = (d.up(&random.vec(m * k)), d.up(&random.vec(n)));
            let bias = (n == 3).then_some(&bias);
            let (found, expected) = (d.out(m * n), d.out(m * n));
            d.kernels
                .matmul_packed(d.stream(), &packed, &x, bias, &found, m)
                .unwrap();
            d.kernels
                .matmul_weight(d.stream(), ty, &w, &x, bias, &expected, m, n, k)
                .unwrap();
            d.same(&found, &d.get(&expected), &[m, n]);
        }
    }
}

#[test]
fn rows_of_a_packed_table_are_those_of_ggmls_blocks_bit_for_bit() {
    let d = device();
    for (index, ty) in packable().enumerate() {
        let (n, k) = (37, 5 * ty.block_len());
        let (w, packed) = both_orders(&d, ty, [n, k], index as u64);
        let ids = HipBuffer::from_slice(d.stream(), &[36u32, 0, 17, 17, 1, 5, 20, 30, 2], "ids").expect("room");
        let word = HipBuffer::from_slice(d.stream(), &[Fault::NONE], "faults").expect("room");
        let faults = Faults { word: &word, tag: 3 };
        let (found, expected) = (d.out(9 * k), d.out(9 * k));
        d.kernels
            .get_rows_packed(d.stream(), &packed, &ids, &found, faults)
            .unwrap();
        d.kernels
            .get_rows_of_tables(d.stream(), ty, &w, &ids, &expected, [1, n, k], faults)
            .unwrap();
        d.same(&found, &d.get(&expected), &[9, k]);
        assert_eq!(word.to_vec(d.stream()).expect("download"), [Fault::NONE]);

        let ids = HipBuffer::from_slice(d.stream(), &[36u32, 37], "ids").expect("room");
        let two = d.out(2 * k);
        d.kernels
            .get_rows_packed(d.stream(), &packed, &ids, &two, faults)
            .unwrap();
        let rows = d.get(&two);
        assert!(rows[..k].iter().all(|v| v.is_finite()) && rows[k..].iter().all(|v| v.is_nan()));
        let fault = Fault::decode(word.to_vec(d.stream()).expect("download")[0]).expect("a fault");
        assert_eq!((fault.tag, fault.position, fault.index), (3, 1, 37));
    }
}

#[test]
fn every_index_has_its_entry() {
    let d = device();
    // Row n has index n everywhere and a scale of 1; the activations pick one weight out.
    for (ty, table) in [
        (
            WeightType::Iq4Nl,
            [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113],
        ),
        (
            WeightType::Mxfp4,
            [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12],
        ),
    ] {
        let scale: &[u8] = if ty == WeightType::Mxfp4 { &[128] } else { &[0, 0x3C] };
        let w: Vec<u8> = (0..16u8).flat_map(|n| [scale, &[n << 4 | n; 16]].concat()).collect();
        let packed = pack(&d, ty, &w, [16, 32]);
        let expected = table.map(|v: i16| f32::from(v));
        for j in 0..32 {
            let mut x = [0.0; 32];
            x[j] = 127.0;
            let (q8, _) = quantize(&d, &x, 32);
            let y = d.out(16);
            d.kernels.matvec_q8(d.stream(), &packed, &q8, None, None, &y).unwrap();
            d.same(&y, &expected.map(|v| 127.0 * v), &[16]);
        }
    }
}

#[test]
fn exponents_of_mxfp4_at_both_ends() {
    let d = device();
    let ty = WeightType::Mxfp4;
    let exponents = [0u8, 1, 2, 3, 127, 200, 252, 253, 254, 255];
    let (n, k) = (exponents.len(), 32);
    let nibbles: [u8; 16] = std::array::from_fn(|i| (i * 17) as u8);
    let w: Vec<u8> = exponents.iter().flat_map(|&e| [&[e][..], &nibbles].concat()).collect();
    let (packed, y) = (pack(&d, ty, &w, [n, k]), d.out(n * k));
    let ids = d.ids(&(0..n as u32).collect::<Vec<_>>());
    let word = d.no_fault();
    d.kernels
        .get_rows_packed(d.stream(), &packed, &ids, &y, d.faults(&word, 1))
        .unwrap();
    let weights = reference::dequantize(ty, &w);
    for (i, (&found, &wanted)) in d.get(&y).iter().zip(&weights).enumerate() {
        assert!(found == wanted as f32, "element {i}: {found:e} is not {wanted:e}");
    }
    for size in [1e-25f32, 1e25] {
        let x = rng(7).vec_in(k, 0.5 * size, size);
        let (q8, bytes) = quantize(&d, &x, k);
        let y = d.out(n);
        d.kernels.matvec_q8(d.stream(), &packed, &q8, None, None, &y).unwrap();
        let input = values(&bytes);
        let expected = reference::matvec_q8(ty, &w, &input, None, None, k);
        for (row, (&found, &wanted)) in d.get(&y).iter().zip(&expected).enumerate() {
            // Where scale times scale is a normal number of f32.
            if (1e-34..1e35).contains(&wanted.abs()) {
                let near = (f64::from(found) - wanted).abs() <= 1e-4 * wanted.abs();
                assert!(near, "row {row}, {size:e}: {found:e} is not {wanted:e}");
            }
        }
    }
}

/// Blocks of one row whose scales are far apart, beyond f16 among them: each that is not far below the largest is there.
#[test]
fn neighbouring_exponents_of_mxfp4_on_the_matrix_unit() {
    let d = device_with!("packed16_mxfp4", "packed16_mxfp4_t1");
    let ty = WeightType::Mxfp4;
    let rows: [[u8; 4]; 6] = [
        [127, 117, 130, 124],
        [119, 107, 129, 126],
        [160, 150, 158, 161],
        [90, 100, 99, 80],
        [220, 221, 219, 218],
        [2, 3, 1, 2],
    ];
    let (n, k, m) = (rows.len(), 128, 9);
    let nibbles: [u8; 16] = std::array::from_fn(|i| (i * 17) as u8);
    let blocks = rows.iter().flatten();
    let w: Vec<u8> = blocks.flat_map(|&e| [&[e][..], &nibbles].concat()).collect();
    let packed = pack(&d, ty, &w, [n, k]);
    // Row m of the activations has one block alone, so that no other hides it.
    let x: Vec<f32> = (0..m * k)
        .map(|at| {
            if at / 32 % 4 == at / k % 4 {
                1.0 + (at % 32) as f32 / 32.0
            } else {
                0.0
            }
        })
        .collect();
    let x16 = halves(&d, &x, [m, k]);
    let y = d.out(m * n);
    d.kernels
        .packed16(d.stream(), &packed, &x16, None, &y, None)
        .expect("multiplies");
    let expected = reference::matmul_weight(ty, &w, &x, None, k);
    for (at, (&found, &wanted)) in d.get(&y).iter().zip(&expected).enumerate() {
        let near = (f64::from(found) - wanted).abs() <= 1e-3 * wanted.abs();
        assert!(
            near,
            "row {}, weights {:?}: {found:e} is not {wanted:e}",
            at / n,
            rows[at % n]
        );
    }
}

#[test]
fn a_matrix_is_packed_with_all_of_its_rows_and_no_more() {
    let d = device();
    let ty = WeightType::Q8_0;
    let packing = || WeightPacking::new(ty, poisoned(&d, 68), [2, 32]).expect("fits");
    refused(packing().finish(), "(0 and 2)");
    let (mut full, row) = (packing(), up(&d, &[0; 34]));
    for _ in 0..2 {
        d.kernels.pack_rows(d.stream(), &mut full, &row, 1).expect("packs");
    }
    refused(d.kernels.pack_rows(d.stream(), &mut full, &row, 1), "rows is 1");
}

#[test]
fn products_together_that_do_not_fit_are_refused() {
    let d = device();
    let (_, a) = both_orders(&d, WeightType::Q4_0, [3, 32], 1);
    let (_, other) = both_orders(&d, WeightType::Q8_0, [3, 32], 1);
    let (_, short) = both_orders(&d, WeightType::Q4_0, [2, 32], 1);
    let (one, two) = (d.up(&[1.0; 32]), d.up(&[1.0; 64]));
    let (y, z) = (d.out(3), d.out(3));
    let refused = |text, result: KernelResult<()>| refused(result, text);
    let joint = |x: &HipBuffer<f32>, parts: &[(&PackedWeights, &HipBuffer<f32>)]| {
        let of = |&(w, y): &(_, _)| JointProduct { w, bias: None, y };
        let products: Vec<JointProduct<'_>> = parts.iter().map(of).collect();
        d.kernels.matvec_q8_joint(d.stream(), x.into(), &products)
    };
    refused("matrices is 0", joint(&one, &[]));
    refused("one type", joint(&one, &[(&a, &y)]));
    refused("one type", joint(&one, &[(&a, &y), (&other, &z)]));
    refused("x has 64 elements", joint(&two, &[(&a, &y), (&a, &z)]));
    refused("another y and y overlap", joint(&one, &[(&a, &y), (&a, &y)]));
    refused("y has 3 elements", joint(&one, &[(&a, &y), (&short, &z)]));
    let gated =
        |x: &HipBuffer<f32>, w: [&PackedWeights; 2], f| d.kernels.matvec_q8_gated(d.stream(), x.into(), w, f, &y);
    refused("one type and shape", gated(&one, [&a, &other], GluKind::Swiglu));
    refused("one type and shape", gated(&one, [&a, &short], GluKind::Swiglu));
    refused("one type and shape", gated(&one, [&a, &a], GluKind::Reglu));
    refused("x has 64 elements", gated(&two, [&a, &a], GluKind::Swiglu));
}

/// Rows of f16.
fn halves(d: &Device, x: &[f32], dims: [usize; 2]) -> HalfRows {
    let room = poisoned(d, HalfRows::byte_len(dims[0], dims[1]).expect("counts"));
    (d.kernels.half_rows(d.stream(), &d.up(x), &room, dims)).expect("rounds")
}

#[test]
fn long_columns_are_divided_where_there_is_room_for_the_sums() {
    let d = device_with!("packed16_q4_0", "packed16_q4_0_t1");
    let (n, k, m) = (33, 6144, 9);
    // Of one part: too few columns, or more rows of weights than a card holds at once.
    let none = [[m, n, 512], [m, 1 << 20, k], [m, 1 << 20, 1 << 14]];
    assert_eq!(none.map(|dims| d.kernels.packed16_sums(dims)), [0; 3]);
    let floats = d.kernels.packed16_sums([m, n, k]);
    let parts = floats / (m * n);
    assert!((2..=8).contains(&parts) && floats == parts * m * n, "{floats}");
    let (_, w) = both_orders(&d, WeightType::Q4_0, [n, k], 1);
    let x = halves(&d, &vec![1.0; m * k], [m, k]);
    let (y, sums) = (d.out(m * n), d.out(floats));
    let tiles = d.kernels.packed16_tiles([m, n, k]);
    let run = |parts: usize, sums: Option<&HipBuffer<f32>>| {
        let tiles = Packed16Tiles { parts, ..tiles };
        let product = d.kernels.packed16_in(d.stream(), &w, &x, None, &y, (tiles, sums));
        product.map_err(|error| error.to_string())
    };
    assert_eq!(run(parts, Some(&sums)), Ok(()));
    for (parts, sums, text) in [
        (2, None, "parts of k must have room for their sums"),
        (parts, Some(sums.view(1..floats).expect("a part")), "sums has"),
        (9, Some(sums.clone()), "parts is 9; it must be 1 to 8"),
        (0, Some(sums.clone()), "parts is 0"),
    ] {
        let error = run(parts, sums.as_ref()).expect_err(text);
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn matrices_for_the_matrix_unit_that_are_not_joint_are_refused() {
    let d = device_with!("packed16_q4_0", "packed16_q4_0_t1");
    let (n, m) = (33, 9);
    let of = |ty, k| both_orders(&d, ty, [n, k], 1).1;
    let (a, other, long) = (
        of(WeightType::Q4_0, 64),
        of(WeightType::Q8_0, 64),
        of(WeightType::Q4_0, 8192),
    );
    let (y, z, short) = (d.out(m * n), d.out(m * n), d.out(m * n - 1));
    let joint = |x: &HalfRows, parts: &[(&PackedWeights, &HipBuffer<f32>)]| {
        let of = |&(w, y): &(_, _)| JointProduct { w, bias: None, y };
        let products: Vec<JointProduct<'_>> = parts.iter().map(of).collect();
        d.kernels.packed16_joint(d.stream(), x, &products)
    };
    let [x, wide] = [64, 8192].map(|k| halves(&d, &vec![1.0; m * k], [m, k]));
    joint(&x, &[(&a, &y), (&a, &z)]).expect("joint");
    let refused = |text, result: KernelResult<()>| refused(result, text);
    refused("matrices is 0", joint(&x, &[]));
    refused("one type", joint(&x, &[(&a, &y)]));
    refused("one type", joint(&x, &[(&a, &y), (&other, &z)]));
    refused("below 8192", joint(&wide, &[(&long, &y), (&long, &z)]));
    refused("as many columns", joint(&wide, &[(&a, &y), (&a, &z)]));
    refused("overlap", joint(&x, &[(&a, &y), (&a, &y)]));
    refused("another y has 296 elements", joint(&x, &[(&a, &y), (&a, &short)]));
}
