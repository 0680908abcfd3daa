//! Attention as graphs of ggml have it.

use crate::support::{device, half_bits, refused};
use crate::weights::{blocks, up};
use rocmforge_kernels::{
    ExtOperand, ExtOperands, ExtOptions, ExtShape, FloatType, Half, KvType, Strides, WeightType, reference,
};
use rocmforge_testkit::data::{rng, widen};

/// What is left out or changed.
#[derive(Clone, Copy)]
struct Case {
    mask: Option<[usize; 3]>,
    half_mask: bool,
    softcap: Option<f32>,
    max_bias: f32,
    sinks: bool,
    tokens_first: bool,
}

const PLAIN: Case = Case {
    mask: None,
    half_mask: false,
    softcap: None,
    max_bias: 0.0,
    sinks: false,
    tokens_first: false,
};

fn check(shape: ExtShape, kv: KvType, case: Case) {
    let d = device();
    let s = shape;
    let mut random = rng((s.queries * 1000 + s.keys) as u64);
    let weight = if kv == KvType::F16 {
        WeightType::F16
    } else {
        WeightType::F32
    };
    let ty = if kv == KvType::F16 {
        FloatType::F16
    } else {
        FloatType::F32
    };
    let q = random.vec(s.batch * s.heads * s.queries * s.dim_k);
    let cache = |random: &mut _, dim| blocks(weight, random, s.kv_batch * s.kv_heads * s.keys * dim);
    let (k, v) = (cache(&mut random, s.dim_k), cache(&mut random, s.dim_v));
    let [outer, inner, rows] = case.mask.unwrap_or([1, 1, s.queries]);
    let mut mask: Vec<f32> = (0..outer * inner * rows * s.keys)
        .map(|_| match random.below(3) {
            0 => f32::NEG_INFINITY,
            _ => random.below(64) as f32 / 16.0 - 2.0,
        })
        .collect();
    mask[..s.keys].fill(f32::NEG_INFINITY); // a query that sees nothing
    let sinks = random.vec(s.heads);

    let strides = |heads, rows, dim| match case.tokens_first {
        true => Strides::tokens_first(heads, rows, dim),
        false => Strides::heads_first(heads, rows, dim),
    };
    // The reference has heads first.
    let heads_first = |x: &[f64], batch: usize, heads: usize, rows: usize, dim: usize| -> Vec<f64> {
        let strides = strides(heads, rows, dim);
        let place = |at: usize| {
            let (e, r, h, b) = (
                at % dim,
                at / dim % rows,
                at / dim / rows % heads,
                at / dim / rows / heads,
            );
            b * strides.batch as usize + h * strides.head as usize + r * strides.row as usize + e
        };
        (0..batch * heads * rows * dim).map(|at| x[place(at)]).collect()
    };
    let mask_of = |b: usize, h: usize, i: usize, j: usize| match case.mask {
        None => 0.0,
        Some(_) => f64::from(mask[((b % outer * inner + h % inner) * rows + i) * s.keys + j]),
    };
    let scores = reference::ExtScores {
        scale: 0.3,
        softcap: case.softcap.map(f64::from),
        max_bias: f64::from(case.max_bias),
        mask: &mask_of,
        sinks: case.sinks.then_some(sinks.as_slice()),
    };
    let cached =
        |bytes: &[u8], dim| heads_first(&reference::float_values(ty, bytes), s.kv_batch, s.kv_heads, s.keys, dim);
    let want = reference::flash_attn_ext(
        &heads_first(&widen(&q), s.batch, s.heads, s.queries, s.dim_k),
        &cached(&k, s.dim_k),
        &cached(&v, s.dim_v),
        shape,
        &scores,
    );

    let bytes: Vec<u8> = match case.half_mask {
        true => mask
            .iter()
            .flat_map(|&v| half_bits(Half::F16, v).to_le_bytes())
            .collect(),
        false => mask.iter().flat_map(|v| v.to_le_bytes()).collect(),
    };
    let q_bytes: Vec<u8> = q.iter().flat_map(|v| v.to_le_bytes()).collect();
    let (dq, dk, dv, dm) = (up(&d, &q_bytes), up(&d, &k), up(&d, &v), up(&d, &bytes));
    let (ds, out) = (d.up(&sinks), d.out(want.len()));
    let mask_type = if case.half_mask { KvType::F16 } else { KvType::F32 };
    let operand = |buffer, heads, rows, dim| ExtOperand {
        buffer,
        strides: strides(heads, rows, dim),
    };
    let operands = ExtOperands {
        q: operand(&dq, s.heads, s.queries, s.dim_k),
        k: operand(&dk, s.kv_heads, s.keys, s.dim_k),
        v: operand(&dv, s.kv_heads, s.keys, s.dim_v),
        mask: case.mask.map(|[a, b, c]| (mask_type, &dm, [a, b, c, s.keys])),
        sinks: case.sinks.then_some(&ds),
        out: &out,
    };
    let options = ExtOptions {
        scale: 0.3,
        softcap: case.softcap,
        max_bias: case.max_bias,
    };
    d.kernels
        .flash_attn_ext(d.stream(), kv, operands, shape, options)
        .unwrap();
    d.close(&out, &want, &[s.batch, s.queries, s.heads, s.dim_v], 1e-5);
}

fn shape(batch: [usize; 2], heads: [usize; 2], queries: usize, keys: usize, dims: [usize; 2]) -> ExtShape {
    ExtShape {
        batch: batch[0],
        heads: heads[0],
        queries,
        kv_batch: batch[1],
        kv_heads: heads[1],
        keys,
        dim_k: dims[0],
        dim_v: dims[1],
    }
}

#[test]
fn masks_slopes_sinks_caps_and_strides() {
    let s = shape([2, 2], [6, 3], 3, 70, [40, 48]);
    for half_mask in [false, true] {
        for mask in [[1, 1, 3], [2, 1, 5], [1, 3, 3], [2, 6, 64]] {
            let masked = Case {
                mask: Some(mask),
                half_mask,
                ..PLAIN
            };
            check(s, KvType::F16, masked);
            let all = Case {
                softcap: Some(0.5),
                max_bias: 8.0,
                sinks: true,
                tokens_first: true,
                ..masked
            };
            check(s, KvType::F32, all);
        }
    }
    let capped = Case {
        softcap: Some(0.2),
        sinks: true,
        ..PLAIN
    };
    check(s, KvType::F32, capped);
}

#[test]
fn what_does_not_fit_is_refused() {
    let d = device();
    let (q, out) = (up(&d, &[0; 4 * 64]), d.out(64));
    let good = shape([1, 1], [2, 1], 4, 8, [8, 8]);
    let refused = |shape: ExtShape, options: ExtOptions, mask, text| {
        let operand = |heads, rows| ExtOperand {
            buffer: &q,
            strides: Strides::heads_first(heads, rows, 8),
        };
        let operands = ExtOperands {
            q: operand(2, 4),
            k: operand(1, 8),
            v: operand(1, 8),
            mask,
            sinks: None,
            out: &out,
        };
        let result = (d.kernels).flash_attn_ext(d.stream(), KvType::F32, operands, shape, options);
        refused(result, text);
    };
    let options = ExtOptions {
        scale: 1.0,
        softcap: None,
        max_bias: 0.0,
    };
    refused(ExtShape { keys: 9, ..good }, options, None, "k has 64 elements");
    refused(
        ExtShape { kv_heads: 3, ..good },
        options,
        None,
        "must divide the queries' (3 and 2)",
    );
    refused(
        ExtShape { dim_v: 6, ..good },
        options,
        None,
        "multiple of 4 elements (6 and 4)",
    );
    refused(ExtShape { dim_k: 260, ..good }, options, None, "dim_k is 260");
    refused(
        good,
        ExtOptions {
            softcap: Some(0.0),
            ..options
        },
        None,
        "softcap is 0",
    );
    refused(
        good,
        ExtOptions {
            max_bias: -1.0,
            ..options
        },
        None,
        "max_bias is -1",
    );
    let mask = up(&d, &[0; 96]);
    let three_rows = Some((KvType::F32, &mask, [1, 1, 3, 8]));
    refused(good, options, three_rows, "the mask must have as many rows (4 and 3)");
}
