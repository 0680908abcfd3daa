//! Rows of f16 with a power of two each, and products of them with weights of every type.

use crate::support::{Device, device_with};
use crate::weights::{blocks, up};
use rocmforge_kernels::{FloatType, HalfRows, PackedWeights, WeightMatrix, WeightType, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

/// `n` bytes that no kernel has written.
fn poisoned(d: &Device, n: usize) -> HipBuffer<u8> {
    up(d, &vec![0xA5; n])
}

fn packed(d: &Device, ty: WeightType, w: &[u8], shape: [usize; 2]) -> PackedWeights {
    d.kernels
        .pack_weight(d.stream(), ty, &up(d, w), poisoned(d, w.len()), shape)
        .expect("packs")
}

/// What lies in a buffer of [`HalfRows`]: the rows with what fills them up, and their exponents.
fn decode(d: &Device, buffer: &HipBuffer<u8>, rows: usize) -> (Vec<Vec<f64>>, Vec<i32>) {
    let bytes = buffer.to_vec(d.stream()).expect("download");
    let (halves, exponents) = bytes.split_at(bytes.len() - 4 * rows);
    let rows = halves.chunks(halves.len() / rows);
    let exponent = |b: &[u8]| i32::from_le_bytes(b.try_into().unwrap());
    (
        rows.map(|row| reference::float_values(FloatType::F16, row)).collect(),
        exponents.chunks(4).map(exponent).collect(),
    )
}

/// Holds a row to the definition: the exponent, each value, and zeros behind them.
#[track_caller]
fn hold(what: &str, found: &[f64], exponent: i32, wanted: &[f64]) {
    let finite = wanted
        .iter()
        .filter(|x| x.is_finite())
        .fold(0f64, |a, x| a.max(x.abs()));
    let all_finite = wanted.iter().all(|x| !x.is_infinite());
    if all_finite {
        let log = if finite == 0.0 {
            -1000
        } else {
            finite.log2().floor() as i32
        };
        // A magnitude just below a power of two may be that power in f32.
        let near = (0..=1).any(|up| (log + up - 14).clamp(-126, 113) == exponent);
        assert!(
            near,
            "{what}: exponent {exponent} for a largest magnitude of {finite:e}"
        );
    }
    let unit = f64::from(exponent).exp2();
    for (i, (&h, &x)) in found.iter().zip(wanted).enumerate() {
        let value = h * unit;
        if !x.is_finite() {
            let same = value == x || value.is_nan() && x.is_nan();
            assert!(same, "{what}, element {i}: {value} where {x} was expected");
            continue;
        }
        // Half a step of f16, in its subnormal numbers of 2^-24.
        let error = (x.abs() * 2f64.powi(-11)).max(unit * 2f64.powi(-25)) * 1.001;
        assert!(
            (value - x).abs() <= error,
            "{what}, element {i}: {value:e} where {x:e} was expected"
        );
    }
    assert_eq!(found.len(), wanted.len().next_multiple_of(8), "{what}");
    assert!(
        found[wanted.len()..].iter().all(|&h| h == 0.0),
        "{what}: no zeros behind"
    );
}

#[test]
fn rows_of_weights_of_every_type() {
    let d = device_with!("matmul16", "matmul16_f16_f32");
    for ty in WeightType::ALL {
        let depths = match ty.block_len() {
            1 => vec![1, 7, 8, 33, 1023, 1024, 1025, 9001],
            block => vec![block, 1024, 1024 + block, 8192 + block],
        };
        for (k, n) in depths.into_iter().zip([9, 1, 3, 2].into_iter().cycle()) {
            let mut random = rng((n * 100_000 + k) as u64);
            let w = blocks(ty, &mut random, n * k / ty.block_len());
            let values = reference::dequantize(ty, &w);
            let buffer = up(&d, &w);
            let matrix = ty.is_packable().then(|| packed(&d, ty, &w, [n, k]));
            let plain = WeightMatrix::Plain(ty, &buffer, [n, k]);
            for matrix in [Some(plain), matrix.as_ref().map(WeightMatrix::Packed)]
                .into_iter()
                .flatten()
            {
                let rows = n / 2..n;
                let to = poisoned(&d, HalfRows::byte_len(rows.len(), k).unwrap());
                let made = d.kernels.half_rows_of(d.stream(), matrix, rows.clone(), &to).unwrap();
                assert_eq!((made.rows(), made.k()), (rows.len(), k));
                let (found, exponents) = decode(&d, &to, rows.len());
                for (i, r) in rows.enumerate() {
                    let what = format!("{matrix:?}, row {r}");
                    hold(&what, &found[i], exponents[i], &values[r * k..][..k]);
                }
            }
        }
    }
}

#[test]
fn rows_of_every_magnitude() {
    let d = device_with!("matmul16", "matmul16_f16_f32");
    for k in [40, 1100] {
        let scales = [1.0f32, 1e30, 3e38, 1e-30, 1e-37, 1e-44, 0.0, 65504.0, -7e4];
        let mut random = rng(k as u64);
        let mut x = random.vec_in(scales.len() * k, -1.0, 1.0);
        for (row, scale) in x.chunks_mut(k).zip(scales) {
            row.iter_mut().for_each(|v| *v *= scale);
        }
        let m = scales.len();
        // Both ends of f32 in a row, and what is no number.
        x[3] = f32::MAX;
        x[k + 39] = f32::INFINITY;
        x[k + 4] = f32::NAN;
        x[2 * k] = f32::NEG_INFINITY;
        x[3 * k + 5] = f32::NAN;
        let to = poisoned(&d, HalfRows::byte_len(m, k).unwrap());
        d.kernels.half_rows(d.stream(), &d.up(&x), &to, [m, k]).unwrap();
        let (found, exponents) = decode(&d, &to, m);
        for (r, row) in x.chunks(k).enumerate() {
            let wanted: Vec<f64> = row.iter().copied().map(f64::from).collect();
            hold(&format!("row {r} of {k}"), &found[r], exponents[r], &wanted);
        }
    }
}

/// A product on the device.
fn product(d: &Device, w: WeightMatrix<'_>, x: &[f32], bias: Option<&[f32]>, room: Option<usize>) -> Vec<f32> {
    let [n, k] = w.shape();
    let m = x.len() / k;
    let to = poisoned(d, HalfRows::byte_len(m, k).unwrap());
    let rows = d.kernels.half_rows(d.stream(), &d.up(x), &to, [m, k]).unwrap();
    let wanted = d.kernels.matmul_halves_scratch(w, m).unwrap();
    let scratch = poisoned(d, room.unwrap_or(wanted));
    let (bias, y) = (bias.map(|bias| d.up(bias)), d.out(m * n));
    d.kernels
        .matmul_halves(d.stream(), w, &rows, bias.as_ref(), &y, &scratch)
        .unwrap();
    d.get(&y)
}

/// Holds a product to the definition with the operands as they were given: each operand is rounded to f16 once.
#[track_caller]
fn close(what: &str, y: &[f32], w: &[f64], x: &[f32], bias: Option<&[f32]>, k: usize) {
    let n = w.len() / k;
    let largest = |row: &mut dyn Iterator<Item = f64>| row.fold(0f64, |a, x| a.max(x.abs()));
    let (mut errors, mut squares) = (0.0, 0.0);
    for (i, &y) in y.iter().enumerate() {
        let (x, w) = (&x[i / n * k..][..k], &w[i % n * k..][..k]);
        let bias = bias.map_or(0.0, |bias| f64::from(bias[i % n]));
        let sum: f64 = x.iter().zip(w).map(|(&x, w)| f64::from(x) * w).sum();
        let size: f64 = x.iter().zip(w).map(|(&x, w)| (f64::from(x) * w).abs()).sum();
        let tops = largest(&mut x.iter().map(|&x| f64::from(x))) * largest(&mut w.iter().copied());
        let limit = size * 1.01 * 2f64.powi(-10) + k as f64 * tops * 2f64.powi(-38) + bias.abs() * 1e-7;
        // The last step of f32 is no error of the operands.
        let error = ((f64::from(y) - sum - bias).abs() - 1.5e-45).max(0.0);
        assert!(
            error <= limit,
            "{what}, element {i}: {y:e} where {:e} was expected",
            sum + bias
        );
        errors += error * error / (size * size).max(1e-300);
        squares += (sum / size.max(1e-300)).powi(2);
    }
    assert!(errors <= 1e-6 * squares + 1e-12, "{what}: NMSE {:e}", errors / squares);
}

#[test]
fn few_rows_are_products_too() {
    let d = device_with!("matmul16", "matmul16_f16_f32");
    let (ty, n, k) = (WeightType::Q8_0, 9, 96);
    for m in [1, 8] {
        let mut random = rng(m as u64);
        let w = blocks(ty, &mut random, n * k / 32);
        let x = random.vec_in(m * k, -1e20, 1e20);
        let buffer = up(&d, &w);
        let y = product(&d, WeightMatrix::Plain(ty, &buffer, [n, k]), &x, None, None);
        close(&format!("{m} rows"), &y, &reference::dequantize(ty, &w), &x, None, k);
    }
}

#[test]
fn slabs_and_parts_change_rounding_only() {
    let d = device_with!("matmul16", "matmul16_f16_f32");
    for (ty, m, n, k) in [
        (WeightType::Q4K, 20, 300, 512),
        (WeightType::Q5_1, 9, 40, 4096),
        (WeightType::F16, 9, 5, 2048),
    ] {
        let mut random = rng((m + n + k) as u64);
        let w = blocks(ty, &mut random, n * k / ty.block_len());
        let (x, bias) = (random.vec_in(m * k, -1.0, 1.0), random.vec(n));
        let (values, buffer) = (reference::dequantize(ty, &w), up(&d, &w));
        let matrix = WeightMatrix::Plain(ty, &buffer, [n, k]);
        let wanted = d.kernels.matmul_halves_scratch(matrix, m).unwrap();
        let row = HalfRows::byte_len(1, k).unwrap().next_multiple_of(16);
        for room in [wanted, 64 * row + 5000, 7 * row, row] {
            let y = product(&d, matrix, &x, Some(&bias), Some(room));
            close(&format!("{ty}, room for {room} bytes"), &y, &values, &x, Some(&bias), k);
        }
    }
}

#[test]
fn activations_and_weights_of_every_magnitude() {
    let d = device_with!("matmul16", "matmul16_f16_f32");
    let (n, k, m) = (5, 288, 12);
    let mut random = rng(5);
    let scales = [
        1e30f32, 1e-30, 0.0, 1.0, 1e-40, 3e4, 7e37, 1e-3, -1e10, 1e18, 1e-18, 2.0,
    ];
    let mut x = random.vec_in(m * k, -1.0, 1.0);
    for (row, scale) in x.chunks_mut(k).zip(scales) {
        row.iter_mut().for_each(|v| *v *= scale);
    }
    // Rows of weights of up to 8.3 million, beyond f16; of its largest number times 1; of denormal scales; of zeros.
    let mut w = blocks(WeightType::Q8_0, &mut random, n * k / 32);
    for (i, block) in w.chunks_mut(34).enumerate() {
        let scale: u16 = [0x7BFF, 0xFBFF, 0x0001, 0, 0x3C00][i / (k / 32)];
        block[..2].copy_from_slice(&scale.to_le_bytes());
    }
    let values = reference::dequantize(WeightType::Q8_0, &w);
    // Only where f32 holds every sum.
    x[6 * k..7 * k].iter_mut().for_each(|v| *v *= 1e-9);
    let matrix = packed(&d, WeightType::Q8_0, &w, [n, k]);
    let y = product(&d, WeightMatrix::Packed(&matrix), &x, None, None);
    assert!(y.iter().all(|y| y.is_finite()));
    close("q8_0", &y, &values, &x, None, k);
    // bf16 has the range of f32.
    let bits: Vec<u8> = (0..n * k)
        .flat_map(|i| {
            let scale = [1e30f32, 1e-30, 1.0, 1e-38, 0.0][i / k];
            (random.vec(1)[0] * scale).to_le_bytes()[2..].to_vec()
        })
        .collect();
    let values = reference::dequantize(WeightType::Bf16, &bits);
    let small: Vec<f32> = x.iter().map(|x| x * 1e-9).collect();
    let buffer = up(&d, &bits);
    let matrix = WeightMatrix::Plain(WeightType::Bf16, &buffer, [n, k]);
    let rows = [1, 2, 3, 5, 7, 8, 10, 11, 1, 2, 3]
        .map(|row| &small[row * k..][..k])
        .concat();
    close("bf16", &product(&d, matrix, &rows, None, None), &values, &rows, None, k);
}

#[test]
fn no_number_stays_in_its_row() {
    let d = device_with!("matmul16", "matmul16_f16_f32");
    let (ty, m, n, k) = (WeightType::Q4_0, 11, 35, 64);
    let mut random = rng(3);
    let w = blocks(ty, &mut random, n * k / 32);
    let mut x = random.vec(m * k);
    (x[2 * k + 5], x[9 * k]) = (f32::NAN, f32::INFINITY);
    let matrix = packed(&d, ty, &w, [n, k]);
    let y = product(&d, WeightMatrix::Packed(&matrix), &x, None, None);
    for (i, y) in y.iter().enumerate() {
        assert_eq!(y.is_finite(), ![2, 9].contains(&(i / n)), "element {i}: {y}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let d = device_with!("matmul16", "matmul16_f16_f32");
    let s = d.stream();
    let (m, n, k) = (9, 4, 32);
    let (w, x, y) = (up(&d, &[0; 4 * 18]), d.up(&vec![0.0; m * k]), d.out(m * n));
    let to = poisoned(&d, HalfRows::byte_len(m, k).unwrap());
    let rows = d.kernels.half_rows(s, &x, &to, [m, k]).unwrap();
    fn matrix(bytes: &HipBuffer<u8>) -> WeightMatrix<'_> {
        WeightMatrix::Plain(WeightType::Q4_0, bytes, [4, 32])
    }
    let scratch = poisoned(&d, d.kernels.matmul_halves_scratch(matrix(&w), m).unwrap());
    let run = |w: WeightMatrix<'_>, bias: Option<&HipBuffer<f32>>, y: &HipBuffer<f32>, scratch: &HipBuffer<u8>| {
        d.kernels.matmul_halves(s, w, &rows, bias, y, scratch)
    };
    run(matrix(&w), None, &y, &scratch).unwrap();
    let refused = |text: &str, result: rocmforge_kernels::KernelResult<()>| {
        let error = result.expect_err(text).to_string();
        assert!(error.contains(text), "{error:?} does not say {text:?}");
    };
    let (short, odd) = (w.view(0..71).unwrap(), scratch.view(8..scratch.len()).unwrap());
    let (five, inside) = (d.up(&[0.0; 5]), scratch.cast::<f32>().unwrap().view(0..n).unwrap());
    refused("w has 71 elements", run(matrix(&short), None, &y, &scratch));
    refused("bias has 5 elements", run(matrix(&w), Some(&five), &y, &scratch));
    refused("scratch and bias overlap", run(matrix(&w), Some(&inside), &y, &scratch));
    refused(
        "y has 35 elements",
        run(matrix(&w), None, &y.view(0..35).unwrap(), &scratch),
    );
    refused("must be a multiple of 16", run(matrix(&w), None, &y, &odd));
    refused(
        "scratch has 60 elements",
        run(matrix(&w), None, &y, &scratch.view(0..60).unwrap()),
    );
    refused("scratch and x overlap", run(matrix(&w), None, &y, &to));
    let wide = up(&d, &[0; 8 * 18]);
    let wide = WeightMatrix::Plain(WeightType::Q4_0, &wide, [n, 2 * k]);
    refused("as many columns (64 and 32)", run(wide, None, &y, &scratch));
    let half = |rows, to: &HipBuffer<u8>| d.kernels.half_rows_of(s, matrix(&w), rows, to).map(drop);
    refused("rows is 5; it must be 1 to 4", half(3..5, &to));
    refused("rows is 0", half(2..2, &to));
    refused("to has 612 elements", half(0..4, &to));
    refused("to and w overlap", half(0..1, &w.view(0..68).unwrap()));
}
