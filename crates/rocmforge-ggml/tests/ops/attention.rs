//! ggml's attention and rotary embedding on its grids.

use rocmforge_ggml::{DType, FlashAttnExt, Op, Rope, RopeScaling, RopeStyle};
use rocmforge_testkit::data::rng;

use super::harness::{Form, Input, assert_nmse, exact, run};

const FORMS: [Form; 3] = [Form::Plain, Form::Gaps, Form::Permuted];

/// Operands of one case: `[hsk, hsv]`, KV heads, query heads per KV head, keys, queries.
struct Case {
    head: [usize; 2],
    heads: [usize; 2],
    kv: usize,
    n: usize,
    types: [DType; 2],
    mask: bool,
    sinks: bool,
    max_bias: f32,
    softcap: f32,
    form: Form,
}

fn check(index: usize, c: &Case) {
    let mut r = rng(index as u64 + 1);
    let [hsk, hsv] = c.head;
    let [kv_heads, group] = c.heads;
    let batch = 1 + index % 2;
    let kv_batch = if index.is_multiple_of(4) { 1 } else { batch };
    let n_of = |shape: &[usize; 4]| shape.iter().product();
    let (q_shape, k_shape, v_shape) = (
        [batch, kv_heads * group, c.n, hsk],
        [kv_batch, kv_heads, c.kv, hsk],
        [kv_batch, kv_heads, c.kv, hsv],
    );
    let q = Input::new(DType::F32, &q_shape, &r.vec(n_of(&q_shape)), c.form);
    let k = Input::new(c.types[0], &k_shape, &r.vec(n_of(&k_shape)), c.form);
    let v = Input::new(c.types[1], &v_shape, &r.vec(n_of(&v_shape)), c.form);
    let mask = c.mask.then(|| {
        let shape = [
            if index.is_multiple_of(3) { batch } else { 1 },
            1,
            c.n + index % 2,
            c.kv,
        ];
        let mut values = r.vec(n_of(&shape));
        // Keys in blocks that are hidden or plain, as in ggml's masks; and one query that sees nothing.
        for (at, value) in values.iter_mut().enumerate() {
            match at / 16 % 5 {
                0 => *value = f32::NEG_INFINITY,
                1 => *value = 0.0,
                _ => {}
            }
        }
        values[..c.kv].fill(f32::NEG_INFINITY);
        Input::new(DType::F16, &shape, &values, c.form)
    });
    let sinks = c
        .sinks
        .then(|| Input::f32(&[kv_heads * group], &r.vec_in(kv_heads * group, -10.0, 10.0)));
    let a = FlashAttnExt {
        scale: 1.0 / (hsk as f32).sqrt(),
        max_bias: c.max_bias,
        softcap: c.softcap,
        mask: c.mask,
        sinks: c.sinks,
    };
    let what = format!(
        "case {index}: {a:?} {:?} {:?} kv {} n {} {:?} {:?}",
        c.head, c.heads, c.kv, c.n, c.types, c.form
    );
    let inputs: Vec<Input> = [Some(q), Some(k), Some(v), mask, sinks].into_iter().flatten().collect();
    let op = Op::FlashAttnExt(a);
    assert_nmse(
        &run(op, &inputs, c.form).expect("runs"),
        &exact(&op, &inputs),
        5e-4,
        &what,
    );
}

/// ggml's grid with smaller sizes: head sizes 40 to 256 and odd or unequal ones, mask x sinks, ALiBi, softcap, groups, 1 to 75 queries.
#[test]
fn flash_attn_ext_on_ggmls_grid() {
    let heads_of = [
        [40, 40],
        [64, 64],
        [72, 72],
        [80, 80],
        [128, 128],
        [256, 256],
        [96, 64],
        [192, 128],
        [65, 67],
    ];
    let mut index = 0;
    for head in heads_of {
        for (mask, sinks) in [(false, false), (true, false), (false, true), (true, true)] {
            for (max_bias, softcap) in [(0.0, 0.0), (8.0, 0.0), (0.0, 10.0)] {
                if max_bias > 0.0 && !mask {
                    continue;
                }
                index += 1;
                check(
                    index,
                    &Case {
                        head,
                        heads: [[4, 1], [2, 4], [1, 12], [1, 5]][index % 4],
                        kv: [31, 64, 113][index % 3],
                        n: [1, 3, 8][index / 2 % 3],
                        types: [DType::F16; 2],
                        mask,
                        sinks,
                        max_bias,
                        softcap,
                        form: FORMS[index % 3],
                    },
                );
            }
        }
    }
    let long = Case {
        head: [64, 64],
        heads: [1, 1],
        kv: 512,
        n: 75,
        types: [DType::F16; 2],
        mask: true,
        sinks: false,
        max_bias: 0.0,
        softcap: 0.0,
        form: Form::Plain,
    };
    check(1000, &long);
}

/// Keys and values of every type that ggml's grid has, also of two different ones, permuted and with gaps.
#[test]
fn flash_attn_ext_of_cache_types() {
    let types = [
        DType::F32,
        DType::F16,
        DType::Bf16,
        DType::Q8_0,
        DType::Q5_1,
        DType::Q5_0,
        DType::Q4_1,
        DType::Q4_0,
        DType::Iq4Nl,
    ];
    for (index, dtype) in types.into_iter().enumerate() {
        for form in FORMS {
            for other in [dtype, types[(index + 3) % types.len()]] {
                let case = Case {
                    head: [64, 64],
                    heads: [2, 2],
                    kv: 33,
                    n: 3,
                    types: [dtype, other],
                    mask: true,
                    sinks: false,
                    max_bias: 0.0,
                    softcap: 0.0,
                    form,
                };
                check(2000 + index, &case);
            }
        }
    }
}

/// A mode of ggml for heads of `d` elements of which `n_dims` are rotated, with the sections of ggml's own tests and of models, and the
/// rotated dimensions that it takes.
fn rope_mode(mode: usize, [d, n_dims]: [usize; 2]) -> (RopeStyle, usize) {
    let third = (n_dims / 3).max(1);
    match mode {
        0 => (RopeStyle::HalfSplit, n_dims),
        1 => (RopeStyle::Interleaved, n_dims),
        2 => (RopeStyle::Mrope([third, third, third, 0]), n_dims),
        3 => (RopeStyle::Mrope([1, 0, 2, 1]), n_dims),
        4 => (RopeStyle::Imrope([third, third, third, 0]), n_dims),
        5 => (RopeStyle::Imrope([3, 1, 2, 2]), n_dims),
        6 => (RopeStyle::Vision([d / 4, d / 4, 0, 0]), d / 2),
        _ => (RopeStyle::Vision([2, 3, 1, 2]), d / 2),
    }
}

/// ggml's grid: its five modes, f32 and f16, head sizes 64 to 256, fewer dimensions than the head has, scaled frequencies, YaRN, factors,
/// magnitude, views; NMSE 1e-7.
#[test]
fn rope_on_ggmls_grid() {
    let mut index = 0usize;
    for mode in 0..8 {
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            for [d, n_dims] in [
                [128, 128],
                [64, 64],
                [80, 20],
                [80, 32],
                [64, 64],
                [256, 128],
                [512, 512],
                [33, 2],
            ] {
                let (style, n_dims) = rope_mode(mode, [d, n_dims]);
                if mode >= 6 && d % 4 > 0 {
                    continue;
                }
                for scaling in [
                    RopeScaling::None,
                    RopeScaling::Linear { factor: 1.0 / 1.4245 },
                    RopeScaling::Yarn {
                        factor: 4.0,
                        original_context: 512,
                        beta_fast: 32.0,
                        beta_slow: 1.0,
                        ext_factor: 1.0,
                    },
                    RopeScaling::Yarn {
                        factor: 1.4245,
                        original_context: 256,
                        beta_fast: 16.0,
                        beta_slow: 2.0,
                        ext_factor: 0.7465,
                    },
                ] {
                    for with_factors in [false, true] {
                        index += 1;
                        let form = FORMS[index % 3];
                        let (batch, seq, heads) = (2, 3, 2);
                        let mut r = rng(index as u64);
                        let x = Input::new(dtype, &[batch, seq, heads, d], &r.vec(batch * seq * heads * d), form);
                        let each = index.is_multiple_of(2);
                        let mut shape = if each { vec![batch, seq] } else { vec![seq] };
                        if style.sections().is_some() {
                            shape.insert(0, 4);
                        }
                        let positions: Vec<usize> = (0..shape.iter().product()).map(|_| r.below(2000)).collect();
                        let own = Rope {
                            scaling,
                            magnitude: scaling.magnitude(if index.is_multiple_of(4) { 1.4245 } else { 1.0 }),
                            ..Rope::new(n_dims, 10_000.0, style, 2000)
                        };
                        let factors =
                            with_factors.then(|| Input::f32(&[own.pairs()], &r.vec_in(own.pairs(), 0.9, 1.1)));
                        let what = format!("case {index}: {dtype} {form:?} {own:?} factors {with_factors}");
                        let inputs: Vec<Input> = [Some(x), Some(Input::ids(&shape, &positions)), factors]
                            .into_iter()
                            .flatten()
                            .collect();
                        assert_nmse(
                            &run(Op::Rope(own), &inputs, form).expect("runs"),
                            &exact(&Op::Rope(own), &inputs),
                            1e-7,
                            &what,
                        );
                    }
                }
            }
        }
    }
}
