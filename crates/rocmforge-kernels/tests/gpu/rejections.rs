//! Refusals of launchers. Nothing refused reaches the device: the lease would report it.

use crate::support::{as_kv, as_q, device, refused, usual_scale};
use rocmforge_kernels::{AttentionShape, FlashOptions, KernelError, Operand, RopePairs, RopeShape, Strides};
use rocmforge_runtime::HipBuffer;

#[test]
fn wrong_lengths_are_named_with_the_shape() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    let (a, b, c) = (d.up(&[0.0; 12]), d.up(&[0.0; 11]), d.up(&[0.0; 12]));
    refused(k.add(s, &a, &b, &c), "add: b has 11 elements; its shape [12] needs 12");
    refused(k.scale(s, &a, &b, 1.0), "scale: y has 11 elements");
    refused(
        k.softmax(s, &a, &c, 3, 5, 1.0),
        "softmax: x has 12 elements; its shape [3, 5] needs 15",
    );
    refused(
        k.rms_norm(s, &a, &b, &c, 3, 4, 1e-6),
        "rms_norm: weight has 11 elements; its shape [4] needs 4",
    );
    refused(
        k.causal_mask(s, &a, 1, 3, 3),
        "causal_mask: y has 12 elements; its shape [1, 3, 3] needs 9",
    );
    refused(k.transpose(s, &a, &c, [1, 3, 5]), "transpose: x has 12 elements");
    refused(
        k.mean_pool(s, &a, &b, &c, [1, 3, 4]),
        "mean_pool: weight has 11 elements; its shape [1, 3] needs 3",
    );
}

#[test]
fn dimensions_of_zero_and_products_beyond_counting() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    let (a, b) = (d.up(&[0.0; 12]), d.up(&[0.0; 12]));
    refused(k.softmax(s, &a, &b, 0, 12, 1.0), "softmax: rows is 0");
    refused(k.softmax(s, &a, &b, 12, 0, 1.0), "softmax: cols is 0");
    refused(k.transpose(s, &a, &b, [0, 3, 4]), "transpose: batch is 0");
    refused(
        k.softmax(s, &a, &b, usize::MAX, 12, 1.0),
        "softmax: rows is 18446744073709551615",
    );
    refused(
        k.causal_mask(s, &a, 1 << 20, 1 << 20, 1),
        "causal_mask: planes * seq_q is 1099511627776",
    );
    let huge = [1usize << 31, 1 << 31, 1 << 31];
    refused(
        k.transpose(s, &a, &b, huge),
        "[2147483648, 2147483648, 2147483648] has too many elements",
    );
}

#[test]
fn numbers_that_make_no_sense() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    let (a, w, b) = (d.up(&[0.0; 12]), d.up(&[0.0; 4]), d.up(&[0.0; 12]));
    refused(k.rms_norm(s, &a, &w, &b, 3, 4, -1.0), "rms_norm: eps is -1");
    refused(
        k.layer_norm(s, &a, &w, &w, &b, 3, 4, f32::NAN),
        "layer_norm: eps is NaN",
    );
    refused(k.softmax(s, &a, &b, 3, 4, f32::INFINITY), "softmax: scale is inf");
    refused(k.l2_normalize(s, &a, &b, 3, 4, 0.0), "l2_normalize: eps is 0");
}

#[test]
fn overlap_is_refused_and_in_place_is_not() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    let whole = d.up(&[1.0; 100]);
    let part = |range| -> HipBuffer<f32> { whole.view(range).unwrap() };
    k.scale(s, &part(0..50), &part(50..100), 2.0).unwrap();
    k.scale(s, &part(10..60), &part(10..60), 2.0).unwrap();
    refused(k.scale(s, &part(0..50), &part(1..51), 2.0), "scale: y and x overlap");
    refused(
        k.add(s, &part(0..40), &part(60..100), &part(20..60)),
        "add: y and a overlap",
    );
    refused(
        k.transpose(s, &part(0..50), &part(0..50), [1, 5, 10]),
        "transpose: y and x overlap",
    );
    refused(
        k.rms_norm(s, &part(0..50), &part(45..55), &part(0..50), 5, 10, 1e-6),
        "rms_norm: y and weight overlap",
    );
}

#[test]
fn heads_must_divide_evenly() {
    let d = device();
    let shape = AttentionShape::square(1, 5, 2, 4).with_kv_heads(2);
    let (q, kv, y) = (d.up(&[0.0; 40]), d.up(&[0.0; 16]), d.out(20));
    let result = d
        .kernels
        .qk_matmul(d.stream(), as_q(&q, &shape), as_kv(&kv, &shape), &y, shape, 1.0);
    refused(result, "qk_matmul: 5 heads cannot share 2 key/value heads evenly");
    refused(
        d.kernels.kv_replicate(d.stream(), &kv, &q, 2, [5, 2], 4),
        "kv_replicate: 5 heads",
    );
}

#[test]
fn strides_that_leave_the_buffer_or_write_twice() {
    let d = device();
    let shape = AttentionShape::square(1, 2, 4, 8);
    let buffers = [64, 64, 64, 64].map(|n| d.up(&vec![0.5; n]));
    let [q, k, v, y] = &buffers;
    let options = FlashOptions {
        scale: usual_scale(8),
        causal: false,
        mask: None,
    };
    let right = shape.q_strides();
    let run = |q: Operand<'_>, k: Operand<'_>, out: Operand<'_>, options: FlashOptions<'_>| {
        let v = Operand::new(v, right);
        d.kernels.flash_attention(d.stream(), q, k, v, out, shape, options)
    };
    let op = |buffer, strides| Operand::new(buffer, strides);
    let (good_q, good_k, good_y) = (op(q, right), op(k, right), op(y, right));
    run(good_q, good_k, good_y, options).unwrap();
    let far = Strides { row: 9, ..right };
    refused(
        run(good_q, op(k, far), good_y, options),
        "flash_attention: k has 64 elements; its strides [64, 32, 9]",
    );
    let endless = Strides {
        head: u64::MAX,
        ..right
    };
    refused(
        run(op(q, endless), good_k, good_y, options),
        "flash_attention: q has 64 elements",
    );
    let twice = Strides { head: 0, ..right };
    run(good_q, op(k, twice), good_y, options).unwrap();
    refused(run(good_q, good_k, op(y, twice), options), "write out more than once");
    let short = d.up(&[0.0; 3]);
    let masked = FlashOptions {
        mask: Some(op(&short, Strides::per_batch(4))),
        ..options
    };
    refused(
        run(good_q, good_k, good_y, masked),
        "flash_attention: mask has 3 elements",
    );
}

#[test]
fn rope_stays_inside_of_its_tables() {
    let d = device();
    let (x, table) = (d.up(&[0.0; 64]), d.up(&[0.0; 16]));
    let run = |shape| {
        d.kernels
            .rope(d.stream(), RopePairs::Half, &x, [&table, &table], &x, shape)
    };
    let shape = RopeShape::sequence(4, 2, 8);
    run(shape).unwrap();
    refused(
        run(RopeShape { start: 1, ..shape }),
        "start + seq must not pass the positions of the tables (5 and 4)",
    );
    refused(run(RopeShape { rotary_dim: 7, ..shape }), "rotary_dim must be even");
    refused(
        run(RopeShape {
            rotary_dim: 10,
            ..shape
        }),
        "rope: rotary_dim is 10; it must be 1 to 8",
    );
}

#[test]
fn a_grid_beyond_the_device_is_the_runtimes_error() {
    let d = device();
    let limit = d.lease().backend().device().limits.max_grid_dim[2];
    if limit > 100_000 {
        return; // A device without this limit.
    }
    let batch = limit as usize + 1;
    let (x, y) = (d.up(&vec![0.0; batch]), d.out(batch));
    let error = d.kernels.transpose(d.stream(), &x, &y, [batch, 1, 1]).unwrap_err();
    assert!(matches!(error, KernelError::Hip(_)), "{error}");
    assert!(error.to_string().contains("grid"), "{error}");
}
